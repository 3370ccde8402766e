//! Redirections.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Run;
use crate::descriptors::Handle;
use crate::error::ErrorKind;
use crate::files::{Errno, Follow};
use crate::host::Question;
use crate::shell::Shell;
use crate::syntax::{Descriptor, Node, Redirect, Target};

/// Largest descriptor that dash takes.
const MAX_DESCRIPTOR: u32 = 9;

/// Descriptors to come back to.
pub(crate) type Saved = Rc<BTreeMap<u32, Handle>>;

impl Shell<'_> {
    /// A compound command with redirections; `None` if one fails, and the command does not run.
    pub(super) fn redirected(&mut self, inner: &Node, redirects: &[Redirect], tested: bool) -> Run<Option<u8>> {
        let saved = self.state.descriptors.clone();
        let result = match self.redirect(redirects)? {
            true => self.eval(inner, tested).map(Some),
            false => Ok(None),
        };
        self.restore(&saved, redirects);
        result
    }

    /// Gives the redirected descriptors what they had before; others stay as `exec` left them.
    pub(super) fn restore(&mut self, saved: &Saved, redirects: &[Redirect]) {
        for redirect in redirects {
            if let Descriptor::Number(fd) = redirect.fd {
                self.set_descriptor(fd, saved.get(&fd).cloned());
            }
        }
    }

    /// Opens what redirections name. Says whether that went well; a failure was told.
    pub(crate) fn redirect(&mut self, redirects: &[Redirect]) -> Run<bool> {
        for redirect in redirects {
            let Descriptor::Number(fd) = redirect.fd else {
                return self.unsupported(b"a descriptor in a variable");
            };
            if fd > MAX_DESCRIPTOR {
                let what = format!("descriptor {fd}");
                return Err(self.fatal(ErrorKind::Unsupported { what }));
            }
            let opened = match &redirect.target {
                Target::HereDocument(text) => {
                    let text = self.document(text.get().map_or(&[][..], Vec::as_slice))?;
                    Some(Some(Handle::bytes(text)))
                }
                Target::HereString(word) => {
                    let mut text = self.one(word)?;
                    text.push(b'\n');
                    Some(Some(Handle::bytes(text)))
                }
                Target::Duplicate(word) => {
                    let word = self.one(word)?;
                    self.duplicate(&word)?
                }
                Target::Both { .. } | Target::DuplicateOrBoth(_) => {
                    return self.unsupported(b"a redirection of two descriptors");
                }
                Target::Read(word) | Target::Append(word) | Target::ReadWrite(word) | Target::Write(word, _) => {
                    let operand = self.one(word)?;
                    self.open(&redirect.target, &operand)?.map(Some)
                }
            };
            let Some(handle) = opened else { return Ok(false) };
            self.set_descriptor(fd, handle);
        }
        Ok(true)
    }

    /// What `>&` names: a descriptor to copy, or none to close.
    fn duplicate(&mut self, word: &[u8]) -> Run<Option<Option<Handle>>> {
        match word {
            b"-" => Ok(Some(None)),
            [digit @ b'0'..=b'9'] => match self.descriptor(u32::from(digit - b'0')) {
                Some(handle) => Ok(Some(Some(handle))),
                None => {
                    self.complain(&[word, b": Bad file descriptor"].concat())?;
                    Ok(None)
                }
            },
            _ => Err(self.shell_error(b"Bad fd number")),
        }
    }

    fn open(&mut self, target: &Target, operand: &[u8]) -> Run<Option<Handle>> {
        let path = self.path(operand);
        let standard = match &path[..] {
            b"/dev/null" => return Ok(Some(Handle::Null)),
            b"/dev/stdin" | b"/dev/fd/0" => Some(0),
            b"/dev/stdout" | b"/dev/fd/1" => Some(1),
            b"/dev/stderr" | b"/dev/fd/2" => Some(2),
            [b'/', b'd', b'e', b'v', b'/', b'f', b'd', b'/', digit @ b'3'..=b'9'] => Some(u32::from(digit - b'0')),
            _ => None,
        };
        if let Some(fd) = standard {
            return Ok(self.descriptor(fd).or(Some(Handle::Null)));
        }
        self.ask_machine(&path)?;
        let (opened, verb) = match target {
            Target::Read(_) => (self.open_input(operand, path), &b"open"[..]),
            Target::ReadWrite(_) => return self.unsupported(b"a file that is open for reading and writing"),
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
            Ok(node) if node.is_file() => Ok(Ok(Handle::input_file(path))),
            // A directory can be opened; reading from it fails.
            Ok(node) if node.is_dir() => Ok(Ok(Handle::Null)),
            Ok(_) => self.unsupported(&[b"reading from the device ", operand].concat()),
            Err(error) => {
                self.ask(Question::Path(&path))?;
                Ok(Err(error))
            }
        }
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
            Err(Errno::Enoent) if append && self.commands.unknown(Question::Path(&path)) => {
                return self.ask(Question::Path(&path)).map(|()| Err(Errno::Enoent));
            }
            Ok(_) | Err(Errno::Enoent) => {
                if let Err(error) = self.write_path(operand, Vec::new())? {
                    return Ok(Err(error));
                }
            }
            Err(error) => return Ok(Err(error)),
        }
        Ok(self.stat(operand, Follow::Yes).map(|node| Handle::output_file(path, node.id, append)))
    }
}
