//! The files of one kind in several directories (`conf_files_list()` of systemd): of those with the same name, the one in the first
//! directory.

use std::collections::BTreeMap;

use vmbake_shell::{Files, Follow, NodeKind};

use super::{MAX_INPUT, Source};
use crate::merge::maintainer::commands::realpath::canonical;

/// A link to it masks a file.
const MASK: &[u8] = b"/dev/null";

/// Why the files are not compiled here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Files whose names have that end, sorted by name. Hidden files do not count.
pub(super) fn conf_files(files: &dyn Files, directories: [&str; 2], end: &[u8]) -> Result<Vec<Source>, TooLarge> {
    let mut found: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for directory in directories {
        let Some(path) = canonical(files, directory.as_bytes()) else { continue };
        let names = files.list(&path).unwrap_or_default();
        for name in names.into_iter().filter(|name| name.ends_with(end) && !name.starts_with(b".")) {
            found.entry(name.clone()).or_insert_with(|| [&path[..], b"/", &name].concat());
        }
    }
    let (mut sources, mut left) = (Vec::new(), MAX_INPUT);
    for path in found.into_values() {
        let content = match files.lookup(&path, Follow::Yes).map(|node| node.kind) {
            Ok(NodeKind::File) => Some(files.read(&path, left).map_err(|_| TooLarge)?),
            // An image has no devices.
            _ => files.read_link(&path).is_ok_and(|target| target == MASK).then(Vec::new),
        };
        left -= content.as_ref().map_or(0, Vec::len);
        sources.push((path, content));
    }
    Ok(sources)
}
