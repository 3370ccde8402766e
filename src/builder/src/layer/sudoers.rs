//! Rules for sudo(8): a text enters, the first line that does not have the grammar of sudoers(5) leaves.
//!
//! A file with a syntax error makes sudo ignore the file, or refuse everybody. Stricter than visudo(8): aliases need not be defined in
//! the same file, but every command is `ALL`, an alias, `sudoedit`, `list`, a pattern or an absolute path.

/// Permissions of the files, which sudo recommends.
pub(super) const MODE: u16 = 0o440;

/// Kinds of aliases.
const ALIASES: [&str; 5] = ["User_Alias", "Runas_Alias", "Host_Alias", "Cmnd_Alias", "Cmd_Alias"];

/// Tags of commands; all but the last three also with `NO` in front.
const TAGS: [&str; 9] =
    ["PASSWD", "EXEC", "SETENV", "LOG_INPUT", "LOG_OUTPUT", "MAIL", "FOLLOW", "INTERCEPT", "NOPASSWD"];

/// Options of commands, each with `=` and a value.
const OPTIONS: [&str; 8] = ["ROLE", "TYPE", "APPARMOR_PROFILE", "NOTBEFORE", "NOTAFTER", "TIMEOUT", "CWD", "CHROOT"];

/// Algorithms of a command's digest.
const DIGESTS: [&str; 4] = ["sha224", "sha256", "sha384", "sha512"];

/// Where the rules of that name go.
pub(super) fn path(name: &str) -> String {
    format!("/etc/sudoers.d/{name}")
}

/// The name of a file of rules: sudo skips names with a dot, and those that end with `~`.
pub(super) fn name(name: &str) -> Option<String> {
    let valid = !name.is_empty()
        && name.len() < 256
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    (!valid).then(|| format!("{name:?} is not made of letters, digits, `-` and `_`; sudo skips files with other names"))
}

/// The first line that is not valid.
pub(super) fn check(text: &str) -> Option<String> {
    let mut line = String::new();
    for (index, next) in text.lines().enumerate() {
        line.push_str(next);
        // A backslash at the end of a line continues it.
        if line.ends_with('\\') {
            line.pop();
            continue;
        }
        if let Err(reason) = entry(without_comment(&line).trim()) {
            return Some(format!("line {}: {reason}", index + 1));
        }
        line.clear();
    }
    (!line.is_empty()).then(|| "the last line ends with a backslash".to_owned())
}

/// Drops a comment. `#` is also part of ids, of `#include`, and of what is quoted.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("#include") {
        return line;
    }
    let (mut quoted, mut escaped) = (false, false);
    for (at, char) in line.char_indices() {
        match char {
            _ if escaped => {}
            '"' => quoted = !quoted,
            '#' if !quoted && !line[at + 1..].starts_with(|next: char| next.is_ascii_digit()) => return &line[..at],
            _ => {}
        }
        escaped = char == '\\' && !escaped;
    }
    line
}

fn entry(line: &str) -> Result<(), String> {
    let first = line.split([' ', '\t']).next().unwrap_or_default();
    let rest = line[first.len()..].trim_start();
    if line.is_empty() {
        return Ok(());
    }
    if line.chars().any(|char| char.is_control() && char != '\t') {
        return Err("has a control character in it".to_owned());
    }
    if ["@include", "@includedir", "#include", "#includedir"].contains(&first) {
        return if rest.is_empty() { Err(format!("{first} has no path")) } else { Ok(()) };
    }
    let mut words = Words(rest);
    if ALIASES.contains(&first) {
        loop {
            let name = words.word();
            if !is_alias(name) {
                return Err(format!("{name:?} is not the name of an alias: capital letters, digits and `_`"));
            }
            words.expect('=')?;
            if first.starts_with("Cm") {
                commands(&mut words)?
            } else {
                list(&mut words)?
            }
            if !words.take(':') {
                return words.end();
            }
        }
    }
    if let Some(scope) = first.strip_prefix("Defaults")
        && (scope.is_empty() || scope.starts_with(['@', ':', '!', '>']))
    {
        return defaults(rest);
    }
    let mut words = Words(line);
    list(&mut words)?;
    loop {
        list(&mut words)?;
        words.expect('=')?;
        commands(&mut words)?;
        if !words.take(':') {
            return words.end();
        }
    }
}

/// Parameters: `name`, `!name`, and `name=value` with `+` or `-` before the sign.
fn defaults(text: &str) -> Result<(), String> {
    for parameter in split(text, ',') {
        let (name, value) = parameter.split_once('=').map_or((parameter, None), |(name, value)| (name, Some(value)));
        let name = name.trim().trim_end_matches(['+', '-']).trim_end();
        let negated = name.starts_with('!');
        let name = name.trim_start_matches('!').trim_start();
        let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_name || negated && value.is_some() || value.is_some_and(|value| value.trim().is_empty()) {
            return Err(format!("{:?} is not a setting of Defaults", parameter.trim()));
        }
    }
    Ok(())
}

/// The parts of a text between separators that are neither quoted nor escaped.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => {}
            '"' => quoted = !quoted,
            _ if char == separator && !quoted => {
                parts.push(&text[start..at]);
                start = at + char.len_utf8();
            }
            _ => {}
        }
        escaped = char == '\\' && !escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// Names with commas between them, each perhaps negated.
fn list(words: &mut Words<'_>) -> Result<(), String> {
    loop {
        while words.take('!') {}
        let word = words.word();
        if word.is_empty() {
            return Err(format!("a name is missing before {:?}", words.0));
        }
        if !word.matches('"').count().is_multiple_of(2) {
            return Err(format!("{word:?} has a quote that does not end"));
        }
        if !words.take(',') {
            return Ok(());
        }
    }
}

/// Commands with commas between them.
fn commands(words: &mut Words<'_>) -> Result<(), String> {
    loop {
        if words.take('(') {
            let Some((inside, rest)) = words.0.split_once(')') else { return Err("`(` has no `)`".to_owned()) };
            for part in split(inside, ':').into_iter().filter(|part| !part.trim().is_empty()) {
                let mut names = Words(part);
                list(&mut names)?;
                names.end()?;
            }
            words.0 = rest;
        }
        while words.option() || words.tag() {}
        while words.digest()? && words.take(',') {}
        while words.take('!') {}
        let command = words.command();
        let name = command.split([' ', '\t']).next().unwrap_or_default();
        let known = matches!(name, "sudoedit" | "list") || name.starts_with(['/', '^']) || is_alias(command);
        if !known {
            return Err(format!("command {command:?} is not ALL, an alias or an absolute path"));
        }
        if !words.take(',') {
            return Ok(());
        }
    }
}

/// `ALL`, or the name of an alias.
fn is_alias(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// What is left of a line.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn skip(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// Takes that character, if it is the next one.
    fn take(&mut self, char: char) -> bool {
        self.skip();
        match self.0.strip_prefix(char) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, char: char) -> Result<(), String> {
        if self.take(char) { Ok(()) } else { Err(format!("`{char}` is missing before {:?}", self.0)) }
    }

    fn end(&mut self) -> Result<(), String> {
        self.skip();
        if self.0.is_empty() { Ok(()) } else { Err(format!("{:?} is one word too many", self.0)) }
    }

    /// A text up to one of `ends` that is neither quoted nor escaped.
    fn until(&mut self, ends: &[char]) -> &'a str {
        self.skip();
        let (mut quoted, mut escaped) = (false, false);
        let end = self.0.char_indices().find(|(at, char)| {
            // `%:name` is a group of another source.
            let is_prefix = *at == 1 && self.0.starts_with("%:");
            let is_end = ends.contains(char) && !quoted && !escaped && !is_prefix;
            quoted ^= *char == '"' && !escaped;
            escaped = *char == '\\' && !escaped;
            is_end
        });
        let (word, rest) = self.0.split_at(end.map_or(self.0.len(), |(at, _)| at));
        self.0 = rest;
        word
    }

    fn word(&mut self) -> &'a str {
        self.until(&[' ', '\t', ',', '=', ':', '(', ')', '!'])
    }

    /// A command with its arguments.
    fn command(&mut self) -> &'a str {
        self.until(&[',', ':']).trim_end()
    }

    /// A name followed by that character.
    fn named(&mut self, is_known: impl Fn(&str) -> bool, separator: char) -> bool {
        self.skip();
        let len = self.0.find(|char: char| !(char.is_ascii_alphanumeric() || char == '_')).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(len);
        match rest.trim_start().strip_prefix(separator).filter(|_| is_known(name)) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn tag(&mut self) -> bool {
        let is_tag =
            |name: &str| TAGS.contains(&name) || name.strip_prefix("NO").is_some_and(|name| TAGS.contains(&name));
        self.named(is_tag, ':')
    }

    fn option(&mut self) -> bool {
        let is_option = self.named(|name| OPTIONS.contains(&name), '=');
        if is_option {
            self.until(&[' ', '\t']);
        }
        is_option
    }

    fn digest(&mut self) -> Result<bool, String> {
        if !self.named(|name| DIGESTS.contains(&name), ':') {
            return Ok(false);
        }
        let digest = self.until(&[' ', '\t', ',']);
        let valid =
            digest.len() >= 38 && digest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        if valid { Ok(true) } else { Err(format!("{digest:?} is not a digest")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_sudoers() {
        for good in [
            "",
            "# comment\n\n",
            "%ops ALL=(ALL:ALL) NOPASSWD: ALL\n",
            "deploy ALL = (root) NOPASSWD: /usr/bin/systemctl restart app, /usr/bin/journalctl -u app*\n",
            "a,!b, %c,#1000,%#100 h1,!h2 = ALL : h3 = (www-data) /bin/x # why\n",
            "Defaults env_keep += \"A B\", !requiretty\nDefaults:deploy secure_path=\"/usr/bin:/bin\"\n",
            "User_Alias ADMINS = a, b : OTHERS = c\nCmnd_Alias RESTART = /bin/a b, \\\n  /bin/c \"\"\nADMINS ALL = RESTART\n",
            "x ALL = sudoedit /etc/motd, !/bin/su, list\n",
            "x ALL = TIMEOUT=5m CWD=/tmp SETENV: NOEXEC: /bin/a\n",
            "x ALL = sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa /bin/a\n",
            "x ALL=(ALL) /bin/kill --signal=9\n",
            "x ALL=(ALL) /bin/a b\\=c\\,d\\:e\n",
            "@includedir /etc/more\n",
            "\"a b\" ALL=ALL\n",
        ] {
            assert_eq!(check(good), None, "{good}");
        }
        for (bad, expected) in [
            ("ops\n", "line 1: a name is missing"),
            ("# x\nops ALL ALL\n", "line 2: `=` is missing before \"ALL\""),
            ("ops ALL=(ALL ALL\n", "`(` has no `)`"),
            ("ops ALL=systemctl\n", "command \"systemctl\" is not ALL, an alias or an absolute path"),
            ("ops ALL=NOPASS: ALL\n", "`=` is missing"),
            ("ops ALL=\n", "command \"\""),
            ("User_Alias admins = a\n", "not the name of an alias"),
            ("Defaults =x\n", "not a setting"),
            ("ops ALL=ALL,\n", "command \"\""),
            ("ops ALL=ALL \\\n", "ends with a backslash"),
            ("ops ALL=ALL : x\n", "`=` is missing"),
        ] {
            assert!(check(bad).is_some_and(|found| found.contains(expected)), "{bad}: {:?}", check(bad));
        }
        for (file, valid) in [("10-ops", true), ("ops.conf", false), ("ops~", false), ("", false), ("a/b", false)] {
            assert_eq!(name(file).is_none(), valid, "{file}");
        }
    }
}
