//! Words of values, split as by `extract_first_word` of systemd.

/// What separates words by default.
const BLANKS: &str = " \t\n\r";

/// What a backslash does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// Nothing.
    Kept,
    /// It escapes the next character.
    Dropped,
    /// It begins an escape sequence.
    Sequences,
    /// It begins an escape sequence, or escapes a separator.
    Separators,
}

#[derive(Clone, Copy)]
struct Lexer {
    separators: &'static str,
    has_quotes: bool,
    escapes: Escapes,
    /// Whether consecutive separators count as one.
    coalesces: bool,
}

/// Words between blanks, without quotes and backslashes.
pub(super) fn quoted(value: &str) -> Option<Vec<String>> {
    Lexer { separators: BLANKS, has_quotes: true, escapes: Escapes::Dropped, coalesces: true }.words(value)
}

/// Words between blanks, without quotes, and with escape sequences replaced.
pub(super) fn escaped(value: &str) -> Option<Vec<String>> {
    Lexer { separators: BLANKS, has_quotes: true, escapes: Escapes::Sequences, coalesces: true }.words(value)
}

/// Words between blanks, without quotes; backslashes stay.
pub(super) fn tuples(value: &str) -> Option<Vec<String>> {
    Lexer { separators: BLANKS, has_quotes: true, escapes: Escapes::Kept, coalesces: true }.words(value)
}

/// Words between blanks, without backslashes; quotes stay.
pub(super) fn plain(value: &str) -> Option<Vec<String>> {
    Lexer { separators: BLANKS, has_quotes: false, escapes: Escapes::Dropped, coalesces: true }.words(value)
}

/// Words between blanks and commas, without quotes and backslashes.
pub(super) fn listed(value: &str) -> Option<Vec<String>> {
    Lexer { separators: " \t\n\r,", has_quotes: true, escapes: Escapes::Dropped, coalesces: true }.words(value)
}

/// The parts of a tuple between colons, which may be empty.
pub(super) fn parts(tuple: &str) -> Option<Vec<String>> {
    Lexer { separators: ":", has_quotes: false, escapes: Escapes::Separators, coalesces: false }.words(tuple)
}

/// The parts of a tuple between colons, none of which is empty.
pub(super) fn full_parts(tuple: &str) -> Option<Vec<String>> {
    Lexer { separators: ":", has_quotes: false, escapes: Escapes::Separators, coalesces: true }.words(tuple)
}

/// The parts of a value between colons, which may be empty; colons cannot be escaped.
pub(super) fn sequenced_parts(value: &str) -> Option<Vec<String>> {
    Lexer { separators: ":", has_quotes: false, escapes: Escapes::Sequences, coalesces: false }.words(value)
}

impl Lexer {
    /// All words; `None` for an unclosed quote or an invalid escape sequence.
    fn words(self, text: &str) -> Option<Vec<String>> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            rest = &rest[next.len_utf8()..];
            match next {
                '\\' if self.escapes != Escapes::Kept => {
                    let (character, after) = self.unescaped(rest)?;
                    word.get_or_insert_default().push(character);
                    rest = after;
                }
                _ if quote == Some(next) => quote = None,
                _ if quote.is_some() => word.get_or_insert_default().push(next),
                '"' | '\'' if self.has_quotes => {
                    quote = Some(next);
                    word.get_or_insert_default();
                }
                _ if self.separators.contains(next) && self.coalesces => words.extend(word.take()),
                _ if self.separators.contains(next) => words.push(word.take().unwrap_or_default()),
                _ => word.get_or_insert_default().push(next),
            }
        }
        words.extend(word);
        quote.is_none().then_some(words)
    }

    /// The character for which a backslash and the text after it stand, and what follows.
    fn unescaped(self, text: &str) -> Option<(char, &str)> {
        let next = text.chars().next()?;
        let after = &text[next.len_utf8()..];
        match self.escapes {
            Escapes::Kept => Some(('\\', text)),
            Escapes::Dropped => Some((next, after)),
            Escapes::Separators if next == '\\' || self.separators.contains(next) => Some((next, after)),
            Escapes::Sequences | Escapes::Separators => sequence(text),
        }
    }
}

/// The character of an escape sequence without its backslash, and the text after it.
pub(in super::super) fn sequence(text: &str) -> Option<(char, &str)> {
    let next = text.chars().next()?;
    let (skip, digits, base) = match next {
        'x' => (1, 2, 16),
        'u' => (1, 4, 16),
        'U' => (1, 8, 16),
        '0'..='7' => (0, 3, 8),
        _ => {
            let at = "abfnrtvs\\\"'".find(next)?;
            let character = "\u{7}\u{8}\u{c}\n\r\t\u{b} \\\"'".chars().nth(at)?;
            return Some((character, &text[1..]));
        }
    };
    let code = u32::from_str_radix(text.get(skip..skip + digits)?, base).ok()?;
    let is_valid = code > 0 && (base == 16 || code < 256);
    let character = char::from_u32(code).filter(|_| is_valid)?;
    Some((character, &text[skip + digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_values() {
        let of = |words: Option<Vec<String>>| words.map(|words| words.join("|"));
        let is = |words: Option<Vec<String>>, expected: &str| assert_eq!(of(words).as_deref(), Some(expected));
        is(quoted(r#"a 'b c' \d"e""#), "a|b c|de");
        is(escaped(r"a\x20b c\td"), "a b|c\td");
        assert_eq!(escaped(r"a\zb"), None);
        is(tuples(r"/x\ y 'a b'"), r"/x\|y|a b");
        is(plain(r#""a b\ c"#), r#""a|b c"#);
        is(listed("1,2, 3"), "1|2|3");
        is(parts(r"a::b\:c"), "a||b:c");
        is(full_parts("::a:"), "a");
        assert_eq!(sequenced_parts(r"a\:b"), None);
        for wrong in ["\"a", "a\\"] {
            assert_eq!(quoted(wrong), None, "{wrong}");
        }
    }
}
