//! Words: quotes and expansions, split as by dash.

use std::rc::Rc;

use super::reader::Reader;
use super::{Lines, Operation, Parameter, Parser, Part, SyntaxError, Word};

/// Where text with the rules of double quotes ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// At `"`.
    Quote,
    /// At the `}` of an expansion; in a here-document a `"` outside of an expansion stands for itself.
    Brace { here_document: bool },
    /// At `))`.
    Arithmetic,
    /// At the `]` of `$[…]`.
    Bracket,
    /// Where the text ends: a here-document.
    Text,
}

fn is_here_document(quoted: Option<End>) -> bool {
    matches!(quoted, Some(End::Text | End::Brace { here_document: true }))
}

/// Whether a double-quoted text has an expansion in it, whose value dash takes for a pattern in a here-document.
fn quotes_expansion(part: &Part) -> bool {
    let is_text = |part: &Part| matches!(part, Part::Literal(_) | Part::Quoted(_));
    matches!(part, Part::DoubleQuoted(inner) if !inner.iter().all(is_text))
}

/// Whether a byte is allowed in a name, at its start or later.
pub(crate) fn is_name_byte(byte: u8, first: bool) -> bool {
    byte == b'_' || byte.is_ascii_alphabetic() || (!first && byte.is_ascii_digit())
}

/// Whether these bytes are the name of a variable.
pub(crate) fn is_name(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().enumerate().all(|(at, byte)| is_name_byte(*byte, at == 0))
}

pub(super) fn push_literal(parts: &mut Vec<Part>, byte: u8) {
    match parts.last_mut() {
        Some(Part::Literal(bytes)) => bytes.push(byte),
        _ => parts.push(Part::Literal(vec![byte])),
    }
}

/// Where text outside of double quotes ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// A word, which a metacharacter ends.
    Word,
    /// The right side of `=~`: parentheses and `|` are parts of it.
    Regex,
    /// At the `}` of an expansion, which is taken.
    Brace,
    /// At `/` or `}`, which stay: the pattern of `${x/pattern/replacement}`.
    Slash,
    /// At `:` or `}`, which stay: the offset of `${x:offset:length}`.
    Colon,
    /// At `]`, which is taken.
    Bracket,
}

impl Stop {
    pub(super) fn is_at(self, byte: u8) -> bool {
        match self {
            Self::Word => matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')'),
            Self::Regex => matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'<' | b'>' | b')'),
            Self::Brace => byte == b'}',
            Self::Slash => matches!(byte, b'/' | b'}'),
            Self::Colon => matches!(byte, b':' | b'}'),
            Self::Bracket => byte == b']',
        }
    }
}

impl Reader<'_> {
    /// A word at the place of a token.
    pub(super) fn word(&mut self) -> Result<Word, SyntaxError> {
        Ok(Word::new(self.plain(Stop::Word)?))
    }

    /// Text outside of double quotes.
    pub(super) fn plain(&mut self, stop: Stop) -> Result<Vec<Part>, SyntaxError> {
        let mut parts = Vec::new();
        self.plain_into(stop, &mut parts)?;
        Ok(parts)
    }

    /// Adds text outside of double quotes to what there is of a word.
    pub(super) fn plain_into(&mut self, stop: Stop, parts: &mut Vec<Part>) -> Result<(), SyntaxError> {
        let bash = self.language.is_bash();
        // Brackets and parentheses that are open, and `?` whose `:` is to come.
        let mut open = 0_u32;
        loop {
            let Some(byte) = self.peek() else {
                return match stop {
                    Stop::Word | Stop::Regex if open == 0 => Ok(()),
                    Stop::Word | Stop::Regex => Err(self.unexpected("missing “)”")),
                    Stop::Bracket => Err(self.unexpected("missing “]”")),
                    _ => Err(self.unexpected("missing “}”")),
                };
            };
            if bash && matches!(byte, b'<' | b'>') && matches!(stop, Stop::Word) && self.followed_by(b'(') {
                parts.push(self.process()?);
                continue;
            }
            if open == 0 && stop.is_at(byte) {
                if matches!(stop, Stop::Brace | Stop::Bracket) {
                    self.take();
                }
                return Ok(());
            }
            open = self.nesting(stop, byte, open);
            match byte {
                b'\\' => {
                    self.take_raw();
                    parts.push(match self.take_raw() {
                        Some(byte) => Part::Quoted(vec![byte]),
                        None => Part::Literal(vec![b'\\']),
                    });
                }
                b'\'' => {
                    self.take_raw();
                    parts.push(Part::Quoted(self.single_quoted()?));
                }
                b'"' => {
                    self.take_raw();
                    let inner = self.deeper(|reader| reader.quoted(End::Quote))?;
                    parts.push(Part::DoubleQuoted(inner));
                }
                b'$' => self.dollar(parts, None)?,
                b'`' => parts.push(self.backquoted(false)?),
                byte => {
                    self.take_raw();
                    push_literal(parts, byte);
                    // The parenthesis of an extended pattern.
                    if stop == Stop::Word && self.extglob && b"?*+@!".contains(&byte) && self.peek() == Some(b'(') {
                        self.take();
                        push_literal(parts, b'(');
                        open = open.saturating_add(1);
                    }
                }
            }
        }
    }

    /// How many brackets are open after `byte`.
    fn nesting(&self, stop: Stop, byte: u8, open: u32) -> u32 {
        match (stop, byte) {
            (Stop::Bracket, b'[') | (Stop::Colon, b'(' | b'?') | (Stop::Regex, b'(') => open.saturating_add(1),
            (Stop::Word, b'(') if open > 0 => open.saturating_add(1),
            (Stop::Bracket, b']') | (Stop::Colon, b')' | b':') | (Stop::Word | Stop::Regex, b')') => {
                open.saturating_sub(1)
            }
            _ => open,
        }
    }

    /// Whether the byte after the next one is this one.
    pub(super) fn followed_by(&self, byte: u8) -> bool {
        self.source.get(self.at + 1) == Some(&byte)
    }

    /// `<(…)` or `>(…)`.
    fn process(&mut self) -> Result<Part, SyntaxError> {
        let input = self.take_raw() == Some(b'<');
        self.take_raw();
        let node = self.deeper(Parser::substitution)?;
        Ok(Part::Process { input, node: Rc::new(node) })
    }

    fn single_quoted(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let mut bytes = Vec::new();
        loop {
            match self.take_raw() {
                Some(b'\'') => return Ok(bytes),
                Some(byte) => bytes.push(byte),
                None => return Err(self.unexpected("unterminated quoted string")),
            }
        }
    }

    /// Text with the rules of double quotes, up to its end, which is taken.
    pub(super) fn quoted(&mut self, end: End) -> Result<Vec<Part>, SyntaxError> {
        let mut parts = Vec::new();
        let mut inner_quotes = false;
        let mut closing = None;
        let mut parentheses = 0_u32;
        loop {
            let Some(byte) = self.peek() else {
                return match end {
                    End::Text => Ok(parts),
                    End::Quote => Err(self.unexpected("unterminated quoted string")),
                    End::Brace { .. } => Err(self.unexpected("missing “}”")),
                    End::Arithmetic => Err(self.unexpected("missing “))”")),
                    End::Bracket => Err(self.unexpected("missing “]”")),
                };
            };
            match (byte, end) {
                (b'"', End::Quote) | (b'}', End::Brace { .. }) if !inner_quotes => {
                    self.take_raw();
                    return Ok(parts);
                }
                (b'"', End::Brace { .. }) => {
                    self.take_raw();
                    inner_quotes = !inner_quotes;
                }
                (b'\'', End::Brace { .. }) if !inner_quotes && closing != Some(self.at) && self.language.is_bash() => {
                    closing = Some(self.closing_single_quote()?);
                    self.take_raw();
                    push_literal(&mut parts, byte);
                }
                (b')', End::Arithmetic) if parentheses == 0 => {
                    self.take_raw();
                    if self.take_if(b')') {
                        return Ok(parts);
                    }
                    return Err(self.unexpected("missing “))”"));
                }
                (b'(' | b')', End::Arithmetic) => {
                    self.take_raw();
                    parentheses = if byte == b'(' { parentheses.saturating_add(1) } else { parentheses - 1 };
                    push_literal(&mut parts, byte);
                }
                (b']', End::Bracket) if parentheses == 0 => {
                    self.take_raw();
                    return Ok(parts);
                }
                (b'[' | b']', End::Bracket) => {
                    self.take_raw();
                    parentheses = if byte == b'[' { parentheses.saturating_add(1) } else { parentheses - 1 };
                    push_literal(&mut parts, byte);
                }
                (b'"', End::Arithmetic | End::Bracket) if self.language.is_bash() => {
                    self.take_raw();
                }
                (b'\\', _) => self.escaped(end, &mut parts),
                (b'$', _) => self.dollar(&mut parts, Some(end))?,
                (b'`', _) => parts.push(self.backquoted(end == End::Quote)?),
                _ => {
                    self.take_raw();
                    push_literal(&mut parts, byte);
                }
            }
        }
    }

    /// The place of the quote that closes the one here, in `"${name-'…'}"`. Both quotes are ordinary characters of the word, but bash looks for
    /// the closing brace only behind them.
    fn closing_single_quote(&self) -> Result<usize, SyntaxError> {
        let rest = self.source.get(self.at + 1..).unwrap_or_default();
        match rest.iter().position(|byte| b"'\"\\`(}".contains(byte)) {
            Some(len) if rest[len] == b'\'' => Ok(self.at + 1 + len),
            _ => Err(self.unsupported("such a single quote in ${ } between double quotes or in a here-document")),
        }
    }

    /// A backslash where the rules of double quotes hold.
    fn escaped(&mut self, end: End, parts: &mut Vec<Part>) {
        self.take_raw();
        match self.raw() {
            Some(byte @ (b'$' | b'`' | b'\\')) => {
                self.take_raw();
                parts.push(Part::Quoted(vec![byte]));
            }
            Some(b'"') if end != End::Text => {
                self.take_raw();
                parts.push(Part::Quoted(vec![b'"']));
            }
            Some(b'}') if matches!(end, End::Brace { .. }) => {
                self.take_raw();
                parts.push(Part::Quoted(vec![b'}']));
            }
            _ => push_literal(parts, b'\\'),
        }
    }

    /// Refuses what bash reads in another way in a command substitution that begins with `$((`, whose text begins at `start` and ended:
    /// it looks for the end of an expression first.
    fn check_nested(&self, start: usize) -> Result<(), SyntaxError> {
        let text = &self.source[start..self.at];
        if text.windows(4).any(|window| window == b"case") {
            return Err(self.unsupported("“case” in a command substitution that begins with “$((”"));
        }
        if self.substitution && text.windows(2).any(|pair| pair == b"$'") {
            return Err(self.unsupported("“$'” in a command substitution that begins with “$((”, in another one"));
        }
        if self.parenthesis_of(start - 1).is_none_or(|close| close + 1 != self.at) {
            let what = "a quote or parenthesis in a here-document or comment, in a command substitution that begins with “$((”";
            return Err(self.unsupported(what));
        }
        Ok(())
    }

    /// What begins with a dollar sign; `quoted` says whether the rules of double quotes hold around it.
    fn dollar(&mut self, parts: &mut Vec<Part>, quoted: Option<End>) -> Result<(), SyntaxError> {
        self.take_raw();
        let line = self.line;
        let bash = self.language.is_bash();
        match self.peek() {
            Some(b'(') => {
                self.take();
                if self.peek() == Some(b'(') && (!bash || self.is_arithmetic()) {
                    self.take();
                    let inner = self.deeper(|reader| reader.quoted(End::Arithmetic))?;
                    parts.push(Part::Arithmetic(inner));
                } else {
                    let (start, nested) = (self.at, bash && self.peek() == Some(b'('));
                    let node = Rc::new(self.deeper(Parser::substitution)?);
                    if nested {
                        self.check_nested(start)?;
                    }
                    parts.push(Part::Command(node, Lines { first: line, last: self.line }));
                }
            }
            Some(b'[') if bash => {
                self.take();
                let inner = self.deeper(|reader| reader.quoted(End::Bracket))?;
                parts.push(Part::Arithmetic(inner));
            }
            Some(b'{') => {
                self.take();
                let parameter = self.deeper(|reader| match bash {
                    true => reader.braced_of_bash(quoted, line),
                    false => reader.braced(quoted, line),
                })?;
                parts.push(Part::Parameter(Box::new(parameter)));
            }
            Some(b'\'') if bash && quoted.is_none() => {
                self.take_raw();
                parts.push(Part::Quoted(self.ansi_quoted()?));
            }
            Some(b'"') if bash && quoted.is_none() => {
                self.take_raw();
                let inner = self.deeper(|reader| reader.quoted(End::Quote))?;
                parts.push(Part::DoubleQuoted(inner));
            }
            Some(byte) if is_name_byte(byte, true) => {
                let name = self.name();
                self.name_before_brace |= bash && self.peek() == Some(b'{');
                parts.push(Part::Parameter(Box::new(Parameter::new(name, Operation::Value, line))));
            }
            Some(byte @ (b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')) => {
                self.take();
                let name = vec![byte];
                parts.push(Part::Parameter(Box::new(Parameter::new(name, Operation::Value, line))));
            }
            _ => push_literal(parts, b'$'),
        }
        Ok(())
    }

    pub(super) fn name(&mut self) -> Vec<u8> {
        let mut name = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| is_name_byte(*byte, name.is_empty())) {
            self.take();
            name.push(byte);
        }
        name
    }

    /// The name of a parameter in braces.
    pub(super) fn parameter_name(&mut self) -> Vec<u8> {
        match self.peek() {
            Some(byte) if is_name_byte(byte, true) => self.name(),
            Some(b'0'..=b'9') => {
                let mut name = Vec::new();
                while let Some(byte @ b'0'..=b'9') = self.peek() {
                    self.take();
                    name.push(byte);
                }
                name
            }
            Some(byte @ (b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')) => {
                self.take();
                vec![byte]
            }
            _ => Vec::new(),
        }
    }

    /// What follows `${`.
    fn braced(&mut self, quoted: Option<End>, line: u32) -> Result<Parameter, SyntaxError> {
        if self.peek() == Some(b'#') {
            let (start, start_line) = (self.at, self.line);
            self.take();
            let name = self.parameter_name();
            if !name.is_empty() && self.take_if(b'}') {
                return Ok(Parameter::new(name, Operation::Length, line));
            }
            (self.at, self.line) = (start, start_line);
        }
        let name = self.parameter_name();
        if self.take_if(b'}') {
            let operation = if name.is_empty() { Operation::Bad } else { Operation::Value };
            return Ok(Parameter::new(name, operation, line));
        }
        let colon = self.take_if(b':');
        let operator = self.peek();
        let operation = match operator {
            Some(byte @ (b'-' | b'=' | b'?' | b'+')) if !name.is_empty() => {
                self.take();
                let word = self.operand(quoted)?;
                match byte {
                    b'-' => Operation::Default(colon, word),
                    b'=' => Operation::Assign(colon, word),
                    b'?' => Operation::Error(colon, word),
                    _ => Operation::Alternative(colon, word),
                }
            }
            Some(byte @ (b'%' | b'#')) if !colon && !name.is_empty() => {
                self.take();
                let longest = self.take_if(byte);
                let pattern = self.plain(Stop::Brace)?;
                if is_here_document(quoted) && pattern.iter().any(quotes_expansion) {
                    return Err(self.unsupported("a quoted expansion in a pattern of a here-document"));
                }
                Operation::Trim { suffix: byte == b'%', longest, pattern }
            }
            _ => {
                self.operand(quoted)?;
                Operation::Bad
            }
        };
        Ok(Parameter::new(name, operation, line))
    }

    /// The word behind an operator, up to the brace, which is taken.
    pub(super) fn operand(&mut self, quoted: Option<End>) -> Result<Vec<Part>, SyntaxError> {
        match quoted {
            None => self.plain(Stop::Brace),
            Some(end) => self.quoted(End::Brace { here_document: is_here_document(Some(end)) }),
        }
    }

    /// A command between backquotes.
    fn backquoted(&mut self, quoted: bool) -> Result<Part, SyntaxError> {
        self.take_raw();
        let line = self.line;
        let mut inner = Vec::new();
        loop {
            match self.take() {
                Some(b'`') => break,
                Some(b'\\') => match self.raw() {
                    Some(byte @ (b'\\' | b'$' | b'`')) => {
                        self.take_raw();
                        inner.push(byte);
                    }
                    Some(b'"') if quoted => {
                        self.take_raw();
                        inner.push(b'"');
                    }
                    _ => inner.push(b'\\'),
                },
                Some(byte) => inner.push(byte),
                None => return Err(self.unexpected("unterminated “`”")),
            }
        }
        let node = self.deeper(|reader| Parser::whole(&inner, line, reader))?;
        Ok(Part::Command(Rc::new(node), Lines { first: line, last: self.line }))
    }
}
