//! Queries of templates: files, host names and cloud metadata.

use std::io;
use std::net::IpAddr;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::root::Root;
use crate::template::{Fault, Machine};

/// cloud-init's data about the machine, without secrets.
const CLOUD: &str = "/run/cloud-init/instance-data.json";

/// Timeout of a name lookup, in seconds.
pub(crate) const PATIENCE: &str = "5";

/// Maximum length of the cloud's response, in bytes, which includes user data.
const MAX_CLOUD: u64 = 16 << 20;

/// Runs a program that can query name servers, with a timeout in seconds: resolvers have timeouts of minutes.
pub(crate) fn run_with_timeout(seconds: &str, program: &[&str]) -> io::Result<Output> {
    let mut command = Command::new("/usr/bin/timeout");
    command.arg("--signal=KILL").arg(seconds).args(program).stdin(Stdio::null()).output()
}

pub struct Here<'a> {
    root: &'a Root,
}

impl<'a> Here<'a> {
    /// The machine whose files are below `root`.
    pub fn new(root: &'a Root) -> Self {
        Self { root }
    }
}

impl Machine for Here<'_> {
    fn exists(&self, path: &str) -> Result<bool, Fault> {
        match self.root.find(path) {
            Ok(found) => Ok(found.is_some()),
            Err(error) => Err(Fault::Value { message: crate::chain(&error) }),
        }
    }

    /// The resolver of a static program knows neither systemd-resolved nor nsswitch.conf: getent(1) does.
    fn addresses(&self, host: &str) -> Result<Vec<String>, Fault> {
        let failed = |reason: String| Fault::Unresolved { host: host.to_owned(), reason };
        let output = run_with_timeout(PATIENCE, &["/usr/bin/getent", "ahosts", "--", host])
            .map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let addresses = text.lines().filter_map(|line| line.split_whitespace().next()?.parse::<IpAddr>().ok());
        let mut known: Vec<IpAddr> = Vec::new();
        for address in addresses {
            if let Err(at) = known.binary_search(&address) {
                known.insert(at, address);
            }
        }
        match known.is_empty() {
            true => Err(failed("getent ahosts found none".to_owned())),
            false => Ok(known.iter().map(IpAddr::to_string).collect()),
        }
    }

    fn cloud(&self, path: &str) -> Result<String, Fault> {
        let wrong = |message: String| Fault::Value { message: format!("{CLOUD}: {message}") };
        let bytes = match self.root.read(CLOUD, MAX_CLOUD) {
            Ok(None) => return Ok(String::new()),
            Ok(Some(bytes)) => bytes,
            Err(error) => return Err(Fault::Value { message: crate::chain(&error) }),
        };
        let data: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        Ok(match data.pointer(&format!("/{}", path.replace('.', "/"))) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_answer_is_ended() {
        let ended = run_with_timeout("0.1", &["/usr/bin/sleep", "60"]).unwrap();
        assert!(!ended.status.success() && ended.stdout.is_empty());
        assert_eq!(run_with_timeout(PATIENCE, &["/usr/bin/echo", "name"]).unwrap().stdout, b"name\n");
    }
}
