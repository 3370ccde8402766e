//! Settings of services (systemd.service(5)): commands that systemd does not take, and combinations for which it refuses a unit.

use super::super::Problem;
use super::words::{bad_escape, is_true};

/// Settings with commands.
const COMMANDS: [&str; 8] = [
    "ExecCondition",
    "ExecStart",
    "ExecStartPre",
    "ExecStartPost",
    "ExecReload",
    "ExecStop",
    "ExecStopPre",
    "ExecStopPost",
];

/// Characters after `%` (systemd.unit(5)). Other letters and digits are not specifiers.
const SPECIFIERS: &str = "abcdfghijlmnopqrstuvwyABCDEGHIJLMNPRSTUVWY";

/// Assignments of a service, with their lines.
#[derive(Default)]
pub(super) struct Service {
    assignments: Vec<(usize, String, String)>,
}

impl Service {
    /// Adds an assignment of `[Service]`, and returns what is wrong with it alone.
    pub(super) fn add(&mut self, line: usize, key: &str, value: &str) -> Option<Problem> {
        let problem = command_problem(line, key, value);
        // What is ignored does not replace an earlier value.
        if problem.as_ref().is_none_or(|problem| problem.is_warning) {
            self.assignments.push((line, key.to_owned(), value.to_owned()));
        }
        problem
    }

    /// What is wrong with the settings together, unless drop-ins change them.
    pub(super) fn fault(&self, has_success_action: bool) -> Option<Problem> {
        let (starts, stops) = (self.commands("ExecStart"), self.commands("ExecStop"));
        let bus_name = self.last("BusName").filter(|(_, name)| !name.is_empty());
        let default = match (bus_name, starts.is_empty()) {
            (Some(_), _) => "dbus",
            (None, false) => "simple",
            (None, true) => "oneshot",
        };
        let kind = self.last("Type").map_or(default, |(_, kind)| kind);
        let is = |key: &str, words: &[&str]| self.last(key).filter(|(_, value)| words.contains(value));
        let remains = self.last("RemainAfterExit").is_some_and(|(_, value)| is_true(value));
        let refused =
            |line: usize, reason: &str| Some(Problem::error(line, format!("systemd refuses the unit: {reason}")));
        let missing = match (starts.is_empty(), stops.is_empty(), kind) {
            (false, ..) => None,
            (_, true, _) if !has_success_action => Some("ExecStart=, ExecStop= or SuccessAction="),
            (.., kind) if kind != "oneshot" => Some("ExecStart=, which only a service with Type=oneshot can omit"),
            _ if !remains && !has_success_action => Some("ExecStart=, SuccessAction= or RemainAfterExit=yes"),
            _ => None,
        };
        if let Some(missing) = missing {
            let message = format!("systemd does not start a .service without {missing}");
            return Some(Problem::of_file(message).warning());
        }
        if let Some((line, _)) = is("Restart", &["always", "on-success"]).filter(|_| kind == "oneshot") {
            return refused(line, "Type=oneshot does not allow Restart=always and Restart=on-success");
        }
        if let Some((line, _)) = is("ExitType", &["cgroup"]).filter(|_| kind == "oneshot") {
            return refused(line, "Type=oneshot does not allow ExitType=cgroup");
        }
        if kind == "dbus" && bus_name.is_none() {
            let line = self.last("Type").map_or(0, |(line, _)| line);
            return refused(line, "Type=dbus needs BusName=");
        }
        if let Some((line, _)) = self.last("PrivatePIDs").filter(|(_, value)| kind == "forking" && is_true(value)) {
            return refused(line, "Type=forking does not allow PrivatePIDs=yes");
        }
        match starts.get(1) {
            Some(line) if kind != "oneshot" => {
                refused(*line, "only a service with Type=oneshot can have several ExecStart=")
            }
            _ => self.without_effect(kind),
        }
    }

    /// A setting that systemd does not apply because of others.
    fn without_effect(&self, kind: &str) -> Option<Problem> {
        let limit = self.last("RuntimeMaxSec").filter(|(_, limit)| kind == "oneshot" && *limit != "infinity");
        let message = "RuntimeMaxSec= has no effect with Type=oneshot: use TimeoutStartSec=";
        limit.map(|(line, _)| Problem::error(line, message.to_owned()).warning())
    }

    fn last(&self, key: &str) -> Option<(usize, &str)> {
        let found = self.assignments.iter().rev().find(|(_, found, _)| found == key);
        found.map(|(line, _, value)| (*line, value.as_str()))
    }

    /// The line of each command of a setting; an empty value removes the earlier ones.
    fn commands(&self, key: &str) -> Vec<usize> {
        let mut lines = Vec::new();
        for (line, _, value) in self.assignments.iter().filter(|(_, found, _)| found == key) {
            match value.is_empty() {
                true => lines.clear(),
                false => lines.extend(vec![*line; commands(value).unwrap_or_default()]),
            }
        }
        lines
    }
}

/// What is wrong with a setting of commands.
pub(super) fn command_problem(line: usize, key: &str, value: &str) -> Option<Problem> {
    if !COMMANDS.contains(&key) || value.is_empty() {
        return None;
    }
    let reason = commands(value).err().map(|reason| format!("systemd does not run {key}={value}: {reason}"));
    let kept = bad_command_escape(value).map(|escape| {
        format!(
            "systemd does not know the escape sequence {escape}, and keeps the backslash; write \\\\ for a backslash"
        )
    });
    reason.map(|reason| Problem::error(line, reason)).or(kept.map(|kept| Problem::error(line, kept).warning()))
}

/// A command of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitCommand {
    /// The characters before the program that change how it is run.
    pub prefixes: String,
    pub program: String,
}

/// The commands of a value, such as that of `ExecStart=`; none if systemd does not take it.
pub fn unit_commands(value: &str) -> Vec<UnitCommand> {
    let words = words(value).filter(|_| commands(value).is_ok()).unwrap_or_default();
    let commands = words.split(|word| word == ";").filter_map(|command| command.first());
    let commands = commands.map(|first| program(first));
    commands
        .map(|(program, prefixes)| UnitCommand { prefixes: prefixes.to_owned(), program: program.to_owned() })
        .collect()
}

/// The words of a value without their quotes; none if a quote is not closed.
pub fn unit_words(value: &str) -> Vec<String> {
    words(value).unwrap_or_default()
}

/// The number of commands in a value.
fn commands(value: &str) -> Result<usize, String> {
    let words = words(value).ok_or("expected a closing quote, found the end of the line")?;
    let commands = words.split(|word| word == ";").filter(|command| !command.is_empty());
    let mut count = 0;
    for command in commands {
        count += 1;
        let text = command.iter().map(String::as_str);
        if let Some(unknown) = text.into_iter().find_map(unknown_specifier) {
            return Err(format!("%{unknown} is not a specifier; write %% for a percent sign"));
        }
        let (path, options) = program(&command[0]);
        let has_argv0 = options.contains('@');
        match path {
            "" => return Err("the command has no path".to_owned()),
            _ if has_argv0 && command.len() < 2 => {
                return Err("expected the name of the program after the path".to_owned());
            }
            _ if path.starts_with('%') => {}
            _ if path.ends_with('/') || [".", ".."].contains(&path) => return Err(format!("{path:?} is a directory")),
            _ if path.contains('/') && !path.starts_with('/') => {
                return Err(format!("expected an absolute path or the name of a program, found {path:?}"));
            }
            _ => {}
        }
    }
    Ok(count)
}

/// A program, and the characters before it that change how it is run.
fn program(word: &str) -> (&str, &str) {
    let (mut options, mut has_privileges) = (0, false);
    for (at, next) in word.char_indices() {
        let is_repeated = word[..at].contains(next);
        let is_option = match next {
            '-' | '@' | ':' => !is_repeated,
            '+' => !std::mem::replace(&mut has_privileges, true),
            '!' => match word[..at].matches('!').count() {
                0 => !std::mem::replace(&mut has_privileges, true),
                count => count == 1,
            },
            _ => false,
        };
        if !is_option {
            break;
        }
        options = at + 1;
    }
    (&word[options..], &word[..options])
}

/// An escape sequence that systemd does not know. The word `\;` is one of a command.
fn bad_command_escape(value: &str) -> Option<String> {
    value.split_whitespace().filter(|word| *word != "\\;").find_map(bad_escape)
}

/// A letter or digit after `%` that is not a specifier.
pub(super) fn unknown_specifier(text: &str) -> Option<char> {
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        if next == '%' {
            let after = chars.next().unwrap_or('%');
            if after.is_ascii_alphanumeric() && !SPECIFIERS.contains(after) {
                return Some(after);
            }
        }
    }
    None
}

/// Words, which may be quoted; `None` if a quote is not closed. `;` is a word only without quotes and backslash.
pub(super) fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            '\\' => {
                let word = word.get_or_insert_default();
                word.push(next);
                word.extend(chars.next());
            }
            // Within quotes, it does not separate commands.
            ';' if quote.is_some() => word.get_or_insert_default().push_str("\\;"),
            _ if quote == Some(next) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            _ if quote.is_none() && next.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(next),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
