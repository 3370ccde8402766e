//! Changes of variables, and their side effects.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::eval::Run;
use crate::host::Variables;
use crate::shell::Shell;
use crate::state::{State, Variable};

impl Shell<'_> {
    /// Sets a variable; one that is read-only is an error of the shell.
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) -> Run<()> {
        if !self.state.language.is_bash() {
            return self.change(name, Some(value.to_vec()), false);
        }
        match self.assign_text(name, value, false)? {
            true => Ok(()),
            false => Err(self.assignment_failed()),
        }
    }

    /// Sets or unsets a variable, and perhaps exports it.
    pub(crate) fn change(&mut self, name: &[u8], value: Option<Vec<u8>>, export: bool) -> Run<()> {
        if let (Some(value), true) = (&value, self.state.language.is_bash()) {
            self.set(name, &value.clone())?;
            if export {
                self.mark_exported(name);
            }
            return Ok(());
        }
        if self.state.variables.get(name).is_some_and(|variable| variable.readonly) {
            return Err(self.shell_error(&[name, b": is read only"].concat()));
        }
        self.store(name, value)?;
        if export {
            self.mark_exported(name);
        }
        Ok(())
    }

    /// Stores the value of a variable that is not an array.
    pub(crate) fn store(&mut self, name: &[u8], value: Option<Vec<u8>>) -> Run<()> {
        let old = self.state.variables.get(name).map_or(0, |old| old.size() + name.len());
        self.account(old, value.as_ref().map_or(0, Vec::len) + name.len())?;
        self.mark_variable(name, false);
        let allexport = self.state.flags.allexport;
        let variable: &mut Variable = Rc::make_mut(&mut self.state.variables).entry(name.to_vec()).or_default();
        variable.value = value.map(Rc::new);
        variable.exported |= allexport;
        match name {
            b"OPTIND" => self.option_index()?,
            b"PATH" => self.state.hashed = Rc::default(),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn mark_exported(&mut self, name: &[u8]) {
        if let Some(variable) = Rc::make_mut(&mut self.state.variables).get_mut(name) {
            variable.exported = true;
        }
    }

    /// `getopts` of dash starts over when the parameters change.
    pub(crate) fn restart_options(&mut self) {
        if !self.state.language.is_bash() {
            self.state.getopts = Default::default();
        }
    }

    /// `getopts` of bash continues at `OPTIND`; 1, or a text that is not a number, starts over.
    pub(crate) fn restart_at_index(&mut self) {
        let text = self.state.get(b"OPTIND").unwrap_or_default();
        let index = usize::try_from(leading_number(text)).unwrap_or_default();
        self.state.getopts.index = if index == 1 { 0 } else { index };
    }

    /// `getopts` of dash continues at `OPTIND`.
    pub(crate) fn option_index(&mut self) -> Run<()> {
        let text = self.state.get(b"OPTIND").unwrap_or_default().to_vec();
        if self.state.language.is_bash() {
            self.restart_at_index();
            return Ok(());
        }
        let Some(index) = crate::builtins::number(&text) else {
            return Err(self.shell_error(&[b"Illegal number: ", &text[..]].concat()));
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX).saturating_sub(1);
        self.state.getopts = crate::state::Getopts { index, ..Default::default() };
        Ok(())
    }

    /// Counts the copy that a subshell makes of its variables when it changes one.
    pub(crate) fn own_variables(&mut self) -> Run<()> {
        if Rc::strong_count(&self.state.variables) > 1 {
            self.spend(self.state.variables.len() * 64)?;
        }
        Ok(())
    }
}

/// `atoi`: the number at the start of a text, 0 where there is none.
fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let len = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let value = crate::expand::number(&digits[..len]);
    if negative { value.saturating_neg() } else { value }
}

/// The variables as the caller's commands see them.
pub(crate) struct Seen<'s> {
    pub(crate) state: &'s State,
    pub(crate) changes: Vec<Change>,
}

/// A variable that a command of the caller sets.
pub(crate) struct Change {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) export: bool,
}

impl Variables for Seen<'_> {
    fn get(&self, name: &[u8]) -> Option<Vec<u8>> {
        let changed = self.changes.iter().rev().find(|change| change.name == name);
        changed.map(|change| change.value.clone()).or_else(|| self.state.get(name).map(<[u8]>::to_vec))
    }

    fn set(&mut self, name: &[u8], value: &[u8]) {
        self.changes.push(Change { name: name.to_vec(), value: value.to_vec(), export: false });
    }

    fn export(&mut self, name: &[u8], value: &[u8]) {
        self.changes.push(Change { name: name.to_vec(), value: value.to_vec(), export: true });
    }

    fn exported(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        self.state.exported()
    }
}
