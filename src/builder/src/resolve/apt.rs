//! Packages of an archive: InRelease, Packages and deb, each proven by the one before it.

use std::sync::Arc;

use super::{Place, ResolveError, Resolver};
use crate::manifest::{ArtifactType, Dependency, Proof};
use crate::proof::apt::{AptError, Expect, Package, Packages, Release};
use crate::proof::openpgp::Keyring;
use crate::sources::{Archive, Template, VersionSource};

/// The packages of an archive for one architecture, with who vouches for them.
pub(super) struct Index {
    base: String,
    release: Release,
    packages: Packages,
}

impl Resolver<'_> {
    /// The newest version of a package, and the index that it is in.
    pub(super) fn package(
        &self,
        place: Place<'_>,
        archive: &str,
        package: &str,
    ) -> Result<(Arc<Index>, Package), ResolveError> {
        let index = self.index(place, archive)?;
        match index.packages.newest(package) {
            Ok(found) => Ok((index.clone(), found.clone())),
            Err(source) => Err(ResolveError::Archive { url: index.base.clone(), source: Box::new(source) }),
        }
    }

    /// Resolves a Debian package.
    pub(super) fn deb(&self, place: Place<'_>, archive: &str, package: &str) -> Result<Dependency, ResolveError> {
        let (index, found) = self.package(place, archive, package)?;
        let url = format!("{}/{}", index.base, found.filename);
        let downloaded = self.obtain(vec![url.clone()], Some(found.digest), Some(found.size))?;
        let proof = Proof::Apt {
            archive: archive.to_owned(),
            suite: index.release.suite().to_owned(),
            date: index.release.date(),
            signers: index.release.signers().to_vec(),
        };
        Ok(Dependency {
            version: found.version.to_string(),
            url,
            kind: ArtifactType::Deb,
            digest: downloaded.digest,
            size: downloaded.size,
            providers: Vec::new(),
            proof: Some(proof),
        })
    }

    fn index(&self, place: Place<'_>, name: &str) -> Result<Arc<Index>, ResolveError> {
        let Some(archive) = self.sources.schema().archives.get(name) else {
            return Err(ResolveError::Needs { name: name.to_owned() });
        };
        let render = |template: &Template| {
            template.render(&place.values()).map_err(|source| ResolveError::Template { place: "archive", source })
        };
        let (base, suite) = (render(&archive.url)?, render(&archive.suite)?);
        let base = base.trim_end_matches('/').to_owned();
        let arch = &place.target.arch;
        self.cache.indexes.get(&format!("{base} {suite} {arch}"), || self.read_index(name, archive, base, &suite, arch))
    }

    fn read_index(
        &self,
        name: &str,
        archive: &Archive,
        base: String,
        suite: &str,
        arch: &str,
    ) -> Result<Index, ResolveError> {
        let dists = format!("{base}/dists/{suite}");
        let url = format!("{dists}/InRelease");
        let keyring = Keyring::parse(&self.anchors.read(&archive.keyring)?);
        let keyring = keyring.map_err(|source| ResolveError::Keyring { file: archive.keyring.clone(), source })?;
        let text = self.document(&url)?;
        let previous = self.seen.get(&(name.to_owned(), suite.to_owned())).copied();
        let untrusted = |source: AptError| ResolveError::Archive { url: url.clone(), source: Box::new(source) };
        let expect = Expect { suite, now: self.now, previous };
        let release = Release::verify(&text, &keyring, &expect).map_err(untrusted)?;
        let packages = self.read_packages(name, archive, &dists, &release, arch)?;
        Ok(Index { base, release, packages })
    }

    /// The first form of the index that the archive serves; it is asked for by digest where that is possible, since what
    /// has the plain name may be of the next update already.
    fn read_packages(
        &self,
        name: &str,
        archive: &Archive,
        dists: &str,
        release: &Release,
        arch: &str,
    ) -> Result<Packages, ResolveError> {
        let untrusted = |url: &str, source| ResolveError::Archive { url: url.to_owned(), source: Box::new(source) };
        let wanted: Vec<&str> = self.packages_of(name).collect();
        let mut absent = None;
        for index in release.indexes(&archive.component, arch).map_err(|source| untrusted(dists, source))? {
            for path in index.by_hash.iter().chain([&index.path]) {
                let url = format!("{dists}/{path}");
                match self.client.get(&url, index.size) {
                    Err(error) if error.is_absent() => absent = Some(error),
                    Err(error) => return Err(error.into()),
                    Ok(bytes) => {
                        let read = Packages::read(&index, &*bytes, &wanted);
                        return read.map_err(|source| untrusted(&url, source));
                    }
                }
            }
        }
        match absent {
            Some(error) => Err(error.into()),
            None => Err(ResolveError::Needs { name: name.to_owned() }),
        }
    }

    /// Names of all packages that come from an archive.
    fn packages_of(&self, name: &str) -> impl Iterator<Item = &str> {
        self.sources.schema().dependencies.iter().filter_map(move |source| match &source.upstream.version {
            VersionSource::Apt { archive, package } if archive == name => Some(package.as_str()),
            _ => None,
        })
    }
}
