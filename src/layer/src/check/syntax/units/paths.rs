//! Values of settings with paths: files that are mounted, opened or linked.

use super::lexer;
use super::words::is_label;

pub(super) fn is_path(value: &str) -> bool {
    value.starts_with('/') && is_normal(value)
}

pub(super) fn is_normal(path: &str) -> bool {
    let mut names = path.split('/').filter(|name| !["", "."].contains(name)).peekable();
    // Those at the start of an absolute path have no effect.
    while path.starts_with('/') && names.next_if_eq(&"..").is_some() {}
    names.all(|name| name != "..")
}

fn is_relative(path: &str) -> bool {
    !path.starts_with('/') && path != "." && is_normal(path)
}

/// A path, after `-` if it may be missing and `+` if it is below the root directory of the unit.
pub(super) fn is_prefixed(word: &str) -> bool {
    let word = word.strip_prefix('-').unwrap_or(word);
    is_path(word.strip_prefix('+').unwrap_or(word))
}

/// Whether the kernel has its own file system at a path.
pub(super) fn is_of_kernel(path: &str) -> bool {
    let first = path.split('/').find(|name| !["", "."].contains(name));
    first.is_some_and(|name| ["dev", "proc", "sys"].contains(&name))
}

/// `NAME[:LINK[:ro]]` of a directory of a service, or only the name if `is_plain`.
pub(super) fn is_directory(word: &str, is_plain: bool) -> bool {
    let Some(parts) = lexer::parts(word) else { return false };
    let part = |at: usize| parts.get(at).map(String::as_str).unwrap_or_default();
    let (name, link) = (part(0), part(1));
    let is_private = name == "private" || name.starts_with("private/");
    let is_link = link.is_empty() || !is_plain && is_relative(link);
    !name.is_empty() && is_relative(name) && !is_private && is_link && ["", "ro"].contains(&part(2))
}

/// `[PARTITION:]OPTIONS`.
pub(super) fn is_option(word: &str, partitions: &[&str]) -> bool {
    lexer::full_parts(word).is_some_and(|parts| match parts.as_slice() {
        [] | [_] => true,
        [partition, _] => partitions.contains(&partition.as_str()),
        _ => false,
    })
}

/// A path whose absence may be ignored.
fn is_optional(path: &str) -> bool {
    is_path(path.strip_prefix('-').unwrap_or(path))
}

/// `SOURCE[:DESTINATION[:OPTION]]`.
pub(super) fn is_bind(word: &str) -> bool {
    let mut parts = word.splitn(3, ':');
    parts.next().is_some_and(is_optional)
        && parts.next().is_none_or(is_path)
        && parts.next().is_none_or(|option| ["", "rbind", "norbind"].contains(&option))
}

/// An image, the place where it is mounted if it has one, and options of its partitions.
pub(super) fn is_image(word: &str, has_place: bool, partitions: &[&str]) -> bool {
    let Some(parts) = lexer::full_parts(word) else { return false };
    let (paths, options) = parts.split_at(parts.len().min(if has_place { 2 } else { 1 }));
    let is_known = |partition: &[String]| partition.len() < 2 || partitions.contains(&partition[0].as_str());
    let are_paths = match paths {
        [source, place] => is_optional(source) && is_path(place),
        [source] => is_optional(source) && !has_place && !is_of_kernel(source.strip_prefix('-').unwrap_or(source)),
        _ => false,
    };
    are_paths && options.chunks(2).all(is_known)
}

/// `PATH[:NAME[:OPTIONS]]`.
pub(super) fn is_open_file(value: &str) -> bool {
    let Some(parts) = lexer::sequenced_parts(value) else { return false };
    let part = |at: usize| parts.get(at).map(String::as_str).unwrap_or_default();
    let (path, name, flags) = (part(0), part(1), part(2));
    let exclusive = |flag: &&str| ["read-only", "append", "truncate"].contains(flag);
    let is_flag = |flag: &str| ["", "graceful"].contains(&flag) || exclusive(&flag);
    let count = flags.split(',').filter(exclusive).count();
    // Without a name, that of the file is used.
    let has_name = !name.is_empty() || !path.trim_matches('/').is_empty();
    path.starts_with('/')
        && has_name
        && (name.is_empty() || is_label(name))
        && parts.len() <= 3
        && flags.split(',').all(is_flag)
        && count <= 1
}

/// Absolute paths between colons.
pub(super) fn is_search(value: &str) -> bool {
    value.split(':').all(is_path)
}

/// An address of documentation (systemd.unit(5)).
pub(super) fn is_documentation(address: &str) -> bool {
    let kinds = ["http://", "https://", "file:/", "info:", "man:"];
    let rest = kinds.iter().find_map(|kind| address.strip_prefix(kind));
    rest.is_some_and(|rest| !rest.is_empty() && rest.is_ascii())
}
