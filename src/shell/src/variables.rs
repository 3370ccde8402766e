//! The variables of bash: scalars, arrays and references, with the attributes that change what is assigned.

mod associative;
mod locals;
mod subscript;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::error::ErrorKind;
use crate::eval::{Run, Stop};
use crate::expand::Entry;
use crate::pattern::Style;
use crate::shell::Shell;
use crate::state::Variable;

pub(crate) use associative::Associative;
pub(crate) use subscript::{Key, divide_reference};

/// What an element costs of the budget of variables beyond its bytes.
const ELEMENT: usize = 16;

/// The elements of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Array {
    Indexed(BTreeMap<u64, Rc<Vec<u8>>>),
    Associative(Associative),
}

impl Array {
    /// The element that `$name` gives.
    pub(crate) fn first(&self) -> Option<&Rc<Vec<u8>>> {
        match self {
            Self::Indexed(elements) => elements.get(&0),
            Self::Associative(elements) => elements.get(b"0"),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Rc<Vec<u8>>> {
        match (self, key) {
            (Self::Indexed(elements), Key::Index(index)) => elements.get(index),
            (Self::Associative(elements), Key::Text(key)) => elements.get(key),
            _ => None,
        }
    }

    fn insert(&mut self, key: &Key, value: Rc<Vec<u8>>) {
        match (self, key) {
            (Self::Indexed(elements), Key::Index(index)) => drop(elements.insert(*index, value)),
            (Self::Associative(elements), Key::Text(key)) => elements.insert(key, value),
            _ => {}
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Rc<Vec<u8>>> {
        match (self, key) {
            (Self::Indexed(elements), Key::Index(index)) => elements.remove(index),
            (Self::Associative(elements), Key::Text(key)) => elements.remove(key),
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Indexed(elements) => elements.len(),
            Self::Associative(elements) => elements.len(),
        }
    }

    /// Keys and values in the order of bash.
    pub(crate) fn entries(&self) -> Vec<(Key, Rc<Vec<u8>>)> {
        match self {
            Self::Indexed(elements) => {
                elements.iter().map(|(index, value)| (Key::Index(*index), value.clone())).collect()
            }
            Self::Associative(elements) => {
                elements.iter().map(|(key, value)| (Key::Text(key.to_vec()), value.clone())).collect()
            }
        }
    }

    /// The bytes that the budget of variables counts.
    pub(crate) fn size(&self) -> usize {
        self.entries().iter().map(|(key, value)| ELEMENT + key.len() + value.len()).sum()
    }

    /// Whether the order depends on the machine: bytes beyond ASCII are negative on some, and hashed as such.
    fn order_varies(&self) -> bool {
        match self {
            Self::Indexed(_) => false,
            Self::Associative(elements) => elements.len() > 1 && elements.keys().any(|key| !key.is_ascii()),
        }
    }
}

impl Shell<'_> {
    /// Reports an error of bash that ends the shell with `set -e`, whatever tests it: `report_error` of bash.
    pub(crate) fn report(&mut self, message: &[u8]) -> Run<()> {
        self.complain(message)?;
        if self.ends_by_errors() { Err(Stop::Exit) } else { Ok(()) }
    }

    /// Whether errors of bash end the shell; then its status says that there was one.
    pub(crate) fn ends_by_errors(&mut self) -> bool {
        let ends = self.errors_ignored == 0 && self.state.language.is_bash() && self.exits_on_failure();
        if ends {
            self.state.status = self.state.status.max(1);
        }
        ends
    }

    /// Reports such an error, and ends the running line without `set -e`.
    pub(crate) fn discard_reported(&mut self, message: &[u8]) -> Stop {
        match self.report(message) {
            Ok(()) => {
                self.state.status = 1;
                Stop::Discard
            }
            Err(stop) => stop,
        }
    }

    /// Ends the running line of a script of bash with status 1.
    pub(crate) fn discard(&mut self, message: &[u8]) -> Stop {
        match self.complain(message) {
            Ok(()) => {
                self.state.status = 1;
                Stop::Discard
            }
            Err(stop) => stop,
        }
    }

    /// Whether an option of `shopt` is on.
    pub(crate) fn shopt(&self, name: &str) -> bool {
        self.state.bash.shopt(name)
    }

    /// How patterns are read.
    pub(crate) fn pattern_style(&self) -> Style {
        let bash = self.state.language.is_bash();
        Style { bash, extended: bash && self.shopt("extglob"), ignore_case: bash && self.shopt("nocasematch") }
    }

    /// An unset parameter below `set -u`: the shell ends.
    pub(crate) fn unbound(&mut self, name: &[u8]) -> Stop {
        match self.complain(&[name, b": unbound variable"].concat()) {
            Ok(()) => {
                self.state.status = self.state.bash.fatal_status;
                self.state.bash.forced = true;
                Stop::Exit
            }
            Err(stop) => stop,
        }
    }

    /// An assignment failed where it is a command, which has been reported.
    pub(crate) fn assignment_failed(&mut self) -> Stop {
        self.state.status = 1;
        Stop::Discard
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
        if text.is_ascii() || matches!(set, None | Some(b"C" | b"POSIX")) {
            return Ok(());
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

    /// Counts the copy of an array that is shared with an outer shell.
    fn step_elements(&mut self, name: &[u8]) -> Run<()> {
        let array = self.state.variables.get(name).and_then(|found| found.array.as_ref());
        let shared = array.filter(|array| Rc::strong_count(array) > 1).map_or(0, |array| array.len());
        self.spend(shared * 64)
    }

    fn with_array<T>(&mut self, name: &[u8], change: impl FnOnce(&mut Array) -> T) -> Run<Option<T>> {
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

    fn clear_array(&mut self, name: &[u8]) -> Run<()> {
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
    fn end(&self, name: &[u8]) -> u64 {
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
