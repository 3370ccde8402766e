//! Escapes of `echo -e`, `printf %b` and formats.

use crate::eval::Run;
use crate::shell::Shell;

/// Where escapes are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `\0nnn` and `\c`
    Echo,
    /// `\0nnn`, `\nnn` and `\c`
    Operand,
    /// `\nnn`, `\"`, `\'` and `\?`
    Format,
}

/// Replaces escapes. The flag says that `\c` ended the output.
pub(super) fn unescape(shell: &Shell<'_>, text: &[u8], style: Style) -> Run<(Vec<u8>, bool)> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        at += 1;
        let escape = text.get(at).copied().filter(|_| byte == b'\\');
        let Some(escape) = escape else {
            out.push(byte);
            continue;
        };
        at += 1;
        let rest = &text[at..];
        match escape {
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'c' if style != Style::Format => return Ok((out, true)),
            b'e' | b'E' => out.push(27),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'\\' => out.push(b'\\'),
            b'"' | b'\'' | b'?' if style == Style::Format => out.push(escape),
            b'0' if style != Style::Format => at += number(rest, 3, 8, &mut out),
            b'0'..=b'7' if style != Style::Echo => {
                at -= 1;
                at += number(&text[at..], 3, 8, &mut out);
            }
            b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => at += number(rest, 2, 16, &mut out),
            b'u' | b'U' if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
                let most = if escape == b'u' { 4 } else { 8 };
                let len = digits(rest, most, 16);
                let code = rest[..len].iter().fold(0_u64, |code, digit| code * 16 + value(*digit));
                match u8::try_from(code) {
                    Ok(code) if code.is_ascii() => out.push(code),
                    _ => return shell.unsupported(b"a character beyond ASCII"),
                }
                at += len;
            }
            b'x' | b'u' | b'U' => return shell.unsupported(&[b'\\', escape]),
            other => out.extend([b'\\', other]),
        }
    }
    Ok((out, false))
}

fn value(digit: u8) -> u64 {
    char::from(digit).to_digit(16).unwrap_or_default().into()
}

fn digits(text: &[u8], most: usize, radix: u32) -> usize {
    text.iter().take(most).take_while(|digit| char::from(**digit).is_digit(radix)).count()
}

/// The byte that digits give, of which one that is too large loses its upper bits.
fn number(text: &[u8], most: usize, radix: u32, out: &mut Vec<u8>) -> usize {
    let len = digits(text, most, radix);
    let found = text[..len].iter().fold(0_u64, |found, digit| found * u64::from(radix) + value(*digit));
    out.push(found.to_le_bytes()[0]);
    len
}
