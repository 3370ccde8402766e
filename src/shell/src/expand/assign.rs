//! Assignments, and the values of arrays.

use super::{Mode, Tilde, bytes};
use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;
use crate::syntax::{Assigned, Assignment, Element, Part, Subscript, Word};

/// An element of an array's value, expanded. Whether the index is an expression or a key depends on the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) index: Option<Vec<u8>>,
    pub(crate) append: bool,
    pub(crate) value: Vec<u8>,
    /// Whether the value is the same if its word is not split, as in an associative array.
    pub(crate) whole: bool,
}

impl Shell<'_> {
    /// Performs an assignment; with `export` the variable is exported.
    pub(crate) fn assign(&mut self, assignment: &Assignment, export: bool) -> Run<()> {
        let Assignment { name, index, append, value } = assignment;
        if !self.state.language.is_bash() {
            let Assigned::Word(word) = value else { return self.unsupported(b"an assignment to an array") };
            let (value, unordered) = self.assigned_value(word, export)?;
            self.change(name, Some(value), export)?;
            self.mark_variable(name, unordered);
            return Ok(());
        }
        if export && (index.is_some() || matches!(value, Assigned::Array(_))) {
            return self.unsupported(b"an array before a command");
        }
        let assigned = match (value, index) {
            (Assigned::Array(_), Some(_)) => {
                return Err(self.discard_reported(&[name, &b": cannot assign list to array member"[..]].concat()));
            }
            (Assigned::Array(elements), None) => {
                if self.state.bash.subshells > 0 && elements.iter().any(|element| ends_with_blank(&element.value)) {
                    return self.unsupported(b"an escaped blank at the end of an element of an array in a subshell");
                }
                // The elements see a new array that is empty.
                if self.state.variable(name).is_none() && self.special_array(name)?.is_none() {
                    self.assign_compound(name, Vec::new(), false)?;
                }
                let entries = self.entries(elements)?;
                self.assign_compound(name, entries, *append)?
            }
            (Assigned::Word(word), None) => {
                let was = *append && self.state.unordered.contains(name);
                let (value, unordered) = self.assigned_value(word, export)?;
                let assigned = self.assign_text(name, &value, *append)?;
                self.mark_variable(name, unordered || was);
                assigned
            }
            (Assigned::Word(word), Some(index)) => {
                let value = self.value(word)?;
                let index = self.subscript_text(name, index)?;
                self.assign_element(name, &index, &value, *append)?
            }
        };
        if export && assigned {
            self.mark_exported(name);
        }
        // Before a command the assignment fails alone.
        if assigned || export { Ok(()) } else { Err(self.assignment_failed()) }
    }

    /// The value of a variable, and whether it has an order that is not known; not for the environment of a command.
    fn assigned_value(&mut self, word: &Word, export: bool) -> Run<(Vec<u8>, bool)> {
        match export {
            true => Ok((self.value(word)?, false)),
            false => self.expanding_value(|shell| shell.value(word)),
        }
    }

    /// A subscript, expanded. In an expression quotes are not removed, other than double ones.
    pub(crate) fn subscript_text(&mut self, name: &[u8], parts: &[Part]) -> Run<Vec<u8>> {
        if parts.iter().any(|part| matches!(part, Part::Quoted(_))) && !self.is_associative(name) {
            return self.unsupported(b"quotes in a subscript");
        }
        let text = bytes(&self.units(parts, Mode::ONE, Tilde::None)?);
        // An empty key is an error.
        self.ask(Question::Fields { text: &text, is_alone: true })?;
        Ok(text)
    }

    /// Expands the elements between the parentheses of an array's value.
    pub(crate) fn entries(&mut self, elements: &[Element]) -> Run<Vec<Entry>> {
        let (mut entries, mut words) = (Vec::new(), Vec::new());
        for element in elements {
            let append = element.append;
            match &element.index {
                Some(index) => {
                    if self.state.ifs().first() != Some(&b' ') && has_all_parameters(&element.value.parts) {
                        return self.unsupported(b"$@ in an element with a subscript, with this IFS");
                    }
                    let index = Some(bytes(&self.units(index, Mode::ONE, Tilde::None)?));
                    let value = self.value(&element.value)?;
                    words.push((Some(Entry { index, append, value, whole: true }), Vec::new(), true));
                }
                None => words.push((None, self.split_word(&element.value)?, is_whole(&element.value))),
            }
        }
        for (entry, expanded, whole) in words {
            let mut fields = Vec::new();
            self.all_pathnames(&expanded, &mut fields)?;
            entries.extend(entry);
            entries.extend(fields.into_iter().map(|value| Entry { index: None, append: false, value, whole }));
            let bytes: usize = entries.last().map_or(0, |entry: &Entry| entry.value.len());
            self.spend(bytes)?;
        }
        Ok(entries)
    }
}

/// Whether a word ends with one quoted blank, which bash takes for the blank before the parenthesis where it reads a substitution again.
fn ends_with_blank(word: &Word) -> bool {
    matches!(word.parts.last(), Some(Part::Quoted(bytes)) if matches!(&bytes[..], [b' ' | b'\t']))
}

fn has_all_parameters(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::DoubleQuoted(inner) => has_all_parameters(inner),
        Part::Parameter(found) => found.name == b"@" || matches!(found.index, Some(Subscript::At)),
        _ => false,
    })
}

/// Whether the value of a word changes variables in an arithmetic expression.
pub(crate) fn assigns_in_arithmetic(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::DoubleQuoted(inner) => assigns_in_arithmetic(inner),
        Part::Arithmetic(inner) => inner.iter().any(|part| match part {
            Part::Literal(text) | Part::Quoted(text) => {
                text.windows(2).any(|pair| matches!(pair, b"++" | b"--")) || text.contains(&b'=')
            }
            _ => false,
        }),
        _ => false,
    })
}

/// Whether a word is one field as it is.
fn is_whole(word: &Word) -> bool {
    let one = |part: &Part| match part {
        Part::Parameter(found) => found.index.is_none() && !found.indirect && !matches!(&found.name[..], b"@" | b"*"),
        Part::Literal(_) | Part::Quoted(_) | Part::Command(..) | Part::Arithmetic(_) => true,
        _ => false,
    };
    word.parts.iter().all(|part| match part {
        Part::Literal(bytes) => !bytes.iter().any(|byte| b"*?[~".contains(byte)),
        Part::Quoted(_) => true,
        Part::DoubleQuoted(inner) => inner.iter().all(one),
        _ => false,
    })
}
