//! Scalars of YAML 1.1 as PyYAML constructs them: their type by tag or text, and the texts for which it fails.

/// Prefix of the tags of YAML 1.1.
pub(super) const YAML: &str = "tag:yaml.org,2002:";

const BOOLEANS: [&str; 6] = ["yes", "no", "true", "false", "on", "off"];

/// Longest decimal number that Python reads (`sys.int_info.default_max_str_digits`).
const MAX_DIGITS: usize = 4300;

/// Why PyYAML cannot construct a scalar. `tag` is `None` for one that is resolved by its text.
pub(super) fn fault(text: &str, tag: Option<&str>) -> Option<String> {
    let expected = match tag {
        None if is_integer(text) => "an integer",
        None if is_timestamp(text) => "a date",
        None => return None,
        Some("bool") => "yes, no, true, false, on or off",
        Some("int") => "an integer",
        Some("float") => "a number",
        Some("timestamp") => "a date",
        Some("binary") => "Base64",
        Some(_) => return None,
    };
    let is_valid = match expected {
        "an integer" => integer(text),
        "a number" => float(text),
        "a date" => timestamp(text),
        "Base64" => base64(text),
        _ => BOOLEANS.iter().any(|word| word.eq_ignore_ascii_case(text)),
    };
    (!is_valid).then(|| format!("expected {expected}, found {text:?}; put a text in quotes"))
}

/// Whether a plain text is resolved as an integer.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let all = |text: &str, is_digit: fn(char) -> bool| {
        !text.is_empty() && text.chars().all(|next| next == '_' || is_digit(next))
    };
    let prefixed = |prefix: &str, is_digit| digits.strip_prefix(prefix).is_some_and(|rest| all(rest, is_digit));
    let is_sexagesimal = || {
        let mut parts = digits.split(':');
        let is_first =
            parts.next().is_some_and(|first| first.starts_with(|c| ('1'..='9').contains(&c)) && all(first, is_decimal));
        is_first && digits.contains(':') && parts.all(is_sixtieth)
    };
    prefixed("0b", |next| matches!(next, '0' | '1'))
        || prefixed("0x", |next| next.is_ascii_hexdigit())
        || prefixed("0", |next| ('0'..='7').contains(&next))
        || digits.starts_with(|first: char| first.is_ascii_digit())
            && !digits.starts_with('0')
            && all(digits, is_decimal)
        || is_sexagesimal()
}

fn is_decimal(next: char) -> bool {
    next.is_ascii_digit()
}

fn is_sixtieth(part: &str) -> bool {
    part.len() <= 2 && part.parse::<u8>().is_ok_and(|value| value < 60)
}

/// Whether the constructor reads an integer.
fn integer(text: &str) -> bool {
    let digits = text.replace('_', "");
    let digits = digits.strip_prefix(['-', '+']).unwrap_or(&digits);
    let is = |digits: &str, radix| !digits.is_empty() && digits.chars().all(|next| next.is_digit(radix));
    match (digits.strip_prefix("0b"), digits.strip_prefix("0x")) {
        (Some(rest), _) => is(rest, 2),
        (_, Some(rest)) => is(rest, 16),
        _ if digits.starts_with('0') => is(digits, 8),
        _ => digits.split(':').all(|part| is(part, 10) && part.len() <= MAX_DIGITS),
    }
}

/// Whether the constructor reads a number, perhaps in base 60.
fn float(text: &str) -> bool {
    let text = text.replace('_', "").to_ascii_lowercase();
    let number = text.strip_prefix(['-', '+']).unwrap_or(&text);
    [".inf", ".nan"].contains(&number) || number.split(':').all(|part| part.trim().parse::<f64>().is_ok())
}

/// Base64 of Python, which skips other characters.
fn base64(text: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    let digits = text.bytes().take_while(|byte| *byte != b'=').filter(is_digit).count();
    let padding = text.bytes().filter(|byte| *byte == b'=').count();
    text.is_ascii() && (digits % 4 == 0 || digits % 4 > 1 && padding >= 4 - digits % 4)
}

/// Whether a plain text is resolved as a time.
fn is_timestamp(text: &str) -> bool {
    let parts = timestamp_parts(text);
    parts.is_some_and(|Parts { date: [_, month, day], time, .. }| time.is_some() || month.len() == 2 && day.len() == 2)
}

/// Whether the constructor reads a time.
fn timestamp(text: &str) -> bool {
    let Some(Parts { date, time, zone }) = timestamp_parts(text) else { return false };
    let [year, month, day] = date.map(|part| part.parse::<u32>().unwrap_or_default());
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let is_date = year > 0 && (1..=12).contains(&month) && (1..=last).contains(&day);
    let number = |part: &str| part.parse::<u32>().unwrap_or_default();
    let is_time =
        time.is_none_or(|[hour, minute, second]| number(hour) < 24 && number(minute) < 60 && number(second) < 60);
    is_date && is_time && zone.is_none_or(|(hours, minutes)| number(hours) * 60 + number(minutes) < 24 * 60)
}

/// The numbers of a time.
struct Parts<'a> {
    date: [&'a str; 3],
    time: Option<[&'a str; 3]>,
    /// Hours and minutes of the offset.
    zone: Option<(&'a str, &'a str)>,
}

fn timestamp_parts(text: &str) -> Option<Parts<'_>> {
    let (year, rest) = digits(text, 4, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 1, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 1, 2)?;
    let date = [year, month, day];
    if rest.is_empty() {
        return Some(Parts { date, time: None, zone: None });
    }
    let rest = match rest.strip_prefix(['T', 't']) {
        Some(rest) => rest,
        None => rest.strip_prefix(BLANKS)?.trim_start_matches(BLANKS),
    };
    let (hour, rest) = digits(rest, 1, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2, 2)?;
    let (second, rest) = digits(rest.strip_prefix(':')?, 2, 2)?;
    let rest = rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches(is_decimal));
    let time = Some([hour, minute, second]);
    let rest = rest.trim_start_matches(BLANKS);
    let Some(offset) = rest.strip_prefix(['-', '+']) else {
        return ["", "Z"].contains(&rest).then_some(Parts { date, time, zone: None });
    };
    let (hours, rest) = digits(offset, 1, 2)?;
    let (minutes, rest) = match rest.strip_prefix(':') {
        Some(rest) => digits(rest, 2, 2)?,
        None => ("0", rest),
    };
    rest.is_empty().then_some(Parts { date, time, zone: Some((hours, minutes)) })
}

const BLANKS: [char; 2] = [' ', '\t'];

/// At least `min` and at most `max` digits, and what follows.
fn digits(text: &str, min: usize, max: usize) -> Option<(&str, &str)> {
    let count = text.bytes().take(max).take_while(u8::is_ascii_digit).count();
    (count >= min).then(|| text.split_at(count))
}
