//! The programs of a line of a unit or of cron: its text in, the absolute paths of what it runs out.

/// Prefixes of a command in a unit (systemd.service(5)), which are not part of the path.
const PREFIXES: [char; 6] = ['@', '-', ':', '+', '!', '|'];

/// Shells whose `-c` has commands in a text.
const SHELLS: [&str; 4] = ["bash", "dash", "ksh", "sh"];

/// Programs that run their operands: the name, how many operands come before the command, and options that have a value in the next word.
const WRAPPERS: [(&str, usize, &[&str]); 12] = [
    ("chronic", 0, &[]),
    ("chrt", 1, &[]),
    ("env", 0, &["-u"]),
    ("exec", 0, &["-a"]),
    ("flock", 1, &["-w", "-E"]),
    ("ionice", 0, &["-c", "-n"]),
    ("nice", 0, &["-n"]),
    ("nohup", 0, &[]),
    ("setsid", 0, &[]),
    ("sudo", 0, &["-u", "-g"]),
    ("systemd-cat", 0, &["-t", "-p"]),
    ("timeout", 1, &["-s", "-k"]),
];

/// The programs of the value of `ExecStart=` and its like; several commands are separated by a semicolon.
pub(super) fn of_unit(value: &str) -> Vec<String> {
    let words = words(value.trim_start_matches(PREFIXES), false);
    let commands = words.split(|word| word == ";");
    commands.flat_map(of_words).collect()
}

/// Those that systemd itself starts, without those that a wrapper or a shell starts in turn.
pub(super) fn started_by_unit(value: &str) -> Vec<String> {
    let words = words(value.trim_start_matches(PREFIXES), false);
    words.split(|word| word == ";").filter_map(|command| command.first().cloned()).collect()
}

/// The programs of a line of a crontab (crontab(5)): fields or one such as `@daily`, in `/etc` a user, and a command of the shell. `fields` is the
/// number of words before the command.
pub(super) fn of_cron(line: &str, fields: usize) -> Vec<String> {
    let mut rest = line.trim_start();
    let before = match rest.as_bytes().first() {
        Some(b'@') => fields - 4,
        Some(byte) if byte.is_ascii_digit() || *byte == b'*' => fields,
        _ => return Vec::new(),
    };
    for _ in 0..before {
        rest = rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest).trim_start();
    }
    of_shell(rest)
}

/// The programs of commands of the shell, as far as they are plain.
fn of_shell(text: &str) -> Vec<String> {
    let words = words(text, true);
    let commands = words.split(|word| matches!(word.as_str(), ";" | "&" | "&&" | "|" | "||" | "(" | ")" | "\n"));
    commands.flat_map(of_words).collect()
}

/// The program that a simple command runs, and what that runs in turn.
fn of_words(words: &[String]) -> Vec<String> {
    const KEYWORDS: [&str; 8] = ["!", "do", "elif", "else", "if", "then", "until", "while"];
    let is_assignment = |word: &String| word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
    let mut rest = words;
    while let Some((first, after)) = rest.split_first() {
        if KEYWORDS.contains(&first.as_str()) || is_assignment(first) || first == "{" {
            rest = after;
            continue;
        }
        let name = first.rsplit('/').next().unwrap_or(first);
        if SHELLS.contains(&name)
            && let Some(at) = after.iter().position(|word| word.starts_with('-') && word.ends_with('c'))
        {
            return after.get(at + 1).map(|text| of_shell(text)).unwrap_or_default();
        }
        let Some((_, operands, valued)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) else {
            return vec![first.clone()];
        };
        rest = after;
        while let Some((option, after)) = rest.split_first().filter(|(word, _)| word.starts_with('-')) {
            let skipped = usize::from(valued.contains(&option.as_str()));
            rest = after.get(skipped..).unwrap_or_default();
        }
        rest = rest.get(*operands..).unwrap_or_default();
    }
    Vec::new()
}

/// Words without their quotes. In the shell, operators end them and are words as well.
fn words(text: &str, shell: bool) -> Vec<String> {
    let (mut words, mut word, mut is_word) = (Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    let mut quote = None;
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(end), char) if char == end => quote = None,
            (Some('\''), char) => word.push(char),
            (_, '\\') => word.extend(chars.next()),
            (Some(_), char) => word.push(char),
            (None, '"' | '\'') => (quote, is_word) = (Some(char), true),
            (None, char) if char.is_whitespace() || (shell && ";&|()".contains(char)) => {
                if is_word || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                    is_word = false;
                }
                if !char.is_whitespace() {
                    let twice = chars.next_if(|next| *next == char && "&|".contains(char));
                    words.push([Some(char), twice].into_iter().flatten().collect());
                }
            }
            (None, '#') if shell && word.is_empty() && !is_word => break,
            (None, char) => word.push(char),
        }
    }
    if is_word || !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_units() {
        for (value, expected) in [
            ("/opt/x --a", &["/opt/x"][..]),
            ("-+/opt/x", &["/opt/x"]),
            ("@-/opt/x y", &["/opt/x"]),
            ("\"/opt/a b\" c", &["/opt/a b"]),
            ("'/opt/x'", &["/opt/x"]),
            ("/opt/x ; /opt/y z", &["/opt/x", "/opt/y"]),
            ("/bin/sh -c 'cd / && exec /opt/x'", &["cd", "/opt/x"]),
            ("/bin/sh /opt/x", &["/bin/sh"]),
            ("/usr/bin/env A=b /opt/x", &["/opt/x"]),
            ("", &[]),
        ] {
            assert_eq!(of_unit(value), expected, "{value}");
        }
    }

    #[test]
    fn programs_of_crontabs() {
        for (line, expected) in [
            ("* * * * * root /opt/x", &["/opt/x"][..]),
            ("5 4 * * mon root cd / && /opt/x --a", &["cd", "/opt/x"]),
            ("@daily root [ -x /opt/x ] && /opt/x", &["[", "/opt/x"]),
            ("@reboot root A=1 nice -n 19 /opt/x", &["/opt/x"]),
            ("@reboot root flock -n /run/l timeout -k 5 60 /opt/x", &["/opt/x"]),
            ("0 0 * * * root (cd /; \"/opt/a b\")", &["cd", "/opt/a b"]),
            ("0 0 * * * root if true; then /opt/x; fi | /opt/y", &["true", "/opt/x", "fi", "/opt/y"]),
            ("# * * * * * root /opt/x", &[]),
            ("PATH=/opt", &[]),
            ("0 0 * * *", &[]),
        ] {
            assert_eq!(of_cron(line, 6), expected, "{line}");
        }
        assert_eq!(of_cron("@daily /opt/x", 5), ["/opt/x"]);
        assert_eq!(of_cron("0 0 * * * /opt/x", 5), ["/opt/x"]);
    }
}
