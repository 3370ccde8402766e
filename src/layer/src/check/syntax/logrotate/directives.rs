//! Directives of logrotate.conf(5) and their arguments.

use vmbake_common::spelling;

/// What follows a directive.
#[derive(Clone, Copy)]
pub(super) enum Arguments {
    /// Nothing, or another directive.
    None,
    /// A script, up to `endscript`.
    Script,
    /// Anything, outside of sections only.
    Global,
    /// Anything.
    Text,
    /// One word.
    Word,
    /// Anything, perhaps nothing.
    Optional,
    /// A number that is not negative.
    Number,
    /// A number, or -1.
    Count,
    /// A number with one of the units `k`, `K`, `M` and `G`, or without one.
    Size,
    /// Nothing, or a day from 0 to 7.
    Weekday,
    /// A mode, a user and a group, all of them optional.
    Creation,
    /// A user and a group.
    Accounts,
}

/// The bit of 32 that makes a number negative; logrotate passes over those above.
const SIGN: u64 = 1 << 31;

/// Those of logrotate 3.22 in Debian 13.
const ROWS: [(Arguments, &[&str]); 12] = [
    (
        Arguments::None,
        &[
            "allowhardlink",
            "compress",
            "copy",
            "copytruncate",
            "daily",
            "dateext",
            "datehourago",
            "dateyesterday",
            "delaycompress",
            "hourly",
            "ifempty",
            "ignoreduplicates",
            "mailfirst",
            "maillast",
            "missingok",
            "monthly",
            "noallowhardlink",
            "nocompress",
            "nocopy",
            "nocopytruncate",
            "nocreate",
            "nocreateolddir",
            "nodateext",
            "nodelaycompress",
            "nomail",
            "nomissingok",
            "noolddir",
            "norenamecopy",
            "nosharedscripts",
            "noshred",
            "notifempty",
            "renamecopy",
            "sharedscripts",
            "shred",
            "yearly",
        ],
    ),
    (Arguments::Script, &["prerotate", "postrotate", "firstaction", "lastaction", "preremove"]),
    (Arguments::Global, &["tabooext", "taboopat"]),
    (Arguments::Text, &["addextension", "compressext", "compressoptions", "dateformat", "extension", "include"]),
    (Arguments::Word, &["compresscmd", "mail", "olddir", "uncompresscmd"]),
    (Arguments::Optional, &["errors"]),
    (Arguments::Number, &["maxage", "minage", "shredcycles", "start"]),
    (Arguments::Count, &["rotate"]),
    (Arguments::Size, &["maxsize", "minsize", "size"]),
    (Arguments::Weekday, &["weekly"]),
    (Arguments::Creation, &["create", "createolddir"]),
    (Arguments::Accounts, &["su"]),
];

/// What follows a directive; `None` if logrotate does not know it.
pub(super) fn arguments(word: &str) -> Option<Arguments> {
    ROWS.iter().find(|(_, words)| words.contains(&word)).map(|(arguments, _)| *arguments)
}

/// A directive with a similar name.
pub(super) fn near(word: &str) -> Option<String> {
    spelling::near(word, ROWS.iter().flat_map(|(_, words)| words.iter().copied())).into_iter().next()
}

impl Arguments {
    /// The user and the group of a value.
    pub(super) fn accounts(self, value: &str) -> Option<[(&'static str, &str); 2]> {
        let words: Vec<&str> = value.split_whitespace().collect();
        match (self, words.as_slice()) {
            (Self::Creation, [_, user, group] | [user, group]) | (Self::Accounts, [user, group]) => {
                Some([("user", *user), ("group", *group)])
            }
            _ => None,
        }
    }

    /// What logrotate expects instead of a value.
    pub(super) fn fault(self, value: &str) -> Option<&'static str> {
        let words: Vec<&str> = value.split_whitespace().collect();
        let (is_valid, expected) = match self {
            Self::None | Self::Script | Self::Global | Self::Optional => (true, ""),
            Self::Word => (words.len() == 1, "one argument"),
            Self::Text => (!value.is_empty(), "an argument"),
            Self::Number => (number(value).is_some(), "a number"),
            Self::Count => (value == "-1" || number(value).is_some_and(|count| count & SIGN == 0), "a number or -1"),
            Self::Size => (is_size(value), "a size such as 100k, 100M or 1G"),
            Self::Weekday => {
                let is_day = value.parse::<u8>().is_ok_and(|day| day <= 7);
                (value.is_empty() || is_day, "a day from 0 to 7, where 0 and 7 are Sunday")
            }
            Self::Creation => (is_creation(&words), "MODE OWNER GROUP, MODE, or OWNER GROUP"),
            Self::Accounts => (words.len() == 2, "a user and a group"),
        };
        (!is_valid).then_some(expected)
    }
}

/// A size that fits 63 bits. A unit alone is a size of 0.
fn is_size(value: &str) -> bool {
    let units = [('k', 10), ('K', 10), ('M', 20), ('G', 30)];
    let unit = units.iter().find_map(|(unit, bits)| Some((value.strip_suffix(*unit)?, *bits)));
    let (digits, bits) = unit.unwrap_or((value, 0));
    let size = if unit.is_some() && digits.is_empty() { Some(0) } else { number(digits) };
    size.is_some_and(|size| size.checked_mul(1u64 << bits).is_some_and(|size| i64::try_from(size).is_ok()))
}

/// A number without a minus sign, perhaps with the prefix of its base.
fn number(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    u64::from_str_radix(digits, base).ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_creation(words: &[&str]) -> bool {
    let is_mode = |word: &str| u32::from_str_radix(word, 8).is_ok();
    match words {
        [] => true,
        [mode] | [mode, _, _] => is_mode(mode),
        // Two words are an owner and a group, also if the first one looks like a mode. Their ids are rarely meant.
        [first, second] => !is_mode(first) || is_number(second),
        _ => false,
    }
}
