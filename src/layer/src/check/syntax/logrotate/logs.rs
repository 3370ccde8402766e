//! Log files that logrotate.conf(5) names. logrotate skips a file that names one again.

use super::Problem;

/// A log file, or a pattern of some.
pub(super) struct RotatedLog {
    /// Counted from 1.
    line: usize,
    pattern: String,
    /// Whether later sections may name it again (`ignoreduplicates`).
    may_repeat: bool,
}

/// The log files so far, and whether those of the open section may repeat.
#[derive(Default)]
pub(super) struct Logs {
    pub(super) found: Vec<RotatedLog>,
    outside: bool,
    section: bool,
    /// How many log files are before the section.
    before: usize,
}

impl Logs {
    /// Adds the names of a line.
    pub(super) fn add(&mut self, line: usize, names: &str) {
        if self.before == self.found.len() {
            self.section = self.outside;
        }
        for pattern in names_of(names) {
            self.found.push(RotatedLog { line, pattern, may_repeat: false });
        }
    }

    /// Takes a directive that matters for log files.
    pub(super) fn set(&mut self, word: &str, is_inside: bool) {
        if word == "ignoreduplicates" {
            *(if is_inside { &mut self.section } else { &mut self.outside }) = true;
        }
    }

    /// Ends a section.
    pub(super) fn end(&mut self) {
        for log in self.found.iter_mut().skip(self.before) {
            log.may_repeat = self.section;
        }
        self.before = self.found.len();
    }
}

/// Names between blanks, which may be in quotes.
fn names_of(text: &str) -> Vec<String> {
    let (mut names, mut name, mut quote) = (Vec::new(), String::new(), None);
    for next in text.chars() {
        match quote {
            Some(open) if open == next => quote = None,
            None if next == '"' || next == '\'' => quote = Some(next),
            None if next.is_whitespace() => names.push(std::mem::take(&mut name)),
            _ => name.push(next),
        }
    }
    names.push(name);
    names.retain(|name| !name.is_empty());
    names
}

/// Names that a file has twice.
pub(super) fn repeated(logs: &[RotatedLog]) -> Option<Problem> {
    let earlier = |(at, log): &(usize, &RotatedLog)| {
        logs.iter().take(*at).find(|earlier| earlier.pattern == log.pattern && !earlier.may_repeat)
    };
    let (log, first) = logs.iter().enumerate().find_map(|found| Some((found.1, earlier(&found)?)))?;
    let (name, line) = (&log.pattern, first.line);
    Some(Problem::error(log.line, format!("is not read by logrotate: {name:?} is already in line {line}")))
}
