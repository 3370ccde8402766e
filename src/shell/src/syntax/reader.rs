//! Bytes and tokens of a script.

use super::{Language, MAX_DEPTH, SyntaxError, Word};
use crate::error::show;

/// An operator, without those that are written as words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    And,
    Or,
    SemiSemi,
    SemiAmp,
    SemiSemiAmp,
    Semi,
    Amp,
    Pipe,
    PipeAmp,
    Open,
    Close,
    Less,
    Great,
    DoubleGreat,
    HereString,
    HereDocument,
    HereDocumentTabs,
    LessAnd,
    GreatAnd,
    LessGreat,
    Clobber,
    AmpGreat,
    AmpDoubleGreat,
}

impl Op {
    /// Whether only scripts of bash have it.
    fn is_of_bash(self) -> bool {
        matches!(
            self,
            Self::HereString
                | Self::SemiAmp
                | Self::SemiSemiAmp
                | Self::PipeAmp
                | Self::AmpGreat
                | Self::AmpDoubleGreat
        )
    }
}

/// Longest first.
const OPS: [(&[u8], Op); 23] = [
    (b"<<<", Op::HereString),
    (b"<<-", Op::HereDocumentTabs),
    (b"<<", Op::HereDocument),
    (b"<&", Op::LessAnd),
    (b"<>", Op::LessGreat),
    (b"<", Op::Less),
    (b">>", Op::DoubleGreat),
    (b">&", Op::GreatAnd),
    (b">|", Op::Clobber),
    (b">", Op::Great),
    (b"&>>", Op::AmpDoubleGreat),
    (b"&>", Op::AmpGreat),
    (b"&&", Op::And),
    (b"&", Op::Amp),
    (b"||", Op::Or),
    (b"|&", Op::PipeAmp),
    (b"|", Op::Pipe),
    (b";;&", Op::SemiSemiAmp),
    (b";;", Op::SemiSemi),
    (b";&", Op::SemiAmp),
    (b";", Op::Semi),
    (b"(", Op::Open),
    (b")", Op::Close),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Word(Word),
    Op(Op),
    /// The number before a redirection.
    IoNumber(u32),
    /// `{name}` before a redirection.
    IoVariable(Vec<u8>),
    Newline,
    End,
}

impl Token {
    /// A word that may be a reserved one.
    pub(crate) fn reserved(&self) -> Option<&[u8]> {
        match self {
            Self::Word(word) => word.literal(),
            _ => None,
        }
    }

    pub(crate) fn is(&self, reserved: &[u8]) -> bool {
        self.reserved() == Some(reserved)
    }

    /// For messages.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Word(word) => {
                word.literal().map_or_else(|| "a word".to_owned(), |bytes| format!("“{}”", show(bytes)))
            }
            Self::Op(op) => {
                let text = OPS.iter().find(|(_, found)| found == op).map_or(&b""[..], |(text, _)| text);
                format!("“{}”", show(text))
            }
            Self::IoNumber(number) => format!("“{number}”"),
            Self::IoVariable(name) => format!("“{{{}}}”", show(name)),
            Self::Newline => "a newline".to_owned(),
            Self::End => "the end of the file".to_owned(),
        }
    }
}

/// A place in a script.
#[derive(Debug)]
pub(crate) struct Reader<'s> {
    pub(crate) source: &'s [u8],
    pub(crate) at: usize,
    pub(crate) line: u32,
    pub(crate) depth: u32,
    pub(crate) language: Language,
    /// Whether `shopt -s extglob` holds here.
    pub(crate) extglob: bool,
    /// Whether the next word may be an assignment.
    pub(super) assignable: bool,
    /// Whether the last words had a `$name` directly before a brace.
    pub(super) name_before_brace: bool,
    /// Whether the text is inside of `$( )`.
    pub(super) substitution: bool,
}

impl<'s> Reader<'s> {
    pub(crate) fn new(source: &'s [u8], line: u32, depth: u32, language: Language) -> Self {
        Self {
            source,
            at: 0,
            line,
            depth,
            language,
            extglob: false,
            assignable: true,
            name_before_brace: false,
            substitution: false,
        }
    }

    /// One for a text in the source of another.
    pub(super) fn within(&self, source: &'s [u8], line: u32) -> Self {
        Self { extglob: self.extglob, ..Self::new(source, line, self.depth, self.language) }
    }

    /// The next byte, unchanged.
    pub(crate) fn raw(&self) -> Option<u8> {
        self.source.get(self.at).copied()
    }

    /// Takes the next byte, unchanged.
    pub(crate) fn take_raw(&mut self) -> Option<u8> {
        let byte = self.raw()?;
        self.at += 1;
        if byte == b'\n' {
            self.line += 1;
        }
        Some(byte)
    }

    /// The next byte after continued lines.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while self.source[self.at..].starts_with(b"\\\n") {
            self.at += 2;
            self.line += 1;
        }
        self.raw()
    }

    /// Takes the next byte after continued lines.
    pub(crate) fn take(&mut self) -> Option<u8> {
        self.peek()?;
        self.take_raw()
    }

    /// Takes the next byte if it is this one.
    pub(crate) fn take_if(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.take();
        }
        found
    }

    pub(crate) fn unexpected(&self, reason: impl Into<String>) -> SyntaxError {
        SyntaxError::Unexpected { line: self.line, reason: reason.into() }
    }

    pub(crate) fn unsupported(&self, what: impl Into<String>) -> SyntaxError {
        SyntaxError::Unsupported { line: self.line, what: what.into() }
    }

    /// Runs `inner` one level deeper.
    pub(crate) fn deeper<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        if self.depth >= MAX_DEPTH {
            return Err(SyntaxError::TooDeep { line: self.line });
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks and a comment.
    pub(super) fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.take();
        }
        if self.peek() == Some(b'#') {
            while !matches!(self.raw(), None | Some(b'\n')) {
                self.at += 1;
            }
        }
    }

    /// The next token. A newline is only told: what follows it may be a here-document.
    pub(crate) fn token(&mut self) -> Result<Token, SyntaxError> {
        self.blanks();
        let Some(byte) = self.peek() else { return Ok(Token::End) };
        if byte == b'\n' {
            self.take();
            return Ok(Token::Newline);
        }
        if self.language.is_bash()
            && let Some(token) = self.token_of_bash(byte)?
        {
            return Ok(token);
        }
        if let Some(op) = self.operator() {
            return Ok(Token::Op(op));
        }
        if byte.is_ascii_digit()
            && let Some(number) = self.io_number()
        {
            return Ok(Token::IoNumber(number));
        }
        Ok(Token::Word(self.word()?))
    }

    fn operator(&mut self) -> Option<Op> {
        let (start, line) = (self.at, self.line);
        for (text, op) in OPS {
            if op.is_of_bash() && !self.language.is_bash() {
                continue;
            }
            if text.iter().all(|byte| self.take_if(*byte)) {
                return Some(op);
            }
            (self.at, self.line) = (start, line);
        }
        None
    }

    fn io_number(&mut self) -> Option<u32> {
        let (start, line) = (self.at, self.line);
        let mut number: u32 = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
            self.take();
        }
        if matches!(self.peek(), Some(b'<' | b'>')) {
            return Some(number);
        }
        (self.at, self.line) = (start, line);
        None
    }
}
