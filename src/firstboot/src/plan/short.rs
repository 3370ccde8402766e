//! Assignments and arguments, which may be written as a string instead of an object in JSON.

use std::fmt;

use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::is_false;

/// A name and the template of its value. In JSON a text `"NAME"` is short for `{"name": "NAME", "value": "{{ NAME }}"}`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(deny_unknown_fields, transform = or_text))]
pub struct Assignment {
    /// Name of the variable.
    pub name: String,
    /// Template of its value.
    pub value: String,
    /// Condition; if it does not hold, the variable is kept or omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Whether to omit quotes in a file if its value has only letters, digits and underscores.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bare: bool,
}

/// The template of one argument. In JSON a text is short for `{"value": text}`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(deny_unknown_fields, transform = or_text))]
pub struct Argument {
    /// Template of the argument.
    pub value: String,
    /// Condition; if it does not hold, the argument is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// JSON representation of [`Assignment`] and [`Argument`].
enum Form {
    Short(String),
    Long(Long),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Long {
    name: Option<String>,
    value: String,
    when: Option<String>,
    bare: Option<bool>,
}

/// Reads a text or a map: serde's untagged enums would lose the position of an error in the map.
struct ShortOrLong {
    expected: &'static str,
    /// Whether it has a name.
    named: bool,
}

impl<'de> Visitor<'de> for ShortOrLong {
    type Value = Form;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Form, E> {
        Ok(Form::Short(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Form, A::Error> {
        let long = Long::deserialize(MapAccessDeserializer::new(map))?;
        // Reported here, so that the error has the position of the map.
        match (&long.name, self.named) {
            (None, true) => Err(de::Error::missing_field("name")),
            (Some(_), false) => Err(de::Error::unknown_field("name", &["value", "when"])),
            _ if long.bare.is_some() && !self.named => Err(de::Error::unknown_field("bare", &["value", "when"])),
            _ => Ok(Form::Long(long)),
        }
    }
}

impl<'de> Deserialize<'de> for Assignment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = ShortOrLong { expected: "the name of a variable, or a name and a value", named: true };
        Ok(match deserializer.deserialize_any(form)? {
            Form::Short(name) => Self { value: format!("{{{{ {name} }}}}"), name, when: None, bare: false },
            Form::Long(Long { name, value, when, bare }) => {
                Self { name: name.unwrap_or_default(), value, when, bare: bare.unwrap_or_default() }
            }
        })
    }
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = ShortOrLong { expected: "an argument, or a value and its condition", named: false };
        Ok(match deserializer.deserialize_any(form)? {
            Form::Short(value) => Self { value, when: None },
            Form::Long(Long { value, when, .. }) => Self { value, when },
        })
    }
}

/// Adds the short form, a text, to the schema of the long one.
#[cfg(feature = "schema")]
fn or_text(schema: &mut schemars::Schema) {
    let long = std::mem::take(schema);
    *schema = schemars::json_schema!({"anyOf": [{"type": "string"}, long]});
}
