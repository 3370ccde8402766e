//! A manifest that is being updated, and its entries.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::pin::Pin;
use super::requested::{AskedDownload, AskedImage, UpstreamRequests};
use super::{EntryError, UpdateError};
use crate::closure::Requests;
use crate::prove::{LOCAL, LinkError, Prover};
use crate::resolve::ManifestContext;
use crate::root_base::is_root;
use crate::sources::{ImageSource, Source, Sources, System, VersionSource};
use vmbake_common::atomic_file::write_file;
use vmbake_common::parallel::locked;
use vmbake_manifest::OS_IMAGE;
use vmbake_manifest::Target;
use vmbake_manifest::{ContainerImage, Content, Dependency, Manifest, ManifestError, Os};

/// A manifest that is being updated.
pub(super) struct Open<'a> {
    pub(super) target: &'a Target,
    pub(super) system: &'a System,
    path: PathBuf,
    content: Mutex<Content>,
    /// The download requests of its layers; `None` if the layers are unknown.
    asked: Option<&'a UpstreamRequests>,
    /// Whether it has a system made of packages in place of a base image.
    pub(super) is_without_base: bool,
}

/// An entry to resolve.
#[derive(Clone, Copy)]
pub(super) enum Entry<'a> {
    OsImage,
    Dependency(&'a Source),
    Container(&'a ImageSource),
    /// A request of a layer.
    Download(AskedDownload<'a>),
    Image(AskedImage<'a>),
}

/// The path of a target's manifest.
pub(super) fn path(folder: &Path, target: &Target) -> PathBuf {
    folder.join(format!("{}.json", target.name()))
}

fn empty(target: &Target) -> Content {
    Content {
        version: "dev".to_owned(),
        kind: target.kind.clone(),
        os: Os { name: target.os.clone(), arch: target.arch.clone(), image: None, boot: None, base: None },
        dependencies: BTreeMap::new(),
        images: Vec::new(),
        bundles: BTreeMap::new(),
        evidence: BTreeMap::new(),
        closure: None,
        requests: BTreeMap::new(),
        accounts: None,
        seen: BTreeMap::new(),
    }
}

impl<'a> Open<'a> {
    /// Reads the manifest at `path`, or starts an empty one.
    pub(super) fn load(path: PathBuf, target: &'a Target, system: &'a System) -> Result<Self, ManifestError> {
        let content = if path.symlink_metadata().is_ok() {
            let manifest = Manifest::load(&path)?;
            manifest.require(&path, &target.kind, &target.os, &target.arch)?;
            manifest.content().clone()
        } else {
            empty(target)
        };
        Ok(Self { target, system, path, content: Mutex::new(content), asked: None, is_without_base: false })
    }

    /// Sets the requests of its layers.
    pub(super) fn asking(self, asked: Option<&'a UpstreamRequests>, packages: Option<&Requests>) -> Self {
        let is_without_base = packages.into_iter().flatten().any(|(_, request)| request.system.is_some());
        Self { asked, is_without_base, ..self }
    }

    /// Removes entries that layers no longer request, and records the requests.
    pub(super) fn update_requests(&self, sources: &Sources) -> Result<(), UpdateError> {
        let Some(asked) = self.asked.filter(|asked| self.content().requests != **asked) else { return Ok(()) };
        let changed = self.change(|content| {
            let old = std::mem::replace(&mut content.requests, asked.clone());
            for name in old.values().flat_map(|old| old.downloads.keys()) {
                if content.download(name).is_none() && sources.upstream(self.target, name).is_none() {
                    content.dependencies.remove(name);
                }
            }
            for reference in old.values().flat_map(|old| &old.container_images) {
                let is_listed = sources.images(self.target).any(|source| source.tag_of(reference).is_some());
                if !content.asks_for_image(reference) && !is_listed {
                    content.images.retain(|image| image.image != *reference);
                }
            }
            content.drop_unused_evidence();
            Ok(())
        });
        changed
            .map_err(|source: EntryError| UpdateError::Settle { target: self.target.name(), source: Box::new(source) })
    }

    /// All entries that it should have.
    pub(super) fn entries(&self, sources: &'a Sources) -> impl Iterator<Item = Entry<'a>> {
        let dependencies = sources.dependencies(self.target).map(Entry::Dependency).collect::<Vec<_>>();
        let images = sources.images(self.target).map(Entry::Container).collect::<Vec<_>>();
        let base = (!self.is_without_base).then_some(Entry::OsImage);
        base.into_iter().chain(dependencies).chain(images).chain(self.requested())
    }

    /// The entries that layers request.
    pub(super) fn requested(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let layers = || self.asked.into_iter().flatten();
        let downloads = layers().flat_map(AskedDownload::all).map(Entry::Download);
        downloads.chain(layers().flat_map(AskedImage::all).map(Entry::Image)).collect::<Vec<_>>().into_iter()
    }

    /// Verifies an entry: `Ok(false)` if it is not pinned, an error if a link is missing.
    pub(super) fn is_proven(&self, entry: Entry<'_>, prover: &Prover<'_>) -> Result<bool, LinkError> {
        let content = locked(&self.content).clone();
        let proven = match entry {
            Entry::OsImage => content
                .os
                .image
                .as_ref()
                .filter(|image| content.os.boot.is_some() || is_root(image.kind))
                .map(|image| prover.os_image(&content, image)),
            Entry::Dependency(source) => {
                content.dependencies.get(&source.name).map(|pinned| prover.dependency(&content, &source.name, pinned))
            }
            Entry::Container(source) => {
                let pinned = content.images.iter().find(|pinned| source.tag_of(&pinned.image).is_some());
                pinned.map(|pinned| prover.image(&content, pinned))
            }
            Entry::Download(asked) => {
                asked.pinned(&content).map(|pinned| prover.dependency(&content, asked.name, pinned))
            }
            Entry::Image(asked) => asked.pinned(&content).map(|pinned| prover.image(&content, pinned)),
        };
        proven.transpose().map(|standing| standing.is_some())
    }

    /// An entry that is pinned without a proof, as written by other tools.
    pub(super) fn unproven(&self, entry: Entry<'_>) -> Option<Pin> {
        let content = locked(&self.content);
        let file = |found: &Dependency| match (&found.proof, &found.chosen) {
            (None, None) => Some(Pin::File { version: found.version.clone(), digest: found.digest }),
            _ => None,
        };
        let image = |found: &ContainerImage| found.proof.is_none().then(|| Pin::Image(Box::new(found.clone())));
        match entry {
            Entry::OsImage => content.os.image.as_ref().and_then(file),
            Entry::Dependency(source) => content.dependencies.get(&source.name).and_then(file),
            Entry::Download(asked) => asked.pinned(&content).and_then(file),
            Entry::Container(source) => {
                content.images.iter().find(|found| source.tag_of(&found.image).is_some()).and_then(image)
            }
            Entry::Image(asked) => asked.pinned(&content).and_then(image),
        }
    }

    /// The current contents of the manifest.
    pub(super) fn content(&self) -> Content {
        locked(&self.content).clone()
    }

    /// Whether its base is another one than the published image.
    pub(super) fn is_own(&self) -> bool {
        let is_own = |image: &Dependency| image.url.starts_with(LOCAL) || is_root(image.kind);
        locked(&self.content).os.image.as_ref().is_some_and(is_own)
    }

    pub(super) fn pinned(&self, entry: Entry<'_>) -> Option<String> {
        let content = locked(&self.content);
        match entry {
            Entry::OsImage => content.os.image.as_ref().map(|image| image.version.clone()),
            Entry::Dependency(source) => content.dependencies.get(&source.name).map(|found| found.version.clone()),
            Entry::Container(source) => {
                content.images.iter().find_map(|found| source.tag_of(&found.image).map(str::to_owned))
            }
            Entry::Download(asked) => asked.pinned(&content).map(|found| found.version.clone()),
            Entry::Image(asked) => asked.pinned(&content).map(|_| asked.tag().to_owned()),
        }
    }

    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        let content = locked(&self.content);
        content.dependencies.iter().map(|(name, found)| (name.clone(), found.version.clone())).collect()
    }

    pub(super) fn place<'b>(&'b self, versions: &'b BTreeMap<String, String>) -> ManifestContext<'b> {
        ManifestContext { target: self.target, system: self.system, versions }
    }

    /// Changes the contents, and writes the file if they differ. The file is read again first, since another process
    /// may have updated it.
    pub(super) fn change(&self, change: impl FnOnce(&mut Content) -> Result<(), EntryError>) -> Result<(), EntryError> {
        let mut content = locked(&self.content);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let lock = |source| EntryError::Lock { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(lock)?;
        let held = File::open(folder).map_err(lock)?;
        held.lock().map_err(lock)?;
        let there = self.path.symlink_metadata().is_ok();
        if there {
            *content = Manifest::load(&self.path)?.content().clone();
        }
        let before = content.clone();
        if let Err(error) = change(&mut content) {
            *content = before;
            return Err(error);
        }
        if *content != before || !there {
            write_file(&self.path, content.to_text()?.as_bytes(), true)?;
        }
        Ok(())
    }
}

impl<'a> Entry<'a> {
    pub(super) fn name(self) -> &'a str {
        match self {
            Self::OsImage => OS_IMAGE,
            Self::Dependency(source) => &source.name,
            Self::Container(source) => &source.image,
            Self::Download(asked) => asked.name,
            Self::Image(asked) => asked.reference,
        }
    }

    /// Its version source, if it has an upstream.
    pub(super) fn version(self, open: &'a Open<'a>) -> Option<&'a VersionSource> {
        match self {
            Self::OsImage if open.is_own() => None,
            Self::OsImage => Some(&open.system.image.version),
            Self::Dependency(source) => Some(&source.upstream.version),
            Self::Download(asked) => Some(&asked.upstream.version),
            // Its tag follows another entry, or is given by a layer.
            Self::Container(_) | Self::Image(_) => None,
        }
    }

    pub(super) fn needs(self) -> Option<&'a str> {
        match self {
            Self::OsImage | Self::Image(_) => None,
            Self::Dependency(source) => source.upstream.version.needs(),
            Self::Download(asked) => asked.upstream.version.needs(),
            Self::Container(source) => source.tag.needs(),
        }
    }
}
