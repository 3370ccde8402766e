//! Suggestions for misspelled names.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::Path;

use vmbake_disk::image::quoted;

/// Maximum number of suggestions.
const SUGGESTED: usize = 3;

/// Maximum number of directory entries searched for similar names.
const MAX_ENTRIES: usize = 10_000;

/// Known names that differ in at most a third of the characters, nearest first; case is ignored.
pub fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let upper = |text: &str| text.to_ascii_uppercase().into_bytes();
    let name = upper(name);
    // The distance is at least the difference of the lengths.
    let known = known.into_iter().filter(|other| name.len().abs_diff(other.len()) * 3 <= other.len());
    let distances = known.map(|other| (distance(&name, &upper(other)), other));
    let mut near: Vec<(usize, &str)> = distances.filter(|(distance, other)| distance * 3 <= other.len()).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(SUGGESTED).map(|(_, other)| other.to_owned()).collect()
}

/// The question whether one of these names was meant.
pub fn did_you_mean(names: &[String]) -> String {
    format!("did you mean `{}`?", names.join("` or `"))
}

/// The hint for a path that cannot be opened: a similar name in its directory, otherwise `other`. Existing files that
/// cannot be read get no such hint.
pub fn of_path(path: &Path, error: &io::Error, other: &str) -> Option<String> {
    match error.kind() {
        ErrorKind::NotFound => Some(similar_sibling(path).unwrap_or_else(|| other.to_owned())),
        ErrorKind::NotADirectory | ErrorKind::IsADirectory => Some(other.to_owned()),
        _ => None,
    }
}

/// The file in the same directory that may have been meant.
fn similar_sibling(path: &Path) -> Option<String> {
    let folder = path.parent()?;
    let at = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = std::fs::read_dir(at).ok()?.take(MAX_ENTRIES).flatten();
    let names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let near = near(path.file_name().and_then(OsStr::to_str)?, names.iter().map(String::as_str));
    let near: Vec<String> = near.into_iter().map(|name| quoted(&folder.join(name))).collect();
    if near.is_empty() { None } else { Some(did_you_mean(&near)) }
}

/// The Levenshtein distance in bytes.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, from) in (1..).zip(a) {
        // The value diagonally above.
        let mut corner = std::mem::replace(&mut row[0], line);
        for (column, to) in (1..).zip(b) {
            let replaced = corner + usize::from(from != to);
            corner = row[column];
            row[column] = replaced.min(corner + 1).min(row[column - 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("", "AB", 2), ("KUBE", "CUBE", 1), ("KITTEN", "SITTING", 3), ("AB", "BA", 2)]
        {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
            assert_eq!(distance(b.as_bytes(), a.as_bytes()), expected, "{b} {a}");
        }
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = ["KUBE_API_PORT", "NETSY_BUCKET", "REGISTRY_BUCKET"];
        assert_eq!(near("KUBE_APIPORT", known), ["KUBE_API_PORT"]);
        assert_eq!(near("netsy_bucket", known), ["NETSY_BUCKET", "REGISTRY_BUCKET"]);
        assert_eq!(near("nod", ["knc", "knd", "node", "node"]), ["node"]);
        assert!(near("HOME", known).is_empty());
    }
}
