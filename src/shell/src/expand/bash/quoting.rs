//! `${x@Q}` and similar operators, and the quoting of `declare -p` and `printf %q`.

use super::{Index, Subject, Value};
use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;
use crate::state::Variable;
use crate::syntax::words::is_name;
use crate::variables::Array;

/// Text in single quotes: what bash prints of a value where it is assigned.
pub(crate) fn single(text: &[u8]) -> Vec<u8> {
    if needs_escapes(text) {
        return escaped(text);
    }
    if text == b"'" {
        return b"\\'".to_vec();
    }
    let mut out = vec![b'\''];
    for byte in text {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
    out
}

/// Text in double quotes.
pub(crate) fn double(text: &[u8]) -> Vec<u8> {
    if needs_escapes(text) {
        return escaped(text);
    }
    let mut out = vec![b'"'];
    for byte in text {
        if b"\"$`\\".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
    out
}

/// Text with backslashes: `printf %q`.
pub(crate) fn backslashed(text: &[u8]) -> Vec<u8> {
    if text.is_empty() {
        return b"''".to_vec();
    }
    if needs_escapes(text) {
        return escaped(text);
    }
    let mut out = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        let special = match byte {
            b'#' => at == 0,
            b'~' => at == 0 || matches!(text[at - 1], b':' | b'='),
            byte => b" \t\n'\"\\|&;()<>!{}*[]?^$`,".contains(byte),
        };
        if special {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}

/// Whether a text has bytes that only `$'…'` shows.
fn needs_escapes(text: &[u8]) -> bool {
    text.iter().any(|byte| !(0x20..0x7f).contains(byte))
}

fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = b"$'".to_vec();
    for byte in text {
        match byte {
            0x1b => out.extend_from_slice(b"\\E"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x0b => out.extend_from_slice(b"\\v"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\'' => out.extend_from_slice(b"\\'"),
            0x20..0x7f => out.push(*byte),
            byte => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
        }
    }
    out.push(b'\'');
    out
}

/// The letters of a variable's attributes, in the order of bash.
pub(crate) fn attribute_letters(variable: &Variable) -> Vec<u8> {
    let attributes = &variable.attributes;
    let letters = [
        (matches!(variable.array.as_deref(), Some(Array::Indexed(_))), b'a'),
        (matches!(variable.array.as_deref(), Some(Array::Associative(_))), b'A'),
        (attributes.integer, b'i'),
        (attributes.nameref, b'n'),
        (variable.readonly, b'r'),
        (attributes.trace, b't'),
        (variable.exported, b'x'),
        (attributes.lower, b'l'),
        (attributes.upper, b'u'),
    ];
    letters.into_iter().filter_map(|(set, letter)| set.then_some(letter)).collect()
}

/// A key in the brackets of a compound value.
pub(crate) fn key(text: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| !b" \t\n'\"\\|&;()<>!{}*[]?^$`@".contains(byte);
    if needs_escapes(text) {
        escaped(text)
    } else if !text.is_empty() && text.iter().all(plain) && !text.starts_with(b"#") && !text.starts_with(b"~") {
        text.to_vec()
    } else {
        double(text)
    }
}

impl Shell<'_> {
    /// `(…)` as `declare -p` prints an array.
    pub(crate) fn compound_text(&mut self, name: &[u8]) -> Run<Vec<u8>> {
        let associative = self.is_associative(name);
        let mut out = vec![b'('];
        for (at, (found, value)) in self.elements(name)?.iter().enumerate() {
            self.ask(Question::Value(value))?;
            self.ask(Question::Value(&found.text()))?;
            if at > 0 && !associative {
                out.push(b' ');
            }
            let found = if associative { key(&found.text()) } else { found.text() };
            out.extend([&b"["[..], &found, b"]=", &double(value)].concat());
            if associative {
                out.push(b' ');
            }
            self.spend_size(out.len(), value.len())?;
        }
        out.push(b')');
        Ok(out)
    }

    pub(super) fn transform(&mut self, subject: &Subject, value: Value, letter: u8) -> Run<Value> {
        match letter {
            b'A' => return self.assignment_text(subject, &value),
            b'a' => {
                let letters = self.state.variable(&subject.name).map(attribute_letters);
                return Ok(match value {
                    Value::Unset if letters.is_none() => Value::Unset,
                    Value::All(values, star) => Value::All(vec![letters.unwrap_or_default(); values.len()], star),
                    _ => Value::One(letters.unwrap_or_default()),
                });
            }
            b'K' | b'k' if matches!(subject.index, Index::All { .. }) => return self.pairs(subject, letter == b'k'),
            _ => {}
        }
        let mut change = |text: &[u8]| -> Run<Vec<u8>> {
            self.spend(text.len())?;
            Ok(match letter {
                b'Q' | b'K' | b'k' => single(text),
                b'U' | b'u' | b'L' => {
                    self.ascii_only(text)?;
                    match (letter, text.split_first()) {
                        (b'U', _) => text.to_ascii_uppercase(),
                        (b'L', _) => text.to_ascii_lowercase(),
                        (_, Some((first, rest))) => [&[first.to_ascii_uppercase()][..], rest].concat(),
                        (_, None) => Vec::new(),
                    }
                }
                letter => return self.unsupported(&[b"${x@", &[letter][..], b"}"].concat()),
            })
        };
        Ok(match value {
            Value::Unset => Value::Unset,
            Value::One(text) => Value::One(change(&text)?),
            Value::All(values, star) => {
                Value::All(values.iter().map(|text| change(text)).collect::<Run<Vec<_>>>()?, star)
            }
        })
    }

    /// `${x@A}`
    fn assignment_text(&mut self, subject: &Subject, value: &Value) -> Run<Value> {
        let name = &subject.name;
        if !is_name(name) {
            return self.unsupported(b"${@@A}");
        }
        let Some(variable) = self.state.variable(name).cloned() else { return Ok(Value::Unset) };
        let letters = attribute_letters(&variable);
        let prefix = if letters.is_empty() { Vec::new() } else { [&b"declare -"[..], &letters, b" "].concat() };
        let text = match value {
            Value::Unset => return self.unsupported(b"${x@A} of a variable without a value"),
            Value::All(..) if variable.array.is_some() => {
                let compound = self.compound_text(name)?;
                [&prefix[..], name, b"=", &compound].concat()
            }
            Value::All(values, _) => [&prefix[..], name, b"=", &single(&values.concat())].concat(),
            Value::One(text) => [&prefix[..], name, b"=", &single(text)].concat(),
        };
        Ok(Value::One(text))
    }

    /// `${x[@]@K}` and `${x[@]@k}`
    fn pairs(&mut self, subject: &Subject, separate: bool) -> Run<Value> {
        let star = matches!(subject.index, Index::All { star: true });
        let elements = self.elements(&subject.name)?;
        if separate {
            let values = elements.iter().flat_map(|(found, value)| [found.text(), value.to_vec()]).collect();
            return Ok(Value::All(values, star));
        }
        let associative = self.is_associative(&subject.name);
        let mut out = Vec::new();
        for (at, (found, value)) in elements.iter().enumerate() {
            if at > 0 && !associative {
                out.push(b' ');
            }
            let found = if associative { key(&found.text()) } else { found.text() };
            out.extend([&found[..], b" ", &double(value)].concat());
            if associative {
                out.push(b' ');
            }
        }
        Ok(Value::One(out))
    }
}
