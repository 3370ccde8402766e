//! Paths as operands of commands, and the files that they name.

use crate::error::{ErrorKind, show};
use crate::eval::{Run, Stop};
use crate::files::{Aspect, Errno, Files, Follow, Node, NodeKind};
use crate::host::Question;
use crate::shell::Shell;

/// [`Files::read`], or what is like it.
type Read = fn(&dyn Files, &[u8], usize) -> Result<Vec<u8>, Errno>;

impl Shell<'_> {
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
            // The kernel opens the file anew, at its start.
            if self.descriptor(fd).is_some_and(|handle| handle.is_file()) {
                return self.unsupported(&[&path[..], b", which is a file"].concat());
            }
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
            self.note_read(node.id)?;
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
}

/// The path of a name in a directory, with one slash between them.
pub(crate) fn below(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if directory.ends_with(b"/") { b"" } else { b"/" };
    [directory, slash, name].concat()
}
