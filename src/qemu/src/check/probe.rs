//! Checks from this host: a forwarded port in, a state out.
//!
//! QEMU accepts every connection itself and opens another one to the machine, so only the state of the latter, or a response, shows
//! whether something listens.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Check, Monitor, State};

/// Timeout of a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Polling interval of a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum length of a status line.
const MAX_LINE: u64 = 1024;

/// Runs a check at `port` of this host; the result can change.
pub fn run(check: &Check, port: u16, monitor: &mut Monitor) -> io::Result<(State, String)> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    match check {
        Check::Http { path, status, .. } => Ok(match get(&stream, path) {
            Ok(Some(found)) if found == *status => (State::Ok, format!("status {found}")),
            Ok(Some(found)) => (State::Pending, format!("status {found}, expected {status}")),
            Ok(None) => (State::Pending, "not an HTTP response".to_owned()),
            Err(error) => (State::Pending, format!("no response: {error}")),
        }),
        _ => Ok(match is_accepted(&stream, port, monitor)? {
            true => (State::Ok, "accepts connections".to_owned()),
            false => (State::Pending, "nothing listens".to_owned()),
        }),
    }
}

/// Whether the machine accepts the connection.
fn is_accepted(stream: &TcpStream, port: u16, monitor: &mut Monitor) -> io::Result<bool> {
    let start = Instant::now();
    stream.set_nonblocking(true)?;
    while start.elapsed() < PATIENCE {
        if monitor.is_established(port)? {
            return Ok(true);
        }
        match stream.peek(&mut [0]) {
            // Received data means that the connection was accepted, even if it is closed by now.
            Ok(1..) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(PAUSE),
            Ok(0) | Err(_) => return Ok(false),
        }
    }
    Ok(false)
}

/// The status of a GET request (RFC 9112, sections 3 and 4); `None` if it is not HTTP.
fn get(mut stream: &TcpStream, path: &str) -> io::Result<Option<u16>> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: vmbake\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut line = Vec::new();
    BufReader::new(stream.take(MAX_LINE)).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let line = String::from_utf8_lossy(&line);
    let mut words = line.trim_end().splitn(3, ' ');
    let known = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    Ok(words.next().filter(|_| known).and_then(|status| status.parse().ok()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    /// The result of a check at a server with this response.
    fn found(check: &str, answer: &'static [u8]) -> (State, String) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 4096];
            let len = if answer.starts_with(b"SSH") { 0 } else { stream.read(&mut asked).unwrap() };
            stream.write_all(answer).unwrap();
            String::from_utf8_lossy(&asked[..len]).into_owned()
        });
        let (ours, mut its) = UnixStream::pair().unwrap();
        // QEMU reports no connection.
        its.write_all("{\"return\": \"\"}\n".repeat(1000).as_bytes()).unwrap();
        let found = run(&check.parse().unwrap(), port, &mut Monitor::new(ours).unwrap()).unwrap();
        let asked = server.join().unwrap();
        assert!(!check.starts_with("http") || asked.starts_with("GET /x HTTP/1.1\r\nHost: "), "{asked}");
        found
    }

    #[test]
    fn answers() {
        let said = |state, said: &str| (state, said.to_owned());
        assert_eq!(found("http:80/x", b"HTTP/1.1 200 OK\r\n\r\n"), said(State::Ok, "status 200"));
        assert_eq!(found("http:80/x=404", b"HTTP/1.0 404\n"), said(State::Ok, "status 404"));
        assert_eq!(found("http:80/x", b"HTTP/1.1 503 No\r\n"), said(State::Pending, "status 503, expected 200"));
        let other = said(State::Pending, "not an HTTP response");
        assert_eq!(found("http:80/x", b"* OK IMAP\r\n"), other);
        assert_eq!(found("http:80/x", b"HTTP/1.1 many\r\n"), other);
        assert_eq!(found("http:80/x", b"").0, State::Pending);
        assert_eq!(found("tcp:22", b"SSH-2.0"), said(State::Ok, "accepts connections"));
    }
}
