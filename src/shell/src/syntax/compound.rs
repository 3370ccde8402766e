//! Compound commands: groups, branches, loops, functions.

use std::rc::Rc;

use super::reader::{Op, Token};
use super::words::{End, is_name};
use super::{Arm, ArmEnd, Lines, Node, Parser, Part, SyntaxError, Word};

impl Parser<'_, '_> {
    /// A compound command, if one begins here.
    pub(super) fn compound(&mut self) -> Result<Option<Node>, SyntaxError> {
        let bash = self.reader.language.is_bash();
        let token = self.peek()?;
        let parse: fn(&mut Self) -> Result<Node, SyntaxError> = match token {
            Token::Op(Op::Open) => Self::subshell,
            token => match token.reserved() {
                Some(b"{") => Self::group,
                Some(b"if") => Self::branches,
                Some(b"while" | b"until") => Self::conditional_loop,
                Some(b"for") => Self::for_loop,
                Some(b"case") => Self::case,
                Some(b"[[") if bash => Self::conditional,
                Some(b"function") if bash => Self::bash_function,
                Some(word @ (b"select" | b"coproc" | b"time")) if bash => {
                    let what = String::from_utf8_lossy(word).into_owned();
                    return Err(self.reader.unsupported(what));
                }
                _ => return Ok(None),
            },
        };
        self.nested(parse).map(Some)
    }

    pub(super) fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        if self.reader.depth >= super::MAX_DEPTH {
            return Err(SyntaxError::TooDeep { line: self.reader.line });
        }
        self.reader.depth += 1;
        let result = parse(self);
        self.reader.depth -= 1;
        result
    }

    fn subshell(&mut self) -> Result<Node, SyntaxError> {
        let line = self.reader.line;
        self.next()?;
        if self.reader.language.is_bash() && self.reader.raw() == Some(b'(') && self.reader.is_arithmetic() {
            self.reader.take();
            let expression = self.reader.quoted(End::Arithmetic)?;
            self.reader.assignable = false;
            let lines = Lines { first: line, last: self.reader.line };
            return Ok(Node::Arithmetic(expression, lines));
        }
        if self.reader.language.is_bash() && self.reader.raw() == Some(b'(') && self.reader.is_divided() {
            return Err(self.reader.unsupported("a subshell that begins another one over the end of a line"));
        }
        let body = self.list(false)?;
        self.expect(Op::Close)?;
        Ok(Node::Subshell(Rc::new(body), Lines { first: line, last: self.reader.line }))
    }

    fn group(&mut self) -> Result<Node, SyntaxError> {
        self.next()?;
        let body = self.list(false)?;
        self.expect_word(b"}")?;
        // A group is not the command in it: `|&` makes a difference.
        Ok(if self.reader.language.is_bash() { Node::Sequence(vec![body]) } else { body })
    }

    fn branches(&mut self) -> Result<Node, SyntaxError> {
        let mut branches = Vec::new();
        loop {
            self.next()?;
            let condition = self.list(false)?;
            self.expect_word(b"then")?;
            branches.push((condition, self.list(false)?));
            if !self.peek()?.is(b"elif") {
                break;
            }
        }
        let mut otherwise = None;
        if self.peek()?.is(b"else") {
            self.next()?;
            otherwise = Some(Box::new(self.list(false)?));
        }
        self.expect_word(b"fi")?;
        Ok(Node::If(branches, otherwise))
    }

    fn conditional_loop(&mut self) -> Result<Node, SyntaxError> {
        let until = self.next()?.is(b"until");
        let condition = Box::new(self.list(false)?);
        let body = Box::new(self.do_body()?);
        Ok(Node::Loop { until, condition, body })
    }

    fn loop_body(&mut self) -> Result<Node, SyntaxError> {
        if self.reader.language.is_bash() && self.peek()?.is(b"{") {
            return self.group();
        }
        self.do_body()
    }

    fn do_body(&mut self) -> Result<Node, SyntaxError> {
        self.expect_word(b"do")?;
        let body = self.list(false)?;
        self.expect_word(b"done")?;
        Ok(body)
    }

    fn for_loop(&mut self) -> Result<Node, SyntaxError> {
        let line = self.reader.line;
        self.next()?;
        let bash = self.reader.language.is_bash();
        if bash && self.peek()? == &Token::Op(Op::Open) {
            return self.arithmetic_for(line);
        }
        let token = self.next()?;
        let Some(name) = token.reserved().filter(|name| is_name(name)).map(<[u8]>::to_vec) else {
            return Err(self.reader.unexpected("bad for loop variable"));
        };
        let mut words = None;
        if self.peek()? == &Token::Op(Op::Semi) {
            self.next()?;
            self.newlines()?;
        } else {
            self.newlines()?;
            if self.peek()?.is(b"in") {
                self.next()?;
                words = Some(self.words()?);
                let token = self.next()?;
                if !matches!(token, Token::Newline | Token::Op(Op::Semi)) {
                    return Err(self.found(&token));
                }
                self.newlines()?;
            }
        }
        let body = Box::new(self.loop_body()?);
        Ok(Node::For { name, words, body, line })
    }

    /// `for ((init; condition; step))`, of bash.
    fn arithmetic_for(&mut self, line: u32) -> Result<Node, SyntaxError> {
        self.next()?;
        if self.reader.raw() != Some(b'(') || !self.reader.is_arithmetic() {
            return Err(self.reader.unexpected("“(” unexpected"));
        }
        self.reader.take();
        let expressions = divided(self.reader.quoted(End::Arithmetic)?);
        let Ok([init, condition, step]) = <[Vec<Part>; 3]>::try_from(expressions) else {
            return Err(self.reader.unexpected("three expressions are expected in “for ((”"));
        };
        self.reader.assignable = true;
        if self.peek()? == &Token::Op(Op::Semi) {
            self.next()?;
        }
        self.newlines()?;
        let body = Box::new(self.loop_body()?);
        Ok(Node::ForArithmetic { init, condition, step, body, line })
    }

    fn words(&mut self) -> Result<Vec<Word>, SyntaxError> {
        let mut words = Vec::new();
        let outer = std::mem::take(&mut self.reader.name_before_brace);
        while let Token::Word(_) = self.peek()? {
            if let Token::Word(word) = self.next()? {
                words.extend(self.reader.expand_braces(word)?);
            }
        }
        self.reader.name_before_brace = outer;
        Ok(words)
    }

    fn one_word(&mut self) -> Result<Word, SyntaxError> {
        match self.next()? {
            Token::Word(Word { parts, .. }) if matches!(parts[..], [Part::Assignment(_)]) => {
                Err(self.reader.unsupported("an assignment to an array here"))
            }
            Token::Word(word) => Ok(word),
            // A number before `<` is not a word here either.
            token => Err(self.found(&token)),
        }
    }

    fn case(&mut self) -> Result<Node, SyntaxError> {
        let line = self.reader.line;
        self.next()?;
        let subject = self.one_word()?;
        self.newlines()?;
        self.expect_word(b"in")?;
        let mut arms = Vec::new();
        loop {
            self.newlines()?;
            if self.peek()?.is(b"esac") {
                self.next()?;
                break;
            }
            if self.peek()? == &Token::Op(Op::Open) {
                self.next()?;
            }
            let mut patterns = vec![self.one_word()?];
            while self.peek()? == &Token::Op(Op::Pipe) {
                self.next()?;
                patterns.push(self.one_word()?);
            }
            self.expect(Op::Close)?;
            self.newlines()?;
            let empty = self.peek()?.is(b"esac") || arm_end(self.peek()?).is_some();
            let body = if empty { None } else { Some(self.list(false)?) };
            let end = arm_end(self.peek()?);
            arms.push(Arm { patterns, body, end: end.unwrap_or(ArmEnd::Leave) });
            if end.is_some() {
                self.next()?;
            } else if !self.peek()?.is(b"esac") {
                self.expect(Op::SemiSemi)?;
            }
        }
        Ok(Node::Case { subject, arms, line })
    }

    /// The body of a function behind its parentheses.
    pub(super) fn function_body(&mut self, name: Vec<u8>, line: u32) -> Result<Node, SyntaxError> {
        self.newlines()?;
        let body = match self.nested(Self::compound_command)? {
            Some(body) => body,
            None if self.reader.language.is_bash() => {
                return Err(self.reader.unexpected("the body of a function is not a compound command"));
            }
            None => self.nested(Self::command)?,
        };
        let body = Rc::new(body);
        Ok(Node::Function { name, body, line })
    }

    /// `function name [()]`, of bash.
    fn bash_function(&mut self) -> Result<Node, SyntaxError> {
        let line = self.reader.line;
        self.next()?;
        let token = self.next()?;
        let Some(name) = token.reserved().map(<[u8]>::to_vec) else { return Err(self.found(&token)) };
        if self.peek()? == &Token::Op(Op::Open) {
            self.next()?;
            self.expect(Op::Close)?;
        }
        self.function_body(name, line)
    }
}

/// The end of an arm of `case`.
fn arm_end(token: &Token) -> Option<ArmEnd> {
    match token {
        Token::Op(Op::SemiSemi) => Some(ArmEnd::Leave),
        Token::Op(Op::SemiAmp) => Some(ArmEnd::FallThrough),
        Token::Op(Op::SemiSemiAmp) => Some(ArmEnd::Continue),
        _ => None,
    }
}

/// An expression divided at its semicolons.
fn divided(parts: Vec<Part>) -> Vec<Vec<Part>> {
    let mut expressions = vec![Vec::new()];
    for part in parts {
        let Part::Literal(bytes) = part else {
            expressions.last_mut().into_iter().for_each(|last| last.push(part.clone()));
            continue;
        };
        for (at, piece) in bytes.split(|byte| *byte == b';').enumerate() {
            if at > 0 {
                expressions.push(Vec::new());
            }
            if let Some(last) = expressions.last_mut().filter(|_| !piece.is_empty()) {
                last.push(Part::Literal(piece.to_vec()));
            }
        }
    }
    expressions
}
