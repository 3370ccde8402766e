//! Package URLs (purl specification).
//!
//! Everything but letters, digits, `.`, `-`, `_`, `~` and `:` is percent-encoded as UTF-8, and `/` is not in qualifiers; those are sorted,
//! and the ones without a value are left out.

use vmbake_common::digest::Digest;

/// Builder of a package URL.
pub(super) struct Purl {
    text: String,
    qualifiers: Vec<(&'static str, String)>,
}

impl Purl {
    /// Starts a package URL; `name` can be preceded by namespaces, separated by slashes.
    pub(super) fn new(kind: &str, name: &str, version: Option<&str>) -> Self {
        let parts: Vec<String> = name.split('/').filter(|part| !part.is_empty()).map(encoded).collect();
        let version = version.filter(|version| !version.is_empty());
        let version = version.map_or_else(String::new, |version| format!("@{}", encoded(version)));
        Self { text: format!("pkg:{kind}/{}{version}", parts.join("/")), qualifiers: Vec::new() }
    }

    /// Adds a qualifier, unless its value is empty.
    pub(super) fn with(mut self, key: &'static str, value: &str) -> Self {
        if !value.is_empty() {
            self.qualifiers.push((key, encoded(value).replace("%2F", "/")));
        }
        self
    }

    /// A generic artifact: its URL and digest.
    pub(super) fn generic(name: &str, version: Option<&str>, url: Option<&str>, digest: Option<&Digest>) -> String {
        let digest = digest.map(Digest::to_string).unwrap_or_default();
        Self::new("generic", name, version)
            .with("download_url", url.unwrap_or_default())
            .with("checksum", &digest)
            .text()
    }

    /// A Go module; its path is in lower case.
    pub(super) fn golang(path: &str, version: &str) -> String {
        Self::new("golang", &path.to_lowercase(), Some(version)).text()
    }

    pub(super) fn text(mut self) -> String {
        self.qualifiers.sort();
        for (at, (key, value)) in self.qualifiers.iter().enumerate() {
            let sign = if at == 0 { '?' } else { '&' };
            self.text.push_str(&format!("{sign}{key}={value}"));
        }
        self.text
    }
}

fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'-' | b'_' | b'~' | b':' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_end_a_part_is_encoded() {
        let purl = Purl::new("deb", "debian/libstdc++6", Some("1:14.2~rc1-19+b1"));
        let purl = purl.with("upstream", "gcc-14@14.2.0-19").with("arch", "amd64").with("distro", "").text();
        assert_eq!(purl, "pkg:deb/debian/libstdc%2B%2B6@1:14.2~rc1-19%2Bb1?arch=amd64&upstream=gcc-14%4014.2.0-19");
        let odd = Purl::new("deb", "a?b#c é\n", Some("1@2%")).text();
        assert_eq!(odd, "pkg:deb/a%3Fb%23c%20%C3%A9%0A@1%402%25");
        assert_eq!(
            Purl::golang("github.com/Azure/go", "v1.0.0+incompatible"),
            "pkg:golang/github.com/azure/go@v1.0.0%2Bincompatible"
        );
    }
}
