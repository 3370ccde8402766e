//! Runs a script.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::descriptors::Handle;
use crate::error::{ErrorKind, ShellError, show};
use crate::eval::{Interpreter, Stop};
use crate::files::Files;
use crate::host::Commands;
use crate::limits::Limits;
use crate::shell::{PATH, Shell};
use crate::state::{Bash, Getopts, State, Variable};
use crate::syntax::reader::Reader;
use crate::syntax::{self, Language, Parser, SyntaxError};

/// A script and its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// Its name in messages, and `$0`.
    pub name: &'a str,
    /// Its bytes.
    pub source: &'a [u8],
    /// `$1` and what follows.
    pub args: &'a [Vec<u8>],
}

/// What a script runs on.
pub struct Host<'a> {
    /// The file tree.
    pub files: &'a mut dyn Files,
    /// The commands and accounts of the caller.
    pub commands: &'a mut dyn Commands,
}

/// How a script runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its bounds.
    pub limits: Limits,
    pub environment: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The working directory, an absolute path.
    pub directory: Vec<u8>,
    /// The mask of new files' modes.
    pub umask: u16,
    /// Whether the script ends with the first command that fails. Unlike `set -e`, subshells do not inherit it, and `$-` does not show it.
    pub exits_on_failure: bool,
    /// `$0`, also in messages; the name of the script if there is none.
    pub zero: Option<Vec<u8>>,
    /// Paths below `/proc` and `/sys`, without symbolic links, that count as missing. A script that looks for any other path there is
    /// refused.
    pub absent: Vec<Vec<u8>>,
    /// Whether the result is the same for any order of directory entries, because the script sorts what depends on it. Otherwise, a result
    /// that depends on this order is refused.
    pub any_order: bool,
}

impl Default for Settings {
    /// In the root directory, with the search path of dpkg and a mask of 022.
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            environment: BTreeMap::from([(b"PATH".to_vec(), crate::shell::PATH.to_vec())]),
            directory: b"/".to_vec(),
            umask: 0o022,
            exits_on_failure: false,
            zero: None,
            absent: Vec::new(),
            any_order: false,
        }
    }
}

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The script or sourced file.
    pub script: Rc<str>,
    pub line: u32,
    /// The command and its arguments, expanded.
    pub words: Vec<Vec<u8>>,
    /// Its exit status.
    pub status: u8,
}

/// Results of a script other than its changes to the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its exit status.
    pub status: u8,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
    /// Commands and rounds of loops.
    pub steps: u64,
}

/// Runs a script. The status is one that dash would exit with; an error means that what the script would do is not known, and that the
/// tree may have a part of its changes.
pub fn run(script: &Script<'_>, host: &mut Host<'_>, settings: &Settings) -> Result<Finished, Box<ShellError>> {
    let (out, stdout) = Handle::output();
    let (err, stderr) = Handle::output();
    let mut interpreter = interpreter(script)?;
    interpreter.flags.ends_on_failure = settings.exits_on_failure;
    let start = state(script, settings, interpreter);
    let mut shell = Shell::new(&mut *host.files, &mut *host.commands, start, settings);
    shell.open_standard(out, err);
    let result = shell.eval_source(script.source);
    let status = shell.finish(result).map_err(|stop| match stop {
        Stop::Fatal(error) => error,
        _ => unexpected(script),
    })?;
    if let Some(path) = shell.left_behind() {
        shell.command = Rc::default();
        let what = format!(
            "{} remains, which is a temporary file, or contains a process id or a name that mktemp made up",
            show(&path)
        );
        let stop = shell.fatal(ErrorKind::Random { what });
        return Err(if let Stop::Fatal(error) = stop { error } else { unexpected(script) });
    }
    let steps = shell.budget.steps;
    Ok(Finished { status, stdout: stdout.take(), stderr: stderr.take(), steps })
}

/// Whether all of a maintainer script can be parsed; the error has the line.
pub fn parses(script: &Script<'_>) -> Result<(), Box<ShellError>> {
    let interpreter = interpreter(script)?;
    let parsed = match interpreter.language() {
        Language::Bash => syntax::script(script.source, false).map(|_| ()),
        Language::Dash => lines(script.source),
    };
    parsed.map_err(|found| {
        let (line, kind) = match found {
            SyntaxError::Unexpected { line, reason } => (line, ErrorKind::Syntax { reason }),
            SyntaxError::Unsupported { line, what } => (line, ErrorKind::Unsupported { what }),
            SyntaxError::TooDeep { line } => (line, ErrorKind::Syntax { reason: "nested too deeply".to_owned() }),
        };
        Box::new(error(script, line, kind))
    })
}

/// Parses a script of dash.
fn lines(source: &[u8]) -> Result<(), SyntaxError> {
    let mut reader = Reader::new(source, 1, 0, Language::Dash);
    while Parser::new(&mut reader).line()?.is_some() {}
    Ok(())
}

fn interpreter(script: &Script<'_>) -> Result<Interpreter, Box<ShellError>> {
    if !script.source.starts_with(b"#!") {
        return Ok(Interpreter::default());
    }
    Interpreter::of(script.source).ok_or_else(|| {
        let line = script.source.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Box::new(error(script, 1, ErrorKind::Unsupported { what: format!("the interpreter {}", show(line)) }))
    })
}

fn error(script: &Script<'_>, line: u32, kind: ErrorKind) -> ShellError {
    ShellError { script: script.name.to_owned(), line, command: Vec::new(), kind }
}

/// Only a fatal error passes the end of a shell.
fn unexpected(script: &Script<'_>) -> Box<ShellError> {
    Box::new(error(script, 0, ErrorKind::Unsupported { what: "this end of a script".to_owned() }))
}

/// The variables that a new shell has in addition to its environment. `IFS` is not inherited.
pub(crate) fn defaults(variables: &mut BTreeMap<Vec<u8>, Variable>, directory: &[u8], language: Language) {
    for (name, value) in [(&b"IFS"[..], &b" \t\n"[..]), (b"OPTIND", b"1")] {
        variables.entry(name.to_vec()).or_default().value = Some(Rc::new(value.to_vec()));
    }
    // bash has prompts only where it is interactive.
    let prompts = if language.is_bash() { &[][..] } else { &[(&b"PS1"[..], &b"# "[..]), (b"PS2", b"> ")] };
    for (name, value) in prompts.iter().chain(&[(&b"PS4"[..], &b"+ "[..])]) {
        let own = Variable { value: Some(Rc::new(value.to_vec())), ..Variable::default() };
        variables.entry(name.to_vec()).or_insert(own);
    }
    let path = Variable { value: Some(Rc::new(PATH.to_vec())), ..Variable::default() };
    variables.entry(b"PATH".to_vec()).or_insert(path);
    let directory = Variable { value: Some(Rc::new(directory.to_vec())), exported: true, ..Variable::default() };
    variables.entry(b"PWD".to_vec()).or_insert(directory);
}

fn state(script: &Script<'_>, settings: &Settings, interpreter: Interpreter) -> State {
    let variable =
        |value: &Vec<u8>| Variable { value: Some(Rc::new(value.clone())), exported: true, ..Variable::default() };
    let environment = settings.environment.iter().map(|(name, value)| (name.clone(), variable(value)));
    let mut variables: BTreeMap<Vec<u8>, Variable> = environment.collect();
    defaults(&mut variables, &settings.directory, interpreter.language());
    State {
        caller_tests: false,
        caller_tolerates: false,
        inherited: Rc::new(settings.environment.keys().cloned().collect()),
        variables_bytes: variables
            .iter()
            .map(|(name, found)| name.len() + found.value.as_ref().map_or(0, |value| value.len()))
            .sum(),
        variables: Rc::new(variables),
        unordered: Rc::default(),
        functions: Rc::default(),
        aliases: Rc::default(),
        hashed: Rc::default(),
        zero: Rc::new(settings.zero.clone().unwrap_or_else(|| script.name.as_bytes().to_vec())),
        params: Rc::new(script.args.to_vec()),
        flags: interpreter.flags,
        status: 0,
        substituted: 0,
        output_status: 0,
        leaving: None,
        descriptors: Rc::default(),
        cwd: Rc::new(settings.directory.clone()),
        umask: settings.umask,
        traps: Rc::default(),
        loops: 0,
        functions_running: 0,
        getopts: Getopts::default(),
        locals: Vec::new(),
        script: script.name.into(),
        line: 1,
        command_line: 1,
        language: interpreter.language(),
        bash: Bash::default(),
    }
}
