//! Checks inside the machine: checks in, vendor data for cloud-init out; bytes of a virtio port in, reports out.
//!
//! The script is a boothook, which cloud-init runs on every boot in addition to any user data. It only starts a
//! transient unit, so that the boot continues. A report is a line, `STATE NUMBER BYTES`, followed by that many bytes of text. The
//! machine is not trusted: reports are bounded, and the first malformed one ends the stream.

use std::fmt::Write as _;
use std::io::{self, BufRead, Read};

use super::{Check, State};

/// Name of the virtio port.
pub const PORT: &str = "vmbake.check";
/// Report number of the boot itself.
pub const BOOT: usize = 0;
/// Maximum length of a report's text.
const MAX_SAID: usize = 4096;
/// Maximum length of a report's first line.
const MAX_LINE: u64 = 64;

/// Prelude of the script: functions that check and report.
const SCRIPT: &str = include_str!("guest.sh");
/// Delimiter of the script in the hook.
const END: &str = "end-of-vmbake-check-5a1cf7";

/// A report of the machine.
#[derive(Debug, PartialEq, Eq)]
pub struct GuestReport {
    /// Number of the check, from 1; [`BOOT`] for the boot.
    pub number: usize,
    pub state: State,
    /// Details.
    pub said: String,
}

/// Vendor data with the checks; `None` if there are none inside the machine.
pub fn vendor_data(checks: &[Check]) -> Option<String> {
    let mut calls = String::new();
    for (number, check) in (1..).zip(checks) {
        let (question, argument) = match check {
            Check::Unit(name) => ("unit", name.as_str()),
            Check::File(path) => ("file", path.as_str()),
            Check::Run(script) => ("run", script.as_str()),
            Check::NoFailedUnits => ("no_failed_units", ""),
            Check::Tcp(_) | Check::Http { .. } => continue,
        };
        // Writing to a string cannot fail.
        let _ = writeln!(calls, "    judge {number} {question} {}", quoted(argument));
    }
    (!calls.is_empty()).then(|| {
        format!(
            "#cloud-boothook\n#!/bin/sh\nmkdir -p -m 0700 /run/vmbake-check\ncat >/run/vmbake-check/script <<'{END}'\n\
             {SCRIPT}while :; do\n{calls}    sleep 1\ndone\n{END}\n\
             systemd-run --quiet --no-block --collect --unit=vmbake-check sh /run/vmbake-check/script\n"
        )
    })
}

/// Quotes a shell word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The next report; `None` at the end, or if it is malformed.
pub fn report(port: &mut impl BufRead) -> io::Result<Option<GuestReport>> {
    let mut line = String::new();
    port.take(MAX_LINE).read_line(&mut line)?;
    let Some((state, number, len)) = header(&line) else { return Ok(None) };
    let mut said = vec![0; len];
    port.read_exact(&mut said)?;
    Ok(Some(GuestReport { number, state, said: String::from_utf8_lossy(&said).trim_end().to_owned() }))
}

fn header(line: &str) -> Option<(State, usize, usize)> {
    let mut words = line.strip_suffix('\n')?.split(' ');
    let state = match words.next()? {
        "pending" => State::Pending,
        "ok" => State::Ok,
        "failed" => State::Failed,
        _ => return None,
    };
    let mut number = || words.next()?.parse::<usize>().ok();
    let (number, len) = (number()?, number()?);
    (words.next().is_none() && len <= MAX_SAID).then_some((state, number, len))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_is_asked_outside_needs_no_script() {
        assert_eq!(vendor_data(&[Check::Tcp(80)]), None);
    }

    #[test]
    fn the_script_is_one() {
        let hostile = "'; touch /tmp/x; echo \"$(id)\" `id` \\\n".to_owned();
        let checks =
            [Check::Tcp(80), Check::Run(hostile.clone()), Check::NoFailedUnits, Check::File("/a b".to_owned())];
        let data = vendor_data(&checks).unwrap();
        let script = data.split_once(&format!("<<'{END}'\n")).unwrap().1.split_once(END).unwrap().0;
        let status = Command::new("sh").args(["-n", "-c", script]).status().unwrap();
        assert!(status.success());
        // Round trip through the shell.
        let said = Command::new("sh").args(["-c", &format!("printf %s {}", quoted(&hostile))]).output().unwrap();
        assert_eq!(said.stdout, hostile.as_bytes());
        assert!(script.contains("judge 2 run ") && script.contains("judge 4 file '/a b'"), "{script}");
    }

    #[test]
    fn reports_end_at_the_first_that_is_none() {
        let mut port: &[u8] = b"ok 2 3\na\xff\npending 0 0\nok 1 5000\nfailed 1 0\n";
        let report = |port: &mut &[u8]| report(port).unwrap();
        assert_eq!(report(&mut port), Some(GuestReport { number: 2, state: State::Ok, said: "a\u{fffd}".to_owned() }));
        assert_eq!(report(&mut port), Some(GuestReport { number: 0, state: State::Pending, said: String::new() }));
        assert_eq!(report(&mut port), None);
        for wrong in ["", "ok", "ok 1", "ok 1 2 3\n", "no 1 0\n", "ok -1 0\n", "ok 1 0", "ok 99999999999999999999 0\n"]
        {
            assert_eq!(report(&mut wrong.as_bytes()), None, "{wrong:?}");
        }
        assert_eq!(report(&mut "ok 1 ".repeat(100).as_bytes()), None);
        assert!(super::report(&mut &b"ok 1 9\nabc"[..]).is_err());
    }
}
