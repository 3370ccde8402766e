//! All paths as data for the table of the page, which shows only the rows that are in view.

use std::collections::BTreeMap;

use serde::Serialize;
use vmbake_disk::tree::Kind;

use super::changes::Changes;
use super::listing::{Listed, Listing};
use crate::escape;

/// The data: rows name layers and artifacts by their places.
#[derive(Debug, Serialize)]
struct PathData<'a> {
    layers: &'a [String],
    artifacts: &'a [String],
    /// Whether the rows have changes.
    compared: bool,
    rows: Vec<Row<'a>>,
}

/// Path, type, mode, owner, length in bytes, layer, artifact, target of a link, change. A path that is gone has no layer.
#[derive(Debug, Serialize)]
struct Row<'a>(&'a str, &'static str, String, String, u64, usize, usize, String, &'static str);

/// The data of all paths, and of those that only an older image has, as JSON that may be in HTML.
pub(super) fn json(listing: &Listing<'_>, changes: Option<&Changes>) -> serde_json::Result<String> {
    let mut marks: BTreeMap<&str, &'static str> = changes.map(Changes::marks).unwrap_or_default();
    let row = |entry| row(entry, |path| marks.remove(path).unwrap_or_default());
    let mut rows: Vec<Row<'_>> = listing.entries.iter().map(row).collect();
    let nobody = listing.layers.len();
    let gone = marks.into_iter().filter(|(_, change)| *change == "removed");
    rows.extend(
        gone.map(|(path, change)| Row(path, "", String::new(), String::new(), 0, nobody, 0, String::new(), change)),
    );
    let (layers, artifacts) = (&listing.layers, &listing.artifacts);
    let json = escape::json_line(&PathData { layers, artifacts, compared: changes.is_some(), rows })?;
    // So that nothing in it ends the element, or begins a comment.
    Ok(json.trim_end().replace('<', "\\u003c"))
}

fn row<'a>(entry: &'a Listed<'_>, change: impl FnOnce(&str) -> &'static str) -> Row<'a> {
    let meta = &entry.inode.meta;
    let (len, target) = match &entry.inode.kind {
        Kind::File(map) => (map.len(), String::new()),
        Kind::Symlink(target) => (0, escape::path(target)),
        _ => (0, String::new()),
    };
    let (mode, owner) = (format!("{:04o}", meta.mode), format!("{}:{}", meta.uid, meta.gid));
    Row(
        &entry.path,
        entry.inode.kind.name(),
        mode,
        owner,
        len,
        entry.layer,
        entry.artifact,
        target,
        change(&entry.path),
    )
}
