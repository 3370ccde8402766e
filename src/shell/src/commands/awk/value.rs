//! Values: conversions between strings and numbers, and comparison.

use std::cmp::Ordering;
use std::rc::Rc;

use super::machine::{CONVFMT, Machine, OFMT};
use super::number;
use super::syntax::Comparison;
use crate::eval::Run;

#[derive(Debug, Clone)]
pub(super) enum Value {
    /// Of a variable that nothing was assigned to: zero and empty.
    Unset,
    Number(f64),
    Text(Rc<[u8]>),
    /// From the input: compared as a number if it looks like one.
    Input(Rc<[u8]>),
}

impl Value {
    pub(super) fn text(text: &[u8]) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn input(text: &[u8]) -> Self {
        Self::Input(text.into())
    }

    pub(super) fn truth(truth: bool) -> Self {
        Self::Number(f64::from(u8::from(truth)))
    }

    /// Bytes that it takes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Unset | Self::Number(_) => 8,
            Self::Text(text) | Self::Input(text) => text.len(),
        }
    }
}

impl Machine<'_, '_> {
    pub(super) fn number(&mut self, value: &Value) -> Run<f64> {
        match value {
            Value::Unset => Ok(0.0),
            Value::Number(value) => Ok(*value),
            Value::Text(text) | Value::Input(text) => {
                self.shell.spend(text.len())?;
                match number::value(text) {
                    Some(value) => Ok(value),
                    None => self.shell.unsupported(&[b"as a number in awk: ", &text[..]].concat()),
                }
            }
        }
    }

    pub(super) fn text(&mut self, value: &Value) -> Run<Rc<[u8]>> {
        self.text_by(value, CONVFMT)
    }

    /// As `print` writes it.
    pub(super) fn printed(&mut self, value: &Value) -> Run<Rc<[u8]>> {
        self.text_by(value, OFMT)
    }

    fn text_by(&mut self, value: &Value, format: usize) -> Run<Rc<[u8]>> {
        match value {
            Value::Unset => Ok((&b""[..]).into()),
            Value::Text(text) | Value::Input(text) => Ok(text.clone()),
            Value::Number(value) if value.fract() == 0.0 => Ok(self.integer(*value)?.to_string().into_bytes().into()),
            Value::Number(value) => {
                let format = match &self.scalars[format] {
                    Value::Text(format) | Value::Input(format) => format.clone(),
                    _ => return self.shell.unsupported(b"CONVFMT or OFMT of awk"),
                };
                Ok(self.convert_number(&format, *value)?.into())
            }
        }
    }

    /// The integer next to a number, towards zero.
    pub(super) fn integer(&mut self, value: f64) -> Run<i64> {
        match number::integer(value) {
            Some(value) => Ok(value),
            None => self.shell.unsupported(format!("the integer {value} in awk").as_bytes()),
        }
    }

    pub(super) fn is_true(&mut self, value: &Value) -> Run<bool> {
        Ok(match value {
            Value::Unset => false,
            Value::Number(value) => *value != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::Input(text) => match self.numeric(value)? {
                Some(value) => value != 0.0,
                None => !text.is_empty(),
            },
        })
    }

    /// The number that a value is, if it is compared as one.
    pub(super) fn numeric(&mut self, value: &Value) -> Run<Option<f64>> {
        match value {
            Value::Unset => Ok(Some(0.0)),
            Value::Number(value) => Ok(Some(*value)),
            Value::Text(_) => Ok(None),
            Value::Input(text) => {
                self.shell.spend(text.len())?;
                match number::numeric(text) {
                    Ok(value) => Ok(value),
                    Err(()) => self.shell.unsupported(&[b"as a number in awk: ", &text[..]].concat()),
                }
            }
        }
    }

    pub(super) fn compare(&mut self, operator: Comparison, left: &Value, right: &Value) -> Run<bool> {
        // A text decides, whatever the other one looks like.
        let texts = matches!(left, Value::Text(_)) || matches!(right, Value::Text(_));
        let numbers = if texts { None } else { self.numeric(left)?.zip(self.numeric(right)?) };
        let order = match numbers {
            Some((left, right)) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
            None => {
                let (left, right) = (self.text(left)?, self.text(right)?);
                self.shell.spend(left.len().min(right.len()))?;
                left.cmp(&right)
            }
        };
        Ok(match operator {
            Comparison::Less => order.is_lt(),
            Comparison::LessEqual => order.is_le(),
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterEqual => order.is_ge(),
        })
    }
}
