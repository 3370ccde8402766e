//! Downloads of scripts, as `downloads` of a layer.

use serde_json::{Value, json};

use super::Writer;
use crate::import::error::ImportError;
use crate::import::machine::{Fetched, What};

/// Most downloads that differ only in where they are from: no layer has as many.
const MAX_ALIKE: u32 = 1000;

impl Writer<'_> {
    pub(super) fn archives(&mut self) -> Result<(), ImportError> {
        let effects = &self.evaluated.effects;
        for unpacked in &effects.unpacked {
            let Some(fetched) = effects.fetched.get(unpacked.fetched) else { continue };
            let extract = if unpacked.keeps_owners { "same-owner" } else { "no-same-owner" };
            let mut install = json!({"type": "tar", "path": unpacked.path, "extract": extract});
            if unpacked.strip > 0 {
                install["strip"] = json!(unpacked.strip);
            }
            if !unpacked.members.is_empty() {
                install["members"] = json!(unpacked.members);
            }
            if !unpacked.absent.is_empty() {
                install["absent"] = json!(unpacked.absent);
            }
            self.download(&unpacked.path, fetched, install)?;
        }
        Ok(())
    }

    /// A file or archive from an address, with what proves it.
    pub(super) fn download(&mut self, path: &str, fetched: &Fetched, install: Value) -> Result<(), ImportError> {
        let What::Url(url) = &fetched.what else { return Ok(()) };
        let rule = self.parts.rules.downloads.get(url).map(|rule| rule.sha256.clone());
        let mut value = json!({"url": url, "version": version(url), "install": install});
        match (rule.or_else(|| fetched.sha256.clone()), &fetched.checksums) {
            (Some(sha256), _) => value["sha256"] = json!(sha256),
            (None, Some(list)) => value["checksums"] = json!(list),
            (None, None) => return Err(ImportError::Unproven { url: url.clone(), path: path.to_owned() }),
        }
        if url.contains(['{', '}']) {
            return Err(ImportError::Tree {
                path: path.to_owned(),
                what: format!("the URL {url} contains braces: percent-encode them"),
            });
        }
        let name = file_name(url);
        let taken = |name: &String| self.document.downloads.contains_key(name);
        let mut names = std::iter::once(name.clone()).chain((2..=MAX_ALIKE).map(|number| format!("{name}-{number}")));
        let Some(name) = names.find(|name| !taken(name)) else {
            let what = format!("more than {MAX_ALIKE} downloads are named {name}: remove some of them");
            return Err(ImportError::Tree { path: path.to_owned(), what });
        };
        self.document.downloads.insert(name, value);
        Ok(())
    }
}

/// The name of a download: the last part of its address, without its version, its architecture, and what says how it is packed.
fn file_name(url: &str) -> String {
    let last = url.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let bare = [".tar.gz", ".tgz", ".tar"].iter().find_map(|ending| last.strip_suffix(ending)).unwrap_or(&last);
    let is_inside = |char: char| char.is_ascii_alphanumeric() || "-+._".contains(char);
    let mut name: String = bare.chars().map(|char| if is_inside(char) { char } else { '-' }).collect();
    for arch in ["x86_64", "x86-64", "amd64", "aarch64", "arm64"] {
        name = name.replace(arch, "");
    }
    let is_version = |rest: &str| rest.starts_with(|char: char| char.is_ascii_digit());
    let version = name.match_indices("-v").map(|(at, _)| at).find(|at| name.get(at + 2..).is_some_and(is_version));
    let cut = name.find("-linux").into_iter().chain(version).filter(|at| *at > 0).min();
    let name = cut.and_then(|at| name.get(..at)).unwrap_or(&name).trim_matches(['-', '_', '.', '+']);
    if name.is_empty() { "file".to_owned() } else { name.to_owned() }
}

/// The version that an address names, else its last part.
fn version(url: &str) -> String {
    let is_inside = |char: char| char.is_ascii_digit() || char == '.';
    let words = url.split(|char: char| !(char.is_ascii_alphanumeric() || ".+".contains(char)));
    let numbers = words.filter_map(|word| {
        let digits = word.strip_prefix('v').unwrap_or(word);
        let end = digits.find(|char| !is_inside(char)).unwrap_or(digits.len());
        let number = digits.get(..end)?.trim_end_matches('.');
        (number.matches('.').count() >= 1 && number.starts_with(|char: char| char.is_ascii_digit())).then_some(number)
    });
    numbers.max_by_key(|number| number.matches('.').count()).unwrap_or("1").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_what_they_have() {
        for (url, name, number) in [
            ("https://dl.k8s.io/v1.34.2/bin/linux/amd64/kubelet", "kubelet", "1.34.2"),
            ("https://h/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz", "cni-plugins", "1.9.1"),
            ("https://h/v1.36.0/crictl-v1.36.0-linux-arm64.tar.gz", "crictl", "1.36.0"),
            ("https://h/Tool", "tool", "1"),
            ("https://h/_x", "x", "1"),
            ("https://h/tool-x86_64.tgz", "tool", "1"),
            ("https://h/amd64", "file", "1"),
        ] {
            assert_eq!((file_name(url).as_str(), version(url).as_str()), (name, number), "{url}");
        }
    }
}
