//! Values of settings of units, by the kinds that `settings.txt` has. Values with a specifier are only known on the machine.

use super::super::directories::is_time;
use super::addresses::{is_address, is_network};
use super::resources;
use super::service;
use crate::unit_install::unit_form;

pub(super) const BOOLEANS: [&str; 12] = ["1", "yes", "y", "true", "t", "on", "0", "no", "n", "false", "f", "off"];

/// Kinds whose values may have specifiers.
const EXPANDED: [&str; 14] = [
    "text",
    "path",
    "condition",
    "file",
    "directory",
    "paths",
    "names",
    "address",
    "account",
    "accounts",
    "unit",
    "units",
    "variables",
    "device",
];

/// Names of capabilities after `CAP_`, of which systemd passes over unknown ones.
const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// Groups of system calls.
const CALLS: [&str; 30] = [
    "@default",
    "@aio",
    "@basic-io",
    "@chown",
    "@clock",
    "@cpu-emulation",
    "@debug",
    "@file-system",
    "@io-event",
    "@ipc",
    "@keyring",
    "@memlock",
    "@module",
    "@mount",
    "@network-io",
    "@obsolete",
    "@pkey",
    "@privileged",
    "@process",
    "@raw-io",
    "@reboot",
    "@resources",
    "@sandbox",
    "@setuid",
    "@signal",
    "@swap",
    "@sync",
    "@system-service",
    "@timer",
    "@known",
];

const SIGNALS: [&str; 32] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS", "IOT",
];

/// What systemd expects instead of a value.
pub(super) fn fault(kind: &str, value: &str) -> Option<String> {
    let mut words = kind.split(' ');
    let name = words.next().unwrap_or_default();
    let arguments: Vec<&str> = words.collect();
    let (name, is_optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
    if value.is_empty() {
        return (!is_optional && name != "any").then(|| format!("{}, found nothing", expected(name, &arguments)));
    }
    if EXPANDED.contains(&name) && value.contains('%') {
        let unknown = service::unknown_specifier(value);
        return unknown.map(|unknown| format!("%% for a percent sign, %{unknown} is not a specifier"));
    }
    (!is_valid(name, &arguments, value)).then(|| expected(name, &arguments))
}

fn is_valid(name: &str, arguments: &[&str], value: &str) -> bool {
    let each = |is_valid: &dyn Fn(&str) -> bool| {
        service::words(value).is_some_and(|words| words.iter().all(|word| is_valid(word)))
    };
    match name {
        "words" => arguments.iter().any(|word| is_word(word, value)),
        "time" => is_time(value),
        "path" => is_path(value),
        "condition" => {
            is_path(value.strip_prefix('|').unwrap_or(value).trim_start().trim_start_matches('!').trim_start())
        }
        "file" => is_path(value.strip_prefix('-').unwrap_or(value)),
        "directory" => {
            let path = value.strip_prefix('-').unwrap_or(value);
            path == "~" || is_path(path)
        }
        "paths" => each(&|word| word.trim_start_matches(['-', '+']).starts_with('/')),
        "names" => each(&|word| word.split(':').all(is_relative)),
        "mode" => u32::from_str_radix(value, 8).is_ok_and(|mode| mode <= 0o7777),
        "address" => is_address(value),
        "signal" => is_signal(value),
        "statuses" => resources::are_statuses(value),
        "device" => resources::is_device(value),
        "ports" => resources::are_ports(value),
        "account" => is_account(value),
        "accounts" => each(&is_account),
        "tasks" => value == "infinity" || is_percentage(value) || integer(value).is_some_and(|count| count > 0),
        "networks" => each(&|word| is_network(word)),
        "capabilities" => value.trim_start_matches('~').split_whitespace().all(is_capability),
        "syscalls" => value.trim_start_matches('~').split_whitespace().all(|word| {
            let name = word.split(':').next().unwrap_or_default();
            CALLS.contains(&name) || !name.starts_with('@')
        }),
        "list" => {
            is_word("bool", value)
                || value.trim_start_matches('~').split_whitespace().all(|word| arguments.contains(&word))
        }
        "integer" => {
            let limits: Vec<i64> = arguments.iter().filter_map(|limit| limit.parse().ok()).collect();
            let is_inside = |number| {
                limits.first().is_none_or(|low| *low <= number) && limits.get(1).is_none_or(|high| number <= *high)
            };
            integer(value).is_some_and(is_inside)
        }
        "limit" => {
            let is_limit = |part: &str| {
                part == "infinity" || part.starts_with(|first: char| first.is_ascii_digit() || "+-".contains(first))
            };
            value.split(':').count() <= 2 && value.split(':').all(|part| is_limit(part.trim()))
        }
        "size" => value == "infinity" || is_percentage(value) || is_size(value),
        "percent" => is_percentage(value),
        "unit" => is_unit(value, arguments),
        "units" => value.split_whitespace().all(|word| is_unit(word, arguments)),
        "variables" => each(&is_variable),
        "families" => each(&|word| {
            word == "none" || word.trim_start_matches('~').is_empty() || word.trim_start_matches('~').starts_with("AF_")
        }),
        _ => true,
    }
}

/// Booleans may be in upper case. Words that end with `:` or `/` are the begin of a value.
fn is_word(word: &str, value: &str) -> bool {
    match word {
        "bool" => BOOLEANS.iter().any(|word| word.eq_ignore_ascii_case(value)),
        "number" => integer(value).is_some(),
        _ if word.ends_with([':', '/']) => value.starts_with(word),
        _ => word == value,
    }
}

/// What a kind is called in messages.
fn expected(name: &str, arguments: &[&str]) -> String {
    let text = match name {
        "words" | "list" => {
            let words = arguments.iter().map(|word| match *word {
                "bool" => "yes, no".to_owned(),
                "number" => "a number".to_owned(),
                word if word.ends_with([':', '/']) => format!("{word}..."),
                word => word.to_owned(),
            });
            return format!("one of {}", words.collect::<Vec<_>>().join(", "));
        }
        "integer" => return format!("a number from {}", arguments.join(" to ")),
        "unit" | "units" if !arguments.is_empty() => return format!("the name of a .{} unit", arguments.join(" or .")),
        "time" => "a time such as 5min",
        "path" | "file" | "condition" => "an absolute path",
        "paths" => "absolute paths",
        "directory" => "an absolute path or ~",
        "names" => "relative paths",
        "mode" => "an octal mode such as 0755",
        "address" => "a port, ADDRESS:PORT, an absolute path or @NAME",
        "signal" => "a signal such as SIGTERM",
        "statuses" => "exit statuses or signals such as 143 or SIGTERM",
        "device" => "a device below /dev, char-NAME or block-NAME, and rights such as rw",
        "ports" => "ports such as tcp:80 or ipv6:udp:1024-2048",
        "capabilities" => "capabilities such as CAP_NET_BIND_SERVICE",
        "syscalls" => "system calls or groups of them such as @system-service",
        "tasks" => "a number, a percentage or infinity",
        "networks" => "addresses such as 10.0.0.0/8, any or localhost",
        "accounts" => "names or ids of accounts",
        "account" => "the name or id of an account",
        "limit" => "a number, infinity or SOFT:HARD",
        "size" => "a size such as 512M, a percentage or infinity",
        "percent" => "a percentage such as 20%",
        "unit" => "the name of a unit such as NAME.service",
        "units" => "names of units such as NAME.service",
        "variables" => "NAME=VALUE",
        "families" => "families such as AF_INET",
        _ => "a value",
    };
    text.to_owned()
}

fn is_path(value: &str) -> bool {
    value.starts_with('/') && value.split('/').all(|name| name != "..")
}

fn is_relative(path: &str) -> bool {
    !path.starts_with('/') && path != "." && path.split('/').all(|name| name != "..")
}

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

fn is_percentage(value: &str) -> bool {
    value
        .strip_suffix('%')
        .is_some_and(|number| number.parse::<f64>().is_ok() && number.starts_with(|c: char| c.is_ascii_digit()))
}

/// Numbers with units of 1024 bytes, such as `1G 500M`.
fn is_size(value: &str) -> bool {
    let is_digit = |next: char| next.is_ascii_digit() || next == '.';
    let mut rest = value.trim();
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|next| !is_digit(next)).unwrap_or(rest.len()));
        let after = after.trim_start();
        if number.is_empty() || number.starts_with('.') {
            return false;
        }
        rest = match after.strip_prefix(['B', 'K', 'M', 'G', 'T', 'P', 'E']) {
            Some(next) => next.trim_start(),
            None if after.is_empty() => after,
            None => return false,
        };
    }
    true
}

pub(super) fn is_signal(value: &str) -> bool {
    let name = value.strip_prefix("SIG").unwrap_or(value);
    let real = name.strip_prefix("RTMIN").or_else(|| name.strip_prefix("RTMAX"));
    SIGNALS.contains(&name)
        || ["CLD", "POLL"].contains(&name)
        || real.is_some_and(|offset| offset.is_empty() || offset.starts_with(['+', '-']))
        || value.parse::<u8>().is_ok_and(|number| (1..=64).contains(&number))
}

/// Whether an account can have the name, or it is an id.
fn is_account(value: &str) -> bool {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    match is_number {
        true => value.parse::<u32>().is_ok() && (value == "0" || !value.starts_with('0')),
        false => !value.starts_with('-') && ![".", ".."].contains(&value) && !value.contains(['/', ':']),
    }
}

/// Words of a template, such as `x@%i.service`, are names after their specifiers are replaced.
fn is_unit(value: &str, kinds: &[&str]) -> bool {
    let is_kind = kinds.is_empty() || kinds.iter().any(|kind| value.ends_with(&format!(".{kind}")));
    unit_form(value).is_some() && is_kind
}

/// Names may be in lower case, and are numbers otherwise.
fn is_capability(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    let is_name = word.strip_prefix("CAP_").is_some_and(|name| CAPABILITIES.contains(&name));
    is_name || word.parse::<u8>().is_ok_and(|number| number < 64)
}

fn is_variable(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.is_some_and(|name| {
        !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(is_char)
    })
}
