//! Splitting and escaping of text as in debconf.

/// Bytes that are text mostly, but in whatever encoding a template has.
pub(super) type Text = Vec<u8>;

/// Replaces what is found, from left to right.
pub(super) fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Text {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.first() {
        match rest.strip_prefix(from) {
            Some(after) => {
                out.extend_from_slice(to);
                rest = after;
            }
            None => {
                out.push(*first);
                rest = &rest[1..];
            }
        }
    }
    out
}

/// The words of a command: between blanks; with `escaped`, a backslash keeps what follows it, and `\n` is a newline.
pub(super) fn words(line: &[u8], escaped: bool) -> Vec<Text> {
    if !escaped {
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        return words.map(<[u8]>::to_vec).collect();
    }
    let mut words = Vec::new();
    let mut word = Vec::new();
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if bytes.peek().is_some_and(|next| *next != b'\n') => word.extend(bytes.next().map(unescaped)),
            blank if blank.is_ascii_whitespace() => {
                while bytes.next_if(u8::is_ascii_whitespace).is_some() {}
                words.push(std::mem::take(&mut word));
            }
            byte => word.push(byte),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// The byte that a backslash and this one mean.
fn unescaped(byte: u8) -> u8 {
    if byte == b'n' { b'\n' } else { byte }
}

/// Takes back [`escape`].
pub(in crate::merge) fn unescape(text: &[u8]) -> Text {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = if byte == b'\\' { bytes.next_if(|next| *next != b'\n') } else { None };
        out.push(escaped.map_or(byte, unescaped));
    }
    out
}

/// Backslashes and newlines as two bytes each.
pub(in crate::merge) fn escape(text: &[u8]) -> Text {
    replace(&replace(text, b"\\", b"\\\\"), b"\n", b"\\n")
}

/// The choices of a list: parted by a comma and blanks; a backslash before a comma or a space keeps it.
pub(super) fn choices(text: &[u8]) -> Vec<Text> {
    let mut items = Vec::new();
    let mut item = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.first() {
        let after = &rest[1..];
        match (first, after.first()) {
            (b'\\', Some(kept @ (b',' | b' '))) => {
                item.push(*kept);
                rest = &after[1..];
            }
            (b',', Some(next)) if next.is_ascii_whitespace() => {
                items.push(std::mem::take(&mut item));
                rest = after.trim_ascii_start();
            }
            (byte, _) => {
                item.push(*byte);
                rest = after;
            }
        }
    }
    items.extend(Some(item).filter(|item| !item.is_empty()));
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: Vec<Text>) -> Vec<String> {
        words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn words_are_parted_by_blanks() {
        assert_eq!(shown(words(b" SET  a\tb c ", false)), ["SET", "a", "b", "c"]);
        assert_eq!(shown(words(b"SET a\\ \\ b\\nc \\\\ \\", true)), ["SET", "a  b\nc", "\\", "\\"]);
        assert_eq!(shown(words(b" a", true)), ["", "a"]);
    }

    #[test]
    fn escaping_is_taken_back() {
        for text in [&b"a\\b\nc\\n"[..], b"", b"\\", b"\n\n"] {
            assert_eq!(unescape(&escape(text)), text);
        }
        assert_eq!(escape(b"a\\\n"), b"a\\\\\\n");
        assert_eq!(unescape(b"\\a\\"), b"a\\");
    }

    #[test]
    fn choices_are_parted_by_commas() {
        assert_eq!(shown(choices(b"a, b\\, c,  d\\ e,f")), ["a", "b, c", "d e,f"]);
        assert_eq!(shown(choices(b", a, ")), ["", "a"]);
        assert!(choices(b"").is_empty());
    }
}
