//! The interpreter: its state, the tree, and the resources used so far.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::descriptors::Handle;
use crate::error::{ErrorKind, ShellError, show};
use crate::eval::{Run, Stop};
use crate::expand::{Entry, QuotedLists};
use crate::files::{Aspect, Errno, Files, Follow, Node, NodeKind, Watched};
use crate::host::{Commands, Question, Variables};
use crate::limits::Budget;
use crate::order::Order;
use crate::random::Random;
use crate::run::Settings;
use crate::state::{State, Variable};

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
            files: Watched::new(files),
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
            order: Order::default(),
            renames: Vec::new(),
            temporaries: BTreeSet::new(),
            random: Random::default(),
        }
    }
}

/// [`Files::read`], or what is like it.
type Read = fn(&dyn Files, &[u8], usize) -> Result<Vec<u8>, Errno>;

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
        let zero = self.state.zero.clone();
        self.err(&[&zero, before, line.as_bytes(), b": ", message, b"\n"].concat())
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

    /// An absolute path for an operand.
    pub(crate) fn path(&self, operand: &[u8]) -> Vec<u8> {
        let path = if operand.starts_with(b"/") { operand.to_vec() } else { below(&self.state.cwd, operand) };
        if self.random.is_other_run() && self.files.lookup(&path, Follow::No).is_err() {
            return self.random.in_tree(path);
        }
        path
    }

    /// What stat(2) would say of an operand; an empty one names nothing.
    pub(crate) fn stat(&self, operand: &[u8], follow: Follow) -> Result<Node, Errno> {
        if operand.is_empty() || operand.contains(&0) {
            return Err(Errno::Enoent);
        }
        let path = self.path(operand);
        let special = |id, kind, mode| Ok(Node { id, kind, mode, uid: 0, gid: 0, size: 0, mtime: (0, 0) });
        if matches!(&path[..], b"/dev/null") {
            return special(u64::MAX, NodeKind::CharDevice, 0o666);
        }
        if self.known_process(&path).is_some() {
            return special(u64::MAX - 1, NodeKind::File, 0o644);
        }
        self.files.lookup(&path, follow)
    }

    /// What a new file would replace; see [`Files::destination`].
    pub(crate) fn destination(&self, operand: &[u8]) -> Result<Node, Errno> {
        let path = self.path(operand);
        let is_plain = operand.is_empty() || operand.contains(&0) || path == b"/dev/null";
        if is_plain { self.stat(operand, Follow::Yes) } else { self.files.destination(&path) }
    }

    /// Notes that a result depends on a property of what [`Shell::stat`] found.
    pub(crate) fn inspect(&self, operand: &[u8], follow: Follow, property: Aspect) {
        let path = self.path(operand);
        if path != b"/dev/null" {
            self.files.inspect(&path, follow, property);
        }
    }

    /// Whether one time of a file is later than another. What the run changed is newer than all else, in an order that is not known.
    pub(crate) fn is_newer(&self, one: (i64, u32), other: (i64, u32)) -> Run<bool> {
        let is_new = |time: (i64, u32)| self.files.new_time() == Some(time);
        match (is_new(one), is_new(other)) {
            (true, true) => Err(self.fatal(ErrorKind::Clock { what: "which of two new files is newer".to_owned() })),
            (false, false) => Ok(one > other),
            (newer, _) => Ok(newer),
        }
    }

    pub(crate) fn exists(&self, operand: &[u8]) -> bool {
        self.stat(operand, Follow::Yes).is_ok()
    }

    /// The content of a file.
    pub(crate) fn read_file(&mut self, operand: &[u8]) -> Run<Result<Vec<u8>, Errno>> {
        self.read_by(operand, |files, path, limit| files.read(path, limit))
    }

    /// The content of a program that is about to run.
    pub(crate) fn read_program(&mut self, operand: &[u8]) -> Run<Result<Vec<u8>, Errno>> {
        self.read_by(operand, |files, path, limit| files.read_program(path, limit))
    }

    fn read_by(&mut self, operand: &[u8], read: Read) -> Run<Result<Vec<u8>, Errno>> {
        if operand.is_empty() {
            return Ok(Err(Errno::Enoent));
        }
        let path = self.path(operand);
        if path == b"/dev/null" {
            return Ok(Ok(Vec::new()));
        }
        if let Some(fd) = crate::eval::descriptor_of(&path).filter(|fd| *fd == 0 || self.state.language.is_bash()) {
            return self.read_all(fd).map(Ok);
        }
        if path.starts_with(b"/sys/") && path.contains(&b'*') {
            // A pattern that found nothing: no file of the kernel has such a name.
            return Ok(Err(Errno::Enoent));
        }
        if let Some(content) = self.known_process(&path) {
            return Ok(Ok(content));
        }
        self.ask_machine(&path)?;
        if let Ok(node) = self.files.destination(&path) {
            self.reads.insert(node.id);
        }
        match read(&*self.files, &path, self.budget.limits.file_bytes) {
            Ok(content) => {
                self.spend(content.len())?;
                self.random.read(&content);
                Ok(Ok(self.random.content(content)))
            }
            Err(Errno::Efbig) => {
                self.budget.file(usize::MAX).map(|()| Err(Errno::Efbig)).map_err(|kind| self.fatal(kind))
            }
            Err(error) => self.require_known(Ok(Err(error))),
        }
    }

    /// Writes a file of the tree.
    pub(crate) fn write_path(&mut self, operand: &[u8], content: Vec<u8>) -> Run<Result<(), Errno>> {
        self.spend_file(content.len())?;
        let path = self.path(operand);
        if path == b"/dev/null" {
            return Ok(Ok(()));
        }
        self.ask_machine(&path)?;
        self.random.written(&content);
        self.note(&path, &content);
        if self.random.is_other_run() {
            return Ok(Ok(()));
        }
        let mode = 0o666 & !self.state.umask;
        Ok(self.files.write(&path, content, mode))
    }

    /// The content of a file below `/proc` that does not depend on the machine.
    pub(crate) fn known_process(&self, path: &[u8]) -> Option<Vec<u8>> {
        let name = if path == b"/proc/1/comm" { self.commands.first_process() } else { None };
        name.map(|name| format!("{name}\n").into_bytes())
    }

    /// Refuses what the kernel and devices of a machine say.
    pub(crate) fn ask_machine(&self, path: &[u8]) -> Run<()> {
        if matches!(path, b"/dev/random" | b"/dev/urandom") {
            return Err(self.fatal(ErrorKind::Random { what: show(path) }));
        }
        if [&b"/proc/"[..], b"/sys/", b"/dev/"].iter().any(|root| path.starts_with(root)) {
            return Err(self.fatal(ErrorKind::Machine { what: show(path) }));
        }
        Ok(())
    }

    /// Refuses to go on if the caller cannot answer.
    pub(crate) fn ask(&self, question: Question<'_>) -> Run<()> {
        if !self.commands.unknown(question) {
            return Ok(());
        }
        let (what, subject) = match question {
            Question::Value(text) | Question::Fields { text, .. } => ("the text", text),
            Question::Program(name) => ("the program", name),
            Question::Unset(name) => ("the variable", name),
            Question::Environment(b"") => {
                return Err(self.fatal(ErrorKind::Unknown { what: "the environment".to_owned() }));
            }
            Question::Environment(prefix) => ("the variables of the environment that begin with", prefix),
        };
        Err(self.fatal(ErrorKind::Unknown { what: format!("{what} {}", show(subject)) }))
    }

    /// Gives the run up if the tree did not know the answer to a request, however the command took it.
    pub(crate) fn require_known<T>(&self, result: Run<T>) -> Run<T> {
        if let Some(path) = self.files.asked_machine() {
            return match result {
                Err(Stop::Fatal(error)) => Err(Stop::Fatal(error)),
                _ => Err(self.fatal(ErrorKind::Machine { what: show(&path) })),
            };
        }
        match (result, self.files.unknown()) {
            (Err(Stop::Fatal(error)), _) => Err(Stop::Fatal(error)),
            (_, Some(what)) => Err(self.fatal(ErrorKind::Unknown { what })),
            (result, None) => result,
        }
    }

    /// Sets a variable; one that is read-only is an error of the shell.
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) -> Run<()> {
        if !self.state.language.is_bash() {
            return self.change(name, Some(value.to_vec()), false);
        }
        match self.assign_text(name, value, false)? {
            true => Ok(()),
            false => Err(self.assignment_failed()),
        }
    }

    /// Sets or unsets a variable, and perhaps exports it.
    pub(crate) fn change(&mut self, name: &[u8], value: Option<Vec<u8>>, export: bool) -> Run<()> {
        if let (Some(value), true) = (&value, self.state.language.is_bash()) {
            self.set(name, &value.clone())?;
            if export {
                self.mark_exported(name);
            }
            return Ok(());
        }
        if self.state.variables.get(name).is_some_and(|variable| variable.readonly) {
            return Err(self.shell_error(&[name, b": is read only"].concat()));
        }
        self.store(name, value)?;
        if export {
            self.mark_exported(name);
        }
        Ok(())
    }

    /// Stores the value of a variable that is not an array.
    pub(crate) fn store(&mut self, name: &[u8], value: Option<Vec<u8>>) -> Run<()> {
        let old = self.state.variables.get(name).map_or(0, |old| old.size() + name.len());
        self.account(old, value.as_ref().map_or(0, Vec::len) + name.len())?;
        self.mark_variable(name, false);
        let allexport = self.state.flags.allexport;
        let variable: &mut Variable = Rc::make_mut(&mut self.state.variables).entry(name.to_vec()).or_default();
        variable.value = value.map(Rc::new);
        variable.exported |= allexport;
        match name {
            b"OPTIND" => self.option_index()?,
            b"PATH" => self.state.hashed = Rc::default(),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn mark_exported(&mut self, name: &[u8]) {
        if let Some(variable) = Rc::make_mut(&mut self.state.variables).get_mut(name) {
            variable.exported = true;
        }
    }

    /// `getopts` of dash starts over when the parameters change.
    pub(crate) fn restart_options(&mut self) {
        if !self.state.language.is_bash() {
            self.state.getopts = Default::default();
        }
    }

    /// `getopts` of bash continues at `OPTIND`; 1, or a text that is not a number, starts over.
    pub(crate) fn restart_at_index(&mut self) {
        let text = self.state.get(b"OPTIND").unwrap_or_default();
        let index = usize::try_from(leading_number(text)).unwrap_or_default();
        self.state.getopts.index = if index == 1 { 0 } else { index };
    }

    /// `getopts` of dash continues at `OPTIND`.
    pub(crate) fn option_index(&mut self) -> Run<()> {
        let text = self.state.get(b"OPTIND").unwrap_or_default().to_vec();
        if self.state.language.is_bash() {
            self.restart_at_index();
            return Ok(());
        }
        let Some(index) = crate::builtins::number(&text) else {
            return Err(self.shell_error(&[b"Illegal number: ", &text[..]].concat()));
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX).saturating_sub(1);
        self.state.getopts = crate::state::Getopts { index, ..Default::default() };
        Ok(())
    }

    /// Counts the copy that a subshell makes of its variables when it changes one.
    pub(crate) fn own_variables(&mut self) -> Run<()> {
        if Rc::strong_count(&self.state.variables) > 1 {
            self.spend(self.state.variables.len() * 64)?;
        }
        Ok(())
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

/// The path of a name in a directory, with one slash between them.
pub(crate) fn below(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if directory.ends_with(b"/") { b"" } else { b"/" };
    [directory, slash, name].concat()
}

/// `atoi`: the number at the start of a text, 0 where there is none.
fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let len = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let value = crate::expand::number(&digits[..len]);
    if negative { value.saturating_neg() } else { value }
}

/// The variables as the caller's commands see them.
pub(crate) struct Seen<'s> {
    pub(crate) state: &'s State,
    pub(crate) changes: Vec<Change>,
}

/// A variable that a command of the caller sets.
pub(crate) struct Change {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) export: bool,
}

impl Variables for Seen<'_> {
    fn get(&self, name: &[u8]) -> Option<Vec<u8>> {
        let changed = self.changes.iter().rev().find(|change| change.name == name);
        changed.map(|change| change.value.clone()).or_else(|| self.state.get(name).map(<[u8]>::to_vec))
    }

    fn set(&mut self, name: &[u8], value: &[u8]) {
        self.changes.push(Change { name: name.to_vec(), value: value.to_vec(), export: false });
    }

    fn export(&mut self, name: &[u8], value: &[u8]) {
        self.changes.push(Change { name: name.to_vec(), value: value.to_vec(), export: true });
    }

    fn exported(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        self.state.exported()
    }
}
