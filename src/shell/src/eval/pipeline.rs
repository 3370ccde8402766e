//! Pipelines: each stage but the last runs in its own subshell, one after the other, with its output kept for the next.

use std::rc::Rc;

use crate::descriptors::Handle;
use crate::eval::{Run, Stop};
use crate::shell::Shell;
use crate::syntax::{Descriptor, Node, Simple};

/// What a pipe takes before its writer waits, in bytes: pipe(7), "Pipe capacity".
const PIPE_CAPACITY: usize = 64 << 10;

impl Shell<'_> {
    /// Stages run one after the other, each in a subshell: what one writes is there when the next one reads. With `pipefail` a writer
    /// fails if its reader ends early, unless the pipe takes all that it writes.
    pub(super) fn pipe(&mut self, stages: &[Node], tested: bool) -> Run<u8> {
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
        if self.descriptor(0).is_none() {
            // The pipe takes its place, and what commands close and restore is then the pipe.
            return self.unsupported(b"a pipe while standard input is closed");
        }
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
            Err(Stop::Exit) => self.state.bash.forced || self.state.bash.reported,
            _ => false,
        }
    }
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
pub(super) fn always_succeeds(node: &Node) -> bool {
    let Node::Simple(simple) = node else { return false };
    simple.assignments.is_empty()
        && simple.redirects.is_empty()
        && matches!(&simple.words[..], [name] if matches!(name.literal(), Some(b"true" | b":")))
}
