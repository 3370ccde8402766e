//! Parses templates files (debconf-devel(7)): stanzas of fields. A field may have an extended text in indented lines, which are joined to
//! paragraphs; lines with additional indentation are kept, and a single dot separates paragraphs.

use std::collections::BTreeMap;

use super::record::Text;
use vmbake_common::hint::Hint;

/// Largest file of templates: the largest of Debian, with 60 languages, have 1 MB.
pub(in crate::merge) const MAX_TEMPLATES: usize = 8 << 20;

/// Templates of one file at most: Debian's have 150.
const MAX_STANZAS: usize = 5_000;

/// Fields of one template at most: four for each of Debian's languages are 300.
const MAX_FIELDS: usize = 2_000;

/// Why a file of templates is none. The stanzas are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    #[error("stanza {stanza}: line {line:?} is neither a field nor a continuation line")]
    Line { stanza: usize, line: String },
    #[error("stanza {stanza}: duplicate field {field}: separate templates by an empty line")]
    Twice { stanza: usize, field: String },
    #[error("stanza {stanza}: missing field {field}")]
    Missing { stanza: usize, field: &'static str },
    #[error("has more than {limit} {what}")]
    TooLarge {
        /// Of what there is too much.
        what: &'static str,
        limit: usize,
    },
}

impl Hint for TemplateFault {}

/// A template: what a package says of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) name: Text,
    pub(super) kind: Text,
    /// All fields but the name, by names in lower case; extended texts under names of their own.
    pub(super) fields: BTreeMap<Text, Text>,
}

/// Reads a file of templates as debconf does, which takes exactly one empty line for the end of a stanza.
pub(super) fn parse(text: &[u8]) -> Result<Vec<Template>, TemplateFault> {
    let too_large = |what, limit| Err(TemplateFault::TooLarge { what, limit });
    if text.len() > MAX_TEMPLATES {
        return too_large("bytes", MAX_TEMPLATES);
    }
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.windows(2).position(|pair| pair == b"\n\n").map_or(rest.len(), |at| at + 2);
        let (stanza, after) = rest.split_at(end);
        if found.len() == MAX_STANZAS {
            return too_large("templates", MAX_STANZAS);
        }
        found.push(template(stanza, found.len() + 1)?);
        rest = after;
    }
    Ok(found)
}

fn template(text: &[u8], stanza: usize) -> Result<Template, TemplateFault> {
    let mut reading =
        Reading { stanza, fields: BTreeMap::new(), name: Vec::new(), value: Vec::new(), more: Vec::new() };
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        reading.line(line)?;
    }
    reading.end()?;
    let mut fields = reading.fields;
    let name = fields.remove(&b"template"[..]).filter(|name| !name.is_empty());
    let name = name.ok_or(TemplateFault::Missing { stanza, field: "Template" })?;
    let kind = fields.get(&b"type"[..]).filter(|kind| !kind.is_empty()).cloned();
    let kind = kind.ok_or(TemplateFault::Missing { stanza, field: "Type" })?;
    Ok(Template { name, kind, fields })
}

/// A stanza as far as it is read: its finished fields, and the last one.
struct Reading {
    stanza: usize,
    fields: BTreeMap<Text, Text>,
    name: Text,
    value: Text,
    more: Text,
}

impl Reading {
    fn line(&mut self, line: &[u8]) -> Result<(), TemplateFault> {
        if let Some((name, value)) = field(line) {
            self.end()?;
            self.name = name.to_ascii_lowercase();
            self.value = value.trim_ascii_end().to_vec();
            return Ok(());
        }
        let stanza = self.stanza;
        let Some(text) = line.split_first().filter(|(first, _)| first.is_ascii_whitespace()).map(|(_, text)| text)
        else {
            return Err(TemplateFault::Line { stanza, line: String::from_utf8_lossy(line).into_owned() });
        };
        let begins = self.more.last().is_none_or(|last| matches!(last, b'\n' | b' '));
        if text == b"." {
            self.more.extend_from_slice(b"\n\n");
            return Ok(());
        }
        let keeps_line = text.first().is_some_and(u8::is_ascii_whitespace);
        if !begins {
            self.more.push(if keeps_line { b'\n' } else { b' ' });
        }
        self.more.extend_from_slice(text.trim_ascii_end());
        if keeps_line {
            self.more.push(b'\n');
        }
        Ok(())
    }

    /// Keeps the field that was read last.
    fn end(&mut self) -> Result<(), TemplateFault> {
        let (name, value) = (std::mem::take(&mut self.name), std::mem::take(&mut self.value));
        let mut more = std::mem::take(&mut self.more);
        if name.is_empty() {
            return Ok(());
        }
        let stanza = self.stanza;
        if self.fields.contains_key(&name) {
            return Err(TemplateFault::Twice { stanza, field: String::from_utf8_lossy(&name).into_owned() });
        }
        if self.fields.len() >= MAX_FIELDS {
            return Err(TemplateFault::TooLarge { what: "fields in one template", limit: MAX_FIELDS });
        }
        while more.last() == Some(&b'\n') {
            more.pop();
        }
        if !more.is_empty() {
            self.fields.insert([&b"extended_"[..], &name].concat(), more);
        }
        self.fields.insert(name, value);
        Ok(())
    }
}

/// Name and value of a line that is a field.
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|byte| *byte == b':')?;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_@.".contains(byte);
    let value = &line[at + 1..];
    let value = if value.first().is_some_and(u8::is_ascii_whitespace) { &value[1..] } else { value };
    line[..at].iter().all(plain).then_some((&line[..at], value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_joined_to_paragraphs() {
        let text = "Template: a/b\nType: select\nChoices: x, y  \nDescription: Short\n one\n two  \n .\n  line 1\n  line 2\n end\n\
            Description-pt_BR.UTF-8: Curto\n um\n\n\nTemplate: c\nType: note";
        let found = parse(text.as_bytes()).unwrap();
        let field = |name: &str| String::from_utf8(found[0].fields[name.as_bytes()].clone()).unwrap();
        assert_eq!(
            (field("type"), field("choices"), field("description")),
            ("select".into(), "x, y".into(), "Short".into())
        );
        assert_eq!(field("extended_description"), "one two\n\n line 1\n line 2\nend");
        assert_eq!(field("extended_description-pt_br.utf-8"), "um");
        assert_eq!((found.len(), found[1].name.as_slice(), found[1].kind.as_slice()), (2, &b"c"[..], &b"note"[..]));
    }

    #[test]
    fn what_is_no_template_is_refused() {
        let line = |line: &str| TemplateFault::Line { stanza: 1, line: line.to_owned() };
        let missing = |stanza, field| TemplateFault::Missing { stanza, field };
        for (text, expected) in [
            ("# x\nTemplate: a\n", line("# x")),
            ("\u{0}\u{ff}", line("\u{0}\u{ff}")),
            ("Type: note\n", missing(1, "Template")),
            ("Template: a\n", missing(1, "Type")),
            ("Template: a\nType: note\n\n\n\n", missing(2, "Template")),
            (
                "Template: a\nType: note\nTemplate: b\n",
                TemplateFault::Twice { stanza: 1, field: "template".to_owned() },
            ),
            (&"x".repeat(MAX_TEMPLATES + 1), TemplateFault::TooLarge { what: "bytes", limit: MAX_TEMPLATES }),
            (
                &"Template: a\nType: note\n\n".repeat(MAX_STANZAS + 1),
                TemplateFault::TooLarge { what: "templates", limit: MAX_STANZAS },
            ),
            (
                &(0..=MAX_FIELDS).map(|number| format!("x{number}:\n")).collect::<String>(),
                TemplateFault::TooLarge { what: "fields in one template", limit: MAX_FIELDS },
            ),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(expected));
        }
    }
}
