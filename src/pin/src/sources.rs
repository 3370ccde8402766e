//! Sources: the definition of each upstream with its versions and required proof.
//!
//! Merges `manifests/sources.json` with files of the user in the same format to [`Sources`], in which all references
//! are valid. Another upstream is another entry, never code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use vmbake_common::address;
use vmbake_common::catalog::{Catalog, Override, Root};
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_manifest::Target;

pub use error::SourcesError;
use merge::Merged;
use schema::Document;
pub use schema::{Archive, ImageSource, Source, SourcesSchema, System, TrustSource};
pub use vmbake_manifest::upstream::{Demand, Program, Template, Undefined, Upstream, VersionSource};
use vmbake_proof::apt::is_flat;

mod faults;
mod error;
mod merge;
mod schema;
mod downgrade;

/// Delays in hours after its `Date` at which a snapshot of an archive's state is looked for.
const COPIED_AFTER: [i64; 3] = [0, 12, 24];

/// Validated sources.
#[derive(Clone, Debug)]
pub struct Sources {
    schema: SourcesSchema,
    digest: Digest,
    targets: Vec<Target>,
    overridden: Vec<Override>,
}
impl System {
    /// The values of placeholders, including the versions of the manifest's artifacts.
    pub fn values(&self, target: &Target, versions: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let versions = versions.iter().map(|(name, version)| (format!("version:{name}"), version.clone()));
        let own = [("kind", &target.kind), ("os", &target.os), ("arch", &target.arch), ("codename", &self.codename)];
        versions.chain(own.map(|(name, value)| (name.to_owned(), value.clone()))).collect()
    }
}

impl Sources {
    /// Reads the sources of all roots.
    pub fn load(catalog: &Catalog) -> Result<Self, SourcesError> {
        let mut files = Vec::new();
        for root in catalog.roots() {
            let (path, text) = match root {
                Root::BuiltIn => (PathBuf::from("manifests/sources.json"), vmbake_embedded::SOURCES.to_vec()),
                Root::Path(path) => {
                    let read = |source| SourcesError::Read { path: path.clone(), source };
                    (path.clone(), input::read(path, input::MAX_INPUT).map_err(read)?)
                }
            };
            files.push((root.clone(), path, text));
        }
        Self::merge(catalog, files)
    }

    /// Parses the text of the file at `path`.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, SourcesError> {
        Self::merge(&Catalog::only(path), vec![(Root::Path(path.to_owned()), path.to_owned(), text.to_vec())])
    }

    fn merge(catalog: &Catalog, files: Vec<(Root, PathBuf, Vec<u8>)>) -> Result<Self, SourcesError> {
        // The same file may be given twice.
        let mut texts: Vec<Vec<u8>> = Vec::new();
        let (mut paths, mut documents) = (Vec::new(), Vec::new());
        for (root, path, text) in files {
            if !texts.contains(&text) {
                if let Some(place) = address::in_document(&text) {
                    return Err(SourcesError::Invalid { path, place, message: address::MESSAGE.to_owned() });
                }
                documents.push((root, document(&path, &text)?));
                paths.push(path);
                texts.push(text);
            }
        }
        let merged = merge::merge(catalog, &documents)?;
        for (path, (_, document)) in paths.iter().zip(&documents) {
            if let Some((place, message)) = faults::find(document, &merged).into_iter().next() {
                return Err(SourcesError::Invalid { path: path.clone(), place, message });
            }
        }
        let Merged { schema, targets, overridden } = merged;
        let digest = match &texts[..] {
            [text] => Digest::of(text),
            texts => {
                let texts = texts.iter().map(|text| Digest::of(text).to_string());
                let lines = texts.chain(overridden.iter().map(|one| one.entry.clone())).map(|line| line + "\n");
                Digest::of(lines.collect::<String>().as_bytes())
            }
        };
        Ok(Self { schema: merge::complete(schema), digest, targets, overridden })
    }

    /// SHA-256 of their text; for several texts, of a list of their digests and the overrides.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The entries that replaced others.
    pub fn overridden(&self) -> &[Override] {
        &self.overridden
    }

    pub fn schema(&self) -> &SourcesSchema {
        &self.schema
    }

    /// The system of a target, whose kind may be defined only by a layer.
    pub fn system(&self, target: &Target) -> Result<&System, SourcesError> {
        let makes = |system: &&System| system.arches.contains(&target.arch);
        self.schema.systems.get(&target.os).filter(makes).ok_or_else(|| SourcesError::Unknown {
            kind: target.kind.clone(),
            os: target.os.clone(),
            arch: target.arch.clone(),
            known: self.targets().iter().map(Target::name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Whether they list the kind of a target.
    pub fn lists(&self, target: &Target) -> bool {
        self.targets.contains(target)
    }

    /// All targets with manifests.
    pub fn targets(&self) -> Vec<Target> {
        self.targets.clone()
    }

    /// The artifacts of a target. If several files have an artifact, the last one applies.
    pub fn dependencies<'a>(&'a self, target: &Target) -> impl Iterator<Item = &'a Source> {
        let mut seen = BTreeSet::new();
        self.schema.dependencies.iter().filter(move |source| source.serves(target) && seen.insert(&source.name))
    }

    /// An archive, and those with newer versions of its packages.
    pub fn archives_for<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let also = self.schema.archives.get(name).into_iter().flat_map(|archive| &archive.also);
        std::iter::once(name).chain(also.map(String::as_str))
    }

    /// Names of all packages that may come from an archive.
    pub fn packages_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.schema.dependencies.iter().filter_map(move |source| match &source.upstream.version {
            VersionSource::Apt { archive, package } if self.archives_for(archive).any(|found| found == name) => {
                Some(package.as_str())
            }
            _ => None,
        })
    }

    /// The upstream of an artifact of a target, by name.
    pub fn upstream(&self, target: &Target, name: &str) -> Option<&Upstream> {
        self.dependencies(target).find(|source| source.name == name).map(|source| &source.upstream)
    }

    /// An artifact with the same file and a stronger requirement: what `found` relaxes.
    pub fn demand_more(&self, found: &Upstream) -> Option<(&Source, String)> {
        let same = self.schema.dependencies.iter().filter(|known| known.upstream.url.is_some());
        let mut same = same.filter(|known| known.upstream.url == found.url);
        same.find_map(|known| Some((known, downgrade::upstream(found, &known.upstream)?)))
    }

    /// The container images of a target. If several files have an image, the last one applies.
    pub fn images<'a>(&'a self, target: &Target) -> impl Iterator<Item = &'a ImageSource> {
        let mut seen = BTreeSet::new();
        self.schema.images.iter().filter(move |image| image.serves(target) && seen.insert(&image.image))
    }
}

fn document(path: &Path, text: &[u8]) -> Result<Document, SourcesError> {
    serde_json::from_slice(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        // serde_json's message ends with the position, which our message has at its start.
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned();
        SourcesError::Syntax { path: path.to_owned(), line, column, message }
    })
}

impl Source {
    fn serves(&self, target: &Target) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&target.kind))
            && self.systems.as_ref().is_none_or(|systems| systems.contains(&target.os))
            && self.arches.as_ref().is_none_or(|arches| arches.contains(&target.arch))
    }
}

impl Archive {
    /// Its URL without a trailing `/`, and its suite.
    pub fn place(&self, values: &BTreeMap<String, String>) -> Result<(String, String), Undefined> {
        Ok((self.url.render(values)?.trim_end_matches('/').to_owned(), self.suite.render(values)?))
    }

    /// URL of the directory with the `InRelease` of a suite.
    pub fn index_directory(base: &str, suite: &str) -> String {
        match suite.strip_suffix('/') {
            None => format!("{base}/dists/{suite}"),
            Some("" | ".") => base.to_owned(),
            Some(directory) => format!("{base}/{}", directory.trim_start_matches("./")),
        }
    }

    /// Whether its index is not below `dists`, and lists packages of all components and architectures.
    pub fn is_flat(&self) -> bool {
        is_flat(&self.suite.to_string())
    }

    /// URLs of snapshots of the file at `url` from a time and soon after: a state is copied hours after its `Date`.
    pub fn past(&self, url: &str, date: Timestamp) -> Vec<String> {
        let copy = |hours| {
            let time = date.saturating_add(SignedDuration::from_hours(hours)).unwrap_or(date);
            self.snapshot_of(url, time)
        };
        COPIED_AFTER.into_iter().filter_map(copy).collect()
    }

    /// The URL of `url` in the snapshot of that time; `None` if the archive has no snapshots.
    pub fn snapshot_of(&self, url: &str, time: Timestamp) -> Option<String> {
        let (snapshot, path) = self.snapshot.as_ref().zip(url.strip_prefix(self.url.start()))?;
        let time = time.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string();
        let copy = format!("{}/{time}/{}", snapshot.trim_end_matches('/'), path.trim_start_matches('/'));
        Some(copy.trim_end_matches('/').to_owned())
    }
}

impl ImageSource {
    fn serves(&self, target: &Target) -> bool {
        self.kinds.contains(&target.kind)
    }

    /// The tag of a reference to this image.
    pub fn tag_of<'a>(&self, reference: &'a str) -> Option<&'a str> {
        reference.strip_prefix(&self.image)?.strip_prefix(':')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  "archives": {"debian": {"url": "https://d.example/debian", "suite": "{codename}", "component": "main", "keyring": "d.asc"}},
  "systems": {"debian-13": {"codename": "trixie", "kinds": ["a", "b"], "arches": ["amd64", "arm64"],
    "image": {"type": "qcow2", "version": {"pinned": "1"}, "url": "https://i.example/{version}", "proof": "first-use"}}},
  "dependencies": [
    {"name": "x", "kinds": ["a"],
      "upstream": {"type": "deb", "version": {"apt": {"archive": "debian", "package": "x"}}, "proof": "apt"}},
    {"name": "x", "kinds": ["b"],
      "upstream": {"type": "binary", "version": {"github": "o/x"}, 
      "url": "https://g.example/v{version}/x", "checksums": "{url}.sha256", "proof": "checksum"}},
    {"name": "y", "kinds": ["b"], "arches": ["arm64"],
      "upstream": {"type": "binary", "version": {"same-as": "x"}, "url": "https://g.example/{version}", "proof": "first-use"}}
  ]
}"#;

    fn parse(text: &str) -> Result<Sources, SourcesError> {
        Sources::parse(Path::new("s.json"), text.as_bytes())
    }

    fn target(kind: &str, arch: &str) -> Target {
        Target { kind: kind.to_owned(), os: "debian-13".to_owned(), arch: arch.to_owned() }
    }

    #[test]
    fn artifacts_are_chosen_by_target() {
        let sources = parse(TEXT).unwrap();
        assert_eq!(sources.targets().len(), 4);
        let names = |target| sources.dependencies(&target).map(|source| source.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names(target("a", "amd64")), ["x"]);
        assert_eq!(names(target("b", "amd64")), ["x"]);
        assert_eq!(names(target("b", "arm64")), ["x", "y"]);
        assert!(sources.system(&target("c", "amd64")).is_ok() && !sources.targets().contains(&target("c", "amd64")));
        assert!(matches!(sources.system(&target("a", "riscv64")), Err(SourcesError::Unknown { .. })));
    }

    #[test]
    fn faults_are_named_with_their_place() {
        for (from, to, expected) in [
            ("\"suite\"", "\"suit\"", "s.json:2:67: unknown field `suit`"),
            ("\"trixie\",", "\"trixie\", \"archive\": \"d\",", "systems.debian-13: archive d is not listed"),
            ("[\"b\"], \"arches\"", "[\"b\"], \"archs\"", "unknown field `archs`"),
            ("https://d.example", "http://d.example", "archives.debian: url is not https"),
            ("\"main\"", "\"main\", \"also\": [\"b\"]", "archives.debian: also: archive b is not listed"),
            ("{\"archive\": \"debian\"", "{\"archive\": \"ubuntu\"", "archive ubuntu is not listed"),
            (", \"checksums\": \"{url}.sha256\"", "", "dependencies[1] (x): checksums is missing"),
            ("{\"same-as\": \"x\"}", "{\"same-as\": \"z\"}", "requires the version of z, which is not listed"),
            ("\"x\", \"kinds\": [\"a\"]", "\"x\", \"kinds\": [\"a\", \"b\"]", "duplicate x for b.debian-13.amd64"),
            ("/v{version}/x", "/v{verison}/x", "unknown placeholder {verison}"),
            (
                "\"proof\": \"apt\"",
                "\"proof\": \"apt\", \"program\": {\"package\": \"p\"}",
                "program requires type binary",
            ),
        ] {
            let error = parse(&TEXT.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_built_in_sources_are_valid() {
        let sources = Sources::load(&Catalog::built_in()).unwrap();
        assert!(sources.targets().iter().any(|target| target.kind == "node"));
    }
}
