//! Resolves one entry, and writes its manifest if it can be verified from the stored evidence.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use vmbake_disk::disk::{self, Arch};
use vmbake_disk::image::Image;

use super::EntryError;
use super::open::{Entry, Open};
use super::order::{self, is_downgrade};
use super::pin::Pin;
use super::requested::{AskedDownload, AskedImage};
use crate::prove::{LOCAL, Prover};
use crate::resolve::{ManifestContext, ResolveError, Resolved, Resolver, WantedBase};
use crate::root_base;
use crate::sources::{ImageSource, Source, Upstream, VersionSource};
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_common::progress::Event;
use vmbake_image::disk::InspectError;
use vmbake_image::grub;
use vmbake_image::identity::{self, BaseIdentity, IdentityError};
use vmbake_manifest::{ArtifactType, ContainerImage, Content, Dependency, OCI, Os, Proof, Target};
use vmbake_store::registry::RegistryError;

/// Resolves an entry; returns what is pinned now. With a `pin`, any other result is an error.
pub(super) fn resolve(
    resolver: &Resolver<'_>,
    prover: &Prover<'_>,
    open: &Open<'_>,
    entry: Entry<'_>,
    pin: Option<&Pin>,
) -> Result<Event, EntryError> {
    let versions = open.versions();
    let place = open.place(&versions);
    if let Some(at) = resolver.at {
        let is_past = match (entry, entry.version(open)) {
            // The tag of an image may refer to another digest now.
            (Entry::Container(_) | Entry::Image(_), _) => false,
            (Entry::OsImage, _) if is_given(resolver) => true,
            (_, Some(source)) => order::is_as_of(source, || resolver.version(place, source), at)?,
            (_, None) => true,
        };
        if !is_past {
            return Err(EntryError::NotPast { at });
        }
    }
    if let (Some(source), Some(pinned)) = (entry.version(open), open.pinned(entry))
        && !is_given(resolver)
        // With a past date, an older version is expected.
        && resolver.at.is_none()
        // The version of an unproven entry is not trusted either.
        && open.is_proven(entry, prover).unwrap_or(false)
    {
        let found = resolver.version(place, source)?;
        if is_downgrade(source, &pinned, &found) {
            return Err(EntryError::Downgrade { pinned, found });
        }
    }
    let job = Job { resolver, prover, open, place, pin };
    let (manifest, name) = (open.target.name(), entry.name().to_owned());
    let image = match entry {
        Entry::Container(source) => job.container(source)?,
        Entry::Image(asked) => job.image(asked)?,
        Entry::Dependency(source) => return Ok(pinned(manifest, name, job.dependency(source)?)),
        Entry::Download(asked) => return Ok(pinned(manifest, name, job.download(asked)?)),
        Entry::OsImage => return Ok(pinned(manifest, name, job.os_image()?)),
    };
    Ok(Event::PinnedImage { manifest, name, image: image.image, digest: image.digest })
}

/// Whether another base than the published image is given.
fn is_given(resolver: &Resolver<'_>) -> bool {
    !matches!(resolver.base, None | Some(WantedBase::Published))
}

/// Records the `Date` of an archive and suite, if none is newer.
pub(super) fn note_date(content: &mut Content, archive: String, suite: String, date: Timestamp) {
    let newest = content.seen.entry(archive).or_default().entry(suite).or_insert(date);
    *newest = date.max(*newest);
}

fn pinned(manifest: String, name: String, found: Dependency) -> Event {
    let Dependency { version, digest, size: bytes, .. } = found;
    Event::Pinned { manifest, name, version, digest, bytes }
}

/// The context of resolving an entry.
struct Job<'a> {
    resolver: &'a Resolver<'a>,
    prover: &'a Prover<'a>,
    open: &'a Open<'a>,
    place: ManifestContext<'a>,
    pin: Option<&'a Pin>,
}

impl Job<'_> {
    fn dependency(&self, source: &Source) -> Result<Dependency, EntryError> {
        let upstream = self.upstream(&source.upstream)?;
        let found = self.resolver.dependency(self.place, &upstream)?;
        let dates = match &source.upstream.version {
            VersionSource::Apt { archive, .. } => self.resolver.dates(self.place, archive)?,
            _ => Vec::new(),
        };
        self.keep(&source.name, found, |content| {
            dates.into_iter().for_each(|(archive, suite, date)| note_date(content, archive, suite, date));
        })
    }

    fn download(&self, asked: AskedDownload<'_>) -> Result<Dependency, EntryError> {
        let upstream = self.upstream(asked.upstream)?;
        let found = self.resolver.dependency(self.place, &upstream)?;
        self.keep(asked.name, found, |content| asked.note(content))
    }

    /// The upstream, or that of the pinned version.
    fn upstream<'b>(&self, upstream: &'b Upstream) -> Result<Cow<'b, Upstream>, EntryError> {
        self.pin.map_or(Ok(Cow::Borrowed(upstream)), |pin| pin.of(upstream))
    }

    fn check(&self, found: &Dependency) -> Result<(), EntryError> {
        self.pin.map_or(Ok(()), |pin| pin.check(self.resolver.store, found))
    }

    /// Adds an artifact to the manifest, with additional changes.
    fn keep(&self, name: &str, found: Resolved, note: impl FnOnce(&mut Content)) -> Result<Dependency, EntryError> {
        let Resolved { dependency, evidence } = found;
        self.check(&dependency)?;
        self.open.change(|content| {
            note(content);
            content.evidence.extend(evidence);
            self.prover.dependency(content, name, &dependency)?;
            content.dependencies.insert(name.to_owned(), dependency.clone());
            content.drop_unused_evidence();
            Ok(())
        })?;
        Ok(dependency)
    }

    fn os_image(&self) -> Result<Dependency, EntryError> {
        if let Some(root) = self.root_base()? {
            return self.keep_root(root);
        }
        let (found, boot) = match &self.resolver.base {
            Some(WantedBase::Disk { path, partition }) => {
                let boot = grub::read(path, *partition).map_err(ResolveError::from)?;
                self.check_base(path, *partition)?;
                (local_image(path)?, boot)
            }
            _ => {
                let upstream = self.upstream(&self.place.system.image)?;
                let (found, boot) = self.resolver.os_image(self.place, &upstream)?;
                self.check(&found.dependency)?;
                self.check_base(&self.resolver.store.path(&found.dependency.digest), None)?;
                (found, boot)
            }
        };
        let Resolved { dependency, evidence } = found;
        self.open.change(|content| {
            (content.os.boot, content.os.base) = (Some(boot), None);
            content.evidence.extend(evidence);
            self.prover.os_image(content, &dependency)?;
            content.os.image = Some(dependency.clone());
            content.drop_unused_evidence();
            Ok(())
        })?;
        Ok(dependency)
    }

    /// The base, if it is a root file system without a disk: the given one, or the pinned one. The tag of a container
    /// image is resolved again.
    fn root_base(&self) -> Result<Option<Dependency>, EntryError> {
        let pinned = self.open.content();
        Ok(match (&self.resolver.base, pinned.root_base()) {
            (Some(WantedBase::Archive { path, digest, size }), _) => {
                Some(local(path, ArtifactType::Tar, *digest, *size))
            }
            (Some(WantedBase::Container(name)), _) => Some(self.resolver.base_container(self.place, name)?),
            (None, Some(base)) if base.kind == ArtifactType::Oci => {
                let name = base.url.strip_prefix(OCI).unwrap_or(&base.url).parse();
                let name = name.map_err(|source| ResolveError::from(RegistryError::from(source)))?;
                Some(self.resolver.base_container(self.place, &name)?)
            }
            (None, base) => base.cloned(),
            _ => None,
        })
    }

    /// Adds such a base to the manifest, if it is of the manifest's system.
    fn keep_root(&self, base: Dependency) -> Result<Dependency, EntryError> {
        let content = self.open.content();
        let content = Content { os: Os { image: Some(base.clone()), ..content.os }, ..content };
        if let Some(read) = root_base::read(self.resolver.store, None, &content)? {
            let Target { os, arch, .. } = self.place.target;
            let codename = Some(self.place.system.codename.as_str());
            identity::check_root(&read.path, &read.tree, BaseIdentity { os, codename, arch })?;
        }
        self.open.change(|content| {
            self.prover.os_image(content, &base)?;
            (content.os.image, content.os.boot, content.os.base) = (Some(base.clone()), None, None);
            content.drop_unused_evidence();
            Ok(())
        })?;
        Ok(base)
    }

    /// Refuses a base that a bake would refuse: one with unsupported partitions, or of another system.
    fn check_base(&self, path: &Path, partition: Option<u32>) -> Result<(), EntryError> {
        let disk = Image::open(path).map_err(|error| IdentityError::from(InspectError::from(error)))?;
        let partitions = |source| EntryError::Partitions { path: path.to_owned(), source };
        let base = disk::open(Arc::new(disk), partition).map_err(partitions)?;
        let Target { os, arch, .. } = self.place.target;
        let found = base.arch().map(Arch::name).filter(|found| found != arch);
        if let Some(found) = found {
            let (path, expected, found) = (path.to_owned(), arch.clone(), found.to_owned());
            return Err(IdentityError::Arch { path, expected, found }.into());
        }
        let codename = Some(self.place.system.codename.as_str());
        Ok(identity::check_image(path, partition, BaseIdentity { os, codename, arch })?)
    }

    fn container(&self, source: &ImageSource) -> Result<ContainerImage, EntryError> {
        let image = match self.pin {
            Some(Pin::Image(pinned)) => self.resolver.container_image(self.place, &pinned.image)?,
            _ => self.resolver.container(self.place, source)?,
        };
        self.put(image, |old| source.tag_of(&old.image).is_some(), |_| {})
    }

    fn image(&self, asked: AskedImage<'_>) -> Result<ContainerImage, EntryError> {
        let image = self.resolver.container_image(self.place, asked.reference)?;
        self.put(image, |old| old.image == asked.reference, |content| asked.note(content))
    }

    /// Adds a container image to the manifest, replacing others.
    fn put(
        &self,
        image: ContainerImage,
        replaces: impl Fn(&ContainerImage) -> bool,
        note: impl FnOnce(&mut Content),
    ) -> Result<ContainerImage, EntryError> {
        self.pin.map_or(Ok(()), |pin| pin.check_image(&image))?;
        self.open.change(|content| {
            note(content);
            content.images.retain(|old| !replaces(old));
            content.images.push(image.clone());
            content.images.sort_by(|a, b| a.image.cmp(&b.image));
            Ok(())
        })?;
        Ok(image)
    }
}

fn local_image(path: &Path) -> Result<Resolved, EntryError> {
    let read = |source| EntryError::Image { path: path.to_owned(), source };
    let (digest, size) = Digest::of(b"").of_stream(input::open(path).map_err(read)?).map_err(read)?;
    Ok(Resolved { dependency: local(path, ArtifactType::Qcow2, digest, size), evidence: BTreeMap::new() })
}

/// The entry of a local file.
fn local(path: &Path, kind: ArtifactType, digest: Digest, size: u64) -> Dependency {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Dependency {
        version: "local".to_owned(),
        url: format!("{LOCAL}{name}"),
        kind,
        digest,
        size,
        proof: Some(Proof::Local),
        chosen: None,
    }
}
