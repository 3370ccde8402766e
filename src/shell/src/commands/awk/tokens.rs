//! Tokens of an awk program. Only the parser knows whether a slash starts a regular expression or divides, so it requests the expression.

use super::syntax::Function;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    End,
    Newline,
    Number(f64),
    Text(Vec<u8>),
    Name(Vec<u8>),
    /// A name with a parenthesis right behind it.
    Call(Vec<u8>),
    Function(Function),
    /// An operator, a separator or a keyword.
    Sign(&'static str),
}

/// Longer ones first.
const OPERATORS: [&str; 41] = [
    "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "<=", ">=", "!=", "!~", ">>", "**", "{", "}",
    "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?", ":", "~", "$", "=", "&",
];

const KEYWORDS: [&str; 19] = [
    "BEGIN", "END", "if", "else", "while", "for", "do", "break", "continue", "next", "nextfile", "exit", "delete",
    "in", "getline", "print", "printf", "function", "return",
];

pub(super) struct Lexer<'p> {
    text: &'p [u8],
    at: usize,
}

impl<'p> Lexer<'p> {
    pub(super) fn new(text: &'p [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'p [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips blanks, continued lines and a comment.
    fn skip(&mut self) {
        loop {
            match self.rest() {
                [b' ' | b'\t' | b'\r', ..] => self.at += 1,
                [b'\\', b'\n', ..] => self.at += 2,
                [b'#', ..] => self.at += self.rest().iter().take_while(|byte| **byte != b'\n').count(),
                _ => return,
            }
        }
    }

    pub(super) fn token(&mut self) -> Result<Token, &'static str> {
        self.skip();
        let rest = self.rest();
        let Some(first) = rest.first().copied() else { return Ok(Token::End) };
        match first {
            b'\n' => {
                self.at += 1;
                Ok(Token::Newline)
            }
            b'"' => self.string(),
            b'0'..=b'9' => self.number(),
            b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => self.number(),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => Ok(self.word()),
            _ => {
                let found = OPERATORS.iter().find(|operator| rest.starts_with(operator.as_bytes()));
                let operator = found.ok_or("an unexpected character")?;
                self.at += operator.len();
                Ok(Token::Sign(operator))
            }
        }
    }

    fn word(&mut self) -> Token {
        let len = self.rest().iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let (word, rest) = self.rest().split_at(len);
        self.at += len;
        if let Some(keyword) = KEYWORDS.iter().find(|keyword| keyword.as_bytes() == word) {
            return Token::Sign(keyword);
        }
        match Function::find(word) {
            Some(function) => Token::Function(function),
            None if rest.starts_with(b"(") => Token::Call(word.to_vec()),
            None => Token::Name(word.to_vec()),
        }
    }

    /// Hexadecimal and octal numbers are those of gawk only.
    fn number(&mut self) -> Result<Token, &'static str> {
        let rest = self.rest();
        let (value, len) = super::number::prefix(rest).ok_or("a number")?;
        let octal = matches!(rest, [b'0', b'0'..=b'9', ..]);
        if octal || rest.get(len).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            return Err("a number of that kind");
        }
        self.at += len;
        Ok(Token::Number(value))
    }

    fn string(&mut self) -> Result<Token, &'static str> {
        let rest = self.rest().get(1..).unwrap_or_default();
        let mut len = 0;
        loop {
            match rest.get(len) {
                None | Some(b'\n') => return Err("a string that is not closed"),
                Some(b'"') => break,
                Some(b'\\') => len += 2,
                Some(_) => len += 1,
            }
        }
        self.at += len + 2;
        Ok(Token::Text(unescape(&rest[..len])?))
    }

    /// The expression behind a slash, up to the next slash. `behind` is what the slash's token had behind it, the `=` of `/=`.
    pub(super) fn regex(&mut self, behind: usize) -> Result<Vec<u8>, &'static str> {
        self.at -= behind;
        let rest = self.rest();
        let mut len = 0;
        loop {
            match rest.get(len) {
                None | Some(b'\n') => return Err("a regular expression that is not closed"),
                Some(b'/') => break,
                Some(b'\\') => len += 2,
                Some(_) => len += 1,
            }
        }
        self.at += len + 1;
        let text = &rest[..len];
        // Where a set has a slash, awks do not agree on the end of the expression.
        let open = text.iter().rposition(|byte| *byte == b'[');
        let close = text.iter().rposition(|byte| *byte == b']');
        if open.is_some_and(|open| close.is_none_or(|close| close < open) && !text[..open].ends_with(b"\\")) {
            return Err("a slash in a set");
        }
        Ok(text.to_vec())
    }
}

/// Replaces the escapes of a string. Those that are not in POSIX mean something else to each awk.
pub(super) fn unescape(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let Some((escape, after)) = rest.split_first() else { return Err("a backslash at the end of a string") };
        rest = after;
        match escape {
            b'"' | b'\\' => out.push(*escape),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'\n' => {}
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
                let digits = rest[..more]
                    .iter()
                    .fold(u32::from(escape - b'0'), |value, digit| value * 8 + u32::from(digit - b'0'));
                rest = &rest[more..];
                out.push(u8::try_from(digits).map_err(|_| "an escape in a string")?);
            }
            _ => return Err("an escape in a string"),
        }
    }
    Ok(out)
}
