//! `printf` and `sprintf` of awk, and conversion of numbers to strings.

use super::machine::Machine;
use super::value::Value;
use crate::builtins::{Conversion, digits, padded};
use crate::eval::Run;

/// More digits than these of a number with a fraction are refused.
const MAX_PRECISION: usize = 400;

impl Machine<'_, '_> {
    pub(super) fn format(&mut self, format: &[u8], values: &[Value]) -> Run<Vec<u8>> {
        let mut out = Vec::new();
        let mut values = values.iter();
        let mut rest = format;
        while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
            out.extend(&rest[..at]);
            rest = &rest[at + 1..];
            if rest.first() == Some(&b'%') {
                out.push(b'%');
                rest = &rest[1..];
                continue;
            }
            let (conversion, len) = self.conversion(rest)?;
            rest = &rest[len..];
            let Some(value) = values.next() else {
                return self.shell.unsupported(b"a format of awk with more conversions than values");
            };
            let text = self.converted(&conversion, value)?;
            out.extend(padded(&conversion, text));
            self.shell.spend_size(out.len(), conversion.width)?;
        }
        out.extend(rest);
        self.shell.spend_size(out.len(), format.len())?;
        Ok(out)
    }

    /// A number by the format of `CONVFMT` or `OFMT`.
    pub(super) fn convert_number(&mut self, format: &[u8], value: f64) -> Run<Vec<u8>> {
        let Some(rest) = format.strip_prefix(b"%") else { return self.shell.unsupported(b"CONVFMT or OFMT of awk") };
        let (conversion, len) = self.conversion(rest)?;
        if len != rest.len() || !b"eEfFgG".contains(&conversion.letter) {
            return self.shell.unsupported(b"CONVFMT or OFMT of awk");
        }
        Ok(padded(&conversion, fraction(&conversion, value)))
    }

    fn conversion(&mut self, text: &[u8]) -> Run<(Conversion, usize)> {
        let mut at = text.iter().take_while(|byte| b"-0+ #".contains(byte)).count();
        let has = |flag: u8| text[..at].contains(&flag);
        let (minus, zero, plus, space, alternative) = (has(b'-'), has(b'0'), has(b'+'), has(b' '), has(b'#'));
        let size = |at: &mut usize| {
            let len = text[*at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let size = text[*at..*at + len]
                .iter()
                .fold(0_usize, |size, digit| size.saturating_mul(10).saturating_add(usize::from(digit - b'0')));
            *at += len;
            size
        };
        let width = size(&mut at);
        let mut precision = None;
        if text.get(at) == Some(&b'.') {
            at += 1;
            precision = Some(size(&mut at));
        }
        let letter = match text.get(at) {
            Some(letter) if b"cdiouxXeEfFgGs".contains(letter) => *letter,
            _ => return self.shell.unsupported(&[b"the format of awk %", text].concat()),
        };
        self.shell.spend_size(width, width)?;
        self.shell.spend_size(precision.unwrap_or_default(), precision.unwrap_or_default())?;
        if b"eEfFgG".contains(&letter) && precision.is_some_and(|precision| precision > MAX_PRECISION) {
            return self.shell.unsupported(&[b"the format of awk %", text].concat());
        }
        Ok((Conversion { minus, zero, plus, space, alternative, width, precision, letter }, at + 1))
    }

    fn converted(&mut self, conversion: &Conversion, value: &Value) -> Run<Vec<u8>> {
        match conversion.letter {
            b's' => {
                let text = self.text(value)?;
                let len = text.len().min(conversion.precision.unwrap_or(usize::MAX));
                self.shell.spend(len)?;
                Ok(text[..len].to_vec())
            }
            b'c' if matches!(value, Value::Unset) => self.shell.unsupported(b"%c of nothing in awk"),
            b'c' => match self.numeric(value)? {
                Some(number) => {
                    let byte = self.integer(number)?.rem_euclid(256);
                    Ok(u8::try_from(byte).map_or(Vec::new(), |byte| vec![byte]))
                }
                None => match self.text(value)?.first() {
                    Some(byte) => Ok(vec![*byte]),
                    None => self.shell.unsupported(b"%c of nothing in awk"),
                },
            },
            b'd' | b'i' => {
                let number = self.number(value)?;
                Ok(digits(conversion, self.integer(number)?))
            }
            b'o' | b'u' | b'x' | b'X' => {
                let number = self.number(value)?;
                let integer = self.integer(number)?;
                if integer < 0 {
                    return self.shell.unsupported(b"a negative number in a format of awk that has no sign");
                }
                Ok(digits(conversion, integer))
            }
            _ => {
                let number = self.number(value)?;
                Ok(fraction(conversion, number))
            }
        }
    }
}

/// `%e`, `%f` and `%g`, filled with zeros where a flag wants them.
fn fraction(conversion: &Conversion, value: f64) -> Vec<u8> {
    let precision = conversion.precision.unwrap_or(6);
    let magnitude = value.abs();
    let number = match conversion.letter.to_ascii_lowercase() {
        b'f' => fixed(magnitude, precision, conversion.alternative),
        b'e' => exponential(magnitude, precision, conversion.alternative),
        _ => general(magnitude, precision.max(1), conversion.alternative),
    };
    let number = if conversion.letter.is_ascii_uppercase() { number.to_ascii_uppercase() } else { number };
    let sign = match conversion {
        _ if value.is_sign_negative() => "-",
        Conversion { plus: true, .. } => "+",
        Conversion { space: true, .. } => " ",
        _ => "",
    };
    let least = if conversion.zero && !conversion.minus { conversion.width } else { 0 };
    let zeros = "0".repeat(least.saturating_sub(sign.len() + number.len()));
    format!("{sign}{zeros}{number}").into_bytes()
}

fn fixed(value: f64, precision: usize, point: bool) -> String {
    let point = if point && precision == 0 { "." } else { "" };
    format!("{value:.precision$}{point}")
}

fn exponential(value: f64, precision: usize, point: bool) -> String {
    let (digits, exponent) = scientific(value, precision);
    let point = if point && precision == 0 { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}{point}e{sign}{:02}", exponent.unsigned_abs())
}

/// The digits of a number between one and ten, and its exponent.
fn scientific(value: f64, precision: usize) -> (String, i32) {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.to_owned(), exponent.parse().unwrap_or_default())
}

/// The shorter of both ways, without zeros at its end.
fn general(value: f64, precision: usize, keep: bool) -> String {
    let (_, exponent) = scientific(value, precision - 1);
    let places = i64::try_from(precision).unwrap_or(i64::MAX) - 1 - i64::from(exponent);
    let trimmed = |text: &str| {
        let shorter = text.trim_end_matches('0').trim_end_matches('.');
        if keep || !text.contains('.') { text.to_owned() } else { shorter.to_owned() }
    };
    if exponent < -4 || places < 0 {
        let text = exponential(value, precision - 1, keep);
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{exponent}", trimmed(digits));
    }
    trimmed(&fixed(value, usize::try_from(places).unwrap_or_default(), keep))
}
