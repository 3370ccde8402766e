//! `downloads`, `local_files` and `container_images` of a layer: upstreams that the layer defines, and how each is installed.

use std::collections::BTreeSet;
use std::fmt;

use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::findings::Findings;
use super::position::child;
use super::read::LOCAL_FILES;
use super::{ByArch, Install, Layer, LayerError, Schema, validate};
use vmbake_manifest::OS_IMAGE;
use vmbake_manifest::upstream::{ArtifactType, Demand, Program, Template, Upstream, UpstreamRequest, VersionSource};
use vmbake_oci::Reference;
use vmbake_pin::is_version;
use vmbake_pin::prove::LOCAL;

/// Reserved names in manifests: the built-in first-boot program, the base image, and the configuration itself.
const RESERVED: [&str; 3] = ["firstboot", OS_IMAGE, "vmconfig"];

/// A file or archive to download.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Download {
    /// URL (https), or one for each architecture; `{version}` and `{arch}` are replaced, as in `sources.json`.
    pub url: ByArch<Template>,
    /// Version, or the source of the newest version, as in `sources.json`.
    #[serde(deserialize_with = "version")]
    #[schemars(schema_with = "version_form")]
    pub version: VersionSource,
    /// SHA-256 of the file, or one for each architecture, instead of `checksums` and `proof`.
    #[serde(default)]
    pub sha256: Option<ByArch<String>>,
    /// URL of a checksum file that lists the file, or one for each architecture.
    #[serde(default)]
    pub checksums: Option<ByArch<Template>>,
    /// Required proof, as in `sources.json`. With `checksums`, it is `checksum` by default.
    #[serde(default)]
    pub proof: Option<Demand>,
    /// Expected program, if the proof does not identify it.
    #[serde(default)]
    pub program: Option<Program>,
    /// How the file is installed, as in `artifacts`.
    pub install: Install,
}

impl Download {
    /// The upstream for an architecture, or the key that has no value for it.
    fn upstream(&self, arch: &str) -> Result<Upstream, &'static str> {
        let url = self.url.of(arch).ok_or("url")?.clone();
        let checksums = self.checksums.as_ref().map(|sums| sums.of(arch).cloned().ok_or("checksums")).transpose()?;
        let stated = self.sha256.as_ref().map(|stated| stated.of(arch).ok_or("sha256")).transpose()?;
        let stated = stated.map(|hex| format!("sha256:{hex}").parse().map_err(|_| "sha256")).transpose()?;
        let proof = match (stated, &self.proof) {
            (Some(stated), _) => Demand::Stated(stated),
            (None, Some(proof)) => proof.clone(),
            (None, None) => Demand::Checksum,
        };
        let kind = self.install.artifact(&url.to_string());
        let (version, program) = (self.version.clone(), self.program.clone());
        Ok(Upstream { kind, version, url: Some(url), checksums, proof, program })
    }

    /// The upstreams of all architectures that have a separate value, or a single one.
    fn upstreams(&self) -> Vec<Upstream> {
        let urls = self.url.values().into_iter().map(|(arch, _)| arch);
        let sums = self.checksums.iter().flat_map(|sums| sums.values()).map(|(arch, _)| arch);
        let arches: BTreeSet<&str> = urls.chain(sums).map(|arch| arch.map_or("", String::as_str)).collect();
        // Errors in digests are reported at their keys.
        let proof = if self.sha256.is_some() { Some(Demand::FirstUse) } else { self.proof.clone() };
        let plain = Self { sha256: None, proof, ..self.clone() };
        arches.into_iter().filter_map(|arch| plain.upstream(arch).ok()).collect()
    }

    /// The error in the combination of its proofs, if any.
    fn unproven(&self) -> Option<&'static str> {
        match (&self.sha256, &self.checksums, &self.proof) {
            (Some(_), None, None) if !matches!(self.version, VersionSource::Pinned(_)) => {
                Some("`sha256` requires a fixed `version`")
            }
            (Some(_), None, None) => None,
            (Some(_), ..) => Some("`sha256` cannot be combined with `checksums` and `proof`"),
            (None, _, Some(Demand::FirstUse | Demand::Apt | Demand::Stated(_))) => Some(
                "`proof` must be \"checksum\" or an object with `openpgp`, `sigstore` or `cosign`; a digest belongs in `sha256`",
            ),
            (None, None, None) => Some("no proof: add `sha256` or `checksums`"),
            (None, ..) => None,
        }
    }
}

/// A package, an archive or another file of the layer's directory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocalArtifact {
    /// Path in the layer's directory, below `local/`, or one for each architecture.
    pub path: ByArch<String>,
    /// Version, for records.
    #[serde(default = "unversioned")]
    pub version: String,
    /// How the file is installed, as in `artifacts`.
    pub install: Install,
}

fn unversioned() -> String {
    "local".to_owned()
}

impl Install {
    /// The type of an artifact with this URL and this kind of installation.
    fn artifact(&self, url: &str) -> ArtifactType {
        match self {
            Self::Deb => ArtifactType::Deb,
            Self::File { decompress: true, .. } => ArtifactType::Compressed,
            Self::File { .. } => ArtifactType::Binary,
            Self::Zip { .. } => ArtifactType::Zip,
            Self::Tar { .. } if url.ends_with(".tar") => ArtifactType::Tar,
            Self::Tar { .. } => ArtifactType::TarGz,
        }
    }
}

impl Layer {
    /// The layer's request for upstreams and local files for an architecture.
    pub fn upstream_request(&self, arch: &str) -> Result<UpstreamRequest, LayerError> {
        let mut request = self.schema.upstream_request(arch)?;
        for (name, artifact) in &self.schema.local_files {
            let no_arch = |key| {
                let (layer, name, arch) = (self.schema.name.clone(), name.clone(), arch.to_owned());
                LayerError::NoArch { layer, name, key, arch }
            };
            let path = artifact.path.of(arch).ok_or_else(|| no_arch("path"))?;
            let file = self.local.get(path).ok_or_else(|| no_arch("file"))?;
            let url = format!("{LOCAL}{path}");
            let upstream = Upstream {
                kind: artifact.install.artifact(&url),
                version: VersionSource::Pinned(artifact.version.clone()),
                url: Some(Template::try_from(url).map_err(|_| no_arch("path"))?),
                checksums: None,
                proof: Demand::Stated(file.digest),
                program: None,
            };
            request.downloads.insert(name.clone(), upstream);
        }
        Ok(request)
    }
}

impl Schema {
    /// All artifacts: JSON pointer in the layer, name, and how it is installed.
    pub fn installs(&self) -> impl Iterator<Item = (String, &String, &Install)> {
        let artifacts = self.artifacts.iter().map(|(name, install)| (child("/artifacts", name), name, install));
        let downloads = self.downloads.iter();
        let downloads =
            downloads.map(|(name, download)| (child("/downloads", name) + "/install", name, &download.install));
        let local = self.local_files.iter();
        let local = local.map(|(name, artifact)| (child("/local_files", name) + "/install", name, &artifact.install));
        artifacts.chain(downloads).chain(local)
    }

    /// How the artifact of that name is installed.
    pub fn install(&self, name: &str) -> Option<&Install> {
        let download = || self.downloads.get(name).map(|download| &download.install);
        let local = || self.local_files.get(name).map(|artifact| &artifact.install);
        self.artifacts.get(name).or_else(download).or_else(local)
    }

    /// The layer's downloads for an architecture.
    fn upstream_request(&self, arch: &str) -> Result<UpstreamRequest, LayerError> {
        let upstream = |(name, download): (&String, &Download)| match download.upstream(arch) {
            Ok(upstream) => Ok((name.clone(), upstream)),
            Err(key) => {
                let (layer, name, arch) = (self.name.clone(), name.clone(), arch.to_owned());
                Err(LayerError::NoArch { layer, name, key, arch })
            }
        };
        Ok(UpstreamRequest {
            downloads: self.downloads.iter().map(upstream).collect::<Result<_, _>>()?,
            container_images: self.container_images.iter().cloned().collect(),
        })
    }
}

/// Validates `downloads`.
pub fn check(found: &mut Findings, schema: &Schema) {
    for (name, download) in &schema.downloads {
        let pointer = child("/downloads", name);
        found.key(pointer.clone(), name_fault(name, schema.artifacts.contains_key(name)));
        let is_https = |url: &Template| url.start().starts_with("https://");
        each(found, &pointer, "url", &download.url, |url| (!is_https(url)).then(|| "the URL is not https".to_owned()));
        if let VersionSource::Pinned(version) = &download.version {
            let fault = (!is_version(version)).then(|| format!("{version:?} is not a valid version"));
            found.value(format!("{pointer}/version"), fault);
        }
        if let Some(stated) = &download.sha256 {
            each(found, &pointer, "sha256", stated, |hex| validate::sha256(hex));
        }
        // Of each fault one word is enough.
        let is_https = download.url.values().into_iter().all(|(_, url)| is_https(url));
        let form = || download.upstreams().iter().flat_map(Upstream::faults).next().filter(|_| is_https);
        found.key(pointer, download.unproven().or_else(form).map(str::to_owned));
    }
}

/// Validates `local_files`.
pub(super) fn check_local(found: &mut Findings, layer: &Layer) {
    let schema = &layer.schema;
    for (name, artifact) in &schema.local_files {
        let pointer = child("/local_files", name);
        let is_used = schema.artifacts.contains_key(name) || schema.downloads.contains_key(name);
        found.key(pointer.clone(), name_fault(name, is_used));
        let version =
            (!is_version(&artifact.version)).then(|| format!("{:?} is not a valid version", artifact.version));
        found.value(format!("{pointer}/version"), version);
        each(found, &pointer, "path", &artifact.path, |path| {
            let missing = !layer.local.contains_key(path) || path.contains(['{', '}']);
            missing.then(|| format!("{path:?} is not a file below {LOCAL_FILES}/ of the layer's directory"))
        });
    }
    let used = |path: &str| {
        let paths = schema.local_files.values().flat_map(|artifact| artifact.path.values());
        paths.into_iter().any(|(_, used)| used == path)
    };
    let unused = layer.local.keys().find(|path| !used(path));
    found.key("/name".to_owned(), unused.map(|path| format!("{path:?} is not installed by `local_files`")));
}

/// Why an artifact cannot have this name.
fn name_fault(name: &str, is_used: bool) -> Option<String> {
    let reserved = || RESERVED.contains(&name).then(|| format!("name {name:?} is reserved"));
    let used = || is_used.then(|| format!("{name:?} is already an artifact of the layer"));
    validate::name(name).or_else(reserved).or_else(used)
}

/// Checks a value for each architecture.
fn each<T>(found: &mut Findings, parent: &str, key: &str, values: &ByArch<T>, rule: impl Fn(&T) -> Option<String>) {
    let pointer = child(parent, key);
    let values = values.values();
    found.value(pointer.clone(), values.is_empty().then(|| "expected at least one architecture".to_owned()));
    for (arch, value) in values {
        found.value(arch.map_or_else(|| pointer.clone(), |arch| child(&pointer, arch)), rule(value));
    }
}

/// Validates `container_images`.
pub(super) fn check_images(found: &mut Findings, schema: &Schema) {
    let reference = |text: &str| text.parse::<Reference>().err().map(|error| error.to_string());
    found.list("/container_images", &schema.container_images, reference);
}

/// JSON Schema of a version.
fn version_form(generator: &mut SchemaGenerator) -> schemars::Schema {
    json_schema!({"anyOf": [{"type": "string"}, generator.subschema_for::<VersionSource>()]})
}

/// A version: a string, or a source of versions.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VersionSource, D::Error> {
    struct Either;
    impl<'de> Visitor<'de> for Either {
        type Value = VersionSource;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a version, or an object with its source")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<VersionSource, E> {
            Ok(VersionSource::Pinned(text.to_owned()))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<VersionSource, A::Error> {
            VersionSource::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(Either)
}
