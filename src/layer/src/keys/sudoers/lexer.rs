//! A lexer for a line of sudoers: takes words, signs, options and digests from its remaining text.

use std::net::Ipv6Addr;

use super::shown;

/// Tags of commands; all but the last three also with `NO` in front.
const TAGS: [&str; 9] =
    ["PASSWD", "EXEC", "SETENV", "LOG_INPUT", "LOG_OUTPUT", "MAIL", "FOLLOW", "INTERCEPT", "NOPASSWD"];

/// Options of commands, each with `=` and a value.
const OPTIONS: [&str; 7] = ["ROLE", "TYPE", "NOTBEFORE", "NOTAFTER", "TIMEOUT", "CWD", "CHROOT"];

/// Algorithms of a command's digest, with the lengths in hexadecimal digits and in base64.
const DIGESTS: [(&str, usize, usize); 4] =
    [("sha224", 56, 40), ("sha256", 64, 44), ("sha384", 96, 64), ("sha512", 128, 88)];

/// The remaining text of a line.
pub(super) struct Lexer<'a>(pub(super) &'a str);

impl<'a> Lexer<'a> {
    fn skip(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// Takes that character, if it is the next one.
    pub(super) fn take(&mut self, char: char) -> bool {
        self.skip();
        match self.0.strip_prefix(char) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    pub(super) fn expect(&mut self, char: char) -> Result<(), String> {
        if self.take(char) { Ok(()) } else { Err(format!("expected `{char}`, found {}", shown(self.0))) }
    }

    pub(super) fn end(&mut self) -> Result<(), String> {
        self.skip();
        if self.0.is_empty() { Ok(()) } else { Err(format!("expected the end of the line, found {:?}", self.0)) }
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

    pub(super) fn word(&mut self) -> &'a str {
        self.skip();
        if let Some(len) = ipv6_len(self.0) {
            let (address, rest) = self.0.split_at(len);
            self.0 = rest;
            return address;
        }
        self.until(&[' ', '\t', ',', '=', ':', '(', ')', '!'])
    }

    /// A command with its arguments.
    pub(super) fn command(&mut self) -> &'a str {
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

    pub(super) fn tag(&mut self) -> bool {
        let is_tag =
            |name: &str| TAGS.contains(&name) || name.strip_prefix("NO").is_some_and(|name| TAGS.contains(&name));
        self.named(is_tag, ':')
    }

    pub(super) fn option(&mut self) -> Result<bool, String> {
        let Some(name) = OPTIONS.into_iter().find(|name| self.named(|found| found == *name, '=')) else {
            return Ok(false);
        };
        let value = self.until(&[' ', '\t']);
        let (is_valid, expected) = match name {
            "CWD" | "CHROOT" => {
                (value.starts_with(['/', '~']) || value == "*", "a path that starts with `/` or `~`, or `*`")
            }
            "TIMEOUT" => (is_duration(value), "a duration such as 30 or 1d2h"),
            "NOTBEFORE" | "NOTAFTER" => (is_time(value), "a time as yyyymmddHHMMSSZ"),
            _ => (!value.is_empty(), "a word"),
        };
        let is_valid = is_valid && !value.contains(['"', '=', ',', ':', '(', ')', '!']);
        if is_valid { Ok(true) } else { Err(format!("expected {expected} after `{name}=`, found {}", shown(value))) }
    }

    pub(super) fn digest(&mut self) -> Result<bool, String> {
        let found = DIGESTS.into_iter().find(|(name, ..)| self.named(|found| found == *name, ':'));
        let Some((_, hex, base64)) = found else { return Ok(false) };
        let digest = self.until(&[' ', '\t', ',']);
        let is_hex = digest.len() == hex && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let data = digest.trim_end_matches('=');
        let is_base64 = digest.len() == base64
            && digest.len() - data.len() < 3
            && data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
        if is_hex || is_base64 {
            Ok(true)
        } else {
            Err(format!(
                "expected a digest of {hex} hexadecimal digits or {base64} characters of base64, found {}",
                shown(digest)
            ))
        }
    }
}

/// The length of the IPv6 address at the start of a text, perhaps with that of a prefix.
fn ipv6_len(text: &str) -> Option<usize> {
    let is_part = |char: char| char.is_ascii_hexdigit() || ":.".contains(char);
    let len = text.find(|char| !is_part(char)).unwrap_or(text.len());
    text[..len].parse::<Ipv6Addr>().ok()?;
    let digits = text[len..].strip_prefix('/').unwrap_or_default();
    let count = digits.find(|char: char| !char.is_ascii_digit()).unwrap_or(digits.len());
    let is_length = digits[..count].parse::<u8>().is_ok_and(|length| length <= 128);
    Some(if is_length { len + 1 + count } else { len })
}

/// Whether it is a duration such as `30` or `1d2h3m4s`, longest units first.
pub(super) fn is_duration(text: &str) -> bool {
    let (mut rest, mut is_valid) = (text.to_ascii_lowercase(), !text.is_empty());
    for unit in ['d', 'h', 'm', 's'] {
        if let Some((number, behind)) = rest.split_once(unit) {
            is_valid &= is_count(number);
            rest = behind.to_owned();
        }
    }
    // A number without a unit is alone.
    is_valid && (rest.is_empty() || rest.len() == text.len() && is_count(&rest))
}

fn is_count(text: &str) -> bool {
    (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether it is a time as LDAP has it, `yyyymmddHHMMSSZ`.
fn is_time(text: &str) -> bool {
    let digits = text.strip_suffix('Z').unwrap_or(text);
    let number = |from: usize| digits.get(from..from + 2).and_then(|text| text.parse::<u8>().ok());
    let is_within = |from: usize, low: u8, high: u8| number(from).is_some_and(|found| (low..=high).contains(&found));
    [10, 12, 14].contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && is_within(4, 1, 12)
        && is_within(6, 1, 31)
        && is_within(8, 0, 23)
        && [10, 12].into_iter().filter(|from| from + 2 <= digits.len()).all(|from| is_within(from, 0, 59))
}
