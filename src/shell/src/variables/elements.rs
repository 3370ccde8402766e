//! Elements of variables, and conversion of scalars to arrays.

use std::rc::Rc;

use super::array::ELEMENT;
use super::{Array, Associative, Key};
use crate::eval::Run;
use crate::shell::Shell;
use crate::state::Variable;

impl Shell<'_> {
    /// Counts the copy of an array that is shared with an outer shell.
    pub(super) fn step_elements(&mut self, name: &[u8]) -> Run<()> {
        let array = self.state.variables.get(name).and_then(|found| found.array.as_ref());
        let shared = array.filter(|array| Rc::strong_count(array) > 1).map_or(0, |array| array.len());
        self.spend(shared * 64)
    }

    pub(super) fn with_array<T>(&mut self, name: &[u8], change: impl FnOnce(&mut Array) -> T) -> Run<Option<T>> {
        self.own_variables()?;
        let variable = Rc::make_mut(&mut self.state.variables).get_mut(name);
        Ok(variable.and_then(|found| found.array.as_mut()).map(|array| change(Rc::make_mut(array))))
    }

    /// Makes an indexed array of what is not an array; its value becomes element 0.
    pub(crate) fn make_indexed(&mut self, name: &[u8]) -> Run<()> {
        if self.state.variables.get(name).is_some_and(|found| found.array.is_some()) {
            return Ok(());
        }
        const DYNAMIC: [&[u8]; 6] = [b"FUNCNAME", b"GROUPS", b"DIRSTACK", b"BASH_ALIASES", b"BASH_CMDS", b"PIPESTATUS"];
        if DYNAMIC.contains(&name) {
            return self.unsupported(&[name, b" as a variable of the script"].concat());
        }
        self.account(0, name.len() + ELEMENT)?;
        let variable = Rc::make_mut(&mut self.state.variables).entry(name.to_vec()).or_default();
        let value = variable.value.take();
        variable.attributes.unassigned = value.is_none();
        variable.array = Some(Rc::new(Array::Indexed(value.map(|value| (0, value)).into_iter().collect())));
        Ok(())
    }

    /// Makes an associative array; the flag is false for an indexed array, which stays as it is.
    pub(crate) fn make_associative(&mut self, name: &[u8]) -> Run<bool> {
        match self.state.variables.get(name).and_then(|found| found.array.as_deref()) {
            Some(Array::Associative(_)) => return Ok(true),
            Some(Array::Indexed(_)) => return Ok(false),
            None => {}
        }
        self.account(0, name.len() + ELEMENT)?;
        let variable = Rc::make_mut(&mut self.state.variables).entry(name.to_vec()).or_default();
        let mut elements = Associative::default();
        let value = variable.value.take();
        variable.attributes.unassigned = value.is_none();
        if let Some(value) = value {
            elements.insert(b"0", value);
        }
        variable.array = Some(Rc::new(Array::Associative(elements)));
        Ok(true)
    }

    pub(crate) fn is_associative(&self, name: &[u8]) -> bool {
        let array = self.state.variable(name).and_then(|found| found.array.as_deref());
        matches!(array, Some(Array::Associative(_)))
    }

    pub(super) fn clear_array(&mut self, name: &[u8]) -> Run<()> {
        let size = self.state.variables.get(name).map_or(0, Variable::size);
        self.spend(size)?;
        self.account(size, 0)?;
        self.with_array(name, |array| match array {
            Array::Indexed(elements) => elements.clear(),
            Array::Associative(elements) => elements.clear(),
        })?;
        if let Some(variable) = Rc::make_mut(&mut self.state.variables).get_mut(name) {
            variable.attributes.unassigned = false;
        }
        Ok(())
    }

    /// The index after the last element of an indexed array.
    pub(super) fn end(&self, name: &[u8]) -> u64 {
        match self.state.variables.get(name).and_then(|found| found.array.as_deref()) {
            Some(Array::Indexed(elements)) => elements.last_key_value().map_or(0, |(index, _)| index.saturating_add(1)),
            _ => 0,
        }
    }

    /// All elements of a variable; a scalar is an array of one.
    pub(crate) fn elements(&mut self, name: &[u8]) -> Run<Vec<(Key, Rc<Vec<u8>>)>> {
        let Some(variable) = self.state.variable(name) else { return Ok(Vec::new()) };
        let Some(array) = variable.array.clone() else {
            return Ok(variable.value.iter().map(|value| (Key::Index(0), value.clone())).collect());
        };
        if array.order_varies() {
            return self.unsupported(b"the order of keys beyond ASCII");
        }
        self.spend(array.len().saturating_mul(ELEMENT))?;
        Ok(array.entries())
    }

    /// The value of an element.
    pub(crate) fn element(&mut self, name: &[u8], subscript: &[u8]) -> Run<Option<Rc<Vec<u8>>>> {
        let Some(name) = self.state.referred(name).map(<[u8]>::to_vec) else { return Ok(None) };
        match self.reading_key(&name, subscript)? {
            Some(key) => self.element_at(&name, &key),
            None => Ok(None),
        }
    }

    /// The value of an element of a variable that is not a reference.
    pub(crate) fn element_at(&mut self, name: &[u8], key: &Key) -> Run<Option<Rc<Vec<u8>>>> {
        let Some(variable) = self.state.variables.get(name) else {
            let elements = self.special_array(name)?.unwrap_or_default();
            let Key::Index(index) = key else { return Ok(None) };
            return Ok(usize::try_from(*index).ok().and_then(|index| elements.get(index).cloned()).map(Rc::new));
        };
        Ok(match (&variable.array, key) {
            (Some(array), key) => array.get(key).cloned(),
            (None, Key::Index(0)) => variable.value.clone(),
            _ => None,
        })
    }
}
