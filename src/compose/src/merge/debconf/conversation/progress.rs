//! Protocol commands on progress bars, which are never shown.

use super::super::database::Files;
use super::super::fault::DebconfFault;
use super::super::record::Text;
use super::Reply;

/// Whether a bar is shown, as far as a script knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    started: bool,
}

impl Progress {
    pub(super) fn command(&mut self, files: &Files, args: &[Text]) -> Result<Reply, DebconfFault> {
        let Some((action, args)) = args.split_first() else { return Ok(Reply::incorrect()) };
        let asked = |name: &Text| files.question(name).is_some();
        match (action.to_ascii_lowercase().as_slice(), args) {
            (b"start", [min, max, question]) => {
                if number(min) > number(max) {
                    return Ok(Reply::of(20, &[b"min (", min, b") > max (", max, b")"]));
                }
                if !asked(question) {
                    return Ok(Reply::unknown(question));
                }
                self.started = true;
            }
            (b"info", [question]) if !asked(question) => return Ok(Reply::unknown(question)),
            (b"set" | b"step" | b"info", [_]) | (b"stop", []) if !self.started => {
                return Err(DebconfFault::Fails { what: "no progress bar was started".to_owned() });
            }
            (b"set" | b"step" | b"info", [_]) => {}
            (b"stop", []) => self.started = false,
            (b"start" | b"set" | b"step" | b"info" | b"stop", _) => return Ok(Reply::incorrect()),
            _ => return Ok(Reply::of(20, &[b"Unknown subcommand"])),
        }
        Ok(Reply::of(0, &[b"OK"]))
    }
}

/// The number that a text begins with.
pub(super) fn number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let value = digits.fold(0_i64, |value, digit| value.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    if negative { -value } else { value }
}
