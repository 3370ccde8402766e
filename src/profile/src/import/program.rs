//! The scripts to run: the phases of a profile in the order of cloud-init.

use vmbake_disk::tree::Tree;
use vmbake_shell::Files;

use super::rules::Rules;

/// A file of the profile, marks in place of values.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) mode: u16,
    pub(super) text: String,
}

/// A script that cloud-init runs, with a name for messages.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    pub(super) name: &'static str,
    pub(super) lines: Vec<String>,
}

/// What one run of cloud-init does, in its order.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) bootcmd: Commands,
    pub(super) files: Vec<File>,
    pub(super) runcmd: Commands,
}

/// What is run, and how.
pub(super) struct Program<'a> {
    /// The bootstrap and the provisioning.
    pub(super) phases: &'a [Phase; 2],
    /// What is done with units in the end.
    pub(super) units: &'a [Commands],
    pub(super) rules: &'a Rules,
    pub(super) secrets: [String; 2],
    /// Whether machines have a file with their name.
    pub(super) has_name: bool,
    /// What `uname -m` prints.
    pub(super) machine: &'static str,
    /// The tree of the base image, where one is named.
    pub(super) image: Option<&'a Tree>,
}

/// Puts a file to its place, as cloud-init does.
pub(super) fn place(files: &mut dyn Files, file: &File) -> Result<(), vmbake_shell::Errno> {
    for (at, _) in file.path.match_indices('/').skip(1) {
        files.ensure_dir(file.path.get(..at).unwrap_or_default().as_bytes(), 0o755)?;
    }
    files.write(file.path.as_bytes(), file.text.clone().into_bytes(), file.mode)?;
    files.set_mode(file.path.as_bytes(), file.mode)
}
