//! An archive with a package, a site with a program, and a manifest that pins both.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use vmbake_common::catalog::Catalog;
use vmbake_common::digest::Digest;
use vmbake_common::progress::Progress;
use vmbake_fetch::{Supply, fetch_base};
use vmbake_manifest::Manifest;
use vmbake_pin::anchors::Anchors;
use vmbake_pin::prove::{ProveError, Prover, VerificationResult, VerifiedProof};
use vmbake_pin::sources::Sources;
use vmbake_store::store::Store;

use crate::apt::lab::Lab;

/// `Date` of the archive, which is also when its key signs.
pub const DATE: &str = "2026-11-14T08:00:00Z";

const SOURCES: &str = r#"{
  "archives": {
    "main": {"url": "https://a.example/debian", "suite": "{codename}", "component": "main", "keyring": "k.asc", "origin": "Test", "also": ["fixes"]},
    "fixes": {"url": "https://f.example/debian", "suite": "{codename}", "component": "main", "keyring": "k.asc"},
    "other": {"url": "https://o.example/debian", "suite": "{codename}", "component": "main", "keyring": "k.asc"}
  },
  "systems": {"debian-13": {"codename": "trixie", "kinds": ["box"], "arches": ["amd64"],
    "image": {"type": "qcow2", "version": {"pinned": "1"}, "url": "https://i.example/{version}", "proof": "first-use"}}},
  "dependencies": [
    {"name": "tool", "kinds": ["box"],
      "upstream": {"type": "deb", "version": {"apt": {"archive": "main", "package": "tool"}}, "proof": "apt"}},
    {"name": "program", "kinds": ["box"],
      "upstream": {"type": "binary", "version": {"github": "o/program"}, "url": "https://g.example/v{version}/program-{arch}",
        "checksums": "{url}.sha256", "proof": "checksum"}}
  ]
}"#;

pub struct Site {
    folder: TempDir,
    pub store: Store,
    sources: Sources,
    pub manifest: Value,
}

impl Site {
    /// `None` if gpg is missing.
    pub fn signed_by(lab: &Lab, key: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("trust")).unwrap();
        std::fs::write(folder.path().join("sources.json"), SOURCES).unwrap();
        let sources = Sources::load(&Catalog::only(folder.path().join("sources.json"))).unwrap();
        let store = Store::open(Some(folder.path().join("store"))).unwrap();
        let mut site = Self { folder, store, sources, manifest: Value::Null };
        site.trust(&lab.export(&[key]));

        let index = format!(
            "Package: tool\nVersion: 1.0-1\nArchitecture: amd64\nFilename: pool/tool_1.0-1.deb\nSize: 4\nSHA256: {}\n\n\
             Package: tool\nVersion: 0.9-1\nArchitecture: amd64\nFilename: pool/tool_0.9-1.deb\nSize: 4\nSHA256: {}\n",
            Digest::of(b"tool").hex(),
            Digest::of(b"late").hex()
        );
        let packages = site.store.insert(index.as_bytes()).unwrap();
        let text = format!(
            "Codename: trixie\nDate: Sat, 14 Nov 2026 08:00:00 UTC\nValid-Until: Sat, 21 Nov 2026 08:00:00 UTC\nSHA256:\n \
             {} {} main/binary-amd64/Packages\n",
            packages.hex(),
            index.len()
        );
        let in_release = lab.sign(&text, &[key]);
        let release = site.store.insert(&in_release).unwrap();
        let sums = format!("{}  program-amd64\n", Digest::of(b"program").hex());
        let checksums = site.store.insert(sums.as_bytes()).unwrap();
        let url = "https://g.example/v2.0/program-amd64";
        let document = |url: &str, len: usize| json!({"url": url, "size": len});
        site.manifest = json!({"vmconfig": {
            "version": "dev", "kind": "box", "os": {"name": "debian-13", "arch": "amd64"},
            "dependencies": {
                "tool": {"version": "1.0-1", "url": "https://a.example/debian/pool/tool_1.0-1.deb", "type": "deb",
                    "digest": Digest::of(b"tool"), "size": 4,
                    "proof": {"type": "apt", "archive": "main", "suite": "trixie", "date": DATE, "signed": DATE,
                        "signers": lab.fingerprints(key)[..1], "evidence": [release, packages]}},
                "program": {"version": "2.0", "url": url, "type": "binary", "digest": Digest::of(b"program"), "size": 7,
                    "proof": {"type": "checksum", "url": format!("{url}.sha256"), "evidence": checksums}},
            },
            "evidence": {
                release.to_string(): document("https://a.example/debian/dists/trixie/InRelease", in_release.len()),
                packages.to_string(): document("https://a.example/debian/dists/trixie/main/binary-amd64/Packages", index.len()),
                checksums.to_string(): document(&format!("{url}.sha256"), sums.len()),
            },
        }});
        site
    }

    /// Trusts these keys, and no others.
    pub fn trust(&self, keys: &[u8]) {
        std::fs::write(self.folder.path().join("trust/k.asc"), keys).unwrap();
    }

    /// The digests of the `InRelease` and the index.
    pub fn evidence(&self) -> [Digest; 2] {
        serde_json::from_value(self.manifest["vmconfig"]["dependencies"]["tool"]["proof"]["evidence"].clone()).unwrap()
    }

    fn parse(manifest: &Value) -> Manifest {
        Manifest::parse(Path::new("m.json"), serde_json::to_vec(manifest).unwrap()).unwrap()
    }

    fn with<T>(&self, use_it: impl FnOnce(Prover<'_>) -> T) -> T {
        let anchors = Anchors::load(&Catalog::only(self.folder.path().join("trust"))).unwrap();
        use_it(Prover::new(&self.store, &self.sources, &anchors, None))
    }

    /// Looks for the base image, as a bake without --base does.
    pub fn base(&self, manifest: &Value) -> Result<(), String> {
        let anchors = Anchors::load(&Catalog::only(self.folder.path().join("trust"))).unwrap();
        let (store, sources, threads) = (&self.store, &self.sources, std::num::NonZeroUsize::MIN);
        let supply = Supply { store, sources, anchors: &anchors, client: None, threads };
        let found = fetch_base(&Self::parse(manifest), &supply, &Progress::new(true));
        found.map(drop).map_err(|error| vmbake_common::escape::chain(&error))
    }

    /// What an update would write of a manifest.
    pub fn text(&self, manifest: &Value) -> String {
        Self::parse(manifest).content().to_text().unwrap()
    }

    /// Proves all entries, as a bake does.
    pub fn all(&self, manifest: &Value) -> Result<VerificationResult, ProveError> {
        self.with(|prover| prover.all(&Self::parse(manifest)))
    }

    /// Proves one entry; the link that is missing with its causes, in one line.
    pub fn one(&self, manifest: &Value, name: &str) -> Result<VerifiedProof, String> {
        let manifest = Self::parse(manifest);
        let mut found = None;
        self.with(|prover| found = prover.each(manifest.content()).find(|(found, _)| found == name));
        found.unwrap().1.map_err(|error| vmbake_common::escape::chain(&error))
    }
}
