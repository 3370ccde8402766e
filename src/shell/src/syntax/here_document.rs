//! Here-documents: their text starts after the current line.

use std::cell::OnceCell;
use std::rc::Rc;

use super::reader::Reader;
use super::words::End;
use super::{Part, SyntaxError, Word};

/// A here-document whose text was not reached yet.
#[derive(Debug)]
pub(super) struct Pending {
    /// Where the text goes.
    text: Rc<OnceCell<Vec<Part>>>,
    delimiter: Vec<u8>,
    expands: bool,
    tabs: bool,
}

impl Pending {
    /// One that ends at `word`; with `tabs`, leading tabs are dropped.
    pub(super) fn new(text: Rc<OnceCell<Vec<Part>>>, word: &Word, tabs: bool) -> Self {
        let mut delimiter = Vec::new();
        let mut expands = true;
        for part in &word.parts {
            match part {
                Part::Literal(bytes) => delimiter.extend(bytes),
                Part::Quoted(bytes) => {
                    delimiter.extend(bytes);
                    expands = false;
                }
                Part::DoubleQuoted(inner) => {
                    expands = false;
                    inner.iter().for_each(|part| {
                        if let Part::Literal(bytes) | Part::Quoted(bytes) = part {
                            delimiter.extend(bytes);
                        }
                    });
                }
                _ => {}
            }
        }
        Self { text, delimiter, expands, tabs }
    }

    /// Reads the text from the next line on, and puts it where it goes.
    pub(super) fn fill(&self, reader: &mut Reader<'_>) -> Result<(), SyntaxError> {
        if self.delimiter.contains(&b'\n') {
            return Err(reader.unsupported("a delimiter of several lines"));
        }
        let parts = self.read(reader)?;
        self.text.set(parts).map_err(|_| reader.unexpected("a here-document that was read twice"))
    }

    fn read(&self, reader: &mut Reader<'_>) -> Result<Vec<Part>, SyntaxError> {
        let line = reader.line;
        let mut text = Vec::new();
        let mut continued = false;
        loop {
            if reader.raw().is_none() {
                // Bash warns of it.
                match reader.language.is_bash() {
                    true => return Err(reader.unsupported("a here-document that ends with the script")),
                    false => break,
                }
            }
            let rest = &reader.source[reader.at..];
            let len = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
            let (taken, mut found) = (&rest[..len], &rest[..len]);
            reader.at += len;
            reader.line += u32::from(taken.ends_with(b"\n"));
            while self.tabs && !continued && found.starts_with(b"\t") {
                found = &found[1..];
            }
            if !continued && found.strip_suffix(b"\n").unwrap_or(found) == self.delimiter {
                break;
            }
            text.extend_from_slice(found);
            let backslashes = text.iter().rev().skip(1).take_while(|byte| **byte == b'\\').count();
            continued = self.expands && text.ends_with(b"\n") && backslashes % 2 == 1;
        }
        if !self.expands {
            return Ok(vec![Part::Quoted(text)]);
        }
        reader.within(&text, line).quoted(End::Text)
    }
}
