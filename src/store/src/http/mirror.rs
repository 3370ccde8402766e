//! Mirrors: replacement URLs for URL prefixes.

use std::collections::BTreeMap;
use std::str::FromStr;

use vmbake_common::address::{self, UrlCredentials};
use vmbake_common::hint::Hint;

/// URL prefixes with their replacements. The longest matching prefix applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrors {
    map: BTreeMap<String, String>,
}

/// An invalid mirror.
#[derive(Debug, thiserror::Error)]
pub enum InvalidMirror {
    #[error("invalid mirror {0:?}: expected PREFIX=URL with two http or https URLs that end with '/'")]
    Form(String),
    #[error("{0}")]
    Credentials(UrlCredentials),
}

impl Hint for InvalidMirror {}

impl Mirrors {
    /// Adds a mirror, replacing an earlier one for the same prefix.
    pub fn insert(&mut self, mirror: Mirror) {
        self.map.insert(mirror.prefix, mirror.target);
    }

    /// Adds a mirror unless a shorter or equal prefix has one already.
    pub fn insert_default(&mut self, mirror: Mirror) {
        if !self.map.keys().any(|prefix| mirror.prefix.starts_with(prefix.as_str())) {
            self.insert(mirror);
        }
    }

    /// The URL to request in place of `url`.
    pub fn map(&self, url: &str) -> String {
        let longest = self.map.iter().rev().filter_map(|(prefix, target)| Some((target, url.strip_prefix(prefix)?)));
        match longest.min_by_key(|(_, rest)| rest.len()) {
            Some((target, rest)) => format!("{target}{rest}"),
            None => url.to_owned(),
        }
    }
}

/// A mirror, written `PREFIX=URL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    prefix: String,
    target: String,
}

impl Mirror {
    /// Maps URLs that start with `prefix` to `target`. A missing `/` at their ends is added, since `https://a.example`
    /// must not match `https://a.example.org/`.
    pub fn new(prefix: &str, target: &str) -> Result<Self, InvalidMirror> {
        if [prefix, target].into_iter().any(address::has_userinfo) {
            return Err(InvalidMirror::Credentials(UrlCredentials));
        }
        let is_address = |url: &str| url.starts_with("https://") || url.starts_with("http://");
        if !is_address(prefix) || !is_address(target) {
            return Err(InvalidMirror::Form(format!("{prefix}={target}")));
        }
        let closed = |url: &str| format!("{}/", url.trim_end_matches('/'));
        Ok(Self { prefix: closed(prefix), target: closed(target) })
    }
}

impl FromStr for Mirror {
    type Err = InvalidMirror;

    fn from_str(text: &str) -> Result<Self, InvalidMirror> {
        let (prefix, target) = text.split_once('=').ok_or_else(|| InvalidMirror::Form(text.to_owned()))?;
        Self::new(prefix, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let mut mirrors = Mirrors::default();
        for text in ["https://a.example=http://m/a", "https://a.example/deep/=http://m/deep/"] {
            mirrors.insert(text.parse().unwrap());
        }
        mirrors.insert_default("https://a.example/deep/er=http://default".parse().unwrap());
        assert_eq!(mirrors.map("https://a.example/x"), "http://m/a/x");
        assert_eq!(mirrors.map("https://a.example/deep/er/x"), "http://m/deep/er/x");
        assert_eq!(mirrors.map("https://a.example.org/x"), "https://a.example.org/x");
        for wrong in ["", "x", "a=b", "https://a", "ftp://a=http://b", "http://a=file:///etc"] {
            assert!(wrong.parse::<Mirror>().is_err(), "{wrong}");
        }
    }
}
