//! Evaluates expressions.

use super::machine::{Lvalue, Machine};
use super::number;
use super::syntax::{Arithmetic, Expr};
use super::value::Value;
use crate::eval::Run;

/// What an expression counts for, in bytes of work.
const COST: usize = 16;

impl Machine<'_, '_> {
    pub(super) fn eval(&mut self, expr: &Expr) -> Run<Value> {
        self.shell.spend(COST)?;
        self.shell.budget.enter_level().map_err(|kind| self.shell.fatal(kind))?;
        let value = self.eval_kind(expr);
        self.shell.budget.levels -= 1;
        value
    }

    pub(super) fn condition(&mut self, expr: &Expr) -> Run<bool> {
        let value = self.eval(expr)?;
        self.is_true(&value)
    }

    fn eval_kind(&mut self, expr: &Expr) -> Run<Value> {
        match expr {
            Expr::Number(value) => Ok(Value::Number(*value)),
            Expr::Text(text) => {
                self.shell.spend(text.len())?;
                Ok(Value::text(text))
            }
            Expr::Regex(text) => self.matches_record(text),
            Expr::Variable(_) | Expr::Field(_) | Expr::Element(..) => {
                let place = self.place(expr)?;
                self.get(&place)
            }
            Expr::Group(inner) => self.eval(inner),
            Expr::List(_) => self.shell.unsupported(b"a list in parentheses in awk"),
            Expr::Assign(target, operator, value) => self.assign(target, *operator, value),
            Expr::Step(target, by, before) => self.step(target, *by, *before),
            Expr::Not(inner) => Ok(Value::truth(!self.condition(inner)?)),
            Expr::Minus(inner) => Ok(Value::Number(-self.eval_number(inner)?)),
            Expr::Plus(inner) => Ok(Value::Number(self.eval_number(inner)?)),
            Expr::Arithmetic(operator, left, right) => {
                let (left, right) = (self.eval_number(left)?, self.eval_number(right)?);
                self.calculate(*operator, left, right)
            }
            Expr::Concatenation(left, right) => self.concatenate(left, right),
            Expr::Comparison(operator, left, right) => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                Ok(Value::truth(self.compare(*operator, &left, &right)?))
            }
            Expr::Match(wanted, left, right) => {
                let text = self.eval(left)?;
                let text = self.text(&text)?;
                let expression = self.eval_regex(right)?;
                let expression = self.expression(&expression)?;
                Ok(Value::truth(expression.is_match(self.shell, &text)? == *wanted))
            }
            Expr::And(left, right) => Ok(Value::truth(self.condition(left)? && self.condition(right)?)),
            Expr::Or(left, right) => Ok(Value::truth(self.condition(left)? || self.condition(right)?)),
            Expr::Conditional(condition, yes, no) => {
                let chosen = if self.condition(condition)? { yes } else { no };
                self.eval(chosen)
            }
            Expr::In(keys, array) => {
                let key = self.key(keys)?;
                self.shell.spend(key.len())?;
                let has = self.arrays[*array].contains_key(&key);
                if !has {
                    self.ask_element(*array, &key)?;
                }
                Ok(Value::truth(has))
            }
            Expr::Call(function, list) => self.call(*function, list),
            Expr::Split(text, array, separator) => self.split_into(text, *array, separator.as_deref()),
        }
    }

    fn matches_record(&mut self, text: &[u8]) -> Run<Value> {
        let expression = self.expression(text)?;
        let record = self.field(0)?;
        let record = self.text(&record)?;
        Ok(Value::truth(expression.is_match(self.shell, &record)?))
    }

    pub(super) fn eval_number(&mut self, expr: &Expr) -> Run<f64> {
        let value = self.eval(expr)?;
        self.number(&value)
    }

    /// An operand that is a regular expression: the literal itself, or the text of a value.
    pub(super) fn eval_regex(&mut self, expr: &Expr) -> Run<Vec<u8>> {
        match expr {
            Expr::Regex(text) => Ok(text.clone()),
            Expr::Group(inner) => self.eval_regex(inner),
            other => {
                let value = self.eval(other)?;
                Ok(self.text(&value)?.to_vec())
            }
        }
    }

    fn assign(&mut self, target: &Expr, operator: Option<Arithmetic>, value: &Expr) -> Run<Value> {
        let place = self.place(target)?;
        let value = match operator {
            None => self.eval(value)?,
            Some(operator) => {
                let right = self.eval_number(value)?;
                let left = self.get(&place)?;
                let left = self.number(&left)?;
                self.calculate(operator, left, right)?
            }
        };
        self.set(&place, value.clone())?;
        Ok(value)
    }

    fn step(&mut self, target: &Expr, by: f64, before: bool) -> Run<Value> {
        let place = self.place(target)?;
        let old = self.get(&place)?;
        let old = self.number(&old)?;
        self.set(&place, Value::Number(old + by))?;
        Ok(Value::Number(if before { old + by } else { old }))
    }

    fn concatenate(&mut self, left: &Expr, right: &Expr) -> Run<Value> {
        let left = self.eval(left)?;
        let left = self.text(&left)?;
        let right = self.eval(right)?;
        let right = self.text(&right)?;
        let len = left.len().saturating_add(right.len());
        self.shell.spend_size(len, len)?;
        Ok(Value::Text([&left[..], &right[..]].concat().into()))
    }

    /// Infinities and NaN are refused: awks print them differently, or end.
    fn calculate(&mut self, operator: Arithmetic, left: f64, right: f64) -> Run<Value> {
        let result = match operator {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            Arithmetic::Divide => left / right,
            Arithmetic::Remainder => left % right,
            Arithmetic::Power if right.fract() == 0.0 => number::power(left, self.integer(right)?),
            Arithmetic::Power => return self.shell.unsupported(b"a power with a fraction in awk"),
        };
        if result.is_finite() {
            Ok(Value::Number(result))
        } else {
            self.shell.unsupported(b"an awk result that is not a finite number")
        }
    }

    /// Where the third operand of `sub` and `gsub` is.
    pub(super) fn target(&mut self, target: Option<&Expr>) -> Run<Lvalue> {
        target.map_or(Ok(Lvalue::Field(0)), |target| self.place(target))
    }
}
