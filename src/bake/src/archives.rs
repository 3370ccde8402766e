//! The root file system as archives: a tar archive of the same tree as the file system of the disk, which is also the
//! layer of a container image.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

use vmbake_common::atomic_file::Pending;
use vmbake_common::message;
use vmbake_common::output_format::OutputFormat;
use vmbake_common::progress::Progress;
use vmbake_disk::disk::Disk;
use vmbake_disk::tar;
use vmbake_disk::tree::{Timestamp, Tree};
use vmbake_disk::write::Clusters;
use vmbake_layer::Layer;
use vmbake_manifest::Manifest;

use super::BakeError;
use crate::container::ContainerImage;
use crate::incremental::checksums::Checksum;
use crate::outputs::WrittenFile;
use crate::packed::{self, PackError, Packed, Packing};

/// A root file system, ready to be written to archives.
pub(super) struct RootArchives {
    tar: Disk,
    /// If one is wanted.
    image: Option<ContainerImage>,
}

impl RootArchives {
    /// Lays out the archives in `formats`; `None` if there are only disk images.
    pub(super) fn new(
        formats: &[OutputFormat],
        manifest: &Manifest,
        layers: &[Layer],
        tree: &Tree,
        time: Timestamp,
    ) -> Result<Option<Self>, BakeError> {
        if formats.iter().all(|format| format.disk().is_some()) {
            return Ok(None);
        }
        let tar = tar::author(tree).map_err(|error| message!("cannot archive the root file system").by(error))?;
        let is_wanted = formats.contains(&OutputFormat::Oci);
        let image = is_wanted.then(|| ContainerImage::new(manifest, layers, tree, time)).transpose()?;
        Ok(Some(Self { tar, image }))
    }

    /// Writes the archive `format` to `pending`, which becomes the file `path`.
    pub(super) fn write(
        &self,
        format: OutputFormat,
        pending: &Pending,
        path: &Path,
        threads: NonZeroUsize,
        progress: &Progress,
    ) -> Result<WrittenFile, BakeError> {
        let target = Target { path, threads, progress };
        let packed = match (format, &self.image) {
            (OutputFormat::TarZst, _) => target.pack(&self.tar, Packing::Zstd, pending)?,
            (OutputFormat::Oci, Some(image)) => {
                // The name of a layer is its digest: it is written to another file without a name first.
                let spool = Pending::create(path, true)?;
                let layer = target.pack(&self.tar, Packing::Gzip, &spool)?;
                let file = spool.file().try_clone().map_err(|error| target.failed(error))?;
                let layout = tar::author(&image.layout(&layer, file)?)
                    .map_err(|error| message!("cannot archive the container image").by(error))?;
                target.pack(&layout, Packing::Plain, pending)?
            }
            _ => target.pack(&self.tar, Packing::Plain, pending)?,
        };
        let checksum = Checksum::Bytes(packed.digest);
        Ok(WrittenFile { format, checksum, len: packed.len, clusters: Clusters::default() })
    }
}

/// An output being written.
struct Target<'a> {
    path: &'a Path,
    threads: NonZeroUsize,
    progress: &'a Progress,
}

impl Target<'_> {
    fn pack(&self, archive: &Disk, packing: Packing, pending: &Pending) -> Result<Packed, BakeError> {
        let bar = self.progress.bar("writing", archive.len());
        let packed = packed::write(archive, packing, &mut pending.file(), self.threads, &|bytes| bar.inc(bytes));
        bar.finish_and_clear();
        packed.map_err(|error| match error {
            PackError::Read(source) => message!("cannot read the inputs of the image").by(source).into(),
            PackError::Write(source) => self.failed(source),
        })
    }

    fn failed(&self, source: io::Error) -> BakeError {
        message!("{}: cannot write", self.path.display()).by(source).into()
    }
}
