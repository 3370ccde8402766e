//! Names of modules and aliases, as indexes contain them.

/// `PATH_MAX` of Linux: kmod truncates longer names and lines.
pub const PATH_MAX: usize = 4096;

/// Extensions of modules that Debian's kmod supports. It ignores `.ko.gz`.
const EXTENSIONS: [&str; 3] = [".ko", ".ko.xz", ".ko.zst"];

/// A file name without the extension of a module; `None` if it is not a module.
pub fn stem(file_name: &str) -> Option<&str> {
    EXTENSIONS.iter().find_map(|extension| file_name.strip_suffix(extension)).filter(|stem| !stem.is_empty())
}

/// The module name for a file name without its extension.
pub fn module(stem: &str) -> String {
    stem.replace('-', "_")
}

/// An alias as indexes contain it: `-` becomes `_`, except in brackets. `None` for unmatched brackets.
pub fn alias(alias: &[u8]) -> Option<Vec<u8>> {
    let mut in_brackets = false;
    let mut normal = Vec::with_capacity(alias.len());
    for &byte in alias {
        match byte {
            b']' if !in_brackets => return None,
            b'[' | b']' => in_brackets = byte == b'[',
            _ => {}
        }
        normal.push(if byte == b'-' && !in_brackets { b'_' } else { byte });
    }
    (!in_brackets).then_some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_normalized() {
        let cases: [(&[u8], Option<&[u8]>); 8] = [
            (b"a-b_c", Some(b"a_b_c")),
            (b"a[0-9]-b", Some(b"a[0-9]_b")),
            (b"a[[-]-", Some(b"a[[-]_")),
            (b"", Some(b"")),
            (b"[]", Some(b"[]")),
            (b"a[0-9", None),
            (b"a]", None),
            (b"a[b]c]", None),
        ];
        for (given, expected) in cases {
            assert_eq!(alias(given).as_deref(), expected, "{}", given.escape_ascii());
        }
    }

    #[test]
    fn modules_have_an_extension() {
        let cases = [
            ("a-b.ko", Some("a-b")),
            ("a.ko.xz", Some("a")),
            ("a.ko.zst", Some("a")),
            ("a.ko.gz", None),
            (".ko", None),
            (".ko.xz", None),
            ("a.k", None),
        ];
        for (given, expected) in cases {
            assert_eq!(stem(given), expected, "{given}");
        }
    }
}
