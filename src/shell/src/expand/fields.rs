//! Field splitting (POSIX XCU 2.6.5).

use super::{Unit, Units, bytes};
use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;

/// Whether a word may have a bracket expression.
fn is_bracketed(units: &[Unit]) -> bool {
    units.iter().any(|unit| unit.byte() == Some(b'[') && !unit.is_quoted())
}

impl Shell<'_> {
    /// The fields of an expanded word: only what came from expansions without quotes is split.
    pub(super) fn split(&self, units: &[Unit]) -> Run<Vec<Units>> {
        self.ask_separators()?;
        let ifs = self.state.ifs();
        let bash = self.state.language.is_bash();
        let mut fields: Vec<Units> = Vec::new();
        let mut field: Option<Units> = None;
        // A field ended at white space: another separator that follows belongs to it.
        let mut after_blank = false;
        for unit in units {
            match unit.byte() {
                // Between parameters it is as if there were white space, except in bash.
                None if *unit == Unit::BREAK => {
                    after_blank = (after_blank || field.is_some()) && !bash;
                    fields.extend(field.take());
                }
                None => {
                    field.get_or_insert_default();
                    after_blank = false;
                }
                Some(byte) if unit.is_split() && ifs.contains(&byte) => {
                    let blank = matches!(byte, b' ' | b'\t' | b'\n');
                    match field.take() {
                        Some(ended) => {
                            fields.push(ended);
                            after_blank = blank;
                        }
                        None if blank => {}
                        None if after_blank => after_blank = false,
                        None => fields.push(Units::new()),
                    }
                }
                // In a word that is split, bash takes it for a quoted character of a pattern.
                Some(byte) if bash && ifs.contains(&byte) && !unit.is_quoted() && is_bracketed(units) => {
                    return self.unsupported(b"a separator of fields in a pattern");
                }
                Some(_) => {
                    field.get_or_insert_default().push(*unit);
                    after_blank = false;
                }
            }
        }
        fields.extend(field);
        self.ask_fields(units, &fields, &ifs)?;
        Ok(fields)
    }

    /// Asks whether the characters that divide and join fields are known.
    pub(crate) fn ask_separators(&self) -> Run<()> {
        self.state.get(b"IFS").map_or(Ok(()), |ifs| self.ask(Question::Value(ifs)))
    }

    /// Asks where the fields depend on what a text is.
    fn ask_fields(&self, units: &[Unit], fields: &[Units], ifs: &[u8]) -> Run<()> {
        if ifs.iter().any(|byte| !b" \t\n".contains(byte)) {
            let split: Units = units.iter().copied().filter(|unit| unit.is_split()).collect();
            self.require_whole(&bytes(&split), ifs)?;
            self.ask(Question::Value(&bytes(&split)))?;
        }
        for field in fields {
            let plain: Units = field.iter().copied().filter(|unit| !unit.is_quoted()).collect();
            self.ask(Question::Fields { text: &bytes(&plain), is_alone: plain.len() == field.len() })?;
        }
        Ok(())
    }
}
