//! Escapes untrusted text for display: names, versions and messages of images, archives, manifests, keys and servers.
//!
//! Terminals interpret control characters, and a line break could fake a line of output. Untrusted text is therefore
//! shown without control characters (C0, DEL, C1), line breaks, bidirectional controls and invisible characters: each
//! of their bytes in UTF-8 becomes `\xNN`, and so does each byte that is not valid UTF-8. JSON has `\uNNNN` in their
//! place.
//!
//! Text for display keeps backslashes, since names of units contain them. [`path`] escapes them too, so that
//! [`unescape`] restores the bytes.

use std::error::Error;
use std::fmt::Display;

use serde::Serialize;

/// Whether a character is a control character, or changes or hides text: directions, joiners, what has no width.
pub fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(char,
            // Soft hyphens, joiners, fillers and selectors of single scripts.
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}' |
            // Directions of text: marks, embeddings, overrides, isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            // Ends of lines and paragraphs; what has no width; tags.
            | '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
}

fn escaped(bytes: &[u8], is_escaped: impl Fn(char) -> bool) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match is_escaped(char) {
                true => push_bytes(&mut text, char.encode_utf8(&mut [0; 4]).as_bytes()),
                false => text.push(char),
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

/// Escapes text for one line.
pub fn line(text: impl AsRef<str>) -> String {
    escaped(text.as_ref().as_bytes(), is_unsafe)
}

/// Escapes texts, each for a line.
pub fn each_line(texts: impl IntoIterator<Item: Display>) -> String {
    texts.into_iter().map(|text| line(text.to_string())).collect::<Vec<_>>().join("\n")
}

/// Escapes a name or path for display.
pub fn name(bytes: &[u8]) -> String {
    escaped(bytes, is_unsafe)
}

/// Escapes text of several lines, whose line breaks are trusted.
pub fn lines(text: &str) -> String {
    escaped(text.as_bytes(), |char| char != '\n' && is_unsafe(char))
}

/// A path as text from which [`unescape`] restores the same bytes; the mapping is injective. The root is `/`.
pub fn path(path: &[u8]) -> String {
    let text = escaped(path, |char| char == '\\' || is_unsafe(char));
    if text.is_empty() { "/".to_owned() } else { text }
}

/// The bytes of a text in which every backslash starts a `\xNN`; otherwise `None`.
pub fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut parts = text.split(|byte| *byte == b'\\');
    let mut bytes = parts.next()?.to_vec();
    for part in parts {
        let (hex, rest) = part.strip_prefix(b"x")?.split_first_chunk::<2>()?;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(hex[0])? << 4 | digit(hex[1])?);
        bytes.extend(rest);
    }
    Some(bytes)
}

/// A value as pretty-printed JSON with a trailing newline.
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(json_text(&serde_json::to_string_pretty(value)?) + "\n")
}

/// A value as JSON on one line, with a trailing newline.
pub fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(json_text(&serde_json::to_string(value)?) + "\n")
}

/// Escapes these characters in serialized JSON, except for line breaks outside of strings.
fn json_text(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        match char != '\n' && is_unsafe(char) {
            true => char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}"))),
            false => text.push(char),
        }
    }
    text
}

/// An error and its causes on one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    line(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        let outside = "a\x1b[2J\nb\t\x7f\u{9b}31m\u{202e}gpj.exe\u{2066}\u{2028}\u{200b}\u{feff}\u{e0041}é\\";
        let shown = "a\\x1b[2J\\x0ab\\x09\\x7f\\xc2\\x9b31m\\xe2\\x80\\xaegpj.exe\\xe2\\x81\\xa6\\xe2\\x80\\xa8\\xe2\\x80\\x8b\
                     \\xef\\xbb\\xbf\\xf3\\xa0\\x81\\x81é\\";
        assert_eq!(line(outside), shown);
        assert_eq!(name(&[outside.as_bytes(), b"\xff"].concat()), format!("{shown}\\xff"));
        assert_eq!(lines("a\x1b\nb\r\n"), "a\\x1b\nb\\x0d\n");
        let json = json_line(&outside).unwrap();
        assert!(json.trim_end().chars().all(|char| !is_unsafe(char)), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), outside);
    }

    #[test]
    fn paths_are_found_again() {
        for (bytes, text) in [
            (&b""[..], "/"),
            (b"/a b/\xc3\xa9", "/a b/\u{e9}"),
            (b"/dev-\\x2d", "/dev-\\x5cx2d"),
            (b"/\xff\xc3/\x1b[2J\n\x7f", "/\\xff\\xc3/\\x1b[2J\\x0a\\x7f"),
            (b"/\xc2\x85", "/\\xc2\\x85"),
        ] {
            assert_eq!(path(bytes), text);
            assert_eq!(unescape(text.as_bytes()).as_deref(), Some(if bytes.is_empty() { b"/" } else { bytes }));
        }
        for wrong in ["\\", "/a\\", "/\\y00", "/\\x0", "/\\xg0", "/\\\\"] {
            assert_eq!(unescape(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
