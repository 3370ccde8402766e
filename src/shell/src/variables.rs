//! The variables of bash: scalars, arrays and references, with their attributes.

mod array;
mod associative;
mod subscript;
mod failures;
mod assign;
mod elements;
mod unset;
mod locals;

use crate::error::ErrorKind;
use crate::eval::{Run, Stop};
use crate::host::Question;
use crate::pattern::Style;
use crate::shell::Shell;
use crate::state::Variable;

pub(crate) use array::Array;
pub(crate) use associative::Associative;
pub(crate) use subscript::{Key, divide_reference};

impl Shell<'_> {
    /// Whether an option of `shopt` is on.
    pub(crate) fn shopt(&self, name: &str) -> bool {
        self.state.bash.shopt(name)
    }

    /// How patterns are read.
    pub(crate) fn pattern_style(&self) -> Style {
        let bash = self.state.language.is_bash();
        Style { bash, extended: bash && self.shopt("extglob"), ignore_case: bash && self.shopt("nocasematch") }
    }

    /// The value of `$name` as arithmetic sees it.
    pub(crate) fn scalar_value(&mut self, name: &[u8]) -> Run<Option<Vec<u8>>> {
        if let Some(value) = self.special_variable(name)? {
            return Ok(Some(value));
        }
        match self.state.get(name) {
            Some(value) => Ok(Some(value.to_vec())),
            None if self.state.variables.contains_key(name) => Ok(None),
            None => Ok(self.special_array(name)?.and_then(|elements| elements.into_iter().next())),
        }
    }

    /// The name that an assignment to `name` changes; a reference without a target is not followed.
    pub(crate) fn target(&mut self, name: &[u8]) -> Run<Vec<u8>> {
        if !self.state.language.is_bash() {
            return Ok(name.to_vec());
        }
        match self.state.referred(name).map(<[u8]>::to_vec) {
            Some(target) if crate::syntax::words::is_name(&target) => Ok(target),
            Some(_) => self.unsupported(b"a reference to an element"),
            None => self.unsupported(b"a reference without a target"),
        }
    }

    /// Whether a variable may be changed; if not, that is reported.
    pub(crate) fn may_change(&mut self, name: &[u8]) -> Run<bool> {
        if self.is_fixed(name) {
            self.report(&[name, b": readonly variable"].concat())?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether a builtin that declares may change a variable: its errors do not end the shell.
    pub(crate) fn may_declare(&mut self, name: &[u8]) -> Run<bool> {
        if self.is_fixed(name) {
            self.complain(&[name, b": readonly variable"].concat())?;
            return Ok(false);
        }
        Ok(true)
    }

    fn is_fixed(&self, name: &[u8]) -> bool {
        const READONLY: [&[u8]; 6] = [b"BASHOPTS", b"SHELLOPTS", b"EUID", b"UID", b"PPID", b"BASH_VERSINFO"];
        let fixed = READONLY.contains(&name) && self.state.language.is_bash();
        fixed || self.state.variables.get(name).is_some_and(|found| found.readonly)
    }

    /// A value as the attributes of its variable want it.
    fn converted(&mut self, variable: &Variable, old: Option<&[u8]>, value: &[u8], append: bool) -> Run<Vec<u8>> {
        self.spend(value.len())?;
        let old = old.filter(|_| append).unwrap_or_default();
        if variable.attributes.integer {
            let status = self.state.status;
            let before = if append { self.evaluate(old) } else { Ok(0) };
            let number = before.and_then(|before| Ok(before.wrapping_add(self.evaluate(value)?)));
            let number = number.map_err(|stop| {
                // The status stays what it was, if that was a failure.
                if matches!(stop, Stop::Discard) && status > 0 {
                    self.state.status = status;
                }
                stop.through_texts()
            })?;
            return Ok(number.to_string().into_bytes());
        }
        let value = [old, value].concat();
        if variable.attributes.lower || variable.attributes.upper {
            self.ascii_only(&value)?;
        }
        Ok(match variable.attributes {
            attributes if attributes.lower => value.to_ascii_lowercase(),
            attributes if attributes.upper => value.to_ascii_uppercase(),
            _ => value,
        })
    }

    /// Refuses characters of more than one byte where it matters what a character is, and the locale is not that of POSIX.
    pub(crate) fn ascii_only(&self, text: &[u8]) -> Run<()> {
        let locale = [&b"LC_ALL"[..], b"LC_CTYPE", b"LANG"];
        let set = locale.iter().filter_map(|name| self.state.get(name)).find(|value| !value.is_empty());
        if text.is_ascii() || matches!(set, Some(b"C" | b"POSIX")) {
            return Ok(());
        }
        if set.is_none() {
            return self.ask(Question::Unset(b"LANG"));
        }
        self.unsupported(b"a character beyond ASCII in this locale")
    }

    /// Replaces one part of a variable's bytes by another in the account of all.
    pub(crate) fn account(&mut self, before: usize, after: usize) -> Run<()> {
        self.spend_size(after, after)?;
        let bytes = self.state.variables_bytes.saturating_sub(before).saturating_add(after);
        if bytes > self.budget.limits.variables_bytes {
            let limit = self.budget.limits.variables_bytes as u64;
            return Err(self.fatal(ErrorKind::Limit { what: "bytes of variables", limit }));
        }
        self.own_variables()?;
        self.state.variables_bytes = bytes;
        Ok(())
    }
}
