//! Running the scripts of a profile over the tree of a new machine: rendered phases in, what is there in the end out.

use std::collections::BTreeSet;

use vmbake_shell::{ErrorKind, Files, ShellError};

use super::base::{self, Found};
use super::error::{ImportError, Place};
use super::known::KnownFiles;
use super::machine::{Effects, Machine};
use super::rules::Rules;
use super::runtime::legible;

/// Most scripts that are left to the machine.
const MAX_DEFERRED: usize = 20;

/// A file of the profile, marks in place of values.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) mode: u16,
    pub(super) text: String,
}

/// What cloud-init is told to run, with a name for messages.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    pub(super) name: &'static str,
    pub(super) lines: Vec<String>,
}

/// What is run, and how.
pub(super) struct Program<'a> {
    pub(super) files: &'a [File],
    pub(super) commands: &'a [Commands],
    pub(super) rules: &'a Rules,
    pub(super) secrets: [String; 2],
    /// What `uname -m` prints.
    pub(super) machine: &'static str,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Evaluated {
    /// Everything that is there before and in the end, sorted by path.
    pub(super) before: Vec<Found>,
    pub(super) after: Vec<Found>,
    /// Directories that the base may have; they keep their mode.
    pub(super) kept: BTreeSet<String>,
    pub(super) effects: Effects,
    /// Scripts that only a machine can run.
    pub(super) deferred: BTreeSet<String>,
}

/// Runs everything. A script that asks the machine, and that another script calls, is left to it: then all is run again.
pub(super) fn evaluate(program: &Program<'_>) -> Result<Evaluated, ImportError> {
    let mut deferred = BTreeSet::new();
    loop {
        match once(program, &deferred)? {
            Ended::Done(evaluated) => return Ok(*evaluated),
            Ended::Asks(script) if deferred.len() < MAX_DEFERRED => drop(deferred.insert(script)),
            Ended::Asks(script) => {
                let place = Place { script, line: 1, command: String::new() };
                return Err(ImportError::Limit { place, what: "more than 20 scripts ask the machine".to_owned() });
            }
        }
    }
}

enum Ended {
    Done(Box<Evaluated>),
    /// This script asks the machine.
    Asks(String),
}

fn once(program: &Program<'_>, deferred: &BTreeSet<String>) -> Result<Ended, ImportError> {
    let mut tree = base::tree().map_err(broken("/"))?;
    let mut files = KnownFiles::new(&mut tree, &program.rules.absent);
    let before = base::walk(files.tree()).map_err(broken("/"))?;
    for file in program.files {
        let placed = place(&mut files, file);
        if let Some(what) = files.unknown() {
            let what = format!("it depends on {what}, which is not known here");
            return Err(ImportError::Tree { path: file.path.clone(), what });
        }
        placed.map_err(broken(&file.path))?;
    }
    let mut machine = Machine::new(program.rules, program.machine, deferred, program.secrets.clone());
    for commands in program.commands {
        for line in &commands.lines {
            machine.entries.extend(line.split_ascii_whitespace().map(str::to_owned));
            match machine.shell(&mut files, commands.name, line) {
                Ok((0, _)) => {}
                Ok((_, stderr)) => return Err(failed(&machine, &stderr, commands.name)),
                Err(error) => {
                    let error = machine.failure.take().unwrap_or(*error);
                    let script = error.script.clone();
                    let is_file = program.files.iter().any(|file| file.path == script);
                    if asks_machine(&error.kind) && is_file && !machine.entries.contains(&script) {
                        return match program.files.iter().find(|file| file.path == script).and_then(installs) {
                            None => Ok(Ended::Asks(script)),
                            Some(command) => {
                                let what = format!(
                                    "it asks the machine ({}), and installs by {command}, which no machine does",
                                    error.kind
                                );
                                Err(ImportError::Tree { path: script, what })
                            }
                        };
                    }
                    return Err(given_up(&machine, error));
                }
            }
        }
    }
    if let Some(path) = files.removed() {
        let what = "a script removes what the system has there: say so with `remove` in a layer of --extend, and drop the command by a rule";
        let path = crate::escape::line(String::from_utf8_lossy(path));
        return Err(ImportError::Tree { path, what: what.to_owned() });
    }
    if let Some([first, path]) = base::hard_links(files.tree()).map_err(broken("/"))? {
        let what = format!("it is another name of the file {first}, and layers have no hard links");
        return Err(ImportError::Tree { path, what });
    }
    let after = base::walk(files.tree()).map_err(broken("/"))?;
    let effects = machine.effects;
    let paths = after.iter().map(|found| found.path.clone());
    let kept = paths.filter(|path| files.keeps_mode(path)).collect();
    Ok(Ended::Done(Box::new(Evaluated { before, after, kept, effects, deferred: deferred.clone() })))
}

/// The command by which a script may install something.
fn installs(file: &File) -> Option<&'static str> {
    const INSTALLS: [&str; 9] = ["apt", "apt-get", "dpkg", "curl", "wget", "pip", "pip3", "snap", "tar"];
    let is_word = |char: char| char.is_ascii_alphanumeric() || "_-./".contains(char);
    let lines = file.text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut words = lines.flat_map(|line| line.split(|char| !is_word(char)));
    words.find_map(|word| INSTALLS.into_iter().find(|command| word.rsplit('/').next() == Some(*command)))
}

/// Puts a file to its place, as cloud-init does.
fn place(files: &mut dyn Files, file: &File) -> Result<(), vmbake_shell::Errno> {
    for (at, _) in file.path.match_indices('/').skip(1) {
        files.ensure_dir(file.path.get(..at).unwrap_or_default().as_bytes(), 0o755)?;
    }
    files.write(file.path.as_bytes(), file.text.clone().into_bytes(), file.mode)?;
    files.set_mode(file.path.as_bytes(), file.mode)
}

/// What the tree says of a path.
fn broken(path: &str) -> impl FnOnce(vmbake_shell::Errno) -> ImportError {
    move |error| ImportError::Tree { path: path.to_owned(), what: error.to_string() }
}

fn asks_machine(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Deferred { .. }
            | ErrorKind::Machine { .. }
            | ErrorKind::Clock { .. }
            | ErrorKind::Random { .. }
            | ErrorKind::Foreign { .. }
    )
}

/// A command failed, and so did everything around it.
fn failed(machine: &Machine<'_>, stderr: &[u8], name: &str) -> ImportError {
    let (place, status) = machine
        .failed
        .clone()
        .unwrap_or_else(|| (Place { script: name.to_owned(), line: 1, command: String::new() }, 1));
    let stderr = if stderr.is_empty() { machine.stderr.as_slice() } else { stderr };
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.starts_with('+')).unwrap_or_default();
    ImportError::Failed { place, status, stderr: crate::escape::line(legible(line)) }
}

fn given_up(machine: &Machine<'_>, error: ShellError) -> ImportError {
    if machine.is_broken {
        return failed(machine, b"", &error.script);
    }
    let command = legible(&error.command.join(" "));
    let place = Place { script: error.script, line: error.line, command };
    match error.kind {
        ErrorKind::Limit { .. } => ImportError::Limit { place, what: error.kind.to_string() },
        kind => ImportError::Statement { place, reason: legible(&kind.to_string()) },
    }
}
