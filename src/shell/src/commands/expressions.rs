//! `expr` and `seq`.

use super::complain;
use super::regex::{Expression, Syntax};
use crate::eval::{Run, Stop};
use crate::shell::Shell;

/// Deepest nesting of parentheses.
const MAX_DEPTH: u32 = 50;

/// Operators by precedence, the loosest first.
const LEVELS: [&[&[u8]]; 6] =
    [&[b"|"], &[b"&"], &[b"<", b"<=", b"=", b"==", b"!=", b">=", b">"], &[b"+", b"-"], &[b"*", b"/", b"%"], &[b":"]];

struct Parser<'p, 'h> {
    shell: &'p mut Shell<'h>,
    args: &'p [Vec<u8>],
    at: usize,
    depth: u32,
}

pub(super) fn expr(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let args = if args.first().is_some_and(|arg| arg == b"--") { &args[1..] } else { args };
    let mut parser = Parser { shell, args, at: 0, depth: 0 };
    let result = match parser.level(0) {
        Ok(result) if parser.at == args.len() => result,
        Ok(_) => {
            complain(shell, "expr", b"syntax error: unexpected argument")?;
            return Ok(2);
        }
        Err(Stop::Error) => return Ok(2),
        Err(stop) => return Err(stop),
    };
    shell.out(&[&result[..], b"\n"].concat())?;
    Ok(u8::from(is_null(&result)))
}

/// Empty, or a zero.
fn is_null(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    text.is_empty() || (!digits.is_empty() && digits.iter().all(|digit| *digit == b'0'))
}

fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+')).and_then(|text| text.parse().ok())
}

/// Whether a text is a number of any length.
fn looks_as_integer(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// A position or length of `substr`: what is not a number, or negative, selects nothing.
fn position(text: &[u8]) -> usize {
    match (looks_as_integer(text), text.starts_with(b"-")) {
        (true, false) => integer(text).and_then(|number| usize::try_from(number).ok()).unwrap_or(usize::MAX),
        _ => 0,
    }
}

impl Parser<'_, '_> {
    /// The number that an operand is; `None` if it is another text.
    fn number(&self, text: &[u8]) -> Run<Option<i128>> {
        if !looks_as_integer(text) {
            return Ok(None);
        }
        match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => self.shell.unsupported(b"a number of more than 128 bits"),
        }
    }

    fn wrong<T>(&mut self, what: &[u8]) -> Run<T> {
        complain(self.shell, "expr", what)?;
        Err(Stop::Error)
    }

    fn level(&mut self, level: usize) -> Run<Vec<u8>> {
        let Some(operators) = LEVELS.get(level) else { return self.primary() };
        let mut left = self.level(level + 1)?;
        while let Some(operator) = self.args.get(self.at).filter(|arg| operators.contains(&&arg[..])).cloned() {
            self.at += 1;
            let right = self.level(level + 1)?;
            left = self.apply(&operator, left, right)?;
        }
        Ok(left)
    }

    /// An operand of a function, which may be one again.
    fn inner(&mut self) -> Run<Vec<u8>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.shell.unsupported(b"so many functions");
        }
        let operand = self.primary()?;
        self.depth -= 1;
        Ok(operand)
    }

    fn primary(&mut self) -> Run<Vec<u8>> {
        let Some(token) = self.args.get(self.at).cloned() else { return self.wrong(b"syntax error: missing argument") };
        self.at += 1;
        let operand = |parser: &mut Self| {
            let found = parser.args.get(parser.at).cloned();
            parser.at += 1;
            found.map_or_else(|| parser.wrong(b"syntax error: missing argument"), Ok)
        };
        match &token[..] {
            b"(" => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return self.shell.unsupported(b"so many parentheses");
                }
                let inner = self.level(0)?;
                self.depth -= 1;
                if operand(self)? != b")" {
                    return self.wrong(b"syntax error: expecting ')'");
                }
                Ok(inner)
            }
            b"length" => Ok(self.inner()?.len().to_string().into_bytes()),
            b"match" => {
                let (text, pattern) = (self.inner()?, self.inner()?);
                self.matching(&text, &pattern)
            }
            b"substr" => {
                let (text, from, len) = (self.inner()?, self.inner()?, self.inner()?);
                let (from, len) = (position(&from), position(&len));
                let kept = if from == 0 { 0 } else { len };
                Ok(text.iter().copied().skip(from.saturating_sub(1)).take(kept).collect())
            }
            b"index" => {
                let (text, set) = (self.inner()?, self.inner()?);
                let at = text.iter().position(|byte| set.contains(byte)).map_or(0, |at| at + 1);
                Ok(at.to_string().into_bytes())
            }
            b"+" => operand(self),
            _ => Ok(token),
        }
    }

    /// `text : pattern`: anchored at the start; the group, or the length of the match.
    fn matching(&mut self, text: &[u8], pattern: &[u8]) -> Run<Vec<u8>> {
        let pattern = pattern.strip_prefix(b"^").unwrap_or(pattern);
        let anchored = [b"^", pattern].concat();
        let expression = Expression::new(self.shell, &anchored, Syntax::Basic, false)?;
        let places = expression.find(self.shell, text, 0)?;
        let has_group = pattern.windows(2).any(|window| window == b"\\(");
        Ok(match (places, has_group) {
            (Some(places), true) => {
                places.get(1).copied().flatten().map_or(Vec::new(), |(start, end)| text[start..end].to_vec())
            }
            (None, true) => Vec::new(),
            (Some(places), false) => {
                places.first().copied().flatten().map_or(0, |(_, end)| end).to_string().into_bytes()
            }
            (None, false) => b"0".to_vec(),
        })
    }

    fn apply(&mut self, operator: &[u8], left: Vec<u8>, right: Vec<u8>) -> Run<Vec<u8>> {
        let truth = |value: bool| Ok(if value { b"1".to_vec() } else { b"0".to_vec() });
        match operator {
            b"|" if !is_null(&left) => Ok(left),
            b"|" => Ok(if is_null(&right) { b"0".to_vec() } else { right }),
            b"&" => Ok(if is_null(&left) || is_null(&right) { b"0".to_vec() } else { left }),
            b":" => self.matching(&left, &right),
            b"<" | b"<=" | b"=" | b"==" | b"!=" | b">=" | b">" => {
                let order = match (self.number(&left)?, self.number(&right)?) {
                    (Some(left), Some(right)) => left.cmp(&right),
                    _ => left.cmp(&right),
                };
                truth(match operator {
                    b"<" => order.is_lt(),
                    b"<=" => order.is_le(),
                    b">" => order.is_gt(),
                    b">=" => order.is_ge(),
                    b"!=" => order.is_ne(),
                    _ => order.is_eq(),
                })
            }
            _ => {
                let (Some(left), Some(right)) = (self.number(&left)?, self.number(&right)?) else {
                    return self.wrong(b"non-integer argument");
                };
                let value = match operator {
                    b"+" => left.checked_add(right),
                    b"-" => left.checked_sub(right),
                    b"*" => left.checked_mul(right),
                    _ if right == 0 => return self.wrong(b"division by zero"),
                    b"/" => left.checked_div(right),
                    _ => left.checked_rem(right),
                };
                match value {
                    Some(value) => Ok(value.to_string().into_bytes()),
                    None => self.shell.unsupported(b"a number of more than 128 bits"),
                }
            }
        }
    }
}

pub(super) fn seq(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let (mut separator, mut pads, mut has_zeros) = (b"\n".to_vec(), false, false);
    let mut args = args.iter();
    let mut numbers = Vec::new();
    while let Some(arg) = args.next() {
        match (integer(arg), &arg[..]) {
            (Some(number), _) => {
                has_zeros |= arg.len() != number.to_string().len();
                numbers.push(number);
            }
            (None, b"-w" | b"--equal-width") => pads = true,
            (None, b"-s") => match args.next() {
                Some(text) => separator = text.clone(),
                None => return complain(shell, "seq", b"option requires an argument"),
            },
            (None, _) => match arg.strip_prefix(b"-s").or_else(|| arg.strip_prefix(b"--separator=")) {
                Some(text) => separator = text.to_vec(),
                None => return shell.unsupported(arg),
            },
        }
    }
    let (first, step, last) = match numbers[..] {
        [last] => (1, 1, last),
        [first, last] => (first, 1, last),
        [first, step, last] if step != 0 => (first, step, last),
        [_, 0, _] => return complain(shell, "seq", b"invalid Zero increment value"),
        _ => return complain(shell, "seq", b"missing or extra operand"),
    };
    if pads && has_zeros {
        return shell.unsupported(b"-w with leading zeros");
    }
    let width = if pads { first.to_string().len().max(last.to_string().len()) } else { 0 };
    let mut number = first;
    let mut out = Vec::new();
    while if step > 0 { number <= last } else { number >= last } {
        shell.step()?;
        if !out.is_empty() {
            out.extend_from_slice(&separator);
        }
        out.extend(format!("{number:0width$}").into_bytes());
        shell.spend_size(out.len(), 8)?;
        match number.checked_add(step) {
            Some(next) => number = next,
            None => break,
        }
    }
    if !out.is_empty() {
        out.push(b'\n');
    }
    shell.out(&out)?;
    Ok(0)
}
