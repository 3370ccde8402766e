//! Field splitting (POSIX XCU 2.6.5).

use super::{Unit, Units};
use crate::shell::Shell;

impl Shell<'_> {
    /// The fields of an expanded word: only what came from expansions without quotes is split.
    pub(super) fn split(&self, units: &[Unit]) -> Vec<Units> {
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
                Some(_) => {
                    field.get_or_insert_default().push(*unit);
                    after_blank = false;
                }
            }
        }
        fields.extend(field);
        fields
    }
}
