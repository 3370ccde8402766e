//! Limits of logins in limits.conf(5): pam_limits(8) skips a line that it does not understand.

use super::Problem;

const TYPES: [&str; 3] = ["soft", "hard", "-"];

/// Items whose value is a number.
const ITEMS: [&str; 19] = [
    "as",
    "core",
    "cpu",
    "data",
    "fsize",
    "locks",
    "maxlogins",
    "maxsyslogins",
    "memlock",
    "msgqueue",
    "nice",
    "nofile",
    "nonewprivs",
    "nproc",
    "priority",
    "rss",
    "rtprio",
    "sigpending",
    "stack",
];

/// An item with a path.
const CHROOT: &str = "chroot";

/// Values without a limit.
const UNLIMITED: [&str; 3] = ["-1", "unlimited", "infinity"];

/// Checks the number of fields, types, items and values.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let lines = (1..).zip(text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()));
    let faults = lines.filter(|(_, line)| !line.is_empty()).filter_map(|(number, line)| Some((number, fault(line)?)));
    faults.map(|(number, reason)| Problem::error(number, reason)).collect()
}

fn fault(line: &str) -> Option<String> {
    let ignored = |reason: String| Some(format!("is ignored by pam_limits: {reason}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let (kind, item, value) = match words.as_slice() {
        [_, "-"] => return None,
        [_, kind, item, value, ..] => (*kind, item.to_ascii_lowercase(), *value),
        _ => return ignored(format!("expected DOMAIN TYPE ITEM VALUE, found {line:?}")),
    };
    if !TYPES.iter().any(|known| known.eq_ignore_ascii_case(kind)) {
        return ignored(format!("expected one of the types {}, found {kind:?}", TYPES.join(", ")));
    }
    if item == CHROOT {
        return None;
    }
    if !ITEMS.contains(&item.as_str()) {
        let near = vmbake_common::spelling::near(&item, ITEMS);
        let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return ignored(format!("unknown item {item:?}{hint}"));
    }
    let digits = value.trim_start_matches(['+', '-']);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit()) && value.len() - digits.len() < 2;
    let is_unlimited = UNLIMITED.iter().any(|known| known.eq_ignore_ascii_case(value));
    let is_valid = match item.as_str() {
        "nonewprivs" => ["0", "1"].contains(&value),
        _ => is_number || is_unlimited,
    };
    if !is_valid {
        return ignored(format!("expected a number for {item}, found {value:?}"));
    }
    // Such as 1M, which limits a login to one open file: it fails.
    let is_whole = is_unlimited || digits.bytes().all(|byte| byte.is_ascii_digit());
    (!is_whole).then(|| format!("pam_limits uses only the first digits: expected a number for {item}, found {value:?}"))
}
