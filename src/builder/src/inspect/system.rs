//! What a root file system says about its operating system.

use std::collections::BTreeMap;

use vmbake_disk::ext4::{Reach, Want};
use vmbake_disk::tree::{Kind, Tree, TreeError};

use super::System;
use crate::boot::first_entry;

/// Largest text file that is read for a report. Debian's grub.cfg has some 10 KiB.
const MAX_TEXT: u64 = 1 << 20;

/// What a report looks at.
pub(super) const WANTS: [Want<'static>; 4] = [
    Want { path: b"/etc/os-release", reach: Reach::Node },
    Want { path: b"/usr/lib/os-release", reach: Reach::Node },
    Want { path: b"/boot/grub/grub.cfg", reach: Reach::Node },
    Want { path: b"/boot", reach: Reach::Entries },
];

pub(super) fn read(tree: &Tree) -> Result<System, TreeError> {
    let mut os_release = os_release(tree)?;
    Ok(System {
        pretty_name: os_release.remove("PRETTY_NAME"),
        image_id: os_release.remove("IMAGE_ID"),
        image_version: os_release.remove("IMAGE_VERSION"),
        kernels: kernels(tree),
        command_line: text(tree, b"/boot/grub/grub.cfg")?.as_deref().and_then(first_entry).map(|entry| entry.cmdline),
    })
}

/// The assignments of `/etc/os-release`, which is where os-release(5) has programs look first, or of `/usr/lib/os-release`.
pub(crate) fn os_release(tree: &Tree) -> Result<BTreeMap<String, String>, TreeError> {
    let content = match text(tree, b"/etc/os-release")? {
        Some(content) => content,
        None => text(tree, b"/usr/lib/os-release")?.unwrap_or_default(),
    };
    let assignments = content.lines().filter_map(|line| line.trim().split_once('='));
    Ok(assignments
        .filter(|(key, _)| !key.starts_with('#'))
        .map(|(key, value)| (key.to_owned(), unquote(value)))
        .collect())
}

/// A value as a shell would read it: quotes off, backslashes resolved.
fn unquote(value: &str) -> String {
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
    let inner = quote.and_then(|quote| value[1..].strip_suffix(quote)).unwrap_or(value);
    if quote == Some('\'') {
        return inner.to_owned();
    }
    let mut unquoted = String::new();
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        unquoted.extend(if char == '\\' { chars.next() } else { Some(char) });
    }
    unquoted
}

/// Versions of the kernels in `/boot`, sorted as the directory is.
fn kernels(tree: &Tree) -> Vec<String> {
    let boot = tree.resolve(b"/boot").map(|id| &tree.inode(id).kind);
    let Ok(Kind::Directory(entries)) = boot else { return Vec::new() };
    let versions = entries.keys().filter_map(|name| name.strip_prefix(b"vmlinuz-"));
    versions.map(|version| String::from_utf8_lossy(version).into_owned()).collect()
}

/// The text at `path`; `None` where no file is. What cannot be read is an error.
fn text(tree: &Tree, path: &[u8]) -> Result<Option<String>, TreeError> {
    match tree.read(path, MAX_TEXT) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error @ (TreeError::Read { .. } | TreeError::TooLarge { .. })) => Err(error),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_a_shell_reads_them() {
        let cases = [
            ("a", "a"),
            ("\"a b\"", "a b"),
            ("'a\\b'", "a\\b"),
            ("\"a \\\"b\\\"\"", "a \"b\""),
            ("\"", "\""),
            ("", ""),
        ];
        for (value, expected) in cases {
            assert_eq!(unquote(value), expected, "{value}");
        }
    }
}
