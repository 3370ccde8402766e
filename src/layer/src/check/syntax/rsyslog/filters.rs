//! Filters of rsyslog.conf(5): selectors such as `auth.*;mail.err`, properties such as `:msg, contains, "x"`, and those of expressions.

use vmbake_common::spelling::near;

const FACILITIES: [&str; 25] = [
    "*", "auth", "authpriv", "console", "cron", "daemon", "ftp", "kern", "local0", "local1", "local2", "local3",
    "local4", "local5", "local6", "local7", "lpr", "mail", "mark", "news", "ntp", "security", "syslog", "user", "uucp",
];

const PRIORITIES: [&str; 21] = [
    "*", "0", "1", "2", "3", "4", "5", "6", "7", "alert", "crit", "debug", "emerg", "err", "error", "info", "none",
    "notice", "panic", "warn", "warning",
];

const PROPERTIES: [&str; 30] = [
    "app-name",
    "fromhost",
    "fromhost-ip",
    "hostname",
    "inputname",
    "iut",
    "jsonmesg",
    "msg",
    "msgid",
    "parsesuccess",
    "pri",
    "pri-text",
    "procid",
    "programname",
    "protocol-version",
    "rawmsg",
    "rawmsg-after-pri",
    "source",
    "structured-data",
    "syslogfacility",
    "syslogfacility-text",
    "syslogpriority",
    "syslogpriority-text",
    "syslogseverity",
    "syslogseverity-text",
    "syslogtag",
    "timegenerated",
    "timereported",
    "timestamp",
    "uuid",
];

/// Comparisons of a property with a text.
const COMPARISONS: [&str; 7] = ["contains", "endswith", "ereregex", "isempty", "isequal", "regex", "startswith"];

/// Words that may follow a variable in an expression.
const FOLLOWING: [&str; 14] = [
    "and",
    "contains",
    "contains_i",
    "div",
    "do",
    "else",
    "endswith",
    "endswith_i",
    "in",
    "mod",
    "or",
    "startswith",
    "startswith_i",
    "then",
];

/// What is wrong with the filter at the start of a line.
pub(super) fn fault(line: &str) -> Option<String> {
    match line.strip_prefix(':') {
        Some(property) => property_fault(property),
        None => selector_fault(line),
    }
}

/// Facilities and priorities: `FACILITY,FACILITY.PRIORITY;…`.
fn selector_fault(line: &str) -> Option<String> {
    let (selector, _) = line.split_once([' ', '\t'])?;
    let is_part = |next: char| next.is_ascii_alphanumeric() || "*,.;!=".contains(next);
    let is_selector = selector.contains('.') && selector.chars().all(is_part);
    if !is_selector || selector.starts_with(['.', ',', ';', '!', '=']) {
        return None;
    }
    selector.split(';').filter(|part| !part.is_empty()).find_map(|part| {
        let (facilities, priority) = part.split_once('.').unwrap_or((part, ""));
        let unknown = facilities.split(',').find_map(|name| unknown("facility", name, &FACILITIES));
        // What follows a comma is another selector.
        let priority = priority.split(',').next().unwrap_or_default();
        let priority = priority.strip_prefix('!').unwrap_or(priority);
        unknown.or_else(|| self::unknown("priority", priority.strip_prefix('=').unwrap_or(priority), &PRIORITIES))
    })
}

/// A property, a comparison and a text in quotes.
fn property_fault(line: &str) -> Option<String> {
    let end = line.find(|next: char| next == ',' || next.is_ascii_whitespace())?;
    let (name, rest) = line.split_at(end);
    // Others are actions, such as `:omusrmsg:*`.
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') || name.is_empty() {
        return None;
    }
    if let Some(reason) = unknown("property", name, &PROPERTIES) {
        return Some(reason);
    }
    let expected = |what: &str, found: &str| Some(format!("expected {what}, found {found:?}"));
    let Some(rest) = rest.trim_start().strip_prefix(',') else {
        return expected("a comma after the property", rest.trim_start());
    };
    let Some((comparison, value)) = rest.split_once(',') else {
        return expected("a comparison, a comma and a text in quotes after the property", rest.trim_start());
    };
    let comparison = comparison.trim().trim_start_matches('!');
    if let Some(reason) = unknown("comparison", comparison, &COMPARISONS) {
        return Some(reason);
    }
    if value.trim_start().starts_with('"') { None } else { expected("a text in quotes", value.trim_start()) }
}

/// What is wrong with a variable of an expression, or with what follows it: the text after the `$`.
pub(super) fn variable_fault(text: &str) -> Option<String> {
    let end = text.find(|next: char| !next.is_ascii_alphanumeric() && next != '-').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    // Variables of the message begin with another character.
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    if let Some(reason) = unknown("property", name, &PROPERTIES) {
        return Some(reason);
    }
    let rest = rest.trim_start();
    if rest.strip_prefix('=').is_some_and(|rest| !rest.starts_with(['=', '<', '>'])) {
        return Some(format!("expected == after ${name}, found ="));
    }
    let end = rest.find(|next: char| !next.is_ascii_alphabetic() && next != '_').unwrap_or(rest.len());
    let word = &rest[..end];
    if word.is_empty() { None } else { unknown("operator", word, &FOLLOWING) }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Option<String> {
    if known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return None;
    }
    let hint = near(name, known.iter().copied()).first().map(|near| format!("; did you mean `{near}`?"));
    Some(format!("unknown {what} {name:?}{}", hint.unwrap_or_default()))
}
