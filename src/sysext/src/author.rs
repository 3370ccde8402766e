//! Creates an extension: the layers of a bundle and its verified artifacts in, a volume without partitions or a directory out.
//!
//! The bytes depend only on the bundle, name, kind, format, system and architecture. Files have the time 0.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use vmbake_disk::ext4::{Size, VolumeOptions};
use vmbake_disk::tree::{Kind, Timestamp, Tree};
use vmbake_disk::write::DmVerity;

use super::compatibility::refusals;
use super::error::ExtensionError;
use super::folder::write_folder;
use super::form::{ExtensionForm, ExtensionFormat};
use super::release::ExtensionIdentity;
use super::volume::{Identity, write_volume};
use vmbake_bundle::BundleError;
use vmbake_bundle::compose::content_of;
use vmbake_bundle::contents::BundleContents;
use vmbake_bundle::pins::PINS;
use vmbake_common::paths::is_at_or_below;
use vmbake_common::progress::Progress;
use vmbake_compose::merge::extension;
use vmbake_compose::stage::Plan;
use vmbake_fetch::verify::check_artifacts;
use vmbake_fetch::{Supply, fetch};
use vmbake_manifest::{Manifest, Target};

/// Context to fetch and verify artifacts.
pub struct ExtensionTools<'a> {
    /// Sources and trust anchors.
    pub supply: &'a Supply<'a>,
    /// Progress output.
    pub progress: &'a Progress,
}

pub struct Extension<'a> {
    path: &'a Path,
    contents: &'a BundleContents,
    identity: ExtensionIdentity,
}

impl<'a> Extension<'a> {
    /// Loads the bundle at `path`; fails with all reasons why it cannot become such an extension.
    pub fn new(
        path: &'a Path,
        contents: &'a BundleContents,
        identity: ExtensionIdentity,
    ) -> Result<Self, ExtensionError> {
        let document = &contents.document;
        if !document.os.contains(&identity.os) || !document.arch.contains(&identity.arch) {
            let listed =
                |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
            let found = format!("{} on {}", listed(&document.os), listed(&document.arch));
            let expected = format!("{} on {}", identity.os, identity.arch);
            return Err(ExtensionError::Target { path: path.to_owned(), expected, found });
        }
        match refusals(&contents.own, identity.kind) {
            refusals if refusals.is_empty() => Ok(Self { path, contents, identity }),
            refusals => Err(ExtensionError::Refused { path: path.to_owned(), refusals }),
        }
    }

    /// Writes the extension atomically to `out`; returns the files with their lengths in bytes.
    pub fn write(
        &self,
        out: &Path,
        form: ExtensionForm,
        tools: &ExtensionTools<'_>,
    ) -> Result<Vec<(PathBuf, u64)>, ExtensionError> {
        if form.format != ExtensionFormat::Dir {
            return write_volume(&self.tree(tools)?, out, form, &self.ids(), tools.supply.threads);
        }
        if form.verity {
            return Err(ExtensionError::NoBlocks { path: out.to_owned() });
        }
        let len = write_folder(&self.tree(tools)?, out, &self.identity.path(), form.force)?;
        Ok(vec![(out.to_owned(), len)])
    }

    /// The files of the bundle and the extension-release file.
    fn tree(&self, tools: &ExtensionTools<'_>) -> Result<Tree, ExtensionError> {
        let ExtensionIdentity { os, arch, .. } = &self.identity;
        let target = Target { kind: self.contents.document.title(), os: os.clone(), arch: arch.clone() };
        let content = content_of(self.contents, &target)?;
        let manifest = Manifest::parse(Path::new(PINS), content.to_text().map_err(BundleError::from)?.into_bytes())?;
        let (supply, store) = (tools.supply, tools.supply.store);
        let artifacts = check_artifacts(fetch(&manifest, supply, tools.progress)?, store, supply.threads)?;
        let plan = Plan::new(self.contents.own.clone(), &manifest)?;
        let staged = artifacts.iter().map(|artifact| plan.stage(artifact, store)).collect::<Result<Vec<_>, _>>()?;
        let release = (self.identity.path(), self.identity.text());
        let tree = extension::merge(plan.complete(staged, None)?, release, Timestamp::default())?;
        self.check(&tree)?;
        Ok(tree)
    }

    /// Refusals that depend on the contents of artifacts.
    fn check(&self, tree: &Tree) -> Result<(), ExtensionError> {
        let root = self.identity.kind.root().as_bytes();
        let mut refusals = Vec::new();
        for (path, _, inode) in tree.walk() {
            let inside = path.is_empty() || is_at_or_below(&path, root);
            let is_plain = matches!(inode.kind, Kind::Directory(_) | Kind::File(_) | Kind::Symlink(_));
            let what = match &inode.meta {
                _ if !inside => "is outside of the merged hierarchy",
                _ if !is_plain => "is not a file, directory or symbolic link",
                meta if !meta.xattrs.is_empty() => "has extended attributes",
                meta if meta.mode > 0o777 => "has set-uid, set-gid or sticky bits",
                meta if meta.uid != 0 || meta.gid != 0 => "does not belong to root",
                _ => continue,
            };
            refusals.push(format!("{} {what}", String::from_utf8_lossy(&path)));
        }
        match refusals.is_empty() {
            true => Ok(()),
            false => Err(ExtensionError::Refused { path: self.path.to_owned(), refusals }),
        }
    }

    /// The smallest volume, since it is read-only. UUIDs and salts are derived from its identity.
    fn ids(&self) -> Identity {
        let ExtensionIdentity { name, os, arch, .. } = &self.identity;
        let layers: Vec<String> = self.contents.document.layers.values().map(ToString::to_string).collect();
        let told = format!("extension\n{name}\n{os}\n{arch}\n{}\n", layers.join("\n"));
        let id = |what: &str| uuid(&format!("{what}\n{told}"));
        let size = Size::Smallest { margin_bytes: 0 };
        Identity {
            volume: VolumeOptions { size, uuid: id("uuid"), label: Vec::new(), hash_seed: id("hash seed"), epoch: 0 },
            tree: DmVerity { salt: Sha256::digest(format!("salt\n{told}")).into(), uuid: id("hash tree") },
        }
    }
}

/// A UUID of version 8 (RFC 9562, section 5.8) of a text: the start of its SHA-256, with the version and variant bits.
fn uuid(text: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(text)[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    bytes
}
