//! `echo` and `printf` of dash.

use crate::eval::Run;
use crate::expand::number;
use crate::host::Question;
use crate::shell::Shell;

/// Which escapes are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// Of `echo` and `%b`: `\0nnn`, `\c`.
    Echo,
    /// Of a format: `\nnn`.
    Format,
}

/// Replaces escapes. The flag says that `\c` ended the output.
pub(crate) fn unescape(text: &[u8], escapes: Escapes) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some(escape) = text.get(at).copied() else {
            out.push(b'\\');
            break;
        };
        at += 1;
        match escape {
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'c' if escapes == Escapes::Echo => return (out, true),
            b'e' => out.push(27),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'\\' => out.push(b'\\'),
            b'0'..=b'7' => {
                let first = if escapes == Escapes::Echo && escape == b'0' { at } else { at - 1 };
                let digits: Vec<u8> =
                    text[first..].iter().copied().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).collect();
                at = first + digits.len();
                let value = digits.iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                out.push(value.to_le_bytes()[0]);
            }
            other => out.extend([b'\\', other]),
        }
    }
    (out, false)
}

/// `echo`: escapes are replaced always, and `-n` is the only option.
pub(super) fn echo(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let (newline, words) = match args.split_first() {
        Some((first, rest)) if first == b"-n" => (false, rest),
        _ => (true, args),
    };
    let (mut text, ended) = unescape(&words.join(&b' '), Escapes::Echo);
    if newline && !ended {
        text.push(b'\n');
    }
    shell.out(&text)?;
    Ok(0)
}

/// The `echo` of bash and of coreutils replaces escapes only with `-e`.
pub(crate) fn echo_program(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let is_option =
        |arg: &&Vec<u8>| arg.len() > 1 && arg[0] == b'-' && arg[1..].iter().all(|letter| b"neE".contains(letter));
    let options: Vec<u8> = args.iter().take_while(is_option).flat_map(|arg| arg[1..].to_vec()).collect();
    let words = &args[args.iter().take_while(is_option).count()..];
    let joined = words.join(&b' ');
    let escapes = options.iter().rev().find(|letter| **letter != b'n') == Some(&b'e');
    let (mut text, ended) = if escapes { unescape(&joined, Escapes::Echo) } else { (joined, false) };
    if !options.contains(&b'n') && !ended {
        text.push(b'\n');
    }
    shell.out(&text)?;
    Ok(0)
}

/// One conversion of a format.
pub(crate) struct Conversion {
    pub(crate) minus: bool,
    pub(crate) zero: bool,
    pub(crate) plus: bool,
    pub(crate) space: bool,
    pub(crate) alternative: bool,
    pub(crate) width: usize,
    pub(crate) precision: Option<usize>,
    pub(crate) letter: u8,
}

/// `printf`
pub(super) fn printf(shell: &mut Shell<'_>, all: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let result = shell.following_random(b"printf", all, |shell, all| Ok(Some(print_formatted(shell, all))))?;
    result.unwrap_or(Ok(0))
}

fn print_formatted(shell: &mut Shell<'_>, all: &[Vec<u8>]) -> Run<u8> {
    let args = if all.first().is_some_and(|arg| arg == b"--") { &all[1..] } else { all };
    let Some((format, operands)) = args.split_first() else {
        return Err(shell.shell_error(b"printf: usage: printf format [arg ...]"));
    };
    if let [b'-', letter, ..] = format[..]
        && args.len() == all.len()
    {
        return Err(shell.shell_error(&[b"printf: Illegal option -", &[letter][..]].concat()));
    }
    let mut operands = operands.iter();
    let mut status = 0;
    loop {
        let before = operands.len();
        shell.step()?;
        let ended = printf_once(shell, format, &mut operands, &mut status)?;
        if ended || operands.len() == 0 || operands.len() == before {
            return Ok(status);
        }
    }
}

/// Goes through the format once; the flag says that `\c` ended the output.
fn printf_once(
    shell: &mut Shell<'_>,
    format: &[u8],
    operands: &mut std::slice::Iter<'_, Vec<u8>>,
    status: &mut u8,
) -> Run<bool> {
    let mut rest = format;
    while !rest.is_empty() {
        let len = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
        shell.out(&unescape(&rest[..len], Escapes::Format).0)?;
        rest = &rest[len..];
        if rest.starts_with(b"%%") {
            shell.out(b"%")?;
            rest = &rest[2..];
            continue;
        }
        let Some((_, after)) = rest.split_first() else { break };
        let (conversion, len) = conversion(shell, after, operands, status)?;
        rest = &after[len..];
        let operand = operands.next();
        let (text, ended) = convert(shell, &conversion, operand.map(Vec::as_slice), status)?;
        shell.out(&padded(&conversion, text))?;
        if ended {
            return Ok(true);
        }
    }
    Ok(false)
}

fn conversion(
    shell: &mut Shell<'_>,
    text: &[u8],
    operands: &mut std::slice::Iter<'_, Vec<u8>>,
    status: &mut u8,
) -> Run<(Conversion, usize)> {
    let mut at = text.iter().take_while(|byte| b"-0+ #".contains(byte)).count();
    let flags = &text[..at];
    let has = |flag: u8| flags.contains(&flag);
    let mut size_of = |shell: &mut Shell<'_>, at: &mut usize| -> Run<i64> {
        if text.get(*at) == Some(&b'*') {
            *at += 1;
            return integer(shell, operands.next().map_or(&b""[..], Vec::as_slice), true, status);
        }
        let digits = text[*at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let value = number(&text[*at..*at + digits]);
        *at += digits;
        Ok(value)
    };
    let width = size_of(shell, &mut at)?;
    let mut precision = None;
    if text.get(at) == Some(&b'.') {
        at += 1;
        precision = Some(size_of(shell, &mut at)?);
    }
    let size = |value: i64| usize::try_from(value.unsigned_abs()).unwrap_or(usize::MAX);
    for length in [width, precision.unwrap_or_default()] {
        shell.spend_size(size(length), size(length))?;
    }
    let Some(letter) = text.get(at).copied() else {
        return Err(shell.shell_error(b"printf: missing format character"));
    };
    let conversion = Conversion {
        minus: has(b'-') || width < 0,
        zero: has(b'0'),
        plus: has(b'+'),
        space: has(b' '),
        alternative: has(b'#'),
        width: size(width),
        precision: precision.filter(|value| *value >= 0).map(size),
        letter,
    };
    Ok((conversion, at + 1))
}

fn convert(
    shell: &mut Shell<'_>,
    conversion: &Conversion,
    operand: Option<&[u8]>,
    status: &mut u8,
) -> Run<(Vec<u8>, bool)> {
    let text = operand.unwrap_or_default();
    if !matches!(conversion.letter, b's' | b'b') || conversion.precision.is_some() || conversion.width > 0 {
        shell.ask(Question::Value(text))?;
    }
    let cut = |mut text: Vec<u8>| {
        text.truncate(conversion.precision.unwrap_or(usize::MAX));
        text
    };
    match conversion.letter {
        b's' => Ok((cut(text.to_vec()), false)),
        b'c' => Ok((vec![text.first().copied().unwrap_or_default()], false)),
        b'b' => {
            let (text, ended) = unescape(text, Escapes::Echo);
            Ok((cut(text), ended))
        }
        b'd' | b'i' | b'u' | b'o' | b'x' | b'X' => {
            let signed = matches!(conversion.letter, b'd' | b'i');
            let value = integer(shell, text, signed, status)?;
            Ok((digits(conversion, value), false))
        }
        letter @ (b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G') => shell.unsupported(&[b'%', letter]),
        letter => Err(shell.shell_error(&[b"printf: %", &[letter][..], b": invalid directive"].concat())),
    }
}

/// The digits of a number with its sign, filled with zeros where the precision or a flag wants them.
pub(crate) fn digits(conversion: &Conversion, value: i64) -> Vec<u8> {
    let signed = matches!(conversion.letter, b'd' | b'i');
    let number = match conversion.letter {
        b'd' | b'i' => value.unsigned_abs().to_string(),
        b'o' => format!("{:o}", value.cast_unsigned()),
        b'x' => format!("{:x}", value.cast_unsigned()),
        b'X' => format!("{:X}", value.cast_unsigned()),
        _ => value.cast_unsigned().to_string(),
    };
    let sign = match conversion.letter {
        _ if signed && value < 0 => "-",
        _ if signed && conversion.plus => "+",
        _ if signed && conversion.space => " ",
        b'o' if conversion.alternative && !number.starts_with('0') => "0",
        b'x' if conversion.alternative && value != 0 => "0x",
        b'X' if conversion.alternative && value != 0 => "0X",
        _ => "",
    };
    let least = match conversion.precision {
        Some(precision) => precision,
        None if conversion.zero && !conversion.minus => conversion.width.saturating_sub(sign.len()),
        None => 1,
    };
    let zeros = "0".repeat(least.saturating_sub(number.len()));
    format!("{sign}{zeros}{number}").into_bytes()
}

pub(crate) fn padded(conversion: &Conversion, text: Vec<u8>) -> Vec<u8> {
    let fill = vec![b' '; conversion.width.saturating_sub(text.len())];
    if conversion.minus { [text, fill].concat() } else { [fill, text].concat() }
}

/// The number that an operand begins with, as the bits of one without a sign where it is not `signed`. What follows the number is an
/// error that does not end the command, and so is one that is too large.
fn integer(shell: &mut Shell<'_>, text: &[u8], signed: bool, status: &mut u8) -> Run<i64> {
    if let [b'"' | b'\'', rest @ ..] = text {
        return Ok(rest.first().map_or(0, |byte| i64::from(*byte)));
    }
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b).count();
    let (negative, digits) = match &text[blanks..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (radix, prefix) = match digits {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => (16, 2),
        [b'0', ..] => (8, 0),
        _ => (10, 0),
    };
    let valid = digits[prefix..].iter().take_while(|digit| char::from(**digit).is_digit(radix)).count();
    let magnitude = digits[prefix..prefix + valid].iter().fold(0_i128, |value, digit| {
        let digit = char::from(*digit).to_digit(radix).unwrap_or_default();
        value.saturating_mul(radix.into()).saturating_add(digit.into())
    });
    let number = if negative { magnitude.saturating_neg() } else { magnitude };
    let fits = if signed { i64::try_from(number).is_ok() } else { u64::try_from(magnitude).is_ok() };
    let why: Option<&[u8]> = match prefix + valid {
        0 if !text.is_empty() => Some(b": expected numeric value"),
        end if end < digits.len() => Some(b": not completely converted"),
        _ if !fits => Some(b": Numerical result out of range"),
        _ => None,
    };
    if let Some(why) = why {
        shell.complain(&[b"printf: ", text, why].concat())?;
        *status = 1;
    }
    if signed {
        let least = if negative { i64::MIN } else { i64::MAX };
        return Ok(i64::try_from(number).unwrap_or(least));
    }
    let bits = u64::try_from(magnitude).map_or(u64::MAX, |bits| if negative { bits.wrapping_neg() } else { bits });
    Ok(bits.cast_signed())
}
