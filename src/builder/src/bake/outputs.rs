//! The outputs of a bake: whether they are there already, their writing and their publishing.

use std::path::{Path, PathBuf};

use vmbake_disk::disk::Disk;
use vmbake_disk::image::Format;
use vmbake_disk::write::{Earlier, EarlierFile, Output, Written};

use super::{BakeError, BakeRequest, Baked, BakedFile};
use crate::atomic_file::{Pending, PublishError, renew_file};
use crate::digest::Digest;
use crate::fetch::FetchError;
use crate::incremental::checksums::{self, Checksum};
use crate::incremental::previous_bake::{Inputs, PreviousBake, Published, Reusable, file_digest};
use crate::incremental::record::PublishedFile;
use crate::manifest::Manifest;
use crate::progress::{Progress, human_bytes};

/// What an earlier bake made that is still there.
pub(super) struct Unchanged {
    baked: Baked,
    checksums: Vec<(String, Checksum)>,
}

impl Unchanged {
    /// Lists its digests, which an interrupted bake may have removed.
    pub(super) fn list(self, out: &Path) -> Result<Baked, PublishError> {
        checksums::list(out, &self.checksums).map(|()| self.baked)
    }
}

impl BakeRequest {
    pub(super) fn targets(&self, name: &str) -> Vec<(Format, PathBuf)> {
        self.formats.iter().map(|format| (*format, self.out.join(format!("{name}.{format}")))).collect()
    }

    /// What the last bake made, if this one would make the same.
    pub(super) fn unchanged(
        &self,
        manifest: &Manifest,
        inputs: &Inputs,
        previous: &PreviousBake<'_>,
        progress: &Progress,
    ) -> Result<Option<Unchanged>, BakeError> {
        let pinned = manifest.content().os.image.as_ref().map(|image| image.digest);
        let base = || match &self.base {
            Some(path) => file_digest(&self.store, path, pinned),
            None => pinned,
        };
        let base = previous.is_complete(self.formats.len()).then(base).flatten();
        // A base that is not what is pinned is refused where it is proven.
        let base = base.filter(|base| pinned.is_none_or(|pinned| pinned == *base));
        let inputs = base.and_then(|base| inputs.digest(base));
        let Some(files) = inputs.and_then(|inputs| previous.unchanged(&self.formats, &inputs)) else { return Ok(None) };
        self.supply().prover().all(manifest).map_err(FetchError::from)?;
        let name = |file: &PublishedFile| file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let checksums = files.iter().map(|file| (name(file), file.checksum)).collect();
        let [_, origins, images @ ..] = &files[..] else { return Ok(None) };
        let Checksum::Bytes(origins) = origins.checksum else { return Ok(None) };
        let outputs = self.targets(&manifest.name()).into_iter().zip(images).map(|((format, path), image)| {
            progress.step("unchanged", &format!("{}, {}", path.display(), human_bytes(image.size())));
            BakedFile { path, format: format.to_string(), size: image.size(), checksum: image.checksum }
        });
        let (name, outputs) = (manifest.name(), outputs.collect());
        Ok(Some(Unchanged {
            baked: Baked { name, manifest: manifest.digest(), origins, outputs, notes: Vec::new() },
            checksums,
        }))
    }

    pub(super) fn outputs(&self, targets: &[(Format, PathBuf)]) -> Result<Vec<(Format, Pending)>, PublishError> {
        targets.iter().map(|(format, path)| Ok((*format, Pending::create(path, self.force)?))).collect()
    }

    pub(super) fn write(
        &self,
        disk: &Disk,
        id: Option<Digest>,
        previous: &PreviousBake<'_>,
        pending: &[(Format, Pending)],
        progress: &Progress,
    ) -> Result<Vec<Written>, BakeError> {
        let bar = progress.bar("writing", disk.len());
        let outputs: Vec<Output<'_>> =
            pending.iter().map(|(format, pending)| Output { format: *format, file: pending.file() }).collect();
        let Reusable { same, qcow2 } = previous.reusable(id, &self.out);
        let qcow2: Vec<_> = qcow2.iter().map(|(file, clusters)| EarlierFile { file, clusters }).collect();
        let earlier = Earlier { qcow2: &qcow2, same: &same };
        let written = vmbake_disk::write::write_again(disk, &outputs, &earlier, self.threads, &|bytes| bar.inc(bytes));
        bar.finish_and_clear();
        Ok(written?)
    }

    /// Gives the outputs their names: the digests of old files go first and those of the new ones come last, so that
    /// no list speaks of a file that is not there. Tells too how the published files are known again.
    pub(super) fn publish(
        &self,
        manifest: &Manifest,
        origins: &[u8],
        pending: Vec<(Format, Pending)>,
        written: &[Written],
        progress: &Progress,
    ) -> Result<(Baked, Option<Published>), BakeError> {
        let name = manifest.name();
        let (manifest_name, origins_name) = (format!("{name}.json"), format!("{name}.origin.json"));
        let origins_digest = Digest::of(origins);
        let beside = [(manifest_name.clone(), manifest.digest()), (origins_name.clone(), origins_digest)];
        let mut sums = beside.map(|(name, digest)| (name, Checksum::Bytes(digest))).to_vec();
        sums.extend(written.iter().map(|file| (format!("{name}.{}", file.format), file.digest.into())));
        checksums::forget(&self.out, &sums.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>())?;
        let renew = |name: &String, content: &[u8], digest| {
            let path = self.out.join(name);
            Ok::<_, PublishError>(PublishedFile::note(&path, &renew_file(&path, content)?, Checksum::Bytes(digest)))
        };
        let beside = renew(&manifest_name, manifest.text(), manifest.digest())?
            .zip(renew(&origins_name, origins, origins_digest)?)
            .map(<[PublishedFile; 2]>::from);
        let (mut outputs, mut images) = (Vec::new(), Vec::new());
        for ((format, pending), written) in pending.into_iter().zip(written) {
            let file = pending.publish()?;
            let path: &Path = &self.out.join(format!("{name}.{format}"));
            progress.step("wrote", &format!("{}, {}", path.display(), human_bytes(written.file_len)));
            let checksum = written.digest.into();
            images.push(PublishedFile::note(path, &file, checksum));
            outputs.push(BakedFile { path: path.into(), format: format.to_string(), size: written.file_len, checksum });
        }
        checksums::list(&self.out, &sums)?;
        let published = beside.zip(images.into_iter().collect()).map(|(beside, images)| Published { beside, images });
        let notes = Vec::new();
        Ok((Baked { name, manifest: manifest.digest(), origins: origins_digest, outputs, notes }, published))
    }
}
