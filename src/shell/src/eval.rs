//! Runs commands. The rules of `set -e` are those of dash: a flag states whether the failure of a tree is tested by its parent, and only
//! simple commands, subshells and pipelines end the shell.

mod pipeline;
mod simple;
mod text;
mod bash;
mod loops;
mod redirect;
mod conditional;
mod program;
mod search;
mod shebang;

pub use program::foreign;

use pipeline::always_succeeds;
pub(crate) use redirect::descriptor_of;
pub(crate) use shebang::Interpreter;

use std::rc::Rc;

use crate::error::ShellError;
use crate::shell::Shell;
use crate::syntax::Node;

/// Why commands stop before their end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The shell ends with the status of its state.
    Exit,
    /// An error of the shell: it ends, unless a builtin that is not special made it.
    Error,
    /// What bash has read of a script so far ends, which is up to a line, and the next line goes on with the status of the state.
    Discard,
    /// The same, through `eval` and sourced files.
    DiscardAll,
    /// A function or sourced file ends.
    Return,
    /// So many loops end.
    Break(u32),
    /// So many loops but one end, and that one goes on.
    Continue(u32),
    /// The run is given up.
    Fatal(Box<ShellError>),
}

impl Stop {
    /// An error in the value of an integer or in a subscript, which also ends `eval`.
    pub(crate) fn through_texts(self) -> Self {
        if matches!(self, Self::Discard) { Self::DiscardAll } else { self }
    }
}

/// What a command gives: its result, or why it stopped.
pub(crate) type Run<T> = Result<T, Stop>;

impl Shell<'_> {
    /// Runs a tree and sets `$?`; `tested` says whether a failure is looked at by something else than `set -e`.
    pub(crate) fn eval(&mut self, node: &Node, tested: bool) -> Run<u8> {
        self.budget.enter_level().map_err(|kind| self.fatal(kind))?;
        let result = self.eval_node(node, tested);
        self.budget.levels -= 1;
        self.require_known(result)
    }

    fn eval_node(&mut self, node: &Node, tested: bool) -> Run<u8> {
        let mut ends = false;
        // A trap that the command itself sets does not run for its failure.
        let trapped = self.state.bash.error_trap.as_ref().is_some_and(|action| !action.is_empty());
        let status = match node {
            Node::Simple(simple) => {
                ends = true;
                let next = std::mem::take(&mut self.tolerates_next);
                let retries = std::mem::take(&mut self.retries_next);
                let outer = std::mem::replace(&mut self.tolerated, next);
                let outer_retries = std::mem::replace(&mut self.retried, retries);
                let result = self.simple(simple, tested);
                (self.tolerated, self.retried) = (outer, outer_retries);
                result?
            }
            Node::Pipe(stages) => {
                ends = true;
                self.pipe(stages, tested)?
            }
            Node::Subshell(body, lines) => {
                // Its own redirections end before the shell looks at its failure.
                ends = !std::mem::take(&mut self.redirected_subshell);
                self.state.line = lines.first;
                self.note_line(lines.last);
                let body = body.clone();
                let is_alone = std::mem::take(&mut self.state.bash.is_alone);
                let status = self.subshell(|shell| {
                    // In a trap, `exit` here does not have the status from before the trap.
                    shell.state.leaving.take_if(|_| shell.state.language.is_bash());
                    if shell.state.language.is_bash() {
                        shell.subshell_of_bash(&body, tested)
                    } else {
                        shell.eval(&body, tested)
                    }
                })?;
                if is_alone {
                    self.state.status = status;
                    return Ok(status);
                }
                status
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
                let is_alone = std::mem::take(&mut self.state.bash.is_alone);
                let status = self.redirected(inner, redirects, tested)?;
                if let Some(status) = status.filter(|_| is_alone) {
                    self.state.status = status;
                    return Ok(status);
                }
                ends = status.is_none() || (matches!(**inner, Node::Subshell(..)) && self.state.language.is_bash());
                status.unwrap_or(if self.state.language.is_bash() { 1 } else { 2 })
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
                let script = self.state.script.clone();
                Rc::make_mut(&mut self.state.bash.sources).insert(name.clone(), script);
                0
            }
            Node::ForArithmetic { line, .. } => {
                self.state.line = *line;
                self.for_arithmetic(node, tested)?
            }
            Node::Arithmetic(expression, lines) => {
                ends = true;
                (self.state.line, self.state.command_line) = (lines.first, lines.last);
                self.note_line(lines.last);
                self.step()?;
                let value = self.expression(expression)?;
                self.assumed = None;
                u8::from(value.unwrap_or(0) == 0)
            }
            Node::Conditional(condition, lines) => {
                ends = true;
                (self.state.line, self.state.command_line) = (lines.first, lines.last);
                self.note_line(lines.last);
                let tested = std::mem::replace(&mut self.tested, tested);
                let result = self.condition(condition);
                self.tested = tested;
                self.assumed = None;
                u8::from(!result?)
            }
        };
        self.state.status = status;
        if ends && self.state.language.is_bash() {
            if !matches!(node, Node::Pipe(_)) {
                self.state.bash.pipestatus = Rc::new(vec![status]);
            }
            return self.ended(status, tested, trapped);
        }
        if ends && status != 0 && self.state.flags.end_on_failure() && !tested {
            return Err(Stop::Exit);
        }
        Ok(status)
    }

    fn and_or(&mut self, first: &Node, rest: &[(bool, Node)], tested: bool) -> Run<u8> {
        let is_ignored = matches!((first, rest), (Node::Simple(_), [(false, next)]) if always_succeeds(next));
        self.tolerates_next = is_ignored;
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

    /// Runs in a copy of the shell, which shares the tree. Gives its status.
    pub(crate) fn subshell(&mut self, run: impl FnOnce(&mut Self) -> Run<u8>) -> Run<u8> {
        self.step()?;
        let saved = self.state.clone();
        self.state.flags.ends_on_failure = false;
        let renames = self.renames.len();
        let (levels, calls) = (self.budget.levels, self.budget.calls);
        crate::builtins::clear_traps(self);
        self.state.bash.subshells += 1;
        self.state.bash.substitution = None;
        let outer_start = std::mem::take(&mut self.is_started);
        if self.state.language.is_bash() {
            self.state.loops = 0;
        }
        self.state.bash.error_trap.take_if(|_| !self.state.flags.errtrace);
        self.state.bash.return_trap.take_if(|_| !self.state.flags.functrace);
        let result = run(self);
        let status = self.finish(result);
        self.is_started = outer_start;
        (self.budget.levels, self.budget.calls) = (levels, calls);
        // What ends the whole run passes through functions, which take back what is theirs.
        self.state = saved;
        if self.renames[renames..].iter().any(|(from, _)| self.is_inside(from) || self.works_below(from)) {
            return self.unsupported(b"moving the working directory");
        }
        status
    }

    /// What a shell does at its end: the trap, and its status.
    pub(crate) fn finish(&mut self, result: Run<u8>) -> Run<u8> {
        if let Err(Stop::Fatal(error)) = result {
            return Err(Stop::Fatal(error));
        }
        if let (Err(Stop::Return), Some(status)) = (&result, self.state.bash.returned) {
            self.state.status = status;
        }
        if matches!(result, Err(Stop::Break(_) | Stop::Continue(_))) {
            self.state.status = 0;
        }
        let status = self.state.status;
        self.state.leaving = Some(status);
        self.budget.levels = self.budget.levels.min(self.budget.limits.levels / 2);
        let Some(action) = Rc::make_mut(&mut self.state.traps).remove(&crate::builtins::EXIT) else {
            return Ok(status);
        };
        let unwinds = std::mem::take(&mut self.state.bash.unwinds);
        self.state.bash.forced = false;
        if self.state.language.is_bash() {
            // The lines of this trap are counted from its own first one.
            self.state.line = 1;
            self.state.bash.end_runs = true;
        }
        match self.eval_text(&action, false) {
            Err(Stop::Fatal(error)) => Err(Stop::Fatal(error)),
            Err(Stop::Exit) if self.state.bash.forced => Ok(if self.state.flags.errexit { 1 } else { status }),
            Err(Stop::Exit | Stop::Error) => Ok(self.state.status),
            Err(Stop::Return) if self.state.language.is_bash() && !unwinds => {
                Ok(self.state.bash.returned.unwrap_or(status))
            }
            _ => Ok(status),
        }
    }

    /// `&`: whether it ends before the script goes on is not known, and so neither is what it does.
    fn background(&mut self, _body: &Node) -> Run<u8> {
        self.unsupported(b"a command in the background")
    }
}
