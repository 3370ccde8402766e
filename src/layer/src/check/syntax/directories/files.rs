//! Lines of tmpfiles.d(5).

use super::super::units::{bad_escape, is_base64, is_credential};
use super::{field, id, unknown_specifier};

/// Types, and those of them that need an argument.
const TYPES: &str = "fFwdDevqQpLcbCxXrRzZtThHaAm";
const WITH_ARGUMENT: &str = "wcbtThHaA";

/// Types whose argument may have specifiers.
const EXPANDED: &str = "fFwLC";

/// Modifiers after the type.
const MODIFIERS: &str = "+!-=~^$?";

const SPECIFIERS: &str = "abghlmoqtuvwABCGHLMSTUVW";

/// Largest numbers of a device.
const MAX_MAJOR: u32 = 0xfff;
const MAX_MINOR: u32 = 0xf_ffff;

/// Times of a file by which its age is counted.
const AGE_BY: &str = "abcmABCM";

/// Units of time, with their microseconds.
const UNITS: [(&[&str], u64); 9] = [
    (&["us", "usec", "\u{b5}s", "\u{3bc}s"], 1),
    (&["ms", "msec"], 1_000),
    (&["", "s", "sec", "second", "seconds"], 1_000_000),
    (&["m", "min", "minute", "minutes"], 60_000_000),
    (&["h", "hr", "hour", "hours"], 3_600_000_000),
    (&["d", "day", "days"], 86_400_000_000),
    (&["w", "week", "weeks"], 604_800_000_000),
    (&["M", "month", "months"], 2_629_800_000_000),
    (&["y", "year", "years"], 31_557_600_000_000),
];

/// Checks the fields of a line.
pub(super) fn check(words: &[String]) -> Result<(), String> {
    let word = words.first().map(String::as_str).unwrap_or_default();
    let kind = word.get(..1).filter(|kind| TYPES.contains(kind));
    let Some(kind) = kind else { return Err(format!("unknown type {word:?}")) };
    let modifiers = &word[1..];
    if let Some(other) =
        modifiers.chars().find(|next| !MODIFIERS.contains(*next) || modifiers.matches(*next).count() > 1)
    {
        return Err(format!("unknown or repeated modifier {other:?} in {word:?}"));
    }
    if modifiers.contains('?') && kind != "L" {
        return Err(format!("the modifier ? is only allowed with type L, found {word:?}"));
    }
    let path = words.get(1).ok_or("expected a path after the type, found the end of the line")?;
    unknown_specifier(path, SPECIFIERS)?;
    if !path.starts_with(['/', '%']) {
        return Err(format!("path {path:?} is not absolute"));
    }
    if let Some(mode) = field(words, 2) {
        let octal = u32::from_str_radix(mode.trim_start_matches(['~', ':']), 8);
        octal
            .ok()
            .filter(|octal| *octal <= 0o7777 && !mode.contains('+'))
            .ok_or_else(|| format!("invalid mode {mode:?}"))?;
    }
    for (at, what) in [(3, "user"), (4, "group")] {
        if let Some(name) = field(words, at).filter(|name| !is_account(name.strip_prefix(':').unwrap_or(name))) {
            return Err(format!("{name:?} is not the name or id of a {what}"));
        }
    }
    if let Some(age) = field(words, 5).filter(|age| !is_age(age)) {
        return Err(format!("invalid age {age:?}, expected a time such as 10d"));
    }
    let is_written = "fFw".contains(kind);
    match field(words, 6) {
        Some(argument) if is_written && modifiers.contains('^') => credential(argument),
        None if is_written && modifiers.contains('^') => {
            Err(format!("the modifier ^ needs the name of a credential in the seventh field, found {word:?}"))
        }
        _ if kind == "C" && modifiers.contains('~') => {
            Err(format!("type C does not support the modifier ~, found {word:?}"))
        }
        Some(data) if is_written && modifiers.contains('~') && !is_base64(data) => {
            Err(format!("expected base64 because of the modifier ~, found {data:?}"))
        }
        _ if modifiers.contains('^') => Ok(()),
        None if WITH_ARGUMENT.contains(kind) => Err(format!("type {kind} needs an argument in the seventh field")),
        None => Ok(()),
        Some(argument) => self::argument(kind, argument),
    }
}

/// Types without an argument.
const WITHOUT_ARGUMENT: &str = "dDevqQpxXrRzZm";

/// A warning about a field that systemd-tmpfiles ignores or changes.
pub(super) fn note(words: &[String]) -> Option<String> {
    let (kind, path) = (words.first()?.get(..1)?, words.get(1)?);
    if let Some(argument) = words.get(6).filter(|argument| *argument != "-" && WITHOUT_ARGUMENT.contains(kind)) {
        return Some(format!("systemd-tmpfiles ignores the argument {argument:?}: type {kind} takes none"));
    }
    let is_legacy = path == "/var/run" || path.starts_with("/var/run/");
    is_legacy.then(|| format!("systemd-tmpfiles replaces /var/run in {path:?} with /run; write /run"))
}

/// The name of a credential. Those with specifiers or escape sequences are left to the machine.
fn credential(name: &str) -> Result<(), String> {
    if name.contains('%') {
        return unknown_specifier(name, SPECIFIERS);
    }
    let is_valid = name.contains('\\') || is_credential(name);
    if is_valid { Ok(()) } else { Err(format!("{name:?} is not the name of a credential")) }
}

fn argument(kind: &str, argument: &str) -> Result<(), String> {
    if EXPANDED.contains(kind) {
        unknown_specifier(argument, SPECIFIERS)?;
        if let Some(unknown) = bad_escape(argument) {
            return Err(format!("{unknown} in {argument:?} is not an escape sequence; write \\\\ for a backslash"));
        }
    }
    let is_device = || {
        argument.split_once(':').is_some_and(|(major, minor)| {
            [(major, MAX_MAJOR), (minor, MAX_MINOR)]
                .iter()
                .all(|(number, max)| number.parse::<u32>().is_ok_and(|number| number <= *max))
        })
    };
    match kind {
        "c" | "b" if !is_device() => Err(format!("expected the numbers of a device, MAJOR:MINOR, found {argument:?}")),
        "C" if !argument.starts_with(['/', '%']) || argument == "%" || argument.starts_with("%%") => {
            Err(format!("source {argument:?} is not absolute"))
        }
        _ => Ok(()),
    }
}

/// Whether an account can have the name. Specifiers are not expanded there.
fn is_account(name: &str) -> bool {
    match name.bytes().all(|byte| byte.is_ascii_digit()) {
        true => id(name).is_some(),
        false => !name.starts_with('-') && !name.contains([' ', '\t', ':', ',', '/', '%']),
    }
}

/// Whether it is a time, perhaps with the times of a file by which it is counted: `bmA:10d`.
fn is_age(age: &str) -> bool {
    let age = age.strip_prefix('~').unwrap_or(age);
    match age.split_once(':') {
        Some((by, time)) => !by.is_empty() && by.chars().all(|next| AGE_BY.contains(next)) && is_time(time),
        None => is_time(age),
    }
}

/// Whether it is a sequence of numbers, each with a unit perhaps.
pub(in super::super) fn is_time(text: &str) -> bool {
    microseconds(text, "s").is_some()
}

/// The microseconds of a sequence of numbers, of which those without a unit have the given one.
pub(in super::super) fn microseconds(text: &str, default: &str) -> Option<f64> {
    let is_digit = |next: char| next.is_ascii_digit() || next == '.';
    let mut rest = text.trim();
    if rest == "infinity" {
        return Some(f64::INFINITY);
    }
    let (is_empty, mut sum) = (rest.is_empty(), 0.0);
    while !rest.is_empty() {
        rest = rest.strip_prefix('+').unwrap_or(rest);
        let (number, after) = rest.split_at(rest.find(|next| !is_digit(next)).unwrap_or(rest.len()));
        let after = after.trim_start();
        let (unit, after) = after.split_at(after.find(|next: char| !next.is_alphabetic()).unwrap_or(after.len()));
        let unit = if unit.is_empty() { default } else { unit };
        let size = UNITS.iter().find(|(names, _)| names.contains(&unit)).map(|(_, size)| *size);
        let whole = number.split('.').next().unwrap_or_default();
        let count = if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() };
        let fits = size.zip(count.ok()).is_some_and(|(size, count)| size.checked_mul(count).is_some());
        let is_number = number.contains(|next: char| next.is_ascii_digit()) && number.matches('.').count() < 2;
        if !is_number || !fits {
            return None;
        }
        sum += number.parse::<f64>().ok()? * size.map(as_float)?;
        rest = after.trim_start();
    }
    (!is_empty).then_some(sum)
}

#[expect(clippy::cast_precision_loss, reason = "times are only compared: their last digits do not matter")]
fn as_float(number: u64) -> f64 {
    number as f64
}
