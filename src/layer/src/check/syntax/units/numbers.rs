//! Numbers in values of settings: integers, percentages, sizes, limits and signals.

use super::super::directories::microseconds;
use super::names::is_in;

/// A decimal number, or one with a prefix of its base.
pub(super) fn integer(value: &str) -> Option<i64> {
    let (sign, digits) = match value.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, value.strip_prefix('+').unwrap_or(value)),
    };
    let bases: [(&[&str], u32); 3] = [(&["0x", "0X"], 16), (&["0o", "0O", "0"], 8), (&["0b", "0B"], 2)];
    let based = bases.iter().rev().find_map(|(prefixes, base)| {
        let rest = prefixes.iter().find_map(|prefix| digits.strip_prefix(prefix)).filter(|rest| !rest.is_empty())?;
        Some((rest, *base)).filter(|(rest, base)| i64::from_str_radix(rest, *base).is_ok())
    });
    let (digits, base) = match based {
        Some(based) => based,
        None if digits.len() > 1 && digits.starts_with('0') => return None,
        None => (digits, 10),
    };
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    i64::from_str_radix(digits, base).ok().filter(|_| is_plain).map(|number| sign * number)
}

/// A number from zero, of 64 bits.
pub(super) fn natural(value: &str) -> Option<u64> {
    let large = || value.strip_prefix('+').unwrap_or(value).parse::<u64>().ok().filter(|_| !value.starts_with('0'));
    integer(value).and_then(|number| u64::try_from(number).ok()).or_else(large)
}

/// A percentage in units of 0.01 %, with two decimals at most.
pub(super) fn permyriad(value: &str) -> Option<u64> {
    let (number, scale, decimals) = [("%", 100, 2), ("‰", 10, 1), ("‱", 1, 0)]
        .into_iter()
        .find_map(|(sign, scale, decimals)| Some((value.strip_suffix(sign)?, scale, decimals)))?;
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, rest)| (whole, Some(rest)));
    let whole = u64::try_from(integer(whole)?).ok()?;
    let fraction = match fraction {
        None => 0,
        Some(digits) if (1..=decimals).contains(&digits.len()) => {
            let padded = format!("{digits:0<width$}", width = decimals);
            padded.bytes().all(|byte| byte.is_ascii_digit()).then(|| padded.parse::<u64>().ok())??
        }
        Some(_) => return None,
    };
    whole.checked_mul(scale)?.checked_add(fraction)
}

pub(super) fn is_percentage(value: &str) -> bool {
    permyriad(value).is_some_and(|share| share <= 10_000)
}

/// A share of one processor or of several.
pub(super) fn is_quota(value: &str) -> bool {
    permyriad(value).is_some_and(|share| share > 0)
}

/// Bytes of numbers with units of 1024 bytes, such as `1G 500M`.
pub(super) fn size(value: &str) -> Option<f64> {
    scaled(value, 1024.0)
}

/// A number of bits per second, with units of 1000.
pub(super) fn rate(value: &str) -> Option<f64> {
    scaled(value, 1000.0)
}

fn scaled(value: &str, base: f64) -> Option<f64> {
    // The sum below is less precise, and would refuse the largest numbers.
    if let Ok(number) = value.parse::<u64>() {
        return Some(as_float(number));
    }
    let is_digit = |next: char| next.is_ascii_digit() || next == '.';
    let (mut rest, mut sum, mut last) = (value.trim(), 0.0, 8);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        rest = rest.strip_prefix('+').unwrap_or(rest);
        let (number, after) = rest.split_at(rest.find(|next| !is_digit(next)).unwrap_or(rest.len()));
        let after = after.trim_start();
        if number.starts_with('.') {
            return None;
        }
        let number: f64 = number.parse().ok()?;
        let unit = after.chars().next();
        let power = match unit {
            None => 0,
            Some(unit) => "BKMGTPE".chars().position(|known| known == unit)? + 1,
        };
        // Units go down.
        if power >= last {
            return None;
        }
        last = power;
        sum += number * base.powi(i32::try_from(power.saturating_sub(1)).ok()?);
        rest = after.get(usize::from(unit.is_some())..)?.trim_start();
    }
    Some(sum).filter(|sum| *sum < 2_f64.powi(64))
}

/// A size, a share of the memory or infinity, which may not be zero if `is_positive`.
pub(super) fn is_memory(value: &str, is_positive: bool) -> bool {
    let is_enough = |is_zero: bool| !(is_positive && is_zero);
    value == "infinity"
        || permyriad(value).is_some_and(|share| share <= 10_000 && is_enough(share == 0))
        // systemd reserves the largest number for infinity.
        || size(value).is_some_and(|bytes| is_enough(bytes < 1.0) && bytes < 2_f64.powi(64))
}

/// A number of bytes.
pub(super) fn is_bytes(value: &str) -> bool {
    size(value).is_some()
}

/// Bytes or operations per second.
pub(super) fn is_rate(value: &str) -> bool {
    value == "infinity" || size(value).is_some_and(|bytes| bytes >= 1.0)
}

pub(super) fn is_size(value: &str) -> bool {
    is_memory(value, false)
}

/// A limit, or a soft and a hard one, of a unit: bytes, a time, a niceness, or else a number.
pub(super) fn is_limit(unit: &str, value: &str) -> bool {
    let (soft, hard) = value.split_once(':').unwrap_or((value, value));
    let limit = |part: &str| match unit {
        _ if part == "infinity" && unit != "nice" => Some(f64::INFINITY),
        "bytes" => size(part).filter(|_| !part.is_empty()),
        "nice" => niceness(part),
        "time" => microseconds(part, "s").map(|time| (time / 1e6).ceil()),
        "microseconds" => microseconds(part, "us").filter(|time| *time < 1.8e19),
        // systemd reserves the largest number for infinity.
        _ => natural(part).filter(|number| *number < u64::MAX).map(as_float),
    };
    limit(soft).zip(limit(hard)).is_some_and(|(soft, hard)| soft <= hard)
}

#[expect(clippy::cast_precision_loss, reason = "limits are only compared: their last digits do not matter")]
fn as_float(number: u64) -> f64 {
    number as f64
}

/// The limit of a niceness, which has a sign, or the limit itself.
fn niceness(value: &str) -> Option<f64> {
    let limit = match value.starts_with(['+', '-']) {
        true => 20 - integer(value).filter(|nice| (-20..=19).contains(nice))?,
        false => integer(value)?,
    };
    u32::try_from(limit).ok().filter(|limit| *limit <= 40).map(f64::from)
}

/// A time in nanoseconds, between two limits if there are any.
pub(super) fn is_nanoseconds(limits: &[&str], value: &str) -> bool {
    let limit = |at: usize| limits.get(at).and_then(|limit| limit.parse::<f64>().ok());
    nanoseconds(value)
        .is_some_and(|time| limit(0).is_none_or(|low| low <= time) && limit(1).is_none_or(|high| time <= high))
}

/// The nanoseconds of a sequence of times, of which those without a unit are nanoseconds.
fn nanoseconds(value: &str) -> Option<f64> {
    let (mut rest, mut sum) = (value.trim(), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let is_number = |next: char| next.is_ascii_digit() || "+. ".contains(next);
        let unit_at = rest.find(|next| !is_number(next)).unwrap_or(rest.len());
        let unit_len = rest[unit_at..].find(|next: char| !next.is_alphabetic()).unwrap_or(rest.len() - unit_at);
        let (part, after) = rest.split_at(unit_at + unit_len);
        let count = ["nsec", "ns"].iter().find_map(|unit| part.strip_suffix(unit)).map(str::trim_end);
        let count = count.or_else(|| (unit_len == 0).then(|| part.trim_end()));
        sum += match count {
            Some(count) => microseconds(count, "us")?,
            None => microseconds(part, "us")? * 1e3,
        };
        rest = after.trim_start();
    }
    Some(sum)
}

/// The bits of a mode in octal digits.
pub(super) fn is_mode(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit()) && u32::from_str_radix(value, 8).is_ok_and(|mode| mode <= 0o7777)
}

pub(super) fn is_signal(value: &str) -> bool {
    let name = value.strip_prefix("SIG").unwrap_or(value);
    let offset = |offset: &str| offset.parse::<u8>().is_ok_and(|offset| offset <= 30);
    let real = |base: &str, sign: char| {
        let rest = name.strip_prefix(base);
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(sign).is_some_and(offset))
    };
    is_in("signals", name)
        || real("RTMIN", '+')
        || real("RTMAX", '-')
        || integer(value).is_some_and(|number| (1..=64).contains(&number))
}
