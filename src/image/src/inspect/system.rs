//! The operating system according to the root file system.

use std::collections::BTreeMap;

use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::layout::Part;
use vmbake_disk::tree::{Kind, Tree, TreeError};

use super::InstalledSystem;
use crate::disk::{DiskImage, InspectError};
use crate::grub::{self, BootPlace, first_entry};

/// Maximum size of a text file. Debian's grub.cfg has some 10 KiB.
const MAX_TEXT: u64 = 1 << 20;

/// The files of the root file system that a report reads.
const WANTS: [Want<'static>; 2] =
    [Want { path: b"/etc/os-release", depth: Depth::Node }, Want { path: b"/usr/lib/os-release", depth: Depth::Node }];

/// Reads the root partition and a separate `/boot` partition. Also returns why parts were not read.
pub(super) fn read(image: &DiskImage, root: &Part) -> Result<(InstalledSystem, Option<InspectError>), InspectError> {
    let failed = |error| InspectError::Tree { path: image.path().to_owned(), error };
    let tree = image.tree(root, Some(&[&WANTS[..], &grub::WANTS].concat()))?;
    let mut os_release = os_release(&tree).map_err(failed)?;
    let mut system = InstalledSystem {
        pretty_name: os_release.remove("PRETTY_NAME"),
        image_id: os_release.remove("IMAGE_ID"),
        image_version: os_release.remove("IMAGE_VERSION"),
        ..InstalledSystem::default()
    };
    let unread = read_boot(image, &BootPlace::find(image, root, &tree), &mut system).err();
    Ok((system, unread))
}

fn read_boot(image: &DiskImage, place: &BootPlace<'_>, system: &mut InstalledSystem) -> Result<(), InspectError> {
    let wants = [
        Want { path: place.config.as_bytes(), depth: Depth::Node },
        Want { path: place.dir.as_bytes(), depth: Depth::Entries },
    ];
    let tree = image.tree(place.part, Some(&wants))?;
    system.kernels = kernels(&tree, place.dir);
    let menu = text(&tree, place.config.as_bytes());
    let menu = menu.map_err(|error| InspectError::Tree { path: image.path().to_owned(), error })?;
    system.command_line = menu.as_deref().and_then(first_entry).map(|entry| entry.cmdline);
    Ok(())
}

/// The assignments of `/etc/os-release`, which takes precedence according to os-release(5), or of
/// `/usr/lib/os-release`.
pub fn os_release(tree: &Tree) -> Result<BTreeMap<String, String>, TreeError> {
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

/// A value as a shell would read it: without quotes, and with backslashes resolved.
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

/// Versions of the kernels in a directory, in its order.
fn kernels(tree: &Tree, dir: &str) -> Vec<String> {
    let boot = tree.resolve(dir.as_bytes()).map(|id| &tree.inode(id).kind);
    let Ok(Kind::Directory(entries)) = boot else { return Vec::new() };
    let versions = entries.keys().filter_map(|name| name.strip_prefix(b"vmlinuz-"));
    versions.map(|version| String::from_utf8_lossy(version).into_owned()).collect()
}

/// The text at `path`; `None` if there is no file. An unreadable file is an error.
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
