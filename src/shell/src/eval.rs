//! Running commands. The rules of `set -e` are those of dash: a tree is run with a flag that says whether its failure is tested by what
//! stands around it, and only simple commands, subshells and pipelines end the shell.

mod simple;
mod redirect;
mod conditional;
mod program;
mod shebang;

pub use program::foreign;

pub(crate) use shebang::Interpreter;

use std::rc::Rc;

use crate::descriptors::Handle;
use crate::error::{ErrorKind, ShellError};
use crate::host::Question;
use crate::shell::Shell;
use crate::syntax::reader::Reader;
use crate::syntax::{Arm, Node, Parser, SyntaxError, Word};

/// What a pipe takes before its writer waits, in bytes: pipe(7), "Pipe capacity".
const PIPE_CAPACITY: usize = 64 << 10;

/// Why commands stop before their end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The shell ends with the status of its state.
    Exit,
    /// An error of the shell: it ends, unless a builtin that is not special made it.
    Error,
    /// What bash has read of a script so far ends, which is up to a line, and the next line goes on with the status of the state.
    Discard,
    /// A function or sourced file ends.
    Return,
    /// So many loops end.
    Break(u32),
    /// So many loops but one end, and that one goes on.
    Continue(u32),
    /// The run is given up.
    Fatal(Box<ShellError>),
}

/// What a command gives: its result, or why it stopped.
pub(crate) type Run<T> = Result<T, Stop>;

impl Shell<'_> {
    /// Runs a tree and sets `$?`; `tested` says whether a failure is looked at by something else than `set -e`.
    pub(crate) fn eval(&mut self, node: &Node, tested: bool) -> Run<u8> {
        self.budget.enter_level().map_err(|kind| self.fatal(kind))?;
        let result = self.eval_node(node, tested);
        self.budget.levels -= 1;
        self.settled(result)
    }

    fn eval_node(&mut self, node: &Node, tested: bool) -> Run<u8> {
        let mut ends = false;
        let status = match node {
            Node::Simple(simple) => {
                ends = true;
                self.simple(simple, tested)?
            }
            Node::Pipe(stages) => {
                ends = true;
                self.pipe(stages, tested)?
            }
            Node::Subshell(body, line) => {
                ends = true;
                self.state.line = *line;
                let body = body.clone();
                self.subshell(|shell| shell.eval(&body, tested))?
            }
            Node::Background(body) => self.background(body)?,
            Node::Not(inner) => u8::from(self.eval(inner, true)? == 0),
            Node::Sequence(nodes) => {
                let mut status = if nodes.is_empty() { self.state.status } else { 0 };
                for node in nodes {
                    status = self.eval(node, tested)?;
                }
                return Ok(status);
            }
            Node::AndOr(first, rest) => return self.and_or(first, rest, tested),
            Node::Redirected(inner, redirects, line) => {
                self.state.line = *line;
                let status = self.redirected(inner, redirects, tested)?;
                ends = status.is_none();
                status.unwrap_or(2)
            }
            Node::If(branches, otherwise) => self.branches(branches, otherwise.as_deref(), tested)?,
            Node::Loop { until, condition, body } => self.run_loop(*until, condition, body, tested)?,
            Node::For { name, words, body, line } => {
                self.state.line = *line;
                self.for_loop(name, words.as_deref(), body, tested)?
            }
            Node::Case { subject, arms, line } => {
                self.state.line = *line;
                self.case(subject, arms, tested)?
            }
            Node::Function { name, body, .. } => {
                if self.state.aliases.contains_key(name) {
                    return self.unsupported(b"a function with the name of an alias");
                }
                Rc::make_mut(&mut self.state.functions).insert(name.clone(), body.clone());
                0
            }
            Node::ForArithmetic { line, .. } => {
                self.state.line = *line;
                return self.unsupported(b"for (( ))");
            }
            Node::Arithmetic(_, line) => {
                self.state.line = *line;
                return self.unsupported(b"(( ))");
            }
            Node::Conditional(condition, line) => {
                ends = true;
                self.state.line = *line;
                u8::from(!self.condition(condition)?)
            }
        };
        self.state.status = status;
        if ends && status != 0 && self.state.flags.errexit && !tested {
            return Err(Stop::Exit);
        }
        Ok(status)
    }

    fn and_or(&mut self, first: &Node, rest: &[(bool, Node)], tested: bool) -> Run<u8> {
        // What comes last in effect is looked at by nobody.
        let mut status = self.eval(first, tested || !rest.is_empty())?;
        for (at, (on_success, node)) in rest.iter().enumerate() {
            if *on_success == (status == 0) {
                status = self.eval(node, tested || at + 1 < rest.len())?;
            }
        }
        Ok(status)
    }

    fn branches(&mut self, branches: &[(Node, Node)], otherwise: Option<&Node>, tested: bool) -> Run<u8> {
        for (condition, body) in branches {
            if self.eval(condition, true)? == 0 {
                return self.eval(body, tested);
            }
        }
        otherwise.map_or(Ok(0), |body| self.eval(body, tested))
    }

    fn run_loop(&mut self, until: bool, condition: &Node, body: &Node, tested: bool) -> Run<u8> {
        let mut status = 0;
        self.state.loops += 1;
        loop {
            self.step()?;
            let found = match self.eval(condition, true) {
                Ok(found) => found,
                Err(stop) => match self.loop_stop(stop)? {
                    true => continue,
                    false => break,
                },
            };
            if (found == 0) == until {
                break;
            }
            if !self.round(body, &mut status, tested)? {
                break;
            }
        }
        self.state.loops -= 1;
        Ok(status)
    }

    /// Runs the body of a loop once. Sets the status of the loop, and gives whether it goes on.
    fn round(&mut self, body: &Node, status: &mut u8, tested: bool) -> Run<bool> {
        match self.eval(body, tested) {
            Ok(found) => {
                *status = found;
                Ok(true)
            }
            Err(stop) => {
                *status = 0;
                self.loop_stop(stop)
            }
        }
    }

    /// Whether a loop goes on after `break` or `continue`; anything else passes through it.
    fn loop_stop(&mut self, stop: Stop) -> Run<bool> {
        match stop {
            Stop::Break(1) => Ok(false),
            Stop::Continue(1) => Ok(true),
            Stop::Break(count) => {
                self.state.loops -= 1;
                Err(Stop::Break(count - 1))
            }
            Stop::Continue(count) => {
                self.state.loops -= 1;
                Err(Stop::Continue(count - 1))
            }
            other => Err(other),
        }
    }

    fn for_loop(&mut self, name: &[u8], words: Option<&[Word]>, body: &Node, tested: bool) -> Run<u8> {
        let fields = match words {
            Some(words) => self.fields(words)?,
            None => self.state.params.to_vec(),
        };
        let mut status = 0;
        self.state.loops += 1;
        for field in fields {
            self.step()?;
            self.set(name, &field)?;
            if !self.round(body, &mut status, tested)? {
                break;
            }
        }
        self.state.loops -= 1;
        Ok(status)
    }

    fn case(&mut self, subject: &Word, arms: &[Arm], tested: bool) -> Run<u8> {
        self.step()?;
        let subject = self.one(subject)?;
        self.ask(Question::Value(&subject))?;
        for arm in arms {
            for pattern in &arm.patterns {
                let pattern = self.pattern(&pattern.parts)?;
                self.spend(subject.len().saturating_mul(pattern.len()) / 8 + 1)?;
                if pattern.matches(&subject) {
                    return arm.body.as_ref().map_or(Ok(0), |body| self.eval(body, tested));
                }
            }
        }
        Ok(0)
    }

    /// Runs in a copy of the shell, which shares the tree. Gives its status.
    pub(crate) fn subshell(&mut self, run: impl FnOnce(&mut Self) -> Run<u8>) -> Run<u8> {
        self.step()?;
        let saved = self.state.clone();
        let (levels, calls) = (self.budget.levels, self.budget.calls);
        crate::builtins::clear_traps(self);
        let result = run(self);
        let status = self.finish(result);
        (self.budget.levels, self.budget.calls) = (levels, calls);
        // What ends the whole run passes through functions, which take back what is theirs.
        self.state = saved;
        status
    }

    /// What a shell does at its end: the trap, and its status.
    pub(crate) fn finish(&mut self, result: Run<u8>) -> Run<u8> {
        if let Err(Stop::Fatal(error)) = result {
            return Err(Stop::Fatal(error));
        }
        let status = self.state.status;
        self.state.leaving = Some(status);
        self.budget.levels = self.budget.levels.min(self.budget.limits.levels / 2);
        let Some(action) = Rc::make_mut(&mut self.state.traps).remove(&crate::builtins::EXIT) else {
            return Ok(status);
        };
        match self.eval_text(&action, false) {
            Err(Stop::Fatal(error)) => Err(Stop::Fatal(error)),
            Err(Stop::Exit | Stop::Error) => Ok(self.state.status),
            _ => Ok(status),
        }
    }

    /// Stages run one after the other, each in a subshell: what one writes is there when the next one reads. With `pipefail` a writer
    /// fails if its reader ends early, unless the pipe takes all that it writes.
    fn pipe(&mut self, stages: &[Node], tested: bool) -> Run<u8> {
        let mut input = self.descriptor(0);
        let (mut status, mut failed) = (0, 0);
        for (at, stage) in stages.iter().enumerate() {
            let (handle, collected) = Handle::output();
            let last = at + 1 == stages.len();
            status = self.subshell(|shell| {
                shell.set_descriptor(0, input.take());
                if !last {
                    shell.set_descriptor(1, Some(handle));
                }
                shell.eval(stage, tested)
            })?;
            failed = if status == 0 { failed } else { status };
            let written = collected.take();
            if self.state.flags.pipefail && written.len() > PIPE_CAPACITY {
                return self.unsupported(b"more than 64 KiB in a pipe, with pipefail");
            }
            input = Some(Handle::bytes(written));
        }
        Ok(if self.state.flags.pipefail { failed } else { status })
    }

    /// `&`: whether it ends before the script goes on is not known, and so neither is what it does.
    fn background(&mut self, _body: &Node) -> Run<u8> {
        self.unsupported(b"a command in the background")
    }

    /// Runs a text as commands: `eval`, `trap`.
    pub(crate) fn eval_text(&mut self, text: &[u8], tested: bool) -> Run<u8> {
        self.spend_size(text.len(), text.len())?;
        let mut reader = Reader::new(text, self.state.line, 0, self.state.language);
        let mut status = 0;
        loop {
            match Parser::new(&mut reader).line() {
                Ok(None) => return Ok(status),
                Ok(Some(node)) => status = self.kept(|shell| shell.eval(&node, tested))?,
                Err(error) => return Err(self.syntax_error(error)),
            }
        }
    }

    /// Runs what was read up to a line; what discards it ends here, except in a subshell of this text.
    fn kept(&mut self, run: impl FnOnce(&mut Self) -> Run<u8>) -> Run<u8> {
        let loops = self.state.loops;
        match run(self) {
            Err(Stop::Discard) => {
                self.state.loops = loops;
                Ok(self.state.status)
            }
            other => other,
        }
    }

    /// Runs the commands of a script or sourced file.
    pub(crate) fn eval_source(&mut self, source: &[u8]) -> Run<u8> {
        self.spend_size(source.len(), source.len())?;
        let mut reader = Reader::new(source, 1, 0, self.state.language);
        let mut status = 0;
        loop {
            match Parser::new(&mut reader).line() {
                Ok(None) => return Ok(status),
                Ok(Some(node)) => status = self.kept(|shell| shell.eval(&node, false))?,
                Err(error) => return Err(self.syntax_error(error)),
            }
        }
    }

    /// A script that dash could not parse either would end with status 2. That its author meant that is less likely than another
    /// shell's syntax, so it is given up.
    pub(crate) fn syntax_error(&mut self, error: SyntaxError) -> Stop {
        self.command = Rc::default();
        let (line, kind) = match error {
            SyntaxError::Unexpected { line, reason } => (line, ErrorKind::Syntax { reason }),
            SyntaxError::Unsupported { line, what } => (line, ErrorKind::Unsupported { what }),
            SyntaxError::TooDeep { line } => {
                let limit = crate::syntax::MAX_DEPTH.into();
                (line, ErrorKind::Limit { what: "levels of syntax", limit })
            }
        };
        self.state.line = line;
        self.fatal(kind)
    }
}
