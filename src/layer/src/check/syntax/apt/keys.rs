//! Keys that sign the sources of apt(8): `Signed-By` of entries.

use std::collections::BTreeMap;

use super::Words;
use super::entries::normal;

/// Length of a fingerprint, in hexadecimal digits.
const FINGERPRINT: usize = 40;

/// Begin of a key instead of its path.
const BLOCK: &str = "-----BEGIN";

/// `Signed-By` by the address and the suite.
#[derive(Default)]
pub(super) struct Keys(BTreeMap<(String, String), String>);

impl Keys {
    /// What apt does not take of the keys of sources, which are addresses with suites.
    pub(super) fn fault(&mut self, sources: &[(String, String)], signed_by: &str) -> Option<String> {
        let mut keys = signed_by.split(|next: char| next == ',' || next.is_whitespace()).filter(|key| !key.is_empty());
        let is_key = |key: &str| {
            let digits = key.strip_suffix('!').unwrap_or(key);
            key.starts_with('/') || digits.len() == FINGERPRINT && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let wrong = keys.find(|key| !is_key(key)).filter(|_| !signed_by.starts_with(BLOCK));
        if let Some(wrong) = wrong {
            return Some(format!("expected the path or fingerprint of a key in Signed-By, found {wrong:?}"));
        }
        sources.iter().find_map(|(uri, suite)| {
            let source = (format!("{}/", uri.trim_end_matches('/')), suite.clone());
            let first = self.0.entry(source).or_insert_with(|| normal(signed_by));
            (*first != normal(signed_by)).then(|| format!("{uri} {suite} has another Signed-By in an earlier entry"))
        })
    }
}

/// The source of a valid line with the option `signed-by`, and the value.
pub(super) fn signed_line(line: &str) -> Option<(Vec<(String, String)>, String)> {
    let (_, options) = line.split_once('[')?;
    let (inside, rest) = options.split_once(']')?;
    let mut options = Words(inside).flatten();
    let value = options.find_map(|option| option.strip_prefix("signed-by="))?.replace('"', "");
    let mut words = Words(rest).flatten();
    let source = (words.next()?.to_owned(), words.next()?.to_owned());
    Some((vec![source], value))
}

/// What apt does not take of `Signed-By` in a valid stanza.
pub(super) fn signed_stanza(fields: &[(String, String)], keys: &mut Keys) -> Option<String> {
    let field = |key: &str| fields.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str());
    let signed_by = field("signed-by").map(str::trim).filter(|value| !value.is_empty())?;
    let suites = field("suites")?.split_whitespace();
    let sources = suites.flat_map(|suite| {
        let uris = field("uris").unwrap_or_default().split_whitespace();
        uris.map(move |uri| (uri.to_owned(), suite.to_owned()))
    });
    keys.fault(&sources.collect::<Vec<_>>(), signed_by)
}
