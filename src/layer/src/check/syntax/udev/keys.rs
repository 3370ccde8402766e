//! Keys of rules of udev(7): their attributes, operators and values.

use vmbake_common::spelling;

use super::super::units::bad_escape;

/// A pair such as `ATTR{size}=="1"`.
pub(super) struct Pair<'a> {
    pub(super) key: &'a str,
    pub(super) attribute: Option<&'a str>,
    pub(super) operator: &'a str,
    pub(super) value: &'a str,
    /// Whether it compares without regard to case, `i"..."`.
    pub(super) is_caseless: bool,
    /// Whether the value may have escape sequences, `e"..."`.
    pub(super) is_escaped: bool,
}

/// Whether a key has an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attribute {
    None,
    Optional,
    Required,
    /// One of these words; `None` is allowed if it is empty.
    One(&'static [&'static str]),
}

use Attribute::{None as Plain, One, Optional, Required};

const COMPARED: &str = "== !=";
const ASSIGNED: &str = "= += :=";
const ANY: &str = "== != = += :=";

/// The keys, whether they have an attribute, and their operators.
const KEYS: [(&str, Attribute, &str); 29] = [
    ("ACTION", Plain, COMPARED),
    ("ATTR", Required, ANY),
    ("ATTRS", Required, COMPARED),
    ("CONST", One(&["arch", "virt"]), COMPARED),
    ("DEVPATH", Plain, COMPARED),
    ("DRIVER", Plain, COMPARED),
    ("DRIVERS", Plain, COMPARED),
    ("ENV", Required, ANY),
    ("GOTO", Plain, "="),
    ("GROUP", Plain, ASSIGNED),
    ("IMPORT", One(&["file", "program", "builtin", "db", "cmdline", "parent"]), ANY),
    ("KERNEL", Plain, COMPARED),
    ("KERNELS", Plain, COMPARED),
    ("LABEL", Plain, "="),
    ("MODE", Plain, ASSIGNED),
    ("NAME", Plain, ANY),
    ("OPTIONS", Plain, ASSIGNED),
    ("OWNER", Plain, ASSIGNED),
    ("PROGRAM", Plain, ANY),
    ("RESULT", Plain, COMPARED),
    ("RUN", One(&["", "program", "builtin"]), ASSIGNED),
    ("SECLABEL", Required, ASSIGNED),
    ("SUBSYSTEM", Plain, COMPARED),
    ("SUBSYSTEMS", Plain, COMPARED),
    ("SYMLINK", Plain, "== != = += -= :="),
    ("SYSCTL", Required, ANY),
    ("TAG", Plain, "== != = += -= :="),
    ("TAGS", Plain, COMPARED),
    ("TEST", Optional, COMPARED),
];

/// Commands that udevd runs itself.
const BUILTINS: [&str; 12] = [
    "blkid",
    "btrfs",
    "hwdb",
    "input_id",
    "keyboard",
    "kmod",
    "net_driver",
    "net_id",
    "net_setup_link",
    "path_id",
    "uaccess",
    "usb_id",
];

/// Properties that a rule cannot set.
const FIXED: [&str; 12] = [
    "ACTION",
    "DEVLINKS",
    "DEVNAME",
    "DEVPATH",
    "DEVTYPE",
    "DRIVER",
    "IFINDEX",
    "MAJOR",
    "MINOR",
    "SEQNUM",
    "SUBSYSTEM",
    "TAGS",
];

const OPTIONS: [&str; 5] = ["string_escape=none", "string_escape=replace", "db_persist", "watch", "nowatch"];
const STARTS: [&str; 3] = ["static_node=", "link_priority=", "log_level="];

/// What udevd does not take of a pair.
pub(super) fn fault(pair: &Pair) -> Option<String> {
    let Pair { key, attribute, operator, value, .. } = pair;
    let Some((_, form, operators)) = KEYS.iter().find(|(known, ..)| known == key) else {
        let near = spelling::near(key, KEYS.iter().map(|(known, ..)| *known));
        let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Some(format!("unknown key {key:?}{hint}"));
    };
    match (form, attribute) {
        (Plain, Some(attribute)) => return Some(format!("{key} has no attribute, found {{{attribute}}}")),
        (Required, None | Some("")) => return Some(format!("{key} needs an attribute, such as {key}{{name}}")),
        (One(words), attribute) if !words.contains(&attribute.unwrap_or_default()) || *attribute == Some("") => {
            let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
            return Some(format!(
                "expected {key}{{WORD}} with one of {}, found {:?}",
                words.join(", "),
                attribute.unwrap_or_default()
            ));
        }
        _ => {}
    }
    let is_compared = ["==", "!="].contains(operator);
    if !operators.split(' ').any(|known| known == *operator) {
        return Some(format!("{key} has one of the operators {operators}, found {operator}"));
    }
    if pair.is_caseless && (!is_compared || ["TEST", "PROGRAM", "IMPORT"].contains(key)) {
        return Some(format!("{key}{operator} cannot ignore case, found i\"{value}\""));
    }
    if let Some(unknown) = pair.is_escaped.then(|| bad_escape(value)).flatten() {
        return Some(format!("{unknown} in e\"{value}\" is not an escape sequence"));
    }
    let is_needed = FILLED.contains(key) && !(is_compared && *key == "TAG");
    if value.is_empty() && is_needed {
        return Some(format!("{key} needs a value, found {key}{operator}\"\""));
    }
    self::value(pair, is_compared)
}

/// Keys whose value cannot be empty, except in comparisons of `TAG`.
const FILLED: [&str; 9] = ["GROUP", "IMPORT", "MODE", "OWNER", "PROGRAM", "RUN", "SECLABEL", "TAG", "TEST"];

/// Keys with operators that udevd replaces with `=`.
const ASSUMED: [(&[&str], &str); 2] = [
    (&["ATTR", "GROUP", "MODE", "NAME", "OWNER", "SYSCTL"], "+="),
    (&["ATTR", "ENV", "SECLABEL", "SYSCTL", "TAG"], ":="),
];

/// A warning about a pair that udevd reads differently or warns about.
pub(super) fn note(pair: &Pair) -> Option<String> {
    let Pair { key, attribute, operator, .. } = pair;
    if ASSUMED.iter().any(|(keys, assumed)| keys.contains(key) && assumed == operator) {
        return Some(format!("udevd reads {key}{operator} as {key}="));
    }
    let path = attribute.filter(|_| *key == "ATTRS")?;
    let is_unsafe = path.starts_with("device/") || path.contains("../");
    is_unsafe.then(|| format!("udevd warns that {key}{{{path}}} may not work with later kernels"))
}

/// Names of log levels; `reset` restores that of udevd.
const LEVELS: [&str; 9] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug", "reset"];

fn is_level(level: &str) -> bool {
    LEVELS.contains(&level) || level.parse::<u8>().is_ok_and(|number| number <= 7)
}

/// Letters after `%`, and words after `$`, that stand for a property of the device.
const LETTERS: &str = "NsEknDdpbMmcPLrS%";
const WORDS: [&str; 18] = [
    "devnode", "tempnode", "attr", "sysfs", "env", "kernel", "number", "driver", "devpath", "id", "major", "minor",
    "result", "parent", "name", "links", "root", "sys",
];

/// Keys whose values udevd replaces substitutions in, also if they are compared.
const REPLACED: [&str; 3] = ["TEST", "PROGRAM", "IMPORT"];

/// What is wrong with the substitutions of a value or an attribute, and whether udevd drops the text because of it.
pub(super) fn substitution(pair: &Pair) -> Option<(bool, String)> {
    let is_compared = ["==", "!="].contains(&pair.operator);
    let is_free = ["OPTIONS", "LABEL", "GOTO"].contains(&pair.key);
    let attribute = pair.attribute.filter(|_| ["ATTR", "ATTRS", "SYSCTL"].contains(&pair.key));
    let value = Some(pair.value).filter(|_| !is_free && (!is_compared || REPLACED.contains(&pair.key)));
    attribute.into_iter().chain(value).find_map(unknown_substitution)
}

/// A substitution that udevd does not know, and whether it drops the text.
fn unknown_substitution(text: &str) -> Option<(bool, String)> {
    let mut rest = text;
    while let Some(at) = rest.find(['$', '%']) {
        let (sign, after) = rest[at..].split_at(1);
        let word = match sign {
            "$" if after.starts_with('$') => Some(1),
            "$" => WORDS.iter().find(|word| after.starts_with(**word)).map(|word| word.len()),
            _ => after.starts_with(|letter| LETTERS.contains(letter)).then_some(1),
        };
        let Some(length) = word else {
            let end = after.find(|next: char| !next.is_ascii_alphanumeric()).unwrap_or(after.len());
            let end = if sign == "%" { after.chars().next().map_or(0, char::len_utf8) } else { end };
            let found = &after[..end];
            return Some((false, format!("{sign}{found} is not a substitution; write {sign}{sign} for {sign}")));
        };
        let (word, next) = after.split_at(length);
        rest = next;
        if word == sign {
            continue;
        }
        let name = match next.strip_prefix('{') {
            None => "",
            Some(inside) => match inside.split_once('}').filter(|(name, _)| !name.is_empty()) {
                Some((name, after)) => {
                    rest = after;
                    name
                }
                None => return Some((true, format!("expected a name in braces after {sign}{word}"))),
            },
        };
        let is_number = name.strip_suffix('+').unwrap_or(name).parse::<u32>().is_ok();
        match word {
            "attr" | "sysfs" | "env" | "s" | "E" if name.is_empty() => {
                return Some((true, format!("expected a name in braces after {sign}{word}")));
            }
            "result" | "c" if !name.is_empty() && !is_number => {
                return Some((true, format!("expected the number of a word in {sign}{word}{{{name}}}")));
            }
            _ => {}
        }
    }
    None
}

/// What is wrong with a value.
fn value(pair: &Pair, is_compared: bool) -> Option<String> {
    let Pair { key, attribute, value, .. } = pair;
    let command = value.split(' ').next().unwrap_or_default();
    match (*key, *attribute) {
        ("NAME", _) if !is_compared && ["", "%k"].contains(value) => Some(format!("NAME={value:?} has no effect")),
        ("ENV", Some(name)) if !is_compared && FIXED.contains(&name) => Some(format!("ENV{{{name}}} cannot be set")),
        ("RUN" | "IMPORT", Some("builtin")) if !BUILTINS.contains(&command) => {
            Some(format!("unknown builtin command {command:?}"))
        }
        ("TEST", Some(mode)) if !mode.is_empty() && u32::from_str_radix(mode, 8).is_err() => {
            Some(format!("expected an octal mode, found {mode:?}"))
        }
        ("OPTIONS", _) if value.strip_prefix("link_priority=").is_some_and(|number| number.parse::<i32>().is_err()) => {
            Some(format!("expected a number in {value:?}"))
        }
        ("OPTIONS", _) if value.strip_prefix("log_level=").is_some_and(|level| !is_level(level)) => {
            Some(format!("expected a log level such as debug in {value:?}"))
        }
        ("OPTIONS", _) if !OPTIONS.contains(value) && !STARTS.iter().any(|start| value.starts_with(start)) => {
            Some(format!("unknown option {value:?}"))
        }
        _ => None,
    }
}
