//! Patterns in which only `*` is special.

/// Whether a text matches a pattern: each `*` matches any bytes.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_pieces(pattern, text, |piece| *piece == b'*', |piece, byte| *piece == byte)
}

/// Whether a text matches a pattern of pieces: a star matches any bytes, another piece one byte. Only the last star is reconsidered, so the
/// time is bounded by the product of both lengths.
pub fn matches_pieces<P>(
    pattern: &[P],
    text: &[u8],
    is_star: impl Fn(&P) -> bool,
    takes: impl Fn(&P, u8) -> bool,
) -> bool {
    // The last star, and where the text continues if the star matches one more byte.
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some(piece) if is_star(piece) => {
                star = Some((at, from));
                at += 1;
            }
            Some(piece) if takes(piece, text[from]) => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((back, taken)) = star else { return false };
                star = Some((back, taken + 1));
                at = back + 1;
                from = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(is_star)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_matches_any_bytes() {
        // Trying every way to match these would take too long.
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
            ("*a*b", "ab-ab", true),
            ("*a*b", "ab-a", false),
            ("a?", "ab", false),
            (stars.as_str(), name.as_str(), true),
            (stuck.as_str(), name.as_str(), false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
