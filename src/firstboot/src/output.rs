//! Output: data to stdout, everything else to stderr.

use std::error::Error as StdError;
use std::io::Write;

use crate::error::Error;

/// Writes to stdout.
pub fn print(text: &str) -> Result<(), Error> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(Error::Output)
}

/// Writes to stderr, ignoring errors.
pub fn report(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// An error and its causes in one line.
pub fn chain(error: &dyn StdError) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    message
}
