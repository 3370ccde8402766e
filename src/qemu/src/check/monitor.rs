//! qemu's monitor: questions about a running machine enter, its answers leave. Specification: QMP (`docs/interop/qmp-spec.rst` of
//! QEMU), over a socket that qemu inherits.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

/// Longest answer in bytes; it has one line a connection.
const MAX_ANSWER: u64 = 4 << 20;
/// qemu answers from the loop in which the machine runs; on a busy host that may take long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The host's end of the monitor.
pub struct Monitor {
    stream: BufReader<UnixStream>,
}

impl Monitor {
    /// Takes the end of a socket whose other end qemu has, or will have.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Waits until qemu has made the machine.
    pub fn begin(&mut self) -> io::Result<()> {
        self.ask("qmp_capabilities", &json!({})).map(drop)
    }

    /// Ports of 127.0.0.1 that lead into the machine, by the machine's.
    pub fn forwards(&mut self) -> io::Result<BTreeMap<u16, u16>> {
        let said = self.network()?;
        let forward = |line: &str| {
            let (state, ports) = connection(line)?;
            (state == "HOST_FORWARD").then_some((ports.1, ports.0))
        };
        Ok(said.lines().filter_map(forward).collect())
    }

    /// Whether the machine has accepted a connection to a port of this host that leads into it.
    pub fn is_established(&mut self, port: u16) -> io::Result<bool> {
        let said = self.network()?;
        let established = |(state, ports): (&str, (u16, u16))| state == "ESTABLISHED" && ports.0 == port;
        Ok(said.lines().filter_map(connection).any(established))
    }

    /// Presses the power button.
    pub fn power_down(&mut self) -> io::Result<()> {
        self.ask("system_powerdown", &json!({})).map(drop)
    }

    fn network(&mut self) -> io::Result<String> {
        let said = self.ask("human-monitor-command", &json!({ "command-line": "info usernet" }))?;
        Ok(said.as_str().unwrap_or_default().to_owned())
    }

    fn ask(&mut self, command: &str, arguments: &Value) -> io::Result<Value> {
        let mut request = json!({ "execute": command, "arguments": arguments }).to_string();
        request.push('\n');
        self.stream.get_mut().write_all(request.as_bytes())?;
        loop {
            let mut line = String::new();
            if (&mut self.stream).take(MAX_ANSWER).read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut message: Value = serde_json::from_str(&line)?;
            if let Some(error) = message.get("error") {
                return Err(io::Error::other(error.to_string()));
            }
            // The greeting and events stand between.
            if let Some(answer) = message.get_mut("return") {
                return Ok(answer.take());
            }
        }
    }
}

/// State, port of this host and port of the machine of a line of `info usernet`, for what leads into the machine:
/// `TCP[STATE] FD 127.0.0.1 PORT 10.0.2.15 PORT …`.
fn connection(line: &str) -> Option<(&str, (u16, u16))> {
    let (state, rest) = line.trim_start().strip_prefix("TCP[")?.split_once(']')?;
    let mut words = rest.split_whitespace().skip(1);
    let (from, host) = (words.next()?, words.next()?.parse().ok()?);
    let guest = words.nth(1)?.parse().ok()?;
    (from == "127.0.0.1").then_some((state, (host, guest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections() {
        let said = "Hub -1 (net0):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n  \
                    TCP[ESTABLISHED]   16       127.0.0.1 45105       10.0.2.15    22     0     0\r\n  \
                    TCP[SYN_SENT]      17       127.0.0.1 45106       10.0.2.15    80     0     0\r\n  \
                    TCP[HOST_FORWARD]  15       127.0.0.1 45105       10.0.2.15    22     0     0\r\n  \
                    TCP[ESTABLISHED]   18       10.0.2.15 45105         1.2.3.4    22     0     0\r\n";
        let found: Vec<_> = said.lines().filter_map(connection).collect();
        let expected = [("ESTABLISHED", (45105, 22)), ("SYN_SENT", (45106, 80)), ("HOST_FORWARD", (45105, 22))];
        assert_eq!(found, expected);
    }

    #[test]
    fn answers_are_told_from_events_and_errors() {
        let (ours, mut its) = UnixStream::pair().unwrap();
        let mut monitor = Monitor::new(ours).unwrap();
        its.write_all(b"{\"QMP\": {}}\n{\"event\": \"RESUME\"}\n{\"return\": {}}\n{\"error\": {\"desc\": \"no\"}}\n")
            .unwrap();
        monitor.begin().unwrap();
        assert!(monitor.power_down().unwrap_err().to_string().contains("no"));
        drop(its);
        assert!(monitor.begin().is_err());
    }
}
