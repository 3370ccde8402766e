//! Results as JUnit XML for CI systems: a suite with one case per check, and the console output of a failed run.

use std::fmt::Write as _;

use super::{CheckRun, State};

/// Renders the results for an image.
pub fn junit(image: &str, run: &CheckRun) -> String {
    let failed = run.results.iter().filter(|result| result.state != State::Ok).count();
    let (image, total) = (xml(image), run.results.len());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites>\n<testsuite name=\"{image}\" tests=\"{total}\" failures=\"{failed}\" errors=\"0\" time=\"{:.1}\">\n",
        run.seconds
    );
    for result in &run.results {
        let (name, said) = (xml(&result.check), xml(&result.said));
        // Writing to a string cannot fail.
        let _ = write!(text, "<testcase classname=\"{image}\" name=\"{name}\" time=\"{:.1}\">", result.seconds);
        if result.state != State::Ok {
            let why = run.ended.as_deref().map_or("check failed".to_owned(), xml);
            let _ = write!(text, "<failure message=\"{why}\">{said}</failure>");
        }
        text.push_str("</testcase>\n");
    }
    if failed > 0 {
        let _ = writeln!(text, "<system-out>{}</system-out>", xml(&run.console));
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// Escapes text for XML 1.0, and replaces invalid characters (section 2.2).
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
    use crate::check::CheckResult;

    #[test]
    fn a_report_holds_any_text() {
        let result = |check: &str, state, said: &str| CheckResult {
            check: check.to_owned(),
            state,
            said: said.to_owned(),
            seconds: 1.25,
        };
        let results =
            vec![result("tcp:80", State::Ok, "accepts"), result("run=a && b < \"c\"", State::Failed, "\u{1}]]> <x>")];
        let run =
            CheckRun { results, seconds: 10.0, ended: Some("a < b".to_owned()), console: "a\u{fffe}b".to_owned() };
        let text = junit("a&b", &run);
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
