//! Settings of logrotate(8): a text enters, the lines at which logrotate drops the file, a section or a line leave.

mod directives;
mod logs;

use super::accounts::{Named, is_id};
use super::{File, Problem, access};
use directives::Arguments;
use logs::Logs;
pub use logs::RotatedLog;

/// What logrotate reads.
enum State {
    Global,
    /// Names of log files, up to a brace; the line of the first one.
    Files(usize),
    Section,
    /// A script, up to `endscript`: its line, and whether it is in a section.
    Script(usize, bool),
}

struct Reader {
    state: State,
    found: Vec<Problem>,
    accounts: Vec<Named>,
    logs: Logs,
}

/// Ends of names that logrotate does not read from a directory (`tabooext` of logrotate.conf(5)).
const TABOO: [&str; 20] = [
    ",v",
    ".bak",
    ".cfsaved",
    ".disabled",
    ".dpkg-bak",
    ".dpkg-del",
    ".dpkg-dist",
    ".dpkg-new",
    ".dpkg-old",
    ".dpkg-tmp",
    ".new",
    ".old",
    ".orig",
    ".rpmnew",
    ".rpmorig",
    ".rpmsave",
    ".swp",
    ".ucf-dist",
    ".ucf-new",
    ".ucf-old",
];

/// Whether logrotate skips a file with the name.
pub fn is_skipped(name: &str) -> bool {
    name.ends_with('~') || name.contains(".rhn-cfg-tmp-") || TABOO.iter().any(|end| name.ends_with(end))
}

/// Checks who may write the file, braces, scripts and values.
pub(super) fn check(file: &File) -> Vec<Problem> {
    let found = access::of_program(file, "logrotate").into_iter().collect();
    let mut reader = Reader::new(found);
    reader.read(file.text);
    match reader.state {
        State::Script(line, _) => {
            reader.fault(line, "expected `endscript` after the script, found the end of the file")
        }
        State::Files(line) => {
            reader.fault(line, "expected `{` after the names of log files, found the end of the file")
        }
        // The end of the file closes a section.
        State::Global | State::Section => {}
    }
    let repeated = logs::repeated(&reader.logs.found);
    reader.found.extend(repeated);
    reader.found
}

/// The log files that a file names.
pub fn rotated_logs(text: &str) -> Vec<RotatedLog> {
    let mut reader = Reader::new(Vec::new());
    reader.read(text);
    reader.logs.end();
    reader.logs.found
}

/// The users and groups that directives name.
pub(super) fn accounts(text: &str) -> Vec<Named> {
    let mut reader = Reader::new(Vec::new());
    reader.read(text);
    reader.accounts
}

/// Whether a name is one of the ids that base-passwd gives to its accounts.
fn is_static_id(name: &str) -> bool {
    name.len() <= 2 && is_id(name)
}

impl Reader {
    fn new(found: Vec<Problem>) -> Self {
        Self { state: State::Global, found, accounts: Vec::new(), logs: Logs::default() }
    }

    fn read(&mut self, text: &str) {
        for (number, line) in (1..).zip(text.split('\n')) {
            self.line(number, line);
        }
    }

    fn fault(&mut self, line: usize, reason: &str) {
        self.found.push(Problem::error(line, format!("is not read by logrotate: {reason}")));
    }

    fn line(&mut self, number: usize, line: &str) {
        let mut rest = line.trim_start_matches([' ', '\t']);
        if let State::Script(_, is_inside) = self.state {
            if rest.split_whitespace().next() == Some("endscript") {
                self.state = if is_inside { State::Section } else { State::Global };
            }
            return;
        }
        while !rest.is_empty() && !rest.starts_with('#') {
            match self.part(number, rest) {
                Some(next) => rest = next.trim_start_matches([' ', '\t']),
                None => break,
            }
        }
    }

    /// Reads one directive, brace or list of files. Returns the text after it, which is on the same line.
    fn part<'a>(&mut self, number: usize, text: &'a str) -> Option<&'a str> {
        let is_inside = matches!(self.state, State::Section);
        if let State::Files(_) = self.state {
            let (names, after) = text.split_once('{').map_or((text, None), |(names, after)| (names, Some(after)));
            self.logs.add(number, names);
            let after = after?;
            self.state = State::Section;
            return Some(after);
        }
        match text.chars().next()? {
            '}' => {
                let after = text[1..].trim();
                self.state = State::Global;
                self.logs.end();
                match is_inside {
                    false => self.fault(number, "unexpected `}`"),
                    true if after.is_empty() => {}
                    true => self.fault(number, &format!("expected the end of the line after `}}`, found {after:?}")),
                }
                None
            }
            '/' | '"' | '\'' | '~' if is_inside => {
                self.fault(number, "expected a directive or `}`, found a path");
                None
            }
            '/' | '"' | '\'' | '~' => {
                self.state = State::Files(number);
                Some(text)
            }
            first if first.is_ascii_alphabetic() => self.directive(number, text, is_inside),
            _ => {
                let what = text.trim_end();
                let reason = match what {
                    "" => "found a carriage return; use newlines only".to_owned(),
                    _ => format!("expected a directive or a path, found {what:?}"),
                };
                self.fault(number, &reason);
                None
            }
        }
    }

    fn directive<'a>(&mut self, number: usize, text: &'a str, is_inside: bool) -> Option<&'a str> {
        let end = text.find(|next: char| next.is_whitespace() || next == '=').unwrap_or(text.len());
        let (word, after) = text.split_at(end);
        let Some(arguments) = directives::arguments(word) else {
            let near = directives::near(word);
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            self.fault(number, &format!("unknown directive {word:?}{hint}"));
            return None;
        };
        let value = match (arguments, after.trim()) {
            // Its arguments begin right after the word.
            (Arguments::Creation, value) => value,
            (_, value) => value.strip_prefix('=').map_or(value, str::trim_start),
        };
        self.logs.set(number, word, value, is_inside);
        match arguments {
            // Others may follow on the same line.
            Arguments::None if after.trim() == "=" => {}
            Arguments::None => return Some(after).filter(|after| !after.trim().is_empty()),
            Arguments::Script => self.state = State::Script(number, is_inside),
            Arguments::Global if is_inside => {
                self.fault(number, &format!("{word} is not allowed for single log files"))
            }
            Arguments::Global if value.is_empty() => self.fault(number, &format!("{word} has no argument")),
            Arguments::Global => {}
            arguments => {
                let named = arguments.accounts(value).into_iter().flatten().filter(|(_, name)| !is_static_id(name));
                self.accounts.extend(named.map(|(what, name)| (number, what, name.to_owned())));
                if let Some(expected) = arguments.fault(value) {
                    self.fault(number, &format!("{word}: expected {expected}, found {value:?}"));
                }
            }
        }
        None
    }
}
