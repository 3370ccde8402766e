//! JSON as YAML: a value in; text with sorted keys that YAML 1.1 and 1.2 read alike out.
//!
//! A string of several plain lines is a literal block, for readability; other strings are plain if all readers agree, or have double
//! quotes.

use std::fmt::Write as _;

use serde_json::Value;

/// The document of a value.
pub(super) fn document(value: &Value) -> String {
    let mut out = String::new();
    node(&mut out, value, 0);
    out
}

/// Writes a value behind a key or a dash, and the line end after it.
fn node(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (at, (key, value)) in fields.iter().enumerate() {
                pad(out, depth, at);
                scalar(out, key);
                out.push(':');
                below(out, value, depth);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                pad(out, depth, at);
                out.push_str("- ");
                node(out, item, depth.saturating_add(1));
            }
        }
        Value::String(text) if is_block(text) => block(out, text, depth),
        Value::String(text) => {
            scalar(out, text);
            out.push('\n');
        }
        // Numbers, truth values, null, {} and [] are what they are in JSON.
        other => {
            // A text takes whatever is written.
            let _ = writeln!(out, "{other}");
        }
    }
}

/// Writes the value of a key: a mapping or list on separate lines.
fn below(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => nested(out, value, depth),
        Value::Array(items) if !items.is_empty() => nested(out, value, depth),
        _ => {
            out.push(' ');
            node(out, value, depth.saturating_add(1));
        }
    }
}

fn nested(out: &mut String, value: &Value, depth: usize) {
    out.push('\n');
    let depth = depth.saturating_add(1);
    out.push_str(&"  ".repeat(depth));
    node(out, value, depth);
}

/// Indents all entries but the first, which stands behind what came before.
fn pad(out: &mut String, depth: usize, at: usize) {
    if at > 0 {
        out.push_str(&"  ".repeat(depth));
    }
}

/// A literal block, one level deeper than its key.
fn block(out: &mut String, text: &str, depth: usize) {
    out.push_str(if text.ends_with('\n') { "|\n" } else { "|-\n" });
    for line in text.lines() {
        if !line.is_empty() {
            out.push_str(&"  ".repeat(depth));
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// Whether a literal block says exactly this text: its first line sets the indentation, and of several line ends at the end one stays.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && text.chars().all(|char| char == '\n' || char == '\t' || !char.is_control() && !is_break(char))
        && !text.starts_with([' ', '\n', '\t'])
        && !text.ends_with("\n\n")
        && text.lines().all(|line| line.is_empty() || !line.trim().is_empty())
}

/// Line ends that only YAML 1.1 knows, and the mark at the beginning of a file.
fn is_break(char: char) -> bool {
    matches!(char, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn scalar(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            _ if char.is_control() || is_break(char) => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}

/// Whether no reader takes a plain scalar for something else: it begins with a letter or slash, and no word of YAML is among them.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '/')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+@".contains(&byte))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yaml_rust2::{Yaml, YamlLoader};

    use super::*;

    #[test]
    fn texts_are_written_so_that_they_come_back() {
        for text in [
            "",
            "a",
            "true",
            "No",
            "~",
            "1.30",
            "0644",
            "a: b",
            "a #b",
            "- a",
            "'",
            "\"\\",
            "a\nb",
            "a\n",
            "\n",
            "a\n\n",
            " a\nb",
            "a\n  b\n",
            "\ta\n",
            "a\n \nb",
            "a\r\nb",
            "\u{85}x\ny",
            "é\n🦀",
            "\u{1}",
            "# a\nb",
            "--- a\nb\n",
            "a\tb\n\tc\n",
            "%a\nb",
            "/etc/a-b_c.d",
            "@a",
            "-",
            "y",
        ] {
            for value in [
                json!({"a": text}),
                json!([text, {"b": [text, [text]], "c": text}]),
                json!({"a": {"b": [text]}, "c": [[], {}]}),
            ] {
                let written = document(&value);
                let read = YamlLoader::load_from_str(&written).unwrap();
                assert_eq!(as_json(&read[0]), value, "{written}");
            }
        }
    }

    fn as_json(yaml: &Yaml) -> Value {
        match yaml {
            Yaml::Hash(hash) => {
                hash.iter().map(|(key, value)| (key.as_str().unwrap().to_owned(), as_json(value))).collect()
            }
            Yaml::Array(items) => items.iter().map(as_json).collect(),
            Yaml::String(text) => json!(text),
            other => panic!("{other:?}"),
        }
    }
}
