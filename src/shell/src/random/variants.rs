//! Other runs: a script must do the same where its random texts are others. What is decided or computed with them is done once more with
//! what they might have been.

use super::{PID, Random};
use crate::descriptors::Handle;
use crate::eval::{Run, Stop};
use crate::expand::{Unit, Units};
use crate::pattern::Pattern;
use crate::shell::Shell;

/// Process ids of other runs, of all lengths, with all digits at the start and at the end.
const IDS: [&[u8]; 10] = [b"2", b"31", b"407", b"1768", b"9995", b"56236", b"65530", b"849043", b"1234569", b"3999994"];

/// How many other runs there are.
pub(super) const RUNS: usize = IDS.len();

/// What a random text is in another run. Those of mktemp are a filling and a number: in each kind of letters, they differ from each other.
fn other(random: &[u8], run: usize) -> Vec<u8> {
    if random == PID {
        return IDS[run % RUNS].to_vec();
    }
    let letter = |byte: u8| {
        let digit = byte.is_ascii_digit().then(|| byte - b'0');
        match (run % 5, digit) {
            (0, digit) => digit.map_or(b'0', |digit| b'0' + digit),
            (1, digit) => digit.map_or(b'k', |digit| b'a' + digit),
            (2, digit) => digit.map_or(b'K', |digit| b'A' + digit),
            (3, digit) => digit.map_or(b'9', |digit| b'9' - digit),
            (_, digit) => digit.map_or(b'P', |digit| b'z' - digit),
        }
    };
    random.iter().map(|byte| letter(*byte)).collect()
}

impl Random {
    /// The random text at the start of another text, the longest of them.
    fn first(&self, text: &[u8]) -> Option<&Vec<u8>> {
        self.texts.iter().filter(|random| text.starts_with(random)).max_by_key(|random| random.len())
    }

    /// A text as it is in another run.
    pub(crate) fn in_run(&self, text: &[u8], run: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            match self.first(&text[at..]) {
                Some(random) => {
                    out.extend(other(random, run));
                    at += random.len();
                }
                None => {
                    out.push(*byte);
                    at += 1;
                }
            }
        }
        out
    }

    /// A path of the running other run as it is in the tree.
    pub(crate) fn in_tree(&self, path: Vec<u8>) -> Vec<u8> {
        let Some(run) = self.run else { return path };
        let others: Vec<(Vec<u8>, &Vec<u8>)> = self.texts.iter().map(|random| (other(random, run), random)).collect();
        let mut out = Vec::with_capacity(path.len());
        let mut at = 0;
        while let Some(byte) = path.get(at) {
            let found = others.iter().filter(|(other, _)| path[at..].starts_with(other));
            match found.max_by_key(|(other, _)| other.len()) {
                Some((other, random)) => {
                    out.extend_from_slice(random);
                    at += other.len();
                }
                None => {
                    out.push(*byte);
                    at += 1;
                }
            }
        }
        out
    }

    /// Units as they are in another run, with the marks of what they replace.
    fn units_in_run(&self, units: &[Unit], run: usize) -> Units {
        let mut out = Units::new();
        let mut at = 0;
        while let Some(unit) = units.get(at) {
            let bytes: Vec<u8> = units[at..].iter().map_while(|unit| unit.byte()).collect();
            match self.first(&bytes) {
                Some(random) => {
                    out.extend(other(random, run).into_iter().map(|byte| unit.with_byte(byte)));
                    at += random.len();
                }
                None => {
                    out.push(*unit);
                    at += 1;
                }
            }
        }
        out
    }

    fn is_in_units(&self, units: &[Unit]) -> bool {
        !self.texts.is_empty() && self.is_in(&units.iter().filter_map(|unit| unit.byte()).collect::<Vec<_>>())
    }
}

/// What one run of a program wrote, and its status.
type Written = (Vec<u8>, Option<u8>);

impl Shell<'_> {
    /// Refuses what is decided of texts if it depends on the random ones in them.
    pub(crate) fn require_same<T: PartialEq>(&self, texts: &[&[u8]], decide: impl Fn(&[Vec<u8>]) -> T) -> Run<()> {
        if !texts.iter().any(|text| self.random.is_in(text)) {
            return Ok(());
        }
        let found = decide(&texts.iter().map(|text| text.to_vec()).collect::<Vec<_>>());
        let differs = |run: usize| {
            let texts: Vec<Vec<u8>> = texts.iter().map(|text| self.random.in_run(text, run)).collect();
            decide(&texts) != found
        };
        if (0..RUNS).any(differs) { self.refuse_random("a decision that depends on") } else { Ok(()) }
    }

    /// The same of whether a pattern fits.
    pub(crate) fn require_same_match(&self, pattern: &Pattern, subject: &[u8]) -> Run<()> {
        if self.random.texts.is_empty() {
            return Ok(());
        }
        let literal = pattern.literals();
        if !self.random.is_in(subject) && !self.random.is_in(&literal) {
            return Ok(());
        }
        let found = pattern.matches(subject);
        let differs = |run: usize| {
            let other = pattern.mapped(&|text| self.random.in_run(text, run));
            other.matches(&self.random.in_run(subject, run)) != found
        };
        if (0..RUNS).any(differs) { self.refuse_random("a pattern that depends on") } else { Ok(()) }
    }

    /// Refuses a pattern with a random text that does not stand for itself.
    pub(crate) fn require_literal(&self, units: &[Unit], pattern: &Pattern) -> Run<()> {
        if !self.random.is_in_units(units) {
            return Ok(());
        }
        let bytes: Vec<u8> = units.iter().filter_map(|unit| unit.byte()).collect();
        let is_kept = self.random.places(&pattern.literals()).len() >= self.random.places(&bytes).len();
        if is_kept { Ok(()) } else { self.refuse_random("a pattern made of") }
    }

    /// Refuses an order of names that random texts change.
    pub(crate) fn require_order(&self, names: &[Vec<u8>]) -> Run<()> {
        let is_random = !self.random.texts.is_empty() && names.iter().any(|name| self.random.is_in(name));
        let is_sorted = |run: usize| {
            let names: Vec<Vec<u8>> = names.iter().map(|name| self.random.in_run(name, run)).collect();
            names.is_sorted()
        };
        if is_random && names.is_sorted() && !(0..RUNS).all(is_sorted) {
            return self.refuse_random("an order that depends on");
        }
        Ok(())
    }

    /// Refuses fields that separators among letters and digits make of a random text.
    pub(crate) fn require_whole(&self, text: &[u8], separators: &[u8]) -> Run<()> {
        match separators.iter().any(u8::is_ascii_alphanumeric) && self.random.is_in(text) {
            true => self.refuse_random("a part of"),
            false => Ok(()),
        }
    }

    /// Refuses a number that is a random text.
    pub(crate) fn require_fixed(&self, args: &[Vec<u8>]) -> Run<()> {
        let is_random = !self.random.texts.is_empty() && args.iter().any(|arg| self.random.is_in(arg));
        if is_random { self.refuse_random("a number made of") } else { Ok(()) }
    }

    /// Refuses the size of a file in which a process id is.
    pub(crate) fn require_size(&self, operand: &[u8]) -> Run<()> {
        if !self.random.texts.contains(PID) {
            return Ok(());
        }
        let content = self.files.read(&self.path(operand), self.budget.limits.file_bytes);
        content.map_or(Ok(()), |content| self.require_length(&content))
    }

    /// Refuses what is made of texts if it is not the same in other runs, but for the random texts in it.
    pub(crate) fn require_alike(
        &mut self,
        text: &[u8],
        patterns: &[&Pattern],
        replacement: &[Unit],
        found: &[u8],
        mut make: impl FnMut(&mut Self, &[u8], &[Pattern], &[Unit]) -> Run<Vec<u8>>,
    ) -> Run<()> {
        let is_random = !self.random.texts.is_empty()
            && (self.random.is_in(text)
                || self.random.is_in_units(replacement)
                || patterns.iter().any(|pattern| self.random.is_in(&pattern.literals())));
        for run in 0..if is_random { RUNS } else { 0 } {
            let patterns: Vec<Pattern> =
                patterns.iter().map(|pattern| pattern.mapped(&|text| self.random.in_run(text, run))).collect();
            let (text, replacement) = (self.random.in_run(text, run), self.random.units_in_run(replacement, run));
            if make(self, &text, &patterns, &replacement)? != self.random.in_run(found, run) {
                return self.refuse_random("a part of");
            }
        }
        Ok(())
    }

    /// Refuses what is made of several texts if it is not the same in other runs, but for the random texts in it.
    pub(crate) fn require_alike_texts(
        &mut self,
        texts: &[Vec<u8>],
        found: &[u8],
        mut make: impl FnMut(&mut Self, &[Vec<u8>]) -> Run<Vec<u8>>,
    ) -> Run<()> {
        if self.random.texts.is_empty() || !texts.iter().any(|text| self.random.is_in(text)) {
            return Ok(());
        }
        let state = self.state.clone();
        for run in 0..RUNS {
            let texts: Vec<Vec<u8>> = texts.iter().map(|text| self.random.in_run(text, run)).collect();
            self.set_descriptor(2, Some(Handle::Null));
            let made = make(self, &texts);
            self.state = state.clone();
            if made? != self.random.in_run(found, run) {
                return self.refuse_random("what the command makes of");
            }
        }
        Ok(())
    }

    /// Runs something in all other runs, with other arguments and standard input, and says whether it always writes and gives the same
    /// but for random texts.
    pub(super) fn is_alike(
        &mut self,
        args: &[Vec<u8>],
        input: Option<&[u8]>,
        (written, status): &Written,
        mut again: impl FnMut(&mut Self, &[Vec<u8>]) -> Run<Option<u8>>,
    ) -> Run<bool> {
        let (state, lost) = (self.state.clone(), (self.lost, self.lost_errors));
        for run in 0..RUNS {
            let args: Vec<Vec<u8>> = args.iter().map(|arg| self.random.in_run(arg, run)).collect();
            if let Some(input) = input {
                let input = self.random.in_run(input, run);
                self.set_descriptor(0, Some(Handle::bytes(input)));
            }
            self.set_descriptor(1, Some(Handle::Null));
            self.set_descriptor(2, Some(Handle::Null));
            let outer = std::mem::take(&mut self.random.flow);
            self.random.run = Some(run);
            let result = again(self, &args);
            self.random.run = None;
            let flow = std::mem::replace(&mut self.random.flow, outer);
            self.state = state.clone();
            (self.lost, self.lost_errors) = lost;
            let found = match result {
                Ok(found) => found,
                Err(Stop::Error) => Some(2),
                Err(Stop::Fatal(_)) => return Ok(false),
                Err(stop) => return Err(stop),
            };
            if found != *status || flow.written != self.random.in_run(written, run) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
