//! A registry, and a small signed release.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;
use vmbake_bake::BakeRequest;
use vmbake_bake::release::key::PrivateKey;
use vmbake_bake::release::verify::NamedSigner;
use vmbake_disk::image::Format;
use vmbake_oci::RemoteName;
use vmbake_proof::sigstore::{PublicKey, Signer, SigstoreRoot};
use vmbake_release::ReleaseFolder;
use vmbake_release::binding::ReleaseBinding;
use vmbake_release::pull::{PullError, PullReport, PullRequest, SeenReleases, pull};
use vmbake_release::push::{PushError, PushReport, PushRequest, push};
use vmbake_store::http::{Client, Mirrors};
use vmbake_store::registry::{Access, Credentials, Repository};
use vmbake_store::store::Store;

use crate::origin::bakery::{bake, can_bake};
use crate::registry::{Registry, start};
use crate::release::lab::{Lab, NAME, both};
use crate::tools::have;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../trust/sigstore-root.json");

pub struct Yard {
    pub lab: Lab,
    pub registry: Registry,
}

/// How something is pulled.
#[derive(Default)]
pub struct How<'a> {
    pub format: Option<Format>,
    pub arch: Option<&'a str>,
    pub key: Option<&'a str>,
    pub from: Option<PathBuf>,
    pub force: bool,
    /// Another repository than `images`.
    pub repository: Option<&'a str>,
    pub name: Option<&'a str>,
    pub allow_downgrade: bool,
}

impl Yard {
    pub fn new() -> Option<Self> {
        if !can_bake() || !have(&["docker-registry"]) {
            return None;
        }
        let lab = Lab::new();
        let registry = start(lab.dir.path());
        Some(Self { lab, registry })
    }

    pub fn image(&self, release: &str, format: &str) -> PathBuf {
        self.lab.path(release).join(format!("{NAME}.{format}"))
    }

    /// Another release, of a larger disk.
    pub fn other(&self, size: u64) {
        bake(&BakeRequest { size: Some(size), ..both(self.lab.dir.path(), "other") }).unwrap();
    }

    pub fn repository(&self) -> Repository {
        self.repository_of("images")
    }

    pub fn repository_of(&self, name: &str) -> Repository {
        let name = format!("{}/{name}", self.registry.address).parse().unwrap();
        Repository::new(&Client::new(Mirrors::default()), &Credentials::none(), name, Access::Push)
    }

    pub fn name(&self, rest: &str) -> RemoteName {
        format!("{}/images{rest}", self.registry.address).parse().unwrap()
    }

    pub fn push(
        &self,
        release: &str,
        formats: &[&str],
        tags: &[&str],
        key: Option<&str>,
        force: bool,
    ) -> Result<PushReport, PushError> {
        let binding = ReleaseBinding { name: "images".to_owned(), version: None };
        self.push_bound(&binding, ("images", tags), (release, formats), key, force)
    }

    /// A release that says that of itself, to a repository with tags.
    pub fn push_bound(
        &self,
        binding: &ReleaseBinding,
        (repository, tags): (&str, &[&str]),
        (release, formats): (&str, &[&str]),
        key: Option<&str>,
        force: bool,
    ) -> Result<PushReport, PushError> {
        let images: Vec<PathBuf> = formats.iter().map(|format| self.image(release, format)).collect();
        let folder = ReleaseFolder::read(&images)?;
        let key = key.map(|key| {
            let pem = fs::read(self.lab.path(&format!("{key}.key"))).unwrap();
            PrivateKey::from_pem(&pem, || None).unwrap()
        });
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let request = PushRequest {
            folder: &folder,
            binding,
            attach: &[],
            tags: &tags,
            force,
            key: key.as_ref(),
            threads: NonZeroUsize::new(4).unwrap(),
            progress: &|_| {},
        };
        push(&request, &self.repository_of(repository))
    }

    pub fn pull(&self, rest: &str, out: &str, how: &How<'_>) -> Result<PullReport, PullError> {
        let signers: Vec<NamedSigner> = how.key.iter().map(|key| self.signer(key)).collect();
        let repository = how.repository.unwrap_or("images");
        let request = PullRequest {
            repository: &self.repository_of(repository),
            reference: &format!("{}/{repository}{rest}", self.registry.address).parse().unwrap(),
            arch: how.arch,
            format: how.format,
            signers: &signers,
            allow_unsigned: how.key.is_none(),
            name: how.name,
            seen: &SeenReleases::open(Some(self.lab.path("state"))),
            allow_downgrade: how.allow_downgrade,
            root: &SigstoreRoot::parse(&fs::read(ROOT).unwrap()).unwrap(),
            now: Timestamp::now(),
            from: how.from.as_deref(),
            out: &self.lab.path(out),
            force: how.force,
            store: &Store::open(Some(self.lab.path("pulled-store"))).unwrap(),
            threads: NonZeroUsize::new(4).unwrap(),
            progress: &|_| {},
        };
        pull(&request)
    }

    fn signer(&self, key: &str) -> NamedSigner {
        let pem = fs::read(self.lab.path(&format!("{key}.pub"))).unwrap();
        NamedSigner { name: key.to_owned(), signer: Signer::KeyWithoutLog(PublicKey::from_pem(&pem).unwrap()) }
    }

    /// The names of what is in a folder, but for what has no final name.
    pub fn visible(&self, out: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.lab.path(out)) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// A document of the registry, as JSON.
    pub fn document(&self, reference: &str) -> Value {
        serde_json::from_slice(&self.repository().manifest(reference).unwrap().bytes).unwrap()
    }

    /// The file in which the registry has a blob.
    pub fn blob_file(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").unwrap();
        self.lab.path(&format!("registry/docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]))
    }
}

pub fn same(one: &Path, other: &Path) -> bool {
    fs::read(one).unwrap() == fs::read(other).unwrap()
}
