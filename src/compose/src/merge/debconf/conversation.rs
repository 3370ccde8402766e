//! The protocol between a script and a frontend (debconf-devel(7), version 2.0).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use commands::{flag, known, load, set, set_flag};

use super::Debconf;
use super::database::Files;
use super::fault::DebconfFault;
use super::record::Text;
use super::text::words;
use progress::{Progress, number};

mod commands;
mod progress;

/// What a frontend knows.
const COMMANDS: [&[u8]; 23] = [
    b"beginblock",
    b"capb",
    b"clear",
    b"data",
    b"endblock",
    b"exist",
    b"fget",
    b"fset",
    b"get",
    b"go",
    b"info",
    b"input",
    b"metaget",
    b"progress",
    b"purge",
    b"register",
    b"reset",
    b"set",
    b"settitle",
    b"subst",
    b"title",
    b"unregister",
    b"version",
];

/// Bytes that one frontend goes through: all that is said, heard and searched.
const MAX_WORK: u64 = 64 << 20;

/// What a file is read by: its content, or why there is none.
pub(in crate::merge) type Open<'a> = dyn FnMut(&[u8]) -> Result<Vec<u8>, String> + 'a;

/// A status, and the text behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    status: u8,
    text: Option<Text>,
}

const SUCCESS: Reply = Reply { status: 0, text: None };

impl Reply {
    pub(super) fn of(status: u8, text: &[&[u8]]) -> Self {
        Self { status, text: Some(text.concat()) }
    }

    pub(super) fn incorrect() -> Self {
        Self::of(20, &[b"Incorrect number of arguments"])
    }

    pub(super) fn unknown(question: &[u8]) -> Self {
        Self::of(10, &[question, b" doesn't exist"])
    }

    fn unknown_quoted(question: &[u8]) -> Self {
        Self::of(10, &[b"\"", question, b"\" doesn't exist"])
    }

    /// The line that the script reads.
    fn line(self) -> Text {
        let status = self.status.to_string().into_bytes();
        match self.text {
            None => status,
            Some(text) => {
                let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
                [&status[..], b" ", first].concat()
            }
        }
    }
}

/// A frontend and the script that talks to it.
#[derive(Clone, Debug, Default)]
pub(in crate::merge) struct Conversation {
    /// The package, with its architecture where dpkg's files have it.
    owner: Text,
    /// Whether the script has asked for answers with escapes.
    escapes: bool,
    /// Questions whose answers the next GO gives.
    asked: Vec<Text>,
    busy: BTreeSet<Text>,
    priorities: BTreeMap<Text, Text>,
    progress: Progress,
    stopped: bool,
    /// Lines that the script has not read.
    replies: VecDeque<Text>,
    work: u64,
}

impl Conversation {
    pub(in crate::merge) fn new(owner: &[u8]) -> Self {
        Self { owner: owner.to_vec(), ..Self::default() }
    }

    /// Another script of the package goes on: its config was the first.
    pub(in crate::merge) fn next_script(&mut self) {
        *self = Self { owner: std::mem::take(&mut self.owner), work: self.work, ..Self::default() };
    }

    /// The package's templates are loaded.
    pub(in crate::merge) fn load(&mut self, debconf: &mut Debconf, text: &[u8]) -> Result<(), DebconfFault> {
        self.spend(text.len())?;
        let owner = self.owner.clone();
        let Some(files) = debconf.files() else { return Ok(()) };
        load(files, text, &owner)
    }

    /// Says lines, and reads one answer: none after `STOP`, which has none.
    pub(in crate::merge) fn ask(
        &mut self,
        debconf: &mut Debconf,
        lines: &[u8],
        open: &mut Open<'_>,
    ) -> Result<Option<Text>, DebconfFault> {
        for line in lines.split(|byte| *byte == b'\n') {
            let reply = self.say(debconf, line, open)?;
            self.replies.extend(reply);
        }
        match self.replies.pop_front() {
            Some(reply) => Ok(Some(reply)),
            None if self.stopped && lines.eq_ignore_ascii_case(b"STOP") => Ok(None),
            None => Err(DebconfFault::Fails {
                what: "debconf does not answer after db_stop, so the script would hang".to_owned(),
            }),
        }
    }

    /// Says one line; gives the answer, which `STOP` has not.
    pub(in crate::merge) fn say(
        &mut self,
        debconf: &mut Debconf,
        line: &[u8],
        open: &mut Open<'_>,
    ) -> Result<Option<Text>, DebconfFault> {
        self.spend(line.len() + 1)?;
        let Some(files) = debconf.files() else { return Ok(None) };
        let parts = words(line, self.escapes);
        let Some((command, args)) = parts.split_first() else {
            return Ok(Some(Reply::of(20, &[b"Bad line \"", line, b"\" received from confmodule."]).line()));
        };
        self.stopped |= command.eq_ignore_ascii_case(b"stop");
        if self.stopped {
            return Ok(None);
        }
        let command = command.to_ascii_lowercase();
        let reply = match self.command(files, &command, args, open)? {
            Some(reply) => reply,
            None => Reply::of(
                20,
                &[b"Unsupported command \"", &command, b"\" (full line was \"", line, b"\") received from confmodule."],
            ),
        };
        let reply = reply.line();
        self.spend(reply.len())?;
        Ok(Some(reply))
    }

    fn spend(&mut self, bytes: usize) -> Result<(), DebconfFault> {
        self.work = self.work.saturating_add(bytes as u64);
        if self.work > MAX_WORK {
            return Err(DebconfFault::Limit { what: "bytes of questions and answers", limit: MAX_WORK });
        }
        Ok(())
    }

    /// A command with its arguments, or nothing for one that is not known.
    fn command(
        &mut self,
        files: &mut Files,
        command: &[u8],
        args: &[Text],
        open: &mut Open<'_>,
    ) -> Result<Option<Reply>, DebconfFault> {
        Ok(Some(match (command, args) {
            (b"beginblock" | b"endblock", _) | (b"title", _) | (b"info", []) => SUCCESS,
            (b"version", []) => Reply::of(0, &[b"2.0"]),
            (b"version", [version]) => match number(version) {
                ..2 => Reply::of(30, &[b"Version too low (", version, b")"]),
                2 => Reply::of(0, &[b"2.0"]),
                _ => Reply::of(30, &[b"Version too high (", version, b")"]),
            },
            (b"capb", _) => {
                self.escapes = args.iter().any(|word| word == b"escape");
                // What this frontend adds is empty.
                Reply::of(0, &[b"multiselect escape "])
            }
            (b"clear", []) => self.clear(),
            (b"go", []) => self.go(files)?,
            (b"input", [priority, question]) => self.input(files, priority, question)?,
            (b"settitle" | b"info", [question]) => known(files, question, true).unwrap_or(SUCCESS),
            (b"get", [question]) => match files.value(question) {
                _ if files.question(question).is_none() => Reply::unknown(question),
                value => self.answer(&value.unwrap_or_default()),
            },
            (b"set", [question, value @ ..]) => set(files, question, &value.join(&b' '))?,
            (b"reset", [question]) => known(files, question, false).unwrap_or_else(|| {
                let default = files.text(question, b"default", false).unwrap_or_default();
                files.set_field(question, b"value", &default);
                files.set_flag(question, b"seen", b"false");
                SUCCESS
            }),
            (b"subst", [question, name, value @ ..]) => known(files, question, false).unwrap_or_else(|| {
                if let Some(record) = files.change(question) {
                    record.variables.insert(name.clone(), value.join(&b' '));
                }
                SUCCESS
            }),
            (b"fget", [question, name]) => known(files, question, false).unwrap_or_else(|| flag(files, question, name)),
            (b"fset", [question, name, value @ ..]) if !value.is_empty() => {
                known(files, question, false).unwrap_or_else(|| set_flag(files, question, name, &value.join(&b' ')))
            }
            (b"metaget", [question, field]) => self.metaget(files, question, field)?,
            (b"exist", [question]) => {
                Reply::of(0, &[if files.question(question).is_some() { b"true" } else { b"false" }])
            }
            (b"visible", [_, question]) => known(files, question, false).unwrap_or_else(|| Reply::of(0, &[b"true"])),
            (b"register", [template, question]) => self.register(files, template, question)?,
            (b"unregister", [question]) if self.busy.contains(question) => {
                Reply::of(10, &[question, b" is busy, cannot unregister right now"])
            }
            (b"unregister", [question]) => known(files, question, false).unwrap_or_else(|| {
                files.remove_owner(question, &self.owner);
                SUCCESS
            }),
            (b"purge", []) => self.purge(files)?,
            (b"progress", _) => self.progress.command(files, args)?,
            (b"data", [template, item, value @ ..]) if !value.is_empty() => self.data(files, template, item, value)?,
            (b"x_loadtemplatefile", [file]) => self.load_file(files, file, &self.owner.clone(), open)?,
            (b"x_loadtemplatefile", [file, owner]) => self.load_file(files, file, owner, open)?,
            _ if COMMANDS.contains(&command) || matches!(command, b"visible" | b"x_loadtemplatefile") => {
                Reply::incorrect()
            }
            _ => return Ok(None),
        }))
    }
}
