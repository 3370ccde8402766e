//! Reads the files of an output: a disk image, or an archive of its root file system.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_common::output_format::OutputFormat;
use vmbake_compose::merge::unpack;
use vmbake_compose::stage::ArchiveLimits;
use vmbake_compose::stage::archive::{self, Member, MemberKind};
use vmbake_disk::source::FileSource;
use vmbake_disk::tree::{Origin, Tree};
use vmbake_image::inspect::open_tree;
use vmbake_oci::{Descriptor, INDEX, Image, Index, OciError, read_document};

use crate::container::{architecture, blob_path};
use crate::incremental::build_inputs::BuildInputs;

/// Reads the output at `path`. The error is a message.
pub(super) fn open_output(path: &Path, format: OutputFormat, inputs: &BuildInputs) -> Result<Tree, String> {
    let tree = match format {
        OutputFormat::Disk(_) => return open_tree(path, inputs.partition).map_err(|error| escape::chain(&error)),
        OutputFormat::Tar | OutputFormat::TarZst => tar(path),
        OutputFormat::Oci => container_image(path, &inputs.arch),
    };
    tree.map_err(|error| escape::chain(&error))
}

fn tar(path: &Path) -> Result<Tree, Message> {
    let file = input::open_regular(path).map_err(failed(path))?;
    tree(path, archive::open(&file, &ArchiveLimits::ROOT).map_err(failed(path))?)
}

fn tree(path: &Path, (plain, members): (File, Vec<Member>)) -> Result<Tree, Message> {
    let source = FileSource::new(plain).map_err(failed(path))?;
    unpack(&members, Arc::new(source), Origin::default()).map_err(failed(path))
}

fn failed<E: Hint + Send + Sync + 'static>(path: &Path) -> impl Fn(E) -> Message {
    move |error| message!("{}: cannot read the archive", path.display()).by(error)
}

/// The tree of the only layer of a container image, whose digests are verified.
fn container_image(path: &Path, arch: &str) -> Result<Tree, Message> {
    let file = input::open_regular(path).map_err(failed(path))?;
    let layout = Layout { file: &file, members: archive::read(&file, &ArchiveLimits::ROOT).map_err(failed(path))? };
    let wrong = |what: &str| message!("{}: {what}", path.display());
    let text = layout.document(&Descriptor::unknown(Digest::of(b"")), INDEX).map_err(failed(path))?;
    let index: Index = serde_json::from_slice(&text).map_err(failed(path))?;
    let [image] = &index.manifests[..] else { return Err(wrong("expected one image in index.json")) };
    let platform = architecture(arch).and_then(|arch| format!("linux/{arch}").parse().ok());
    let platform = platform.ok_or_else(|| wrong("no platform of OCI images has the architecture of the image"))?;
    let found = Image::find(image.digest, &platform, &|blob| layout.document(blob, &blob_path(&blob.digest)));
    let found = found.map_err(failed(path))?;
    let [(layer, diff_id)] = &found.layers[..] else { return Err(wrong("expected one layer")) };
    let range = layout.range(&blob_path(&layer.digest)).ok_or_else(|| wrong("the layer is missing"))?;
    let stored = layout.part(range.clone()).map_err(failed(path))?;
    let (digest, _) = layer.digest.of_stream(stored).map_err(failed(path))?;
    if digest != layer.digest || range.end - range.start != layer.size {
        return Err(message!("{}: the layer has digest {digest}, expected {}", path.display(), layer.digest));
    }
    let (mut plain, members) = archive::open_part(&file, range, "gz", &ArchiveLimits::ROOT).map_err(failed(path))?;
    plain.rewind().map_err(failed(path))?;
    let (content, _) = diff_id.of_stream(&plain).map_err(failed(path))?;
    if content != *diff_id {
        return Err(message!("{}: the content of the layer has digest {content}, expected {diff_id}", path.display()));
    }
    tree(path, (plain, members))
}

/// An image layout in an archive.
struct Layout<'a> {
    file: &'a File,
    members: Vec<Member>,
}

impl Layout<'_> {
    /// The position of a file in the archive.
    fn range(&self, path: &str) -> Option<Range<u64>> {
        let member = self.members.iter().find(|member| member.path == path.as_bytes())?;
        match member.kind {
            MemberKind::File { offset, len } => Some(offset..offset.checked_add(len)?),
            _ => None,
        }
    }

    fn part(&self, range: Range<u64>) -> io::Result<io::Take<File>> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(range.start))?;
        Ok(file.take(range.end - range.start))
    }

    fn document(&self, blob: &Descriptor, path: &str) -> Result<Vec<u8>, OciError> {
        let digest = || Box::new(blob.digest);
        let range = self.range(path).ok_or_else(|| OciError::Absent { digest: digest() })?;
        let part = self.part(range).map_err(|source| OciError::Blob { digest: digest(), source: source.into() })?;
        read_document(blob, part)
    }
}
