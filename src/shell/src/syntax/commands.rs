//! Lists, pipelines and simple commands.

use super::here_document::Pending;
use super::reader::{Op, Reader, Token};
use super::redirect::with_errors;
use super::words::is_name;
use super::{Assigned, Assignment, Node, Part, Simple, SyntaxError, Word};

/// Words that end a list.
const CLOSING: [&[u8]; 8] = [b"then", b"else", b"elif", b"fi", b"do", b"done", b"esac", b"}"];

/// Reserved words that a command follows.
const BEFORE_COMMANDS: [&[u8]; 9] = [b"!", b"{", b"if", b"then", b"else", b"elif", b"while", b"until", b"do"];

/// Builtins of bash whose operands may be assignments.
const DECLARING: [&[u8]; 6] = [b"declare", b"export", b"local", b"readonly", b"typeset", b"alias"];

/// Parses commands from the position of the reader.
pub(crate) struct Parser<'p, 's> {
    pub(super) reader: &'p mut Reader<'s>,
    peeked: Option<Token>,
    pub(super) pending: Vec<Pending>,
    /// In `$(…)`: whether the text of a here-document has been read.
    document_read: Option<bool>,
}

impl<'p, 's> Parser<'p, 's> {
    pub(crate) fn new(reader: &'p mut Reader<'s>) -> Self {
        Self { reader, peeked: None, pending: Vec::new(), document_read: None }
    }

    /// The commands of the next line, as dash takes them from a script: one that comes after `exit` may be anything. `None` at the end.
    pub(crate) fn line(&mut self) -> Result<Option<Node>, SyntaxError> {
        match self.peek()? {
            Token::End => Ok(None),
            Token::Newline => {
                self.next()?;
                Ok(Some(Node::Sequence(Vec::new())))
            }
            _ => {
                let node = self.list(true)?;
                match self.next()? {
                    Token::Newline => Ok(Some(node)),
                    Token::End => self.rest(node).map(Some),
                    token => Err(self.found(&token)),
                }
            }
        }
    }

    /// Here-documents that the end of the file cuts off are empty.
    fn rest(&mut self, node: Node) -> Result<Node, SyntaxError> {
        self.documents()?;
        Ok(node)
    }

    /// All commands between backquotes.
    pub(super) fn whole(source: &[u8], line: u32, outer: &Reader<'_>) -> Result<Node, SyntaxError> {
        let mut reader = outer.within(source, line);
        let mut parser = Parser::new(&mut reader);
        let mut nodes = Vec::new();
        while let Some(node) = parser.line()? {
            nodes.push(node);
        }
        Ok(Node::Sequence(nodes))
    }

    /// The commands of `$(…)`, whose parenthesis is taken.
    pub(super) fn substitution(reader: &mut Reader<'s>) -> Result<Node, SyntaxError> {
        let assignable = std::mem::replace(&mut reader.assignable, true);
        let substitution = std::mem::replace(&mut reader.substitution, true);
        let mut parser = Parser::new(reader);
        parser.document_read = Some(false);
        parser.newlines()?;
        let node =
            if parser.peek()? == &Token::Op(Op::Close) { Node::Sequence(Vec::new()) } else { parser.list(false)? };
        parser.expect(Op::Close)?;
        parser.reader.assignable = assignable;
        parser.reader.substitution = substitution;
        if parser.pending.is_empty() {
            return Ok(node);
        }
        Err(parser.reader.unexpected("a here-document that begins after the “)” of its substitution"))
    }

    pub(super) fn peek(&mut self) -> Result<&Token, SyntaxError> {
        let token = match self.peeked.take() {
            Some(token) => token,
            None => {
                let token = self.reader.token()?;
                if token == Token::Newline {
                    self.documents()?;
                }
                token
            }
        };
        Ok(self.peeked.insert(token))
    }

    pub(super) fn next(&mut self) -> Result<Token, SyntaxError> {
        self.peek()?;
        let token = self.peeked.take().unwrap_or(Token::End);
        self.reader.assignable = match &token {
            Token::Newline | Token::Op(_) => true,
            Token::Word(word) => word.literal().is_some_and(|word| BEFORE_COMMANDS.contains(&word)),
            _ => false,
        };
        Ok(token)
    }

    fn documents(&mut self) -> Result<(), SyntaxError> {
        for pending in std::mem::take(&mut self.pending) {
            pending.fill(self.reader)?;
            self.document_read = self.document_read.map(|_| true);
        }
        Ok(())
    }

    pub(super) fn newlines(&mut self) -> Result<(), SyntaxError> {
        while self.peek()? == &Token::Newline {
            self.next()?;
        }
        Ok(())
    }

    pub(super) fn found(&self, token: &Token) -> SyntaxError {
        self.reader.unexpected(format!("{} unexpected", token.shown()))
    }

    pub(super) fn expect(&mut self, op: Op) -> Result<(), SyntaxError> {
        let token = self.next()?;
        if token == Token::Op(op) {
            return Ok(());
        }
        Err(self.reader.unexpected(format!("{} unexpected (expecting {})", token.shown(), Token::Op(op).shown())))
    }

    pub(super) fn expect_word(&mut self, word: &[u8]) -> Result<(), SyntaxError> {
        let token = self.next()?;
        if token.is(word) {
            return Ok(());
        }
        let expected = String::from_utf8_lossy(word);
        Err(self.reader.unexpected(format!("{} unexpected (expecting “{expected}”)", token.shown())))
    }

    fn at_end(&mut self) -> Result<bool, SyntaxError> {
        let token = self.peek()?;
        Ok(match token {
            Token::End | Token::Op(Op::Close | Op::SemiSemi | Op::SemiAmp | Op::SemiSemiAmp) => true,
            token => CLOSING.iter().any(|word| token.is(word)),
        })
    }

    /// Commands up to what ends a list; `one_line` stops before a newline.
    pub(super) fn list(&mut self, one_line: bool) -> Result<Node, SyntaxError> {
        if !one_line {
            self.newlines()?;
        }
        let mut nodes = Vec::new();
        loop {
            let node = self.and_or()?;
            let token = self.peek()?.clone();
            match token {
                Token::Op(Op::Amp) => nodes.push(Node::Background(Box::new(node))),
                _ => nodes.push(node),
            }
            match token {
                Token::Op(Op::Amp | Op::Semi) => {
                    self.next()?;
                }
                Token::Newline if !one_line => {}
                _ => break,
            }
            if one_line && self.peek()? == &Token::Newline {
                break;
            }
            if !one_line {
                self.newlines()?;
            }
            if self.at_end()? {
                break;
            }
            // bash 5.2 writes substitutions as text, and loses such a semicolon.
            if token == Token::Op(Op::Semi) && self.document_read == Some(true) && self.reader.language.is_bash() {
                return Err(self.reader.unsupported("“;” after a here-document inside of $( )"));
            }
        }
        if nodes.len() == 1 {
            return nodes.pop().ok_or_else(|| self.reader.unexpected("nothing"));
        }
        Ok(Node::Sequence(nodes))
    }

    fn and_or(&mut self) -> Result<Node, SyntaxError> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let on_success = match self.peek()? {
                Token::Op(Op::And) => true,
                Token::Op(Op::Or) => false,
                _ => break,
            };
            self.next()?;
            self.newlines()?;
            rest.push((on_success, self.pipeline()?));
        }
        Ok(if rest.is_empty() { first } else { Node::AndOr(Box::new(first), rest) })
    }

    fn pipeline(&mut self) -> Result<Node, SyntaxError> {
        let bash = self.reader.language.is_bash();
        let mut negated = false;
        while self.peek()?.is(b"!") && (bash || !negated) {
            self.next()?;
            negated = !negated;
        }
        let mut stages = vec![self.command()?];
        loop {
            match self.peek()? {
                Token::Op(Op::Pipe) => {}
                Token::Op(Op::PipeAmp) => {
                    let stage = stages.pop().map(with_errors);
                    stages.extend(stage);
                }
                _ => break,
            }
            self.next()?;
            self.newlines()?;
            stages.push(self.command()?);
        }
        let node = match stages.pop() {
            Some(only) if stages.is_empty() => only,
            last => {
                stages.extend(last);
                Node::Pipe(stages)
            }
        };
        Ok(if negated { Node::Not(Box::new(node)) } else { node })
    }

    /// A compound or simple command with its redirections.
    pub(super) fn command(&mut self) -> Result<Node, SyntaxError> {
        match self.compound_command()? {
            Some(node) => Ok(node),
            None => self.simple(),
        }
    }

    /// A compound command with its redirections, if one begins here.
    pub(super) fn compound_command(&mut self) -> Result<Option<Node>, SyntaxError> {
        let line = self.reader.line;
        let Some(node) = self.compound()? else { return Ok(None) };
        let mut redirects = Vec::new();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        if redirects.is_empty() {
            return Ok(Some(node));
        }
        let node = if self.reader.language.is_bash() { node } else { bare_subshell(node) };
        Ok(Some(Node::Redirected(Box::new(node), redirects, line)))
    }

    fn simple(&mut self) -> Result<Node, SyntaxError> {
        let token = self.peek()?.clone();
        let dash = !self.reader.language.is_bash();
        if CLOSING.iter().any(|word| token.is(word)) || token.is(b"!") || (dash && token.is(b"in")) {
            return Err(self.found(&token));
        }
        let bash = !dash;
        let mut simple = Simple { line: self.reader.line, number: self.reader.line, ..Simple::default() };
        let outer = std::mem::take(&mut self.reader.name_before_brace);
        loop {
            // Behind an assignment there may be another one; operands of `declare` and its like may be some.
            if simple.words.is_empty() || is_declaring(&simple.words) {
                self.reader.assignable = true;
            }
            // bash records the line after reading the token that follows the name.
            let is_second = simple.words.len() == 1 && simple.assignments.is_empty() && simple.redirects.is_empty();
            if !matches!(self.peek()?, Token::Newline | Token::End) && is_second {
                simple.number = self.reader.line;
            }
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                self.reader.assignable = false;
                continue;
            }
            match self.peek()? {
                Token::Word(_) => {
                    simple.last = self.reader.line;
                    let Token::Word(word) = self.next()? else { break };
                    match assignment(&word, bash).filter(|_| simple.words.is_empty()) {
                        Some(assignment) => simple.assignments.push(assignment),
                        None => simple.words.extend(self.reader.expand_braces(word)?),
                    }
                }
                Token::Op(Op::Open) => return self.function(simple),
                _ => break,
            }
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty() {
            let token = self.peek()?.clone();
            return Err(self.found(&token));
        }
        // This command may be a part of a word.
        self.reader.name_before_brace = outer;
        Ok(Node::Simple(Box::new(simple)))
    }

    /// `name()` and its body.
    fn function(&mut self, simple: Simple) -> Result<Node, SyntaxError> {
        let unexpected = |parser: &Self| parser.reader.unexpected("“(” unexpected");
        let ([word], [], []) = (&simple.words[..], &simple.assignments[..], &simple.redirects[..]) else {
            return Err(unexpected(self));
        };
        let bash = self.reader.language.is_bash();
        let Some(name) = word.literal().filter(|name| bash || is_name(name)).map(<[u8]>::to_vec) else {
            return Err(unexpected(self));
        };
        if !self.reader.language.is_bash() && crate::builtins::special(&name).is_some() {
            return Err(self.reader.unexpected("bad function name"));
        }
        self.next()?;
        self.expect(Op::Close)?;
        self.function_body(name, simple.line)
    }
}

/// Whether a command is one of [`DECLARING`], perhaps behind `builtin` or `command`.
pub(crate) fn is_declaring(words: &[Word]) -> bool {
    let mut names = words.iter().map(|word| word.literal().unwrap_or_default());
    names.find(|name| !matches!(*name, b"builtin" | b"command")).is_some_and(|name| DECLARING.contains(&name))
}

/// `name=value` without quotes in the name, divided; in scripts of bash `name+=value`, too.
pub(crate) fn assignment(word: &Word, bash: bool) -> Option<Assignment> {
    if word.from_braces {
        return None;
    }
    let bytes = match word.parts.first()? {
        Part::Assignment(assignment) => return Some((**assignment).clone()),
        Part::Literal(bytes) => bytes,
        _ => return None,
    };
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let append = bash && bytes[..at].ends_with(b"+");
    let name = bytes[..at - usize::from(append)].to_vec();
    if !is_name(&name) {
        return None;
    }
    let mut parts = word.parts.clone();
    match bytes.get(at + 1..).filter(|rest| !rest.is_empty()) {
        Some(rest) => parts[0] = Part::Literal(rest.to_vec()),
        None => {
            parts.remove(0);
        }
    }
    Some(Assignment { name, index: None, append, value: Assigned::Word(Word::new(parts)) })
}

/// A group that redirections follow, as dash reads it: those of a subshell that is all of the group get lost.
fn bare_subshell(group: Node) -> Node {
    match group {
        Node::Sequence(mut nodes) if nodes.len() == 1 => nodes.pop().map_or(Node::Sequence(nodes), bare_subshell),
        Node::Redirected(inner, ..) if matches!(*inner, Node::Subshell(..)) => *inner,
        other => other,
    }
}
