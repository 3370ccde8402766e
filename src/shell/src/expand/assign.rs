//! Assignments, and the values of arrays.

use crate::eval::Run;
use crate::shell::Shell;
use crate::syntax::{Assigned, Assignment, Element};

/// An element of an array's value, expanded. Whether the index is an expression or a key depends on the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) index: Option<Vec<u8>>,
    pub(crate) append: bool,
    pub(crate) value: Vec<u8>,
}

impl Shell<'_> {
    /// Performs an assignment; with `export` the variable is exported.
    pub(crate) fn assign(&mut self, assignment: &Assignment, export: bool) -> Run<()> {
        let Assignment { name, index, append, value } = assignment;
        let (None, false, Assigned::Word(word)) = (index, append, value) else {
            return self.unsupported(b"an assignment to an array");
        };
        let value = self.value(word)?;
        self.change(name, Some(value), export)
    }

    /// Expands the elements between the parentheses of an array's value.
    pub(crate) fn entries(&mut self, _elements: &[Element]) -> Run<Vec<Entry>> {
        self.unsupported(b"an array")
    }
}
