//! Reads and sets keys of os-release(5).

use std::collections::BTreeMap;

use super::MergeError;
use super::place::Target;
use vmbake_manifest::Manifest;

/// Whether the system is Debian 12 or older, going by the file of the distribution: its programs differ from later ones.
pub(super) fn is_debian_12_or_older(target: &Target) -> Result<bool, MergeError> {
    let is_old = |line: &str| matches!(line.trim(), "VERSION_ID=\"11\"" | "VERSION_ID=\"12\"");
    Ok(target.text_or_empty("/usr/lib/os-release")?.lines().any(is_old))
}

/// Sets keys of os-release(5). The file of the distribution belongs to a package, whose digests must go on to match; so
/// `/etc/os-release`, which is a link to it and wins over it, becomes a regular file.
pub(super) fn set(target: &mut Target, keys: &BTreeMap<String, String>, manifest: &Manifest) -> Result<(), MergeError> {
    if keys.is_empty() {
        return Ok(());
    }
    let path = "/etc/os-release";
    let mut lines: Vec<String> = target.text(path)?.lines().map(str::to_owned).collect();
    for (key, value) in keys {
        let content = manifest.content();
        let value = value.replace("{kind}", &content.kind).replace("{version}", &content.version);
        lines.retain(|line| !line.starts_with(&format!("{key}=")));
        lines.push(format!("{key}={}", quoted(&value)));
    }
    let meta = target.meta(0o644);
    target.file(path, meta, (lines.join("\n") + "\n").into_bytes())
}

/// A value as os-release(5) wants it: with quotes, unless a shell takes it as it is.
fn quoted(value: &str) -> String {
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        return value.to_owned();
    }
    let special = |char| matches!(char, '"' | '$' | '\\' | '`');
    let escaped = value.chars().flat_map(|char| special(char).then_some('\\').into_iter().chain([char]));
    format!("\"{}\"", escaped.collect::<String>())
}
