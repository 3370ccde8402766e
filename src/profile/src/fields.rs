//! Typed values of a document: the fields of a mapping are taken one by one, and remaining fields are unknown.
//!
//! A plain scalar must have the same meaning in YAML 1.1 and 1.2, and is never converted to a string: Kubernetes reads `version: 1.30` as
//! 1.3, so it must be quoted.

use saphyr_parser::ScalarStyle;
use serde_json::{Map, Number, Value};

use super::error::{Location, ProfileError};
use super::node::{At, Content, Document, Node};

/// Words that YAML 1.1 takes for truth values, and 1.2 for texts.
const OLD_TRUTHS: [&str; 4] = ["yes", "no", "on", "off"];

/// What a plain scalar means.
#[derive(Debug, PartialEq)]
enum Meaning {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text,
    /// YAML 1.1 and 1.2 differ.
    Unclear,
}

/// A text of the document, and where its first line is.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) spot: Location,
}

/// The fields of a mapping that are not taken yet.
pub(super) struct Fields<'a> {
    document: &'a Document,
    at: At,
    left: Vec<&'a (String, At, Node)>,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(document: &'a Document, node: &'a Node) -> Result<Self, ProfileError> {
        match &node.content {
            Content::Map(entries) => {
                Ok(Self { document, at: node.at, left: entries.iter().collect(), known: Vec::new() })
            }
            _ => Err(wrong(document, node, "a mapping")),
        }
    }

    /// Where the mapping begins.
    pub(super) fn spot(&self) -> Location {
        self.document.spot(self.at)
    }

    /// The value of a field; none if it is null, as Kubernetes has it.
    pub(super) fn take(&mut self, name: &'static str) -> Option<&'a Node> {
        self.known.push(name);
        let at = self.left.iter().position(|(key, ..)| key == name)?;
        let (.., node) = self.left.remove(at);
        (!is_null(node)).then_some(node)
    }

    /// The value of a field that must be there.
    pub(super) fn need(&mut self, name: &'static str) -> Result<&'a Node, ProfileError> {
        self.take(name).ok_or_else(|| ProfileError::MissingField { spot: self.spot(), field: name })
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Words, ProfileError> {
        let node = self.need(name)?;
        words(self.document, node)
    }

    /// A text that may be there.
    pub(super) fn text_or_none(&mut self, name: &'static str) -> Result<Option<Words>, ProfileError> {
        self.take(name).map(|node| words(self.document, node)).transpose()
    }

    /// The fields of a mapping in it.
    pub(super) fn inside(&mut self, name: &'static str) -> Result<Self, ProfileError> {
        let node = self.need(name)?;
        Self::new(self.document, node)
    }

    /// The fields of a mapping in it; none if there is none.
    pub(super) fn inside_or_none(&mut self, name: &'static str) -> Result<Option<Self>, ProfileError> {
        let document = self.document;
        self.take(name).map(|node| Self::new(document, node)).transpose()
    }

    /// The items of a list, each read by `read`; none if there is no list.
    pub(super) fn list<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&'a Document, &'a Node) -> Result<T, ProfileError>,
    ) -> Result<Vec<T>, ProfileError> {
        let Some(node) = self.take(name) else { return Ok(Vec::new()) };
        match &node.content {
            Content::List(items) => items.iter().map(|item| read(self.document, item)).collect(),
            _ => Err(wrong(self.document, node, "a list")),
        }
    }

    /// Whether a field is true; false if there is none.
    pub(super) fn is_true(&mut self, name: &'static str) -> Result<bool, ProfileError> {
        self.take(name).map_or(Ok(false), |node| truth(self.document, node))
    }

    /// Whatever a field holds, as JSON.
    pub(super) fn json(&mut self, name: &'static str) -> Result<Option<Value>, ProfileError> {
        self.take(name).map(|node| json(self.document, node)).transpose()
    }

    /// Names with texts; none if there is no mapping.
    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<(String, Words)>, ProfileError> {
        let Some(node) = self.take(name) else { return Ok(Vec::new()) };
        let Content::Map(entries) = &node.content else { return Err(wrong(self.document, node, "a mapping")) };
        entries.iter().map(|(key, _, node)| Ok((key.clone(), words(self.document, node)?))).collect()
    }

    /// Takes fields that mean nothing here.
    pub(super) fn pass_over(&mut self, names: &[&'static str]) {
        for name in names {
            self.take(name);
        }
    }

    /// Refuses what was not taken.
    pub(super) fn finish(self) -> Result<(), ProfileError> {
        match self.left.first() {
            None => Ok(()),
            Some((field, at, _)) => Err(ProfileError::UnknownField {
                spot: self.document.spot(*at),
                field: field.clone(),
                known: self.known,
            }),
        }
    }
}

/// A text.
pub(super) fn words(document: &Document, node: &Node) -> Result<Words, ProfileError> {
    match &node.content {
        Content::Scalar { text, style } => {
            if *style == ScalarStyle::Plain && meaning(text) != Meaning::Text {
                return Err(wrong(document, node, "a string: put the value in quotes"));
            }
            let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
            let mut spot = document.spot(node.at);
            if is_block {
                // A block is where its first line is that is not empty.
                let above = text.len().saturating_sub(text.trim_start_matches('\n').len());
                spot = Location { line: spot.line.saturating_sub(above), column: 1, ..spot };
            }
            Ok(Words { text: text.clone(), spot })
        }
        _ => Err(wrong(document, node, "a text")),
    }
}

/// A truth value.
pub(super) fn truth(document: &Document, node: &Node) -> Result<bool, ProfileError> {
    match plain(node) {
        Some(Meaning::Bool(truth)) => Ok(truth),
        _ => Err(wrong(document, node, "true or false")),
    }
}

/// A whole number.
pub(super) fn integer(document: &Document, node: &Node) -> Result<i64, ProfileError> {
    match plain(node) {
        Some(Meaning::Integer(number)) => Ok(number),
        _ => Err(wrong(document, node, "a whole number without leading zeros")),
    }
}

/// Whatever it is, as JSON.
fn json(document: &Document, node: &Node) -> Result<Value, ProfileError> {
    Ok(match &node.content {
        Content::List(items) => items.iter().map(|item| json(document, item)).collect::<Result<_, _>>()?,
        Content::Map(entries) => {
            let pairs = entries.iter().map(|(key, _, node)| Ok((key.clone(), json(document, node)?)));
            Value::Object(pairs.collect::<Result<Map<_, _>, ProfileError>>()?)
        }
        Content::Scalar { text, style } if *style == ScalarStyle::Plain => match meaning(text) {
            Meaning::Null => Value::Null,
            Meaning::Bool(truth) => Value::Bool(truth),
            Meaning::Integer(number) => Value::from(number),
            Meaning::Float(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
            Meaning::Text => Value::String(text.clone()),
            Meaning::Unclear => {
                return Err(wrong(
                    document,
                    node,
                    "a value with the same meaning in YAML 1.1 and 1.2: put it in quotes",
                ));
            }
        },
        Content::Scalar { text, .. } => Value::String(text.clone()),
    })
}

/// A value that is something else than what is expected.
pub(super) fn wrong(document: &Document, node: &Node, expected: &str) -> ProfileError {
    let found = match &node.content {
        Content::List(_) => "a list".to_owned(),
        Content::Map(_) => "a mapping".to_owned(),
        Content::Scalar { text, .. } => shown(text),
    };
    ProfileError::value(document.spot(node.at), expected, found)
}

/// A text as a message has it: not more than a line.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        _ if text.is_empty() => "nothing".to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn is_null(node: &Node) -> bool {
    plain(node) == Some(Meaning::Null)
}

fn plain(node: &Node) -> Option<Meaning> {
    match &node.content {
        Content::Scalar { text, style: ScalarStyle::Plain } => Some(meaning(text)),
        _ => None,
    }
}

fn meaning(text: &str) -> Meaning {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "" | "~" | "null" => return Meaning::Null,
        "true" => return Meaning::Bool(true),
        "false" => return Meaning::Bool(false),
        word if OLD_TRUTHS.contains(&word) => return Meaning::Unclear,
        _ => {}
    }
    let digits = lower.trim_start_matches(['+', '-']);
    if !digits.starts_with(|char: char| char.is_ascii_digit() || char == '.') {
        return Meaning::Text;
    }
    let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
    match (is_decimal, lower.parse::<i64>(), lower.parse::<f64>()) {
        (true, ..) if digits.len() > 1 && digits.starts_with('0') => Meaning::Unclear,
        (true, Ok(number), _) => Meaning::Integer(number),
        (false, _, Ok(number)) if number.is_finite() => Meaning::Float(number),
        (_, _, Ok(_)) => Meaning::Unclear,
        // 0x1f, 0o17, 1_000, 12:30:45, 2026-01-01: numbers and times to one of them.
        _ if looks_typed(digits) => Meaning::Unclear,
        _ => Meaning::Text,
    }
}

/// Whether a plain scalar that begins with a digit could be a number or a time of YAML 1.1.
fn looks_typed(text: &str) -> bool {
    let is_based = text.starts_with("0x") || text.starts_with("0o") || text.starts_with("0b");
    let is_numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b"_:.-+tz ".contains(&byte));
    // An address such as 10.0.0.1 is a text to both.
    let dots = text.bytes().filter(|byte| *byte == b'.').count();
    is_based || (is_numeric && (dots < 2 || text.contains([':', '_'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_all_readers_make_of_them() {
        for (text, expected) in [
            ("", Meaning::Null),
            ("~", Meaning::Null),
            ("Null", Meaning::Null),
            ("true", Meaning::Bool(true)),
            ("FALSE", Meaning::Bool(false)),
            ("on", Meaning::Unclear),
            ("No", Meaning::Unclear),
            ("644", Meaning::Integer(644)),
            ("-1", Meaning::Integer(-1)),
            ("0644", Meaning::Unclear),
            ("0o644", Meaning::Unclear),
            ("0x1f", Meaning::Unclear),
            ("1_000", Meaning::Unclear),
            ("12:30:45", Meaning::Unclear),
            ("2026-01-01", Meaning::Unclear),
            ("1.30", Meaning::Float(1.3)),
            ("1e3", Meaning::Float(1000.0)),
            (".5", Meaning::Float(0.5)),
            ("1e999", Meaning::Unclear),
            ("99999999999999999999", Meaning::Unclear),
            ("1.31.0", Meaning::Text),
            ("10.0.0.1", Meaning::Text),
            ("eu-central-1b", Meaning::Text),
            ("v1.31.0", Meaning::Text),
            ("3 apples", Meaning::Text),
        ] {
            assert_eq!(meaning(text), expected, "{text:?}");
        }
    }
}
