//! Redirections.

use std::cell::OnceCell;
use std::rc::Rc;

use super::here_document::Pending;
use super::reader::{Op, Token};
use super::{Descriptor, Node, Parser, Part, Redirect, SyntaxError, Target, Word};

impl Parser<'_, '_> {
    /// A redirection, if one is next.
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, SyntaxError> {
        let fd = match self.peek()? {
            Token::IoNumber(number) => Some(Descriptor::Number(*number)),
            Token::IoVariable(name) => Some(Descriptor::Variable(name.clone())),
            Token::Op(
                Op::Less
                | Op::Great
                | Op::DoubleGreat
                | Op::HereString
                | Op::HereDocument
                | Op::HereDocumentTabs
                | Op::LessAnd
                | Op::GreatAnd
                | Op::LessGreat
                | Op::Clobber
                | Op::AmpGreat
                | Op::AmpDoubleGreat,
            ) => None,
            _ => return Ok(None),
        };
        if fd.is_some() {
            self.next()?;
        }
        let token = self.next()?;
        let Token::Op(op) = token else { return Err(self.found(&token)) };
        self.reader.assignable = false;
        let word = match self.next()? {
            Token::Word(word) => word,
            token => return Err(self.found(&token)),
        };
        let is_text = matches!(op, Op::HereString | Op::HereDocument | Op::HereDocumentTabs);
        if !is_text && self.reader.expand_braces(word.clone())?.len() > 1 {
            return Err(self.reader.unsupported("a brace expansion in a redirection"));
        }
        let input = !matches!(op, Op::Great | Op::DoubleGreat | Op::GreatAnd | Op::Clobber);
        let both = fd.is_none() && self.reader.language.is_bash();
        let fd = fd.unwrap_or(Descriptor::Number(u32::from(!input)));
        let target = match op {
            Op::Less => Target::Read(word),
            Op::Great | Op::Clobber => Target::Write(word, op == Op::Clobber),
            Op::DoubleGreat => Target::Append(word),
            Op::LessGreat => Target::ReadWrite(word),
            Op::HereString => Target::HereString(word),
            Op::HereDocument | Op::HereDocumentTabs => {
                let text = Rc::new(OnceCell::new());
                self.pending.push(Pending::new(text.clone(), &word, op == Op::HereDocumentTabs));
                Target::HereDocument(text)
            }
            Op::AmpGreat | Op::AmpDoubleGreat => Target::Both { word, append: op == Op::AmpDoubleGreat },
            Op::GreatAnd if both => Target::DuplicateOrBoth(word),
            _ => Target::Duplicate(word),
        };
        Ok(Some(Redirect { fd, target }))
    }
}

/// The command of a stage before `|&`: its standard error goes where its standard output does.
pub(super) fn with_errors(stage: Node) -> Node {
    let word = Word::new(vec![Part::Literal(b"1".to_vec())]);
    let redirect = Redirect { fd: Descriptor::Number(2), target: Target::Duplicate(word) };
    match stage {
        Node::Simple(mut simple) => {
            simple.redirects.push(redirect);
            Node::Simple(simple)
        }
        Node::Redirected(inner, mut redirects, line) => {
            redirects.push(redirect);
            Node::Redirected(inner, redirects, line)
        }
        other => Node::Redirected(Box::new(other), vec![redirect], 0),
    }
}
