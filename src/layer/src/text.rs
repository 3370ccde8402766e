//! Values of `layer.json` that may be written in more than one way.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Content of a file: a string, or a list of lines without line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// The whole content.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lines;

        impl<'de> Visitor<'de> for Lines {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of lines")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut lines: A) -> Result<Text, A::Error> {
                let mut text = String::new();
                while let Some(line) = lines.next_element::<String>()? {
                    if line.contains('\n') {
                        return Err(de::Error::custom(format!("line {line:?} contains a line feed")));
                    }
                    text.push_str(&line);
                    text.push('\n');
                }
                Ok(Text(text))
            }
        }

        deserializer.deserialize_any(Lines)
    }
}

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Content of a file: a string, or a list of lines without line breaks.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string", "pattern": "^[^\\n]*$" } }],
        })
    }
}

/// One word, or a list of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(Vec<String>);

impl Words {
    /// The words, in their order.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Words, E> {
                Ok(Words(vec![word.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut words: A) -> Result<Words, A::Error> {
                let mut all = Vec::new();
                while let Some(word) = words.next_element::<String>()? {
                    all.push(word);
                }
                Ok(Words(all))
            }
        }

        deserializer.deserialize_any(List)
    }
}

impl JsonSchema for Words {
    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A string, or a list of strings.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
        })
    }
}

/// A string or an integer.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(untagged)]
pub enum Scalar {
    /// A number.
    Number(i64),
    /// A string.
    Text(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// Replaces comments in JSON, from `//` to the end of the line, with spaces. All positions stay the same.
pub fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut plain = text.to_vec();
    let (mut in_string, mut in_comment, mut at) = (false, false, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'\n' => (in_string, in_comment) = (false, false),
            _ if in_comment => plain[at] = b' ',
            // What follows is part of the string.
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'/' if !in_string && text.get(at + 1) == Some(&b'/') => {
                in_comment = true;
                plain[at] = b' ';
            }
            _ => {}
        }
        at += 1;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_blanks() {
        for (text, expected) in [
            ("// a\n{\"b\": 1} // c \"\r\n//", "    \n{\"b\": 1}        \n  "),
            ("{\"a//\\\"//\": \"\\\\\"} //x", "{\"a//\\\"//\": \"\\\\\"}    "),
            ("1 / 2 /", "1 / 2 /"),
            ("\"open // a\n// b", "\"open // a\n    "),
            ("\"\\", "\"\\"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8(without_comments(text.as_bytes())).unwrap(), expected);
        }
    }

    #[test]
    fn texts_are_strings_or_lines() {
        let text = |json: &str| serde_json::from_str::<Text>(json).map(|text| text.0);
        assert_eq!(text("\"a\\nb\"").unwrap(), "a\nb");
        assert_eq!(text("[\"a\", \"\", \"b\"]").unwrap(), "a\n\nb\n");
        assert_eq!(text("[]").unwrap(), "");
        assert!(text("[\"a\\nb\"]").is_err() && text("3").is_err() && text("[3]").is_err() && text("null").is_err());
    }
}
