//! The record and its fields, and the input that records come from.

use std::collections::VecDeque;
use std::rc::Rc;

use super::machine::{FILENAME, FNR, FS, Lvalue, Machine, NR, OFS, RS};
use super::value::Value;
use crate::error::ErrorKind;
use crate::eval::Run;
use crate::host::Question;

/// The record. Its fields are made when one is asked for, and its text when a field was changed.
pub(super) struct Record {
    line: Value,
    stale: bool,
    split: bool,
    pub(super) fields: Vec<Value>,
}

impl Default for Record {
    fn default() -> Self {
        Self { line: Value::Unset, stale: false, split: true, fields: Vec::new() }
    }
}

/// What is left to read.
#[derive(Default)]
pub(super) struct Input {
    /// Files, `-`, and assignments with the places of their variables.
    pub(super) operands: VecDeque<Operand>,
    content: Option<Vec<u8>>,
    at: usize,
    /// Whether an operand was a file; if none is, standard input is read.
    pub(super) named: bool,
}

pub(super) enum Operand {
    File(Vec<u8>),
    Assignment(Option<usize>, Vec<u8>),
}

/// What was found of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    More,
    End,
    /// A file cannot be read, and the program ends.
    Failed,
}

/// How a text is split.
pub(super) enum Separator {
    Blanks,
    Each,
    Byte(u8),
    Expression(Vec<u8>),
}

impl Separator {
    pub(super) fn new(text: &[u8]) -> Self {
        match text {
            b" " => Self::Blanks,
            b"" => Self::Each,
            [byte] => Self::Byte(*byte),
            _ => Self::Expression(text.to_vec()),
        }
    }
}

impl Machine<'_, '_> {
    /// Divides a text.
    pub(super) fn split(&mut self, text: &[u8], separator: &Separator) -> Run<Vec<Value>> {
        let limit = self.shell.budget.limits.fields;
        self.shell.spend(text.len().saturating_mul(2))?;
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let most = limit.saturating_add(1);
        let fields: Vec<Value> = match separator {
            Separator::Blanks => {
                let parts = text.split(|byte| matches!(byte, b' ' | b'\t' | b'\n')).filter(|field| !field.is_empty());
                parts.take(most).map(Value::input).collect()
            }
            Separator::Each => text.chunks(1).take(most).map(Value::input).collect(),
            Separator::Byte(separator) => text.split(|byte| byte == separator).take(most).map(Value::input).collect(),
            Separator::Expression(expression) => self.split_by(text, expression)?,
        };
        if fields.len() > limit {
            let limit = u64::try_from(limit).unwrap_or(u64::MAX);
            return Err(self.shell.fatal(ErrorKind::Limit { what: "fields", limit }));
        }
        self.shell.spend(fields.len().saturating_mul(16))?;
        Ok(fields)
    }

    fn split_by(&mut self, text: &[u8], expression: &[u8]) -> Run<Vec<Value>> {
        let expression = self.expression(expression)?;
        let mut fields = Vec::new();
        let (mut begin, mut at) = (0, 0);
        while at < text.len() && fields.len() <= self.shell.budget.limits.fields {
            let found = expression.find(self.shell, text, at)?;
            let Some((from, to)) = found.and_then(|places| places.first().copied().flatten()) else { break };
            if from == to {
                // What matches nothing separates nothing.
                at = from + 1;
                continue;
            }
            fields.push(Value::input(&text[begin..from]));
            (begin, at) = (to, to);
        }
        fields.push(Value::input(&text[begin..]));
        Ok(fields)
    }

    /// Makes the fields of the record, if they are not there.
    pub(super) fn split_record(&mut self) -> Run<()> {
        if self.record.split {
            return Ok(());
        }
        let line = self.record.line.clone();
        let (line, separator) = (self.text(&line)?, self.special(FS)?);
        let separator = Separator::new(&separator);
        if !matches!(separator, Separator::Blanks) && self.special(RS)?.is_empty() {
            return self.shell.unsupported(b"paragraphs of awk with a separator of fields");
        }
        self.record.fields = self.split(&line, &separator)?;
        self.record.split = true;
        Ok(())
    }

    fn set_record(&mut self, text: Rc<[u8]>) {
        self.record.line = Value::Input(text);
        (self.record.split, self.record.stale) = (false, false);
        self.record.fields.clear();
    }

    pub(super) fn field_number(&mut self, value: &Value) -> Run<usize> {
        let number = self.number(value)?;
        let integer = self.integer(number)?;
        match usize::try_from(integer) {
            Ok(number) => Ok(number),
            Err(_) => self.shell.unsupported(format!("the field ${integer} of awk").as_bytes()),
        }
    }

    pub(super) fn field(&mut self, number: usize) -> Run<Value> {
        if number > 0 {
            self.split_record()?;
            // One that is not there is an empty text to mawk, and no zero.
            return Ok(self.record.fields.get(number - 1).cloned().unwrap_or_else(|| Value::input(b"")));
        }
        if self.record.stale {
            let separator = self.special(OFS)?;
            let mut line = Vec::new();
            for at in 0..self.record.fields.len() {
                let field = self.record.fields[at].clone();
                if at > 0 {
                    line.extend(&separator[..]);
                }
                line.extend(&self.text(&field)?[..]);
                self.shell.spend_size(line.len(), separator.len() + field.len())?;
            }
            (self.record.line, self.record.stale) = (Value::Input(line.into()), false);
        }
        Ok(self.record.line.clone())
    }

    pub(super) fn set_field(&mut self, number: usize, value: Value) -> Run<()> {
        if number == 0 {
            let text = self.text(&value)?;
            self.shell.spend_size(text.len(), text.len())?;
            self.set_record(text);
            return Ok(());
        }
        self.split_record()?;
        if number > self.record.fields.len() {
            self.resize(number)?;
        }
        self.shell.spend_size(value.len(), 16)?;
        self.record.fields[number - 1] = value;
        self.record.stale = true;
        Ok(())
    }

    pub(super) fn set_field_count(&mut self, value: &Value) -> Run<()> {
        let count = self.field_number(value)?;
        self.split_record()?;
        self.resize(count)?;
        self.record.stale = true;
        Ok(())
    }

    fn resize(&mut self, count: usize) -> Run<()> {
        let limit = self.shell.budget.limits.fields;
        if count > limit {
            let limit = u64::try_from(limit).unwrap_or(u64::MAX);
            return Err(self.shell.fatal(ErrorKind::Limit { what: "fields", limit }));
        }
        self.shell.spend(count)?;
        self.record.fields.resize(count, Value::input(b""));
        Ok(())
    }

    /// Reads the next record.
    pub(super) fn next_record(&mut self) -> Run<Found> {
        loop {
            if let Some(content) = self.input.content.take() {
                let separator = self.special(RS)?;
                if separator.len() > 1 {
                    return self.shell.unsupported(b"RS of awk with more than one byte");
                }
                let found = record(&content, self.input.at, separator.first().copied());
                if let Some((from, to, next)) = found {
                    self.shell.spend(next - self.input.at + 16)?;
                    self.set_record(content[from..to].into());
                    self.input.at = next;
                    self.input.content = Some(content);
                    self.count_record()?;
                    return Ok(Found::More);
                }
            }
            let opened = self.open()?;
            if opened != Found::More {
                return Ok(opened);
            }
        }
    }

    fn count_record(&mut self) -> Run<()> {
        for place in [NR, FNR] {
            let value = self.scalars[place].clone();
            let value = self.number(&value)?;
            self.scalars[place] = Value::Number(value + 1.0);
        }
        Ok(())
    }

    /// Opens the next file.
    fn open(&mut self) -> Run<Found> {
        let path = match self.input.operands.pop_front() {
            Some(Operand::Assignment(place, value)) => {
                if let Some(place) = place {
                    self.set(&Lvalue::Variable(place), Value::input(&value))?;
                }
                return Ok(Found::More);
            }
            Some(Operand::File(path)) => path,
            None if self.input.named => return Ok(Found::End),
            None => b"-".to_vec(),
        };
        self.input.named = true;
        let content = if path == b"-" { Ok(self.shell.read_all(0)?) } else { self.shell.read_file(&path)? };
        if let Ok(text) = &content {
            self.shell.ask(Question::Value(text))?;
        }
        match content {
            Ok(content) => (self.input.content, self.input.at) = (Some(content), 0),
            Err(error) => {
                // mawk ends here, also without its END actions.
                self.flush()?;
                let why = [b"cannot open ", &path[..], b" (", error.text().as_bytes(), b")"].concat();
                super::super::complain(self.shell, "awk", &why)?;
                self.status = 2;
                return Ok(Found::Failed);
            }
        }
        self.scalars[FNR] = Value::Number(0.0);
        self.scalars[FILENAME] = Value::text(&path);
        Ok(Found::More)
    }
}

/// Where the next record begins and ends, and where the one behind it may begin. Without a separator, empty lines separate.
fn record(content: &[u8], at: usize, separator: Option<u8>) -> Option<(usize, usize, usize)> {
    let Some(separator) = separator else {
        let from = at + content[at..].iter().position(|byte| *byte != b'\n')?;
        let rest = &content[from..];
        let len = rest.windows(2).position(|pair| pair == b"\n\n").unwrap_or(rest.len());
        let next = from + len;
        let to = if next == content.len() && rest.ends_with(b"\n") { next - 1 } else { next };
        return Some((from, to, next));
    };
    let rest = content.get(at..).filter(|rest| !rest.is_empty())?;
    Some(match rest.iter().position(|byte| *byte == separator) {
        Some(len) => (at, at + len, at + len + 1),
        None => (at, content.len(), content.len()),
    })
}
