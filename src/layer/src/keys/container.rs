//! Settings of the container image that a bake writes: names as in the configuration of the OCI image specification 1.1.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::findings::Findings;
use crate::position::child;
use crate::{Layer, validate};

/// Settings of the container image that `--format oci` writes. Of several layers, the last one with a setting or an
/// entry applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Container {
    /// Program to run, with its first arguments.
    #[serde(default)]
    pub entrypoint: Option<Vec<String>>,
    /// Arguments of the entrypoint, or the program with its arguments. Users replace them when they start a container. Without both, it is
    /// `/sbin/init` if the image has it.
    #[serde(default)]
    pub cmd: Option<Vec<String>>,
    /// Environment variables. `PATH` is Debian's for root if it is not set.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// User that runs the program, or `USER:GROUP`, each as a name in the image or as a number. Otherwise it is root.
    #[serde(default)]
    pub user: Option<String>,
    /// Absolute path of the working directory. Otherwise it is `/`.
    #[serde(default)]
    pub working_dir: Option<String>,
    /// Signal that stops the container, such as `SIGTERM`. It is `SIGRTMIN+3` if the image runs `/sbin/init` by default.
    #[serde(default)]
    pub stop_signal: Option<String>,
    /// Ports that the program listens on: `PORT`, `PORT/tcp`, `PORT/udp` or `PORT/sctp`.
    #[serde(default)]
    pub exposed_ports: BTreeSet<String>,
    /// Labels of the image.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the image's manifest, such as `org.opencontainers.image.source`.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

impl Container {
    /// The settings of `layers`, in the order in which they apply.
    pub fn merged(layers: &[Layer]) -> Self {
        let mut all = Self::default();
        for next in layers.iter().filter_map(|layer| layer.schema.container.clone()) {
            all.entrypoint = next.entrypoint.or(all.entrypoint);
            all.cmd = next.cmd.or(all.cmd);
            all.user = next.user.or(all.user);
            all.working_dir = next.working_dir.or(all.working_dir);
            all.stop_signal = next.stop_signal.or(all.stop_signal);
            all.environment.extend(next.environment);
            all.exposed_ports.extend(next.exposed_ports);
            all.labels.extend(next.labels);
            all.annotations.extend(next.annotations);
        }
        all
    }
}

/// Validates `container`.
pub(super) fn check(found: &mut Findings, layer: &Layer) {
    let Some(container) = &layer.schema.container else { return };
    let value = |name: &str| format!("/container/{name}");
    for (name, words) in [("entrypoint", &container.entrypoint), ("cmd", &container.cmd)] {
        for (index, word) in words.iter().flatten().enumerate() {
            let nul = word.contains('\0').then(|| format!("{word:?} contains a NUL byte"));
            let empty = (index == 0 && word.is_empty()).then(|| "the program is empty".to_owned());
            found.value(format!("{}/{index}", value(name)), nul.or(empty));
        }
    }
    for (name, text) in &container.environment {
        let pointer = child(&value("environment"), name);
        let valid = !name.is_empty() && !name.contains('=') && !name.chars().any(char::is_control);
        found.key(pointer.clone(), (!valid).then(|| format!("{name:?} is not a name of an environment variable")));
        found.value(pointer, text.contains('\0').then(|| format!("{text:?} contains a NUL byte")));
    }
    found.value(value("user"), container.user.as_deref().and_then(user));
    let directory = container.working_dir.as_deref().filter(|path| *path != "/");
    found.value(value("working_dir"), directory.and_then(validate::path));
    found.value(value("stop_signal"), container.stop_signal.as_deref().and_then(signal));
    for (index, text) in container.exposed_ports.iter().enumerate() {
        found.value(format!("{}/{index}", value("exposed_ports")), port(text));
    }
    for (name, entries) in [("labels", &container.labels), ("annotations", &container.annotations)] {
        found.keys(&value(name), entries.keys(), validate::line);
    }
}

fn user(text: &str) -> Option<String> {
    let is_one = |part: &str| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { part.parse::<u32>().is_ok() } else { validate::account(part).is_none() }
    };
    let mut parts = text.splitn(2, ':');
    (!parts.all(is_one)).then(|| format!("user {text:?} is invalid: expected USER or USER:GROUP, as names or numbers"))
}

/// Names of signal(7) without `SIG`.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

fn signal(text: &str) -> Option<String> {
    let offset = |rest: &str, sign: char, most: u8| {
        let number = rest.strip_prefix(sign).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        rest.is_empty()
            || number.and_then(|number| number.parse().ok()).is_some_and(|found| (1..=most).contains(&found))
    };
    let is_valid = text.strip_prefix("SIG").is_some_and(|name| {
        SIGNALS.contains(&name)
            || name.strip_prefix("RTMIN").is_some_and(|rest| offset(rest, '+', 15))
            || name.strip_prefix("RTMAX").is_some_and(|rest| offset(rest, '-', 14))
    });
    (!is_valid).then(|| format!("signal {text:?} is unknown: expected a name such as SIGTERM or SIGRTMIN+3"))
}

fn port(text: &str) -> Option<String> {
    let (number, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
    let is_valid = is_number && number.parse::<u16>().is_ok() && ["tcp", "udp", "sctp"].contains(&protocol);
    (!is_valid).then(|| format!("port {text:?} is invalid: expected 1 to 65535, and /tcp, /udp or /sctp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule, with texts that it accepts and refuses.
    type Case<'a> = (fn(&str) -> Option<String>, &'a [&'a str], &'a [&'a str]);

    #[test]
    fn users_signals_and_ports_are_those_of_the_specification() {
        let cases: [Case<'_>; 3] = [
            (user, &["root", "0", "www-data:33", "1000:users"], &["", ":0", "a:", "a:b:c", "4294967296", "a b"]),
            (
                signal,
                &["SIGTERM", "SIGRTMIN", "SIGRTMIN+3", "SIGRTMAX-14"],
                &["TERM", "15", "SIGFOO", "SIGRTMIN+16", "SIGRTMIN3", "SIGRTMAX+1", "SIGRTMIN++1"],
            ),
            (port, &["80", "53/udp", "65535/sctp"], &["", "0", "65536", "80/http", "+80", "080", "80/", "/tcp"]),
        ];
        for (rule, valid, invalid) in cases {
            valid.iter().for_each(|text| assert_eq!(rule(text), None));
            invalid.iter().for_each(|text| assert!(rule(text).is_some(), "{text}"));
        }
    }
}
