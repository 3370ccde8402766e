//! Accounts, directories and units that a maintainer script creates, according to its text: the hint about an unsupported script lists
//! them, because the first boot fails if a layer omits them.
//!
//! The text is split into simple commands of all branches, and variables with a constant value are replaced. Nothing is evaluated, so
//! scripts with unsupported syntax can be analyzed too.

use std::collections::BTreeMap;

use super::commands::created_account;
use crate::merge::accounts::AccountKind;
use vmbake_common::escape;

/// Commands that are named at most.
const NAMED: usize = 12;
/// Characters that are shown of a command.
const SHOWN: usize = 120;

/// What a script creates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Makes {
    /// Names of users.
    pub users: Vec<String>,
    /// Names of groups.
    pub groups: Vec<String>,
    /// Directories, enabled units and commands, in the order of the script.
    pub rest: Vec<String>,
}

impl Makes {
    /// Reads a script.
    pub(super) fn of(source: &[u8]) -> Self {
        let mut makes = Self::default();
        let mut constants = BTreeMap::new();
        for words in commands(&String::from_utf8_lossy(source)) {
            makes.read(words, &mut constants);
        }
        makes
    }

    /// Everything in words, separated by commas; empty if there is nothing.
    pub fn listed(&self) -> String {
        let users = self.users.iter().map(|name| format!("user {name}"));
        let groups = self.groups.iter().map(|name| format!("group {name}"));
        let rest = self.rest.iter().take(NAMED).cloned();
        let more = self.rest.len().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!("{more} more"));
        users.chain(groups).chain(rest).chain(more).collect::<Vec<_>>().join(", ")
    }

    fn read(&mut self, words: Vec<String>, constants: &mut BTreeMap<String, String>) {
        let words: Vec<String> = words.iter().map(|word| expand(word, constants)).collect();
        let start = words.iter().take_while(|word| is_leading(word)).count();
        let Some((command, args)) = words.get(start..).and_then(<[String]>::split_first) else {
            constants.extend(words.iter().filter_map(|word| assignment(word)));
            return;
        };
        let name = command.rsplit('/').next().unwrap_or_default();
        if let Some(created) = created_account(name, args) {
            match created {
                (AccountKind::User, account) if is_plain(&account) => add(&mut self.users, account),
                (AccountKind::Group, account) if is_plain(&account) => add(&mut self.groups, account),
                _ => add(&mut self.rest, shown(name, args)),
            }
            return;
        }
        match (name, args.first().map(String::as_str)) {
            ("mkdir", _) => self.directories(args),
            ("install", _) if args.iter().any(|word| is_directory_option(word)) => self.directories(args),
            ("systemctl" | "deb-systemd-helper", _) if args.iter().any(|word| word == "enable") => {
                let units = args.iter().filter(|word| !word.starts_with('-') && *word != "enable");
                units.for_each(|unit| add(&mut self.rest, format!("enabled unit {}", cut(unit))));
            }
            ("update-rc.d", Some(service)) if args.iter().any(|word| word == "defaults" || word == "enable") => {
                add(&mut self.rest, format!("enabled service {}", cut(service)));
            }
            ("chown" | "chgrp" | "setcap" | "usermod" | "ln" | "gpasswd", _) => add(&mut self.rest, shown(name, args)),
            ("update-alternatives", Some("--install")) | ("dpkg-divert" | "dpkg-statoverride", Some(_))
                if args.iter().any(|word| word == "--install" || word == "--add") =>
            {
                add(&mut self.rest, shown(name, args));
            }
            _ => {}
        }
    }

    /// The operands of mkdir(1) or install(1).
    fn directories(&mut self, args: &[String]) {
        let mut args = args.iter();
        while let Some(word) = args.next() {
            if !word.starts_with('-') {
                add(&mut self.rest, format!("directory {}", cut(word)));
            } else if takes_value(word) {
                args.next();
            }
        }
    }
}

fn add(list: &mut Vec<String>, entry: String) {
    if !list.contains(&entry) {
        list.push(entry);
    }
}

/// `-d`, also among other letters, or `--directory`.
fn is_directory_option(word: &str) -> bool {
    word == "--directory" || (word.starts_with('-') && !word.starts_with("--") && word.contains('d'))
}

/// Whether an option of mkdir(1) or install(1) has its value in the next word.
fn takes_value(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => ["mode", "owner", "group"].contains(&long),
        None => word.ends_with(['m', 'o', 'g']),
    }
}

/// A name that needs no quotes anywhere.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || "_.-".contains(char))
}

fn shown(name: &str, args: &[String]) -> String {
    let words: Vec<&str> = std::iter::once(name).chain(args.iter().map(String::as_str)).collect();
    format!("`{}`", cut(&words.join(" ")))
}

fn cut(text: &str) -> String {
    let line = escape::line(text);
    if line.chars().count() <= SHOWN { line } else { line.chars().take(SHOWN).chain("...".chars()).collect() }
}

/// Words before a command: keywords, and its assignments.
fn is_leading(word: &str) -> bool {
    let keywords = ["if", "then", "else", "elif", "while", "until", "do", "!", "{", "exec", "env", "command"];
    keywords.contains(&word) || assignment(word).is_some()
}

/// `NAME=VALUE`
fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Puts constants in the place of `$NAME` and `${NAME}`. What is not a constant stays as the script has it.
fn expand(word: &str, constants: &BTreeMap<String, String>) -> String {
    let mut parts = word.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = match part.strip_prefix('{').and_then(|part| part.split_once('}')) {
            Some(found) => found,
            None => {
                let end = part.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(part.len());
                part.split_at(end)
            }
        };
        match constants.get(name).filter(|value| !value.contains('$')) {
            Some(value) => text.extend([value.as_str(), rest]),
            None => text.extend(["$", part]),
        }
    }
    text
}

/// The simple commands of a script as words without quotes. Text of here-documents is left out.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut reader = Reader::default();
    let text = text.replace("\\\n", " ");
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let quoted = reader.quote.is_some();
        if !quoted && line.trim_start().starts_with('#') {
            continue;
        }
        reader.line(line);
        for end in std::mem::take(&mut reader.documents) {
            let _ = lines.by_ref().find(|line| line.trim_start_matches('\t') == end);
        }
    }
    reader.end();
    reader.commands
}

#[derive(Default)]
struct Reader {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    quote: Option<char>,
    /// Whether the next word is the target of a redirection, or the end of a here-document.
    redirected: Option<bool>,
    documents: Vec<String>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let mut chars = line.chars().peekable();
        while let Some(char) = chars.next() {
            match (self.quote, char) {
                (Some(quote), _) if char == quote => self.quote = None,
                (Some('"') | None, '\\') => self.push(chars.next().unwrap_or_default()),
                (Some(_), _) => self.push(char),
                (None, '\'' | '"') => {
                    self.quote = Some(char);
                    self.word.get_or_insert_default();
                }
                (None, '#') if self.word.is_none() => break,
                (None, ' ' | '\t') => self.word(),
                (None, ';' | '&' | '|' | '(' | ')' | '`') => self.end(),
                (None, '<' | '>') => {
                    if self.word.as_ref().is_some_and(|word| word.chars().all(|char| char.is_ascii_digit())) {
                        self.word = None;
                    }
                    self.word();
                    let second = chars.next_if(|next| matches!(next, '<' | '>' | '&' | '|'));
                    let is_document = char == '<' && second == Some('<') && chars.next_if_eq(&'<').is_none();
                    if is_document {
                        let _ = chars.next_if_eq(&'-');
                    }
                    self.redirected = Some(is_document);
                }
                (None, _) => self.push(char),
            }
        }
        match self.quote {
            Some(_) => self.push('\n'),
            None => self.end(),
        }
    }

    fn push(&mut self, char: char) {
        self.word.get_or_insert_default().push(char);
    }

    fn word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.redirected.take() {
            None => self.words.push(word),
            Some(true) => self.documents.push(word),
            Some(false) => {}
        }
    }

    fn end(&mut self) {
        self.word();
        self.redirected = None;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Makes;

    #[test]
    fn what_a_script_creates_is_read_from_its_text() {
        for (script, expected) in [
            ("useradd --system --user-group --home-dir /opt/vault \\\n\t--shell /bin/false \\\n\tvault", "user vault"),
            ("USER=\"vault\"\nif ! id $USER; then useradd -r ${USER}; fi", "user vault"),
            ("useradd -r -d /x -g cw cwagent -s $(test -x /a && echo /a)", "user cwagent"),
            ("useradd --unknown-option 'agent'", "user agent"),
            ("useradd -r \"$NAME\"", "`useradd -r $NAME`"),
            ("addgroup --system g || true; groupadd -r h >/dev/null 2>&1", "group g, group h"),
            ("adduser --quiet --system --home /opt/a --group agent", "user agent"),
            ("adduser --group g", "group g"),
            ("adduser www-data docker", "`adduser www-data docker`"),
            ("D=/var/lib/a\nmkdir -p -m 0750 $D \"$D/b\"", "directory /var/lib/a, directory /var/lib/a/b"),
            ("test -d /a || { install -d -o u -g g -m 700 /a; }", "directory /a"),
            ("install -m 0644 a b", ""),
            ("systemctl --quiet enable a.service b || true", "enabled unit a.service, enabled unit b"),
            (
                "if deb-systemd-helper --quiet was-enabled a; then deb-systemd-helper enable 'a' >/dev/null; fi",
                "enabled unit a",
            ),
            ("update-rc.d a defaults >/dev/null", "enabled service a"),
            ("chown -R u:g /a; ln -sf /a /b", "`chown -R u:g /a`, `ln -sf /a /b`"),
            ("cat <<EOF\nuseradd no\nEOF\n# useradd no\necho 'useradd no'\n\"mkdir no\"", ""),
            ("(unparsable ]] mkdir /x\nmkdir /y", "directory /y"),
        ] {
            assert_eq!(Makes::of(script.as_bytes()).listed(), expected, "{script}");
        }
    }

    #[test]
    fn a_long_list_is_cut() {
        let script: String = (0..20).map(|at| format!("mkdir /{at}\n")).collect();
        let listed = Makes::of(script.as_bytes()).listed();
        assert!(listed.ends_with("directory /11, 8 more"), "{listed}");
    }
}
