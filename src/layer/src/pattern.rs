//! Patterns of paths, as layers say what to remove.

/// The last component of a pattern that stands for the regular files below a directory, however deep.
pub const FILES_BELOW: &str = "**";

/// Whether a name fits a pattern, in which `*` stands for any bytes. What stands between two of them is taken where it comes
/// first: so the time is bounded by the product of both lengths.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let mut parts: Vec<&[u8]> = pattern.split(|byte| *byte == b'*').collect();
    let Some(last) = parts.pop() else { return false };
    if parts.is_empty() {
        return name == last;
    }
    let Some(mut rest) = name.strip_suffix(last).and_then(|name| name.strip_prefix(parts.remove(0))) else {
        return false;
    };
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        match rest.windows(part.len()).position(|window| window == part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        // Trying every way to fit this would take longer than the universe has been there.
        let (stars, name) = ("*a".repeat(30), "a".repeat(255));
        let stuck = format!("{stars}*b*");
        for (pattern, name, expected) in [
            ("*", "x", true),
            ("a*", "abc", true),
            ("*_*", "deb_main", true),
            ("*_*", "lock", false),
            ("*.log", "a.log.1", false),
            ("a*b*c", "axxbxxc", true),
            ("a*b*c", "axxcxxb", false),
            ("a*a", "a", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            (stars.as_str(), name.as_str(), true),
            (stuck.as_str(), name.as_str(), false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
