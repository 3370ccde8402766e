//! URLs that a script and the command line can use as they are.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::PodplaneError;

/// Maximum lengths of a DNS label and name, in bytes.
const MAX_LABEL: usize = 63;
const MAX_HOST: usize = 253;

/// The URL of the directory, without trailing slashes.
pub(super) fn base_url(url: &str) -> Result<&str, PodplaneError> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    // curl expands brackets and braces outside of an address.
    let is_allowed = |c: char| c.is_ascii_graphic() && !"?#\"'`\\$<>{}[]|^@".contains(c);
    let url = url.trim_end_matches('/');
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_segment = |segment: &str| {
        let plain = segment.replace("%2e", ".").replace("%2E", ".");
        plain != "." && plain != ".." && has_safe_escapes(segment)
    };
    match is_authority(authority) && path.chars().all(is_allowed) && path.split('/').all(is_segment) {
        true => Ok(url),
        false => Err(PodplaneError::Url { url: url.to_owned() }),
    }
}

/// Whether every percent sign starts an escape, and none is for a slash, which servers treat as a separator, a control
/// character, or a percent sign, which some programs decode again.
fn has_safe_escapes(text: &str) -> bool {
    let is_safe = |rest: &str| {
        let digits = rest.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.is_some_and(|byte| !byte.is_ascii_control() && !b"/\\%".contains(&byte))
    };
    text.split('%').skip(1).all(is_safe)
}

/// Whether it is a host name, an IPv4 address, or an IPv6 address in brackets, optionally with a port.
fn is_authority(text: &str) -> bool {
    let is_port = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits && text.parse::<u16>().is_ok_and(|port| port > 0)
    };
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let is_rest = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return address.parse::<Ipv6Addr>().is_ok() && is_rest;
    }
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    port.is_none_or(is_port) && is_host(host)
}

/// Whether it is a DNS name, optionally with a trailing dot, or an IPv4 address.
fn is_host(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    // A name that ends with a number is parsed as an address (WHATWG URL).
    let is_number = host.rsplit('.').next().is_some_and(|label| {
        let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
        label.bytes().all(|byte| byte.is_ascii_digit())
            || hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    host.len() <= MAX_HOST && host.split('.').all(is_label) && (!is_number || host.parse::<Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_a_url_that_a_script_may_hold() {
        for (url, expected) in [
            ("https://images.example/knc/", Some("https://images.example/knc")),
            ("http://10.0.2.2:8080", Some("http://10.0.2.2:8080")),
            ("https://[fd00::1]/a%20b/", Some("https://[fd00::1]/a%20b")),
            ("ftp://images.example", None),
            ("https://", None),
            ("https:///knc", None),
            ("https://images.example/?a", None),
            ("https://images.example/$(id)", None),
            ("https://images.example/\"a", None),
            ("https://images.example/a b", None),
            ("https://images.example:443//knc//", Some("https://images.example:443//knc")),
            ("https://127.0.0.1/a", Some("https://127.0.0.1/a")),
            ("https://images.example:0", None),
            ("https://images.example:65536", None),
            ("https://images.example:", None),
            ("https://images.example:+80", None),
            ("https://images.example/a%", None),
            ("https://images.example/a%2", None),
            ("https://images.example/a%zz/b", None),
            ("https://images.example/a%é0/b", None),
            ("https://-images.example", None),
            ("https://images-.example", None),
            ("https://.example", None),
            ("https://images..example", None),
            ("https://%41.example", None),
            ("https://user@images.example", None),
            ("https://256.0.0.1", None),
            ("https://[fd00::1", None),
            ("https://[fd00]/", None),
            ("https://[fd00::1]x", None),
            ("https://images.example/../knc", None),
            ("https://images.example/a/.", None),
            ("https://images.example/%2e%2E/knc", None),
            ("http://0x7f000001", None),
            ("http://127.0.0.0X1/a", None),
            ("http://0x", None),
            ("http://0xg.example", Some("http://0xg.example")),
            ("https://images.example/%2f..", None),
            ("https://images.example/a%5c..%5Cb", None),
            ("https://images.example/%00", None),
            ("https://images.example/a%0d%0Ab", None),
            ("https://images.example/%7f", None),
            ("https://images.example/%252e%252e", None),
            ("https://images.example/[1-3]", None),
            ("https://images.example/a]", None),
            ("https://images.example/{a,b}", None),
            ("https://[fd00::1]:8080/a", Some("https://[fd00::1]:8080/a")),
        ] {
            assert_eq!(base_url(url).ok(), expected, "{url}");
        }
    }
}
