//! The interpreter: its state, the tree, and the resources used so far.

mod paths;
mod traffic;
mod variables;

pub(crate) use paths::below;
pub(crate) use traffic::Traffic;
pub(crate) use variables::Seen;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::descriptors::Handle;
use crate::error::{ErrorKind, ShellError, show};
use crate::eval::{Run, Stop};
use crate::expand::{Entry, QuotedLists};
use crate::files::{Files, Watched};
use crate::host::Commands;
use crate::limits::Budget;
use crate::order::Order;
use crate::random::Random;
use crate::run::Settings;
use crate::state::State;

/// Where commands are looked for when a script does not say.
pub(crate) const PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The interpreter.
pub(crate) struct Shell<'h> {
    pub(crate) files: Watched<'h>,
    pub(crate) commands: &'h mut dyn Commands,
    pub(crate) state: State,
    pub(crate) budget: Budget,
    /// Output that the run itself does not read.
    pub(crate) own_output: Option<Rc<RefCell<Vec<u8>>>>,
    /// The same of its errors.
    own_errors: Option<Rc<RefCell<Vec<u8>>>>,
    /// Whether the running command wrote to a standard output that is closed.
    pub(crate) lost: bool,
    /// Whether the running program wrote to a standard error that is closed.
    pub(crate) lost_errors: bool,
    /// Whether a program or builtin started the running program, and reports its errors itself.
    pub(crate) is_started: bool,
    /// How many builtins of dash run, which put their names before messages, and count the lines of texts that they evaluate.
    pub(crate) in_builtins: u32,
    /// Whether the running command is tested.
    pub(crate) tested: bool,
    /// Whether the exit status of the running command changes nothing.
    pub(crate) tolerated: bool,
    /// Whether that will hold for the next simple command.
    pub(crate) tolerates_next: bool,
    /// Whether the running command is run until it succeeds: a machine gets no further before that.
    pub(crate) retried: bool,
    /// Whether that will hold for the next simple command.
    pub(crate) retries_next: bool,
    /// The last command, if its exit status is only assumed.
    pub(crate) assumed: Option<String>,
    /// The running command, for errors.
    pub(crate) command: Rc<Vec<Vec<u8>>>,
    /// Values of arrays among the operands of the running `declare` and its like, by the position of the operand: `name=` or `name+=`.
    pub(crate) arrays: BTreeMap<usize, Vec<Entry>>,
    /// How many builtins such as `eval` run whose failure is tested: errors in them do not end a shell of bash with `set -e`.
    pub(crate) errors_ignored: u32,
    /// Whether a subshell of bash that begins has redirections.
    pub(crate) redirected_subshell: bool,
    /// The subshell in which `ls` writes for a command that reads only the mode, the owner or the group.
    pub(crate) narrow_output: Option<u32>,
    /// Nesting of the running expressions of bash.
    pub(crate) expressions: u32,
    /// Whether the running double quotes of bash had an expansion such as `$@` that gave no field.
    pub(crate) nothing_quoted: bool,
    /// What the running word of bash has in its double quotes.
    pub(crate) quoted_lists: QuotedLists,
    /// Files that the running stage of a pipeline has read.
    pub(crate) reads: BTreeSet<u64>,
    /// Files that earlier stages of the pipeline have read, which in fact run at the same time.
    pub(crate) piped_reads: BTreeSet<u64>,
    /// What the running program reads and writes; none for the shell itself.
    pub(crate) traffic: Option<Traffic>,
    /// What depends on the order of directory entries.
    pub(crate) order: Order,
    /// Renames so far, by paths without links: old and new ones.
    pub(crate) renames: Vec<(Vec<u8>, Vec<u8>)>,
    /// Names that mktemp gave: none may be left.
    pub(crate) temporaries: BTreeSet<Vec<u8>>,
    /// Texts that are others in each run.
    pub(crate) random: Random,
}

impl<'h> Shell<'h> {
    pub(crate) fn new(
        files: &'h mut dyn Files,
        commands: &'h mut dyn Commands,
        state: State,
        settings: &Settings,
    ) -> Self {
        Self {
            files: Watched::new(files, settings.absent.clone()),
            commands,
            state,
            budget: Budget::new(settings.limits),
            own_output: None,
            own_errors: None,
            lost: false,
            lost_errors: false,
            is_started: false,
            in_builtins: 0,
            tested: false,
            tolerated: false,
            tolerates_next: false,
            retried: false,
            retries_next: false,
            assumed: None,
            command: Rc::default(),
            arrays: BTreeMap::new(),
            errors_ignored: 0,
            redirected_subshell: false,
            narrow_output: None,
            expressions: 0,
            nothing_quoted: false,
            quoted_lists: QuotedLists::default(),
            reads: BTreeSet::new(),
            piped_reads: BTreeSet::new(),
            traffic: None,
            order: Order::new(settings.any_order),
            renames: Vec::new(),
            temporaries: BTreeSet::new(),
            random: Random::default(),
        }
    }
}

impl Shell<'_> {
    /// A run that is given up here.
    pub(crate) fn fatal(&self, kind: ErrorKind) -> Stop {
        let command = self.command.iter().map(|word| show(word)).collect();
        let (script, line) = (self.state.script.to_string(), self.state.line);
        Stop::Fatal(Box::new(ShellError { script, line, command, kind }))
    }

    /// An option, operand or operator that is not known.
    pub(crate) fn unsupported<T>(&self, what: &[u8]) -> Run<T> {
        Err(self.fatal(ErrorKind::Unsupported { what: show(what) }))
    }

    /// An error of the shell itself: it ends, with status 2.
    pub(crate) fn shell_error(&mut self, message: &[u8]) -> Stop {
        if self.in_builtins > 0 && self.is_captured(2) && (self.in_builtins > 1 || !self.is_named(message)) {
            let what = [b"a file or value with a message such as: ", message].concat();
            return self.fatal(ErrorKind::Unsupported { what: show(&what) });
        }
        match self.complain(message) {
            Ok(()) => {
                self.state.status = 2;
                Stop::Error
            }
            Err(stop) => stop,
        }
    }

    /// Whether a message begins with the name of the running command.
    fn is_named(&self, message: &[u8]) -> bool {
        let name = self.command.first().map_or(&b""[..], Vec::as_slice);
        message.strip_prefix(name).is_some_and(|rest| rest.starts_with(b": "))
    }

    /// Writes a message of the shell. Many of bash have another text, which a file or value would keep.
    pub(crate) fn complain(&mut self, message: &[u8]) -> Run<()> {
        if self.state.language.is_bash() && self.is_captured(2) {
            return self.unsupported(&[b"a file or value with a message such as: ", message].concat());
        }
        self.complain_exactly(message)
    }

    /// Writes a message that has the text of the shell: the script, the line, the text.
    pub(crate) fn complain_exactly(&mut self, message: &[u8]) -> Run<()> {
        let before: &[u8] = if self.state.language.is_bash() { b": line " } else { b": " };
        let line = self.state.line.to_string();
        let name = self.source_name();
        self.err(&[&name[..], before, line.as_bytes(), b": ", message, b"\n"].concat())
    }

    /// The script that messages name. In bash, that of the running function, as in BASH_SOURCE.
    fn source_name(&self) -> Vec<u8> {
        let zero = self.state.zero.to_vec();
        let Some(frame) = self.state.bash.frames.last().filter(|_| self.state.language.is_bash()) else { return zero };
        match self.state.flags {
            flags if flags.argument && *frame.source == *show(&zero) => b"environment".to_vec(),
            flags if flags.stdin && *frame.source == *show(&zero) => b"main".to_vec(),
            _ => frame.source.as_bytes().to_vec(),
        }
    }

    pub(crate) fn step(&mut self) -> Run<()> {
        self.budget.step().map_err(|kind| self.fatal(kind))
    }

    pub(crate) fn spend(&mut self, bytes: usize) -> Run<()> {
        self.budget.work(bytes).map_err(|kind| self.fatal(kind))
    }

    /// A value of `len` bytes, of which `new` have not been counted.
    pub(crate) fn spend_size(&mut self, len: usize, new: usize) -> Run<()> {
        if len > self.budget.limits.size_bytes {
            return self.budget.size(len).map_err(|kind| self.fatal(kind));
        }
        self.spend(new)
    }

    /// The content of a file, which is read or written.
    pub(crate) fn spend_file(&mut self, len: usize) -> Run<()> {
        self.budget.file(len).map_err(|kind| self.fatal(kind))
    }

    /// Whether what is written to a descriptor goes to a file, a pipe or a substitution.
    pub(crate) fn is_captured(&self, fd: u32) -> bool {
        match self.descriptor(fd) {
            None | Some(Handle::Null) => false,
            Some(Handle::Output(found)) => {
                let own = [Some(&self.own_output), Some(&self.own_errors).filter(|_| fd == 2)];
                !own.into_iter().flatten().flatten().any(|own| Rc::ptr_eq(own, &found))
            }
            Some(_) => true,
        }
    }

    /// Standard input, output and error of a fresh shell.
    pub(crate) fn open_standard(&mut self, out: Handle, err: Handle) {
        if let Handle::Output(own) = &out {
            self.own_output = Some(own.clone());
        }
        if let Handle::Output(own) = &err {
            self.own_errors = Some(own.clone());
        }
        self.set_descriptor(0, Some(Handle::Null));
        self.set_descriptor(1, Some(out));
        self.set_descriptor(2, Some(err));
    }
}
