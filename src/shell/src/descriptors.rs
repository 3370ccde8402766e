//! File descriptors of commands.

use std::cell::RefCell;
use std::rc::Rc;

use crate::commands::known_path;
use crate::eval::{Run, Stop};
use crate::files::{Errno, Follow};
use crate::shell::Shell;

/// An open file description, shared by its descriptors.
#[derive(Clone)]
pub(crate) enum Handle {
    /// Reads nothing, keeps nothing.
    Null,
    /// A directory: reading from it fails.
    Directory,
    Input(Rc<RefCell<Input>>),
    /// Collected, for the caller, for a pipe or for a substitution.
    Output(Rc<RefCell<Vec<u8>>>),
    /// A file of the tree, open for writing.
    File(Rc<RefCell<OpenFile>>),
}

/// What is read.
pub(crate) struct Input {
    file: Option<InputFile>,
    data: Rc<Vec<u8>>,
    at: usize,
    /// Whether its lines have an order that is not known.
    unordered: bool,
    /// Why it is not known what is left of it.
    uncertain: Option<Uncertain>,
}

/// Why it is not known what is left of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Uncertain {
    /// A program took more of a pipe than it used: how much depends on how the writer wrote.
    Pipe,
    /// A shell reads its script from it, of which a command of the script would read the rest.
    Script,
}

impl Uncertain {
    fn text(self) -> &'static [u8] {
        match self {
            Self::Pipe => b"reading a pipe after a program that read more than it used",
            Self::Script => b"reading standard input, from which a shell reads its script",
        }
    }
}

/// Where an open file is.
pub(crate) struct Location {
    /// Without links, so that it shows which renamed directories are above it.
    path: Vec<u8>,
    /// How many of the shell's renames the path takes into account. Descriptors that a redirection hides, or that another shell has, are
    /// brought up to date when they are used.
    renames: usize,
}

/// A file that is open for reading.
struct InputFile {
    location: Location,
    id: u64,
    /// When its content was read, by the account of [`Watched`](crate::files::Watched): others may write to it.
    seen: Option<u64>,
}

/// What a program reads of a pipe at once, at least.
const READ_AHEAD: usize = 4 << 10;

/// What dash reads of a script at once: `BUFSIZ` of the C library.
const SCRIPT_BLOCK: usize = 8 << 10;

/// A file that is open for writing.
pub(crate) struct OpenFile {
    location: Location,
    id: u64,
    at: usize,
    append: bool,
    /// It was opened for reading as well.
    reads: bool,
}

impl Handle {
    /// Whether it is a file of the tree.
    pub(crate) fn is_file(&self) -> bool {
        match self {
            Self::Input(input) => input.borrow().file.is_some(),
            Self::File(_) => true,
            _ => false,
        }
    }

    pub(crate) fn bytes(data: Vec<u8>) -> Self {
        Self::pipe(data, false)
    }

    /// What a command wrote, perhaps in an order that is not known.
    pub(crate) fn pipe(data: Vec<u8>, unordered: bool) -> Self {
        let input = Input { file: None, data: Rc::new(data), at: 0, unordered, uncertain: None };
        Self::Input(Rc::new(RefCell::new(input)))
    }

    pub(crate) fn input_file(location: Location, id: u64) -> Self {
        let file = Some(InputFile { location, id, seen: None });
        let input = Input { file, data: Rc::default(), at: 0, unordered: false, uncertain: None };
        Self::Input(Rc::new(RefCell::new(input)))
    }

    pub(crate) fn output_file(location: Location, id: u64, append: bool) -> Self {
        Self::File(Rc::new(RefCell::new(OpenFile { location, id, at: 0, append, reads: false })))
    }

    pub(crate) fn update_file(location: Location, id: u64) -> Self {
        Self::File(Rc::new(RefCell::new(OpenFile { location, id, at: 0, append: false, reads: true })))
    }

    pub(crate) fn output() -> (Self, Rc<RefCell<Vec<u8>>>) {
        let collected = Rc::new(RefCell::new(Vec::new()));
        (Self::Output(collected.clone()), collected)
    }
}

impl Shell<'_> {
    pub(crate) fn descriptor(&self, fd: u32) -> Option<Handle> {
        self.state.descriptors.get(&fd).cloned()
    }

    pub(crate) fn set_descriptor(&mut self, fd: u32, handle: Option<Handle>) {
        let descriptors = Rc::make_mut(&mut self.state.descriptors);
        match handle {
            Some(handle) => descriptors.insert(fd, handle),
            None => descriptors.remove(&fd),
        };
    }

    /// Writes to standard output.
    pub(crate) fn out(&mut self, bytes: &[u8]) -> Run<()> {
        self.write_to(1, bytes)
    }

    /// Writes to standard error.
    pub(crate) fn err(&mut self, bytes: &[u8]) -> Run<()> {
        self.write_to(2, bytes)
    }

    /// Whether standard error takes what is written to it.
    pub(crate) fn writes_errors(&self) -> bool {
        !matches!(self.descriptor(2), None | Some(Handle::Input(_) | Handle::Directory))
    }

    pub(crate) fn write_to(&mut self, fd: u32, bytes: &[u8]) -> Run<()> {
        if !bytes.is_empty() {
            self.count_write(fd);
        }
        if fd == 1 {
            self.random.written(bytes);
        }
        match self.descriptor(fd) {
            Some(Handle::Null) => Ok(()),
            // A closed descriptor: what is written is lost, with an error of the command that writes.
            None | Some(Handle::Input(_) | Handle::Directory) => {
                self.lost |= fd == 1 && !bytes.is_empty();
                self.lost_errors |= fd == 2 && !bytes.is_empty();
                Ok(())
            }
            Some(Handle::Output(collected)) => {
                let len = collected.borrow().len().saturating_add(bytes.len());
                self.spend_size(len, bytes.len())?;
                collected.borrow_mut().extend_from_slice(bytes);
                Ok(())
            }
            Some(Handle::File(file)) => self.write_file(&file, bytes),
        }
    }

    fn write_file(&mut self, file: &Rc<RefCell<OpenFile>>, bytes: &[u8]) -> Run<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let path = self.path_of(&mut file.borrow_mut().location);
        let (id, at, append) = {
            let file = file.borrow();
            (file.id, file.at, file.append)
        };
        // One that is gone keeps its descriptors, but what is written is lost.
        match self.files.lookup(&path, Follow::Yes) {
            Ok(node) if node.id == id => {}
            _ if self.files.was_linked(id) => return self.unsupported(b"writing to a file that has lost a name"),
            _ => return Ok(()),
        }
        self.note_written(id, bytes.len())?;
        let limit = self.budget.limits.file_bytes;
        let mut content = self.files.read(&path, limit).map_err(|error| self.too_large(&path, error))?;
        let at = if append { content.len() } else { at };
        self.spend_file(content.len().max(at).saturating_add(bytes.len()))?;
        if content.len() < at {
            content.resize(at, 0);
        }
        let end = at.saturating_add(bytes.len());
        let kept = content.split_off(at.min(content.len()));
        content.extend_from_slice(bytes);
        content.extend(kept.iter().skip(bytes.len()));
        self.note(&path, &content);
        self.files.write(&path, content, 0o666).map_err(|error| self.too_large(&path, error))?;
        file.borrow_mut().at = end;
        Ok(())
    }

    /// Where a file is that is opened now, by the path of its name.
    pub(crate) fn location(&self, path: &[u8]) -> Location {
        Location { path: known_path(&*self.files, path), renames: self.renames.len() }
    }

    /// The path that an open file has by now.
    fn path_of(&self, location: &mut Location) -> Vec<u8> {
        for (from, to) in self.renames.get(location.renames..).unwrap_or_default() {
            if let Some(below) = location.path.strip_prefix(&from[..])
                && (below.is_empty() || below.starts_with(b"/"))
            {
                location.path = [to, below].concat();
            }
        }
        location.renames = self.renames.len();
        location.path.clone()
    }

    /// rename(2). Descriptors follow the file, or what is below the directory.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> Run<Result<(), Errno>> {
        let is_reserved = |path: &[u8]| matches!(crate::commands::last_name(path), b"." | b"..");
        if is_reserved(from) || is_reserved(to) {
            return Ok(Err(Errno::Ebusy));
        }
        if let Err(error) = self.files.rename(from, to) {
            return Ok(Err(error));
        }
        let (old, new) = (self.name_without_links(from), self.name_without_links(to));
        if self.is_inside(&crate::builtins::normalize(from)) || self.works_below(&old) {
            return self.unsupported(b"moving the working directory");
        }
        self.note_rename(&old, &new);
        self.renames.push((old, new));
        Ok(Ok(()))
    }

    /// The path of a name that is not followed itself.
    pub(crate) fn name_without_links(&self, path: &[u8]) -> Vec<u8> {
        let path = crate::commands::bare(path);
        let (directory, name) = path.split_at(path.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
        let directory = known_path(&*self.files, directory);
        [directory.strip_suffix(b"/").unwrap_or(&directory), name].concat()
    }

    /// Refuses to empty a file that an earlier stage of the pipeline reads at the same time.
    pub(crate) fn refuse_race(&self, id: u64) -> Run<()> {
        let waits = match self.descriptor(0) {
            Some(Handle::Input(input)) => input.borrow().at > 0,
            _ => false,
        };
        if waits || !self.piped_reads.contains(&id) {
            return Ok(());
        }
        self.unsupported(b"emptying a file that an earlier stage of the pipeline reads")
    }

    /// All of standard input, as the script of a shell that reads it by and by.
    pub(crate) fn read_script(&mut self) -> Run<Vec<u8>> {
        if matches!(self.descriptor(0), Some(Handle::File(_))) {
            return self.unsupported(b"a script on standard input that is also open for writing");
        }
        self.read_all(0)
    }

    /// Notes whether commands of the running script would read the rest of it: dash reads blocks, bash no more than the next line.
    pub(crate) fn reserve_script(&self, len: usize) {
        let is_bash = self.state.language.is_bash();
        if let Some(Handle::Input(input)) = self.descriptor(0) {
            let mut input = input.borrow_mut();
            let block = if input.file.is_some() { SCRIPT_BLOCK } else { READ_AHEAD };
            if is_bash || len > block {
                input.uncertain = Some(Uncertain::Script);
            }
        }
    }

    /// Notes that the last line of a script on standard input was read.
    pub(crate) fn release_script(&self) {
        if let Some(Handle::Input(input)) = self.descriptor(0) {
            let mut input = input.borrow_mut();
            input.uncertain.take_if(|why| *why == Uncertain::Script);
        }
    }

    /// Whether it is not known what is left of standard input.
    pub(crate) fn input_is_uncertain(&self) -> bool {
        matches!(self.descriptor(0), Some(Handle::Input(input)) if input.borrow().uncertain.is_some())
    }

    /// Notes that a program may have left a part of standard input, and it is not known which.
    pub(crate) fn lose_place(&mut self) {
        if let Some(Handle::Input(input)) = self.descriptor(0) {
            let mut input = input.borrow_mut();
            if !input.data.is_empty() {
                input.uncertain.get_or_insert(Uncertain::Pipe);
            }
        }
    }

    /// Whether the working directory is at or below a path.
    pub(crate) fn is_inside(&self, path: &[u8]) -> bool {
        self.state.cwd.strip_prefix(path).is_some_and(|below| below.is_empty() || below.starts_with(b"/"))
    }

    /// Whether the working directory, its links resolved, is at or below a path without links.
    pub(crate) fn works_below(&self, path: &[u8]) -> bool {
        let cwd = known_path(&*self.files, &self.state.cwd);
        cwd.strip_prefix(path).is_some_and(|below| below.is_empty() || below.starts_with(b"/"))
    }

    /// The file that standard output is written to, if it is the file of this path: its inode's path, place and whether it appends.
    pub(crate) fn own_output_file(&self, path: &[u8]) -> Option<(usize, bool)> {
        let Some(Handle::File(file)) = self.descriptor(1) else { return None };
        let file = file.borrow();
        let node = self.files.lookup(path, Follow::Yes).ok()?;
        (node.id == file.id).then_some((file.at, file.append))
    }

    /// Gives back what a program read of standard input, but did not use, as far as it can. The rest of a pipe is lost, unless no more
    /// than what was used was read (`exact`).
    pub(crate) fn give_back(&mut self, count: usize, exact: bool) {
        match self.descriptor(0) {
            Some(Handle::Input(input)) => {
                let mut input = input.borrow_mut();
                if exact || input.file.is_some() {
                    input.at = input.at.saturating_sub(count);
                } else if count > 0 && input.data.len() > READ_AHEAD {
                    input.uncertain.get_or_insert(Uncertain::Pipe);
                }
            }
            Some(Handle::File(file)) => {
                let mut file = file.borrow_mut();
                file.at = file.at.saturating_sub(count);
            }
            _ => {}
        }
    }

    fn too_large(&self, path: &[u8], error: Errno) -> Stop {
        let what = format!("{}: {error}", crate::error::show(path));
        self.fatal(crate::ErrorKind::Unsupported { what })
    }

    /// The file that a descriptor reads.
    pub(crate) fn input_path(&self, fd: u32) -> Option<Vec<u8>> {
        match self.descriptor(fd) {
            Some(Handle::Input(input)) => input.borrow_mut().file.as_mut().map(|file| self.path_of(&mut file.location)),
            Some(Handle::File(file)) => Some(self.path_of(&mut file.borrow_mut().location)),
            _ => None,
        }
    }

    /// All that is left on standard input.
    pub(crate) fn read_all(&mut self, fd: u32) -> Run<Vec<u8>> {
        let input = match self.descriptor(fd) {
            Some(Handle::Input(input)) => input,
            Some(Handle::Directory) => return self.unsupported(b"reading from a directory"),
            Some(Handle::File(file)) if file.borrow().reads => {
                let left = self.left_in(&file)?;
                file.borrow_mut().at += left.len();
                self.random.read(&left);
                return Ok(left);
            }
            Some(_) => return Ok(Vec::new()),
            None => return self.unsupported(b"reading from a closed descriptor"),
        };
        let (data, at) = self.loaded(&input)?;
        if data.len() - at >= crate::commands::OUTPUT_BUFFER
            && self.input_path(fd).is_some_and(|path| self.own_output_file(&path).is_some())
        {
            return self.unsupported(b"a file as input and output");
        }
        input.borrow_mut().at = data.len().max(at);
        self.spend(data.len() - at)?;
        self.random.read(&data[at..]);
        Ok(data[at..].to_vec())
    }

    /// Whether the lines of standard input have an order that is not known.
    pub(crate) fn input_is_unordered(&self) -> bool {
        matches!(self.descriptor(0), Some(Handle::Input(input)) if input.borrow().unordered)
    }

    /// Whether standard input is a directory, from which reading fails.
    pub(crate) fn input_is_dir(&self) -> bool {
        matches!(self.descriptor(0), Some(Handle::Directory))
    }

    /// What is left on standard input, which stays there.
    pub(crate) fn peek_input(&mut self) -> Run<Vec<u8>> {
        self.peek(0)
    }

    /// What is left to read of a descriptor, which stays there.
    pub(crate) fn peek(&mut self, fd: u32) -> Run<Vec<u8>> {
        let input = match self.descriptor(fd) {
            Some(Handle::Input(input)) => input,
            Some(Handle::File(file)) if file.borrow().reads => return self.left_in(&file),
            _ => return Ok(Vec::new()),
        };
        let (data, at) = self.loaded(&input)?;
        self.spend(data.len() - at)?;
        Ok(data[at..].to_vec())
    }

    /// The next byte of standard input.
    pub(crate) fn read_byte(&mut self, fd: u32) -> Run<Option<u8>> {
        let input = match self.descriptor(fd) {
            Some(Handle::Input(input)) => input,
            Some(Handle::File(file)) if file.borrow().reads => {
                let byte = self.left_in(&file)?.first().copied();
                file.borrow_mut().at += usize::from(byte.is_some());
                return Ok(byte);
            }
            _ => return Ok(None),
        };
        let (data, at) = self.loaded(&input)?;
        let byte = data.get(at).copied();
        input.borrow_mut().at = (at + 1).min(data.len());
        self.spend(1)?;
        Ok(byte)
    }

    /// What is left to read of a file that is open for reading and writing: what was written by now counts.
    fn left_in(&mut self, file: &Rc<RefCell<OpenFile>>) -> Run<Vec<u8>> {
        let path = self.path_of(&mut file.borrow_mut().location);
        let (id, at) = (file.borrow().id, file.borrow().at);
        if self.files.lookup(&path, Follow::Yes).map(|node| node.id) != Ok(id) {
            return self.unsupported(b"reading from a file that was removed");
        }
        let content = self.files.read(&path, self.budget.limits.file_bytes);
        let mut content = content.map_err(|error| self.too_large(&path, error))?;
        self.spend(content.len())?;
        Ok(content.split_off(at.min(content.len())))
    }

    /// What an input has by now, and the place in it.
    fn loaded(&mut self, input: &Rc<RefCell<Input>>) -> Run<(Rc<Vec<u8>>, usize)> {
        let id = input.borrow().file.as_ref().map(|file| file.id);
        if let Some(id) = id {
            self.reads.insert(id);
            self.note_read(id)?;
        }
        let stale = input.borrow_mut().file.as_mut().and_then(|file| {
            let last = self.files.last_write(file.id);
            let is_stale = file.seen.is_none_or(|seen| seen < last);
            is_stale.then(|| (self.path_of(&mut file.location), file.id, file.seen.is_some(), last))
        });
        if let Some((path, id, seen, last)) = stale {
            match self.files.lookup(&path, Follow::Yes) {
                Ok(node) if node.id == id => {
                    let data = self.files.read(&path, self.budget.limits.file_bytes);
                    let data = data.map_err(|error| self.too_large(&path, error))?;
                    self.spend(data.len())?;
                    let mut input = input.borrow_mut();
                    input.data = Rc::new(data);
                    if let Some(file) = &mut input.file {
                        file.seen = Some(last);
                    }
                }
                // It keeps what it had.
                _ if seen => {}
                _ => return self.unsupported(b"reading from a file that was removed"),
            }
        }
        let input = input.borrow();
        if input.unordered {
            self.read_unordered()?;
        }
        if let Some(why) = input.uncertain {
            return self.unsupported(why.text());
        }
        Ok((input.data.clone(), input.at.min(input.data.len())))
    }
}
