//! Progress events with their data. In JSON, each is an object on one line whose `event` is its name; `docs/outputs.md`
//! lists them all.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::catalog::Override;
use crate::digest::Digest;
use crate::escape;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A catalog entry replaced another one.
    Override(Override),
    /// An artifact, a container image or the base image was downloaded into the store.
    Fetched {
        name: String,
        /// Its version; for a container image, the name includes the version.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// The path of the base image.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "some_path")]
        path: Option<PathBuf>,
        bytes: u64,
    },
    /// Packages requested by a layer were downloaded into the store.
    FetchedPackages {
        layer: String,
        /// Their number.
        packages: usize,
        /// Their total length.
        bytes: u64,
    },
    /// All entries that a manifest pins are verified.
    Verified {
        /// The number of artifacts and container images.
        artifacts: usize,
        /// The signers and other sources of proof, signers first.
        proofs: Vec<ProofCount>,
        /// The proof of the base image, if one is pinned.
        #[serde(skip_serializing_if = "Option::is_none")]
        base: Option<String>,
    },
    /// The base was copied before reading, as other users could modify it.
    Copied {
        #[serde(serialize_with = "path_text")]
        path: PathBuf,
        /// Which users could modify it.
        reason: String,
    },
    /// The root file system of the base was read.
    Read {
        #[serde(serialize_with = "path_text")]
        path: PathBuf,
        /// The number of paths in it.
        files: usize,
    },
    /// The layers of the image, in order.
    Layers { layers: Vec<String> },
    /// Packages that are not installed, since the base has them.
    Kept { packages: Vec<PackageVersion> },
    /// The IDs of users and groups created by package scripts are pinned in a manifest.
    PinnedAccounts { manifest: String, users: u64, groups: u64 },
    /// A file of a package requested by name has privileges that the calling user may lack.
    Privileged {
        path: String,
        /// Its mode, or that it has file capabilities.
        privilege: String,
    },
    /// A package is configured on the first boot.
    Deferred { package: String, reason: String },
    /// The layers are merged into one tree.
    Merged {
        /// The number of paths in it.
        files: usize,
    },
    /// The tree was laid out as a file system on a disk.
    Authored {
        /// Bytes of data on it.
        bytes: u64,
        disk_bytes: u64,
    },
    /// An existing output is up to date.
    Unchanged {
        #[serde(serialize_with = "path_text")]
        path: PathBuf,
        bytes: u64,
    },
    /// An output was written.
    Wrote {
        #[serde(serialize_with = "path_text")]
        path: PathBuf,
        bytes: u64,
    },
    /// An artifact or the base image was pinned.
    Pinned { manifest: String, name: String, version: String, digest: Digest, bytes: u64 },
    /// A package requested by a layer was pinned with its dependencies.
    PinnedPackages {
        manifest: String,
        name: String,
        version: String,
        /// The number of packages pinned for it, including itself.
        packages: usize,
        /// Their total length.
        bytes: u64,
    },
    /// A package requested by a layer was not pinned, since the base has it.
    HasPackage {
        manifest: String,
        name: String,
        /// The base's version.
        version: String,
    },
    /// A newer version of a package of the base was pinned.
    Upgrades {
        manifest: String,
        name: String,
        /// The base's version.
        found: String,
        version: String,
        /// The packages that lead to it.
        reason: String,
    },
    /// A package that a layer removes from the image.
    RemovesPackage { manifest: String, name: String, version: String, layer: String },
    /// A package of the base stays at its version, though a layer requests upgrades of all.
    NotUpgraded { manifest: String, name: String, reason: String },
    /// A container image was pinned.
    PinnedImage {
        manifest: String,
        name: String,
        /// The reference, with the tag.
        image: String,
        /// The digest of the platform's manifest.
        digest: Digest,
    },
    /// A pinned entry is resolved again.
    Renewing {
        manifest: String,
        name: String,
        /// Why the pinned artifact cannot be verified.
        reason: String,
    },
    /// An entry could not be resolved; the others are processed.
    Failed { manifest: String, name: String, reason: String },
    /// A snapshot was started or is being resumed.
    Snapshot {
        id: String,
        region: String,
        /// The number of blocks.
        blocks: u64,
        /// The number of blocks already uploaded.
        there: u64,
    },
    /// The virtual machine to start.
    Machine {
        /// Its architecture, as Debian names it.
        arch: String,
        firmware: String,
        cpus: u32,
        memory_bytes: u64,
        disk_bytes: u64,
    },
    /// The accelerator that runs the virtual CPUs.
    Accel {
        /// Whether it is KVM rather than emulation.
        kvm: bool,
        reason: String,
    },
    /// A port of this host is forwarded to the virtual machine.
    Forward {
        /// `tcp` or `udp`.
        protocol: &'static str,
        /// The port on 127.0.0.1.
        host: u16,
        /// The port of the virtual machine.
        guest: u16,
    },
    /// The state of the boot.
    Booted {
        /// `the machine boots`, then the state of systemd, such as `running` or `degraded`.
        said: String,
    },
    /// The state of a check changed.
    Check {
        /// The check, as given.
        check: String,
        /// `ok`, `FAIL` or `LATE`.
        state: String,
        /// The first line of the check's output.
        said: String,
    },
    /// The machine did not shut down.
    PowerCut,
    /// The machine ended before all checks passed.
    GaveUp {
        reason: String,
        /// The end of its console output.
        console: String,
    },
    /// An unusual condition that is harmless.
    Note {
        /// The file that it concerns, if any.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "some_path")]
        path: Option<PathBuf>,
        note: String,
    },
    /// A possible problem that does not stop the command.
    Warning { warning: String },
    /// A line next to a human-readable result; `--json` of the command has its data.
    Remark { text: String },
    /// The command failed. This is the last event.
    Error {
        message: String,
        /// The causes, the nearest one first.
        causes: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}

/// The number of entries with the same proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProofCount {
    pub count: usize,
    /// The signer or other source of the proof.
    pub by: String,
    /// Whether the proof is a signature.
    pub signed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackageVersion {
    pub name: String,
    pub version: String,
}

impl Event {
    /// Whether the event is shown even if `quiet`.
    pub(super) fn is_warning(&self) -> bool {
        matches!(self, Self::Override(_) | Self::Failed { .. } | Self::Warning { .. } | Self::Error { .. })
    }
}

/// Escapes backslashes and bytes that are not valid UTF-8 as `\xNN`.
fn path_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&escape::path(OsStr::as_bytes(path.as_ref())))
}

fn some_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => path_text(path, serializer),
        None => serializer.serialize_none(),
    }
}
