//! QEMU's monitor: requests in, responses out. Specification: QMP (`docs/interop/qmp-spec.rst` of
//! QEMU), over an inherited socket.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

/// Maximum length of a response, which has one line per connection.
const MAX_ANSWER: u64 = 4 << 20;
/// Timeout. QEMU responds from its main loop, which can take long on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);

/// Client of the monitor.
pub struct Monitor {
    stream: BufReader<UnixStream>,
}

impl Monitor {
    /// Wraps one end of a socket, of which QEMU inherits the other.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Waits until QEMU has created the machine.
    pub fn begin(&mut self) -> io::Result<()> {
        self.request("qmp_capabilities", &json!({})).map(drop)
    }

    /// Forwarded ports of 127.0.0.1, by guest port.
    pub fn forwards(&mut self) -> io::Result<BTreeMap<u16, u16>> {
        let said = self.network()?;
        let forward = |line: &str| {
            let (state, ports) = connection(line)?;
            (state == "HOST_FORWARD").then_some((ports.1, ports.0))
        };
        Ok(said.lines().filter_map(forward).collect())
    }

    /// Whether the machine has accepted a connection to a forwarded port.
    pub fn is_established(&mut self, port: u16) -> io::Result<bool> {
        let said = self.network()?;
        let established = |(state, ports): (&str, (u16, u16))| state == "ESTABLISHED" && ports.0 == port;
        Ok(said.lines().filter_map(connection).any(established))
    }

    /// Presses the power button.
    pub fn power_down(&mut self) -> io::Result<()> {
        self.request("system_powerdown", &json!({})).map(drop)
    }

    fn network(&mut self) -> io::Result<String> {
        let said = self.request("human-monitor-command", &json!({ "command-line": "info usernet" }))?;
        Ok(said.as_str().unwrap_or_default().to_owned())
    }

    fn request(&mut self, command: &str, arguments: &Value) -> io::Result<Value> {
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
            // Skips the greeting and events.
            if let Some(answer) = message.get_mut("return") {
                return Ok(answer.take());
            }
        }
    }
}

/// State, host port and guest port of a line of `info usernet`, for forwarded ports:
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
