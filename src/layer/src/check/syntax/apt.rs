//! Sources of apt(8), as in sources.list(5): an entry that is not valid makes every command of apt fail.

mod config;
mod entries;
mod keys;
mod preferences;

pub(super) use config::check as check_config;
pub use entries::{AptSource, apt_sources};
pub(super) use preferences::check as check_preferences;

use super::Problem;
use keys::{Keys, signed_line, signed_stanza};

/// Types of entries.
const TYPES: [&str; 2] = ["deb", "deb-src"];

/// Values of `Enabled` that disable an entry.
const DISABLED: [&str; 6] = ["0", "no", "false", "without", "off", "disable"];

fn is_disabled(value: &str) -> bool {
    DISABLED.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Checks a file in the one-line form.
pub(super) fn check_list(text: &str) -> Vec<Problem> {
    let (mut found, mut keys) = (Vec::new(), Keys::default());
    for (index, line) in text.lines().enumerate() {
        let reason = entry(line).or_else(|| {
            let (sources, signed_by) = signed_line(line)?;
            keys.fault(&sources, &signed_by)
        });
        found.extend(reason.map(|reason| problem(index + 1, &reason)));
    }
    found
}

/// Checks a file of stanzas.
pub(super) fn check_sources(text: &str) -> Vec<Problem> {
    let (stanzas, mut found) = stanzas(text);
    let mut keys = Keys::default();
    for (line, fields) in stanzas {
        let reason = stanza(&fields).or_else(|| signed_stanza(&fields, &mut keys));
        found.extend(reason.map(|reason| problem(line, &reason)));
    }
    found.sort_by_key(|problem| problem.line);
    found
}

/// Names, in small letters, and values of fields.
type Fields = Vec<(String, String)>;

/// The stanzas of a file, each with its first line, and the lines that are not fields.
fn stanzas(text: &str) -> (Vec<(usize, Fields)>, Vec<Problem>) {
    let (mut found, mut wrong, mut stanza, mut start) = (Vec::new(), Vec::new(), Fields::new(), 0);
    for (index, line) in text.lines().chain([""]).enumerate() {
        if line.starts_with('#') {
            continue;
        }
        if line.trim_end().is_empty() && (stanza.is_empty() || !line.starts_with([' ', '\t'])) {
            if !stanza.is_empty() {
                found.push((start, std::mem::take(&mut stanza)));
            }
            continue;
        }
        if stanza.is_empty() {
            start = index + 1;
        }
        match (line.starts_with([' ', '\t']), stanza.last_mut(), line.split_once(':')) {
            (true, Some((_, value)), _) => {
                value.push(' ');
                value.push_str(line.trim());
            }
            (false, _, Some((key, value))) => {
                stanza.push((key.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
            (true, ..) => {}
            _ => wrong.push(problem(index + 1, &format!("expected KEY: VALUE, found {line:?}"))),
        }
    }
    (found, wrong)
}

fn problem(line: usize, reason: &str) -> Problem {
    Problem::error(line, format!("makes every command of apt fail: {reason}"))
}

/// What is wrong with a stanza.
fn stanza(fields: &[(String, String)]) -> Option<String> {
    let field = |key: &str| {
        let values = fields.iter().filter(|(found, _)| found == key);
        values.flat_map(|(_, value)| value.split_whitespace()).collect::<Vec<_>>()
    };
    let types = field("types");
    if let Some(unknown) = types.iter().find(|found| !TYPES.contains(found)) {
        return Some(format!("expected the type deb or deb-src, found {unknown:?}"));
    }
    let is_disabled = field("enabled").first().is_some_and(|value| is_disabled(value));
    let missing = |key: &str| Some(format!("the entry has no `{key}`"));
    match (types.is_empty(), field("uris"), field("suites")) {
        (true, ..) => missing("Types"),
        (false, ..) if is_disabled => None,
        (_, uris, _) if uris.is_empty() => missing("URIs"),
        (.., suites) if suites.is_empty() => missing("Suites"),
        (_, uris, suites) => {
            let components = field("components");
            let fault = suites.into_iter().find_map(|suite| suite_fault(suite, components.len()));
            uris.into_iter().find_map(uri_fault).or(fault)
        }
    }
}

/// What is wrong with a line, of which comments and empty ones are none.
fn entry(line: &str) -> Option<String> {
    let mut words = Words(line.trim());
    let kind = words.next().map(|word| word.unwrap_or_default()).filter(|kind| !kind.starts_with('#'))?;
    if !TYPES.contains(&kind) {
        return Some(format!("expected deb or deb-src, found {kind:?}"));
    }
    if let Some(options) = words.0.trim_start().strip_prefix('[') {
        let Some((inside, rest)) = options.split_once(']') else {
            return Some("expected `]` after the options, found the end of the line".to_owned());
        };
        let Some(options) = Words(inside).collect::<Option<Vec<&str>>>() else {
            return Some("expected a closing quote in the options".to_owned());
        };
        if let Some(word) = options.iter().find(|word| !is_option(word)) {
            return Some(format!("expected options such as `arch=amd64`, found {word:?}"));
        }
        if !rest.is_empty() && !rest.starts_with(char::is_whitespace) && !inside.ends_with(char::is_whitespace) {
            return Some("expected a blank after the options".to_owned());
        }
        words.0 = rest;
    }
    let words: Vec<&str> = match words.take_while(|word| *word != Some("#")).collect() {
        Some(words) => words,
        None => return Some("expected a closing quote or bracket, found the end of the line".to_owned()),
    };
    let end = words.iter().position(|word| word.starts_with('#')).unwrap_or(words.len());
    match words.get(..end).unwrap_or_default() {
        [] | [_] => Some("expected an address and a suite after the type".to_owned()),
        [uri, suite, components @ ..] => uri_fault(uri).or_else(|| suite_fault(suite, components.len())),
    }
}

/// Whether a word is a key and a value, neither of them empty.
fn is_option(word: &str) -> bool {
    word.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.replace('"', "").is_empty())
}

fn uri_fault(uri: &str) -> Option<String> {
    let uri = uri.trim_start_matches('"');
    let is_scheme = |scheme: &str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    let has_scheme = uri.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme));
    (!has_scheme).then(|| format!("expected an address such as https://HOST/PATH, found {uri:?}"))
}

/// A suite that is a path has no components, and any other one has some.
fn suite_fault(suite: &str, components: usize) -> Option<String> {
    match (suite.ends_with('/'), components) {
        (true, 1..) => Some(format!("the suite {suite:?} ends with a slash, so it has no components")),
        (false, 0) => Some(format!("expected components such as `main` after the suite {suite:?}")),
        _ => None,
    }
}

/// Words between blanks, which may stand in quotes or brackets; `None` for one that does not end.
pub(super) struct Words<'a>(pub(super) &'a str);

impl<'a> Iterator for Words<'a> {
    type Item = Option<&'a str>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.trim_start();
        let mut open = None;
        for (at, next) in text.char_indices() {
            match (open, next) {
                (Some(end), _) if next == end => open = None,
                (None, '"') => open = Some('"'),
                (None, '[') => open = Some(']'),
                (None, _) if next.is_whitespace() => {
                    let (word, rest) = text.split_at(at);
                    self.0 = rest;
                    return Some(Some(word));
                }
                _ => {}
            }
        }
        self.0 = "";
        (!text.is_empty()).then(|| open.is_none().then_some(text))
    }
}
