//! `[[ … ]]`, for scripts of bash.

use super::reader::{Op, Token};
use super::{Condition, Node, Parser, SyntaxError};

/// Operators with one operand.
const UNARY: &[u8] = b"bcdefghkLnprsStuvwxzGNO";

impl Parser<'_, '_> {
    pub(super) fn conditional(&mut self) -> Result<Node, SyntaxError> {
        let line = self.reader.line;
        self.next()?;
        let condition = self.condition_or()?;
        self.expect_word(b"]]")?;
        Ok(Node::Conditional(Box::new(condition), line))
    }

    fn condition_or(&mut self) -> Result<Condition, SyntaxError> {
        let mut parts = vec![self.condition_and()?];
        while self.peek()? == &Token::Op(Op::Or) {
            self.next()?;
            parts.push(self.condition_and()?);
        }
        Ok(Condition::Any(parts))
    }

    fn condition_and(&mut self) -> Result<Condition, SyntaxError> {
        let mut parts = vec![self.condition_one()?];
        while self.peek()? == &Token::Op(Op::And) {
            self.next()?;
            parts.push(self.condition_one()?);
        }
        Ok(Condition::All(parts))
    }

    fn condition_one(&mut self) -> Result<Condition, SyntaxError> {
        self.newlines()?;
        let token = self.next()?;
        if token.is(b"!") {
            return Ok(Condition::Not(Box::new(self.nested(Self::condition_one)?)));
        }
        if token == Token::Op(Op::Open) {
            let inner = self.nested(Self::condition_or)?;
            self.expect(Op::Close)?;
            return Ok(inner);
        }
        let Token::Word(word) = token else { return Err(self.found(&token)) };
        if let Some([b'-', letter]) = word.literal()
            && UNARY.contains(letter)
            && let Token::Word(_) = self.peek()?
            && let Token::Word(operand) = self.next()?
        {
            return Ok(Condition::Unary(vec![b'-', *letter], operand));
        }
        let operator = match self.peek()? {
            Token::Op(Op::Less) => b"<".to_vec(),
            Token::Op(Op::Great) => b">".to_vec(),
            token if token.is(b"]]") => return Ok(Condition::Word(word)),
            Token::Word(operator) => operator.literal().unwrap_or_default().to_vec(),
            _ => return Ok(Condition::Word(word)),
        };
        self.next()?;
        match self.next()? {
            Token::Word(right) => Ok(Condition::Binary(word, operator, right)),
            token => Err(self.found(&token)),
        }
    }
}
