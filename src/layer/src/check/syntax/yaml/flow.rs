//! Collections in brackets, within which PyYAML and libyaml know no blocks of text.

use std::str::Chars;

use saphyr_parser::{Event, ScalarStyle, Span};

/// The collections around a node.
pub(super) struct Flow<'a> {
    /// The text after what was looked at.
    rest: Chars<'a>,
    /// How many characters are before it.
    at: usize,
    /// How many open collections are in brackets, or within one that is.
    depth: usize,
}

impl<'a> Flow<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.chars(), at: 0, depth: 0 }
    }

    /// What is wrong with an event; all events pass by in their order.
    pub(super) fn fault(&mut self, event: &Event, span: &Span) -> Option<&'static str> {
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                // Without brackets, only an anchor or a tag is before the first entry.
                let last = (!span.is_empty()).then(|| self.char_at(span.end.index().checked_sub(1)?)).flatten();
                self.depth += usize::from(self.depth > 0 || matches!(last, Some('{' | '[')));
                None
            }
            Event::MappingEnd | Event::SequenceEnd => {
                self.depth = self.depth.saturating_sub(1);
                None
            }
            Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..) if self.depth > 0 => {
                Some("expected a text in quotes within brackets, found a block that begins with | or >")
            }
            _ => None,
        }
    }

    /// A character after those that were looked at.
    fn char_at(&mut self, index: usize) -> Option<char> {
        let found = self.rest.nth(index.checked_sub(self.at)?);
        self.at = index + 1;
        found
    }
}
