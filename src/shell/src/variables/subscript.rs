//! Subscripts: resolve the text to an element of an array.

use crate::eval::{Run, Stop};
use crate::shell::Shell;
use crate::syntax::words::is_name;

/// The place of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Index(u64),
    Text(Vec<u8>),
}

impl Key {
    pub(super) fn len(&self) -> usize {
        if let Self::Text(key) = self { key.len() } else { 0 }
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        match self {
            Self::Index(index) => index.to_string().into_bytes(),
            Self::Text(key) => key.clone(),
        }
    }
}

/// `name` or `name[subscript]`, divided.
pub(crate) fn divide_reference(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let Some(at) = text.iter().position(|byte| *byte == b'[') else { return is_name(text).then_some((text, None)) };
    let subscript = text[at + 1..].strip_suffix(b"]")?;
    (is_name(&text[..at]) && !subscript.is_empty()).then_some((&text[..at], Some(subscript)))
}

impl Shell<'_> {
    /// The key of an element that is assigned to; `None` for a wrong one, which is reported.
    pub(crate) fn key(&mut self, name: &[u8], subscript: &[u8]) -> Run<Option<Key>> {
        let key = if self.is_associative(name) {
            (!subscript.is_empty()).then(|| Key::Text(subscript.to_vec()))
        } else if matches!(subscript, b"@" | b"*") {
            None
        } else {
            self.index(name, subscript, true)?.map(Key::Index)
        };
        if key.is_none() {
            self.report(&[name, b"[", subscript, b"]: bad array subscript"].concat())?;
        }
        Ok(key)
    }

    /// The key of an element that is read; a wrong one is reported and names nothing.
    pub(crate) fn reading_key(&mut self, name: &[u8], subscript: &[u8]) -> Run<Option<Key>> {
        let key = match self.is_associative(name) {
            true => (!subscript.is_empty()).then(|| Key::Text(subscript.to_vec())),
            false => self.index(name, subscript, false)?.map(Key::Index),
        };
        if key.is_none() {
            self.report(&[name, b": bad array subscript"].concat())?;
        }
        Ok(key)
    }

    /// An index; a negative one counts from the end, which only an array has until it is assigned to.
    fn index(&mut self, name: &[u8], subscript: &[u8], assigns: bool) -> Run<Option<u64>> {
        let value = self.evaluate(subscript).map_err(Stop::through_texts)?;
        if let Ok(index) = u64::try_from(value) {
            return Ok(Some(index));
        }
        let end = match self.state.variables.get(name) {
            Some(found) if found.array.is_none() => u64::from(assigns && found.value.is_some()),
            _ => self.end(name),
        };
        Ok(end.checked_sub(value.unsigned_abs()))
    }

    /// The subscript of a reference that a builtin or `${!x}` is given as text: bash would expand it once more.
    pub(crate) fn given_subscript(&mut self, subscript: &[u8]) -> Run<Vec<u8>> {
        if subscript.iter().any(|byte| b"$`\\'\"".contains(byte)) {
            return self.unsupported(&[b"the subscript ", subscript].concat());
        }
        Ok(subscript.to_vec())
    }
}
