//! The format of `sources.json`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use vmbake_manifest::upstream::{Template, Upstream, VersionSource};

/// Where upstreams live, and what each must prove.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, bound(deserialize = "S: Default + Deserialize<'de>"))]
pub struct SourcesSchema<S = System> {
    /// Archives of Debian packages by name.
    pub archives: BTreeMap<String, Archive>,
    /// Operating systems by name, such as `debian-13`.
    pub systems: BTreeMap<String, S>,
    /// Artifacts. A name may be there more than once, for different kinds or systems.
    pub dependencies: Vec<Source>,
    /// Container images.
    pub images: Vec<ImageSource>,
    /// Where the files of `trust/` come from.
    pub trust: BTreeMap<String, TrustSource>,
}

/// One file: it may lack what another one says.
pub(super) type Document = SourcesSchema<SystemPart>;

/// An apt repository.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// Address of the directory with `dists`, or of a flat archive.
    pub url: Template,
    /// Suite or codename below `dists`. Of a flat archive (sources.list(5)) the directory of its index below `url`, with `/` at its end.
    pub suite: Template,
    /// Component; a flat archive has none.
    #[serde(default)]
    pub component: Option<String>,
    /// File of `trust/` with the keys that may sign it.
    pub keyring: String,
    /// `Origin` of the repository. At a built-in address, the mirror of this origin that the host's apt uses is the default.
    #[serde(default)]
    pub origin: Option<String>,
    /// Its `Label`; absent means that it is the same as `origin`.
    #[serde(default)]
    pub label: Option<String>,
    /// Archives that have newer versions of the same packages, such as its security updates: the newest version of all is taken.
    #[serde(default)]
    pub also: Vec<String>,
    /// Days after which its `InRelease` is too old to pin anything from.
    #[serde(default)]
    pub max_age_days: Option<u16>,
    /// Directory with the snapshots of the archive, for files that left the pool and for `update --at`.
    #[serde(default)]
    pub snapshot: Option<String>,
}

/// What one file says of an operating system. Kinds and architectures of several files go together.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SystemPart {
    pub(super) codename: Option<String>,
    pub(super) kinds: BTreeSet<String>,
    pub(super) arches: BTreeSet<String>,
    pub(super) image: Option<Upstream>,
    pub(super) archive: Option<String>,
}

/// An operating system that images are based on.
#[derive(Clone, Debug)]
pub struct System {
    /// Codename of the release.
    pub codename: String,
    /// Kinds of image that are made of it.
    pub kinds: BTreeSet<String>,
    /// Architectures, as Debian names them.
    pub arches: BTreeSet<String>,
    /// The published disk image.
    pub image: Upstream,
    /// The archive of the packages that layers ask for.
    pub archive: Option<String>,
}

/// An artifact that some kinds of image are made of.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name in manifests.
    pub name: String,
    /// Kinds of image that need it; absent means all, as for what a bundle brings to whatever image it is composed with.
    #[serde(default)]
    pub kinds: Option<BTreeSet<String>>,
    /// Operating systems that need it; absent means all.
    #[serde(default)]
    pub systems: Option<BTreeSet<String>>,
    /// Architectures that need it; absent means all.
    #[serde(default)]
    pub arches: Option<BTreeSet<String>>,
    /// Where it is and what proves it.
    pub upstream: Upstream,
}

/// A container image that some kinds of image hold.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSource {
    /// Reference without a tag, such as `registry.k8s.io/pause`.
    pub image: String,
    /// Kinds of image that need it.
    pub kinds: BTreeSet<String>,
    /// Where the tag comes from.
    pub tag: VersionSource,
}

/// Where a file of `trust/` comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustSource {
    /// Addresses whose content, one after the other, is the file.
    pub urls: Vec<String>,
}
