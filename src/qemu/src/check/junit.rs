//! Verdicts as JUnit XML, which CI systems show: a suite with a case for each check, and the console of one that failed.

use std::fmt::Write as _;

use super::{State, Trial};

/// The report about the machine of an image.
pub fn junit(image: &str, trial: &Trial) -> String {
    let failed = trial.verdicts.iter().filter(|verdict| verdict.state != State::Ok).count();
    let (image, total) = (xml(image), trial.verdicts.len());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites>\n<testsuite name=\"{image}\" tests=\"{total}\" failures=\"{failed}\" errors=\"0\" time=\"{:.1}\">\n",
        trial.seconds
    );
    for verdict in &trial.verdicts {
        let (name, said) = (xml(&verdict.check), xml(&verdict.said));
        // Writing to a string cannot fail.
        let _ = write!(text, "<testcase classname=\"{image}\" name=\"{name}\" time=\"{:.1}\">", verdict.seconds);
        if verdict.state != State::Ok {
            let why = trial.ended.as_deref().map_or("does not hold".to_owned(), xml);
            let _ = write!(text, "<failure message=\"{why}\">{said}</failure>");
        }
        text.push_str("</testcase>\n");
    }
    if failed > 0 {
        let _ = writeln!(text, "<system-out>{}</system-out>", xml(&trial.console));
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// Text without what XML 1.0 has a use for, or no room (section 2.2).
fn xml(text: &str) -> String {
    let mut escaped = String::new();
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => escaped.push(char),
            _ => escaped.push('\u{fffd}'),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CheckVerdict;

    #[test]
    fn a_report_holds_any_text() {
        let verdict = |check: &str, state, said: &str| CheckVerdict {
            check: check.to_owned(),
            state,
            said: said.to_owned(),
            seconds: 1.25,
        };
        let verdicts =
            vec![verdict("tcp:80", State::Ok, "accepts"), verdict("run=a && b < \"c\"", State::Failed, "\u{1}]]> <x>")];
        let trial =
            Trial { verdicts, seconds: 10.0, ended: Some("a < b".to_owned()), console: "a\u{fffe}b".to_owned() };
        let text = junit("a&b", &trial);
        assert!(
            text.contains("<testsuite name=\"a&amp;b\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"10.0\">"),
            "{text}"
        );
        assert!(text.contains("<testcase classname=\"a&amp;b\" name=\"tcp:80\" time=\"1.2\"></testcase>"), "{text}");
        assert!(text.contains("name=\"run=a &amp;&amp; b &lt; &quot;c&quot;\""), "{text}");
        assert!(text.contains("<failure message=\"a &lt; b\">\u{fffd}]]&gt; &lt;x&gt;</failure>"), "{text}");
        assert!(text.contains("<system-out>a\u{fffd}b</system-out>"), "{text}");
    }
}
