//! Assignments to variables, elements and whole arrays.

use std::rc::Rc;

use super::array::ELEMENT;
use super::{Array, Key};
use crate::eval::Run;
use crate::expand::Entry;
use crate::shell::Shell;

impl Shell<'_> {
    /// `name=value`, `name+=value`. The flag is false if the variable is read-only, which has been said then.
    pub(crate) fn assign_text(&mut self, name: &[u8], value: &[u8], append: bool) -> Run<bool> {
        let name = self.target(name)?;
        if !self.may_change(&name)? {
            return Ok(false);
        }
        let variable = self.state.variables.get(&name).cloned().unwrap_or_default();
        if let Some(array) = &variable.array {
            let key = match **array {
                Array::Indexed(_) => Key::Index(0),
                Array::Associative(_) => Key::Text(b"0".to_vec()),
            };
            drop(variable);
            self.assign_key(&name, &key, value, append)?;
        } else {
            let value = self.converted(&variable, variable.value.as_ref().map(|old| &old[..]), value, append)?;
            drop(variable);
            self.store(&name, Some(value))?;
        }
        Ok(true)
    }

    /// Assigns to an element that was found before.
    pub(crate) fn assign_at(&mut self, name: &[u8], key: &Key, value: &[u8]) -> Run<bool> {
        let name = self.target(name)?;
        if !self.may_change(&name)? {
            return Ok(false);
        }
        self.assign_key(&name, key, value, false)?;
        Ok(true)
    }

    /// `name[subscript]=value`
    pub(crate) fn assign_element(&mut self, name: &[u8], subscript: &[u8], value: &[u8], append: bool) -> Run<bool> {
        let name = self.target(name)?;
        if !self.may_change(&name)? {
            return Ok(false);
        }
        let Some(key) = self.key(&name, subscript)? else { return Ok(false) };
        self.assign_key(&name, &key, value, append)?;
        Ok(true)
    }

    /// `name=(…)`, `name+=(…)`
    pub(crate) fn assign_compound(&mut self, name: &[u8], items: Vec<Entry>, append: bool) -> Run<bool> {
        let name = self.target(name)?;
        if !self.may_change(&name)? {
            return Ok(false);
        }
        self.make_indexed(&name)?;
        let associative = self.is_associative(&name);
        if !append {
            self.clear_array(&name)?;
        }
        if associative && items.iter().any(|item| item.index.is_none()) {
            if items.iter().any(|item| item.index.is_some()) {
                return self.unsupported(b"an associative array with and without subscripts");
            }
            if items.iter().any(|item| !item.whole) {
                return self.unsupported(b"an associative array of an expansion");
            }
            for pair in items.chunks(2) {
                let Some(key) = self.key(&name, &pair[0].value)? else {
                    return self.unsupported(b"a wrong subscript in a list");
                };
                self.assign_key(&name, &key, pair.get(1).map_or(&b""[..], |item| &item.value), false)?;
            }
            return Ok(true);
        }
        if let Some(variable) = Rc::make_mut(&mut self.state.variables).get_mut(&name) {
            variable.attributes.unassigned = false;
        }
        let mut next = self.end(&name);
        for item in items {
            let key = match &item.index {
                Some(subscript) => match self.key(&name, subscript)? {
                    Some(key) => key,
                    None => return self.unsupported(b"a wrong subscript in a list"),
                },
                None => Key::Index(next),
            };
            if let Key::Index(index) = key {
                if i64::try_from(index).is_err() {
                    return self.unsupported(b"an index beyond 64 bits");
                }
                next = index.saturating_add(1);
            }
            self.assign_key(&name, &key, &item.value, item.append)?;
        }
        Ok(true)
    }

    /// Replaces a variable by an array of these values.
    pub(crate) fn set_indexed(&mut self, name: &[u8], values: impl IntoIterator<Item = Vec<u8>>) -> Run<bool> {
        let items = values.into_iter().map(|value| Entry { index: None, append: false, value, whole: true }).collect();
        self.assign_compound(name, items, false)
    }

    /// Assigns to an element of an array, which a scalar becomes.
    pub(crate) fn assign_key(&mut self, name: &[u8], key: &Key, value: &[u8], append: bool) -> Run<()> {
        self.step_elements(name)?;
        self.make_indexed(name)?;
        let variable = self.state.variables.get(name).cloned().unwrap_or_default();
        let old = variable.array.as_ref().and_then(|array| array.get(key)).cloned();
        let value = self.converted(&variable, old.as_ref().map(|old| &old[..]), value, append)?;
        drop(variable);
        let before = old.as_ref().map_or(0, |old| ELEMENT + key.len() + old.len());
        self.account(before, ELEMENT + key.len() + value.len())?;
        let allexport = self.state.flags.allexport;
        self.with_array(name, |array| array.insert(key, Rc::new(value)))?;
        if let Some(variable) = Rc::make_mut(&mut self.state.variables).get_mut(name) {
            variable.attributes.unassigned = false;
            variable.exported |= allexport;
        }
        Ok(())
    }
}
