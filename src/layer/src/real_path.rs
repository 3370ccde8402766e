//! Paths as Debian has them, where `/bin`, `/lib` and others are links.

use vmbake_common::paths::is_at_or_below;

/// Directories that Debian has below /usr or /run, by the names that links have for them.
const LINKED: [(&str, &str); 6] = [
    ("/bin", "/usr/bin"),
    ("/sbin", "/usr/sbin"),
    ("/lib", "/usr/lib"),
    ("/lib64", "/usr/lib64"),
    ("/var/run", "/run"),
    ("/var/lock", "/run/lock"),
];

/// Whether `path` is `parent`, or below it.
pub fn is_below(path: &str, parent: &str) -> bool {
    let (path, parent) = (real(path), real(parent));
    parent == "/" || is_at_or_below(path, parent)
}

/// A path as Debian has it: without the links that stand for directories of /usr and /run.
pub fn real(path: &str) -> String {
    for (link, target) in LINKED {
        if let Some(rest) = path.strip_prefix(link).filter(|_| is_at_or_below(path, link)) {
            return format!("{target}{rest}");
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_by_their_parts() {
        assert!(
            is_below("/usr/local/bin/a", "/usr/local") && is_below("/usr/local", "/usr/local") && is_below("/a", "/")
        );
        assert!(!is_below("/usr/locale", "/usr/local") && !is_below("/usr", "/usr/local"));
        assert!(is_below("/lib/systemd/a", "/usr/lib") && is_below("/var/run/a", "/run"));
    }
}
