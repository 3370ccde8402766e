//! Regular expressions of awk: extended ones of POSIX with the escapes of strings, also in sets.

use super::super::regex::{Expression, Syntax};
use super::machine::Machine;
use crate::eval::{Run, Stop};

/// Where this is, it is the awk of a Debian system, and has escapes that are letters to mawk.
const GAWK: &[u8] = b"/usr/bin/gawk";

/// So many compiled expressions are kept.
const KEPT: usize = 64;

impl Machine<'_, '_> {
    /// The compiled expression of a text.
    pub(super) fn expression(&mut self, text: &[u8]) -> Run<Expression> {
        self.shell.spend(text.len())?;
        if let Some(found) = self.expressions.get(text) {
            return Ok(found.clone());
        }
        let gawk = self.shell.exists(GAWK);
        let posix = match translated(text, gawk) {
            Ok(posix) => posix,
            Err(why) => {
                let what = [why.as_bytes(), b" in the regular expression of awk ", text].concat();
                return self.shell.unsupported(&what);
            }
        };
        let compiled = match Expression::new(self.shell, &posix, Syntax::Awk, false) {
            Err(Stop::Error) => return self.shell.unsupported(&[b"the regular expression ", &posix[..]].concat()),
            compiled => compiled?,
        };
        if self.expressions.len() >= KEPT {
            self.expressions.clear();
        }
        self.expressions.insert(text.to_vec(), compiled.clone());
        Ok(compiled)
    }
}

/// The expression without the escapes that only awk has.
fn translated(text: &[u8], gawk: bool) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\\' => {
                let (escape, after) = rest.split_first().ok_or("a backslash at the end")?;
                rest = after;
                match escaped(*escape, gawk)? {
                    Some(byte) => out.push(byte),
                    None => out.extend([b'\\', *escape]),
                }
            }
            b'[' => {
                let (set, len) = set(rest, gawk)?;
                out.extend(set);
                rest = &rest[len..];
            }
            // mawk of Debian 12 has no intervals, later ones and gawk do.
            b'{' if matches!(rest.first(), Some(b'0'..=b'9' | b',')) => return Err("an interval"),
            b'{' => out.extend(b"\\{"),
            byte => out.push(*byte),
        }
    }
    if out.windows(2).any(|pair| pair == b"()") {
        return Err("an empty group");
    }
    Ok(out)
}

/// The byte that an escape stands for; `None` for an escaped operator.
fn escaped(escape: u8, gawk: bool) -> Result<Option<u8>, &'static str> {
    Ok(match escape {
        b'n' => Some(b'\n'),
        b't' => Some(b'\t'),
        b'r' => Some(b'\r'),
        b'f' => Some(12),
        b'v' => Some(11),
        b'a' => Some(7),
        b'/' | b'"' => Some(escape),
        b's' | b'S' | b'w' | b'W' if !gawk => Some(escape),
        // Of gawk, and each means something else to mawk.
        b'<' | b'>' | b'`' | b'\'' | b'&' => return Err("an escape"),
        byte if byte.is_ascii_alphanumeric() => return Err("an escape"),
        _ => None,
    })
}

/// A set behind its bracket, as POSIX has it, and its length: there a backslash stands for itself, and a bracket comes first.
fn set(text: &[u8], gawk: bool) -> Result<(Vec<u8>, usize), &'static str> {
    const OPEN: &str = "a set that is not closed";
    let mut at = usize::from(text.first() == Some(&b'^'));
    let mut out = if at == 1 { b"[^".to_vec() } else { b"[".to_vec() };
    let begin = out.len();
    if text.get(at) == Some(&b']') {
        out.push(b']');
        at += 1;
    }
    let mut dash = false;
    loop {
        let byte = *text.get(at).ok_or(OPEN)?;
        at += 1;
        match byte {
            b']' => break,
            b'[' if text.get(at) == Some(&b':') => {
                let rest = &text[at..];
                let len = rest.windows(2).position(|pair| pair == b":]").ok_or("a class that is not closed")? + 2;
                out.push(b'[');
                out.extend(&rest[..len]);
                at += len;
            }
            b'\\' => {
                let escape = *text.get(at).ok_or(OPEN)?;
                at += 1;
                let near_range = text.get(at) == Some(&b'-') || out[begin..].ends_with(b"-");
                match escape {
                    b']' | b'-' | b'^' if near_range => return Err("an escape next to a range"),
                    b']' => out.insert(begin, b']'),
                    b'-' => dash = true,
                    b'^' if out.len() == begin => return Err("a set that begins with an escape"),
                    byte if byte.is_ascii_punctuation() => out.push(byte),
                    byte => out.push(escaped(byte, gawk)?.ok_or("an escape in a set")?),
                }
            }
            byte => out.push(byte),
        }
    }
    if dash {
        out.push(b'-');
    }
    out.push(b']');
    Ok((out, at))
}
