//! Scopes: outer variables hidden by functions and by assignments before them.

use std::rc::Rc;

use crate::eval::Run;
use crate::shell::Shell;
use crate::state::{Flags, Getopts, Scope, Variable};

impl Shell<'_> {
    /// Begins a scope: of a function, or with `temporary` of the assignments before its name.
    pub(crate) fn enter_scope(&mut self, temporary: bool) {
        self.state.locals.push(Scope { temporary, getopts: self.state.getopts, ..Scope::default() });
    }

    /// Ends a scope: what it hid is seen again.
    pub(crate) fn leave_scope(&mut self) {
        let Some(scope) = self.state.locals.pop() else { return };
        let getopts =
            (self.state.language.is_bash() && scope.has(b"OPTIND")).then_some((scope.temporary, scope.getopts));
        for (name, old) in scope.saved.into_iter().rev() {
            self.put_back(name, old);
        }
        if let Some(flags) = scope.flags {
            self.state.flags = flags;
        }
        match getopts {
            Some((true, _)) => self.restart_at_index(),
            Some((false, before)) => self.state.getopts = before,
            None => {}
        }
    }

    /// Runs without the assignments before the running command. With `keeps`, changes of the hidden variables last.
    pub(crate) fn without_temporaries<T>(&mut self, keeps: bool, run: impl FnOnce(&mut Self) -> T) -> T {
        let Some(at) = self.state.locals.len().checked_sub(1).filter(|at| self.state.locals[*at].temporary) else {
            return run(self);
        };
        let saved = self.state.locals[at].saved.clone();
        let temporary: Vec<_> = saved.into_iter().map(|(name, old)| self.exchanged(name, old)).collect();
        let result = run(self);
        let changed: Vec<_> = temporary.into_iter().map(|(name, own)| self.exchanged(name, own)).collect();
        if let Some(scope) = self.state.locals.get_mut(at).filter(|_| keeps) {
            scope.saved = changed;
        }
        result
    }

    /// Replaces a variable, and gives the one that was there.
    fn exchanged(&mut self, name: Vec<u8>, new: Option<Variable>) -> (Vec<u8>, Option<Variable>) {
        if name == b"PATH" {
            self.state.hashed = Rc::default();
        }
        let variables = Rc::make_mut(&mut self.state.variables);
        let old = match new {
            Some(new) => variables.insert(name.clone(), new),
            None => variables.remove(&name),
        };
        (name, old)
    }

    /// Ends all scopes but the outermost `count`.
    pub(crate) fn leave_scopes(&mut self, count: usize) {
        while self.state.locals.len() > count {
            self.leave_scope();
        }
    }

    /// Gives a variable back what it was.
    pub(crate) fn put_back(&mut self, name: Vec<u8>, old: Option<Variable>) {
        let size = |found: Option<&Variable>| found.map_or(0, |found| found.size() + name.len());
        let bytes = self.state.variables_bytes.saturating_sub(size(self.state.variables.get(&name)));
        self.state.variables_bytes = bytes.saturating_add(size(old.as_ref()));
        match &name[..] {
            b"PATH" => self.state.hashed = Rc::default(),
            b"OPTIND" if !self.state.language.is_bash() => {
                let text = old.as_ref().and_then(|old| old.value.as_ref());
                let index = text.and_then(|text| crate::builtins::number(text)).unwrap_or(1);
                let index = usize::try_from(index).unwrap_or(1).saturating_sub(1);
                self.state.getopts = Getopts { index, ..Getopts::default() };
            }
            _ => {}
        }
        let variables = Rc::make_mut(&mut self.state.variables);
        match old {
            Some(old) => variables.insert(name, old),
            None => variables.remove(&name),
        };
    }

    /// Saves a variable in the scope of the running function, unless that has been done.
    pub(crate) fn save_in_scope(&mut self, name: &[u8]) -> bool {
        match self.function_scope() {
            Some(at) => self.save_at(at, name),
            None => false,
        }
    }

    /// Saves a variable that an assignment before a command hides.
    pub(crate) fn save_before_command(&mut self, name: &[u8]) {
        if let Some(at) = self.state.locals.len().checked_sub(1) {
            self.save_at(at, name);
        }
    }

    /// The variables that assignments before the command hide others with.
    pub(crate) fn hiding_variables(&self) -> Vec<(Vec<u8>, Option<Variable>)> {
        let saved = self.state.locals.last().map(|scope| &scope.saved[..]).unwrap_or_default();
        saved.iter().map(|(name, _)| (name.clone(), self.state.variables.get(name).cloned())).collect()
    }

    /// Gives a variable that an assignment before the command hides the value of the one that hides it.
    pub(crate) fn change_hidden(&mut self, name: &[u8], hiding: Option<Variable>) -> Run<()> {
        let scope = self.state.locals.last_mut();
        let hidden = scope.and_then(|scope| scope.saved.iter_mut().find(|(found, _)| found == name));
        if let Some((_, hidden)) = hidden {
            let hidden = hidden.get_or_insert_default();
            if hidden.array.is_some() || hidden.attributes.nameref {
                return self
                    .unsupported(b"an assignment in a value to an array that an assignment before the command hides");
            }
            hidden.value = hiding.and_then(|hiding| hiding.value);
        }
        Ok(())
    }

    fn function_scope(&self) -> Option<usize> {
        self.state.locals.iter().rposition(|scope| !scope.temporary)
    }

    fn save_at(&mut self, at: usize, name: &[u8]) -> bool {
        let old = self.state.variables.get(name).cloned();
        match self.state.locals.get_mut(at) {
            Some(scope) if !scope.has(name) => {
                scope.saved.push((name.to_vec(), old));
                true
            }
            _ => false,
        }
    }

    /// Makes a variable local to the running function of bash, with `inherit` with its value. The flag is false if it is read-only.
    pub(crate) fn make_local(&mut self, name: &[u8], inherit: bool) -> Run<bool> {
        let own = self.function_scope().and_then(|at| self.state.locals.get(at)).is_some_and(|scope| scope.has(name));
        if own && self.state.variables.contains_key(name) {
            return Ok(true);
        }
        if !self.may_declare(name)? {
            return Ok(false);
        }
        let before = self.function_scope().and_then(|at| self.state.locals.get(at.checked_sub(1)?));
        let inherit = inherit || before.is_some_and(|scope| scope.temporary && scope.has(name));
        if !self.save_in_scope(name) {
            return Ok(true);
        }
        self.own_variables()?;
        if inherit {
            self.account(0, self.state.variables.get(name).map_or(0, Variable::size))?;
            return Ok(true);
        }
        let exported = self.state.variables.get(name).is_some_and(|found| found.exported);
        let fresh = Variable { exported, ..Variable::default() };
        Rc::make_mut(&mut self.state.variables).insert(name.to_vec(), fresh);
        if name == b"OPTIND" {
            self.restart_at_index();
        }
        Ok(true)
    }

    /// `local -`: options of `set` are those of before when the function ends.
    pub(crate) fn save_flags(&mut self) {
        let flags: Flags = self.state.flags;
        let at = self.function_scope();
        if let Some(scope) = at.and_then(|at| self.state.locals.get_mut(at)) {
            scope.flags.get_or_insert(flags);
        }
    }

    /// Removes a variable. One of the running function stays its own, and one of a calling function shows again what it hid.
    pub(super) fn forget(&mut self, name: &[u8]) -> Run<()> {
        self.own_variables()?;
        let scope = self.state.locals.iter().rposition(|scope| scope.has(name));
        let old = match scope {
            None => None,
            Some(at) if self.function_scope() == Some(at) => Some(Variable::default()),
            Some(at) => self.state.locals[at].take(name),
        };
        self.put_back(name.to_vec(), old);
        if name == b"OPTIND" {
            self.restart_at_index();
        }
        Ok(())
    }

    /// Runs with the global variable of a name in place of those that hide it.
    pub(crate) fn with_global<T>(&mut self, name: &[u8], run: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        let Some(at) = self.state.locals.iter().position(|scope| scope.has(name)) else { return run(self) };
        self.own_variables()?;
        let global = self.state.locals[at].take(name);
        let inner = self.state.variables.get(name).cloned();
        self.put_back(name.to_vec(), global);
        let result = run(self);
        let global = self.state.variables.get(name).cloned();
        if let Some(scope) = self.state.locals.get_mut(at) {
            scope.saved.push((name.to_vec(), global));
        }
        self.put_back(name.to_vec(), inner);
        result
    }
}
