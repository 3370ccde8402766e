//! The format of `sources.json`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use vmbake_manifest::upstream::{Template, Upstream, VersionSource};

/// Upstreams and their required proofs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, bound(deserialize = "S: Default + Deserialize<'de>"))]
pub struct SourcesSchema<S = System> {
    /// Archives of Debian packages by name.
    pub archives: BTreeMap<String, Archive>,
    /// Operating systems by name, such as `debian-13`.
    pub systems: BTreeMap<String, S>,
    /// Artifacts. A name may occur more than once, for different kinds or systems.
    pub dependencies: Vec<Source>,
    /// Container images.
    pub images: Vec<ImageSource>,
    /// The origin of the files in `trust/`.
    pub trust: BTreeMap<String, TrustSource>,
}

/// One file, which may be incomplete.
pub(super) type Document = SourcesSchema<SystemPart>;

/// An apt repository.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// URL of the directory with `dists`, or of a flat archive.
    pub url: Template,
    /// Suite or codename below `dists`. For a flat archive (sources.list(5)) the directory of its index below `url`,
    /// with a trailing `/`.
    pub suite: Template,
    /// Component; a flat archive has none.
    #[serde(default)]
    pub component: Option<String>,
    /// File of `trust/` with the accepted keys.
    pub keyring: String,
    /// `Origin` of the repository. At a built-in URL, the mirror of this origin that the host's apt uses is the
    /// default.
    #[serde(default)]
    pub origin: Option<String>,
    /// Its `Label`; absent means the value of `origin`.
    #[serde(default)]
    pub label: Option<String>,
    /// Archives with newer versions of the same packages, such as security updates: the newest version of all is used.
    #[serde(default)]
    pub also: Vec<String>,
    /// Maximum age in days of its `InRelease` for pinning.
    #[serde(default)]
    pub max_age_days: Option<u16>,
    /// URL of the snapshots of the archive, for files that left the pool and for `update --at`.
    #[serde(default)]
    pub snapshot: Option<String>,
}

/// The part of an operating system in one file. Kinds and architectures of several files are combined.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SystemPart {
    pub(super) codename: Option<String>,
    pub(super) kinds: BTreeSet<String>,
    pub(super) arches: BTreeSet<String>,
    pub(super) image: Option<Upstream>,
    pub(super) archive: Option<String>,
}

/// An operating system for images.
#[derive(Clone, Debug)]
pub struct System {
    /// Codename of the release.
    pub codename: String,
    /// Its kinds of images.
    pub kinds: BTreeSet<String>,
    /// Architectures as Debian names them.
    pub arches: BTreeSet<String>,
    /// The published disk image.
    pub image: Upstream,
    /// The archive of the packages that layers request.
    pub archive: Option<String>,
}

/// An artifact of some kinds of images.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name in manifests.
    pub name: String,
    /// Kinds of images that require it; absent means all, such as for artifacts of a bundle.
    #[serde(default)]
    pub kinds: Option<BTreeSet<String>>,
    /// Operating systems that require it; absent means all.
    #[serde(default)]
    pub systems: Option<BTreeSet<String>>,
    /// Architectures that require it; absent means all.
    #[serde(default)]
    pub arches: Option<BTreeSet<String>>,
    /// Its upstream and required proof.
    pub upstream: Upstream,
}

/// A container image of some kinds of images.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSource {
    /// Reference without a tag, such as `registry.k8s.io/pause`.
    pub image: String,
    /// Kinds of images that require it.
    pub kinds: BTreeSet<String>,
    /// How the tag is determined.
    pub tag: VersionSource,
}

/// The origin of a file in `trust/`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustSource {
    /// URLs whose contents are concatenated to the file.
    pub urls: Vec<String>,
}
