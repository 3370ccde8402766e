//! Lexers of templates and expressions.

use super::Fault;

/// A piece of a template, with its line number.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// Between `{{` and `}}`.
    Output(&'a str),
    /// Between `{%` and `%}`.
    Tag(&'a str),
}

/// A token of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Text(String),
    Number(i64),
    /// A name or keyword.
    Word(String),
    /// One of `== != ( ) [ ] , | ~`.
    Sign(&'static str),
}

const SIGNS: [&str; 9] = ["==", "!=", "(", ")", "[", "]", ",", "|", "~"];

/// Splits a template.
pub(super) fn pieces(text: &str) -> Result<Vec<(usize, Piece<'_>)>, Fault> {
    let mut pieces = Vec::new();
    // Whether `rest` begins a line.
    let (mut rest, mut line, mut fresh) = (text, 1, true);
    while let Some(start) = next_opening(rest) {
        let (before, opened) = rest.split_at(start);
        let closing = match &opened[..2] {
            "{{" => "}}",
            "{%" => "%}",
            _ => "#}",
        };
        let is_block = closing != "}}";
        push_text(&mut pieces, line, if is_block { strip_indent(before, fresh) } else { before });
        line += lines(before);
        let end = end_of(&opened[2..], closing)
            .ok_or_else(|| Fault::Syntax { line, message: format!("unclosed {}: expected {closing}", &opened[..2]) })?;
        let (inner, after) = (&opened[2..2 + end], &opened[2 + end + 2..]);
        if is_block && (inner.starts_with(['-', '+']) || inner.ends_with(['-', '+'])) {
            return Err(Fault::Syntax { line, message: "- and + next to % are not supported".to_owned() });
        }
        match closing {
            "}}" => pieces.push((line, Piece::Output(inner))),
            "%}" => pieces.push((line, Piece::Tag(inner))),
            _ => {}
        }
        line += lines(inner);
        let trimmed = after.strip_prefix('\n').filter(|_| is_block);
        (rest, fresh) = (trimmed.unwrap_or(after), trimmed.is_some());
        line += usize::from(fresh);
    }
    push_text(&mut pieces, line, rest);
    Ok(pieces)
}

fn push_text<'a>(pieces: &mut Vec<(usize, Piece<'a>)>, line: usize, text: &'a str) {
    if !text.is_empty() {
        pieces.push((line, Piece::Text(text)));
    }
}

fn next_opening(text: &str) -> Option<usize> {
    ["{{", "{%", "{#"].iter().filter_map(|opening| text.find(opening)).min()
}

/// Position of the closing mark outside of quoted text.
fn end_of(text: &str, closing: &str) -> Option<usize> {
    if closing == "#}" {
        return text.find(closing);
    }
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if text[at..].starts_with(closing) => return Some(at),
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None => {}
        }
    }
    None
}

/// Strips trailing blanks if the line has nothing else; `fresh` means that the text starts a line.
fn strip_indent(text: &str, fresh: bool) -> &str {
    let stripped = text.trim_end_matches([' ', '\t']);
    let begins = if stripped.is_empty() { fresh } else { stripped.ends_with('\n') };
    if begins { stripped } else { text }
}

fn lines(text: &str) -> usize {
    text.matches('\n').count()
}

/// Splits an expression.
pub(super) fn tokens(text: &str, line: usize) -> Result<Vec<Token>, Fault> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, used) = if matches!(first, '\'' | '"') {
            quoted(rest, first).ok_or_else(|| Fault::Syntax { line, message: "unclosed quote".to_owned() })?
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else if first.is_ascii_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            (word(&rest[..end], line)?, end)
        } else {
            return Err(Fault::Syntax { line, message: format!("unexpected {first:?}") });
        };
        tokens.push(token);
        rest = rest[used..].trim_start();
    }
    Ok(tokens)
}

fn word(text: &str, line: usize) -> Result<Token, Fault> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return Ok(Token::Word(text.to_owned()));
    }
    let number = text.parse().map_err(|_| Fault::Syntax { line, message: format!("{text:?} is not a number") })?;
    Ok(Token::Number(number))
}

/// A quoted text and its length including quotes.
fn quoted(text: &str, quote: char) -> Option<(Token, usize)> {
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('\\' | '\'' | '"') => value.push(escaped),
                _ => return None,
            },
            _ if c == quote => return Some((Token::Text(value), at + 1)),
            _ => value.push(c),
        }
    }
    None
}
