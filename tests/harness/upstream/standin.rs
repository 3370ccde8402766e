//! A small real program in place of those that Debian does not have: it says how it was started, tells systemd that it is
//! ready, and waits. `STANDIN_LISTEN` names the addresses it listens on, separated by blanks.

use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

/// Where Go's linker notes what a program is: programs.py writes there what the release would have.
#[repr(C, align(16))]
struct BuildInfo([u8; 15], [u8; 1009]);

#[used]
#[unsafe(link_section = ".go.buildinfo")]
static BUILD_INFO: BuildInfo = BuildInfo(*b"\xff Go buildinf:\x08", [0; 1009]);

fn main() {
    let arguments: Vec<_> = std::env::args_os().collect();
    println!("arguments {arguments:?}");
    let mut variables: Vec<_> = std::env::vars_os().collect();
    variables.sort();
    variables.iter().for_each(|(name, value)| println!("environment {name:?}={value:?}"));
    let addresses = std::env::var("STANDIN_LISTEN").unwrap_or_default();
    let listeners: Vec<_> = addresses.split_whitespace().map(TcpListener::bind).collect();
    listeners.iter().for_each(|listener| println!("listens {listener:?}"));
    if let (Some(path), Ok(socket)) = (std::env::var_os("NOTIFY_SOCKET"), UnixDatagram::unbound()) {
        println!("notified {:?}", socket.send_to(b"READY=1", path));
    }
    loop {
        std::thread::park();
    }
}
