//! The destination: an SSH host, or the machine that `vmbake boot` runs from an image.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{SyncError, options};

/// The default user of Debian's cloud images.
const IMAGE_USER: &str = "debian";

/// Host address of ports forwarded by `vmbake boot`.
const LOOPBACK: &str = "127.0.0.1";

/// Port of the machine that must be forwarded.
const SSH: u16 = 22;

/// A machine with its SSH arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Name in messages.
    pub shown: String,
    /// Name or address, without user and port.
    pub(super) host: String,
    /// SSH options. ssh uses the first of equal ones, so the user's come first.
    pub(super) options: Vec<OsString>,
}

impl Destination {
    /// Parses a destination: an existing file, or anything with a slash, is an image; all else is `[user@]host[:port]`.
    pub fn find(text: &str, ssh: &[OsString]) -> Result<Self, SyncError> {
        let image = Path::new(text);
        if !text.contains('/') && !image.is_file() {
            return Self::of_host(text, ssh);
        }
        // Options after `--` are checked first, even if no machine runs.
        options::check(ssh, text, &[])?;
        let port = forwarded_port(image)?.to_string();
        let mut address = vec![("hostname", LOOPBACK.to_owned()), ("port", port.clone())];
        // On another host, this port belongs to another machine.
        address.extend(["proxyjump", "proxycommand", "controlpath"].map(|keyword| (keyword, "none".to_owned())));
        options::check(ssh, text, &address)?;
        let mut options = ssh.to_vec();
        // Each boot of an image creates new host keys. The port belongs to a process of this user on the loopback interface. The configuration of
        // the user could redirect connections.
        for option in [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "HostName=127.0.0.1",
            "ProxyCommand=none",
            "ControlPath=none",
        ] {
            options.extend(["-o".into(), option.into()]);
        }
        options.extend(["-l", IMAGE_USER, "-p", &port].map(OsString::from));
        Ok(Self { shown: text.to_owned(), host: LOOPBACK.to_owned(), options })
    }

    fn of_host(text: &str, ssh: &[OsString]) -> Result<Self, SyncError> {
        let invalid = || SyncError::Host { text: text.to_owned() };
        let (user, rest) = match text.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, text),
        };
        let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(invalid)?)),
            // An IPv6 address without brackets has no port.
            None if rest.matches(':').count() > 1 => (rest, None),
            None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
        };
        let is_word = |word: &str| {
            !word.is_empty()
                && !word.starts_with('-')
                && word.bytes().all(|byte| byte.is_ascii_graphic())
                && !word.contains('\'')
        };
        let port =
            port.map(|port| port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(invalid)).transpose()?;
        if !is_word(host) || user.is_some_and(|user| !is_word(user)) {
            return Err(invalid());
        }
        let mut address = vec![("hostname", host.to_owned())];
        address.extend(user.map(|user| ("user", user.to_owned())));
        address.extend(port.map(|port| ("port", port.to_string())));
        options::check(ssh, text, &address)?;
        let mut options = ssh.to_vec();
        options.extend(user.into_iter().flat_map(|user| ["-l".into(), user.into()]));
        options.extend(port.into_iter().flat_map(|port| ["-p".into(), port.to_string().into()]));
        Ok(Self { shown: text.to_owned(), host: host.to_owned(), options })
    }
}

/// The forwarded SSH port of the only machine that runs from an image.
fn forwarded_port(image: &Path) -> Result<u16, SyncError> {
    let read = |source| SyncError::Image { path: image.to_owned(), source };
    let wanted = fs::metadata(image).map_err(read)?;
    let mut machines = Vec::new();
    for entry in fs::read_dir("/proc").map_err(read)?.flatten() {
        let process = entry.path();
        // Processes of other users and terminated ones are not readable.
        let Ok(arguments) = fs::read(process.join("cmdline")) else { continue };
        if let Some(port) = forward(&arguments)
            && has_open(&process, &wanted)
        {
            machines.push(port);
        }
    }
    machines.sort_unstable();
    match machines[..] {
        [Some(port)] => Ok(port),
        [] => Err(SyncError::NoMachine { image: image.to_owned() }),
        [None] => Err(SyncError::NoForward { image: image.to_owned() }),
        _ => Err(SyncError::Machines { image: image.to_owned(), found: machines.len() }),
    }
}

/// The forwarded port of ssh, if these are the arguments of a machine of `vmbake boot`; `Some(None)` if it has no such port.
fn forward(arguments: &[u8]) -> Option<Option<u16>> {
    let arguments = String::from_utf8_lossy(arguments);
    let mut words = arguments.split('\0');
    let program = words.next()?;
    if !program.rsplit('/').next()?.starts_with("qemu-system-") {
        return None;
    }
    let mut network = None;
    for word in words.flat_map(|word| word.split(',')) {
        let port = word.strip_prefix("hostfwd=tcp:127.0.0.1:").and_then(|rest| rest.strip_suffix(&format!("-:{SSH}")));
        network = network.or_else(|| port?.parse().ok().filter(|port| *port > 0));
    }
    Some(network)
}

/// Whether a process has the file open.
fn has_open(process: &Path, wanted: &fs::Metadata) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else { return false };
    files
        .flatten()
        .filter_map(|file| fs::metadata(file.path()).ok())
        .any(|found| found.is_file() && (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_ssh_users_write_them() {
        for (text, host, options) in [
            ("web", "web", vec![]),
            ("root@web", "web", vec!["-l", "root"]),
            ("root@web:2222", "web", vec!["-l", "root", "-p", "2222"]),
            ("192.0.2.1:22", "192.0.2.1", vec!["-p", "22"]),
            ("2001:db8::1", "2001:db8::1", vec![]),
            ("a@[2001:db8::1]:22", "2001:db8::1", vec!["-l", "a", "-p", "22"]),
        ] {
            let found = Destination::find(text, &["-v".into()]).unwrap();
            let expected: Vec<OsString> = ["-v"].into_iter().chain(options).map(Into::into).collect();
            assert_eq!((found.host.as_str(), found.options), (host, expected), "{text}");
        }
        for text in
            ["", "-oProxyCommand=id", "a@-h", "@web", "web:", "web:0", "web:x", "web:70000", "a b", "[::1]x", "a'b@web"]
        {
            assert!(matches!(Destination::find(text, &[]), Err(SyncError::Host { .. })), "{text}");
        }
    }

    #[test]
    fn a_machine_is_known_by_its_arguments() {
        let arguments = |network: &str| {
            format!("/usr/bin/qemu-system-x86_64\0-netdev\0user,id=net0,restrict=off{network}\0").into_bytes()
        };
        for (network, expected) in [
            ("", None),
            (",hostfwd=tcp:127.0.0.1:8080-:80", None),
            (",hostfwd=udp:127.0.0.1:2222-:22", None),
            (",hostfwd=tcp:127.0.0.1:0-:22", None),
            (",hostfwd=tcp:127.0.0.1:8080-:80,hostfwd=tcp:127.0.0.1:2222-:22", Some(2222)),
        ] {
            assert_eq!(forward(&arguments(network)), Some(expected), "{network}");
        }
        assert_eq!(forward(b"sleep\0hostfwd=tcp:127.0.0.1:2222-:22\0"), None);
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        fs::write(&image, "").unwrap();
        let text = image.to_str().unwrap();
        assert!(matches!(Destination::find(text, &[]), Err(SyncError::NoMachine { .. })));
        assert!(matches!(Destination::find("./none.qcow2", &[]), Err(SyncError::Image { .. })));
    }
}
