//! Patterns of aliases, as in fnmatch(3) without flags.

/// Whether `text` matches a pattern; `None` for sets with character classes such as `[[:digit:]]` or backslashes, which no kernel has.
pub fn matches(pattern: &[u8], text: &[u8]) -> Option<bool> {
    let (mut at, mut text_at) = (0, 0);
    // Where to continue if the rest does not match: after the last `*`, one character later than before.
    let mut retry = None;
    loop {
        let step = match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                retry = Some((at, text_at));
                continue;
            }
            None if text_at == text.len() => return Some(true),
            None => None,
            Some(_) => match text.get(text_at) {
                Some(byte) => one(&pattern[at..], *byte)?,
                None => None,
            },
        };
        if let Some(len) = step {
            at += len;
            text_at += 1;
            continue;
        }
        match retry {
            Some((behind, start)) if start < text.len() => {
                retry = Some((behind, start + 1));
                (at, text_at) = (behind, start + 1);
            }
            _ => return Some(false),
        }
    }
}

/// The length of the first element of a pattern, other than `*`, if it matches a character.
fn one(pattern: &[u8], byte: u8) -> Option<Option<usize>> {
    let literal = |expected: u8, len| Some((expected == byte).then_some(len));
    match *pattern {
        [b'?', ..] => Some(Some(1)),
        [b'\\', next, ..] => literal(next, 2),
        [b'[', ..] => match bracket(&pattern[1..], byte)? {
            Some((is_match, len)) => Some(is_match.then_some(len + 1)),
            None => literal(b'[', 1),
        },
        [first, ..] => literal(first, 1),
        [] => Some(None),
    }
}

/// Whether a character is in the set that starts after `[`, and the length of the set with its `]`, if it has one.
fn bracket(set: &[u8], byte: u8) -> Option<Option<(bool, usize)>> {
    let is_negated = matches!(set.first(), Some(b'!' | b'^'));
    let start = usize::from(is_negated);
    let (mut at, mut is_match) = (start, false);
    loop {
        let Some(&low) = set.get(at) else { return Some(None) };
        match low {
            b']' if at > start => return Some(Some((is_match != is_negated, at + 1))),
            b'[' if matches!(set.get(at + 1), Some(b':' | b'.' | b'=')) => return None,
            b'\\' => return None,
            _ => {}
        }
        let high = match set.get(at + 1..at + 3) {
            Some(&[b'-', high]) if high != b']' => {
                at += 2;
                high
            }
            _ => low,
        };
        is_match |= (low..=high).contains(&byte);
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_with_fnmatch() {
        let cases = [
            ("", "", Some(true)),
            ("*", "", Some(true)),
            ("a*c", "abbc", Some(true)),
            ("a*c", "abbd", Some(false)),
            ("*a*b*", "xxaxxbxx", Some(true)),
            ("*ab", "aab", Some(true)),
            ("a?", "a", Some(false)),
            ("pci:v*d[0-9]*", "pci:v00d7x", Some(true)),
            ("[!a]", "b", Some(true)),
            ("[!a]", "a", Some(false)),
            ("[]a]", "]", Some(true)),
            ("[a", "[a", Some(true)),
            ("a\\*", "a*", Some(true)),
            ("a\\*", "ab", Some(false)),
            ("[a-]", "-", Some(true)),
            ("[[:digit:]]", "1", None),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
