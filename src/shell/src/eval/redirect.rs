//! Redirections.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Run, Stop};
use crate::commands::known_path;
use crate::descriptors::Handle;
use crate::error::ErrorKind;
use crate::files::{Errno, Follow};
use crate::shell::Shell;
use crate::syntax::{Descriptor, Node, Part, Redirect, Target, Word};

/// Largest descriptors that dash takes, and that scripts of bash may use.
const MAX_DESCRIPTOR: u32 = 9;
const MAX_OF_BASH: u32 = 39;

/// Descriptors of process substitutions: bash takes them from the last one down.
const PROCESSES: std::ops::RangeInclusive<u32> = 40..=63;

/// Descriptors to come back to.
pub(crate) type Saved = Rc<BTreeMap<u32, Handle>>;

/// The descriptor that a path of the kernel names.
pub(crate) fn descriptor_of(path: &[u8]) -> Option<u32> {
    match path {
        b"/dev/stdin" => Some(0),
        b"/dev/stdout" => Some(1),
        b"/dev/stderr" => Some(2),
        path => std::str::from_utf8(path.strip_prefix(b"/dev/fd/")?).ok()?.parse().ok(),
    }
}

/// The number on the left of a redirection.
enum Number {
    One(u32),
    /// Standard output and standard error.
    Both,
}

/// What a redirection gives: a handle, or none to close the descriptor.
type Opened = (Number, Option<Handle>);

impl Shell<'_> {
    /// A compound command with redirections; `None` if one fails, and the command does not run.
    pub(super) fn redirected(&mut self, inner: &Node, redirects: &[Redirect], tested: bool) -> Run<Option<u8>> {
        let saved = self.state.descriptors.clone();
        let is_subshell = matches!(inner, Node::Subshell(..)) && self.state.language.is_bash();
        // The subshell expands its redirections itself.
        let outer = is_subshell.then(|| self.state.clone());
        let redirected = match (self.redirect(redirects), &outer) {
            (Err(Stop::Exit), Some(outer)) => {
                self.state = outer.clone();
                Ok(false)
            }
            (redirected, _) => redirected,
        };
        let result = match redirected? {
            true => {
                self.redirected_subshell = is_subshell;
                self.eval(inner, tested).map(Some)
            }
            false => {
                // bash has then read further, even if the subshell is a single line.
                self.state.bash.lines_lost |= is_subshell;
                Ok(None)
            }
        };
        if let Some(outer) = outer {
            (self.state.variables, self.state.variables_bytes) = (outer.variables, outer.variables_bytes);
        }
        // The trap of the end sees the redirections of the commands that it ends.
        if !(self.state.language.is_bash() && matches!(result, Err(Stop::Exit)) && !self.state.bash.unwinds) {
            self.restore(&saved, redirects);
        }
        self.close_processes(&saved);
        result
    }

    /// Gives the redirected descriptors what they had before; others stay as `exec` left them.
    pub(super) fn restore(&mut self, saved: &Saved, redirects: &[Redirect]) {
        for redirect in redirects {
            let fds: &[u32] = match (&redirect.fd, &redirect.target) {
                (_, Target::Both { .. } | Target::DuplicateOrBoth(_)) => &[1, 2],
                (Descriptor::Number(fd), _) => &[*fd],
                (Descriptor::Variable(_), _) => &[],
            };
            for fd in fds {
                self.set_descriptor(*fd, saved.get(fd).cloned());
            }
        }
    }

    /// Closes the process substitutions of a command.
    pub(super) fn close_processes(&mut self, saved: &Saved) {
        let new = self.state.descriptors.range(PROCESSES).map(|(fd, _)| *fd);
        for fd in new.filter(|fd| !saved.contains_key(fd)).collect::<Vec<_>>() {
            self.set_descriptor(fd, None);
        }
    }

    /// `<(…)`: the path of a descriptor to read from.
    pub(crate) fn process_path(&mut self, output: Vec<u8>, unordered: bool) -> Run<Vec<u8>> {
        let Some(fd) = PROCESSES.rev().find(|fd| !self.state.descriptors.contains_key(fd)) else {
            return self.unsupported(b"so many process substitutions");
        };
        self.set_descriptor(fd, Some(Handle::pipe(output, unordered)));
        Ok(format!("/dev/fd/{fd}").into_bytes())
    }

    /// Opens what redirections name. Says whether that went well; a failure was reported.
    pub(crate) fn redirect(&mut self, redirects: &[Redirect]) -> Run<bool> {
        for redirect in redirects {
            let Some((number, handle)) = self.opened(redirect)? else { return Ok(false) };
            match (&redirect.fd, number) {
                (_, Number::Both) => {
                    self.set_descriptor(1, handle.clone());
                    self.set_descriptor(2, handle);
                }
                (Descriptor::Variable(name), Number::One(_)) => {
                    if !self.redirect_variable(name, handle)? {
                        return Ok(false);
                    }
                }
                (Descriptor::Number(_), Number::One(fd)) => self.set_descriptor(fd, handle),
            }
        }
        Ok(true)
    }

    /// `{name}>file`: chooses a descriptor and assigns it; `{name}>&-` closes it.
    fn redirect_variable(&mut self, name: &[u8], handle: Option<Handle>) -> Run<bool> {
        if handle.is_none() {
            let fd = self.state.get(name).and_then(crate::builtins::number);
            if let Some(fd) = fd {
                self.set_descriptor(fd, None);
            }
            return Ok(fd.is_some());
        }
        let free = (MAX_DESCRIPTOR + 1..=MAX_OF_BASH).find(|fd| !self.state.descriptors.contains_key(fd));
        let Some(fd) = free else { return self.unsupported(b"so many descriptors") };
        if !self.assign_text(name, fd.to_string().as_bytes(), false)? {
            self.complain(&[name, b": cannot assign fd to variable"].concat())?;
            return Ok(false);
        }
        self.set_descriptor(fd, handle);
        Ok(true)
    }

    fn opened(&mut self, redirect: &Redirect) -> Run<Option<Opened>> {
        let fd = match &redirect.fd {
            Descriptor::Number(fd) => *fd,
            Descriptor::Variable(_) => 0,
        };
        if fd > if self.state.language.is_bash() { MAX_OF_BASH } else { MAX_DESCRIPTOR } {
            let what = format!("descriptor {fd}");
            return Err(self.fatal(ErrorKind::Unsupported { what }));
        }
        let one = |handle| Some((Number::One(fd), handle));
        Ok(match &redirect.target {
            Target::HereDocument(text) => {
                let text = match self.document(text.get().map_or(&[][..], Vec::as_slice)) {
                    // Expanding the text is a part of opening it: the command fails, and not the shell.
                    Err(Stop::Error) if !self.state.language.is_bash() => return Ok(None),
                    text => text?,
                };
                one(Some(Handle::bytes(text)))
            }
            Target::HereString(word) => {
                let mut text = self.here_string(word)?;
                text.push(b'\n');
                one(Some(Handle::bytes(text)))
            }
            Target::Duplicate(word) | Target::DuplicateOrBoth(word) if self.moves(word) => {
                return self.unsupported(b"moving a descriptor");
            }
            Target::Duplicate(word) => {
                let Some(word) = self.redirect_word(word)? else { return Ok(None) };
                self.duplicate(&word)?.and_then(one)
            }
            Target::DuplicateOrBoth(word) => {
                let Some(text) = self.redirect_word(word)? else { return Ok(None) };
                if text == b"-" || (!text.is_empty() && text.iter().all(u8::is_ascii_digit)) {
                    return Ok(self.duplicate(&text)?.and_then(one));
                }
                let target = Target::Write(word.clone(), false);
                self.open(&target, &text)?.map(|handle| (Number::Both, Some(handle)))
            }
            Target::Both { word, append } => {
                let Some(text) = self.redirect_word(word)? else { return Ok(None) };
                let target = if *append { Target::Append(word.clone()) } else { Target::Write(word.clone(), false) };
                self.open(&target, &text)?.map(|handle| (Number::Both, Some(handle)))
            }
            Target::Read(word) | Target::Append(word) | Target::ReadWrite(word) | Target::Write(word, _) => {
                let Some(operand) = self.redirect_word(word)? else { return Ok(None) };
                self.open(&redirect.target, &operand)?.and_then(|handle| one(Some(handle)))
            }
        })
    }

    /// The operand of a redirection: in scripts of bash it is split, and must be one field.
    fn redirect_word(&mut self, word: &Word) -> Run<Option<Vec<u8>>> {
        if !self.state.language.is_bash() {
            return self.one(word).map(Some);
        }
        let mut fields = self.fields(std::slice::from_ref(word))?;
        if fields.len() == 1 {
            return Ok(fields.pop());
        }
        self.complain(b"ambiguous redirect")?;
        Ok(None)
    }

    /// Whether bash moves a descriptor: the word, before it is expanded, ends with `-`. A backslash before it changes nothing.
    fn moves(&self, word: &Word) -> bool {
        let text = match word.parts.last() {
            Some(Part::Literal(text) | Part::Quoted(text)) => &text[..],
            _ => return false,
        };
        self.state.language.is_bash() && text.ends_with(b"-") && (word.parts.len() > 1 || text.len() > 1)
    }

    /// What `>&` names: a descriptor to copy, or none to close.
    fn duplicate(&mut self, word: &[u8]) -> Run<Option<Option<Handle>>> {
        let bash = self.state.language.is_bash();
        match word {
            b"-" => Ok(Some(None)),
            [b'0'..=b'9', rest @ ..] if rest.is_empty() || (bash && rest.iter().all(u8::is_ascii_digit)) => {
                match crate::builtins::number(word).and_then(|fd| self.descriptor(fd)) {
                    Some(handle) => Ok(Some(Some(handle))),
                    None => {
                        self.complain(&[word, b": Bad file descriptor"].concat())?;
                        Ok(None)
                    }
                }
            }
            _ if bash => {
                self.complain(&[word, b": ambiguous redirect"].concat())?;
                Ok(None)
            }
            // The message has the line that dash reads next.
            _ if self.is_captured(2) => self.unsupported(b"a file or value with the error message for a descriptor"),
            _ => Err(self.shell_error(b"Bad fd number")),
        }
    }

    fn open(&mut self, target: &Target, operand: &[u8]) -> Run<Option<Handle>> {
        let path = self.path(operand);
        if path == b"/dev/null" && matches!(target, Target::Read(_)) {
            return Ok(Some(Handle::bytes(Vec::new())));
        }
        if path == b"/dev/null" {
            return Ok(Some(Handle::Null));
        }
        if let Some(fd) = descriptor_of(&path).filter(|fd| *fd <= *PROCESSES.end()) {
            return match self.descriptor(fd) {
                // The kernel opens the file anew, at its start.
                Some(handle) if handle.is_file() => self.unsupported(&[&path[..], b", which is a file"].concat()),
                Some(handle) => Ok(Some(handle)),
                None => self.unsupported(&[&path[..], b", which is closed"].concat()),
            };
        }
        if let Some(content) = self.known_process(&path).filter(|_| matches!(target, Target::Read(_))) {
            return Ok(Some(Handle::bytes(content)));
        }
        self.ask_machine(&path)?;
        let (opened, verb) = match target {
            Target::Read(_) => (self.open_input(operand, path), &b"open"[..]),
            Target::ReadWrite(_) => (self.open_update(operand, path), &b"create"[..]),
            Target::Append(_) => (self.open_output(operand, path, true, true), &b"create"[..]),
            Target::Write(_, clobber) => {
                let clobber = *clobber || !self.state.flags.noclobber;
                (self.open_output(operand, path, false, clobber), &b"create"[..])
            }
            _ => return Ok(None),
        };
        match opened? {
            Ok(handle) => Ok(Some(handle)),
            Err(error) => {
                if self.state.language.is_bash() {
                    let text = match error {
                        Errno::Eexist => "cannot overwrite existing file",
                        other => other.text(),
                    };
                    self.complain_exactly(&[operand, b": ", text.as_bytes()].concat())?;
                    return Ok(None);
                }
                let text = match error {
                    Errno::Enoent if verb == b"open" => b"No such file",
                    Errno::Enoent => &b"Directory nonexistent"[..],
                    other => other.text().as_bytes(),
                };
                self.complain(&[b"cannot ", verb, b" ", operand, b": ", text].concat())?;
                Ok(None)
            }
        }
    }

    fn open_input(&mut self, operand: &[u8], path: Vec<u8>) -> Run<Result<Handle, Errno>> {
        match self.stat(operand, Follow::Yes) {
            Ok(node) if node.is_file() => Ok(Ok(Handle::input_file(self.location(&path), node.id))),
            // A directory can be opened; reading from it fails.
            Ok(node) if node.is_dir() => Ok(Ok(Handle::Directory)),
            Ok(_) => self.unsupported(&[b"reading from the device ", operand].concat()),
            Err(error) => Ok(Err(error)),
        }
    }

    /// `<>`, which creates a file and never empties one.
    fn open_update(&mut self, operand: &[u8], path: Vec<u8>) -> Run<Result<Handle, Errno>> {
        let opened = self.open_output(operand, path.clone(), true, true)?;
        if opened.is_err() {
            return Ok(opened);
        }
        Ok(self.stat(operand, Follow::Yes).map(|node| Handle::update_file(self.location(&path), node.id)))
    }

    fn open_output(
        &mut self,
        operand: &[u8],
        path: Vec<u8>,
        append: bool,
        clobber: bool,
    ) -> Run<Result<Handle, Errno>> {
        if operand.is_empty() {
            return Ok(Err(Errno::Enoent));
        }
        let replaces = clobber && !append;
        let old = if replaces { self.destination(operand) } else { self.stat(operand, Follow::Yes) };
        match old {
            Ok(node) if node.is_dir() => return Ok(Err(Errno::Eisdir)),
            Ok(node) if !node.is_file() => return self.unsupported(&[b"writing to the device ", operand].concat()),
            Ok(_) if append => {}
            Ok(_) if !clobber => return Ok(Err(Errno::Eexist)),
            Err(Errno::Enoent) if !clobber && !append && self.files.dangles(&path) => return Ok(Err(Errno::Eexist)),
            Ok(_) | Err(Errno::Enoent) => {
                if let Ok(node) = old {
                    self.refuse_race(node.id)?;
                }
                if let Err(error) = self.write_path(operand, Vec::new())? {
                    return Ok(Err(error));
                }
            }
            Err(error) => return Ok(Err(error)),
        }
        Ok(self.stat(operand, Follow::Yes).map(|node| {
            let path = known_path(&*self.files, &path);
            if self.files.link_count(&path).is_ok_and(|count| count > 1) {
                self.files.note_linked(node.id);
            }
            Handle::output_file(self.location(&path), node.id, append)
        }))
    }
}
