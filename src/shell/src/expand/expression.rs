//! Arithmetic of bash (expr.c): 64-bit numbers that wrap, elements of arrays, and variables whose values are expressions again.

use super::arithmetic::{ASSIGNING, BINARY, calculated};
use crate::error::ErrorKind;
use crate::eval::{Run, Stop};
use crate::shell::Shell;
use crate::syntax::words::is_name_byte;
use crate::variables::Key;

/// Deepest nesting of parentheses, operators, subscripts, and values of variables that are expressions.
const MAX_DEPTH: u32 = 100;

/// What an assignment changes.
struct AssignmentTarget {
    name: Vec<u8>,
    subscript: Option<Vec<u8>>,
    /// The element, after its value was read: an assignment does not evaluate the subscript again.
    key: Option<Key>,
}

struct Expression<'e, 'h> {
    shell: &'e mut Shell<'h>,
    text: &'e [u8],
    at: usize,
    /// Whether the result is needed: what `&&`, `||` and `?:` pass over is not evaluated.
    live: bool,
}

impl Shell<'_> {
    /// The value of an expression of bash; an error ends the running line.
    pub(crate) fn evaluate(&mut self, text: &[u8]) -> Run<i64> {
        self.spend(text.len().saturating_add(1))?;
        self.require_number(text)?;
        self.enter_expression()?;
        let result = Expression { shell: self, text, at: 0, live: true }.whole();
        self.expressions -= 1;
        result
    }

    fn enter_expression(&mut self) -> Run<()> {
        if self.expressions >= MAX_DEPTH {
            let kind = ErrorKind::Limit { what: "nested expressions", limit: MAX_DEPTH.into() };
            return Err(self.fatal(kind));
        }
        self.expressions += 1;
        Ok(())
    }

    /// The value of an expression, or nothing after an error that has been reported. One in a subscript ends the running line.
    pub(crate) fn try_evaluate(&mut self, text: &[u8]) -> Run<Option<i64>> {
        match self.evaluate(text) {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Discard) => Ok(None),
            Err(stop) => Err(stop),
        }
    }
}

fn is_step_operator(text: &[u8]) -> bool {
    text.starts_with(b"++") || text.starts_with(b"--")
}

/// Whether a token can begin with this byte.
fn is_legal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_=<>+-*/%!~()?:,&|^".contains(&byte)
}

/// Whether `++` or `--` is before a variable, where it cannot be two operators.
fn is_step(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"++").or_else(|| text.strip_prefix(b"--"));
    let next = rest.and_then(|rest| rest.iter().find(|byte| !is_blank(**byte)));
    next.is_some_and(|byte| is_name_byte(*byte, true))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

impl Expression<'_, '_> {
    fn whole(&mut self) -> Run<i64> {
        if self.peek().is_none() {
            return Ok(0);
        }
        let value = self.comma()?;
        match self.peek() {
            None => Ok(value),
            Some(_) => self.wrong("syntax error in expression"),
        }
    }

    fn wrong<T>(&mut self, what: &str) -> Run<T> {
        let token = self.text.get(self.at..).unwrap_or_default();
        let message = [self.text, b": ", what.as_bytes(), b" (error token is \"", token, b"\")"].concat();
        Err(self.shell.discard(&message))
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(|byte| is_blank(*byte)) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn rest(&mut self) -> &[u8] {
        self.peek();
        &self.text[self.at..]
    }

    fn take(&mut self, token: &[u8]) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        self.shell.enter_expression()?;
        let result = inner(self);
        self.shell.expressions -= 1;
        result
    }

    fn comma(&mut self) -> Run<i64> {
        let mut value = self.deeper(Self::assignment)?;
        while self.take(b",") {
            value = self.deeper(Self::assignment)?;
        }
        Ok(value)
    }

    /// A variable or element at this place.
    fn place(&mut self) -> Run<Option<AssignmentTarget>> {
        let Some(first) = self.peek() else { return Ok(None) };
        if !is_name_byte(first, true) {
            return Ok(None);
        }
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|byte| !is_name_byte(*byte, false)).unwrap_or(rest.len());
        let name = rest[..len].to_vec();
        self.at += len;
        if self.text.get(self.at) != Some(&b'[') {
            return Ok(Some(AssignmentTarget { name, subscript: None, key: None }));
        }
        let mut open = 0_usize;
        let inner = &self.text[self.at..];
        let close = inner.iter().position(|byte| {
            open = match byte {
                b'[' => open + 1,
                b']' => open - 1,
                _ => open,
            };
            open == 0
        });
        let Some(close) = close else { return self.wrong("bad array subscript") };
        let subscript = inner[1..close].to_vec();
        let flags = &self.shell.state.flags;
        if subscript.is_empty() && (flags.nounset || flags.errexit || self.shell.is_associative(&name)) {
            return self.shell.unsupported(b"an empty subscript");
        }
        self.at += close + 1;
        if self.text.get(self.at) == Some(&b']') && self.shell.is_associative(&name) {
            return self.shell.unsupported(b"a subscript with a bracket");
        }
        Ok(Some(AssignmentTarget { subscript: Some(self.subscript(&name, subscript)?), name, key: None }))
    }

    /// A subscript, which bash expands as in double quotes.
    fn subscript(&mut self, name: &[u8], subscript: Vec<u8>) -> Run<Vec<u8>> {
        let key = self.subscript_value(name, subscript)?;
        // bash marks quoted bytes with these two, and takes them for its own marks.
        if key.iter().any(|byte| matches!(byte, 1 | 0x7f)) {
            return self.shell.unsupported(b"a subscript with a control character");
        }
        Ok(key)
    }

    fn subscript_value(&mut self, name: &[u8], subscript: Vec<u8>) -> Run<Vec<u8>> {
        let unquoted = match &subscript[..] {
            [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] if self.shell.is_associative(name) => inner.to_vec(),
            _ => subscript,
        };
        self.shell.given_subscript(&unquoted)
    }

    fn assignment(&mut self) -> Run<i64> {
        let start = self.at;
        if let Some(mut place) = self.place()? {
            if let Some(operator) = ASSIGNING.iter().find(|operator| self.take(operator)) {
                let left = self.load(&mut place)?;
                let right = self.deeper(Self::assignment)?;
                let value = self.binary(&operator[..operator.len() - 1], left, right)?;
                return self.store(&place, value);
            }
            if !self.rest().starts_with(b"==") && self.take(b"=") {
                let value = self.deeper(Self::assignment)?;
                return self.store(&place, value);
            }
            self.at = start;
        }
        let value = self.conditional()?;
        let rest = self.rest();
        if rest.starts_with(b"=") || ASSIGNING.iter().any(|operator| rest.starts_with(operator)) {
            return self.wrong("attempted assignment to non-variable");
        }
        Ok(value)
    }

    fn store(&mut self, place: &AssignmentTarget, value: i64) -> Run<i64> {
        // bash has read the next token by now.
        if self.peek().is_some_and(|byte| !is_legal(byte)) {
            return self.wrong("syntax error: invalid arithmetic operator");
        }
        if !self.live {
            return Ok(value);
        }
        let text = value.to_string().into_bytes();
        let stored = match &place.subscript {
            Some(subscript) if subscript.is_empty() => {
                self.shell.report(&[b"`", &place.name[..], b"[]': not a valid identifier"].concat())?;
                true
            }
            Some(subscript) => {
                let stored = match &place.key {
                    Some(key) => self.shell.assign_at(&place.name, key, &text)?,
                    None => self.shell.assign_element(&place.name, subscript, &text, false)?,
                };
                let readonly = self.shell.state.variable(&place.name).is_some_and(|found| found.readonly);
                // A wrong subscript has been reported, and the expression goes on.
                stored || !readonly
            }
            None => self.shell.assign_text(&place.name, &text, false)?,
        };
        if !stored {
            self.shell.state.status = 1;
            return Err(Stop::Discard);
        }
        Ok(value)
    }

    fn load(&mut self, place: &mut AssignmentTarget) -> Run<i64> {
        if !self.live {
            return Ok(0);
        }
        let text = match &place.subscript {
            Some(subscript) if subscript.is_empty() => {
                self.shell.report(&[&place.name[..], b"[]: bad array subscript"].concat())?;
                return Ok(0);
            }
            Some(subscript) => {
                let name = self.shell.state.referred(&place.name).unwrap_or_default().to_vec();
                // A variable that is missing is noticed before its subscript.
                let known = self.shell.state.variable(&name).is_some_and(|found| !found.is_invisible());
                if self.shell.state.flags.nounset && !known && self.shell.special_array(&name)?.is_none() {
                    return Err(self.shell.unbound(&place.name));
                }
                place.key = self.shell.reading_key(&name, subscript)?;
                let value = place.key.as_ref().map(|key| self.shell.element_at(&name, key)).transpose()?.flatten();
                value.map(|value| value.to_vec())
            }
            None => self.shell.scalar_value(&place.name)?,
        };
        let Some(text) = text else {
            let variable = self.shell.state.variable(&place.name);
            let known = place.subscript.is_some() && variable.is_some_and(|found| !found.is_invisible());
            if self.shell.state.flags.nounset && !known {
                return Err(self.shell.unbound(&place.name));
            }
            return Ok(0);
        };
        let simple = !text.is_empty() && text.len() < 19 && text.iter().all(u8::is_ascii_digit) && text[0] != b'0';
        if simple {
            self.shell.require_number(&text)?;
            return Ok(super::number(&text));
        }
        self.shell.evaluate(&text)
    }

    fn conditional(&mut self) -> Run<i64> {
        let condition = self.operators(1)?;
        if !self.take(b"?") {
            return Ok(condition);
        }
        if self.peek() == Some(b':') {
            return self.wrong("expression expected");
        }
        let live = self.live;
        self.live = live && condition != 0;
        let yes = self.comma()?;
        if !self.take(b":") {
            return self.wrong("`:' expected for conditional expression");
        }
        self.live = live && condition == 0;
        let no = self.deeper(Self::conditional)?;
        self.live = live;
        Ok(if condition != 0 { yes } else { no })
    }

    /// Operators that bind at least as tightly as `lowest`; `**` binds more tightly than all of them, from right to left.
    fn operators(&mut self, lowest: u8) -> Run<i64> {
        let mut left = self.power()?;
        loop {
            let rest = self.rest();
            let assigns = ASSIGNING.iter().any(|operator| rest.starts_with(operator)) || is_step(rest);
            let found = BINARY.iter().find(|(operator, _)| rest.starts_with(operator));
            let Some((operator, precedence)) = found.filter(|(_, found)| *found >= lowest && !assigns) else {
                return Ok(left);
            };
            self.at += operator.len();
            self.shell.spend(1)?;
            let live = self.live;
            self.live = live
                && match *operator {
                    b"&&" => left != 0,
                    b"||" => left == 0,
                    _ => true,
                };
            let right = self.deeper(|inner| inner.operators(precedence + 1))?;
            self.live = live;
            left = self.binary(operator, left, right)?;
        }
    }

    fn power(&mut self) -> Run<i64> {
        let base = self.unary()?;
        if self.rest().starts_with(b"**=") || !self.take(b"**") {
            return Ok(base);
        }
        let exponent = self.deeper(Self::power)?;
        if exponent < 0 {
            return if self.live { self.wrong("exponent less than 0") } else { Ok(0) };
        }
        Ok(raised(base, exponent.cast_unsigned()))
    }

    fn unary(&mut self) -> Run<i64> {
        for (operator, step) in [(b"++", 1), (b"--", -1)] {
            if self.rest().starts_with(operator) {
                let start = self.at;
                self.at += 2;
                if let Some(mut place) = self.place()? {
                    let value = self.load(&mut place)?.wrapping_add(step);
                    let stored = self.store(&place, value)?;
                    if is_step_operator(self.rest()) {
                        return self.wrong("syntax error: operand expected");
                    }
                    return Ok(stored);
                }
                self.at = start;
            }
        }
        match self.peek() {
            Some(b'!') => self.prefix(|value| i64::from(value == 0)),
            Some(b'~') => self.prefix(|value| !value),
            Some(b'-') => self.prefix(i64::wrapping_neg),
            Some(b'+') => self.prefix(|value| value),
            Some(b'(') => {
                self.at += 1;
                let value = self.deeper(Self::comma)?;
                if self.take(b")") { Ok(value) } else { self.wrong("missing `)'") }
            }
            Some(b'0'..=b'9') => self.constant(),
            _ => self.variable(),
        }
    }

    fn prefix(&mut self, apply: fn(i64) -> i64) -> Run<i64> {
        self.at += 1;
        self.deeper(Self::unary).map(apply)
    }

    fn variable(&mut self) -> Run<i64> {
        let Some(mut place) = self.place()? else { return self.wrong("syntax error: operand expected") };
        let rest = self.rest();
        if rest.starts_with(b"=") && !rest.starts_with(b"==") {
            return Ok(0);
        }
        // bash looks at the tokens up to the next one that is not a name before it takes the value.
        let is_name = |byte: &u8| is_name_byte(*byte, false) || is_blank(*byte);
        let rest = rest.get(rest.iter().take_while(|byte| is_name(byte)).count()..).unwrap_or_default();
        if rest.first().is_some_and(|byte| !is_legal(*byte) && *byte != b'[') {
            return self.wrong("syntax error: invalid arithmetic operator");
        }
        let value = self.load(&mut place)?;
        for (operator, step) in [(b"++", 1), (b"--", -1)] {
            if self.take(operator) {
                self.store(&place, value.wrapping_add(step))?;
                return Ok(value);
            }
        }
        Ok(value)
    }

    fn constant(&mut self) -> Run<i64> {
        let rest = &self.text[self.at..];
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'#' | b'@' | b'_');
        let len = rest.iter().take_while(|byte| is_digit(byte)).count();
        let digits = &rest[..len];
        match constant(digits) {
            Ok(value) => {
                self.at += len;
                Ok(value)
            }
            Err(why) => self.wrong(why),
        }
    }

    fn binary(&mut self, operator: &[u8], left: i64, right: i64) -> Run<i64> {
        match calculated(operator, left, right) {
            Some(value) => Ok(value),
            None if !self.live => Ok(0),
            None => self.wrong("division by 0"),
        }
    }
}

/// A power that wraps.
fn raised(base: i64, exponent: u64) -> i64 {
    let (mut base, mut exponent, mut result) = (base, exponent, 1_i64);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

/// A constant: decimal, octal after `0`, hexadecimal after `0x`, or of the base before `#`; larger ones wrap.
fn constant(digits: &[u8]) -> Result<i64, &'static str> {
    let (base, digits) = match (digits, digits.iter().position(|byte| *byte == b'#')) {
        ([b'0', b'x' | b'X', rest @ ..], None) => (16, rest),
        ([b'0', rest @ ..], None) => (8, rest),
        (digits, None) => (10, digits),
        ([b'0', ..], Some(_)) => return Err("invalid number"),
        (digits, Some(at)) => {
            let base = super::number(&digits[..at]);
            let is_base = digits[..at].iter().all(u8::is_ascii_digit) && (2..=64).contains(&base);
            if !is_base {
                return Err("invalid arithmetic base");
            }
            if digits.len() == at + 1 {
                return Err("invalid integer constant");
            }
            (base, &digits[at + 1..])
        }
    };
    digits.iter().try_fold(0_i64, |value, digit| {
        let digit = digit_value(*digit, base).ok_or("invalid number")?;
        if digit >= base {
            return Err("value too great for base");
        }
        Ok(value.wrapping_mul(base).wrapping_add(digit))
    })
}

fn digit_value(digit: u8, base: i64) -> Option<i64> {
    Some(match digit {
        b'0'..=b'9' => i64::from(digit - b'0'),
        b'a'..=b'z' => i64::from(digit - b'a') + 10,
        b'A'..=b'Z' if base <= 36 => i64::from(digit - b'A') + 10,
        b'A'..=b'Z' => i64::from(digit - b'A') + 36,
        b'@' => 62,
        b'_' => 63,
        _ => return None,
    })
}
