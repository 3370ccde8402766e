//! The results of a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use vmbake_shell::{ErrorKind, ShellError};

use super::Verdict;
use super::left::{Left, Parts};

/// A program that differs, as small as it was made.
#[derive(Debug, Clone)]
pub struct Difference {
    pub name: String,
    pub text: String,
    /// The productions that it uses.
    pub labels: BTreeSet<&'static str>,
    pub is_reduced: bool,
    pub expected: Left,
    /// What the interpreter left, or what went wrong in it.
    pub found: Result<Left, String>,
    pub parts: Parts,
}

#[derive(Debug, Default)]
pub struct Report {
    pub programs: usize,
    pub equal: usize,
    pub refused: usize,
    pub undecided: usize,
    /// By what is refused: how often, and an example.
    pub refusals: BTreeMap<String, (usize, String)>,
    pub differences: Vec<Difference>,
}

impl Report {
    /// Counts a program; one that differs is returned.
    pub fn count(&mut self, name: String, text: &str, verdict: Verdict) -> Option<Difference> {
        self.programs += 1;
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::Undecided => self.undecided += 1,
            Verdict::Refused(error) => {
                self.refused += 1;
                let line = usize::try_from(error.line).unwrap_or(0).saturating_sub(2);
                let example = text.lines().nth(line).unwrap_or_default();
                let entry =
                    self.refusals.entry(reason(&error)).or_insert_with(|| (0, format!("{example}    # {name}")));
                entry.0 += 1;
            }
            Verdict::Different { expected, found, parts } => {
                let (text, labels) = (text.to_owned(), BTreeSet::new());
                return Some(Difference { name, text, labels, is_reduced: false, expected, found, parts });
            }
        }
        None
    }

    #[must_use]
    pub fn add(mut self, other: Self) -> Self {
        self.programs += other.programs;
        self.equal += other.equal;
        self.refused += other.refused;
        self.undecided += other.undecided;
        for (reason, (count, example)) in other.refusals {
            self.refusals.entry(reason).or_insert((0, example)).0 += count;
        }
        self.differences.extend(other.differences);
        self
    }

    /// Refused programs in a hundred.
    pub fn refused_percent(&self) -> f64 {
        let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        100.0 * count(self.refused) / count(self.programs.max(1))
    }

    /// One difference of each cause, as far as productions and differing parts are one: the most frequent first.
    pub fn causes(&self) -> Vec<(usize, &Difference)> {
        let mut groups: BTreeMap<(&BTreeSet<&'static str>, Parts, &str), (usize, &Difference)> = BTreeMap::new();
        for difference in self.differences.iter().filter(|difference| difference.is_reduced) {
            let name = if difference.labels.is_empty() { &difference.text[..] } else { "" };
            let group = groups.entry((&difference.labels, difference.parts, name)).or_insert((0, difference));
            group.0 += 1;
            if difference.text.len() < group.1.text.len() {
                group.1 = difference;
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|(count, difference)| (usize::MAX - count, difference.text.len()));
        groups
    }

    pub fn differences_text(&self) -> String {
        let mut text = String::new();
        for (count, difference) in self.causes() {
            let labels: Vec<_> = difference.labels.iter().copied().collect();
            let _ = writeln!(text, "=== {count} × {} ({})", labels.join(" "), difference.name);
            let _ = writeln!(text, "{}", difference.text.trim_end());
            match &difference.found {
                Ok(found) => {
                    let _ = writeln!(text, "  expected: {}", difference.expected.describe(found));
                    let _ = writeln!(text, "  found:    {}", found.describe(&difference.expected));
                }
                Err(message) => {
                    let _ = writeln!(text, "  expected: status {}\n  found:    {message}", difference.expected.status);
                }
            }
        }
        for difference in self.differences.iter().filter(|difference| !difference.is_reduced) {
            let _ = writeln!(text, "also different, not reduced: {}", difference.name);
        }
        text
    }

    pub fn refusals_text(&self) -> String {
        let mut refusals: Vec<_> = self.refusals.iter().collect();
        refusals.sort_by_key(|(_, (count, _))| usize::MAX - count);
        refusals
            .iter()
            .map(|(reason, (count, example))| format!("{count:6} {reason}\n           {example}\n"))
            .collect()
    }

    pub fn summary(&self) -> String {
        let (programs, equal, different) = (self.programs, self.equal, self.differences.len());
        let (refused, percent, undecided) = (self.refused, self.refused_percent(), self.undecided);
        format!(
            "{programs} programs: {equal} equal, {refused} refused ({percent:.2} %), {different} different, {undecided} undecided"
        )
    }
}

/// What is refused, without the operands.
fn reason(error: &ShellError) -> String {
    let command = error.command.first().map_or("", String::as_str);
    let what = match &error.kind {
        ErrorKind::Syntax { reason } => format!("syntax: {reason}"),
        ErrorKind::Unsupported { what } => format!("unsupported: {what}"),
        other => format!("{other}"),
    };
    let what = without_quotations(&what);
    let what: String = what.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).take(60).collect();
    format!("{command}: {what}")
}

fn without_quotations(text: &str) -> String {
    let mut outside = String::new();
    for part in text.split('“') {
        outside.push_str(part.split_once('”').map_or(part, |(_, rest)| rest));
    }
    outside
}
