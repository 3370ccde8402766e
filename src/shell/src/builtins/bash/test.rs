//! `test` and `[` of bash, and the operators of `[[ ]]`.

use crate::builtins::test as dash;
use crate::eval::{Run, Stop};
use crate::host::Question;
use crate::shell::Shell;
use crate::variables::divide_reference;

/// Deepest nesting of `!` and parentheses.
const MAX_DEPTH: u32 = 100;

const BINARY: [&[u8]; 14] =
    [b"=", b"==", b"!=", b"<", b">", b"-eq", b"-ne", b"-gt", b"-ge", b"-lt", b"-le", b"-nt", b"-ot", b"-ef"];

fn is_binary(token: &[u8]) -> bool {
    BINARY.contains(&token)
}

fn is_unary(token: &[u8]) -> bool {
    matches!(token, [b'-', letter] if b"abcdefghknoprstuvwxzGLNORS".contains(letter))
}

/// `[`
pub(in crate::builtins) fn bracket(shell: &mut Shell<'_>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
    match args.split_last() {
        Some((last, args)) if last == b"]" => test(shell, args, tested),
        _ => {
            shell.complain(b"[: missing `]'")?;
            Ok(2)
        }
    }
}

/// `test`
pub(in crate::builtins) fn test(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut expression = Expression { shell, args, at: 0, depth: 0 };
    match expression.whole() {
        Ok(result) => Ok(u8::from(!result)),
        Err(Stop::Error) => Ok(2),
        Err(stop) => Err(stop),
    }
}

struct Expression<'e, 'h> {
    shell: &'e mut Shell<'h>,
    args: &'e [Vec<u8>],
    at: usize,
    depth: u32,
}

impl Expression<'_, '_> {
    fn wrong<T>(&mut self, message: &[u8]) -> Run<T> {
        self.shell.complain(&[b"test: ", message].concat())?;
        Err(Stop::Error)
    }

    /// What POSIX says of up to four operands; more are left to the grammar.
    fn whole(&mut self) -> Run<bool> {
        let args = self.args;
        match args.len() {
            0 => Ok(false),
            1 => self.word(&args[0]),
            2 => self.two(args),
            3 => self.three(args),
            4 if args[0] == b"!" => Ok(!self.three(&args[1..])?),
            4 if args[0] == b"(" && args[3] == b")" => self.two(&args[1..3]),
            _ => {
                let result = self.either()?;
                if self.at < args.len() { self.wrong(b"too many arguments") } else { Ok(result) }
            }
        }
    }

    fn word(&mut self, text: &[u8]) -> Run<bool> {
        self.shell.ask(Question::Value(text))?;
        Ok(!text.is_empty())
    }

    fn two(&mut self, args: &[Vec<u8>]) -> Run<bool> {
        if args[0] == b"!" {
            return Ok(!self.word(&args[1])?);
        }
        if is_unary(&args[0]) {
            return unary(self.shell, &args[0], &args[1]);
        }
        self.wrong(b"unary operator expected")
    }

    fn three(&mut self, args: &[Vec<u8>]) -> Run<bool> {
        let [left, middle, right] = args else { return self.wrong(b"argument expected") };
        if is_binary(middle) {
            return compare(self.shell, left, middle, right);
        }
        match &middle[..] {
            b"-a" => Ok(self.word(left)? & self.word(right)?),
            b"-o" => Ok(self.word(left)? | self.word(right)?),
            _ if left == b"!" => Ok(!self.two(&args[1..])?),
            _ if left == b"(" && right == b")" => self.word(middle),
            _ => self.wrong(b"binary operator expected"),
        }
    }

    fn token(&self, ahead: usize) -> Option<&[u8]> {
        self.args.get(self.at + ahead).map(Vec::as_slice)
    }

    fn either(&mut self) -> Run<bool> {
        let mut result = self.both()?;
        while self.token(0) == Some(b"-o") {
            self.at += 1;
            result |= self.both()?;
        }
        Ok(result)
    }

    fn both(&mut self) -> Run<bool> {
        let mut result = self.term()?;
        while self.token(0) == Some(b"-a") {
            self.at += 1;
            result &= self.term()?;
        }
        Ok(result)
    }

    fn deeper(&mut self, inner: fn(&mut Self) -> Run<bool>) -> Run<bool> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.shell.unsupported(b"an expression nested so deeply");
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn term(&mut self) -> Run<bool> {
        let Some(token) = self.token(0).map(<[u8]>::to_vec) else { return self.wrong(b"argument expected") };
        if token == b"!" {
            self.at += 1;
            return self.deeper(Self::term).map(|result| !result);
        }
        if token == b"(" {
            self.at += 1;
            let result = self.deeper(Self::either)?;
            if self.token(0) != Some(b")") {
                return self.wrong(b"`)' expected");
            }
            self.at += 1;
            return Ok(result);
        }
        if let (Some(operator), Some(right)) = (self.token(1), self.token(2))
            && is_binary(operator)
        {
            let (operator, right) = (operator.to_vec(), right.to_vec());
            self.at += 3;
            return compare(self.shell, &token, &operator, &right);
        }
        if is_unary(&token)
            && let Some(operand) = self.token(1).map(<[u8]>::to_vec)
        {
            self.at += 1;
            if token == b"-t" && crate::builtins::integer(&operand).is_none() {
                return Ok(false);
            }
            self.at += 1;
            return unary(self.shell, &token, &operand);
        }
        self.at += 1;
        self.word(&token)
    }
}

/// An operator with two operands of `test`.
fn compare(shell: &mut Shell<'_>, left: &[u8], operator: &[u8], right: &[u8]) -> Run<bool> {
    if operator.len() != 3 || matches!(operator, b"-nt" | b"-ot" | b"-ef") {
        return dash::binary(shell, left, operator, right);
    }
    shell.ask(Question::Value(left))?;
    shell.ask(Question::Value(right))?;
    let (left, right) = (number(shell, left)?, number(shell, right)?);
    Ok(holds(operator, left, right))
}

fn holds(operator: &[u8], left: i64, right: i64) -> bool {
    match operator {
        b"-eq" => left == right,
        b"-ne" => left != right,
        b"-gt" => left > right,
        b"-ge" => left >= right,
        b"-lt" => left < right,
        _ => left <= right,
    }
}

/// A decimal number.
fn number(shell: &mut Shell<'_>, text: &[u8]) -> Run<i64> {
    let trimmed = text.trim_ascii();
    match std::str::from_utf8(trimmed).ok().and_then(|digits| digits.parse::<i64>().ok()) {
        Some(number) => Ok(number),
        None => {
            shell.complain(&[b"test: ", text, b": integer expression expected"].concat())?;
            Err(Stop::Error)
        }
    }
}

/// An operator with two operands of `[[ ]]` other than those with patterns: numbers are expressions.
pub(crate) fn binary(shell: &mut Shell<'_>, left: &[u8], operator: &[u8], right: &[u8]) -> Run<bool> {
    match operator {
        b"-eq" | b"-ne" | b"-gt" | b"-ge" | b"-lt" | b"-le" => {
            let Some(left) = shell.try_evaluate(left)? else { return Ok(false) };
            let Some(right) = shell.try_evaluate(right)? else { return Ok(false) };
            Ok(holds(operator, left, right))
        }
        _ => dash::binary(shell, left, operator, right),
    }
}

/// An operator with one operand.
pub(crate) fn unary(shell: &mut Shell<'_>, operator: &[u8], operand: &[u8]) -> Run<bool> {
    match operator {
        b"-a" => dash::unary(shell, b"-e", operand),
        b"-v" => is_set(shell, operand),
        b"-R" => Ok(shell.state.variables.get(operand).is_some_and(|found| found.attributes.nameref)),
        b"-o" => Ok(crate::builtins::is_set(&shell.state.flags, &String::from_utf8_lossy(operand))),
        b"-t" if operand.iter().any(|byte| !byte.is_ascii_digit()) => Ok(false),
        _ => dash::unary(shell, operator, operand),
    }
}

/// `-v name`, `-v name[subscript]`
fn is_set(shell: &mut Shell<'_>, operand: &[u8]) -> Run<bool> {
    if !operand.is_empty() && operand.iter().all(u8::is_ascii_digit) {
        let index = std::str::from_utf8(operand).ok().and_then(|digits| digits.parse::<usize>().ok());
        return Ok(index.is_some_and(|index| index <= shell.state.params.len()));
    }
    match divide_reference(operand) {
        None => Ok(false),
        Some((name, None)) => {
            let is_set = shell.scalar_value(name)?.is_some();
            if !is_set {
                shell.ask(Question::Unset(name))?;
            }
            Ok(is_set)
        }
        Some((name, Some(b"@" | b"*"))) if !shell.is_associative(name) => Ok(!shell.elements(name)?.is_empty()),
        Some((_, Some(b"@" | b"*"))) => shell.unsupported(b"-v of all elements"),
        Some((name, Some(subscript))) => {
            let subscript = shell.given_subscript(subscript)?;
            Ok(shell.element(name, &subscript)?.is_some())
        }
    }
}
