//! `declare -p name`

use crate::eval::Run;
use crate::expand::quoting::{attribute_letters, double};
use crate::host::Question;
use crate::shell::Shell;

impl Shell<'_> {
    /// Prints a declaration that makes the same variable; the flag is false if there is none.
    pub(super) fn print_declaration(&mut self, name: &[u8]) -> Run<bool> {
        let Some(variable) = self.state.variables.get(name).cloned() else {
            if self.special_variable(name)?.is_some() {
                return self.unsupported(b"the declaration of a variable of bash");
            }
            self.complain(&[b"declare: ", name, b": not found"].concat())?;
            return Ok(false);
        };
        let mut letters = attribute_letters(&variable);
        if letters.is_empty() {
            letters.push(b'-');
        }
        let mut line = [&b"declare -"[..], &letters, b" ", name].concat();
        match (&variable.array, &variable.value) {
            (Some(_), _) if !variable.attributes.unassigned => {
                line.push(b'=');
                line.extend(self.compound_text(name)?);
            }
            (None, Some(value)) => {
                self.ask(Question::Value(value))?;
                line.push(b'=');
                line.extend(double(value));
            }
            _ => {}
        }
        line.push(b'\n');
        self.out(&line)?;
        Ok(true)
    }
}
