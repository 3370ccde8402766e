//! Why a run was aborted. Errors of the script itself are not of this type: they are written to standard error and give an exit status, as
//! in dash. An error here means that the effect of the script is unknown.

/// A run that was given up, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{script}:{line}: {}{kind}", shown_prefix(.command))]
pub struct ShellError {
    /// The script, by the name that the caller gave it, or the path of a file that it sources.
    pub script: String,
    /// The line of the command, counted from 1.
    pub line: u32,
    /// The command with its expanded arguments; empty where none had begun.
    pub command: Vec<String>,
    /// Why.
    pub kind: ErrorKind,
}

/// Why a run was given up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    #[error("the command is not known")]
    UnknownCommand,
    #[error("{name} is {what}, which only a machine can run")]
    Foreign {
        name: String,
        /// Such as `a compiled program`.
        what: String,
    },
    #[error("{what} is not supported")]
    Unsupported { what: String },
    #[error("syntax error: {reason}")]
    Syntax {
        /// What was found, and what was expected.
        reason: String,
    },
    #[error("the result is random: {what}")]
    Random { what: String },
    #[error("the result depends on the time: {what}")]
    Clock { what: String },
    #[error("the result depends on the running machine: {what}")]
    Machine { what: String },
    #[error("the result depends on {what}, which is not known here")]
    Unknown { what: String },
    #[error("is left to the first boot: {reason}")]
    Deferred { reason: String },
    #[error("is refused: {reason}")]
    Refused { reason: String },
    #[error("more than {limit} {what}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        limit: u64,
    },
}

/// Bytes for messages: with `\xNN` for bytes that are not UTF-8, control characters escaped, and shortened.
pub(crate) fn show(bytes: &[u8]) -> String {
    const LONGEST: usize = 200;
    let mut text = String::new();
    for chunk in bytes[..bytes.len().min(LONGEST)].utf8_chunks() {
        chunk.valid().chars().for_each(|letter| match letter {
            letter if letter.is_control() => text.extend(letter.escape_default()),
            letter => text.push(letter),
        });
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    if bytes.len() > LONGEST {
        text.push('…');
    }
    text
}

fn shown_prefix(command: &[String]) -> String {
    if command.is_empty() { String::new() } else { format!("{}: ", command.join(" ")) }
}
