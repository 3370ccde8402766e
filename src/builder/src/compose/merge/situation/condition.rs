//! Whether the condition of an `if` holds: tests of known words are decided, other tests may hold or not.

use debversion::Version;

use super::Arguments;
use crate::compose::merge::lex::code;

/// What is known about a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::compose::merge) enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    fn of(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// Whether tests joined by `&&` and `||`, from left to right, hold. `Unknown` too where a term is more than a test: it
/// may change something.
pub(super) fn truth(condition: &str, arguments: Arguments<'_>) -> Truth {
    // What is searched for below must not be in quotes.
    if code(condition).is_none_or(|code| code.hides) {
        return Truth::Unknown;
    }
    let mut so_far = None;
    let mut rest = condition;
    let mut and = true;
    loop {
        let next = [rest.find("&&"), rest.find("||")].into_iter().flatten().min();
        let (term, operator, after) = match next {
            Some(at) => (&rest[..at], &rest[at..at + 2], &rest[at + 2..]),
            None => (rest, "", ""),
        };
        let Some(term) = test(term.trim(), arguments) else { return Truth::Unknown };
        so_far = Some(match (so_far, and) {
            (None, _) => term,
            (Some(Truth::False), true) | (Some(Truth::True), false) => so_far.unwrap_or(term),
            (Some(Truth::True), true) | (Some(Truth::False), false) => term,
            (Some(Truth::Unknown), true) if term == Truth::False => Truth::False,
            (Some(Truth::Unknown), false) if term == Truth::True => Truth::True,
            (Some(Truth::Unknown), _) => Truth::Unknown,
        });
        if operator.is_empty() {
            return so_far.unwrap_or(Truth::Unknown);
        }
        (rest, and) = (after, operator == "&&");
    }
}

/// One test; `None` where it is anything else.
fn test(term: &str, arguments: Arguments<'_>) -> Option<Truth> {
    if term.contains(['`', ';', '<', '>', '|', '&', '\\']) || term.contains("$(") {
        return None;
    }
    if let Some(term) = term.strip_prefix("! ") {
        return test(term.trim_start(), arguments).map(Truth::not);
    }
    if let Some(versions) = term.strip_prefix("dpkg --compare-versions ") {
        return compare(versions, arguments);
    }
    let inner = match term.strip_prefix("[ ") {
        Some(inner) => inner.strip_suffix(" ]")?,
        None => term.strip_prefix("test ")?,
    };
    let words: Vec<&str> = inner.split_whitespace().collect();
    // `-a` binds closer than `-o`.
    let mut any = Truth::False;
    for group in words.split(|word| *word == "-o") {
        let mut all = Truth::True;
        for words in group.split(|word| *word == "-a") {
            all = match (all, simple(words, arguments)) {
                (Truth::False, _) | (_, Truth::False) => Truth::False,
                (Truth::True, Truth::True) => Truth::True,
                _ => Truth::Unknown,
            };
        }
        any = match (any, all) {
            (Truth::True, _) | (_, Truth::True) => Truth::True,
            (Truth::False, Truth::False) => Truth::False,
            _ => Truth::Unknown,
        };
    }
    Some(any)
}

fn simple(words: &[&str], arguments: Arguments<'_>) -> Truth {
    let value = |word: &str| value(word, arguments);
    match words {
        ["!", rest @ ..] => simple(rest, arguments).not(),
        ["-n", word] => value(word).map_or(Truth::Unknown, |word| Truth::of(!word.is_empty())),
        ["-z", word] => value(word).map_or(Truth::Unknown, |word| Truth::of(word.is_empty())),
        ["-d" | "-e", "/run/systemd/system"] => Truth::False,
        [left, operator @ ("=" | "==" | "!="), right] => match (value(left), value(right)) {
            (Some(left), Some(right)) => Truth::of((left == right) == (*operator != "!=")),
            _ => Truth::Unknown,
        },
        _ => Truth::Unknown,
    }
}

/// `dpkg --compare-versions`, whose operators treat an empty version as earlier than all, with `-nl` as later. Nothing is
/// compared that is not known.
fn compare(versions: &str, arguments: Arguments<'_>) -> Option<Truth> {
    let words: Vec<&str> = versions.split_whitespace().filter(|word| *word != "--").collect();
    let [left, operator, right] = words.as_slice() else { return None };
    let version = |word: &str| value(word, arguments).and_then(|word| word.parse::<Version>().ok());
    let (Some(left), Some(right)) = (version(left), version(right)) else { return Some(Truth::Unknown) };
    Some(match operator.strip_suffix("-nl").unwrap_or(operator) {
        "lt" | "<<" => Truth::of(left < right),
        "le" | "<=" => Truth::of(left <= right),
        "eq" | "=" => Truth::of(left == right),
        "ne" => Truth::of(left != right),
        "ge" | ">=" => Truth::of(left >= right),
        "gt" | ">>" => Truth::of(left > right),
        _ => Truth::Unknown,
    })
}

/// The text of a word, where it is one of the arguments, empty on every machine, or said literally.
pub(super) fn value(word: &str, arguments: Arguments<'_>) -> Option<String> {
    let quoted = |quote: char| word.strip_prefix(quote).and_then(|word| word.strip_suffix(quote));
    if let Some(literal) = quoted('\'') {
        return (!literal.contains('\'')).then(|| literal.to_owned());
    }
    let in_double = quoted('"');
    let word = in_double.unwrap_or(word);
    // Without quotes an empty word is none, and what looks like the name of a file may become one.
    let splits = |c: char| c.is_whitespace() || matches!(c, '*' | '?' | '[' | ']' | '{' | '}');
    let is_plain = |text: &str| !text.is_empty() && !text.starts_with('~') && !text.contains(splits);
    let found = match word {
        "$1" | "${1}" | "${1:-}" => Some(arguments.action.to_owned()),
        "$2" | "${2}" | "${2:-}" => Some(arguments.version.to_owned()),
        "$DPKG_ROOT" | "${DPKG_ROOT}" | "${DPKG_ROOT:-}" => Some(String::new()),
        _ => (!word.contains(['$', '`', '"', '\'', '\\'])).then(|| word.to_owned()),
    };
    found.filter(|text| in_double.is_some() || is_plain(text))
}
