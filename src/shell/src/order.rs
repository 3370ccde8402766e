//! The order of directory entries. It depends on the file system, so results that depend on it are refused. The output of `find` and `grep
//! -r` is marked; it may be sorted, counted, tested for being empty, or passed to commands whose effects on several files are independent,
//! also in loops.

mod body;
mod readers;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

pub(crate) use readers::{is_independent, makes_names, reader};

use crate::descriptors::Handle;
use crate::error::ErrorKind;
use crate::eval::Run;
use crate::shell::Shell;
use crate::syntax::{Node, Part, Word};

/// What a command does with lines in an unknown order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Reader {
    /// Its result depends on the order.
    #[default]
    Depends,
    /// The order of what it writes depends on the order, and nothing else.
    Keeps,
    /// Nothing depends on the order.
    Forgets,
}

/// Where text is expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Context {
    #[default]
    Depends,
    /// The value of a variable, which has the unknown order from then on.
    Value,
    Free,
}

/// What is known about unknown orders.
#[derive(Default)]
pub(crate) struct Order {
    /// Whether any order gives the same result (`Settings::any_order`).
    is_free: bool,
    /// Outputs with lines in an unknown order.
    outputs: Vec<Rc<RefCell<Vec<u8>>>>,
    /// How the running program takes its input.
    reader: Reader,
    context: Context,
    /// Whether something in an unknown order was read or expanded.
    seen: bool,
    /// Whether the words of the running command have an unknown order.
    words: bool,
    /// How often standard output was written to.
    written: u64,
    /// The outputs of loops over an unknown order, and whether something was written there.
    loops: Vec<(Handle, bool)>,
}

impl Order {
    pub(crate) fn new(is_free: bool) -> Self {
        Self { is_free, ..Self::default() }
    }
}

impl Shell<'_> {
    /// Refuses what depends on the order of directory entries.
    pub(crate) fn unknown_order(&self) -> Run<()> {
        if self.order.is_free {
            return Ok(());
        }
        Err(self.fatal(ErrorKind::Machine { what: "the order of directory entries or of keys in awk".to_owned() }))
    }

    /// Notes that standard output has lines in an unknown order.
    pub(crate) fn mark_output(&mut self) -> Run<()> {
        match self.descriptor(1) {
            Some(Handle::Output(output)) => {
                if self.own_output.as_ref().is_some_and(|own| Rc::ptr_eq(own, &output)) {
                    return self.unknown_order();
                }
                self.order.outputs.push(output);
                Ok(())
            }
            Some(Handle::File(_)) => self.unknown_order(),
            _ => Ok(()),
        }
    }

    /// Whether an output that was read has lines in an unknown order.
    pub(crate) fn take_mark(&mut self, output: &Rc<RefCell<Vec<u8>>>) -> bool {
        let before = self.order.outputs.len();
        self.order.outputs.retain(|marked| !Rc::ptr_eq(marked, output));
        self.order.outputs.len() < before
    }

    /// Whether the running program has read lines in an unknown order.
    pub(crate) fn has_read_unordered(&self) -> bool {
        self.order.seen
    }

    /// How often standard output was written to.
    pub(crate) fn writes(&self) -> u64 {
        self.order.written
    }

    /// Counts what is written.
    pub(crate) fn count_write(&mut self, fd: u32) {
        self.order.written += u64::from(fd == 1);
        let Some(handle) = self.state.descriptors.get(&fd) else { return };
        for (output, is_written) in &mut self.order.loops {
            *is_written |= is_same(output, handle);
        }
    }

    /// Notes that text in an unknown order is expanded.
    pub(crate) fn expand_unordered(&mut self) -> Run<()> {
        self.order.seen = true;
        if self.order.context == Context::Depends { self.unknown_order() } else { Ok(()) }
    }

    /// Notes that lines in an unknown order are read.
    pub(crate) fn read_unordered(&mut self) -> Run<()> {
        self.order.seen = true;
        if self.order.reader == Reader::Depends { self.unknown_order() } else { Ok(()) }
    }

    /// Runs a program that takes lines in an unknown order in this way.
    pub(crate) fn reading<T>(&mut self, reader: Reader, run: impl FnOnce(&mut Self) -> T) -> Run<T> {
        let words = std::mem::take(&mut self.order.words);
        let outer = (std::mem::replace(&mut self.order.reader, reader), std::mem::take(&mut self.order.seen));
        let writes = self.writes();
        let result = run(self);
        let seen = self.order.seen && self.order.reader == Reader::Keeps;
        (self.order.reader, self.order.seen) = outer;
        if (seen || words) && self.writes() > writes {
            self.mark_output()?;
        }
        Ok(result)
    }

    /// Looks at input that the caller may take.
    pub(crate) fn unread<T>(&mut self, run: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        let outer = (std::mem::replace(&mut self.order.reader, Reader::Forgets), self.order.seen);
        let result = run(self);
        (self.order.reader, self.order.seen) = outer;
        result
    }

    /// Expands words of a command. Some commands may have words in an unknown order.
    pub(crate) fn expanding_words<T>(&mut self, words: &[Word], run: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        let context = if self.may_have_unordered(words) { Context::Free } else { Context::Depends };
        let (result, seen) = self.expanding(context, run);
        self.order.words = seen;
        result
    }

    /// Expands what is only looked at for being empty.
    pub(crate) fn expanding_free<T>(&mut self, run: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        self.expanding(Context::Free, run).0
    }

    /// Expands the value of a variable, and says whether it has an unknown order.
    pub(crate) fn expanding_value<T>(&mut self, run: impl FnOnce(&mut Self) -> Run<T>) -> Run<(T, bool)> {
        let (result, seen) = self.expanding(Context::Value, run);
        result.map(|value| (value, seen))
    }

    /// Expands the words of a loop, and says whether they have an unknown order.
    pub(crate) fn expanding_rounds<T>(&mut self, run: impl FnOnce(&mut Self) -> Run<T>) -> Run<(T, bool)> {
        let (result, seen) = self.expanding(Context::Free, run);
        result.map(|value| (value, seen))
    }

    /// Expands what depends on the order: all that no other method is for.
    pub(crate) fn expanding_ordered<T>(&mut self, run: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        self.expanding(Context::Depends, run).0
    }

    fn expanding<T>(&mut self, context: Context, run: impl FnOnce(&mut Self) -> Run<T>) -> (Run<T>, bool) {
        let outer = (std::mem::replace(&mut self.order.context, context), std::mem::take(&mut self.order.seen));
        let result = run(self);
        let seen = self.order.seen;
        (self.order.context, self.order.seen) = outer;
        (result, seen)
    }

    /// Whether what a command does with its words does not depend on their order.
    fn may_have_unordered(&self, words: &[Word]) -> bool {
        let name = words.first().and_then(Word::literal).filter(|name| !self.state.functions.contains_key(*name));
        match name {
            Some(b"[" | b"test") => words.iter().enumerate().skip(1).all(|(at, word)| {
                let is_plain = !word.parts.iter().any(|part| matches!(part, Part::DoubleQuoted(_) | Part::Command(..)));
                let operator = words.get(at - 1).and_then(Word::literal);
                is_plain || matches!(operator, Some(b"-n" | b"-z"))
            }),
            Some(b"echo" | b"printf") | None => false,
            Some(name) => is_independent(name),
        }
    }

    /// Whether a variable has a value in an unknown order.
    pub(crate) fn check_variable(&mut self, name: &[u8]) -> Run<()> {
        if self.state.unordered.contains(name) { self.expand_unordered() } else { Ok(()) }
    }

    /// Notes whether the value that a variable just got has an unknown order.
    pub(crate) fn mark_variable(&mut self, name: &[u8], is_unordered: bool) {
        if is_unordered {
            Rc::make_mut(&mut self.state.unordered).insert(name.to_vec());
        } else if self.state.unordered.contains(name) {
            Rc::make_mut(&mut self.state.unordered).remove(name);
        }
    }

    /// Runs a loop over an unknown order. What its rounds write has such an order as well; `run` gets the variables that it sets, whose
    /// values depend on the round.
    pub(crate) fn unordered_loop(
        &mut self,
        body: &Node,
        run: impl FnOnce(&mut Self, &BTreeSet<Vec<u8>>) -> Run<u8>,
    ) -> Run<u8> {
        if !body::is_independent(self, body) {
            self.unknown_order()?;
        }
        let variables = body::variables(body);
        self.order.loops.push((self.descriptor(1).unwrap_or(Handle::Null), false));
        let result = run(self, &variables);
        let is_written = self.order.loops.pop().is_some_and(|(_, is_written)| is_written);
        self.forget_round(&variables);
        if is_written {
            self.mark_output()?;
        }
        result
    }

    /// What a round of a loop over an unknown order left is not known in the next one.
    pub(crate) fn forget_round(&mut self, variables: &BTreeSet<Vec<u8>>) {
        for name in variables {
            self.mark_variable(name, true);
        }
    }

    /// Refuses paths with the same last name where commands would write all of them to one directory.
    pub(crate) fn refuse_same_names<'p>(&self, paths: impl Iterator<Item = &'p [u8]>) -> Run<()> {
        let mut names = BTreeSet::new();
        for path in paths {
            let path = path.strip_suffix(b"/").unwrap_or(path);
            if !names.insert(path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)) {
                return self.unknown_order();
            }
        }
        Ok(())
    }
}

/// Whether two descriptors write to the same place.
fn is_same(left: &Handle, right: &Handle) -> bool {
    match (left, right) {
        (Handle::Output(left), Handle::Output(right)) => Rc::ptr_eq(left, right),
        (Handle::File(left), Handle::File(right)) => Rc::ptr_eq(left, right),
        _ => false,
    }
}
