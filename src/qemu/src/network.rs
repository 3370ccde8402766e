//! Network access of the machine, and forwarded ports.

use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::str::FromStr;

use clap::ValueEnum;

use vmbake_common::hint::Hint;
use vmbake_common::progress::Event;

/// Network access of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Network {
    /// Everything that this host can reach
    User,
    /// Only DHCP and forwarded ports
    Isolated,
    /// No network device
    None,
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    Tcp,
    Udp,
}

/// Error of a port forward.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("cannot forward port {port} of 127.0.0.1 ({protocol})")]
    Port {
        port: u16,
        /// `tcp` or `udp`.
        protocol: &'static str,
        source: io::Error,
    },
}

impl Hint for NetworkError {
    fn hint(&self) -> Option<String> {
        let Self::Port { source, .. } = self;
        let text = match source.kind() {
            io::ErrorKind::AddrInUse => {
                "the port is in use on this host: choose another port before the colon of --forward"
            }
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 require root: choose another port before the colon of --forward"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(; Port);
}

/// A forward from a port of 127.0.0.1 to a port of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Protocol.
    pub protocol: Protocol,
    /// Host port.
    pub host: u16,
    /// Guest port.
    pub guest: u16,
}

impl Forward {
    /// Checks that the host port is free. If another process binds it before QEMU does, QEMU reports it.
    pub fn check(&self) -> Result<(), NetworkError> {
        let address = (Ipv4Addr::LOCALHOST, self.host);
        let bound = match self.protocol {
            Protocol::Tcp => TcpListener::bind(address).map(drop),
            Protocol::Udp => UdpSocket::bind(address).map(drop),
        };
        bound.map_err(|source| NetworkError::Port { port: self.host, protocol: self.protocol.name(), source })
    }

    /// The event to report.
    pub(super) fn event(&self) -> Event {
        Event::Forward { protocol: self.protocol.name(), host: self.host, guest: self.guest }
    }

    /// As an option of QEMU's user network.
    pub(super) fn option(&self) -> String {
        format!("hostfwd={}:127.0.0.1:{}-:{}", self.protocol.name(), self.host, self.guest)
    }
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (protocol, ports) = match text.split_once(':') {
            Some(("tcp", ports)) => (Protocol::Tcp, ports),
            Some(("udp", ports)) => (Protocol::Udp, ports),
            _ => (Protocol::Tcp, text),
        };
        let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
        let forward = ports
            .split_once(':')
            .and_then(|(host, guest)| Some(Self { protocol, host: port(host)?, guest: port(guest)? }));
        forward.ok_or_else(|| "expected HOST_PORT:PORT, such as 2222:22 or udp:5353:53".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards() {
        let forward = |protocol, host, guest| Ok(Forward { protocol, host, guest });
        assert_eq!("2222:22".parse(), forward(Protocol::Tcp, 2222, 22));
        assert_eq!("tcp:8443:6443".parse(), forward(Protocol::Tcp, 8443, 6443));
        assert_eq!("udp:5353:53".parse(), forward(Protocol::Udp, 5353, 53));
        for wrong in
            ["", "22", "2222:", ":22", "0:22", "2222:0", "65536:22", "sctp:1:1", "1:2:3", "2222-22", "2222:22,"]
        {
            assert!(wrong.parse::<Forward>().is_err(), "{wrong}");
        }
        let forward: Forward = "2222:22".parse().unwrap();
        assert_eq!(forward.option(), "hostfwd=tcp:127.0.0.1:2222-:22");
        assert_eq!(forward.event(), Event::Forward { protocol: "tcp", host: 2222, guest: 22 });
    }

    #[test]
    fn a_port_in_use_is_told() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let host = taken.local_addr().unwrap().port();
        let error = Forward { protocol: Protocol::Tcp, host, guest: 22 }.check().unwrap_err();
        assert_eq!(error.to_string(), format!("cannot forward port {host} of 127.0.0.1 (tcp)"));
        assert!(error.hint().unwrap().contains("another port"));
    }
}
