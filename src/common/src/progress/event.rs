//! What happens, with its data. As JSON, each is an object of one line whose `event` names it; `docs/outputs.md` lists them all.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::catalog::Override;
use crate::digest::Digest;
use crate::escape;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// An entry of a catalog took the place of another one.
    Override(Override),
    /// An artifact, a container image or the base image was downloaded into the store.
    Fetched {
        /// Its name in the manifest.
        name: String,
        /// Its version; a container image has it in its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// Where the base image is.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "some_path")]
        path: Option<PathBuf>,
        /// Its length.
        bytes: u64,
    },
    /// Packages that were chosen for a layer were downloaded into the store.
    FetchedPackages {
        layer: String,
        /// How many they are.
        packages: usize,
        /// Their length.
        bytes: u64,
    },
    /// Everything that a manifest pins is proven.
    Verified {
        /// Artifacts and container images.
        artifacts: usize,
        /// Who answers for them, those who have signed first.
        proofs: Vec<ProofCount>,
        /// Who answers for the base image, where one is pinned.
        #[serde(skip_serializing_if = "Option::is_none")]
        base: Option<String>,
    },
    /// The base was copied before it was read, as others could change it.
    Copied {
        /// The base.
        #[serde(serialize_with = "path_text")]
        path: PathBuf,
        /// Who could, and how.
        reason: String,
    },
    /// The root file system of the base was read.
    Read {
        /// The base.
        #[serde(serialize_with = "path_text")]
        path: PathBuf,
        /// Paths in it.
        files: usize,
    },
    /// The layers that the image is made of, in their order.
    Layers {
        /// Their names.
        layers: Vec<String>,
    },
    /// Packages that are not installed, since the base has them.
    Kept {
        /// Names and versions.
        packages: Vec<PackageVersion>,
    },
    /// The ids of accounts that scripts of packages make are in a manifest.
    PinnedAccounts {
        manifest: String,
        /// So many users.
        users: u64,
        /// So many groups.
        groups: u64,
    },
    /// A file of a package that was chosen by name may do more than who runs it.
    Privileged {
        path: String,
        /// Its mode, or that it has file capabilities.
        privilege: String,
    },
    /// A package is configured on the first boot.
    Deferred {
        /// Its name.
        package: String,
        /// Why.
        reason: String,
    },
    /// The layers are one tree.
    Merged {
        /// Paths in it.
        files: usize,
    },
    /// The tree is a file system, and that a disk.
    Authored {
        /// Bytes of data on it.
        bytes: u64,
        /// Its length.
        disk_bytes: u64,
    },
    /// An output is there already, as it would be written.
    Unchanged {
        /// The output.
        #[serde(serialize_with = "path_text")]
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// An output is there.
    Wrote {
        /// The output.
        #[serde(serialize_with = "path_text")]
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// An artifact or the base image is pinned.
    Pinned {
        manifest: String,
        /// Its entry.
        name: String,
        version: String,
        digest: Digest,
        /// The length.
        bytes: u64,
    },
    /// A package that a layer asks for is pinned, with those that it needs.
    PinnedPackages {
        manifest: String,
        /// The package.
        name: String,
        version: String,
        /// How many are pinned for it, itself among them.
        packages: usize,
        /// Their length.
        bytes: u64,
    },
    /// A package that a layer asks for is not pinned, since the base has it.
    HasPackage {
        manifest: String,
        /// The package.
        name: String,
        /// The base's version.
        version: String,
    },
    /// A newer version of a package of the base is pinned.
    Upgrades {
        manifest: String,
        /// The package.
        name: String,
        /// The base's version.
        found: String,
        /// The newer one.
        version: String,
        /// Why: the packages that lead to it.
        reason: String,
    },
    /// A package of the base stays, though a layer asks for newer versions of all.
    NotUpgraded {
        manifest: String,
        /// The package.
        name: String,
        /// Why.
        reason: String,
    },
    /// A container image is pinned.
    PinnedImage {
        manifest: String,
        /// Its entry.
        name: String,
        /// The reference, with the tag.
        image: String,
        /// The digest of the platform's manifest.
        digest: Digest,
    },
    /// A pinned entry has to be resolved again.
    Renewing {
        manifest: String,
        /// Its entry.
        name: String,
        /// Why what was pinned is not proven.
        reason: String,
    },
    /// An entry could not be resolved; others may be.
    Failed {
        manifest: String,
        /// Its entry.
        name: String,
        /// Why.
        reason: String,
    },
    /// A snapshot is begun, or goes on.
    Snapshot {
        id: String,
        /// Where it is.
        region: String,
        /// Blocks that it takes.
        blocks: u64,
        /// Those of them that are there already.
        there: u64,
    },
    /// The machine that is about to start.
    Machine {
        /// Its architecture, as Debian names it.
        arch: String,
        /// What starts the system.
        firmware: String,
        /// Its processors.
        cpus: u32,
        memory_bytes: u64,
        disk_bytes: u64,
    },
    /// What runs the machine's processors.
    Accel {
        /// KVM, else emulation.
        kvm: bool,
        /// Why.
        reason: String,
    },
    /// A port of this host leads into the machine.
    Forward {
        /// `tcp` or `udp`.
        protocol: &'static str,
        /// The port of 127.0.0.1.
        host: u16,
        /// The port of the machine.
        guest: u16,
    },
    /// The machine says how far its boot is.
    Booted {
        /// `the machine boots`, then the state that systemd is in, such as `running` or `degraded`.
        said: String,
    },
    /// A check of the machine has another state than before.
    Check {
        /// The check, as it is written.
        check: String,
        /// `ok`, `FAIL` or `LATE`.
        state: String,
        /// The first line of what was seen.
        said: String,
    },
    /// The machine did not end itself.
    PowerCut,
    /// The machine ended before all checks held.
    GaveUp {
        /// Why.
        reason: String,
        /// The end of what its console showed.
        console: String,
    },
    /// Something is odd and stops nothing.
    Note {
        /// The file that it is about, if it is about one.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "some_path")]
        path: Option<PathBuf>,
        /// What is odd.
        note: String,
    },
    /// Something may be wrong, and stops nothing.
    Warning {
        /// What may be wrong.
        warning: String,
    },
    /// A line for people beside an answer; `--json` of the command has its data.
    Remark {
        /// The line.
        text: String,
    },
    /// The command has failed. This is the last event.
    Error {
        /// What failed.
        message: String,
        /// What caused that, the nearest cause first.
        causes: Vec<String>,
        /// What to do about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}

/// Entries for which the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProofCount {
    /// How many they are.
    pub count: usize,
    /// Who answers for them.
    pub by: String,
    /// Whether a signature proves them.
    pub signed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackageVersion {
    pub name: String,
    pub version: String,
}

impl Event {
    /// Whether it must be said even when nothing else is.
    pub(super) fn is_warning(&self) -> bool {
        matches!(self, Self::Override(_) | Self::Failed { .. } | Self::Warning { .. } | Self::Error { .. })
    }
}

/// Each byte that no text can have is `\xNN`, and so is a backslash.
fn path_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&escape::path(OsStr::as_bytes(path.as_ref())))
}

fn some_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => path_text(path, serializer),
        None => serializer.serialize_none(),
    }
}
