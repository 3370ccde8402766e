//! Chooses the parent of a new snapshot: a snapshot of the family whose blocks are known.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::Aws;
use crate::Snapshot;
use vmbake_common::progress::Progress;
use vmbake_publish::ebs::blocks::{BlockDigest, Blocks};

use super::block_list;
use super::error::AmiError;
use super::identity::{ARCHITECTURE, DISK_DIGEST, FAMILY, Subject};
use super::options::ParentChoice;

/// The criteria for a parent.
pub(super) struct Search<'a> {
    pub(super) aws: &'a Aws,
    /// The account that must own it.
    pub(super) account: &'a str,
    pub(super) store: &'a Path,
    pub(super) choice: &'a ParentChoice,
    /// The image that the parent was made from.
    pub(super) image: Option<&'a PathBuf>,
    pub(super) kms_key: Option<&'a str>,
    /// Whether the new snapshot will be encrypted.
    pub(super) encrypted: bool,
    pub(super) threads: NonZeroUsize,
    pub(super) progress: &'a Progress,
}

/// A snapshot whose blocks are known.
pub(super) struct Parent {
    pub(super) id: String,
    pub(super) blocks: Blocks,
}

/// Blocks to upload, with their digests.
pub(super) type Sent = Vec<(u64, BlockDigest)>;

impl Search<'_> {
    /// The parent for a new snapshot of this disk, or why there is none.
    pub(super) fn find(&self, subject: &Subject) -> Result<Result<Parent, String>, AmiError> {
        match self.choice {
            ParentChoice::None => Ok(Err("disabled by --parent none".to_owned())),
            ParentChoice::Id(id) => self.named(id, subject).map(Ok),
            ParentChoice::Auto => self.newest(subject),
        }
    }

    fn named(&self, id: &str, subject: &Subject) -> Result<Parent, AmiError> {
        let refused = |reason: String| AmiError::Parent { snapshot: id.to_owned(), reason };
        let snapshot = self.aws.snapshot(id)?.ok_or_else(|| refused("no such snapshot".to_owned()))?;
        self.usable(&snapshot, subject)?.map_err(refused)
    }

    /// The newest suitable snapshot of the family. If there is none, the reason is that of the newest one.
    fn newest(&self, subject: &Subject) -> Result<Result<Parent, String>, AmiError> {
        let family = format!("tag:{FAMILY}");
        let filters = [(family.as_str(), &[subject.family.as_str()][..]), ("status", &["completed"])];
        let mut snapshots = self.aws.snapshots(&filters)?;
        snapshots.retain(|snapshot| snapshot.tags.get(ARCHITECTURE).is_some_and(|arch| arch == subject.architecture));
        snapshots.sort_by(|a, b| (&b.started, &b.id).cmp(&(&a.started, &a.id)));
        let mut why = None;
        for snapshot in &snapshots {
            match self.usable(snapshot, subject)? {
                Ok(parent) => return Ok(Ok(parent)),
                Err(reason) => drop(why.get_or_insert(format!("{}: {reason}", snapshot.id))),
            }
        }
        Ok(Err(why.unwrap_or_else(|| format!("the account has no snapshot of {}", subject.family))))
    }

    /// Whether a snapshot is suitable as the parent; otherwise the reason.
    fn usable(&self, snapshot: &Snapshot, subject: &Subject) -> Result<Result<Parent, String>, AmiError> {
        let parent = match self.described(snapshot, subject) {
            Ok(parent) => parent,
            Err(reason) => return Ok(Err(reason)),
        };
        let is_public = self.aws.snapshot_permissions(&snapshot.id)?.iter().any(|who| who == "all");
        Ok(if is_public { Err("it is public".to_owned()) } else { Ok(parent) })
    }

    /// As [`Self::usable`], considering only its description.
    fn described(&self, snapshot: &Snapshot, subject: &Subject) -> Result<Parent, String> {
        if snapshot.owner != self.account {
            return Err(format!("it belongs to account {}, not to {}", snapshot.owner, self.account));
        }
        if snapshot.state != "completed" {
            return Err(format!("its state is {}, expected completed", snapshot.state));
        }
        if snapshot.storage_tier == "archive" {
            return Err("it is archived".to_owned());
        }
        if snapshot.volume_size > subject.blocks.gib() {
            return Err(format!(
                "its size is {} GiB, but that of the disk is {}",
                snapshot.volume_size,
                subject.blocks.gib()
            ));
        }
        if snapshot.encrypted != self.encrypted {
            let is = |encrypted: bool| if encrypted { "encrypted" } else { "not encrypted" };
            return Err(format!(
                "it is {}, but the new snapshot will be {}",
                is(snapshot.encrypted),
                is(self.encrypted)
            ));
        }
        let blocks = self.blocks(snapshot)?;
        if blocks.gib() != snapshot.volume_size {
            return Err(format!("its size is {} GiB, but that of its disk was {}", snapshot.volume_size, blocks.gib()));
        }
        Ok(Parent { id: snapshot.id.clone(), blocks })
    }

    /// The blocks of a snapshot, from the saved list or from the image that it was made from.
    fn blocks(&self, snapshot: &Snapshot) -> Result<Blocks, String> {
        let tag = snapshot.tags.get(DISK_DIGEST).ok_or("it has no tag with the disk digest")?;
        let digest = tag.parse().map_err(|_| format!("its disk digest {tag} is invalid"))?;
        if let Some(kept) = block_list::load(self.store, &digest) {
            return match kept.kms_key.as_deref() == self.kms_key {
                true => Ok(kept.blocks),
                false => Err("it was created with another key".to_owned()),
            };
        }
        let image = self.image.ok_or("its block list is not in the store")?;
        let blocks = Blocks::of_image(image, self.threads, self.progress).map_err(|error| error.to_string())?;
        let modes = ["legacy-bios", "uefi", "uefi-preferred"];
        let is_that = modes.iter().any(|mode| blocks.disk_digest(mode, self.kms_key) == digest);
        if is_that { Ok(blocks) } else { Err(format!("the parent image is not {}", image.display())) }
    }
}

/// The blocks to upload for a snapshot of this disk. At least one, since the meaning of a snapshot without blocks is
/// undocumented.
pub(super) fn sent(subject: &Subject, parent: Option<&Parent>) -> Sent {
    let Some(parent) = parent else { return subject.blocks.iter().collect() };
    let differ: Sent = subject.blocks.beyond(&parent.blocks).collect();
    if differ.is_empty() { subject.blocks.iter().take(1).collect() } else { differ }
}
