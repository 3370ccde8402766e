//! Values of settings with paths: files that are mounted, opened or linked.

pub(super) fn is_path(value: &str) -> bool {
    value.starts_with('/') && is_normal(value)
}

pub(super) fn is_normal(path: &str) -> bool {
    path.split('/').all(|name| name != "..")
}

pub(super) fn is_relative(path: &str) -> bool {
    !path.starts_with('/') && path != "." && is_normal(path)
}

/// A path whose absence may be ignored.
fn is_optional(path: &str) -> bool {
    is_path(path.strip_prefix('-').unwrap_or(path))
}

/// `SOURCE[:DESTINATION[:OPTION]]`.
pub(super) fn is_bind(word: &str) -> bool {
    let mut parts = word.splitn(3, ':');
    word.contains('\\')
        || parts.next().is_some_and(is_optional)
            && parts.next().is_none_or(is_path)
            && parts.next().is_none_or(|option| ["", "rbind", "norbind"].contains(&option))
}

/// An image, the place where it is mounted if it has one, and options of its partitions.
pub(super) fn is_image(word: &str, has_place: bool, partitions: &[&str]) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    let (paths, options) = parts.split_at(parts.len().min(if has_place { 2 } else { 1 }));
    let is_known = |partition: &[&str]| partition.len() < 2 || partitions.contains(&partition[0]);
    let are_paths = match paths {
        [source, place] => is_optional(source) && is_path(place),
        [source] => is_optional(source) && !has_place,
        _ => false,
    };
    word.contains('\\') || are_paths && options.chunks(2).all(is_known)
}

/// `PATH[:NAME[:OPTIONS]]`.
pub(super) fn is_open_file(value: &str) -> bool {
    let parts: Vec<&str> = value.split(':').collect();
    let flags = parts.get(2).copied().unwrap_or_default();
    let exclusive = |flag: &&str| ["read-only", "append", "truncate"].contains(flag);
    let is_flag = |flag: &str| ["", "graceful"].contains(&flag) || exclusive(&flag);
    let count = flags.split(',').filter(exclusive).count();
    value.contains('\\') || value.starts_with('/') && parts.len() <= 3 && flags.split(',').all(is_flag) && count <= 1
}

/// Absolute paths between colons.
pub(super) fn is_search(value: &str) -> bool {
    value.split(':').all(|path| path.starts_with(['/', '%']))
}

/// An address of documentation (systemd.unit(5)).
pub(super) fn is_documentation(address: &str) -> bool {
    let kinds = ["http://", "https://", "file:/", "info:", "man:"];
    let rest = kinds.iter().find_map(|kind| address.strip_prefix(kind));
    rest.is_some_and(|rest| !rest.is_empty() && rest.is_ascii())
}
