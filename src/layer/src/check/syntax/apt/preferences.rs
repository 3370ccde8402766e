//! Stanzas of apt_preferences(5): one without `Package` or a priority makes every command of apt fail, one without `Pin` has no effect.

use super::{Fields, Problem, problem, stanzas};

const TYPES: [&str; 3] = ["version", "release", "origin"];

/// Checks a file.
pub(in super::super) fn check(text: &str) -> Vec<Problem> {
    let (stanzas, mut found) = stanzas(text);
    found.extend(stanzas.iter().filter_map(|(line, fields)| stanza(*line, fields)));
    found.sort_by_key(|problem| problem.line);
    found
}

fn stanza(line: usize, fields: &Fields) -> Option<Problem> {
    let field = |key: &str| fields.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str());
    let ignored = |reason: String| Some(Problem::error(line, format!("is ignored by apt: {reason}")));
    let Some(name) = field("package").filter(|name| !name.is_empty()) else {
        return Some(problem(line, "the stanza has no `Package`"));
    };
    let Some(pin) = field("pin") else { return ignored("the stanza has no `Pin`".to_owned()) };
    let kind = pin.split_whitespace().next().unwrap_or_default();
    let is_known = TYPES.iter().any(|known| known.eq_ignore_ascii_case(kind));
    if !is_known || kind.eq_ignore_ascii_case("version") && name == "*" {
        return ignored(format!(
            "expected version, release or origin in `Pin`, and no version of all packages, found {pin:?}"
        ));
    }
    match field("pin-priority") {
        Some("never") if name == "*" => None,
        Some("never") => Some(problem(line, "`Pin-Priority: never` is only allowed with `Package: *`")),
        value => {
            let priority = value.map_or(0, number);
            let is_valid = priority != 0 && i16::try_from(priority).is_ok();
            let found = value.unwrap_or("none");
            let reason = format!("expected a `Pin-Priority` from -32768 to 32767 other than 0, found {found}");
            (!is_valid).then(|| problem(line, &reason))
        }
    }
}

/// The number at the start of a text, as strtol(3) reads it.
fn number(text: &str) -> i64 {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = digits.find(|next: char| !next.is_ascii_digit()).unwrap_or(digits.len());
    match (digits[..end].parse::<i64>(), text.starts_with('-')) {
        (Ok(number), true) => -number,
        (Ok(number), false) => number,
        (Err(_), _) if end > 0 => i64::MAX,
        (Err(_), _) => 0,
    }
}
