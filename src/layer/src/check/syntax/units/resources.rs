//! Values of settings that name exit statuses, device nodes and ports.

use super::values::{integer, is_signal};

/// Names of exit statuses.
const STATUSES: [&str; 68] = [
    "SUCCESS",
    "FAILURE",
    "CHDIR",
    "NICE",
    "FDS",
    "EXEC",
    "MEMORY",
    "LIMITS",
    "OOM_ADJUST",
    "SIGNAL_MASK",
    "STDIN",
    "STDOUT",
    "CHROOT",
    "IOPRIO",
    "TIMERSLACK",
    "SECUREBITS",
    "SETSCHEDULER",
    "CPUAFFINITY",
    "GROUP",
    "USER",
    "CAPABILITIES",
    "CGROUP",
    "SETSID",
    "CONFIRM",
    "STDERR",
    "PAM",
    "NETWORK",
    "NAMESPACE",
    "NO_NEW_PRIVILEGES",
    "SECCOMP",
    "SELINUX_CONTEXT",
    "PERSONALITY",
    "APPARMOR",
    "ADDRESS_FAMILIES",
    "RUNTIME_DIRECTORY",
    "CHOWN",
    "SMACK_PROCESS_LABEL",
    "KEYRING",
    "STATE_DIRECTORY",
    "CACHE_DIRECTORY",
    "LOGS_DIRECTORY",
    "CONFIGURATION_DIRECTORY",
    "NUMA_POLICY",
    "CREDENTIALS",
    "BPF",
    "KSM",
    "EXCEPTION",
    "INVALIDARGUMENT",
    "NOTIMPLEMENTED",
    "NOPERMISSION",
    "NOTINSTALLED",
    "NOTCONFIGURED",
    "NOTRUNNING",
    "USAGE",
    "DATAERR",
    "NOINPUT",
    "NOUSER",
    "NOHOST",
    "UNAVAILABLE",
    "SOFTWARE",
    "OSERR",
    "OSFILE",
    "CANTCREAT",
    "IOERR",
    "TEMPFAIL",
    "PROTOCOL",
    "NOPERM",
    "CONFIG",
];

/// Exit statuses and signals between blanks. systemd does not remove quotes here.
pub(super) fn are_statuses(value: &str) -> bool {
    value.split_whitespace().all(|word| {
        STATUSES.contains(&word) || is_signal(word) || integer(word).is_some_and(|status| (0..=255).contains(&status))
    })
}

/// A device node or class, and what is allowed. Quotes and escapes are left to the machine.
pub(super) fn is_device(value: &str) -> bool {
    if value.contains(['"', '\'', '\\']) {
        return true;
    }
    let (node, rights) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
    let is_class = node.starts_with("block-") || node.starts_with("char-");
    (is_class || is_node(node)) && rights.trim().chars().all(|right| "rwm".contains(right))
}

fn is_node(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').filter(|name| !["", "."].contains(name)).collect();
    let is_below = names.starts_with(&["dev"]) || names.starts_with(&["run", "systemd", "inaccessible"]);
    path.starts_with('/') && is_below && !names.contains(&"..")
}

/// `[FAMILY:][PROTOCOL:]PORTS`, of which the last part is any of the three.
pub(super) fn are_ports(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let mut parts = value.split(':').peekable();
    for words in [["ipv4", "ipv6"], ["tcp", "udp"]] {
        if parts.next_if(|part| words.contains(part)).is_some() && parts.peek().is_none() {
            return true;
        }
    }
    parts.next().is_some_and(is_range) && parts.next().is_none()
}

fn is_range(ports: &str) -> bool {
    let port = |text: &str| integer(text).filter(|port| (0..=65535).contains(port));
    match ports.split_once('-') {
        None => ports == "any" || port(ports).is_some(),
        Some((first, last)) => port(first).zip(port(last)).is_some_and(|(first, last)| first <= last),
    }
}
