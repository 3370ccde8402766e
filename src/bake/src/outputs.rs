//! The outputs of a bake: detects up-to-date outputs, and writes and publishes new ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use vmbake_disk::disk::Disk;
use vmbake_disk::write::{Clusters, Earlier, Output, Written};

use super::{BakeError, BakeRequest, Baked, BakedFile};
use crate::archives::RootArchives;
use crate::incremental::checksums::{self, Checksum};
use crate::incremental::previous_bake::{PreviousBake, Reusable, ReusableFile, file_digest};
use crate::incremental::published::{Published, PublishedFile, Sidecar};
use crate::release::provenance::{self, BuilderId};
use vmbake_common::atomic_file::{Pending, PublishError, renew_file};
use vmbake_common::digest::Digest;
use vmbake_common::output_format::OutputFormat;
use vmbake_common::progress::{Event, Progress};
use vmbake_fetch::FetchError;
use vmbake_layer::Layer;
use vmbake_manifest::Manifest;

/// Up-to-date outputs of an earlier bake.
pub(super) struct Unchanged {
    baked: Baked,
    checksums: BTreeMap<String, Checksum>,
}

impl Unchanged {
    /// Lists its checksums, which an interrupted bake may have removed.
    pub(super) fn list(self, out: &Path) -> Result<Baked, PublishError> {
        checksums::list(out, &self.checksums).map(|()| self.baked)
    }
}

/// A written output.
pub(crate) struct WrittenFile {
    pub(crate) format: OutputFormat,
    pub(crate) checksum: Checksum,
    /// Length of the file in bytes.
    pub(crate) len: u64,
    /// The clusters of a qcow2 file.
    pub(crate) clusters: Clusters,
}

impl From<Written> for WrittenFile {
    fn from(Written { format, digest, file_len, clusters }: Written) -> Self {
        Self { format: format.into(), checksum: digest.into(), len: file_len, clusters }
    }
}

impl BakeRequest {
    /// The paths of the outputs called `name`.
    pub(super) fn targets(&self, name: &str) -> BTreeMap<OutputFormat, PathBuf> {
        self.formats.iter().map(|format| (*format, self.out.join(format.file_name(name)))).collect()
    }

    /// The outputs of the last bake, if this one would produce the same.
    pub(super) fn unchanged(
        &self,
        manifest: &Manifest,
        layers: &[Layer],
        previous: &PreviousBake<'_>,
        progress: &Progress,
    ) -> Result<Option<Unchanged>, BakeError> {
        let pinned = manifest.content().os.image.as_ref().map(|image| image.digest);
        let base = || match &self.base {
            Some(path) => file_digest(&self.store, path, pinned),
            None => pinned,
        };
        if !previous.is_complete(self.formats.len()) {
            return Ok(None);
        }
        // A base that differs from the pinned one is refused when it is verified.
        let base = base().filter(|base| pinned.is_none_or(|pinned| pinned == *base));
        if base.is_none() && manifest.content().system().is_none() {
            return Ok(None);
        }
        let inputs = self.inputs(manifest, layers, previous.program(), base);
        let Some(published) = previous.unchanged(&inputs) else { return Ok(None) };
        if self.builder_of(&published).as_ref() != Some(&self.builder) {
            return Ok(None);
        }
        self.supply().prover().all(manifest).map_err(FetchError::from)?;
        let name = manifest.name();
        let checksums = published.files().map(|file| (file.name(), file.checksum)).collect();
        let sidecar = |(sidecar, file): (&Sidecar, &PublishedFile)| match file.checksum {
            Checksum::Bytes(digest) => Some((*sidecar, digest)),
            Checksum::Verity(_) => None,
        };
        let sidecars = published.sidecars.iter().filter_map(sidecar).collect();
        let image = |(format, image): (&OutputFormat, &PublishedFile)| {
            let (path, size) = (self.out.join(format.file_name(&name)), image.size());
            progress.emit(Event::Unchanged { path: path.clone(), bytes: size });
            BakedFile { path, format: *format, size, checksum: image.checksum }
        };
        let outputs = published.images.iter().map(image).collect();
        Ok(Some(Unchanged { baked: Baked { name, sidecars, outputs, notes: Vec::new() }, checksums }))
    }

    /// The builder in published provenance.
    fn builder_of(&self, published: &Published) -> Option<BuilderId> {
        let text = published.sidecars.get(&Sidecar::Provenance)?.read()?;
        provenance::builder(&serde_json::from_slice(&text).ok()?)
    }

    pub(super) fn outputs(
        &self,
        targets: &BTreeMap<OutputFormat, PathBuf>,
    ) -> Result<BTreeMap<OutputFormat, Pending>, PublishError> {
        targets.iter().map(|(format, path)| Ok((*format, Pending::create(path, self.force)?))).collect()
    }

    /// Writes the disk images.
    pub(super) fn write(
        &self,
        disk: &Disk,
        id: Option<Digest>,
        previous: &PreviousBake<'_>,
        pending: &BTreeMap<OutputFormat, Pending>,
        progress: &Progress,
    ) -> Result<Vec<WrittenFile>, BakeError> {
        let compression = self.compression.into();
        let output = |format: OutputFormat, file| Some(Output { format: format.disk()?, file, compression });
        let outputs: Vec<Output<'_>> =
            pending.iter().filter_map(|(format, pending)| output(*format, pending.file())).collect();
        if outputs.is_empty() {
            return Ok(Vec::new());
        }
        let bar = progress.bar("writing", disk.len());
        let Reusable { same, qcow2 } = previous.reusable(id, &self.out);
        let qcow2: Vec<_> = qcow2.iter().map(ReusableFile::earlier).collect();
        let earlier = Earlier { qcow2: &qcow2, same: &same };
        let written = vmbake_disk::write::write_again(disk, &outputs, &earlier, self.threads, &|bytes| bar.inc(bytes));
        bar.finish_and_clear();
        Ok(written?.into_iter().map(WrittenFile::from).collect())
    }

    /// Writes the archives called `name`.
    pub(super) fn write_archives(
        &self,
        name: &str,
        archives: &RootArchives,
        pending: &BTreeMap<OutputFormat, Pending>,
        progress: &Progress,
    ) -> Result<Vec<WrittenFile>, BakeError> {
        let wanted = pending.iter().filter(|(format, _)| format.disk().is_none());
        let write = |(format, pending): (&OutputFormat, &Pending)| {
            archives.write(*format, pending, &self.out.join(format.file_name(name)), self.threads, progress)
        };
        wanted.map(write).collect()
    }

    /// Publishes the outputs called `name`: old checksums are removed first and new ones added last, so that lists
    /// never contain missing files. Also returns the identities of the published files.
    pub(super) fn publish(
        &self,
        name: String,
        sidecars: &BTreeMap<Sidecar, Vec<u8>>,
        mut pending: BTreeMap<OutputFormat, Pending>,
        written: &[WrittenFile],
        progress: &Progress,
    ) -> Result<(Baked, Option<Published>), BakeError> {
        let digests: BTreeMap<Sidecar, Digest> =
            sidecars.iter().map(|(sidecar, text)| (*sidecar, Digest::of(text))).collect();
        let checksums = checksums(&name, sidecars, written);
        checksums::forget(&self.out, &checksums)?;
        let mut noted = BTreeMap::new();
        for (sidecar, text) in sidecars {
            let path = self.out.join(sidecar.file_name(&name));
            let file = renew_file(&path, text)?;
            noted.insert(*sidecar, PublishedFile::note(&path, &file, Checksum::Bytes(digests[sidecar])));
        }
        let (mut outputs, mut images) = (Vec::new(), BTreeMap::new());
        for WrittenFile { format, checksum, len: size, .. } in written {
            let Some(pending) = pending.remove(format) else { continue };
            let file = pending.publish()?;
            let path = self.out.join(format.file_name(&name));
            progress.emit(Event::Wrote { path: path.clone(), bytes: *size });
            images.insert(*format, PublishedFile::note(&path, &file, *checksum));
            outputs.push(BakedFile { path, format: *format, size: *size, checksum: *checksum });
        }
        checksums::list(&self.out, &checksums)?;
        let published = all(noted).zip(all(images)).map(|(sidecars, images)| Published { sidecars, images });
        Ok((Baked { name, sidecars: digests, outputs, notes: Vec::new() }, published))
    }
}

/// The checksums of the outputs called `name`, by file name.
pub(super) fn checksums(
    name: &str,
    sidecars: &BTreeMap<Sidecar, Vec<u8>>,
    written: &[WrittenFile],
) -> BTreeMap<String, Checksum> {
    let sidecars = sidecars.iter().map(|(sidecar, text)| (sidecar.file_name(name), Checksum::Bytes(Digest::of(text))));
    sidecars.chain(written.iter().map(|file| (file.format.file_name(name), file.checksum))).collect()
}

/// All files, if each could be recorded.
fn all<K: Ord>(noted: BTreeMap<K, Option<PublishedFile>>) -> Option<BTreeMap<K, PublishedFile>> {
    noted.into_iter().map(|(key, file)| Some((key, file?))).collect()
}
