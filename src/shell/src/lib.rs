//! A POSIX shell that runs maintainer scripts over a file tree: a script with its arguments and a tree in; the changed tree, the exit
//! status and the output, as of dash, out.
//!
//! No process is started. The interpreter cannot access files, clock, network or random numbers of the host: it uses only the [`Files`] and
//! [`Commands`] of its caller. It never guesses: an unknown command or option ends the run with a [`ShellError`] that names the line, even
//! where the script would ignore a failure.
//!
//! A script is parsed line by line as by dash (`syntax`); words are expanded to fields (`expand`); `eval` runs commands: functions of the
//! script, builtins (`builtins`), commands of the caller, programs on the tree (`commands`), and scripts of the tree. Scripts are
//! untrusted: [`Limits`] bounds the resources of a run.
//!
//! ```
//! use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};
//! use vmbake_shell::{Call, Commands, Files, Host, Outcome, Script, Settings, TreeFiles, run};
//!
//! struct Known;
//!
//! impl Commands for Known {
//!     fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
//!         (call.name == b"deb-systemd-helper").then_some(Outcome::Status(0))
//!     }
//! }
//!
//! let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
//! let origin = tree.first_origin();
//! let mut files = TreeFiles::new(&mut tree, Timestamp::default(), origin);
//! let source = b"#!/bin/sh\nset -e\nif [ \"$1\" = configure ]; then mkdir -p /var/lib/a; deb-systemd-helper enable a; fi\n";
//! let script = Script { name: "a.postinst", source, args: &[b"configure".to_vec()] };
//! let mut host = Host { files: &mut files, commands: &mut Known };
//! let finished = run(&script, &mut host, &Settings::default())?;
//! assert_eq!(finished.status, 0);
//! assert!(files.list(b"/var/lib")?.contains(&b"a".to_vec()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod limits;
mod files;
mod tree;
mod accounts;
mod host;
mod syntax;
mod pattern;
mod state;
mod variables;
mod shell;
mod descriptors;
mod order;
mod random;
mod expand;
mod eval;
mod builtins;
mod commands;
mod run;

pub use error::{ErrorKind, ShellError};
pub use eval::foreign;
pub use files::{Aspect, Errno, Files, Follow, Node, NodeKind};
pub use host::{Call, Commands, Outcome, Question, Variables};
pub use limits::Limits;
pub use random::PID as UNKNOWN_NUMBER;
pub use run::{Event, Finished, Host, Script, Settings, parses, run};
pub use tree::TreeFiles;

/// Whether a text matches a pattern of fnmatch(3) without flags: `*` matches any bytes, also slashes and leading dots.
pub fn fnmatch(pattern: &[u8], text: &[u8]) -> bool {
    expand::literal_pattern(pattern).matches(text)
}
