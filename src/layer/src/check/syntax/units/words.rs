//! Words in values of settings: names of accounts and credentials, variables, data and filters.

use super::lexer;
use super::names::is_in;
use super::numbers::integer;
use super::paths::is_path;
use crate::unit_install::unit_form;

pub(super) const BOOLEANS: [&str; 12] = ["1", "yes", "y", "true", "t", "on", "0", "no", "n", "false", "f", "off"];

/// Whether a boolean is true.
pub fn is_true(value: &str) -> bool {
    BOOLEANS[..6].iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Booleans may be in upper case, `..7` is a number up to 7. Words that end with `:` or `/` are the begin of a value.
pub(super) fn is_word(word: &str, value: &str) -> bool {
    match word {
        "bool" => BOOLEANS.iter().any(|word| word.eq_ignore_ascii_case(value)),
        "negative" => BOOLEANS[6..].iter().any(|word| word.eq_ignore_ascii_case(value)),
        "weight" => integer(value).is_some_and(|weight| (1..=10_000).contains(&weight)),
        "hexadecimal" => u64::from_str_radix(value.trim_start_matches("0x"), 16).is_ok(),
        _ if word.contains("..") => {
            let (least, most) = word.split_once("..").unwrap_or_default();
            let limit = |text: &str, other: i64| text.parse::<i64>().unwrap_or(other);
            integer(value).is_some_and(|number| (limit(least, 0)..=limit(most, i64::MAX)).contains(&number))
        }
        // A path follows `file:/`, and the name of a descriptor `fd:`.
        _ if word.ends_with('/') => value.starts_with(word) && is_path(&value[word.len() - 1..]),
        _ if word.ends_with(':') => value.strip_prefix(word).is_some_and(|name| name.is_empty() || is_label(name)),
        _ => word == value,
    }
}

/// Whether an account can have the name, or it is an id.
pub(super) fn is_account(value: &str) -> bool {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    match is_number {
        true => {
            let is_id = value.parse::<u32>().is_ok_and(|id| id != u32::MAX && id != 65_535);
            is_id && (value == "0" || !value.starts_with('0'))
        }
        false => {
            let is_negative =
                value.strip_prefix('-').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
            !is_negative
                && ![".", ".."].contains(&value)
                && !value.contains(['/', ':'])
                && !value.contains(char::is_control)
        }
    }
}

/// Words of a template, such as `x@%i.service`, are names after their specifiers are replaced.
pub(super) fn is_unit(value: &str, kinds: &[&str]) -> bool {
    let is_kind = kinds.is_empty() || kinds.iter().any(|kind| value.ends_with(&format!(".{kind}")));
    unit_form(value).is_some() && is_kind
}

/// Names may be in lower case, and are numbers otherwise.
pub(super) fn is_capability(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    let is_name = word.strip_prefix("CAP_").is_some_and(|name| is_in("capabilities", name));
    is_name || word.parse::<u8>().is_ok_and(|number| number < 64)
}

/// System calls and groups of them, those that are denied with an error or `kill`.
pub(super) fn are_calls(value: &str, has_errors: bool) -> bool {
    let is_denied = value.starts_with('~');
    value.strip_prefix('~').unwrap_or(value).split_whitespace().all(|word| {
        let (name, error) = word.split_once(':').map_or((word, None), |(name, error)| (name, Some(error)));
        let is_known = is_in("groups", name) || is_in("calls", name);
        is_known
            && error.is_none_or(|error| has_errors && is_denied && (error == "kill" || error == "0" || is_errno(error)))
    })
}

pub(super) fn is_errno(value: &str) -> bool {
    is_in("errnos", &value.to_ascii_uppercase()) || integer(value).is_some_and(|error| (1..=4095).contains(&error))
}

pub(super) fn is_family(word: &str) -> bool {
    let name = word.trim_start_matches('~');
    name.is_empty() || word == "none" || is_in("families", name) || is_in("families", &name.to_ascii_uppercase())
}

/// A setting of a variable.
pub(super) fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| is_variable_name(name))
}

pub(super) fn is_variable_name(name: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(is_char)
}

/// A field of the journal and its value.
pub(super) fn is_field(word: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    word.split_once('=').is_some_and(|(name, _)| {
        (1..=64).contains(&name.len())
            && name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.bytes().all(is_char)
    })
}

/// A text without quotes, backslashes and control characters.
pub(super) fn is_safe(text: &str) -> bool {
    !text.contains(|next: char| "\"'\\".contains(next) || next.is_control())
}

/// A name of a file of printable ASCII without colons, such as that of a credential or a file descriptor.
pub(super) fn is_label(name: &str) -> bool {
    let is_char = |byte: u8| (32..127).contains(&byte) && byte != b':';
    (1..=255).contains(&name.len()) && name.bytes().all(is_char)
}

pub(in super::super) fn is_credential(name: &str) -> bool {
    is_label(name) && !name.contains('/') && ![".", ".."].contains(&name)
}

/// `NAME[:SOURCE]`.
pub(super) fn is_loaded(value: &str) -> bool {
    let (name, source) = value.split_once(':').unwrap_or((value, ""));
    // systemd accepts only normalized paths.
    let mut names = source.split('/').skip(1);
    let is_file = source.starts_with('/') && names.all(|name| !["", ".", ".."].contains(&name));
    is_credential(name) && (source.is_empty() || is_file || is_credential(source))
}

/// `NAME:VALUE`, with an encrypted value in base64.
pub(super) fn is_set(value: &str, is_encrypted: bool) -> bool {
    value.split_once(':').is_some_and(|(name, data)| {
        let is_data = if is_encrypted { is_base64(data) } else { bad_escape(data).is_none() };
        !data.is_empty() && (name.contains('%') || is_credential(name)) && is_data
    })
}

/// `GLOB[:NAME]`, with an asterisk only at the end.
pub(super) fn is_imported(value: &str) -> bool {
    let (glob, name) = value.split_once(':').unwrap_or((value, ""));
    let stem = glob.strip_suffix('*').unwrap_or(glob);
    let is_glob = glob == "*" || is_credential(stem) && !stem.contains(['*', '?', '[']);
    is_glob && (name.is_empty() || is_credential(name))
}

/// Base64 with its padding, and with blanks anywhere.
pub(in super::super) fn is_base64(value: &str) -> bool {
    let text: String = value.split_whitespace().collect();
    let data = text.trim_end_matches('=');
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    let padding = text.len() - data.len();
    text.len().is_multiple_of(4) && padding <= 2 && data.bytes().all(is_char) && has_zero_bits(data, padding)
}

/// Whether the unused bits of the last base64 digit are zero.
fn has_zero_bits(data: &str, padding: usize) -> bool {
    let last = data.chars().last().unwrap_or('A');
    match padding {
        0 => true,
        1 => "AEIMQUYcgkosw048".contains(last),
        _ => "AQgw".contains(last),
    }
}

/// A hash of 16 bytes or more in hexadecimal digits, or a path.
pub(super) fn is_hash(value: &str) -> bool {
    let is_hash =
        value.len() >= 32 && value.len().is_multiple_of(2) && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash || value.starts_with('/')
}

/// The name of a namespace of the journal, which is an instance of a unit and a part of the name of a directory.
pub(super) fn is_namespace(value: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.@".contains(&byte);
    (1..=222).contains(&value.len()) && value.bytes().all(is_char) && ![".", ".."].contains(&value)
}

/// What a partition of an image needs (systemd.image-policy(7)).
const POLICIES: [&str; 12] = [
    "verity",
    "signed",
    "encrypted",
    "unprotected",
    "unused",
    "absent",
    "open",
    "ignore",
    "read-only-on",
    "read-only-off",
    "growfs-on",
    "growfs-off",
];

/// `PARTITION=POLICY+POLICY` between colons, or a policy for all.
pub(super) fn is_policy(value: &str, partitions: &[&str]) -> bool {
    let mut seen = Vec::new();
    let is_rule = |rule: &str| {
        let Some((partition, flags)) = rule.split_once('=') else { return false };
        let (partition, flags) = (partition.trim(), flags.trim());
        let is_known = partition.is_empty() || partitions.contains(&partition);
        let is_new = !seen.contains(&partition.to_owned());
        seen.push(partition.to_owned());
        let are_flags = ["", "-"].contains(&flags) || flags.split('+').all(|flag| POLICIES.contains(&flag.trim()));
        is_known && is_new && are_flags
    };
    ["-", "*", "~"].contains(&value) || value.split(':').all(is_rule)
}

/// Whether the brackets of a regular expression match, and its repetitions have something to repeat. Others are left to the machine.
pub(super) fn is_pattern(value: &str) -> bool {
    let pattern = value.strip_prefix('~').unwrap_or(value);
    if pattern.contains("\\Q") || pattern.contains("(?#") || pattern.contains("(*") {
        return true;
    }
    let (mut depth, mut in_class, mut before) = (0_usize, 0_usize, None);
    let mut chars = pattern.chars();
    while let Some(next) = chars.next() {
        // The first character of a class may be its end, or negate it.
        in_class = if in_class > 0 { in_class + 1 } else { 0 };
        match next {
            '\\' if chars.next().is_none() => return false,
            '\\' => {}
            ']' if in_class > 2 => in_class = 0,
            '^' if in_class == 2 => in_class = 1,
            _ if in_class > 0 => {}
            '[' => in_class = 1,
            '(' => depth += 1,
            ')' if depth == 0 => return false,
            ')' => depth -= 1,
            '*' | '+' | '?' if matches!(before, None | Some('|')) => return false,
            '*' | '+' if before == Some('(') => return false,
            _ => {}
        }
        before = Some(if next == '\\' { 'x' } else { next });
    }
    depth == 0 && in_class == 0 && !pattern.is_empty()
}

/// A name on D-Bus.
pub(super) fn is_bus_name(name: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_char);
    let is_named = |part: &str| is_part(part) && !part.starts_with(|first: char| first.is_ascii_digit());
    let is_valid = match name.strip_prefix(':') {
        Some(unique) => unique.split('.').all(is_part),
        None => name.split('.').all(is_named),
    };
    name.len() <= 255 && name.contains('.') && is_valid
}

/// A backslash with characters after it that are not an escape sequence.
pub(in super::super) fn bad_escape(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('\\') {
        let next = after.chars().next()?;
        rest = match lexer::sequence(after) {
            Some((_, rest)) => rest,
            None => return Some(format!("\\{next}")),
        };
    }
    None
}
