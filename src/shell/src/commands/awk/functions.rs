//! The functions of awk.

use super::machine::{FS, Lvalue, Machine, RLENGTH, RSTART};
use super::number::count;
use super::record::Separator;
use super::syntax::{Expr, Function};
use super::value::Value;
use crate::error::ErrorKind;
use crate::eval::Run;

impl Machine<'_, '_> {
    pub(super) fn call(&mut self, function: Function, list: &[Expr]) -> Run<Value> {
        match (function, list) {
            (Function::Random(name), _) => Err(self.shell.fatal(ErrorKind::Random { what: format!("{name} of awk") })),
            (Function::Clock(name), _) => Err(self.shell.fatal(ErrorKind::Clock { what: format!("{name} of awk") })),
            (Function::Other(name), _) => self.shell.unsupported(format!("{name} of awk").as_bytes()),
            (Function::Length, []) => {
                let record = self.field(0)?;
                Ok(Value::Number(count(self.text(&record)?.len())))
            }
            (Function::Length, [text]) => Ok(Value::Number(count(self.eval_text(text)?.len()))),
            (Function::Int, [value]) => Ok(Value::Number(self.eval_number(value)?.trunc())),
            (Function::Lower, [text]) => Ok(Value::text(&self.eval_text(text)?.to_ascii_lowercase())),
            (Function::Upper, [text]) => Ok(Value::text(&self.eval_text(text)?.to_ascii_uppercase())),
            (Function::Index, [text, part]) => self.index(text, part),
            (Function::Match, [text, expression]) => self.find(text, expression),
            (Function::Substr, [text, from, rest @ ..]) => self.substr(text, from, rest.first()),
            (Function::Sub | Function::Gsub, [expression, text, rest @ ..]) => {
                self.substitute(expression, text, rest.first(), function == Function::Gsub)
            }
            (Function::Sprintf, [format, rest @ ..]) => {
                let format = self.eval_text(format)?;
                let values = self.values(rest)?;
                Ok(Value::Text(self.format(&format, &values)?.into()))
            }
            _ => self.shell.unsupported(b"the arguments of a function of awk"),
        }
    }

    pub(super) fn values(&mut self, list: &[Expr]) -> Run<Vec<Value>> {
        list.iter().map(|expr| self.eval(expr)).collect()
    }

    /// The text of an expression; going through it counts.
    pub(super) fn eval_text(&mut self, expr: &Expr) -> Run<std::rc::Rc<[u8]>> {
        let value = self.eval(expr)?;
        let text = self.text(&value)?;
        self.shell.spend(text.len())?;
        Ok(text)
    }

    fn index(&mut self, text: &Expr, part: &Expr) -> Run<Value> {
        let (text, part) = (self.eval_text(text)?, self.eval_text(part)?);
        if part.is_empty() {
            return self.shell.unsupported(b"index of nothing in awk");
        }
        self.shell.spend(text.len().saturating_mul(part.len()) / 8)?;
        let found = text.windows(part.len()).position(|window| window == &part[..]);
        Ok(Value::Number(found.map_or(0.0, |at| count(at + 1))))
    }

    fn find(&mut self, text: &Expr, expression: &Expr) -> Run<Value> {
        let text = self.eval_text(text)?;
        let expression = self.eval_regex(expression)?;
        let expression = self.expression(&expression)?;
        let found = expression.find(self.shell, &text, 0)?.and_then(|places| places.first().copied().flatten());
        let (start, len) = found.map_or((0.0, -1.0), |(from, to)| (count(from + 1), count(to - from)));
        self.set(&Lvalue::Variable(RSTART), Value::Number(start))?;
        self.set(&Lvalue::Variable(RLENGTH), Value::Number(len))?;
        Ok(Value::Number(start))
    }

    /// The bytes from one place, counted from 1, of so many as there are. Fractions, which awks round in their own ways, are refused.
    fn substr(&mut self, text: &Expr, from: &Expr, len: Option<&Expr>) -> Run<Value> {
        let text = self.eval_text(text)?;
        let begin = self.whole(from)?;
        let end = match len {
            Some(_) if begin < 1 => return self.shell.unsupported(b"substr before the start of a text in awk"),
            Some(len) => begin.saturating_add(self.whole(len)?),
            None => i64::MAX,
        };
        let place = |at: i64| usize::try_from(at.saturating_sub(1)).unwrap_or(0).min(text.len());
        let (begin, end) = (place(begin), place(end));
        Ok(Value::text(text.get(begin..end).unwrap_or_default()))
    }

    fn whole(&mut self, expr: &Expr) -> Run<i64> {
        let value = self.eval_number(expr)?;
        if value.fract() != 0.0 {
            return self.shell.unsupported(b"a fraction in substr of awk");
        }
        self.integer(value)
    }

    pub(super) fn split_into(&mut self, text: &Expr, array: usize, separator: Option<&Expr>) -> Run<Value> {
        let text = self.eval_text(text)?;
        let separator = match separator {
            None => Separator::new(&self.special(FS)?),
            Some(Expr::Regex(expression)) => Separator::Expression(expression.clone()),
            Some(other) => Separator::new(&self.eval_text(other)?),
        };
        let parts = self.split(&text, &separator)?;
        self.clear(array)?;
        let found = parts.len();
        for (at, part) in parts.into_iter().enumerate() {
            let key = (at + 1).to_string().into_bytes();
            self.set(&Lvalue::Element(array, key.into()), part)?;
        }
        Ok(Value::Number(count(found)))
    }

    fn substitute(&mut self, expression: &Expr, by: &Expr, target: Option<&Expr>, all: bool) -> Run<Value> {
        let expression = self.eval_regex(expression)?;
        let expression = self.expression(&expression)?;
        let by = self.eval_text(by)?;
        let place = self.target(target)?;
        let value = self.get(&place)?;
        let text = self.text(&value)?;
        let (mut out, mut at, mut copied, mut number) = (Vec::new(), 0, 0, 0);
        while at <= text.len() && (all || number == 0) {
            let found = expression.find(self.shell, &text, at)?;
            let Some((from, to)) = found.and_then(|places| places.first().copied().flatten()) else { break };
            // Right behind a match an empty match does not count.
            if from < to || from != copied || number == 0 {
                out.extend(&text[copied..from]);
                self.replacement(&by, &text[from..to], &mut out)?;
                (copied, number) = (to, number + 1);
            }
            at = if from == to { to + 1 } else { to };
        }
        if number > 0 {
            out.extend(&text[copied..]);
            self.shell.spend_size(out.len(), out.len())?;
            self.set(&place, Value::Text(out.into()))?;
        }
        Ok(Value::Number(count(number)))
    }

    /// Appends what takes the place of a match: `&` is the match, `\&` an ampersand, `\\&` a backslash and the match.
    fn replacement(&mut self, by: &[u8], matched: &[u8], out: &mut Vec<u8>) -> Run<()> {
        let before = out.len();
        let mut rest = by;
        while let Some(byte) = rest.first() {
            let slashes = rest.iter().take_while(|byte| **byte == b'\\').count();
            let ampersand = rest.get(slashes) == Some(&b'&');
            match (slashes, ampersand) {
                (0, false) => out.push(*byte),
                (0, true) => out.extend(matched),
                (1, _) => out.push(if ampersand { b'&' } else { b'\\' }),
                (2, true) => out.extend([b"\\", matched].concat()),
                (3, true) => out.extend(b"\\&"),
                _ => return self.shell.unsupported(b"backslashes in a replacement of awk"),
            }
            rest = &rest[(slashes + usize::from(ampersand)).max(1)..];
            self.shell.spend_size(out.len(), 1)?;
        }
        self.shell.spend(out.len() - before)
    }
}
