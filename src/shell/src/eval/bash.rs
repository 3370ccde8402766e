//! Simple commands of bash: functions precede builtins, errors of builtins do not end the shell, and failures run traps.

use std::rc::Rc;

use super::{Run, Stop};
use crate::builtins::{self, Builtin};
use crate::descriptors::Handle;
use crate::run::Event;
use crate::shell::Shell;
use crate::state::{Frame, Trap};
use crate::syntax::{Node, Simple};

/// The meaning of a command name.
enum Found {
    Nothing,
    Function(Rc<Node>),
    Builtin(Builtin),
    Program,
    /// An operand of `builtin` that is not one.
    Missing,
}

/// What `command` and `builtin` before a name take away.
#[derive(Debug, Clone, Copy, Default)]
struct Prefix {
    words: usize,
    no_functions: bool,
    only_builtins: bool,
}

impl Shell<'_> {
    /// Runs a simple command of a script of bash.
    pub(super) fn simple_of_bash(&mut self, simple: &Simple, tested: bool) -> Run<u8> {
        self.step()?;
        self.state.line = simple.line;
        self.state.command_line = simple.number;
        self.state.bash.spans_lines = simple.last > simple.line;
        self.note_line(simple.number);
        self.state.substituted = 0;
        let is_alone = std::mem::take(&mut self.state.bash.is_alone);
        let outer_tested = std::mem::replace(&mut self.tested, tested);
        let outer = self.command.clone();
        let saved = self.state.descriptors.clone();
        let result = self.expanded(simple, tested, is_alone);
        let keeps = match &result {
            Ok((_, keeps)) => *keeps,
            // The trap of the end sees the redirections of the commands that it ends.
            Err(stop) => matches!(stop, Stop::Exit) && !self.state.bash.unwinds,
        };
        if !keeps {
            self.restore(&saved, &simple.redirects);
        } else if result.is_ok() && self.replaces_script(simple) {
            return self.unsupported(b"replacing the standard input from which the shell reads its script");
        }
        self.close_processes(&saved);
        self.command = outer;
        self.tested = outer_tested;
        result.map(|(status, _)| status)
    }

    /// Gives the status, and whether the redirections stay.
    fn expanded(&mut self, simple: &Simple, tested: bool, is_alone: bool) -> Run<(u8, bool)> {
        let words = self.command_words(&simple.words)?;
        self.state.line = simple.line;
        let prefix = self.prefix(&words)?;
        let argv = Rc::new(words[prefix.words..].to_vec());
        let found = self.find_of_bash(&argv, prefix);
        self.command = argv.clone();
        if prefix.words > 0 {
            self.arrays = std::mem::take(&mut self.arrays)
                .into_iter()
                .filter_map(|(at, entries)| Some((at.checked_sub(prefix.words)?, entries)))
                .collect();
        }
        let ignores = tested && (prefix.words > 0 || matches!(argv.first(), Some(name) if is_reader(name)));
        let result = match ignores {
            true => self.ignoring(|shell| shell.assigned_of_bash(simple, &found, &argv, false)),
            false => self.assigned_of_bash(simple, &found, &argv, tested),
        };
        let status = self.require_known(result)?;
        // The subshell that a program replaced has no trap.
        self.state.bash.error_trap.take_if(|_| is_alone && matches!(found, Found::Program));
        if !argv.is_empty() {
            let (script, words) = (self.state.script.clone(), argv.to_vec());
            self.commands.ran(&Event { script, line: simple.line, words, status });
        }
        // Of redirections that fail, none stays.
        let is_exec = argv.first().is_some_and(|name| name == b"exec");
        Ok((status, is_exec && status == 0))
    }

    /// Runs a builtin that reads commands where its failure is tested: without the effect of `set -e`, and without the trap
    /// for ERR, unless they set one.
    fn ignoring(&mut self, run: impl FnOnce(&mut Self) -> Run<u8>) -> Run<u8> {
        let ignored = std::mem::replace(&mut self.state.bash.errexit_ignored, true);
        let trap = self.state.bash.error_trap.take();
        let result = run(self);
        if matches!(result, Err(Stop::Exit)) {
            return result;
        }
        self.state.bash.errexit_ignored = ignored;
        self.state.bash.error_trap = trap.or(self.state.bash.error_trap.take());
        result
    }

    /// Whether a failure ends the shell.
    pub(crate) fn exits_on_failure(&self) -> bool {
        self.state.flags.end_on_failure() && !self.state.bash.errexit_ignored
    }

    /// How many words `command` and `builtin` with their options are, if they run a command.
    fn prefix(&self, words: &[Vec<u8>]) -> Run<Prefix> {
        let mut prefix = Prefix::default();
        while let Some(name) = words.get(prefix.words)
            && matches!(&name[..], b"command" | b"builtin")
            && (prefix.no_functions || !self.state.functions.contains_key(name))
        {
            let is_command = name == b"command";
            let mut at = prefix.words + 1;
            while let Some(option) = words.get(at).filter(|word| word.len() > 1 && word.starts_with(b"-")) {
                match &option[..] {
                    b"--" => {
                        at += 1;
                        break;
                    }
                    b"-p" if is_command => at += 1,
                    // The builtins themselves take other options.
                    _ => return Ok(prefix),
                }
            }
            if at >= words.len() {
                return Ok(prefix);
            }
            prefix = Prefix { words: at, no_functions: true, only_builtins: prefix.only_builtins || !is_command };
        }
        Ok(prefix)
    }

    fn find_of_bash(&self, argv: &[Vec<u8>], prefix: Prefix) -> Found {
        let Some(name) = argv.first() else { return Found::Nothing };
        if let Some(body) = self.state.functions.get(name).filter(|_| !prefix.no_functions) {
            return Found::Function(body.clone());
        }
        match builtins::any_of_bash(name) {
            Some(builtin) => Found::Builtin(builtin),
            None if prefix.only_builtins => Found::Missing,
            None => Found::Program,
        }
    }

    /// Performs the assignments of a command, its redirections, and runs it.
    fn assigned_of_bash(&mut self, simple: &Simple, found: &Found, argv: &[Vec<u8>], tested: bool) -> Run<u8> {
        if let Found::Nothing = found {
            for assignment in &simple.assignments {
                self.assign(assignment)?;
                self.trace_assignment(&assignment.name, simple)?;
            }
            let redirected = self.redirect(&simple.redirects)?;
            self.assumed = None;
            return Ok(if redirected { self.state.substituted } else { 1 });
        }
        if simple.assignments.is_empty() {
            return self.redirected_of_bash(simple, found, argv, tested);
        }
        let declares = matches!(&argv[0][..], b"export" | b"declare" | b"local" | b"readonly" | b"typeset" | b"unset");
        if declares && simple.assignments.iter().any(|own| argv.iter().any(|arg| arg.starts_with(&own.name))) {
            return self.unsupported(b"an assignment before a builtin that declares the same variable");
        }
        self.enter_scope(true);
        let mut result = Ok(0);
        for assignment in &simple.assignments {
            result = self
                .assign_before_command(assignment)
                .and_then(|()| self.trace_assignment(&assignment.name, simple))
                .map(|()| 0);
            if result.is_err() {
                break;
            }
        }
        if result.is_ok() {
            result = self.redirected_of_bash(simple, found, argv, tested);
        }
        if !matches!(result, Err(Stop::Exit)) {
            self.leave_scope();
        }
        result
    }

    fn trace_assignment(&mut self, name: &[u8], simple: &Simple) -> Run<()> {
        self.trace_words(&[[name, &b"="[..], self.state.get(name).unwrap_or_default()].concat()], simple)
    }

    fn redirected_of_bash(&mut self, simple: &Simple, found: &Found, argv: &[Vec<u8>], tested: bool) -> Run<u8> {
        self.assumed = None;
        if let Found::Program = found {
            return self.program_of_bash(simple, argv);
        }
        if !self.redirect_before(simple, true)? {
            return Ok(1);
        }
        self.trace_words(argv, simple)?;
        match found {
            Found::Function(body) => self.call_of_bash(body, argv, simple, tested),
            Found::Builtin(builtin) => self.builtin_of_bash(*builtin, argv, tested),
            Found::Missing => {
                self.complain(&[b"builtin: ", &argv[0][..], b": not a shell builtin"].concat())?;
                Ok(1)
            }
            Found::Nothing | Found::Program => Ok(0),
        }
    }

    /// Performs the redirections of a command, which do not see the assignments before it.
    fn redirect_before(&mut self, simple: &Simple, keeps: bool) -> Run<bool> {
        if simple.assignments.is_empty() || simple.redirects.is_empty() {
            return self.redirect(&simple.redirects);
        }
        self.without_temporaries(keeps, |shell| shell.redirect(&simple.redirects))
    }

    /// Runs a program: its redirections are those of the new process, and so are what they assign and how they fail.
    fn program_of_bash(&mut self, simple: &Simple, argv: &[Vec<u8>]) -> Run<u8> {
        let descriptors = self.state.descriptors.clone();
        let expands = !simple.redirects.is_empty();
        let before = expands.then(|| (self.state.variables.clone(), self.state.variables_bytes));
        let redirected = match self.redirect_before(simple, false) {
            Err(Stop::Exit | Stop::Discard | Stop::DiscardAll | Stop::Error) => Ok(false),
            other => other,
        };
        if let Some((variables, bytes)) = before {
            (self.state.variables, self.state.variables_bytes) = (variables, bytes);
        }
        if !redirected? {
            return Ok(1);
        }
        self.trace_words(argv, simple)?;
        let result = self.program(argv);
        self.state.descriptors = descriptors;
        result
    }

    fn builtin_of_bash(&mut self, builtin: Builtin, argv: &[Vec<u8>], tested: bool) -> Run<u8> {
        self.require_numbers(argv)?;
        let writes = matches!(&argv[0][..], b"echo" | b"printf" | b"pwd");
        if writes && self.descriptor(1).is_none() {
            let (handle, written) = Handle::output();
            self.set_descriptor(1, Some(handle));
            let result = builtin(self, &argv[1..], tested);
            self.set_descriptor(1, None);
            if written.take().is_empty() {
                return result;
            }
            let status = result?;
            self.complain_exactly(&[&argv[0][..], b": write error: Bad file descriptor"].concat())?;
            return Ok(status.max(1));
        }
        let result = builtin(self, &argv[1..], tested);
        if std::mem::take(&mut self.lost) {
            result?;
            return self.unsupported(b"writing to a closed descriptor");
        }
        match result {
            Err(Stop::Error) => Ok(if matches!(&argv[0][..], b"test" | b"[" | b"getopts") { 2 } else { 1 }),
            // Those of dash that are shared fail with 2 where bash's fail with 1.
            Ok(2) if matches!(&argv[0][..], b"cd" | b"umask" | b"shift") => Ok(1),
            other => other,
        }
    }

    /// Calls a function of the script.
    fn call_of_bash(&mut self, body: &Rc<Node>, argv: &[Vec<u8>], simple: &Simple, tested: bool) -> Run<u8> {
        self.budget.enter_call().map_err(|kind| self.fatal(kind))?;
        let params = std::mem::replace(&mut self.state.params, Rc::new(argv[1..].to_vec()));
        let loops = std::mem::take(&mut self.state.loops);
        let source = self.state.bash.sources.get(&argv[0]).cloned().unwrap_or_else(|| self.state.script.clone());
        let script = std::mem::replace(&mut self.state.script, source.clone());
        let params_set = self.state.bash.params_set;
        let frame = Frame { function: argv[0].clone(), source, line: simple.number };
        Rc::make_mut(&mut self.state.bash.frames).push(frame);
        let error_trap = self.state.bash.error_trap.take_if(|_| !self.state.flags.errtrace);
        let return_trap = self.state.bash.return_trap.take_if(|_| !self.state.flags.functrace);
        self.enter_scope(false);
        self.state.functions_running += 1;
        let levels = self.budget.levels;
        let result = self.eval(body, tested);
        let result = self.returned(result);
        self.budget.levels = levels;
        // The trap of the end still sees the function that `exit` or `set -e` ends, and after `set -e` no local variables.
        if matches!(result, Err(Stop::Exit)) {
            if !self.state.bash.exiting {
                self.leave_scope();
                self.refuse_locals_of_subshell()?;
            }
            return result;
        }
        self.state.functions_running -= 1;
        self.leave_scope();
        Rc::make_mut(&mut self.state.bash.frames).pop();
        (self.state.params, self.state.loops, self.state.script) = (params, loops, script);
        self.state.bash.error_trap = self.state.bash.error_trap.take().or(error_trap);
        self.state.bash.return_trap = self.state.bash.return_trap.take().or(return_trap);
        self.state.bash.params_set = params_set;
        (self.state.line, self.state.command_line) = (simple.line, simple.number);
        self.note_line(simple.number);
        self.budget.calls -= 1;
        result
    }

    /// Whether a subshell that `set -e` ends has local variables in its trap depends on how it began.
    fn refuse_locals_of_subshell(&self) -> Run<()> {
        if self.state.bash.subshells > 0 && self.state.traps.contains_key(&builtins::EXIT) {
            return self.unsupported(b"a trap at the end of a subshell that set -e ends inside of a function");
        }
        Ok(())
    }

    /// The end of a function or sourced file: the trap for RETURN runs, and then its status is that of `return`.
    pub(crate) fn returned(&mut self, result: Run<u8>) -> Run<u8> {
        let descriptors = self.state.bash.returned_from.take();
        let status = match result {
            Ok(status) => status,
            Err(Stop::Return) => self.state.bash.returned.take().unwrap_or(self.state.status),
            other => return other,
        };
        if let Some(action) = self.state.bash.return_trap.clone() {
            // What `return` leaves keeps its redirections until then.
            let inner = descriptors.filter(|_| matches!(result, Err(Stop::Return)));
            let outer = inner.map(|inner| std::mem::replace(&mut self.state.descriptors, inner));
            self.run_trap(Trap::Return, &action)?;
            if let Some(outer) = outer {
                self.state.descriptors = outer;
            }
        }
        self.state.status = status;
        Ok(status)
    }

    /// The commands of `( )`. A command that is alone runs in the process of the subshell, which does not look at how it failed; and
    /// what `!` begins is not tested by it, so that a failure of `set -e` in there is what `!` negates.
    pub(super) fn subshell_of_bash(&mut self, body: &Node, tested: bool) -> Run<u8> {
        let status = match body {
            Node::Not(inner) if !tested => match self.eval(inner, false) {
                Err(Stop::Exit) if !self.state.bash.exiting && !self.state.bash.forced => self.state.status,
                result => result?,
            },
            body => {
                self.state.bash.is_alone = match body {
                    Node::Simple(_) | Node::Subshell(..) => true,
                    Node::Redirected(inner, ..) => matches!(**inner, Node::Subshell(..)),
                    _ => false,
                };
                return self.eval(body, tested);
            }
        };
        self.state.status = u8::from(status == 0);
        Ok(self.state.status)
    }

    /// Notes the line of a command for the trap for ERR, whose own commands do not count.
    pub(super) fn note_line(&mut self, line: u32) {
        if self.state.bash.trap_running.is_none() {
            self.state.bash.error_line = line;
        }
    }

    /// Runs the action of a trap for ERR or RETURN, after which the status is what it was. It does not run within itself.
    fn run_trap(&mut self, trap: Trap, action: &[u8]) -> Run<()> {
        match self.state.bash.trap_running {
            None => {}
            Some(running) if running == trap => return Ok(()),
            Some(_) => return self.unsupported(b"a trap for ERR or RETURN within the other"),
        }
        let (status, statuses) = (self.state.status, self.state.bash.pipestatus.clone());
        let line = self.state.line;
        self.state.bash.trap_running = Some(trap);
        let result = self.eval_text(action, false);
        // In the trap of the end that follows, an action that called `exit` still runs.
        self.state.bash.trap_running = Some(trap).filter(|_| matches!(result, Err(Stop::Exit)));
        if matches!(result, Err(Stop::Break(_) | Stop::Continue(_))) {
            return self.unsupported(b"a trap that leaves a loop");
        }
        self.state.line = line;
        // `exit` in the action has its own status.
        if result.is_ok() {
            (self.state.status, self.state.bash.pipestatus) = (status, statuses);
        }
        result.map(|_| ())
    }

    /// The end of a command that may end the shell: what fails runs the trap for ERR before that.
    pub(super) fn ended(&mut self, status: u8, tested: bool, trapped: bool) -> Run<u8> {
        if status == 0 || tested {
            return Ok(status);
        }
        if let Some(action) = self.state.bash.error_trap.clone().filter(|_| trapped) {
            let line = std::mem::replace(&mut self.state.line, self.state.bash.error_line);
            self.run_trap(Trap::Error, &action)?;
            self.state.line = line;
        }
        if self.exits_on_failure() { Err(Stop::Exit) } else { Ok(status) }
    }
}

/// Whether a builtin reads commands.
fn is_reader(name: &[u8]) -> bool {
    matches!(name, b"eval" | b"source" | b".")
}
