//! All paths as data for the table of the report, which renders only visible rows.

use std::collections::BTreeMap;

use serde::Serialize;
use vmbake_disk::tree::Kind;

use super::changes::Changes;
use super::listing::{Listed, Listing};
use super::sizes::DEPTH;
use vmbake_common::escape;

/// Maximum number of rows: browsers and this program keep all of them in memory.
pub(super) const MAX_ROWS: usize = 300_000;

/// The data; rows refer to layers and artifacts by index.
#[derive(Debug, Serialize)]
struct PathData<'a> {
    layers: &'a [String],
    artifacts: &'a [String],
    /// Whether the rows have changes.
    compared: bool,
    /// Directory depth of the treemap.
    depth: usize,
    rows: Vec<Row<'a>>,
}

/// Path, type, mode, owner, length in bytes, layer, artifact, link target, change. A removed path has no layer.
#[derive(Debug, Serialize)]
struct Row<'a>(&'a str, &'static str, String, String, u64, usize, usize, String, &'static str);

/// The data of the first `limit` paths, and of removed ones, as JSON that is safe in HTML.
pub(super) fn json(listing: &Listing<'_>, changes: Option<&Changes>, limit: usize) -> serde_json::Result<String> {
    let mut marks: BTreeMap<&str, &'static str> = changes.map(Changes::marks).unwrap_or_default();
    let row = |entry| row(entry, |path| marks.remove(path).unwrap_or_default());
    let mut rows: Vec<Row<'_>> = listing.entries.iter().take(limit).map(row).collect();
    let removed = listing.layers.len();
    let gone = marks.into_iter().filter(|(_, change)| *change == "removed").take(limit);
    rows.extend(
        gone.map(|(path, change)| Row(path, "", String::new(), String::new(), 0, removed, 0, String::new(), change)),
    );
    let (layers, artifacts) = (&listing.layers, &listing.artifacts);
    let json = escape::json_line(&PathData { layers, artifacts, compared: changes.is_some(), depth: DEPTH, rows })?;
    // Prevents the end of the element and the start of a comment.
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use vmbake_disk::source::Map;
    use vmbake_disk::tree::{Inode, Metadata, Origin, Timestamp, Tree};

    use super::*;

    #[test]
    fn rows_say_what_the_tree_says() {
        let meta = |mode| Metadata::root(mode, Timestamp::default());
        let mut tree = Tree::new(meta(0o755), Origin::default());
        let origin = tree.first_origin();
        for (path, kind) in [
            (&b"/<!--\xff"[..], Kind::File(Map::hole(7))),
            (b"/a\n", Kind::Symlink(b"</script>\xfe".to_vec())),
            (b"/z", Kind::Fifo),
        ] {
            tree.place(path, Inode { meta: meta(0o644), kind, origin }).unwrap();
        }
        let mut notes = Vec::new();
        let listing = Listing::read(&tree, None, &mut notes);
        let text = json(&listing, None, 3).unwrap();
        assert!(!text.contains('<') && notes.is_empty(), "{text} {notes:?}");
        let found: Value = serde_json::from_str(&text).unwrap();
        let rows = json!([
            ["/", "directory", "0755", "0:0", 0, 0, 0, "", ""],
            ["/<!--\\xff", "regular file", "0644", "0:0", 7, 0, 0, "", ""],
            ["/a\\x0a", "symbolic link", "0644", "0:0", 0, 0, 0, "</script>\\xfe", ""],
        ]);
        assert_eq!(found["rows"], rows, "and no more than three");
        assert_eq!((&found["artifacts"], &found["compared"]), (&json!([""]), &json!(false)));
    }
}
