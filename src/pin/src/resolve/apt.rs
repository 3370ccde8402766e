//! Packages of an archive: InRelease, Packages and deb, each proven by the previous one.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::{ManifestContext, ResolveError, Resolved, Resolver};
use crate::sources::Archive;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_common::message;
use vmbake_manifest::{ArchiveSnapshot, ArtifactType, Dependency, Document, Form, Proof};
use vmbake_proof::apt::{self, AptError, Expect, Package, PackageIndex, Packages, Release, Stanza};
use vmbake_proof::openpgp::Keyring;
use vmbake_store::store::StoreError;

/// The packages of an archive for one architecture, with their proof.
pub(super) struct Index {
    archive: String,
    base: String,
    release: Release,
    /// The entry of the index in the release.
    listed: apt::IndexFile,
    packages: Packages,
    /// The `InRelease`, or the `Release` and its signature; then the index.
    evidence: Vec<Digest>,
    documents: BTreeMap<Digest, Document>,
    snapshot: Option<ArchiveSnapshot>,
}

/// The signed list of an archive's indexes.
struct SignedRelease {
    url: String,
    text: Arc<Vec<u8>>,
    /// URL and content of the detached signature.
    signature: Option<(String, Arc<Vec<u8>>)>,
}

/// An index with all its packages.
pub(crate) struct Offer {
    index: Arc<Index>,
    package_index: Arc<PackageIndex>,
}

impl Index {
    /// An entry of a manifest for a package of the index.
    fn dependency(&self, package: &Package) -> Dependency {
        let proof = Proof::Apt {
            archive: self.archive.clone(),
            suite: self.release.suite().to_owned(),
            date: self.release.date(),
            signers: self.release.signers().to_vec(),
            signed: Some(self.release.signed()),
            evidence: self.evidence.clone(),
            snapshot: self.snapshot.clone(),
        };
        Dependency {
            version: package.version.to_string(),
            url: format!("{}/{}", self.base, package.filename),
            kind: ArtifactType::Deb,
            digest: package.digest,
            size: package.size,
            proof: Some(proof),
            chosen: None,
        }
    }
}

impl Offer {
    pub(crate) fn package_index(&self) -> &PackageIndex {
        &self.package_index
    }

    /// An entry of a manifest for one of its packages.
    pub(crate) fn dependency(&self, stanza: Stanza<'_>) -> Result<Dependency, ResolveError> {
        let untrusted = |source| ResolveError::Archive { url: self.index.base.clone(), source: Box::new(source) };
        Ok(self.index.dependency(&stanza.package(&self.index.listed).map_err(untrusted)?))
    }

    /// The evidence of its packages.
    pub(crate) fn evidence(&self) -> BTreeMap<Digest, Document> {
        self.index.documents.clone()
    }

    /// Archive, suite and `Date` of its release.
    pub(crate) fn date(&self) -> (String, String, Timestamp) {
        (self.index.archive.clone(), self.index.release.suite().to_owned(), self.index.release.date())
    }
}

impl Resolver<'_> {
    /// The newest version of a package in an archive or those with its updates, and its index.
    pub(super) fn package(
        &self,
        place: ManifestContext<'_>,
        archive: &str,
        package: &str,
    ) -> Result<(Arc<Index>, Package), ResolveError> {
        let mut newest: Option<(Arc<Index>, Package)> = None;
        let mut missing = None;
        // All must be available: an attacker who blocks security updates must not cause an old version to be pinned.
        for name in self.sources.archives_for(archive) {
            let index = self.index(place, name)?;
            match index.packages.newest(package) {
                Ok(found) if newest.as_ref().is_some_and(|(_, newest)| newest.version >= found.version) => {}
                Ok(found) => newest = Some((index.clone(), found.clone())),
                Err(source) => {
                    missing.get_or_insert(ResolveError::Archive { url: index.base.clone(), source: Box::new(source) });
                }
            }
        }
        match (newest, missing) {
            (Some(newest), _) => Ok(newest),
            (None, Some(missing)) => Err(missing),
            (None, None) => Err(ResolveError::Needs { name: archive.to_owned() }),
        }
    }

    /// Resolves a Debian package.
    pub(super) fn deb(
        &self,
        place: ManifestContext<'_>,
        archive: &str,
        package: &str,
    ) -> Result<Resolved, ResolveError> {
        let (index, found) = self.package(place, archive, package)?;
        let dependency = index.dependency(&found);
        self.fetch(&dependency)?;
        Ok(Resolved { dependency, evidence: index.documents.clone() })
    }

    /// All packages of an archive.
    pub(crate) fn offer(&self, place: ManifestContext<'_>, name: &str) -> Result<Offer, ResolveError> {
        let index = self.index(place, name)?;
        let key = format!("{name} {} {}", index.listed.digest, index.listed.arch);
        let package_index = self.cache.package_indexes.get(&key, || {
            let path = self.store.path(&index.listed.digest);
            let bytes = input::open_regular(&path).map_err(|source| StoreError::Read { path, source })?;
            let untrusted = |source| ResolveError::Archive { url: index.base.clone(), source: Box::new(source) };
            PackageIndex::read(&index.listed, bytes).map_err(untrusted)
        })?;
        Ok(Offer { index, package_index })
    }

    /// `Date` of each archive and suite that determines the version of packages of `archive`, as far as this run has
    /// read them.
    pub fn dates(
        &self,
        place: ManifestContext<'_>,
        archive: &str,
    ) -> Result<Vec<(String, String, Timestamp)>, ResolveError> {
        let date = |name: &str| {
            let index = self.index(place, name)?;
            Ok((index.archive.clone(), index.release.suite().to_owned(), index.release.date()))
        };
        self.sources.archives_for(archive).map(date).collect()
    }

    fn index(&self, place: ManifestContext<'_>, name: &str) -> Result<Arc<Index>, ResolveError> {
        let Some(archive) = self.sources.schema().archives.get(name) else {
            return Err(ResolveError::Needs { name: name.to_owned() });
        };
        let (base, suite) =
            archive.place(&place.values()).map_err(|source| ResolveError::Template { place: "archive", source })?;
        let arch = &place.target.arch;
        self.cache
            .indexes
            .get(&format!("{name} {base} {suite} {arch}"), || self.read_index(name, archive, base, &suite, arch))
    }

    fn read_index(
        &self,
        name: &str,
        archive: &Archive,
        base: String,
        suite: &str,
        arch: &str,
    ) -> Result<Index, ResolveError> {
        let copied = self.at.map(|at| self.copied(name, archive, &base, suite, at)).transpose()?;
        let base = copied.as_ref().map_or(base, |copied| copied.url.clone());
        let dists = Archive::index_directory(&base, suite);
        let keyring = Keyring::parse(&self.anchors.read(&archive.keyring)?);
        let keyring = keyring.map_err(|source| ResolveError::Keyring { file: archive.keyring.clone(), source })?;
        let signed = self.signed_release(&dists)?;
        let previous = self.seen.get(&(name.to_owned(), suite.to_owned())).copied();
        let untrusted = |source: AptError| ResolveError::Archive { url: signed.url.clone(), source: Box::new(source) };
        let expect = Expect { suite, now: self.now, previous };
        let release = match (&signed.signature, self.at) {
            (Some((_, signature)), Some(at)) => {
                Release::verify_past_detached(&signed.text, signature, &keyring, suite, at)
            }
            (Some((_, signature)), None) => Release::verify_detached(&signed.text, signature, &keyring, &expect),
            (None, Some(at)) => Release::verify_past(&signed.text, &keyring, suite, at),
            (None, None) => Release::verify(&signed.text, &keyring, &expect),
        };
        let release = release.map_err(untrusted)?;
        release.check_age(archive.max_age_days, self.at.unwrap_or(self.now)).map_err(untrusted)?;
        let snapshot = copied.map(|copied| copied.snapshot(&release));
        let mut documents = BTreeMap::new();
        let mut evidence = vec![self.keep(&signed.url, Form::Whole, &signed.text, &mut documents)?];
        if let Some((url, signature)) = &signed.signature {
            evidence.push(self.keep(url, Form::Whole, signature, &mut documents)?);
        }
        let (listed, packages, url, bytes) = self.read_packages(name, archive, &dists, &release, arch)?;
        evidence.push(self.keep(&url, Form::Whole, &bytes, &mut documents)?);
        Ok(Index { archive: name.to_owned(), base, release, listed, packages, evidence, documents, snapshot })
    }

    /// The `InRelease` of a directory, or its `Release` and `Release.gpg` if it has none.
    fn signed_release(&self, directory: &str) -> Result<SignedRelease, ResolveError> {
        let url = format!("{directory}/InRelease");
        let is_absent = |error: &ResolveError| matches!(error, ResolveError::Download(error) if error.is_absent());
        match self.document(&url) {
            Err(error) if is_absent(&error) => {}
            found => return Ok(SignedRelease { text: found?, url, signature: None }),
        }
        let either = |name: &str| {
            let url = format!("{directory}/{name}");
            match self.document(&url) {
                Err(ResolveError::Download(error)) if error.is_absent() => Err(ResolveError::Message(
                    message!("{directory}: neither InRelease nor both Release and Release.gpg found").by(error),
                )),
                found => Ok((url, found?)),
            }
        };
        let (url, text) = either("Release")?;
        Ok(SignedRelease { text, url, signature: Some(either("Release.gpg")?) })
    }

    /// The first form of the index that the archive serves, with its packages, URL and bytes; requested by digest if
    /// possible, since the file with the plain name may be replaced during an update.
    fn read_packages(
        &self,
        name: &str,
        archive: &Archive,
        dists: &str,
        release: &Release,
        arch: &str,
    ) -> Result<(apt::IndexFile, Packages, String, Vec<u8>), ResolveError> {
        let untrusted = |url: &str, source| ResolveError::Archive { url: url.to_owned(), source: Box::new(source) };
        let wanted: Vec<&str> = self.sources.packages_of(name).collect();
        let mut absent = None;
        for index in release.indexes(archive.component.as_deref(), arch).map_err(|source| untrusted(dists, source))? {
            for path in index.by_hash.iter().chain([&index.path]) {
                let url = format!("{dists}/{path}");
                match self.client.get(&url, index.size) {
                    Err(error) if error.is_absent() => absent = Some(error),
                    Err(error) => return Err(error.into()),
                    Ok(bytes) => {
                        let read =
                            Packages::read(&index, &*bytes, &wanted).map_err(|source| untrusted(&url, source))?;
                        return Ok((index.clone(), read, url, bytes));
                    }
                }
            }
        }
        match absent {
            Some(error) => Err(error.into()),
            None => Err(ResolveError::Needs { name: name.to_owned() }),
        }
    }
}
