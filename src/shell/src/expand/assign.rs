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
    /// Performs an assignment.
    pub(crate) fn assign(&mut self, assignment: &Assignment) -> Run<()> {
        let Assignment { name, index, append, value } = assignment;
        if !self.state.language.is_bash() {
            let Assigned::Word(word) = value else { return self.unsupported(b"an assignment to an array") };
            let (value, unordered) = self.assigned_value(word)?;
            self.change(name, Some(value), false)?;
            self.mark_variable(name, unordered);
            return Ok(());
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
                let (value, unordered) = self.assigned_value(word)?;
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
        if assigned { Ok(()) } else { Err(self.assignment_failed()) }
    }

    /// Performs an assignment before a command of bash. What its value itself assigns lasts, and so do changes of variables that earlier
    /// assignments before the command hide.
    pub(crate) fn assign_before_command(&mut self, assignment: &Assignment) -> Run<()> {
        let (Assigned::Word(word), None) = (&assignment.value, &assignment.index) else {
            return self.unsupported(b"an array before a command");
        };
        let Assignment { name, append, .. } = assignment;
        if !self.may_change(name)? {
            return Ok(());
        }
        let own = self.state.variables.get(name).cloned();
        let hiding = self.hiding_variables();
        let value = self.value(word)?;
        for (name, before) in hiding {
            let after = self.state.variables.get(&name).cloned();
            if after != before {
                self.change_hidden(&name, after)?;
            }
        }
        if *append && self.state.variables.get(name) != own.as_ref() {
            return self.unsupported(b"an assignment in a value that is appended to the same variable");
        }
        self.save_before_command(name);
        let assigned = self.assign_text(name, &value, *append)?;
        self.mark_variable(name, false);
        if assigned {
            self.mark_exported(name);
        }
        Ok(())
    }

    /// The value of a variable, and whether it has an order that is not known.
    fn assigned_value(&mut self, word: &Word) -> Run<(Vec<u8>, bool)> {
        self.expanding_value(|shell| shell.value(word))
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
