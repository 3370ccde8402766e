//! Errors of `dev sync` and their hints.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use vmbake_common::hint::{Hint, image};
use vmbake_common::spelling::of_path;
use vmbake_compose::merge::MergeError;
use vmbake_compose::origin::RecordError;
use vmbake_layer::LayerError;
use vmbake_layer::first_boot::Clash;
use vmbake_manifest::ManifestError;

/// Error of a sync.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    #[error("{text:?}: expected an image or [user@]host[:port]")]
    Host { text: String },
    #[error("{word:?}: expected an option of ssh after `--`, such as -i KEY or -o Name=value, with its value")]
    Option { word: OsString },
    #[error("{target}: expected {keyword} {expected}, found the option {option:?} of ssh")]
    Contradiction {
        /// The machine as given.
        target: String,
        /// Keyword of the option, as in ssh_config(5).
        keyword: String,
        /// Value from the address.
        expected: String,
        option: String,
    },
    #[error("{path}: cannot find the machine of the image")]
    Image { path: PathBuf, source: io::Error },
    #[error("{image}: no running machine of `vmbake boot` has this image open")]
    NoMachine { image: PathBuf },
    #[error("{image}: no port of 127.0.0.1 is forwarded to port 22 of its machine")]
    NoForward { image: PathBuf },
    #[error("{image}: expected one running machine of this image, found {found}")]
    Machines { image: PathBuf, found: usize },
    #[error("cannot run {program}")]
    Program { program: &'static str, source: io::Error },
    #[error("cannot write a temporary file")]
    Stage(#[source] io::Error),
    #[error("{host}: cannot {action}: {status}: {said}")]
    Remote {
        host: String,
        action: String,
        status: ExitStatus,
        /// Its stderr on one line.
        said: String,
    },
    #[error("{host}: expected {expected} in the machine's response, found {found:?}")]
    Answer { host: String, expected: &'static str, found: String },
    #[error("{host}: {path} is missing")]
    NotBaked { host: String, path: &'static str },
    #[error("{host}: rsync is not installed")]
    NoRsync { host: String },
    #[error("{host}: cannot use the manifest of the machine")]
    Manifest { host: String, source: ManifestError },
    #[error("{host}: cannot use the record of origins of the machine")]
    Record { host: String, source: RecordError },
    #[error("{host}: {path}: cannot read the document")]
    Document { host: String, path: &'static str, source: serde_json::Error },
    #[error("{host}: expected a machine of kind {expected}, found kind {found}")]
    Kind {
        host: String,
        /// Required kind.
        expected: String,
        found: String,
    },
    #[error("{host}: kind {kind} requires none of the layers {layers}")]
    Unrelated { host: String, kind: String, layers: String },
    #[error("expected a directory with layers to send, found no layer.json in any directory of --layers")]
    NoLayers,
    #[error(transparent)]
    Layer(#[from] LayerError),
    #[error(transparent)]
    Clash(#[from] Clash),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error("cannot create the default settings")]
    Defaults(#[source] vmbake_firstboot::error::Error),
    #[error("cannot serialize a document as JSON")]
    Json(#[from] serde_json::Error),
}

/// Messages of programs, and hints. The first match counts.
const ADVICE: &[(&[&str], &str)] = &[
    (
        &["REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed"],
        "if the machine was replaced, remove its old key: `ssh-keygen -R HOST`, or `ssh-keygen -R '[HOST]:PORT'`; connect once with ssh to accept the \
         new one",
    ),
    (
        &["Connection refused"],
        "check the port and that the machine has booted; a machine of `vmbake boot` requires --forward 2222:22",
    ),
    (&["Could not resolve hostname"], "check the name, or add the host to ~/.ssh/config"),
    (
        &["Connection timed out", "No route to host", "Network is unreachable", "not responding"],
        "check that the machine is up and reachable",
    ),
    (
        &["Permission denied (", "Too many authentication failures"],
        "use a key that the machine accepts, as in `vmbake dev sync HOST -- -i KEY`, or another user with `-- -l USER`; a machine of `vmbake \
         boot` accepts the keys of its --ssh-key",
    ),
    (
        &[
            "sudo: a password is required",
            "sudo: a terminal is required",
            "is not in the sudoers file",
            "may not run sudo",
        ],
        "log in as root, or as a user whose sudo needs no password",
    ),
    (&["sudo: not found", "sudo: command not found"], "log in as root: the machine has no sudo"),
    (&["Read-only file system"], "the machine's file system is read-only: remount it, or bake a new image"),
    (&["has failed: "], "see `journalctl -u UNIT` on the machine, repair the unit in the layer and sync again"),
    (&["No space left on device"], "the machine's file system is full"),
    (&["another sync of this machine"], "wait until the other sync has finished, then run the command again"),
    (&["rsync: not found", "rsync: command not found"], RSYNC),
];

const RSYNC: &str = "require the layer `rsync` in the layer.json of the kind, bake a new image and boot it; the kinds knd and knc include \
                     rsync";

impl Hint for SyncError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Image { path, source } => return of_path(path, source, &image()),
            Self::Host { .. } => {
                "use an address or an alias from ~/.ssh/config; put options of ssh after `--`, as in `vmbake dev sync HOST -- -i KEY`"
            }
            Self::Option { .. } => {
                "name the machine before `--`; commands and options that prevent ssh from running commands are not supported"
            }
            Self::Contradiction { .. } => {
                "set user, host and port only in the address, as in `vmbake dev sync user@host:port -- -i KEY`; for an image, the forwarded \
                 port of its machine is used"
            }
            Self::NoMachine { .. } => "start it: `vmbake boot IMAGE --ssh-key KEY.pub --forward 2222:22`",
            Self::NoForward { .. } => "start it with --forward 2222:22",
            Self::Machines { .. } => "name the port: `vmbake dev sync debian@127.0.0.1:PORT`",
            Self::Program { program: "rsync", .. } => "install the package rsync",
            Self::Program { .. } => "install the package openssh-client",
            Self::Remote { said, .. } => {
                return ADVICE
                    .iter()
                    .find(|(texts, _)| texts.iter().any(|text| said.contains(text)))
                    .map(|(_, advice)| (*advice).to_owned());
            }
            Self::NotBaked { .. } => {
                "dev sync works only on machines that were booted from an image of `vmbake bake`: check that HOST is the right machine"
            }
            Self::NoRsync { .. } => RSYNC,
            Self::Kind { .. } => "name a machine of that kind, or use --kind with the kind of this machine",
            Self::NoLayers => {
                "use --layers with the directory of your layers; by default, `./layers` is used if it exists"
            }
            Self::Unrelated { .. } => {
                "use --layers with a directory of layers that the kind requires; `vmbake layer list` lists all layers"
            }
            Self::Document { path: super::state::PATH, .. } => {
                "remove this file on the machine and sync again: files sent before then count as files of the image"
            }
            Self::Manifest { .. } | Self::Record { .. } | Self::Document { .. } | Self::Answer { .. } => {
                "bake the image again with this version of vmbake, boot it and sync to the new machine"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Stage, Layer, Clash, Merge; Image, Program, Manifest, Record);
}
