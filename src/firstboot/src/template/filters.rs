//! Filters and functions.

use super::{Fault, Value};

/// Name and number of arguments, without the filtered value.
const FILTERS: [(&str, usize); 9] = [
    ("int", 0),
    ("split", 1),
    ("lines", 0),
    ("base64", 0),
    ("url", 1),
    ("starts_with", 1),
    ("ends_with", 1),
    ("replace", 2),
    ("length", 0),
];

/// First line of a certificate (RFC 7468, section 5).
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n";

/// Functions query the machine; each takes one text.
const FUNCTIONS: [&str; 3] = ["exists", "addresses", "cloud"];

pub(super) fn filter(name: &str, arguments: usize) -> Result<&'static str, String> {
    match FILTERS.iter().find(|(known, _)| *known == name) {
        Some((known, count)) if *count == arguments => Ok(known),
        Some((_, count)) => Err(format!("filter {name} takes {count} arguments, found {arguments}")),
        None => Err(format!("unknown filter {name}")),
    }
}

pub(super) fn function(name: &str, arguments: usize) -> Result<&'static str, String> {
    match FUNCTIONS.iter().find(|known| **known == name) {
        Some(known) if arguments == 1 => Ok(known),
        Some(_) => Err(format!("function {name} takes 1 argument, found {arguments}")),
        None => Err(format!("unknown function {name}")),
    }
}

/// Applies a filter.
pub(super) fn apply(filter: &str, value: Value, arguments: &[Value]) -> Result<Value, Fault> {
    if let ("length", Value::List(list)) = (filter, &value) {
        return Ok(Value::Number(i64::try_from(list.len()).unwrap_or(i64::MAX)));
    }
    if let ("int", Value::Number(_)) = (filter, &value) {
        return Ok(value);
    }
    let text = value.text()?;
    let argument = |index: usize| arguments.get(index).map_or(Ok(""), Value::text);
    Ok(match filter {
        "int" => Value::Number(number(text)?),
        "split" => Value::List(split(text, argument(0)?)?),
        "lines" => Value::List(lines(text)),
        "base64" => Value::Text(base64(text)?),
        "url" => Value::Text(Url::parse(text)?.part(argument(0)?)?),
        "starts_with" => Value::Boolean(text.starts_with(argument(0)?)),
        "ends_with" => Value::Boolean(text.ends_with(argument(0)?)),
        "replace" => Value::Text(text.replace(argument(0)?, argument(1)?)),
        _ => Value::Number(i64::try_from(text.chars().count()).unwrap_or(i64::MAX)),
    })
}

fn number(text: &str) -> Result<i64, Fault> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().ok_or_else(|| Fault::value(format!("{text:?} is not a number")))
}

fn split(text: &str, by: &str) -> Result<Vec<String>, Fault> {
    if by.is_empty() {
        return Err(Fault::value("split requires a separator"));
    }
    Ok(text.split(by).map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect())
}

fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !lines.iter().any(|known| known == line) {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// Decodes base64 (RFC 4648, section 4) of a UTF-8 text; blanks and line breaks are skipped, padding is required. A PEM certificate
/// is returned unchanged: the base64 alphabet has no dash.
pub(crate) fn base64(text: &str) -> Result<String, Fault> {
    if text.starts_with(CERTIFICATE) {
        return Ok(text.to_owned());
    }
    let wrong = || Fault::value("value is not base64 of UTF-8 text");
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let padding = digits.iter().rev().take_while(|byte| **byte == b'=').count();
    if !digits.len().is_multiple_of(4) || padding > 2 {
        return Err(wrong());
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    for group in digits[..digits.len() - padding].chunks(4) {
        let mut word = 0_u32;
        for index in 0..4 {
            word = word << 6 | group.get(index).map_or(Some(0), |digit| sextet(*digit)).ok_or_else(wrong)?;
        }
        let [_, decoded @ ..] = word.to_be_bytes();
        let (kept, dropped) = decoded.split_at(group.len().saturating_sub(1).min(3));
        // Trailing bits must be zero, so that encodings are unique.
        if group.len() < 4 && dropped.iter().any(|byte| *byte != 0) {
            return Err(wrong());
        }
        bytes.extend_from_slice(kept);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn sextet(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

/// The parts of an `http` or `https` URL (RFC 3986, section 3) without user, query and fragment.
pub(crate) struct Url<'a> {
    scheme: &'a str,
    host: &'a str,
    port: &'a str,
    path: &'a str,
}

impl<'a> Url<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, Fault> {
        // The text is not shown: it can contain a password.
        let wrong = |reason: &str| Fault::value(format!("value is not a URL: {reason}"));
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("missing ://"))?;
        let port = match scheme {
            "http" => "80",
            "https" => "443",
            _ => return Err(wrong("expected http:// or https://")),
        };
        if let Some(c) = rest.chars().find(|c| c.is_control() || c.is_whitespace() || "?#@\"'\\".contains(*c)) {
            return Err(wrong(&format!("contains {c:?}")));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, given) = split_port(authority).ok_or_else(|| wrong("invalid host or port"))?;
        Ok(Self { scheme, host, port: given.unwrap_or(port), path })
    }

    fn part(&self, name: &str) -> Result<String, Fault> {
        Ok(match name {
            "scheme" => self.scheme,
            "host" => self.host,
            "port" => self.port,
            "path" => self.path,
            _ => {
                return Err(Fault::value(format!(
                    "unknown part of a URL {name:?}: expected scheme, host, port or path"
                )));
            }
        }
        .to_owned())
    }
}

/// Host, without brackets, and port of `host`, `host:port`, `[v6]` and `[v6]:port`.
pub fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_port =
        |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|n| n > 0);
    let valid = !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte))
        && port.is_none_or(is_port);
    valid.then_some((host, port))
}
