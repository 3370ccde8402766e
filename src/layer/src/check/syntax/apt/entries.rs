//! The repositories that sources of apt(8) name, each with the keys that sign it.

use super::{TYPES, Words, entry, is_disabled, stanza, stanzas};

/// A suite of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AptSource {
    /// Of the entry, counted from 1.
    pub line: usize,
    /// With a slash at the end, as in messages of apt.
    pub uri: String,
    pub suite: String,
    /// The normal form of `Signed-By`; empty if the entry has none.
    pub signed_by: String,
}

/// The enabled entries of a file that apt reads. Those that are not valid are left out.
pub fn apt_sources(path: &str, text: &str) -> Vec<AptSource> {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("sources") => stanzas(text).0.iter().flat_map(|(line, fields)| of_stanza(*line, fields)).collect(),
        _ => (1..).zip(text.lines()).filter_map(|(line, text)| of_line(line, text)).collect(),
    }
}

fn of_stanza(line: usize, fields: &[(String, String)]) -> Vec<AptSource> {
    let field = |key: &str| {
        let found = fields.iter().filter(|(found, _)| found == key);
        found.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ")
    };
    if field("enabled").split_whitespace().next().is_some_and(is_disabled) || stanza(fields).is_some() {
        return Vec::new();
    }
    let (uris, suites, signed_by) = (field("uris"), field("suites"), field("signed-by"));
    let pairs = uris.split_whitespace().flat_map(|uri| suites.split_whitespace().map(move |suite| (uri, suite)));
    pairs.map(|(uri, suite)| source(line, uri, suite, &signed_by)).collect()
}

fn of_line(line: usize, text: &str) -> Option<AptSource> {
    if entry(text).is_some() {
        return None;
    }
    let mut words = Words(text.trim());
    words.next().flatten().filter(|kind| TYPES.contains(kind))?;
    let mut signed_by = "";
    if let Some((inside, rest)) = words.0.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let mut options = Words(inside).flatten().filter_map(|option| option.split_once('='));
        signed_by = options.find(|(key, _)| key.eq_ignore_ascii_case("signed-by")).map_or("", |(_, value)| value);
        words.0 = rest;
    }
    let (uri, suite) = (words.next().flatten()?, words.next().flatten()?);
    Some(source(line, &uri.replace('"', ""), &suite.replace('"', ""), &signed_by.replace('"', "")))
}

fn source(line: usize, uri: &str, suite: &str, signed_by: &str) -> AptSource {
    let uri = if uri.ends_with('/') { uri.to_owned() } else { format!("{uri}/") };
    AptSource { line, uri, suite: suite.to_owned(), signed_by: normal(signed_by) }
}

/// Files and fingerprints are separated by commas or blanks, and their order counts. A key itself is a text.
pub(super) fn normal(signed_by: &str) -> String {
    let text = signed_by.trim();
    let (is_key, end) = (text.starts_with("-----BEGIN"), |char: char| char.is_whitespace() || char == ',');
    let words = text.split(end).filter(|word| !word.is_empty()).filter(|word| !is_key || *word != ".");
    words.collect::<Vec<_>>().join(if is_key { " " } else { "," })
}
