//! Tokens of bash: assignments to elements, values of arrays, descriptors in variables; and the difference between `((` and `( (`.

use super::reader::{Reader, Token};
use super::words::{Stop, is_name_byte, push_literal};
use super::{Assigned, Assignment, Element, Part, SyntaxError, Word};

impl<'s> Reader<'s> {
    /// A token that the rules of POSIX would divide.
    pub(super) fn token_of_bash(&mut self, byte: u8) -> Result<Option<Token>, SyntaxError> {
        if byte == b'{' {
            return Ok(self.io_variable().map(Token::IoVariable));
        }
        if matches!(byte, b'<' | b'>') && self.followed_by(b'(') {
            return self.word().map(|word| Some(Token::Word(word)));
        }
        if !self.assignable || !is_name_byte(byte, true) {
            return Ok(None);
        }
        let rest = &self.source[self.at..];
        let len = rest.iter().position(|byte| !is_name_byte(*byte, false)).unwrap_or(rest.len());
        let is_element = rest.get(len) == Some(&b'[');
        let is_array = rest[len..].starts_with(b"=(") || rest[len..].starts_with(b"+=(");
        if !is_element && !is_array {
            return Ok(None);
        }
        let name = rest[..len].to_vec();
        self.at += len;
        let word = if is_element { self.element_assignment(name)? } else { self.array_assignment(name, None)? };
        Ok(Some(Token::Word(word)))
    }

    /// `{name}` directly before a redirection.
    fn io_variable(&mut self) -> Option<Vec<u8>> {
        let rest = &self.source[self.at + 1..];
        let len = rest.iter().position(|byte| !is_name_byte(*byte, false))?;
        let follows = len > 0 && is_name_byte(rest[0], true) && rest[len] == b'}';
        if !follows || !matches!(rest.get(len + 1), Some(b'<' | b'>')) || rest.get(len + 2) == Some(&b'(') {
            return None;
        }
        self.at += len + 2;
        Some(rest[..len].to_vec())
    }

    /// `name[index]=value`, behind the name; without `=` it is a word like others.
    fn element_assignment(&mut self, name: Vec<u8>) -> Result<Word, SyntaxError> {
        self.take_raw();
        let index = self.deeper(|reader| reader.plain(Stop::Bracket))?;
        let append = self.peek() == Some(b'+') && self.followed_by(b'=');
        if append || self.peek() == Some(b'=') {
            return self.array_assignment(name, Some(index));
        }
        let mut parts = vec![Part::Literal(name)];
        push_literal(&mut parts, b'[');
        parts.extend(index);
        push_literal(&mut parts, b']');
        self.plain_into(Stop::Word, &mut parts)?;
        Ok(Word::new(parts))
    }

    /// `=value`, `+=value` or `=(…)`.
    fn array_assignment(&mut self, name: Vec<u8>, index: Option<Vec<Part>>) -> Result<Word, SyntaxError> {
        let append = self.take_if(b'+');
        self.take();
        let value = if self.peek() == Some(b'(') {
            self.take();
            if index.is_some() {
                return Err(self.unexpected("a list as the value of an element"));
            }
            let start = self.at;
            let elements = self.deeper(Self::elements)?;
            let escapes = |pair: &[u8]| matches!(pair, [b'\\', byte] if b"'\" \t;&|()<>".contains(byte));
            if self.substitution && self.source[start..self.at].windows(2).any(escapes) {
                // bash writes the array again without the backslash, and then reads another command.
                return Err(self.unsupported("an escaped quote, blank or operator in an array inside of $( )"));
            }
            Assigned::Array(elements)
        } else {
            Assigned::Word(self.word()?)
        };
        let assignment = Assignment { name, index, append, value };
        Ok(Word::new(vec![Part::Assignment(Box::new(assignment))]))
    }

    /// The elements of an array, up to the parenthesis, which is taken.
    fn elements(&mut self) -> Result<Vec<Element>, SyntaxError> {
        let mut elements = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n') => {
                    self.take();
                }
                Some(b')') => {
                    self.take();
                    return Ok(elements);
                }
                Some(b'[') => elements.extend(self.element()?),
                Some(byte) if !Stop::Word.is_at(byte) || (matches!(byte, b'<' | b'>') && self.followed_by(b'(')) => {
                    self.name_before_brace = false;
                    let word = self.word()?;
                    let values = self.expand_braces(word)?;
                    elements.extend(values.into_iter().map(|value| Element { index: None, append: false, value }));
                }
                _ => return Err(self.unexpected("unexpected end of the value of an array")),
            }
        }
    }

    /// `[index]=value`, or a word that begins with a bracket.
    fn element(&mut self) -> Result<Vec<Element>, SyntaxError> {
        self.take();
        let index = self.deeper(|reader| reader.plain(Stop::Bracket))?;
        let append = self.peek() == Some(b'+') && self.followed_by(b'=');
        if append {
            self.take();
        }
        if self.take_if(b'=') {
            self.name_before_brace = false;
            let value = self.word()?;
            let mut parts = vec![Part::Literal(b"[".to_vec())];
            parts.extend(index.iter().cloned());
            parts.push(Part::Literal(b"]=".to_vec()));
            parts.extend(value.parts.iter().cloned());
            if self.expand_braces(Word::new(parts))?.len() > 1 {
                return Err(self.unsupported("a brace expansion after a subscript in an array assignment"));
            }
            return Ok(vec![Element { index: Some(index), append, value }]);
        }
        let mut parts = vec![Part::Literal(b"[".to_vec())];
        parts.extend(index);
        push_literal(&mut parts, b']');
        self.plain_into(Stop::Word, &mut parts)?;
        let values = self.expand_braces(Word::new(parts))?;
        Ok(values.into_iter().map(|value| Element { index: None, append: false, value }).collect())
    }

    /// Whether the `(` that comes next, the second one, begins an arithmetic expression: its `)` is followed by another one.
    pub(super) fn is_arithmetic(&self) -> bool {
        self.closing_parenthesis().is_some_and(|at| self.source.get(at + 1) == Some(&b')'))
    }

    /// Whether a line ends before or directly behind the `)` of the `(` that comes next: bash reads such text twice, and loses the newline.
    pub(super) fn is_divided(&self) -> bool {
        // Such as of a here-document that has a quote.
        let Some(close) = self.closing_parenthesis() else { return true };
        self.source.get(self.at..=close + 1).is_some_and(|text| text.contains(&b'\n'))
    }

    /// Where the `(` that comes next is closed.
    fn closing_parenthesis(&self) -> Option<usize> {
        self.parenthesis_of(self.at)
    }

    /// Where the `(` at a place is closed, if parentheses and quotes count wherever they are.
    pub(super) fn parenthesis_of(&self, start: usize) -> Option<usize> {
        let mut open = 0_u32;
        let mut at = start;
        while let Some(byte) = self.source.get(at) {
            match byte {
                b'\\' => at += 1,
                b'\'' | b'"' => match self.closing_quote(at, start) {
                    Some(end) => at = end,
                    None => return None,
                },
                b'(' => open = open.saturating_add(1),
                b')' if open == 1 => return Some(at),
                b')' => open -= 1,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Where a quote is closed in a text that begins at `first`.
    fn closing_quote(&self, start: usize, first: usize) -> Option<usize> {
        let quote = self.source[start];
        let escapes = quote == b'"' || (start > first && self.source[start - 1] == b'$');
        let mut at = start + 1;
        loop {
            match self.source.get(at)? {
                b'\\' if escapes => at += 1,
                byte if *byte == quote => return Some(at),
                _ => {}
            }
            at += 1;
        }
    }
}
