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

/// Those of logrotate 3.22 in Debian 13.
const ROWS: [(Arguments, &[&str]); 11] = [
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
    (
        Arguments::Text,
        &["compresscmd", "compressext", "compressoptions", "extension", "include", "mail", "olddir", "uncompresscmd"],
    ),
    (Arguments::Optional, &["addextension", "dateformat", "errors"]),
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
    /// What logrotate expects instead of a value.
    pub(super) fn fault(self, value: &str) -> Option<&'static str> {
        let words: Vec<&str> = value.split_whitespace().collect();
        let (is_valid, expected) = match self {
            Self::None | Self::Script | Self::Global | Self::Optional => (true, ""),
            Self::Text => (!value.is_empty(), "an argument"),
            Self::Number => (is_number(value), "a number"),
            Self::Count => (value == "-1" || is_number(value), "a number or -1"),
            Self::Size => {
                let digits = value.strip_suffix(['k', 'K', 'M', 'G']).unwrap_or(value);
                (is_number(digits), "a size such as 100k, 100M or 1G")
            }
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
