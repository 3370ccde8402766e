//! `${x:offset:length}` of text, positional parameters and arrays.

use super::{Index, Subject, Value};
use crate::eval::Run;
use crate::expand::{Mode, Tilde, bytes};
use crate::shell::Shell;
use crate::syntax::Part;
use crate::variables::Key;

impl Shell<'_> {
    pub(super) fn slice(
        &mut self,
        subject: &Subject,
        value: Value,
        offset: &[Part],
        length: Option<&[Part]>,
    ) -> Run<Value> {
        if matches!(value, Value::Unset) {
            return Ok(Value::Unset);
        }
        let offset = self.number(offset)?;
        let length = length.map(|length| self.number(length)).transpose()?;
        let is_list = matches!(value, Value::All(_, false));
        match self.text_of_scalar(subject, value) {
            Value::One(text) => {
                self.ascii_only(&text)?;
                match self.substring(text, offset, length)? {
                    None if is_list => Ok(Value::All(Vec::new(), false)),
                    part => Ok(part.map_or(Value::Unset, Value::One)),
                }
            }
            Value::All(values, star) => {
                let indexed = self.indexed(subject, values)?;
                let end = indexed.last().map_or(0, |(at, _)| at.saturating_add(1));
                self.items(indexed, end, offset, length).map(|values| Value::All(values, star))
            }
            Value::Unset => Ok(Value::Unset),
        }
    }

    /// All elements of what is not an array are its text.
    fn text_of_scalar(&self, subject: &Subject, value: Value) -> Value {
        let is_scalar = || self.state.variable(&subject.name).is_some_and(|found| found.array.is_none());
        match value {
            Value::All(mut values, _) if values.len() == 1 && subject.index != Index::None && is_scalar() => {
                Value::One(values.pop().unwrap_or_default())
            }
            value => value,
        }
    }

    fn number(&mut self, parts: &[Part]) -> Run<i64> {
        let text = bytes(&self.units(parts, Mode::QUOTED, Tilde::None)?);
        self.evaluate(&text)
    }

    /// A part of a text; nothing if its start is outside.
    fn substring(&mut self, text: Vec<u8>, offset: i64, length: Option<i64>) -> Run<Option<Vec<u8>>> {
        let len = i64::try_from(text.len()).unwrap_or(i64::MAX);
        let start = if offset < 0 { len.saturating_add(offset) } else { offset };
        if !(0..=len).contains(&start) {
            return Ok(None);
        }
        let end = match length {
            None => len,
            Some(length) if length < 0 => len.saturating_add(length),
            Some(length) => start.saturating_add(length).min(len),
        };
        if end < start {
            return Err(self.discard(b"substring expression < 0"));
        }
        let place = |at: i64| usize::try_from(at).unwrap_or_default();
        Ok(Some(text.get(place(start)..place(end)).unwrap_or_default().to_vec()))
    }

    /// Values with the numbers by which a slice counts.
    fn indexed(&mut self, subject: &Subject, values: Vec<Vec<u8>>) -> Run<Vec<(u64, Vec<u8>)>> {
        if subject.index == Index::None {
            let zero = self.state.zero.to_vec();
            return Ok((0..).zip(std::iter::once(zero).chain(values)).collect());
        }
        if self.is_associative(&subject.name) {
            return self.unsupported(b"a slice of an associative array");
        }
        if self.state.variable(&subject.name).is_some_and(|found| found.array.is_none()) {
            return self.unsupported(b"a slice of what is not an array");
        }
        let elements = self.elements(&subject.name)?;
        let number = |key: Key| if let Key::Index(index) = key { index } else { 0 };
        Ok(elements.into_iter().map(|(key, value)| (number(key), value.to_vec())).collect())
    }

    fn items(&mut self, items: Vec<(u64, Vec<u8>)>, end: u64, offset: i64, length: Option<i64>) -> Run<Vec<Vec<u8>>> {
        if length.is_some_and(|length| length < 0) {
            return Err(self.discard(b"substring expression < 0"));
        }
        let start = if offset < 0 { end.checked_sub(offset.unsigned_abs()) } else { Some(offset.unsigned_abs()) };
        let Some(start) = start else { return Ok(Vec::new()) };
        let count = length.map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(usize::MAX));
        Ok(items.into_iter().filter(|(at, _)| *at >= start).take(count).map(|(_, value)| value).collect())
    }
}
