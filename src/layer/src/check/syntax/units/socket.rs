//! Settings of sockets (systemd.socket(5)): combinations for which systemd refuses a unit.

use super::super::Problem;
use super::words::is_true;

/// Listeners whose connections can be accepted.
const ACCEPTING: [&str; 2] = ["ListenStream", "ListenSequentialPacket"];

/// Listeners that may be nodes of the file system.
const NODES: [&str; 4] = ["ListenStream", "ListenSequentialPacket", "ListenDatagram", "ListenFIFO"];

/// Assignments of a socket, with their lines.
#[derive(Default)]
pub(super) struct Socket {
    listeners: Vec<(usize, String, String)>,
    symlinks: Vec<usize>,
    accept: Option<usize>,
    service: Option<usize>,
    /// `MaxConnections=` of zero.
    no_connections: Option<usize>,
}

impl Socket {
    /// Adds an assignment of `[Socket]`.
    pub(super) fn add(&mut self, line: usize, key: &str, value: &str) {
        match key {
            _ if key.starts_with("Listen") && value.is_empty() => self.listeners.clear(),
            _ if key.starts_with("Listen") => self.listeners.push((line, key.to_owned(), value.to_owned())),
            "Symlinks" if value.is_empty() => self.symlinks.clear(),
            "Symlinks" => self.symlinks.push(line),
            "Accept" => self.accept = is_true(value).then_some(line),
            "Service" => self.service = (!value.is_empty()).then_some(line),
            "MaxConnections" => self.no_connections = value.bytes().all(|byte| byte == b'0').then_some(line),
            _ => {}
        }
    }

    /// What is wrong with the settings together. A socket without listeners is judged elsewhere.
    pub(super) fn fault(&self) -> Option<Problem> {
        let refused =
            |line: usize, reason: String| Some(Problem::error(line, format!("systemd refuses the unit: {reason}")));
        if self.listeners.is_empty() {
            return None;
        }
        if let Some(line) = self.no_connections {
            return refused(line, "MaxConnections= must be at least 1".to_owned());
        }
        if self.accept.is_some() {
            let other = self.listeners.iter().find(|(_, key, _)| !ACCEPTING.contains(&key.as_str()));
            if let Some((line, key, _)) = other {
                return refused(*line, format!("Accept=yes only allows {}=, found {key}=", ACCEPTING.join("= and ")));
            }
            if let Some(line) = self.service {
                return refused(line, "Accept=yes does not allow Service=".to_owned());
            }
        }
        let is_node =
            |(_, key, value): &&(usize, String, String)| NODES.contains(&key.as_str()) && value.starts_with(['/', '%']);
        let nodes = self.listeners.iter().filter(is_node).count();
        match self.symlinks.last() {
            Some(line) if nodes != 1 => {
                refused(*line, format!("Symlinks=: expected exactly one listener with a path, found {nodes}"))
            }
            _ => None,
        }
    }
}
