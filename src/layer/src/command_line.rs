//! Commands as one text: words separated by blanks, and quoted where they would be read as others.

/// Joins the words of a command. Words with blanks, empty words, and those that begin with a quote are in single quotes, as in a shell.
pub fn joined(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty() && !word.starts_with('\'') && !word.contains(char::is_whitespace);
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The program of a command that [`joined`] gave; `None` if its quotes are not closed.
pub fn program(text: &str) -> Option<String> {
    let Some(mut rest) = text.strip_prefix('\'') else {
        return Some(text.split(' ').next().unwrap_or_default().to_owned());
    };
    let mut word = String::new();
    loop {
        let (before, after) = rest.split_once('\'')?;
        word.push_str(before);
        match after.strip_prefix("\\''") {
            Some(after) => {
                word.push('\'');
                rest = after;
            }
            None => return (after.is_empty() || after.starts_with(' ')).then_some(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_commands_are_different_texts() {
        for (words, expected) in [
            (&["/bin/sh", "-c", "id"][..], "/bin/sh -c id"),
            (&["/bin/sh", "-c id"], "/bin/sh '-c id'"),
            (&["/bin/sh -c id"], "'/bin/sh -c id'"),
            (&["/bin/sh", "-c", "it's"], "/bin/sh -c it's"),
            (&["/bin/sh", "'a", "b'"], r"/bin/sh ''\''a' b'"),
            (&["/bin/sh", "a b"], "/bin/sh 'a b'"),
            (&["/bin/sh", "it's a"], r"/bin/sh 'it'\''s a'"),
            (&["/bin/sh", "", "x"], "/bin/sh '' x"),
            (&["/bin/sh", "a\tb"], "/bin/sh 'a\tb'"),
            (&["/opt/it's a", "x"], r"'/opt/it'\''s a' x"),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(joined(&words), expected);
            assert_eq!(program(expected).as_ref(), words.first());
        }
        for text in ["'/bin/sh", "'/bin/sh'x", r"'/bin/sh'\'' x"] {
            assert_eq!(program(text), None, "{text}");
        }
    }
}
