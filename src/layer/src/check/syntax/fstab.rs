//! Lines of fstab(5): mount(8) and systemd-fstab-generator(8) ignore those that are not valid, so that a file system is missing on machines.

use super::Problem;
use super::directories::is_time;

/// Octal escapes that both programs decode: blank, tab, newline, `#` and backslash.
const ESCAPES: [&str; 5] = ["040", "011", "012", "043", "134"];

/// What stands for the mount point of a file system without one.
const NONE: [&str; 4] = ["none", "swap", "ignore", "-"];

/// Options of systemd.mount(5) with a time.
const TIMES: [&str; 3] = ["x-systemd.device-timeout=", "x-systemd.idle-timeout=", "x-systemd.mount-timeout="];

/// Checks the number of fields, the mount point, escapes, times and numbers.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let lines = (1..).zip(text.lines().map(|line| line.trim_matches([' ', '\t', '\r'])));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let faults = lines.filter_map(|(number, line)| Some((number, fault(line)?)));
    faults
        .map(|(number, reason)| Problem::error(number, format!("is not mounted on machines as written: {reason}")))
        .collect()
}

/// What is wrong with a line.
fn fault(line: &str) -> Option<String> {
    let fields: Vec<&str> = line.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    let [source, point, kind, rest @ ..] = fields.as_slice() else {
        return Some(format!("expected SOURCE MOUNT-POINT TYPE OPTIONS, found {line:?}"));
    };
    if *kind != "swap" && !point.starts_with('/') && !NONE.contains(point) {
        return Some(format!("expected an absolute path as mount point, found {point:?}"));
    }
    // systemd passes over those at the start.
    let mut names = point.split('/').filter(|name| !["", "."].contains(name)).skip_while(|name| *name == "..");
    if names.any(|name| name == "..") {
        return Some(format!("expected a mount point without .., found {point:?}"));
    }
    if let Some(escape) = unknown_escape(point).or_else(|| unknown_escape(source)) {
        return Some(format!("unknown escape \\{escape}: expected one of \\{}", ESCAPES.join(", \\")));
    }
    let mut options = rest.first().into_iter().flat_map(|options| options.split(','));
    let is_wrong =
        |option: &&str| TIMES.iter().any(|start| option.strip_prefix(start).is_some_and(|time| !is_time(time)));
    if let Some(option) = options.find(is_wrong) {
        return Some(format!("systemd ignores {option:?}: expected a time such as 5min"));
    }
    // A comment may follow the last number only.
    let is_number = |field: &str| field.parse::<i32>().is_ok();
    let wrong = rest.iter().skip(1).take(2).find(|field| !is_number(field))?;
    let hint = match wrong.starts_with('#') {
        true => "mount -a ignores the line, systemd mounts it at boot; write the comment in a separate line",
        false => "write \\040 for a blank in a path",
    };
    Some(format!("expected a number after the options, found {wrong:?}; {hint}"))
}

/// The digits of an octal escape that the programs read differently.
fn unknown_escape(field: &str) -> Option<&str> {
    let escapes = field.match_indices('\\').filter_map(|(at, _)| field.get(at + 1..at + 4));
    let mut octal = escapes.filter(|digits| digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit)));
    octal.find(|digits| !ESCAPES.contains(digits))
}
