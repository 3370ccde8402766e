//! Runs programs: those of the caller, those that the interpreter implements, and scripts of the tree.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::search::ProgramLocation;
use super::shebang::{Interpreter, named};
use super::{Run, Stop};
use crate::commands;
use crate::descriptors::Handle;
use crate::error::{ErrorKind, show};
use crate::files::{Errno, Follow};
use crate::host::{Call, Outcome, Question, in_system};
use crate::shell::{Seen, Shell};
use crate::state::{Bash, Variable};

/// Programs that pass on what they are given, or use it as names of files, and take no part of it.
const KEEPS_VALUES: [&[u8]; 11] =
    [b"cat", b"tee", b"cp", b"mv", b"install", b"chmod", b"chown", b"env", b"sh", b"bash", b"touch"];

impl Shell<'_> {
    /// Runs what is neither a function nor a builtin, as programs that start programs do.
    pub(crate) fn program(&mut self, argv: &[Vec<u8>]) -> Run<u8> {
        let Some(name) = argv.first() else { return Ok(0) };
        let place = self.search(name, None)?;
        self.program_at(&place, argv)
    }

    /// Runs a program where it was found.
    pub(crate) fn program_at(&mut self, place: &ProgramLocation, argv: &[Vec<u8>]) -> Run<u8> {
        let Some((name, args)) = argv.split_first() else { return Ok(0) };
        let reached = place.system.is_some() || place.file.is_some() || name.contains(&b'/');
        if reached || self.commands.is_function(name) {
            let own = place.file.as_deref().filter(|_| place.system.is_none());
            let status = self.ask_caller(place.system.as_ref().unwrap_or(name), args, own, false)?;
            self.lost = false;
            if let Some(status) = status {
                return Ok(status);
            }
        }
        if let Some(known) = place.system_name() {
            let takes_apart = !KEEPS_VALUES.contains(&known) && commands::find(known).is_some();
            if takes_apart {
                args.iter().try_for_each(|arg| self.ask(Question::Value(arg)))?;
            }
            let reader = crate::order::reader(known, args);
            let outer = std::mem::take(&mut self.lost_errors);
            let result = self.following_random(known, args, |shell, args| {
                let result = shell.reading(reader, |shell| {
                    commands::find(known).map(|run| match known {
                        // It does not buffer its output.
                        b"tee" => run(shell, args),
                        _ => shell.with_own_traffic(|shell| run(shell, args)),
                    })
                })?;
                Ok(result.or_else(|| shell.builtin_program(known, args)))
            })?;
            let failure = commands::without_errors(known).filter(|_| self.lost_errors);
            self.lost_errors = outer;
            match result {
                Some(Ok(_) | Err(Stop::Error)) if failure.is_some() && !self.lost => {
                    return Ok(failure.unwrap_or_default());
                }
                Some(done) if std::mem::take(&mut self.lost) => {
                    done?;
                    return self.unsupported(b"writing to a closed descriptor");
                }
                Some(Err(Stop::Error)) => return Ok(2),
                Some(done) => return done,
                None => {}
            }
        }
        match &place.file {
            Some(path) => self.tree_script(path, args),
            None => self.not_found(name, place),
        }
    }

    fn not_found(&mut self, name: &[u8], place: &ProgramLocation) -> Run<u8> {
        if (self.is_started || self.in_builtins > 0) && self.is_captured(2) {
            return self
                .unsupported(&[b"a file or value with the error message for the missing command ", name].concat());
        }
        if name.contains(&b'/') {
            let (why, status) = self.denial(name);
            self.complain_exactly(&[name, b": ", why.as_bytes()].concat())?;
            return Ok(status);
        }
        if self.commands.unknown(Question::Program(name)) {
            return Err(self.fatal(ErrorKind::UnknownCommand));
        }
        self.refuse_denied(name, None)?;
        let why: &[u8] = match self.state.language.is_bash() {
            true => b": command not found",
            false if place.error == Some(Errno::Eperm) => b": Permission denied",
            false => b": not found",
        };
        self.complain_exactly(&[name, why].concat())?;
        Ok(127)
    }

    /// Runs a command as a program that starts programs would: functions and builtins of the shell are not seen.
    pub(crate) fn invoke(&mut self, argv: &[Vec<u8>]) -> Run<u8> {
        self.step()?;
        let outer = std::mem::replace(&mut self.command, Rc::new(argv.to_vec()));
        let lost = self.lost_errors;
        let outer_start = std::mem::replace(&mut self.is_started, true);
        let status = self.program(argv);
        self.is_started = outer_start;
        self.lost_errors = lost;
        let status = self.require_known(status)?;
        self.command = outer;
        Ok(status)
    }

    /// The same for a program that becomes the one that it starts, whose name it cannot complain about without standard error.
    pub(crate) fn invoke_in_place(&mut self, argv: &[Vec<u8>]) -> Run<u8> {
        let status = self.invoke(argv)?;
        match status {
            126 | 127 if !self.writes_errors() => {
                self.unsupported(b"a program that is not found, without standard error")
            }
            status => Ok(status),
        }
    }

    /// Builtins that are programs too; `echo` is another one there.
    fn builtin_program(&mut self, name: &[u8], args: &[Vec<u8>]) -> Option<Run<u8>> {
        match name {
            b"echo" if self.state.exported().contains_key(&b"POSIXLY_CORRECT"[..]) => {
                Some(self.unsupported(b"POSIXLY_CORRECT"))
            }
            b"echo" => Some(crate::builtins::echo_program(self, args)),
            b"printf" if quotes(args) => Some(self.unsupported(b"%q")),
            b"test" | b"[" if args.iter().any(|arg| arg == b"==") => Some(self.unsupported(b"==")),
            name @ (b"printf" | b"test" | b"[" | b"true" | b"false" | b"pwd") => {
                crate::builtins::regular(name).map(|builtin| builtin(self, args, true))
            }
            _ => None,
        }
    }

    /// Asks the caller to run a command, or with `source` to be a file that a script sources.
    pub(crate) fn ask_caller(
        &mut self,
        name: &[u8],
        args: &[Vec<u8>],
        file: Option<&[u8]>,
        source: bool,
    ) -> Run<Option<u8>> {
        let input = match self.descriptor(0) {
            // What takes it is refused then.
            Some(Handle::Input(_)) if self.input_is_uncertain() => Vec::new(),
            Some(Handle::Input(_) | Handle::File(_)) => self.unread(Self::peek_input)?,
            _ => Vec::new(),
        };
        let is_own = !self.is_captured(1);
        let (are_errors_captured, has_descriptors) =
            (self.is_captured(2), self.state.descriptors.range(3..).next().is_some());
        let (mut stdout, mut stderr, mut taken) = (Vec::new(), Vec::new(), false);
        let mut seen = Seen { state: &self.state, changes: Vec::new() };
        let outcome = {
            let mut stdin = || {
                taken = true;
                input.clone()
            };
            let mut call = Call {
                name,
                file,
                args,
                variables: &mut seen,
                files: &mut *self.files,
                stdin: &mut stdin,
                stdout: &mut stdout,
                stderr: &mut stderr,
                cwd: &self.state.cwd,
                umask: self.state.umask,
                is_observed: self.tested || self.state.caller_tests || !is_own,
                is_tolerated: self.tolerated && is_own,
                is_captured: !is_own,
                are_errors_captured,
                has_descriptors,
                script: &self.state.script,
                line: self.state.line,
            };
            if source { self.commands.source(&mut call) } else { self.commands.run(&mut call) }
        };
        let changes = seen.changes;
        if outcome.is_some() {
            self.files.note_all();
        }
        if taken {
            self.read_all(0)?;
            self.require_found(&input, &stdout)?;
        }
        self.out(&stdout)?;
        self.err(&stderr)?;
        for change in changes {
            self.change(&change.name, Some(change.value), change.export)?;
        }
        match outcome {
            None => Ok(None),
            Some(Outcome::Status(status)) => Ok(Some(status)),
            Some(Outcome::Exec(argv)) => self.invoke(&argv).map(Some),
            Some(Outcome::Assumed) => {
                // With `set -e`, nothing runs after a failure.
                if !self.exits_on_failure() && !self.tolerated {
                    let words = std::iter::once(name).chain(args.iter().map(Vec::as_slice)).map(show);
                    self.assumed = Some(words.collect::<Vec<_>>().join(" "));
                }
                Ok(Some(0))
            }
            Some(Outcome::Deferred(reason)) => Err(self.fatal(ErrorKind::Deferred { reason })),
            Some(Outcome::Refused(reason)) => Err(self.fatal(ErrorKind::Refused { reason })),
            Some(Outcome::Unsupported(what)) => Err(self.fatal(ErrorKind::Unsupported { what })),
        }
    }

    /// Runs a program of the tree that is a script of a shell.
    fn tree_script(&mut self, path: &[u8], args: &[Vec<u8>]) -> Run<u8> {
        let longest = u64::try_from(self.budget.limits.size_bytes).unwrap_or(u64::MAX);
        if self.stat(path, Follow::Yes).is_ok_and(|node| node.size > longest) {
            return Err(self.foreign(path, COMPILED.to_owned()));
        }
        let content = match self.read_program(path)? {
            Ok(content) => content,
            Err(error) => return self.cannot_run(path, error),
        };
        match (Interpreter::of(&content), foreign(&content)) {
            (Some(interpreter), _) => self.run_script(path, &content, args, interpreter),
            (None, Some(_)) if self.lacks_interpreter(&content) => {
                self.complain(&[path, &b": not found"[..]].concat())?;
                Ok(127)
            }
            (None, Some(what)) => Err(self.foreign(path, what)),
            // The kernel does not run a text without an interpreter; dash, like execvp(3), has sh run it.
            (None, None) if is_text(&content) && !self.state.language.is_bash() => {
                self.run_script(path, &content, args, Interpreter::default())
            }
            (None, None) => Err(self.fatal(ErrorKind::UnknownCommand)),
        }
    }

    /// Whether a script names an interpreter that is nowhere: outside of the system's directories, or behind the CR of another system.
    fn lacks_interpreter(&self, content: &[u8]) -> bool {
        named(content).is_some_and(|(program, _)| {
            program.starts_with(b"/") && (program.ends_with(b"\r") || !in_system(program)) && !self.exists(program)
        })
    }

    fn foreign(&self, path: &[u8], what: String) -> Stop {
        self.fatal(ErrorKind::Foreign { name: show(path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)), what })
    }

    fn cannot_run(&mut self, path: &[u8], error: Errno) -> Run<u8> {
        self.complain(&[path, b": ", error.text().as_bytes()].concat())?;
        Ok(126)
    }

    /// Whether a variable has the path of the working directory.
    fn works_at(&self, variable: Option<&Variable>) -> bool {
        let id = |path: &[u8]| self.stat(path, Follow::Yes).ok().map(|node| node.id);
        let value = variable.and_then(|variable| variable.value.as_ref()).filter(|path| path.starts_with(b"/"));
        value.is_some_and(|path| path[..] == self.state.cwd[..] || id(path) == id(&self.state.cwd))
    }

    /// Runs a script in a new shell that knows the exported variables only.
    pub(crate) fn run_script(&mut self, name: &[u8], source: &[u8], args: &[Vec<u8>], by: Interpreter) -> Run<u8> {
        self.budget.enter_call().map_err(|kind| self.fatal(kind))?;
        let outer = self.command.clone();
        let outer_flags = (std::mem::take(&mut self.is_started), std::mem::take(&mut self.in_builtins));
        let (tests, tolerates) = ((self.tested && !self.retried) || self.state.caller_tests, self.tolerated);
        let status = self.subshell(|shell| {
            (shell.state.caller_tests, shell.state.caller_tolerates) = (tests, tolerates);
            let mut exported: BTreeMap<Vec<u8>, Variable> = shell
                .state
                .variables
                .iter()
                .filter(|(_, found)| found.exported && found.value.is_some())
                .map(|(name, found)| {
                    (name.clone(), Variable { value: found.value.clone(), exported: true, ..Variable::default() })
                })
                .collect();
            shell.state.inherited = Rc::new(exported.keys().cloned().collect());
            if !shell.works_at(exported.get(&b"PWD"[..])) {
                exported.remove(&b"PWD"[..]);
                let directory = shell.state.cwd.to_vec();
                shell.state.cwd = Rc::new(commands::real_path(shell, &directory).unwrap_or(directory));
            }
            crate::run::defaults(&mut exported, &shell.state.cwd, by.language());
            shell.state.variables = Rc::new(exported);
            shell.state.getopts = Default::default();
            shell.state.functions = Rc::default();
            shell.state.aliases = Rc::default();
            shell.state.hashed = Rc::default();
            shell.state.zero = Rc::new(name.to_vec());
            shell.state.params = Rc::new(args.to_vec());
            shell.state.flags = by.flags;
            shell.state.leaving = None;
            (shell.state.loops, shell.state.functions_running) = (0, 0);
            shell.state.script = show(name).into();
            shell.state.language = by.language();
            shell.state.bash = Bash::default();
            if by.flags.argument {
                shell.state.bash.fatal_status = 127;
            }
            shell.state.status = 0;
            if by.flags.stdin {
                shell.reserve_script(source.len());
            }
            shell.eval_source(source)
        })?;
        self.command = outer;
        (self.is_started, self.in_builtins) = outer_flags;
        self.budget.calls -= 1;
        Ok(status)
    }
}

/// Whether a file without an interpreter can only be a script.
fn is_text(content: &[u8]) -> bool {
    !content.starts_with(b"#!") && content.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

/// What a program is that no shell can run, such as `a compiled program` or `a script for perl`; `None` for scripts of a shell, and for what
/// is neither.
pub fn foreign(content: &[u8]) -> Option<String> {
    if content.starts_with(b"\x7fELF") {
        return Some(COMPILED.to_owned());
    }
    if Interpreter::of(content).is_some() {
        return None;
    }
    let (program, argument) = named(content)?;
    let name = |word: &[u8]| show(word.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
    let mut words = argument.unwrap_or_default().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let program = match name(program).as_str() {
        "env" => name(words.find(|word| !word.starts_with(b"-"))?),
        other => other.to_owned(),
    };
    match (program.as_str(), argument) {
        ("sh" | "dash" | "bash", None) => Some(format!("a script for {}", show(named(content)?.0))),
        ("sh" | "dash" | "bash", Some(_)) => None,
        _ => Some(format!("a script for {program}")),
    }
}

const COMPILED: &str = "a compiled program";

/// Whether the format of the program `printf` has `%q`, which the builtin of dash lacks.
fn quotes(args: &[Vec<u8>]) -> bool {
    let format = args.iter().find(|arg| *arg != b"--").map(Vec::as_slice).unwrap_or_default();
    format.contains(&b'%') && format.contains(&b'q')
}
