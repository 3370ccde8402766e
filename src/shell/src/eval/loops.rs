//! Loops and `case`.

use std::collections::BTreeSet;

use super::{Run, Stop};
use crate::host::Question;
use crate::order::Reader;
use crate::shell::Shell;
use crate::syntax::{Arm, ArmEnd, Node, Part, Word};

impl Shell<'_> {
    pub(super) fn run_loop(&mut self, until: bool, condition: &Node, body: &Node, tested: bool) -> Run<u8> {
        if !until && is_read(condition) && self.input_is_unordered() {
            return self.unordered_loop(body, |shell, variables| {
                shell.rounds(false, condition, body, tested, &|shell| {
                    shell.forget_round(variables);
                    shell.reading(Reader::Keeps, |shell| shell.eval(condition, true))?
                })
            });
        }
        self.rounds(until, condition, body, tested, &|shell| shell.eval(condition, true))
    }

    fn rounds(
        &mut self,
        until: bool,
        condition: &Node,
        body: &Node,
        tested: bool,
        test: &dyn Fn(&mut Self) -> Run<u8>,
    ) -> Run<u8> {
        let mut status = 0;
        self.state.loops += 1;
        loop {
            self.step()?;
            self.retries_next = is_one_command(condition, until);
            let found = match test(self) {
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

    pub(super) fn for_loop(&mut self, name: &[u8], words: Option<&[Word]>, body: &Node, tested: bool) -> Run<u8> {
        let (fields, unordered) = match words {
            Some(words) => self.expanding_rounds(|shell| shell.fields(words))?,
            None => (self.state.params.to_vec(), false),
        };
        if !unordered || fields.len() < 2 {
            return self.for_rounds(name, fields, body, tested, &BTreeSet::new());
        }
        self.refuse_same_names(fields.iter().map(Vec::as_slice))?;
        let status =
            self.unordered_loop(body, |shell, variables| shell.for_rounds(name, fields, body, tested, variables))?;
        self.mark_variable(name, true);
        Ok(status)
    }

    fn for_rounds(
        &mut self,
        name: &[u8],
        fields: Vec<Vec<u8>>,
        body: &Node,
        tested: bool,
        variables: &BTreeSet<Vec<u8>>,
    ) -> Run<u8> {
        let mut status = 0;
        self.state.loops += 1;
        for field in fields {
            self.step()?;
            self.forget_round(variables);
            if !self.set_in_loop(name, &field)? {
                status = 1;
                break;
            }
            if !self.round(body, &mut status, tested)? {
                break;
            }
        }
        self.state.loops -= 1;
        Ok(status)
    }

    /// Sets the variable of a loop. If it is read-only, a loop of bash fails, and a shell of dash ends.
    fn set_in_loop(&mut self, name: &[u8], value: &[u8]) -> Run<bool> {
        if self.state.language.is_bash() {
            return self.assign_text(name, value, false);
        }
        self.set(name, value).map(|()| true)
    }

    pub(super) fn case(&mut self, subject: &Word, arms: &[Arm], tested: bool) -> Run<u8> {
        self.step()?;
        let subject = self.case_word(subject, |shell| shell.one(subject))?;
        self.ask(Question::Value(&subject))?;
        let (mut status, mut falls_through) = (0, false);
        for arm in arms {
            if !falls_through && !self.fits(arm, &subject)? {
                continue;
            }
            status = arm.body.as_ref().map_or(Ok(0), |body| self.eval(body, tested))?;
            falls_through = match arm.end {
                ArmEnd::Leave => return Ok(status),
                ArmEnd::FallThrough => true,
                ArmEnd::Continue => false,
            };
        }
        Ok(status)
    }

    fn fits(&mut self, arm: &Arm, subject: &[u8]) -> Run<bool> {
        for pattern in &arm.patterns {
            let pattern = self.case_word(pattern, |shell| shell.pattern(&pattern.parts))?;
            self.spend(pattern.work(subject.len()))?;
            self.require_same_match(&pattern, subject)?;
            if pattern.matches(subject) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `for ((init; condition; step))`: an expression that cannot be evaluated ends the loop with status 1.
    pub(super) fn for_arithmetic(&mut self, node: &Node, tested: bool) -> Run<u8> {
        let Node::ForArithmetic { init, condition, step, body, line } = node else { return Ok(0) };
        self.state.loops += 1;
        let mut status = 0;
        let mut value = self.expression(init)?;
        loop {
            self.step()?;
            if value.is_some() {
                self.state.line = *line;
                value = if condition.is_empty() { Some(1) } else { self.expression(condition)? };
            }
            match value {
                None => {
                    status = 1;
                    break;
                }
                Some(0) => break,
                Some(_) => {}
            }
            if !self.round(body, &mut status, tested)? {
                break;
            }
            value = self.expression(step)?;
        }
        self.state.loops -= 1;
        Ok(status)
    }

    /// The value of an arithmetic command; nothing after an error, which has been reported.
    pub(super) fn expression(&mut self, parts: &[Part]) -> Run<Option<i64>> {
        let text = self.document(parts)?;
        self.try_evaluate(&text)
    }
}

/// Whether a condition is `read`.
fn is_read(condition: &Node) -> bool {
    match condition {
        Node::Simple(simple) => simple.words.first().and_then(Word::literal) == Some(b"read"),
        Node::Sequence(nodes) => matches!(&nodes[..], [only] if is_read(only)),
        _ => false,
    }
}

/// Whether a loop runs one command until it succeeds: `until COMMAND` and `while ! COMMAND`.
fn is_one_command(condition: &Node, until: bool) -> bool {
    match condition {
        Node::Simple(_) => until,
        Node::Not(inner) => !until && matches!(**inner, Node::Simple(_)),
        _ => false,
    }
}
