//! Log files that logrotate.conf(5) names. logrotate skips a file that names one again, and one with an `olddir` that does not exist.

use super::{Problem, Reader};

/// A log file, or a pattern of some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotatedLog {
    /// Counted from 1.
    pub line: usize,
    pub pattern: String,
    /// Whether later files may name it again (`ignoreduplicates`).
    pub may_repeat: bool,
    /// The directory that must be there for rotated files.
    pub olddir: Option<String>,
}

/// Settings of a section, which begin as those outside of sections.
#[derive(Clone, Default)]
struct Settings {
    may_repeat: bool,
    olddir: Option<String>,
    creates_olddir: bool,
}

/// The log files so far, and the settings that apply to those of the open section.
#[derive(Default)]
pub(super) struct Logs {
    pub(super) found: Vec<RotatedLog>,
    outside: Settings,
    section: Settings,
    /// How many log files are before the section.
    before: usize,
}

impl Logs {
    /// Adds the names of a line.
    pub(super) fn add(&mut self, line: usize, names: &str) {
        if self.before == self.found.len() {
            self.section = self.outside.clone();
        }
        for pattern in names_of(names) {
            self.found.push(RotatedLog { line, pattern, may_repeat: false, olddir: None });
        }
    }

    /// Takes a directive that matters for log files.
    pub(super) fn set(&mut self, word: &str, value: &str, is_inside: bool) {
        let settings = if is_inside { &mut self.section } else { &mut self.outside };
        match word {
            "ignoreduplicates" => settings.may_repeat = true,
            "createolddir" => settings.creates_olddir = true,
            "nocreateolddir" => settings.creates_olddir = false,
            "noolddir" => settings.olddir = None,
            "olddir" => settings.olddir = Some(value.trim_matches(['"', '\'']).to_owned()),
            _ => {}
        }
    }

    /// Ends a section.
    pub(super) fn end(&mut self) {
        let Settings { may_repeat, olddir, creates_olddir } = &self.section;
        for log in self.found.iter_mut().skip(self.before) {
            log.may_repeat = *may_repeat;
            log.olddir = olddir.clone().filter(|_| !creates_olddir);
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

/// The log files of a file, in their order.
pub fn rotated_logs(text: &str) -> Vec<RotatedLog> {
    let mut reader = Reader::new(Vec::new());
    reader.read(text);
    reader.logs.end();
    reader.logs.found
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
