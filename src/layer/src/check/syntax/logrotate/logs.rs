//! Log files that logrotate.conf(5) names. logrotate skips a file that names one again.

use super::Problem;

/// A log file, or a pattern of some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotatedLog {
    /// Counted from 1.
    pub line: usize,
    pub pattern: String,
    /// Whether later sections may name it again (`ignoreduplicates`).
    pub may_repeat: bool,
    /// The line of `olddir` and its path, if logrotate does not create it.
    pub old_directory: Option<(usize, String)>,
}

/// What directives say of log files.
#[derive(Clone, Default)]
struct Options {
    may_repeat: bool,
    /// The line of `olddir`, and its value.
    old_directory: Option<(usize, String)>,
    creates_old: bool,
}

/// The log files so far, and the options outside of sections and of the open one.
#[derive(Default)]
pub(super) struct Logs {
    pub(super) found: Vec<RotatedLog>,
    outside: Options,
    section: Options,
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
            self.found.push(RotatedLog { line, pattern, may_repeat: false, old_directory: None });
        }
    }

    /// Takes a directive that matters for log files.
    pub(super) fn set(&mut self, line: usize, word: &str, value: &str, is_inside: bool) {
        let options = if is_inside { &mut self.section } else { &mut self.outside };
        match word {
            "ignoreduplicates" => options.may_repeat = true,
            "olddir" => options.old_directory = Some((line, value.to_owned())),
            "noolddir" => options.old_directory = None,
            "createolddir" => options.creates_old = true,
            "nocreateolddir" => options.creates_old = false,
            _ => {}
        }
    }

    /// Ends a section.
    pub(super) fn end(&mut self) {
        for log in self.found.iter_mut().skip(self.before) {
            log.may_repeat = self.section.may_repeat;
            let old = self.section.old_directory.as_ref().filter(|_| !self.section.creates_old);
            log.old_directory = old.map(|(line, path)| (*line, below(&log.pattern, path)));
        }
        self.before = self.found.len();
    }
}

/// The path of `olddir`, which may be relative to the directory of the log.
fn below(pattern: &str, path: &str) -> String {
    let path = path.trim_matches(['"', '\'']);
    match (path.starts_with('/'), pattern.rsplit_once('/')) {
        (false, Some((dir, _))) => format!("{dir}/{path}"),
        _ => path.to_owned(),
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
