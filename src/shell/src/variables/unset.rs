//! `unset` of variables and elements.

use super::Key;
use super::array::ELEMENT;
use crate::eval::Run;
use crate::shell::Shell;

impl Shell<'_> {
    /// `unset name`: the flag is false if it is read-only.
    pub(crate) fn unset_variable(&mut self, name: &[u8]) -> Run<bool> {
        if !self.may_declare(name)? {
            return Ok(false);
        }
        self.forget(name)?;
        Ok(true)
    }

    /// `unset 'name[subscript]'`
    pub(crate) fn unset_element(&mut self, name: &[u8], subscript: &[u8]) -> Run<bool> {
        let Some(name) = self.state.referred(name).map(<[u8]>::to_vec) else { return Ok(true) };
        if !self.may_declare(&name)? {
            return Ok(false);
        }
        match self.state.variables.get(&name) {
            None => return Ok(true),
            Some(found) if found.array.is_none() => {
                if self.unset_key(&name, subscript)? == Some(Key::Index(0)) {
                    return self.unset_variable(&name);
                }
                self.complain(&[&name[..], b": not an array variable"].concat())?;
                return Ok(false);
            }
            Some(_) => {}
        }
        if matches!(subscript, b"@" | b"*") && !self.is_associative(&name) {
            return self.clear_array(&name).map(|()| true);
        }
        let Some(key) = self.unset_key(&name, subscript)? else { return Ok(false) };
        self.step_elements(&name)?;
        if let Some(Some(old)) = self.with_array(&name, |array| array.remove(&key))? {
            self.account(ELEMENT + key.len() + old.len(), 0)?;
        }
        Ok(true)
    }

    /// The key of an element to unset: a wrong one is an error of the builtin only.
    fn unset_key(&mut self, name: &[u8], subscript: &[u8]) -> Run<Option<Key>> {
        self.errors_ignored += 1;
        let key = self.reading_key(name, subscript);
        self.errors_ignored -= 1;
        key
    }
}
