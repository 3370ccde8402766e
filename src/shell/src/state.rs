//! The state of a shell; a subshell gets a copy.

mod bash;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::builtins::Alias;
use crate::descriptors::Handle;
use crate::syntax::{Language, Node};
use crate::variables::Array;

pub(crate) use bash::{Bash, Frame, Trap, may_set_shopt, shopt_name, shopt_names};

/// Most references that follow each other: `NAMEREF_MAX` of bash.
const MAX_REFERENCES: usize = 8;

/// A variable. One may be exported or read-only before it has a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variable {
    /// The value of what is not an array.
    pub(crate) value: Option<Rc<Vec<u8>>>,
    /// The elements of an array of bash.
    pub(crate) array: Option<Rc<Array>>,
    pub(crate) exported: bool,
    pub(crate) readonly: bool,
    pub(crate) attributes: Attributes,
}

/// Attributes of `declare`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// Values are arithmetic expressions.
    pub(crate) integer: bool,
    pub(crate) lower: bool,
    pub(crate) upper: bool,
    /// The value is the name of another variable.
    pub(crate) nameref: bool,
    pub(crate) trace: bool,
    /// An array that nothing was assigned to.
    pub(crate) unassigned: bool,
}

impl Variable {
    /// The value of `$name`: of an array the element 0.
    pub(crate) fn scalar(&self) -> Option<&Rc<Vec<u8>>> {
        match self.array.as_deref() {
            None => self.value.as_ref(),
            Some(array) => array.first(),
        }
    }

    /// Whether it is declared, but was not assigned to.
    pub(crate) fn is_invisible(&self) -> bool {
        if self.array.is_some() { self.attributes.unassigned } else { self.value.is_none() }
    }

    /// The bytes that the budget of variables counts.
    pub(crate) fn size(&self) -> usize {
        self.value.as_ref().map_or(0, |value| value.len()) + self.array.as_ref().map_or(0, |array| array.size())
    }
}

/// Options of `set`, by their letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) allexport: bool,
    pub(crate) noclobber: bool,
    pub(crate) errexit: bool,
    pub(crate) noglob: bool,
    pub(crate) nounset: bool,
    pub(crate) xtrace: bool,
    pub(crate) verbose: bool,
    /// The script is standard input.
    pub(crate) stdin: bool,
    /// Of bash: the script is an argument.
    pub(crate) argument: bool,
    /// Of bash: a pipeline fails with the last of its stages that does.
    pub(crate) pipefail: bool,
    /// Of bash: functions and subshells inherit the trap for ERR, or those for DEBUG and RETURN.
    pub(crate) errtrace: bool,
    pub(crate) functrace: bool,
    /// The caller gives the script up where a command fails: not an option, and not of subshells.
    pub(crate) ends_on_failure: bool,
}

impl Flags {
    /// Whether a failure ends the shell.
    pub(crate) fn end_on_failure(self) -> bool {
        self.errexit || self.ends_on_failure
    }
}

/// Position of `getopts` in an argument.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Getopts {
    pub(crate) index: usize,
    pub(crate) offset: usize,
    /// Of bash: the argument that `offset` is in.
    pub(crate) current: usize,
}

/// What a function, or the assignments before its name, hid of outer variables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) saved: Vec<(Vec<u8>, Option<Variable>)>,
    /// Of assignments before the name of a function.
    pub(crate) temporary: bool,
    /// Options to return to: `local -`.
    pub(crate) flags: Option<Flags>,
    /// Where `getopts` of bash stood at the call.
    pub(crate) getopts: Getopts,
}

impl Scope {
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.saved.iter().any(|(found, _)| found == name)
    }

    /// Takes away what was saved of a variable.
    pub(crate) fn take(&mut self, name: &[u8]) -> Option<Variable> {
        let at = self.saved.iter().position(|(found, _)| found == name)?;
        self.saved.remove(at).1
    }
}

/// Where in the search path a command was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hashed {
    pub(crate) index: usize,
    /// The working directory changed since.
    pub(crate) moved: bool,
}

/// The state of a shell.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) variables: Rc<BTreeMap<Vec<u8>, Variable>>,
    pub(crate) variables_bytes: usize,
    /// Variables whose values have an order that is not known.
    pub(crate) unordered: Rc<BTreeSet<Vec<u8>>>,
    /// The names of the environment that the shell began with, as far as they were not unset.
    pub(crate) inherited: Rc<BTreeSet<Vec<u8>>>,
    pub(crate) functions: Rc<BTreeMap<Vec<u8>, Rc<Node>>>,
    pub(crate) aliases: Rc<BTreeMap<Vec<u8>, Rc<Alias>>>,
    pub(crate) hashed: Rc<BTreeMap<Vec<u8>, Hashed>>,
    /// `$0` and what follows.
    pub(crate) zero: Rc<Vec<u8>>,
    pub(crate) params: Rc<Vec<Vec<u8>>>,
    pub(crate) flags: Flags,
    /// `$?`
    pub(crate) status: u8,
    /// The status of the last command substitution of the running command.
    pub(crate) substituted: u8,
    /// The status of the last subshell whose output was taken.
    pub(crate) output_status: u8,
    /// While the trap of the end runs: the status that the shell ends with.
    pub(crate) leaving: Option<u8>,
    pub(crate) descriptors: Rc<BTreeMap<u32, Handle>>,
    /// The working directory as `pwd` prints it.
    pub(crate) cwd: Rc<Vec<u8>>,
    pub(crate) umask: u16,
    /// Commands of `trap`, by the numbers of conditions.
    pub(crate) traps: Rc<BTreeMap<u8, Vec<u8>>>,
    /// Whether the caller of the script looks at its exit status.
    pub(crate) caller_tests: bool,
    /// Whether that status changes nothing.
    pub(crate) caller_tolerates: bool,
    /// Loops that run in the running function.
    pub(crate) loops: u32,
    pub(crate) functions_running: u32,
    pub(crate) getopts: Getopts,
    /// What `local` put away, by running function.
    pub(crate) locals: Vec<Scope>,
    /// The script or sourced file, for errors.
    pub(crate) script: Rc<str>,
    pub(crate) line: u32,
    /// The line where the running simple command begins.
    pub(crate) command_line: u32,
    pub(crate) language: Language,
    pub(crate) bash: Bash,
}

impl State {
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.variable(name)?.scalar().map(|value| value.as_slice())
    }

    /// A variable, or the one that a reference of bash leads to.
    pub(crate) fn variable(&self, name: &[u8]) -> Option<&Variable> {
        self.variables.get(self.referred(name)?)
    }

    /// The name that references lead to; `None` if they have no target or form a circle.
    pub(crate) fn referred<'s>(&'s self, name: &'s [u8]) -> Option<&'s [u8]> {
        let mut name = name;
        for _ in 0..MAX_REFERENCES {
            match self.variables.get(name) {
                Some(found) if found.attributes.nameref => name = found.value.as_ref()?,
                _ => return Some(name),
            }
        }
        None
    }

    /// The bytes that separate fields.
    pub(crate) fn ifs(&self) -> Vec<u8> {
        self.get(b"IFS").unwrap_or(b" \t\n").to_vec()
    }

    /// The environment of programs.
    pub(crate) fn exported(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let exported = self.variables.iter().filter(|(_, variable)| variable.exported);
        exported.filter_map(|(name, variable)| Some((name.clone(), variable.value.as_ref()?.to_vec()))).collect()
    }
}
