//! `[[ … ]]`, for scripts of bash.

use super::reader::{Op, Reader, Token};
use super::words::Stop;
use super::{Condition, Lines, Node, Parser, SyntaxError, Word};

/// Operators with one operand.
const UNARY: &[u8] = b"abcdefghkLnoprsStuvwxzGNOR";

/// Operators with two operands, without `<` and `>`.
const BINARY: [&[u8]; 13] =
    [b"=", b"==", b"!=", b"=~", b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge", b"-nt", b"-ot", b"-ef"];

impl Parser<'_, '_> {
    pub(super) fn conditional(&mut self) -> Result<Node, SyntaxError> {
        let line = self.reader.line;
        self.next()?;
        let condition = self.condition_or()?;
        self.peek_condition()?;
        self.expect_word(b"]]")?;
        Ok(Node::Conditional(Box::new(condition), Lines { first: line, last: self.reader.line }))
    }

    fn condition_or(&mut self) -> Result<Condition, SyntaxError> {
        let mut parts = vec![self.condition_and()?];
        while self.peek_condition()? == &Token::Op(Op::Or) {
            self.next()?;
            parts.push(self.condition_and()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::Any(parts) })
    }

    fn condition_and(&mut self) -> Result<Condition, SyntaxError> {
        let mut parts = vec![self.condition_one()?];
        while self.peek_condition()? == &Token::Op(Op::And) {
            self.next()?;
            parts.push(self.condition_one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::All(parts) })
    }

    /// The next token; newlines between the terms of a condition are blanks.
    fn peek_condition(&mut self) -> Result<&Token, SyntaxError> {
        self.reader.assignable = false;
        self.newlines()?;
        self.reader.assignable = false;
        self.peek()
    }

    /// The next token inside of a term.
    fn peek_operator(&mut self) -> Result<&Token, SyntaxError> {
        self.reader.assignable = false;
        self.peek()
    }

    fn condition_one(&mut self) -> Result<Condition, SyntaxError> {
        self.peek_condition()?;
        let token = self.next()?;
        self.reader.assignable = false;
        if token.is(b"!") {
            return Ok(Condition::Not(Box::new(self.nested(Self::condition_one)?)));
        }
        if token == Token::Op(Op::Open) {
            let inner = self.nested(Self::condition_or)?;
            self.peek_condition()?;
            self.expect(Op::Close)?;
            return Ok(inner);
        }
        let Token::Word(word) = token else { return Err(self.found(&token)) };
        if word.literal() == Some(b"]]") {
            return Err(self.found(&Token::Word(word)));
        }
        if let Some([b'-', letter]) = word.literal()
            && UNARY.contains(letter)
        {
            return self.unary(*letter);
        }
        self.binary(word)
    }

    /// An operator with its operand.
    fn unary(&mut self, letter: u8) -> Result<Condition, SyntaxError> {
        self.peek_operator()?;
        match self.next()? {
            Token::Word(operand) if operand.literal() != Some(b"]]") => {
                Ok(Condition::Unary(vec![b'-', letter], operand))
            }
            token => Err(self.found(&token)),
        }
    }

    fn binary(&mut self, word: Word) -> Result<Condition, SyntaxError> {
        let operator = match self.peek_operator()? {
            Token::Op(Op::Less) => b"<".to_vec(),
            Token::Op(Op::Great) => b">".to_vec(),
            token if token.is(b"]]") => return Ok(Condition::Word(word)),
            Token::Word(operator) if is_binary(operator) => operator.literal().unwrap_or_default().to_vec(),
            Token::Op(Op::And | Op::Or | Op::Close) => return Ok(Condition::Word(word)),
            token => {
                let token = token.clone();
                return Err(self.found(&token));
            }
        };
        self.next()?;
        self.reader.assignable = false;
        let right = match &operator[..] {
            b"=~" => self.reader.regex()?,
            b"=" | b"==" | b"!=" => {
                let extglob = std::mem::replace(&mut self.reader.extglob, true);
                let token = self.next();
                self.reader.extglob = extglob;
                match token? {
                    Token::Word(right) => right,
                    token => return Err(self.found(&token)),
                }
            }
            _ => match self.next()? {
                Token::Word(right) => right,
                token => return Err(self.found(&token)),
            },
        };
        Ok(Condition::Binary(word, operator, right))
    }
}

impl Reader<'_> {
    /// The right side of `=~`.
    fn regex(&mut self) -> Result<Word, SyntaxError> {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.take();
        }
        let parts = self.plain(Stop::Regex)?;
        if parts.is_empty() { Err(self.unexpected("a regular expression is missing")) } else { Ok(Word::new(parts)) }
    }
}

fn is_binary(word: &Word) -> bool {
    word.literal().is_some_and(|word| BINARY.contains(&word))
}
