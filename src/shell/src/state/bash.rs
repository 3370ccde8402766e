//! State that only bash scripts have.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::descriptors::Handle;

/// Options of `shopt` that a script may change. Those without an effect on scripts are included.
const CHANGEABLE: [&str; 30] = [
    "autocd",
    "cdspell",
    "checkjobs",
    "checkwinsize",
    "cmdhist",
    "complete_fullquote",
    "direxpand",
    "dirspell",
    "dotglob",
    "expand_aliases",
    "extglob",
    "failglob",
    "force_fignore",
    "globstar",
    "gnu_errfmt",
    "histappend",
    "histreedit",
    "histverify",
    "hostcomplete",
    "huponexit",
    "inherit_errexit",
    "lastpipe",
    "lithist",
    "mailwarn",
    "no_empty_cmd_completion",
    "nocaseglob",
    "nocasematch",
    "nullglob",
    "progcomp",
    "promptvars",
];

/// Options whose other value changes how scripts run in ways that are not implemented.
const FIXED: [&str; 27] = [
    "assoc_expand_once",
    "cdable_vars",
    "checkhash",
    "compat31",
    "compat32",
    "compat40",
    "compat41",
    "compat42",
    "compat43",
    "compat44",
    "execfail",
    "extdebug",
    "extquote",
    "globasciiranges",
    "globskipdots",
    "interactive_comments",
    "localvar_inherit",
    "localvar_unset",
    "login_shell",
    "noexpand_translation",
    "patsub_replacement",
    "progcomp_alias",
    "restricted_shell",
    "shift_verbose",
    "sourcepath",
    "varredir_close",
    "xpg_echo",
];

/// Options that are on in a new shell.
const INITIAL: [&str; 13] = [
    "checkwinsize",
    "cmdhist",
    "complete_fullquote",
    "extquote",
    "force_fignore",
    "globasciiranges",
    "globskipdots",
    "hostcomplete",
    "interactive_comments",
    "patsub_replacement",
    "progcomp",
    "promptvars",
    "sourcepath",
];

/// A function or sourced file that runs, for `FUNCNAME`, `BASH_LINENO`, `BASH_SOURCE` and `caller`.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) function: Vec<u8>,
    /// Where it is defined.
    pub(crate) source: Rc<str>,
    /// Where it was called.
    pub(crate) line: u32,
}

/// A trap that only bash has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trap {
    Error,
    Return,
}

/// The state that only scripts of bash have.
#[derive(Clone)]
pub(crate) struct Bash {
    shopts: Rc<BTreeSet<&'static str>>,
    /// The statuses of the last pipeline.
    pub(crate) pipestatus: Rc<Vec<u8>>,
    /// Actions of `trap` for ERR and RETURN.
    pub(crate) error_trap: Option<Rc<Vec<u8>>>,
    pub(crate) return_trap: Option<Rc<Vec<u8>>>,
    /// The trap whose action is running.
    pub(crate) trap_running: Option<Trap>,
    /// The line where the action for ERR begins: that of the last command that could fail.
    pub(crate) error_line: u32,
    /// What a missing parameter ends the shell with: 127 where `-c` gave the script.
    pub(crate) fatal_status: u8,
    /// Whether a builtin that reads commands runs where its failure is tested: `set -e` has no effect.
    pub(crate) errexit_ignored: bool,
    /// Whether an error ended a command of several lines: from then on, bash counts the lines of the script from there.
    pub(crate) lines_lost: bool,
    /// Whether the running simple command is written on several lines.
    pub(crate) spans_lines: bool,
    /// Whether the trap for EXIT runs, also in a shell around this one.
    pub(crate) end_runs: bool,
    /// Whether the command that begins is all that a subshell does, which then becomes it.
    pub(crate) is_alone: bool,
    /// Whether a missing parameter ended the shell.
    pub(crate) forced: bool,
    /// Whether the running commands and functions ended before that.
    pub(crate) unwinds: bool,
    /// Whether an error of an expansion ended the shell, by `set -e`.
    pub(crate) reported: bool,
    /// Whether `exit` ends the shell.
    pub(crate) exiting: bool,
    /// Subshells around the running command.
    pub(crate) subshells: u32,
    /// The functions that ran when the running command substitution began.
    pub(crate) substitution: Option<u32>,
    /// Sourced files that run.
    pub(crate) sourcing: u32,
    /// Whether `set` changed the parameters since the running file was sourced.
    pub(crate) params_set: bool,
    /// Where functions are defined.
    pub(crate) sources: Rc<BTreeMap<Vec<u8>, Rc<str>>>,
    /// The status that `return` gives a function or sourced file.
    pub(crate) returned: Option<u8>,
    /// The descriptors at that `return`, which the trap for RETURN uses.
    pub(crate) returned_from: Option<Rc<BTreeMap<u32, Handle>>>,
    /// Callers, the innermost last.
    pub(crate) frames: Rc<Vec<Frame>>,
    /// Directories of `pushd` below the working directory, the top last.
    pub(crate) directories: Rc<Vec<Vec<u8>>>,
    /// Names of aliases: scripts of bash do not expand them.
    pub(crate) aliases: Rc<BTreeSet<Vec<u8>>>,
}

impl Default for Bash {
    fn default() -> Self {
        Self {
            shopts: Rc::new(INITIAL.into_iter().collect()),
            pipestatus: Rc::default(),
            error_trap: None,
            return_trap: None,
            trap_running: None,
            error_line: 1,
            fatal_status: 1,
            errexit_ignored: false,
            lines_lost: false,
            spans_lines: false,
            end_runs: false,
            is_alone: false,
            forced: false,
            unwinds: false,
            reported: false,
            exiting: false,
            subshells: 0,
            substitution: None,
            sourcing: 0,
            params_set: false,
            sources: Rc::default(),
            returned: None,
            returned_from: None,
            frames: Rc::default(),
            directories: Rc::default(),
            aliases: Rc::default(),
        }
    }
}

impl Bash {
    /// Whether an option of `shopt` is on.
    pub(crate) fn shopt(&self, name: &str) -> bool {
        self.shopts.contains(name)
    }

    /// Sets an option of `shopt`. The flag is false if its value is not implemented.
    pub(crate) fn set_shopt(&mut self, name: &'static str, on: bool) -> bool {
        if !CHANGEABLE.contains(&name) {
            return self.shopt(name) == on;
        }
        let shopts = Rc::make_mut(&mut self.shopts);
        if on {
            shopts.insert(name);
        } else {
            shopts.remove(name);
        }
        true
    }
}

/// The name of an option of `shopt`.
pub(crate) fn shopt_name(text: &[u8]) -> Option<&'static str> {
    CHANGEABLE.into_iter().chain(FIXED).find(|name| name.as_bytes() == text)
}

/// The options of `shopt`, in the order of its lists: that of letters, but for the first.
pub(crate) fn shopt_names() -> Vec<&'static str> {
    let mut names: Vec<_> = CHANGEABLE.into_iter().chain(FIXED).collect();
    names.sort_unstable_by_key(|name| (*name != "autocd", *name));
    names
}

/// Whether a script may give an option this value.
pub(crate) fn may_set_shopt(name: &'static str, on: bool) -> bool {
    Bash::default().set_shopt(name, on)
}
