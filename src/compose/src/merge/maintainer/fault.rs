//! Why a maintainer script cannot run.

use vmbake_common::hint::Hint;
use vmbake_shell::ShellError;

/// Why a maintainer script is not done.
#[derive(Debug, thiserror::Error)]
pub enum ScriptFault {
    #[error("{error}{}", if .text.is_empty() { String::new() } else { format!("\n    {text}") })]
    Unknown { error: Box<ShellError>, text: String },
    #[error("fails with status {status}{}", if .stderr.is_empty() { String::new() } else { format!("\n{stderr}") })]
    Failed {
        status: u8,
        /// What it writes to standard error.
        stderr: String,
    },
    #[error("cannot run during a bake, and only a postinst can be deferred to the first boot: {reason}")]
    CannotWait { reason: String },
    #[error("is deferred by a layer, but only a postinst can be deferred to the first boot")]
    NotPostinst,
}

impl Hint for ScriptFault {}
