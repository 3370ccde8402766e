//! Arithmetic expansion: signed 64-bit numbers that wrap, and the operators of dash.

use crate::eval::Run;
use crate::shell::Shell;
use crate::syntax::words::is_name_byte;

/// Deepest nesting of parentheses and operators with one operand.
const MAX_DEPTH: u32 = 100;

/// Operators of two operands with their precedence, longest first.
pub(super) const BINARY: [(&[u8], u8); 18] = [
    (b"<<", 8),
    (b">>", 8),
    (b"<=", 7),
    (b">=", 7),
    (b"==", 6),
    (b"!=", 6),
    (b"&&", 2),
    (b"||", 1),
    (b"*", 10),
    (b"/", 10),
    (b"%", 10),
    (b"+", 9),
    (b"-", 9),
    (b"<", 7),
    (b">", 7),
    (b"&", 5),
    (b"^", 4),
    (b"|", 3),
];

/// Operators that assign, longest first.
pub(super) const ASSIGNING: [&[u8]; 10] = [b"<<=", b">>=", b"*=", b"/=", b"%=", b"+=", b"-=", b"&=", b"^=", b"|="];

struct Evaluator<'e, 'h> {
    shell: &'e mut Shell<'h>,
    text: &'e [u8],
    at: usize,
    depth: u32,
    /// Whether the result is needed: what `&&`, `||` and `?:` pass over assigns nothing.
    live: bool,
}

impl Shell<'_> {
    /// The value of an expression.
    pub(crate) fn arithmetic(&mut self, text: &[u8]) -> Run<i64> {
        self.spend(text.len())?;
        self.require_number(text)?;
        let mut evaluator = Evaluator { shell: self, text, at: 0, depth: 0, live: true };
        let value = evaluator.assignment()?;
        match evaluator.peek() {
            None => Ok(value),
            Some(_) => evaluator.wrong("expecting EOF"),
        }
    }
}

impl Evaluator<'_, '_> {
    fn wrong<T>(&mut self, what: &str) -> Run<T> {
        let message = [b"arithmetic expression: ", what.as_bytes(), b": \"", self.text, b"\""].concat();
        Err(self.shell.shell_error(&message))
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
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
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let kind = crate::ErrorKind::Limit { what: "nested expressions", limit: MAX_DEPTH.into() };
            return Err(self.shell.fatal(kind));
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn name(&mut self) -> Option<Vec<u8>> {
        let first = self.peek()?;
        if !is_name_byte(first, true) {
            return None;
        }
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|byte| !is_name_byte(*byte, false)).unwrap_or(rest.len());
        self.at += len;
        Some(rest[..len].to_vec())
    }

    fn assignment(&mut self) -> Run<i64> {
        let start = self.at;
        if let Some(name) = self.name() {
            if let Some(operator) = ASSIGNING.iter().find(|operator| self.take(operator)) {
                let right = self.deeper(Self::assignment)?;
                let left = self.variable(&name)?;
                let value = self.binary(&operator[..operator.len() - 1], left, right)?;
                return self.store(&name, value);
            }
            if !self.rest().starts_with(b"==") && self.take(b"=") {
                let value = self.deeper(Self::assignment)?;
                return self.store(&name, value);
            }
            self.at = start;
        }
        self.conditional()
    }

    fn store(&mut self, name: &[u8], value: i64) -> Run<i64> {
        if self.live {
            self.shell.set(name, value.to_string().as_bytes())?;
        }
        Ok(value)
    }

    fn conditional(&mut self) -> Run<i64> {
        let condition = self.operators(1)?;
        if !self.take(b"?") {
            return Ok(condition);
        }
        let live = self.live;
        self.live = live && condition != 0;
        let yes = self.deeper(Self::assignment)?;
        if !self.take(b":") {
            return self.wrong("expecting ':'");
        }
        self.live = live && condition == 0;
        let no = self.deeper(Self::conditional)?;
        self.live = live;
        Ok(if condition != 0 { yes } else { no })
    }

    /// Operators that bind at least as tightly as `lowest`.
    fn operators(&mut self, lowest: u8) -> Run<i64> {
        let mut left = self.unary()?;
        loop {
            let rest = self.rest().to_vec();
            let assigns = ASSIGNING.iter().any(|operator| rest.starts_with(operator));
            let found = BINARY.iter().find(|(operator, _)| rest.starts_with(operator));
            let Some((operator, precedence)) = found.filter(|(_, found)| *found >= lowest && !assigns) else {
                return Ok(left);
            };
            self.shell.spend(rest.len())?;
            self.at += operator.len();
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

    fn unary(&mut self) -> Run<i64> {
        match self.peek() {
            Some(b'!') => self.prefix(|value| i64::from(value == 0)),
            Some(b'~') => self.prefix(|value| !value),
            Some(b'-') => self.prefix(i64::wrapping_neg),
            Some(b'+') => self.prefix(|value| value),
            Some(b'(') => {
                self.at += 1;
                let value = self.deeper(Self::assignment)?;
                if self.take(b")") { Ok(value) } else { self.wrong("expecting ')'") }
            }
            Some(b'0'..=b'9') => {
                let rest = self.rest();
                let len = rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let digits = rest[..len].to_vec();
                self.at += len;
                match number(&digits) {
                    Some(value) => Ok(value),
                    None => self.wrong("expecting EOF"),
                }
            }
            _ => match self.name() {
                Some(name) => self.variable(&name),
                None => self.wrong("expecting primary"),
            },
        }
    }

    fn prefix(&mut self, apply: fn(i64) -> i64) -> Run<i64> {
        self.at += 1;
        self.deeper(Self::unary).map(apply)
    }

    fn variable(&mut self, name: &[u8]) -> Run<i64> {
        if !self.live {
            return Ok(0);
        }
        let Some(text) = self.shell.state.get(name).map(<[u8]>::to_vec) else {
            // Whatever `set -u` says.
            return Ok(0);
        };
        self.shell.require_number(&text)?;
        let trimmed = text.trim_ascii();
        let value = match trimmed.split_first() {
            None => Some(0),
            Some((b'-', digits)) => wide_number(digits).map(|value| -value),
            Some((b'+', digits)) => wide_number(digits),
            _ => wide_number(trimmed),
        };
        // Unlike a constant, a value must not be too large.
        value
            .and_then(|value| i64::try_from(value).ok())
            .map_or_else(|| Err(self.shell.shell_error(&[b"Illegal number: ", &text[..]].concat())), Ok)
    }

    fn binary(&mut self, operator: &[u8], left: i64, right: i64) -> Run<i64> {
        if self.live && left == i64::MIN && right == -1 && matches!(operator, b"/" | b"%") {
            return self.shell.unsupported(b"a division that overflows, which ends the shell by a signal");
        }
        match calculated(operator, left, right) {
            Some(value) => Ok(value),
            None if !self.live => Ok(0),
            None => self.wrong("division by zero"),
        }
    }
}

/// The result of an operator of two operands; none for a division by zero.
pub(super) fn calculated(operator: &[u8], left: i64, right: i64) -> Option<i64> {
    let shift = |value: i64| u32::try_from(value & 63).unwrap_or_default();
    if right == 0 && matches!(operator, b"/" | b"%") {
        return None;
    }
    Some(match operator {
        b"*" => left.wrapping_mul(right),
        b"/" => left.wrapping_div(right),
        b"%" => left.wrapping_rem(right),
        b"+" => left.wrapping_add(right),
        b"-" => left.wrapping_sub(right),
        b"<<" => left.wrapping_shl(shift(right)),
        b">>" => left.wrapping_shr(shift(right)),
        b"<" => i64::from(left < right),
        b">" => i64::from(left > right),
        b"<=" => i64::from(left <= right),
        b">=" => i64::from(left >= right),
        b"==" => i64::from(left == right),
        b"!=" => i64::from(left != right),
        b"&" => left & right,
        b"^" => left ^ right,
        b"|" => left | right,
        b"&&" => i64::from(left != 0 && right != 0),
        _ => i64::from(left != 0 || right != 0),
    })
}

/// A decimal, octal or hexadecimal constant; one that is too large is the largest number.
pub(crate) fn number(digits: &[u8]) -> Option<i64> {
    wide_number(digits).map(|value| i64::try_from(value).unwrap_or(i64::MAX))
}

fn wide_number(digits: &[u8]) -> Option<i128> {
    let (digits, radix) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (rest, 16),
        [b'0', rest @ ..] if !rest.is_empty() => (rest, 8),
        digits => (digits, 10),
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i128, |value, digit| {
        let digit = char::from(*digit).to_digit(radix)?;
        Some(value.saturating_mul(radix.into()).saturating_add(digit.into()))
    })
}
