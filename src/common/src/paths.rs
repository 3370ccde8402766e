//! Relations of normalized paths.

/// Whether a path is below a directory.
pub fn is_below(path: impl AsRef<[u8]>, directory: impl AsRef<[u8]>) -> bool {
    path.as_ref().strip_prefix(directory.as_ref()).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Whether a path is a directory, or below it.
pub fn is_at_or_below(path: impl AsRef<[u8]>, directory: impl AsRef<[u8]>) -> bool {
    path.as_ref() == directory.as_ref() || is_below(path, directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_a_whole() {
        for (path, directory, below, at_or_below) in [
            ("/usr/lib/a", "/usr/lib", true, true),
            ("/usr/lib", "/usr/lib", false, true),
            ("/usr/lib64", "/usr/lib", false, false),
            ("/usr", "/usr/lib", false, false),
            ("/usr", "", true, true),
        ] {
            assert_eq!((is_below(path, directory), is_at_or_below(path, directory)), (below, at_or_below), "{path}");
        }
    }
}
