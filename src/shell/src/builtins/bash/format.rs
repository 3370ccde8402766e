//! `printf` of bash.

use super::assign_given;
use super::escapes::{Style, unescape};
use crate::builtins::print::{Conversion, digits, padded};
use crate::eval::Run;
use crate::expand::{number, quoting};
use crate::host::Question;
use crate::shell::Shell;
use crate::variables::divide_reference;

/// `printf [-v variable] format [argument…]`
pub(in crate::builtins) fn printf(shell: &mut Shell<'_>, all: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut args = all;
    let mut variable = None;
    match all {
        [option, name, rest @ ..] if option == b"-v" => (variable, args) = (Some(name), rest),
        [option, ..] if option.starts_with(b"-v") => return shell.unsupported(option),
        [option, ..] if option.len() > 1 && option.starts_with(b"-") && option != b"--" => return usage(shell),
        _ => {}
    }
    if args.first().is_some_and(|arg| arg == b"--") {
        args = &args[1..];
    }
    if let Some(name) = variable
        && divide_reference(name).is_none()
    {
        shell.complain(&[b"printf: `", &name[..], b"': not a valid identifier"].concat())?;
        return Ok(2);
    }
    let Some((format, operands)) = args.split_first() else { return usage(shell) };
    let (mut out, status) = formatted(shell, format, operands)?;
    shell.require_alike_texts(args, &out, |shell, args| {
        let Some((format, operands)) = args.split_first() else { return Ok(Vec::new()) };
        formatted(shell, format, operands).map(|(out, _)| out)
    })?;
    match variable {
        None => return Ok(status | super::write(shell, "printf", &out)?),
        Some(name) => {
            out.truncate(out.iter().position(|byte| *byte == 0).unwrap_or(out.len()));
            if !assign_given(shell, name, &out)? {
                return Ok(1);
            }
        }
    }
    Ok(status)
}

/// The text that a format gives for all operands, and the status.
fn formatted(shell: &mut Shell<'_>, format: &[u8], operands: &[Vec<u8>]) -> Run<(Vec<u8>, u8)> {
    let mut printer = Printer { operands, at: 0, out: Vec::new(), status: 0, ended: false };
    loop {
        shell.step()?;
        let before = printer.at;
        printer.once(shell, format)?;
        if printer.ended || printer.at >= operands.len() || printer.at == before {
            return Ok((printer.out, printer.status));
        }
    }
}

fn usage(shell: &mut Shell<'_>) -> Run<u8> {
    shell.complain(b"printf: usage: printf [-v var] format [arguments]")?;
    Ok(2)
}

struct Printer<'a> {
    operands: &'a [Vec<u8>],
    at: usize,
    out: Vec<u8>,
    status: u8,
    /// Whether `\c` or a wrong format ended the output.
    ended: bool,
}

impl<'a> Printer<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let operand = self.operands.get(self.at).map(Vec::as_slice);
        self.at += 1;
        operand
    }

    fn push(&mut self, shell: &mut Shell<'_>, bytes: &[u8]) -> Run<()> {
        shell.spend_size(self.out.len().saturating_add(bytes.len()), bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Goes through the format once.
    fn once(&mut self, shell: &mut Shell<'_>, format: &[u8]) -> Run<()> {
        let mut rest = format;
        while !rest.is_empty() && !self.ended {
            let len = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
            let (text, _) = unescape(shell, &rest[..len], Style::Format)?;
            self.push(shell, &text)?;
            rest = &rest[len..];
            if rest.starts_with(b"%%") {
                self.push(shell, b"%")?;
                rest = &rest[2..];
            } else if !rest.is_empty() {
                rest = self.conversion(shell, &rest[1..])?;
            }
        }
        Ok(())
    }

    fn size<'t>(&mut self, shell: &mut Shell<'_>, text: &'t [u8]) -> Run<(i64, &'t [u8])> {
        if let Some(rest) = text.strip_prefix(b"*") {
            let operand = self.next();
            return Ok((clamped(self.integer(shell, operand)?), rest));
        }
        let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        Ok((number(&text[..len]), &text[len..]))
    }

    /// One conversion; gives what follows it.
    fn conversion<'t>(&mut self, shell: &mut Shell<'_>, text: &'t [u8]) -> Run<&'t [u8]> {
        let count = text.iter().take_while(|byte| b"-0+ #'".contains(byte)).count();
        let (flags, rest) = text.split_at(count);
        let has = |flag: u8| flags.contains(&flag);
        let (width, mut rest) = self.size(shell, rest)?;
        let mut precision = None;
        if let Some(after) = rest.strip_prefix(b".") {
            let (value, after) = self.size(shell, after)?;
            (precision, rest) = (Some(value), after);
        }
        let size = |value: i64| usize::try_from(value.unsigned_abs()).unwrap_or(usize::MAX);
        for length in [width, precision.unwrap_or_default()] {
            shell.spend_size(size(length), size(length))?;
        }
        let modifiers = rest.iter().take_while(|byte| b"hjlLtz".contains(byte)).count();
        rest = &rest[modifiers..];
        let Some((letter, rest)) = rest.split_first() else {
            shell.complain(b"printf: `%': missing format character")?;
            (self.status, self.ended) = (1, true);
            return Ok(rest);
        };
        let conversion = Conversion {
            minus: has(b'-') || width < 0,
            zero: has(b'0'),
            plus: has(b'+'),
            space: has(b' '),
            alternative: has(b'#'),
            width: size(width),
            precision: precision.filter(|value| *value >= 0).map(size),
            letter: *letter,
        };
        self.convert(shell, &conversion)?;
        Ok(rest)
    }

    fn convert(&mut self, shell: &mut Shell<'_>, conversion: &Conversion) -> Run<()> {
        let text = match conversion.letter {
            b's' => self.next().unwrap_or_default().to_vec(),
            b'c' => {
                let operand = self.next().unwrap_or_default();
                shell.ask(Question::Value(operand))?;
                vec![operand.first().copied().unwrap_or(0)]
            }
            b'b' => {
                let (text, ended) = unescape(shell, self.next().unwrap_or_default(), Style::Operand)?;
                self.ended = ended;
                text
            }
            b'q' => {
                let operand = self.next().unwrap_or_default();
                shell.ask(Question::Value(operand))?;
                quoting::backslashed(operand)
            }
            b'd' | b'i' => {
                let operand = self.next();
                let value = clamped(self.integer(shell, operand)?);
                let text = padded(conversion, digits(conversion, value));
                return self.push(shell, &text);
            }
            b'u' | b'o' | b'x' | b'X' => {
                let operand = self.next();
                let value = self.integer(shell, operand)?;
                let bits = u64::try_from(value.unsigned_abs());
                let value = bits.map_or(u64::MAX, |bits| if value < 0 { bits.wrapping_neg() } else { bits });
                let text = padded(conversion, digits(conversion, value.cast_signed()));
                return self.push(shell, &text);
            }
            letter @ (b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'n' | b'(' | b'Q') => {
                return shell.unsupported(&[b'%', letter]);
            }
            letter => {
                shell.complain(&[b"printf: `", &[letter][..], b"': invalid format character"].concat())?;
                (self.status, self.ended) = (1, true);
                return Ok(());
            }
        };
        if conversion.width > 0 || conversion.precision.is_some() || conversion.letter == b'c' {
            shell.ascii_only(&text)?;
        }
        let mut text = text;
        if conversion.letter != b'c' {
            text.truncate(conversion.precision.unwrap_or(usize::MAX));
        }
        let text = padded(conversion, text);
        self.push(shell, &text)
    }

    /// The number that an operand begins with; what follows it is an error that does not end the command.
    fn integer(&mut self, shell: &mut Shell<'_>, operand: Option<&[u8]>) -> Run<i128> {
        let Some(text) = operand else { return Ok(0) };
        shell.ask(Question::Value(text))?;
        if let [b'"' | b'\'', rest @ ..] = text {
            let first = rest.first().copied().unwrap_or(0);
            if !first.is_ascii() {
                return shell.unsupported(b"the number of a character beyond ASCII");
            }
            return Ok(first.into());
        }
        let trimmed = text.trim_ascii_start();
        let (negative, unsigned) = match trimmed {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (radix, digits) = match unsigned {
            [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => (16, rest),
            [b'0', ..] => (8, unsigned),
            _ => (10, unsigned),
        };
        let valid = digits.iter().take_while(|digit| char::from(**digit).is_digit(radix)).count();
        let value = digits[..valid].iter().fold(0_i128, |value, digit| {
            value
                .saturating_mul(radix.into())
                .saturating_add(char::from(*digit).to_digit(radix).unwrap_or_default().into())
        });
        if !text.is_empty() && (valid < digits.len() || valid == 0) {
            shell.complain(&[b"printf: ", text, b": invalid number"].concat())?;
            self.status = 1;
        }
        Ok(if negative { -value } else { value })
    }
}

fn clamped(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}
