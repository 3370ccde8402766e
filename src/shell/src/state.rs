//! What a shell knows of itself: a subshell gets a copy.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::builtins::Alias;
use crate::descriptors::Handle;
use crate::syntax::{Language, Node};

/// A variable. One may be exported or read-only before it has a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) value: Option<Rc<Vec<u8>>>,
    pub(crate) exported: bool,
    pub(crate) readonly: bool,
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
    /// Of bash: a pipeline fails with the last of its stages that does.
    pub(crate) pipefail: bool,
}

/// Where `getopts` stands in one argument.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Getopts {
    pub(crate) index: usize,
    pub(crate) offset: usize,
}

/// The state of a shell.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) variables: Rc<BTreeMap<Vec<u8>, Variable>>,
    pub(crate) variables_bytes: usize,
    pub(crate) functions: Rc<BTreeMap<Vec<u8>, Rc<Node>>>,
    pub(crate) aliases: Rc<BTreeMap<Vec<u8>, Rc<Alias>>>,
    /// `$0` and what follows.
    pub(crate) zero: Rc<Vec<u8>>,
    pub(crate) params: Rc<Vec<Vec<u8>>>,
    pub(crate) flags: Flags,
    /// `$?`
    pub(crate) status: u8,
    /// The status of the last command substitution of the running command.
    pub(crate) substituted: u8,
    /// While the trap of the end runs: the status that the shell ends with.
    pub(crate) leaving: Option<u8>,
    pub(crate) descriptors: Rc<BTreeMap<u32, Handle>>,
    /// The working directory as `pwd` prints it.
    pub(crate) cwd: Rc<Vec<u8>>,
    pub(crate) umask: u16,
    /// Commands of `trap`, by the numbers of conditions.
    pub(crate) traps: Rc<BTreeMap<u8, Vec<u8>>>,
    /// Loops that run in the running function.
    pub(crate) loops: u32,
    pub(crate) functions_running: u32,
    pub(crate) getopts: Getopts,
    /// What `local` put away, by running function.
    pub(crate) locals: Vec<Vec<(Vec<u8>, Option<Variable>)>>,
    /// The script or sourced file, for errors.
    pub(crate) script: Rc<str>,
    pub(crate) line: u32,
    pub(crate) language: Language,
}

impl State {
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.variables.get(name)?.value.as_ref().map(|value| value.as_slice())
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
