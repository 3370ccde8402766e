//! Tokens of a catalog (OASIS TR9401), as update-catalog(8) divides it: blanks and comments, literals in quotes, and words.

/// The whitespace of Perl's regular expressions, for bytes.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// The tokens in their order; none is empty.
pub(super) fn tokens(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut left = content;
    std::iter::from_fn(move || {
        let (token, rest) = left.split_at(len(left)?);
        left = rest;
        Some(token)
    })
}

/// Length of the first token.
fn len(content: &[u8]) -> Option<usize> {
    let first = *content.first()?;
    let blank = blank(content);
    if blank > 0 {
        return Some(blank);
    }
    let literal = match first {
        b'\'' | b'"' => content.iter().skip(1).position(|byte| *byte == first).map(|at| at + 2),
        _ => None,
    };
    literal.or_else(|| Some(content.iter().position(|byte| is_space(*byte)).unwrap_or(content.len())))
}

/// Length of the whitespace and comments that content begins with. A comment that does not end is not one.
fn blank(content: &[u8]) -> usize {
    let mut at = 0;
    while let Some(left) = content.get(at..).filter(|left| !left.is_empty()) {
        let comment = || {
            let text = left.strip_prefix(b"--")?;
            text.windows(2).position(|window| window == b"--").map(|end| end + 4)
        };
        at += match left.iter().take_while(|byte| is_space(**byte)).count() {
            0 => match comment() {
                Some(len) => len,
                None => break,
            },
            spaces => spaces,
        };
    }
    at
}

/// Whether a token is whitespace or a comment, or begins like a comment.
pub(super) fn is_blank(token: &[u8]) -> bool {
    token.first().is_some_and(|byte| is_space(*byte)) || token.starts_with(b"--")
}

/// Whether a token is a keyword, in upper or lower case.
pub(super) fn is_word(token: &[u8], word: &[u8]) -> bool {
    token.eq_ignore_ascii_case(word)
}

/// A literal of one line without its quotes, and any other token as it is.
pub(super) fn unquoted(token: &[u8]) -> &[u8] {
    match token {
        [open @ (b'\'' | b'"'), inner @ .., close] if open == close && !inner.contains(&b'\n') => inner,
        _ => token,
    }
}
