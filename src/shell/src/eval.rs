//! Runs commands. The rules of `set -e` are those of dash: a flag states whether the failure of a tree is tested by its parent, and only
//! simple commands, subshells and pipelines end the shell.

mod simple;
mod bash;
mod loops;
mod redirect;
mod conditional;
mod program;
mod search;
mod shebang;

pub use program::foreign;

pub(crate) use redirect::descriptor_of;
pub(crate) use shebang::Interpreter;

use std::rc::Rc;

use crate::descriptors::Handle;
use crate::error::{ErrorKind, ShellError};
use crate::shell::Shell;
use crate::syntax::reader::Reader;
use crate::syntax::{Commands, Descriptor, Node, Parser, Simple, SyntaxError, script};

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
        if self.state.language.is_bash() {
            // The lines of this trap are counted from its own first one.
            self.state.line = 1;
            self.state.bash.forced = false;
            self.state.bash.end_runs = true;
        }
        match self.eval_text(&action, false) {
            Err(Stop::Fatal(error)) => Err(Stop::Fatal(error)),
            Err(Stop::Exit) if self.state.bash.forced => Ok(if self.state.flags.errexit { 1 } else { status }),
            Err(Stop::Exit | Stop::Error) => Ok(self.state.status),
            Err(Stop::Return) if self.state.language.is_bash() => Ok(self.state.bash.returned.unwrap_or(status)),
            _ => Ok(status),
        }
    }

    /// Stages run one after the other, each in a subshell: what one writes is there when the next one reads. With `pipefail` a writer
    /// fails if its reader ends early, unless the pipe takes all that it writes.
    fn pipe(&mut self, stages: &[Node], tested: bool) -> Run<u8> {
        let (mut reads, piped) = (self.reads.clone(), self.piped_reads.clone());
        let result = self.stages(stages, tested);
        reads.append(&mut self.reads);
        reads.append(&mut self.piped_reads);
        (self.reads, self.piped_reads) = (reads, piped);
        let statuses = result?;
        let last = statuses.last().copied().unwrap_or_default();
        let failed = statuses.iter().rev().copied().find(|status| *status != 0).unwrap_or_default();
        self.state.bash.pipestatus = Rc::new(statuses);
        if let Some(Node::Simple(last)) = stages.last() {
            self.state.line = last.line;
        }
        Ok(if self.state.flags.pipefail { failed } else { last })
    }

    /// The statuses of the stages.
    fn stages(&mut self, stages: &[Node], tested: bool) -> Run<Vec<u8>> {
        let mut input = self.descriptor(0);
        let mut statuses = Vec::new();
        self.reads.clear();
        for (at, stage) in stages.iter().enumerate() {
            let reads = std::mem::take(&mut self.reads);
            self.piped_reads.extend(reads);
            if let Node::Simple(simple) = stage {
                self.note_line(simple.number);
            }
            self.narrow_output = self.narrow_stage(stage, stages.get(at + 1));
            let (handle, collected) = Handle::output();
            if at + 1 == stages.len() {
                statuses.push(self.last_stage(stage, input.take(), tested)?);
                break;
            }
            let has_trap = self.state.traps.contains_key(&crate::builtins::EXIT);
            statuses.push(self.subshell(|shell| {
                shell.set_descriptor(0, input.take());
                shell.set_descriptor(1, Some(handle));
                shell.forked_stage(stage, tested, has_trap)
            })?);
            let written = collected.take();
            if self.state.flags.pipefail && written.len() > PIPE_CAPACITY {
                return self.unsupported(b"more than 64 KiB in a pipe, with pipefail");
            }
            let unordered = self.take_mark(&collected);
            input = Some(Handle::pipe(written, unordered));
        }
        Ok(statuses)
    }

    /// The subshell in which a stage `ls` writes only for a command that looks at some columns.
    fn narrow_stage(&self, stage: &Node, next: Option<&Node>) -> Option<u32> {
        let (Node::Simple(stage), Some(Node::Simple(next))) = (stage, next) else { return None };
        let name = |simple: &Simple| simple.words.first().and_then(|word| word.literal()).map(<[u8]>::to_vec);
        let reader = name(next).filter(|name| !self.state.functions.contains_key(name));
        let is_narrow = name(stage).is_some_and(|name| name == b"ls")
            && reader.is_some()
            && stage.redirects.iter().all(|redirect| redirect.fd == Descriptor::Number(2))
            && crate::commands::is_narrow_reader(next);
        is_narrow.then_some(self.state.bash.subshells + 1)
    }

    /// The last stage, which `shopt -s lastpipe` runs in the shell itself.
    fn last_stage(&mut self, stage: &Node, input: Option<Handle>, tested: bool) -> Run<u8> {
        // A subshell at the end of a pipeline of bash begins in the shell itself, which looks at its failure.
        let is_subshell = match stage {
            Node::Redirected(inner, ..) => matches!(**inner, Node::Subshell(..)),
            stage => matches!(stage, Node::Subshell(..)),
        };
        if !(self.state.bash.shopt("lastpipe") || is_subshell && self.state.language.is_bash()) {
            let has_trap = self.state.traps.contains_key(&crate::builtins::EXIT);
            return self.subshell(|shell| {
                shell.set_descriptor(0, input);
                shell.forked_stage(stage, tested, has_trap)
            });
        }
        let outer = self.descriptor(0);
        self.set_descriptor(0, input);
        let result = self.eval(stage, tested);
        self.set_descriptor(0, outer);
        result
    }

    /// A stage of a pipeline. bash looks only at the status of the whole pipeline.
    fn stage(&mut self, stage: &Node, tested: bool) -> Run<u8> {
        match stage {
            Node::Simple(simple) if self.state.language.is_bash() => {
                let status = self.simple(simple, tested)?;
                self.state.status = status;
                Ok(status)
            }
            stage => self.eval(stage, tested),
        }
    }

    /// A stage in a subshell, which performs the trap of its end unless it is a compound command without braces around it.
    fn forked_stage(&mut self, stage: &Node, tested: bool, has_trap: bool) -> Run<u8> {
        let result = self.stage(stage, tested);
        if has_trap && self.state.language.is_bash() && matches!(stage, Node::Simple(_)) && self.is_discarded(&result) {
            return self.unsupported(b"an error of an expansion in a pipeline, with a trap for EXIT");
        }
        if self.state.language.is_bash() && may_be_bare(stage) && self.state.traps.contains_key(&crate::builtins::EXIT)
        {
            return self.unsupported(b"a trap for EXIT in a compound command of a pipeline");
        }
        result
    }

    /// Whether a command ended with an error of the shell.
    fn is_discarded(&self, result: &Run<u8>) -> bool {
        match result {
            Err(Stop::Discard | Stop::DiscardAll) => true,
            Err(Stop::Exit) => self.state.bash.forced,
            _ => false,
        }
    }

    /// `&`: whether it ends before the script goes on is not known, and so neither is what it does.
    fn background(&mut self, _body: &Node) -> Run<u8> {
        self.unsupported(b"a command in the background")
    }

    /// Runs a text as commands: `eval`, `trap`.
    pub(crate) fn eval_text(&mut self, text: &[u8], tested: bool) -> Run<u8> {
        self.spend_size(text.len(), text.len())?;
        let mut reader = Reader::new(text, self.state.line, 0, self.state.language);
        reader.extglob = self.state.bash.shopt("extglob");
        let mut status = 0;
        loop {
            match Parser::new(&mut reader).line() {
                Ok(None) => return Ok(status),
                Ok(Some(node)) => status = self.kept(false, |shell| shell.eval(&node, tested))?,
                Err(SyntaxError::Unexpected { reason, .. }) if self.state.language.is_bash() && fails_alone(text) => {
                    self.complain(&[b"syntax error: ", reason.as_bytes()].concat())?;
                    self.state.status = 2;
                    return Ok(2);
                }
                Err(error) => return Err(self.syntax_error(error)),
            }
        }
    }

    /// Runs what was read up to a line; what discards it ends here. Of a text inside of a script not all may end here, and in a subshell
    /// nothing does.
    fn kept(&mut self, is_script: bool, run: impl FnOnce(&mut Self) -> Run<u8>) -> Run<u8> {
        let loops = self.state.loops;
        match run(self) {
            Err(Stop::Discard) if is_script || self.state.bash.subshells == 0 => {}
            Err(Stop::DiscardAll) if is_script => {}
            other => return other,
        }
        self.state.loops = loops;
        Ok(self.state.status)
    }

    /// Runs the commands of a script or sourced file.
    pub(crate) fn eval_source(&mut self, source: &[u8]) -> Run<u8> {
        self.spend_size(source.len(), source.len())?;
        if self.state.language.is_bash() {
            return self.eval_bash(source, true, false);
        }
        let mut reader = Reader::new(source, 1, 0, self.state.language);
        let mut status = 0;
        loop {
            match Parser::new(&mut reader).line() {
                Ok(None) => return Ok(status),
                Ok(Some(node)) => status = self.kept(true, |shell| shell.eval(&node, false))?,
                Err(error) => return Err(self.syntax_error(error)),
            }
        }
    }

    /// Runs a script or sourced file of bash, all of which is parsed first.
    pub(crate) fn eval_bash(&mut self, source: &[u8], is_script: bool, tested: bool) -> Run<u8> {
        let Commands { nodes, ends, whole } = match script(source, self.state.bash.shopt("extglob")) {
            Ok(parsed) => parsed,
            Err(error) => return Err(self.syntax_error(error)),
        };
        let mut status = 0;
        // Blank lines and comments may follow the last command.
        let last_line = source.strip_suffix(b"\n").unwrap_or(source).split(|byte| *byte == b'\n').count();
        for (node, end) in nodes.iter().zip(ends) {
            if self.state.flags.stdin
                && self.state.bash.sourcing == 0
                && is_script
                && whole
                && usize::try_from(end) == Ok(last_line)
            {
                self.release_script();
            }
            let mut discarded = false;
            status = self.kept(is_script, |shell| {
                let result = shell.eval(node, tested);
                discarded = matches!(result, Err(Stop::Discard | Stop::DiscardAll));
                result
            })?;
            self.state.bash.lines_lost |= discarded && self.state.command_line != end;
        }
        if !whole {
            return self.unsupported(b"an exit that does not end the script");
        }
        Ok(status)
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

/// Whether an error of syntax in a text that is evaluated ends nothing but the text. Some errors in parentheses end the shell of bash, that of
/// a wrong name in a loop has another status, and after an open quote or `[[` bash misreads the next command.
fn fails_alone(text: &[u8]) -> bool {
    const ELSEWHERE: [&[u8]; 9] = [b"(", b"`", b"for", b"<<", b"function", b"'", b"\"", b"${", b"[["];
    let has = |wanted: &[u8]| text.windows(wanted.len()).any(|window| window == wanted);
    !ELSEWHERE.iter().any(|wanted| has(wanted))
}

/// Whether a stage of a pipeline may have no braces around it.
fn may_be_bare(stage: &Node) -> bool {
    match stage {
        Node::Redirected(inner, ..) => may_be_bare(inner),
        Node::If(..) | Node::Loop { .. } | Node::For { .. } | Node::ForArithmetic { .. } | Node::Case { .. } => true,
        _ => false,
    }
}

/// `true` or `:`, which end a list such as `COMMAND || true` with status 0.
fn always_succeeds(node: &Node) -> bool {
    let Node::Simple(simple) = node else { return false };
    simple.assignments.is_empty()
        && simple.redirects.is_empty()
        && matches!(&simple.words[..], [name] if matches!(name.literal(), Some(b"true" | b":")))
}
