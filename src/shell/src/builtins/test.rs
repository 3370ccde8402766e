//! `test` and `[`.

use crate::eval::Run;
use crate::files::{Aspect, Follow, Node, NodeKind};
use crate::host::Question;
use crate::shell::Shell;

/// Deepest nesting of `!` and parentheses.
const MAX_DEPTH: u32 = 100;

const BINARY: [&[u8]; 13] =
    [b"=", b"!=", b"<", b">", b"-eq", b"-ne", b"-gt", b"-ge", b"-lt", b"-le", b"-nt", b"-ot", b"-ef"];

/// The kind of a token that is not an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Not,
    Open,
    Close,
    And,
    Or,
    Unary,
    Binary,
}

fn operator(token: &[u8]) -> Option<Operator> {
    Some(match token {
        b"!" => Operator::Not,
        b"(" => Operator::Open,
        b")" => Operator::Close,
        b"-a" => Operator::And,
        b"-o" => Operator::Or,
        [b'-', letter] if b"rwxefdcbpugkstznhLOGS".contains(letter) => Operator::Unary,
        token if BINARY.contains(&token) => Operator::Binary,
        _ => return None,
    })
}

fn is_binary(token: &[u8]) -> bool {
    BINARY.contains(&token)
}

/// `[`
pub(super) fn bracket(shell: &mut Shell<'_>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
    match args.split_last() {
        Some((last, args)) if last == b"]" => test(shell, args, tested),
        _ => Err(shell.shell_error(b"[: missing ]")),
    }
}

/// `test`
pub(super) fn test(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut args = args;
    let mut negated = false;
    // POSIX tells what three and four operands mean; more are left to the grammar.
    loop {
        match args {
            [] => return Ok(u8::from(!negated)),
            [left, middle, right] if is_binary(middle) => {
                return Ok(u8::from(binary(shell, left, middle, right)? == negated));
            }
            [first, .., last] if matches!(args.len(), 3 | 4) && first == b"(" && last == b")" => {
                args = &args[1..args.len() - 1];
                break;
            }
            [first, rest @ ..] if matches!(args.len(), 3 | 4) && first == b"!" => {
                negated = !negated;
                args = rest;
            }
            _ => break,
        }
    }
    let mut expression = Expression { shell, args, at: 0, depth: 0 };
    let result = expression.either()?;
    if expression.at < args.len() {
        let found = args[expression.at].clone();
        return expression.wrong(&found, "unexpected operator");
    }
    Ok(u8::from(result == negated))
}

struct Expression<'e, 'h> {
    shell: &'e mut Shell<'h>,
    args: &'e [Vec<u8>],
    at: usize,
    depth: u32,
}

impl Expression<'_, '_> {
    fn wrong<T>(&mut self, token: &[u8], what: &str) -> Run<T> {
        let message = [b"test: ", token, b": ", what.as_bytes()].concat();
        Err(self.shell.shell_error(&message))
    }

    fn token(&self, ahead: usize) -> Option<&[u8]> {
        self.args.get(self.at + ahead).map(Vec::as_slice)
    }

    /// The operator at a place, unless it is an operand.
    fn operator(&self, ahead: usize) -> Option<Operator> {
        let found = operator(self.token(ahead)?)?;
        let next = self.token(ahead + 1);
        let operand = match found {
            Operator::Unary => match next {
                None => true,
                Some(next) => self.token(ahead + 2).is_some() && is_binary(next),
            },
            Operator::Open => next.is_none(),
            _ => false,
        };
        if operand { None } else { Some(found) }
    }

    fn either(&mut self) -> Run<bool> {
        let mut result = self.both()?;
        while self.operator(0) == Some(Operator::Or) {
            self.at += 1;
            result |= self.both()?;
        }
        Ok(result)
    }

    fn both(&mut self) -> Run<bool> {
        let mut result = self.negated()?;
        while self.operator(0) == Some(Operator::And) {
            self.at += 1;
            result &= self.negated()?;
        }
        Ok(result)
    }

    fn negated(&mut self) -> Run<bool> {
        if self.operator(0) != Some(Operator::Not) {
            return self.primary();
        }
        if self.token(1).is_none() {
            self.at += 1;
            return Ok(true);
        }
        self.at += 1;
        self.deeper()?;
        let result = !self.negated()?;
        self.depth -= 1;
        Ok(result)
    }

    fn deeper(&mut self) -> Run<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let kind = crate::ErrorKind::Limit { what: "nested expressions", limit: MAX_DEPTH.into() };
            return Err(self.shell.fatal(kind));
        }
        Ok(())
    }

    fn primary(&mut self) -> Run<bool> {
        let Some(token) = self.token(0).map(<[u8]>::to_vec) else { return Ok(false) };
        match self.operator(0) {
            Some(Operator::Open) => {
                self.at += 1;
                if self.operator(0) == Some(Operator::Close) {
                    self.at += 1;
                    return Ok(false);
                }
                self.deeper()?;
                let result = self.either()?;
                self.depth -= 1;
                if self.token(0) != Some(b")") {
                    return self.wrong(b")", "closing paren expected");
                }
                self.at += 1;
                Ok(result)
            }
            Some(Operator::Unary) => {
                let Some(operand) = self.token(1).map(<[u8]>::to_vec) else {
                    return self.wrong(&token, "argument expected");
                };
                self.at += 2;
                unary(self.shell, &token, &operand)
            }
            _ => match self.token(1).map(<[u8]>::to_vec).filter(|next| is_binary(next)) {
                Some(operator) => {
                    let Some(right) = self.token(2).map(<[u8]>::to_vec) else {
                        return self.wrong(&operator, "argument expected");
                    };
                    self.at += 3;
                    binary(self.shell, &token, &operator, &right)
                }
                None => {
                    self.at += 1;
                    self.shell.ask(Question::Value(&token))?;
                    Ok(!token.is_empty())
                }
            },
        }
    }
}

/// A number as dash reads it.
fn number(shell: &mut Shell<'_>, text: &[u8]) -> Run<i64> {
    match super::integer(text) {
        Some(number) => Ok(number),
        None => Err(shell.shell_error(&[b"test: Illegal number: ", text].concat())),
    }
}

/// An operator with one operand.
pub(crate) fn unary(shell: &mut Shell<'_>, operator: &[u8], operand: &[u8]) -> Run<bool> {
    shell.ask(Question::Value(operand))?;
    if operand.starts_with(b"/dev/fd/") && !matches!(operator, b"-z" | b"-n") {
        return shell.unsupported(b"a test of a descriptor's path");
    }
    let node = |shell: &Shell<'_>, follow: Follow| shell.stat(operand, follow).ok();
    let is = |shell: &Shell<'_>, fits: fn(&Node) -> bool| node(shell, Follow::Yes).is_some_and(|node| fits(&node));
    match operator {
        b"-h" | b"-L" => shell.inspect(operand, Follow::No, Aspect::Kind),
        b"-s" if is(shell, Node::is_file) => shell.inspect(operand, Follow::Yes, Aspect::Emptiness),
        b"-x" if is(shell, Node::is_file) => shell.inspect(operand, Follow::Yes, Aspect::Mode),
        b"-u" | b"-g" | b"-k" => shell.inspect(operand, Follow::Yes, Aspect::Mode),
        _ => {}
    }
    Ok(match operator {
        b"-z" => operand.is_empty(),
        b"-n" => !operand.is_empty(),
        // No descriptor is a terminal.
        b"-t" => {
            number(shell, operand)?;
            false
        }
        b"-e" | b"-r" | b"-w" => is(shell, |_| true),
        b"-f" => is(shell, Node::is_file),
        b"-d" => is(shell, Node::is_dir),
        b"-c" => is(shell, |node| node.kind == NodeKind::CharDevice),
        b"-b" => is(shell, |node| node.kind == NodeKind::BlockDevice),
        b"-p" => is(shell, |node| node.kind == NodeKind::Fifo),
        b"-S" => is(shell, |node| node.kind == NodeKind::Socket),
        b"-h" | b"-L" => node(shell, Follow::No).is_some_and(|node| node.is_symlink()),
        b"-s" => is(shell, |node| node.size > 0 || node.is_dir()),
        b"-x" => is(shell, |node| node.is_dir() || node.mode & 0o111 != 0),
        b"-u" => is(shell, |node| node.mode & 0o4000 != 0),
        b"-g" => is(shell, |node| node.mode & 0o2000 != 0),
        b"-k" => is(shell, |node| node.mode & 0o1000 != 0),
        b"-O" => is(shell, |node| node.uid == 0),
        b"-G" => is(shell, |node| node.gid == 0),
        other => return shell.unsupported(other),
    })
}

/// `-nt`, given the times of files that exist. For bash, a file is newer than one that does not exist.
fn newer(shell: &Shell<'_>, file: Option<Node>, other: Option<Node>) -> Run<bool> {
    match (file, other) {
        (file, None) => Ok(file.is_some() && shell.state.language.is_bash()),
        (None, _) => Ok(false),
        (Some(file), Some(other)) if file.id == other.id => Ok(false),
        (Some(file), Some(other)) => shell.is_newer(file.mtime, other.mtime),
    }
}

/// What an operator gives that compares texts or numbers; `None` for an operand that is not a number.
fn compared(left: &[u8], operator: &[u8], right: &[u8]) -> Option<bool> {
    let numbers = || Some((super::integer(left)?, super::integer(right)?));
    match operator {
        b"<" => Some(left < right),
        b">" => Some(left > right),
        b"-eq" => numbers().map(|(left, right)| left == right),
        b"-ne" => numbers().map(|(left, right)| left != right),
        b"-gt" => numbers().map(|(left, right)| left > right),
        b"-ge" => numbers().map(|(left, right)| left >= right),
        b"-lt" => numbers().map(|(left, right)| left < right),
        b"-le" => numbers().map(|(left, right)| left <= right),
        _ => None,
    }
}

/// An operator with two operands.
pub(crate) fn binary(shell: &mut Shell<'_>, left: &[u8], operator: &[u8], right: &[u8]) -> Run<bool> {
    shell.ask(Question::Value(left))?;
    shell.ask(Question::Value(right))?;
    if matches!(operator, b"<" | b">" | b"-eq" | b"-ne" | b"-gt" | b"-ge" | b"-lt" | b"-le") {
        shell.require_same(&[left, right], |texts| match texts {
            [left, right] => compared(left, operator, right),
            _ => None,
        })?;
    }
    let node = |operand: &[u8]| shell.stat(operand, Follow::Yes).ok();
    if matches!(operator, b"-nt" | b"-ot") && node(left).is_some() && node(right).is_some() {
        shell.inspect(left, Follow::Yes, Aspect::Time);
        shell.inspect(right, Follow::Yes, Aspect::Time);
    }
    Ok(match operator {
        b"=" | b"==" => left == right,
        b"!=" => left != right,
        b"-nt" => newer(shell, node(left), node(right))?,
        b"-ot" => newer(shell, node(right), node(left))?,
        b"-ef" => {
            let node = |operand: &[u8]| shell.stat(operand, Follow::Yes).ok().map(|node| node.id);
            node(left).is_some() && node(left) == node(right)
        }
        b"<" | b">" => compared(left, operator, right).unwrap_or_default(),
        _ => {
            number(shell, left)?;
            number(shell, right)?;
            match compared(left, operator, right) {
                Some(result) => result,
                None => return shell.unsupported(operator),
            }
        }
    })
}
