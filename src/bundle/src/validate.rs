//! Validates single values of a bundle: names, paths, ports. Each function returns an error message, or `None`.

use std::collections::BTreeSet;

use vmbake_common::escape;
use vmbake_layer::command_line::program;

/// Longest name of a publisher or a bundle, in bytes: that of a label in DNS.
const MAX_LABEL: usize = 63;
/// Longest other name, in bytes.
const MAX_NAME: usize = 255;
/// Longest path, in bytes.
const MAX_PATH: usize = 4095;
/// Most elements of a list.
const MAX_LIST: usize = 1024;

/// The name of a publisher or a bundle.
pub(super) fn label(name: &str) -> Option<String> {
    let is_fine = name.len() <= MAX_LABEL
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    (!is_fine).then(|| format!("{name:?} is invalid: expected at most {MAX_LABEL} lowercase letters, digits and `-`"))
}

/// The name of a system, a kind, a layer, an artifact or of what a bundle provides.
pub(super) fn plain(name: &str) -> Option<String> {
    let is_fine = name.len() <= MAX_NAME
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._+".contains(&byte));
    (!is_fine).then(|| format!("{name:?} is invalid: expected lowercase letters, digits, `-`, `+`, `.` and `_`"))
}

/// The name of a program, a library, a kernel module or an account.
pub(super) fn plain_or_mixed(name: &str) -> Option<String> {
    let is_fine = (1..=MAX_NAME).contains(&name.len())
        && !name.starts_with(['.', '-'])
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._+".contains(&byte));
    (!is_fine).then(|| format!("{name:?} is invalid: expected letters, digits, `-`, `+`, `.` and `_`"))
}

/// An architecture that images are made for.
pub(super) fn arch(name: &str) -> Option<String> {
    (!["amd64", "arm64"].contains(&name)).then(|| format!("{name:?} is invalid: expected amd64 or arm64"))
}

/// One line of text.
pub(super) fn line(text: &str) -> Option<String> {
    let is_fine = !text.trim().is_empty() && text.len() <= MAX_PATH && !text.chars().any(escape::is_unsafe);
    (!is_fine).then(|| "is not a single line of text".to_owned())
}

/// An absolute path without `.`, `..`, empty names, or characters that change or hide text.
pub(super) fn path(path: &str) -> Option<String> {
    if path.chars().any(escape::is_unsafe) {
        return Some(format!("path {path:?} contains a control, bidirectional or zero-width character"));
    }
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_fine = path.len() <= MAX_PATH && path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_part));
    (!is_fine).then(|| format!("path {path:?} is not absolute or contains `..`, `.` or an empty name"))
}

/// A command: the absolute path of a program, and its arguments.
pub(super) fn command(text: &str) -> Option<String> {
    let Some(program) = program(text) else {
        return Some(format!("command {text:?} contains an unclosed quote, or text right after a quoted word"));
    };
    line(text).map(|what| format!("command {text:?} {what}")).or_else(|| path(&program))
}

/// A port with its protocol.
pub(super) fn port(text: &str) -> Option<String> {
    let is_port = |number: &str| !number.starts_with('0') && number.parse::<u16>().is_ok() && !number.starts_with('+');
    let is_fine =
        text.split_once('/').is_some_and(|(number, protocol)| is_port(number) && ["tcp", "udp"].contains(&protocol));
    (!is_fine).then(|| format!("{text:?} is invalid: expected NUMBER/tcp or NUMBER/udp"))
}

/// The first fault of a list.
pub(super) fn list(list: &BTreeSet<String>, rule: impl Fn(&str) -> Option<String>) -> Option<String> {
    if list.len() > MAX_LIST {
        return Some(format!("has more than {MAX_LIST} entries"));
    }
    list.iter().find_map(|value| rule(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_forms() {
        assert!(label("acme-1").is_none() && path("/a/b").is_none() && port("6443/tcp").is_none());
        for wrong in ["", "-a", "A", "a.b", "a_b", &"a".repeat(64)] {
            assert!(label(wrong).is_some(), "{wrong}");
        }
        for wrong in ["", "a", "/", "/a/", "/a/../b", "//a", "/a\nb", "/a\u{202e}b", "/a\u{200d}"] {
            assert!(path(wrong).is_some(), "{wrong}");
        }
        for wrong in ["", "6443", "0/tcp", "70000/tcp", "+1/tcp", "1/sctp"] {
            assert!(port(wrong).is_some(), "{wrong}");
        }
    }
}
