//! Compound commands: groups, branches, loops, functions.

use std::rc::Rc;

use super::reader::{Op, Token};
use super::words::is_name;
use super::{Arm, ArmEnd, Node, Parser, SyntaxError, Word};

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
        let body = self.list(false)?;
        self.expect(Op::Close)?;
        Ok(Node::Subshell(Rc::new(body), line))
    }

    fn group(&mut self) -> Result<Node, SyntaxError> {
        self.next()?;
        let body = self.list(false)?;
        self.expect_word(b"}")?;
        Ok(body)
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
        let body = Box::new(self.loop_body()?);
        Ok(Node::Loop { until, condition, body })
    }

    fn loop_body(&mut self) -> Result<Node, SyntaxError> {
        self.expect_word(b"do")?;
        let body = self.list(false)?;
        self.expect_word(b"done")?;
        Ok(body)
    }

    fn for_loop(&mut self) -> Result<Node, SyntaxError> {
        let line = self.reader.line;
        self.next()?;
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

    fn words(&mut self) -> Result<Vec<Word>, SyntaxError> {
        let mut words = Vec::new();
        while let Token::Word(_) = self.peek()? {
            if let Token::Word(word) = self.next()? {
                words.push(word);
            }
        }
        Ok(words)
    }

    fn one_word(&mut self) -> Result<Word, SyntaxError> {
        match self.next()? {
            Token::Word(word) => Ok(word),
            // A number before `<` is no word here either.
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
            let empty = self.peek()?.is(b"esac") || self.peek()? == &Token::Op(Op::SemiSemi);
            let body = if empty { None } else { Some(self.list(false)?) };
            arms.push(Arm { patterns, body, end: ArmEnd::Leave });
            if !self.peek()?.is(b"esac") {
                self.expect(Op::SemiSemi)?;
            }
        }
        Ok(Node::Case { subject, arms, line })
    }

    /// The body of a function behind its parentheses.
    pub(super) fn function_body(&mut self, name: Vec<u8>, line: u32) -> Result<Node, SyntaxError> {
        self.newlines()?;
        let body = Rc::new(self.nested(Self::command)?);
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
