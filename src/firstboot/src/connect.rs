//! Checks whether an address accepts connections.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::template::{Machine, split_port};

/// Timeout for an address, including name resolution and all its addresses.
const LIMIT: Duration = Duration::from_secs(5);

/// Opens and closes a TCP connection to `host:port` or `[v6]:port`.
pub fn check(address: &str, machine: &dyn Machine) -> Result<(), Error> {
    let end = Instant::now() + LIMIT;
    let failed = |source| Error::Connect { address: address.to_owned(), source };
    let invalid = |reason: String| failed(io::Error::new(io::ErrorKind::InvalidInput, reason));
    let (host, port) = match split_port(address) {
        Some((host, Some(port))) => (host, port.parse().map_err(|_| invalid("invalid port".to_owned()))?),
        _ => return Err(invalid("expected host:port or [address]:port".to_owned())),
    };
    let hosts: Vec<IpAddr> = match host.parse() {
        Ok(address) => vec![address],
        Err(_) => {
            let found = machine.addresses(host).map_err(|fault| invalid(fault.to_string()))?;
            found.iter().filter_map(|address| address.parse().ok()).collect()
        }
    };
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    for (index, host) in hosts.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        // The first of two addresses must not use up the whole timeout.
        let share = left / u32::try_from(hosts.len() - index).unwrap_or(1);
        if share.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&SocketAddr::new(*host, port), share) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}
