//! Checks of a running machine: checks as text in, results out.
//!
//! Ports are checked from this host. Everything else is checked inside the machine (`guest`): cloud-init starts a small
//! script there, which reports through a virtio port.

mod console;
mod guest;
mod junit;
mod monitor;
mod probe;
mod watch;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

pub use junit::junit;
pub use watch::{CheckRun, CheckRunError, watch};

pub(super) use guest::{PORT, vendor_data};
pub(super) use monitor::Monitor;
pub(super) use watch::Line;

/// Maximum length of a check, in bytes.
const MAX_TEXT: usize = 4096;
/// Default HTTP status.
const OK: u16 = 200;

/// A check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// A systemd unit is active, or a oneshot has finished.
    Unit(String),
    /// A path exists; symbolic links are followed.
    File(String),
    /// A command line succeeds, as root.
    Run(String),
    /// systemd has finished booting, and no unit has failed.
    NoFailedUnits,
    /// Something accepts connections at this port.
    Tcp(u16),
    /// A server answers GET over HTTP.
    Http {
        /// Port.
        port: u16,
        /// Request path.
        path: String,
        /// Expected status.
        status: u16,
    },
}

/// Parses the comma-separated checks of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checks(pub Vec<Check>);

/// Parameters of a checked run.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// Checks, which must all pass at the same time.
    pub checks: Vec<Check>,
    /// Timeout since the start of the machine.
    pub timeout: Duration,
    /// File for the console output.
    pub log: Option<PathBuf>,
}

/// State of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not passed yet.
    Pending,
    /// Passed.
    Ok,
    /// Failed for good.
    Failed,
}

/// A check and its result.
#[derive(Clone, Debug, Serialize)]
pub struct CheckResult {
    /// The check as text.
    pub check: String,
    /// State.
    pub state: State,
    /// Details.
    pub said: String,
    /// Seconds from the start of the machine to the last change of the result.
    pub seconds: f64,
}

impl Check {
    /// The port that it checks.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(port) | Self::Http { port, .. } => Some(*port),
            Self::Unit(_) | Self::File(_) | Self::Run(_) | Self::NoFailedUnits => None,
        }
    }
}

impl CheckOptions {
    /// All checked ports, without duplicates.
    pub fn ports(&self) -> BTreeSet<u16> {
        self.checks.iter().filter_map(Check::port).collect()
    }
}

impl FromStr for Checks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Commands can contain commas.
        let (list, run) = match text.find("run=") {
            Some(at) if at == 0 || text[..at].ends_with(',') => (text[..at].trim_end_matches(','), Some(&text[at..])),
            _ => (text, None),
        };
        let parts = list.split(',').filter(|_| !list.is_empty() || run.is_none()).chain(run);
        parts.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Check {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > MAX_TEXT {
            return Err(format!("expected a check of at most {MAX_TEXT} bytes, found {}", text.len()));
        }
        let port = |text: &str| text.parse().ok().filter(|port| *port != 0).ok_or(format!("invalid port {text:?}"));
        if text == "no-failed-units" {
            return Ok(Self::NoFailedUnits);
        }
        if let Some(name) = text.strip_prefix("unit=") {
            return unit(name);
        }
        if let Some(path) = text.strip_prefix("file=") {
            let well_formed = path.starts_with('/') && !path.bytes().any(|byte| byte.is_ascii_control());
            return well_formed.then(|| Self::File(path.to_owned())).ok_or(format!("{path:?} is not an absolute path"));
        }
        if let Some(script) = text.strip_prefix("run=") {
            let well_formed = !script.trim().is_empty() && !script.contains('\0');
            return well_formed.then(|| Self::Run(script.to_owned())).ok_or("run= needs a command".to_owned());
        }
        if let Some(text) = text.strip_prefix("tcp:") {
            return port(text).map(Self::Tcp);
        }
        if let Some(text) = text.strip_prefix("http:") {
            let at = text.find('/').unwrap_or(text.len());
            let (path, status) = path_and_status(&text[at..])?;
            return Ok(Self::Http { port: port(&text[..at])?, path, status });
        }
        Err(format!(
            "invalid check {text:?}: expected unit=NAME, file=PATH, no-failed-units, tcp:PORT, http:PORT/PATH=STATUS or run=COMMAND"
        ))
    }
}

fn unit(name: &str) -> Result<Check, String> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@\\".contains(&byte);
    let (stem, kind) = name.rsplit_once('.').unwrap_or((name, ""));
    if stem.is_empty() || stem.starts_with('-') || kind.is_empty() || !name.bytes().all(known) {
        return Err(format!("invalid unit {name:?}: expected a name with a type, such as ssh.service"));
    }
    Ok(Check::Unit(name.to_owned()))
}

/// Parses `/PATH=STATUS`; both parts are optional.
fn path_and_status(text: &str) -> Result<(String, u16), String> {
    let digits = |text: &str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (path, status) = match text.rsplit_once('=') {
        Some((path, status)) if digits(status) => (path, status.parse().unwrap_or(OK)),
        _ => (text, OK),
    };
    let path = if path.is_empty() { "/" } else { path };
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) || !(100..600).contains(&status) {
        return Err(format!("invalid path and status {text:?}: expected one such as /health=200"));
    }
    Ok((path.to_owned(), status))
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(name) => write!(f, "unit={name}"),
            Self::File(path) => write!(f, "file={path}"),
            Self::Run(script) => write!(f, "run={script}"),
            Self::NoFailedUnits => f.write_str("no-failed-units"),
            Self::Tcp(port) => write!(f, "tcp:{port}"),
            Self::Http { port, path, status } => write!(f, "http:{port}{path}={status}"),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pending => "LATE",
            Self::Ok => "ok",
            Self::Failed => "FAIL",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_read_and_written_alike() {
        let text = "unit=a@b\\x2d.service,tcp:80,http:80/a?b=c=404,file=/etc/x,no-failed-units,run=a,b | c=d";
        let Checks(checks) = text.parse().unwrap();
        let all: Vec<String> = checks.iter().map(Check::to_string).collect();
        assert_eq!(all.join(","), text);
        assert_eq!(checks.len(), 6);
        let http = |path: &str, status| Check::Http { port: 8080, path: path.to_owned(), status };
        for (text, expected) in [
            ("http:8080", http("/", 200)),
            ("http:8080/", http("/", 200)),
            ("http:8080=200", http("/", 200)),
            ("http:8080/a=b", http("/a=b", 200)),
            ("http:8080/=503", http("/", 503)),
        ] {
            let found: Result<Check, _> = text.parse();
            match text.contains("8080=") {
                true => assert!(found.is_err()),
                false => assert_eq!(found.unwrap(), expected, "{text}"),
            }
        }
        assert_eq!("run=x".parse(), Ok(Checks(vec![Check::Run("x".to_owned())])));
    }

    #[test]
    fn what_is_no_check_is_refused() {
        for text in [
            "",
            ",",
            "unit=",
            "unit=ssh",
            "unit=.service",
            "unit=-a.service",
            "unit=a b.service",
            "unit=$(a).service",
            "file=a",
            "file=/a\nb",
            "run=",
            "run= ",
            "tcp:",
            "tcp:0",
            "tcp:65536",
            "tcp:80,",
            "http:",
            "http:x",
            "http:80/a b",
            "http:80/=099",
            "udp:53",
            "no-failed-units=1",
        ] {
            assert!(text.parse::<Checks>().is_err(), "{text:?}");
        }
        assert!(format!("run={}", "a".repeat(MAX_TEXT)).parse::<Checks>().is_err());
    }
}
