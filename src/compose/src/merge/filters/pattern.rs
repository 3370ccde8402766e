//! Patterns of fnmatch(3) without flags, over bytes: `*` and `?` match slashes too.

use vmbake_common::glob::matches_pieces;

/// A piece of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Byte(u8),
    Any,
    Star,
    Set { negated: bool, bytes: Box<[bool; 256]> },
}

/// A pattern, and the text before its first special character, without slashes at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
    fixed: Vec<u8>,
    /// Whether it ends with a backslash, so that nothing matches.
    is_void: bool,
}

impl Pattern {
    pub(super) fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let special = text.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(text.len());
        let fixed = text[..special].iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
        let mut pattern = Self { pieces: Vec::new(), fixed: text[..fixed].to_vec(), is_void: false };
        let mut rest = text;
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            pattern.pieces.push(match first {
                b'*' => Piece::Star,
                b'?' => Piece::Any,
                b'[' => match set(after)? {
                    Some((piece, after)) => {
                        rest = after;
                        piece
                    }
                    None => Piece::Byte(b'['),
                },
                b'\\' => match after.split_first() {
                    Some((literal, after)) => {
                        rest = after;
                        Piece::Byte(*literal)
                    }
                    None => {
                        pattern.is_void = true;
                        Piece::Any
                    }
                },
                other => Piece::Byte(*other),
            });
        }
        Ok(pattern)
    }

    /// The text before its first special character, without slashes at its end.
    pub(super) fn fixed(&self) -> &[u8] {
        &self.fixed
    }

    pub(super) fn matches(&self, text: &[u8]) -> bool {
        !self.is_void && matches_pieces(&self.pieces, text, |piece| *piece == Piece::Star, Piece::takes)
    }
}

impl Piece {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::Any => true,
            Self::Star => false,
            Self::Set { negated, bytes } => bytes[usize::from(byte)] != *negated,
        }
    }
}

/// Parses a bracket expression behind its `[`, and returns what follows it. `None` if it does not end: then `[` stands
/// for itself.
fn set(text: &[u8]) -> Result<Option<(Piece, &[u8])>, &'static str> {
    let negated = matches!(text.first(), Some(b'!' | b'^'));
    let mut rest = if negated { &text[1..] } else { text };
    let mut bytes = Box::new([false; 256]);
    let mut is_first = true;
    loop {
        match rest {
            [] => return Ok(None),
            [b']', after @ ..] if !is_first => return Ok(Some((Piece::Set { negated, bytes }, after))),
            [b'[', b':' | b'.' | b'=', ..] => return Err("classes such as [:alpha:] are not supported in patterns"),
            _ => {}
        }
        is_first = false;
        let Some((low, after)) = literal(rest) else { return Ok(None) };
        let (high, after) = match after {
            [b'-'] => return Err("a range in brackets does not end"),
            [b'-', next, ..] if *next != b']' => match literal(&after[1..]) {
                Some(found) => found,
                None => return Ok(None),
            },
            _ => (low, after),
        };
        bytes.iter_mut().take(usize::from(high) + 1).skip(usize::from(low)).for_each(|byte| *byte = true);
        rest = after;
    }
}

/// The next byte of a bracket expression, and what follows it.
fn literal(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [b'\\', byte, after @ ..] => Some((*byte, after)),
        [b'\\'] | [] => None,
        [byte, after @ ..] => Some((*byte, after)),
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_match_as_with_fnmatch() {
        for (pattern, text, expected) in [
            ("/usr/share/doc/*", "/usr/share/doc/a/b", true),
            ("/usr/share/doc/*", "/usr/share/doc", false),
            ("/a?c", "/a/c", true),
            ("/[a-c]x", "/bx", true),
            ("/[!a-c]x", "/bx", false),
            ("/[]a]", "/]", true),
            ("/[a", "/[a", true),
            ("/[a\\]]", "/]", true),
            ("/\\*", "/*", true),
            ("/\\*", "/x", false),
            ("/a\\", "/a", false),
            ("/a\\", "/a\\", false),
            ("/*/copyright", "/doc/x/copyright", true),
            ("/[a-]", "/-", true),
        ] {
            assert_eq!(
                Pattern::parse(pattern.as_bytes()).unwrap().matches(text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
        assert_eq!(Pattern::parse(b"/usr/share/doc//*/x").unwrap().fixed(), b"/usr/share/doc");
        assert!(Pattern::parse(b"/[[:alpha:]]").is_err() && Pattern::parse(b"/[a-").is_err());
    }
}
