//! Converts images to documents: each blob is passed on while its bytes are in memory, and can be read again later.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use vmbake_common::message;
use vmbake_disk::source::{FileSource, ReadAt};
use vmbake_disk::write::fsverity;

use vmbake_bake::incremental::checksums::Checksum;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_common::parallel;
use vmbake_oci::Descriptor;
use vmbake_store::http::Payload;

use super::attachments::Attachment;
use super::binding::ReleaseBinding;
use super::chunks::{Frame, chunk_len, frame, is_hole, zeros};
use super::config::DiskConfig;
use super::document::{
    ArtifactManifest, CHUNK, CREATED, DISK, DISK_CONFIG, DISK_TYPE, INDEX, MANIFEST, RELEASE, ReleaseIndex, VERSION,
    Written, media_type, titled,
};
use super::error::DocumentError;
use super::folder::{NamedImage, ReleaseFolder};
use vmbake_disk::image::Format;

/// The source of a blob's bytes.
#[derive(Clone, Debug)]
pub enum BlobSource {
    Memory(Vec<u8>),
    File(PathBuf),
    /// A part of a raw image, to be compressed.
    Chunk {
        path: PathBuf,
        /// Offset of the part in bytes.
        offset: u64,
        /// Its length in bytes.
        len: usize,
    },
}

#[derive(Clone, Debug)]
pub struct ReleaseBlob {
    /// Its digest, length and type, with its name.
    pub descriptor: Descriptor,
    pub source: BlobSource,
}

impl ReleaseBlob {
    fn of(written: Written) -> Self {
        Self { descriptor: written.descriptor, source: BlobSource::Memory(written.bytes) }
    }

    /// Reads its bytes again and passes them to `work`. If the file has changed, their digest differs.
    pub fn with_payload<T, E: From<DocumentError>>(
        &self,
        work: impl FnOnce(Payload<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        match &self.source {
            BlobSource::Memory(bytes) => work(Payload::Bytes(bytes)),
            BlobSource::File(path) => work(Payload::Range { file: &open(path)?, offset: 0, len: self.descriptor.size }),
            BlobSource::Chunk { path, offset, len } => work(Payload::Bytes(&again(path, *offset, *len)?)),
        }
    }

    /// Reads its bytes again. The caller must check whether the file has changed.
    pub fn open(&self) -> Result<Box<dyn Read + '_>, DocumentError> {
        match &self.source {
            BlobSource::Memory(bytes) => Ok(Box::new(bytes.as_slice())),
            BlobSource::File(path) => Ok(Box::new(open(path)?)),
            BlobSource::Chunk { path, offset, len } => Ok(Box::new(io::Cursor::new(again(path, *offset, *len)?))),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ReleaseDocuments {
    pub index: Written,
    /// A manifest for each image.
    pub manifests: Vec<Written>,
    /// Configs, chunks and files of images, deduplicated.
    pub blobs: Vec<ReleaseBlob>,
    /// Attachments of the index.
    pub attachments: Vec<Attachment>,
}

/// Compresses the chunk of an image again.
fn again(path: &Path, offset: u64, len: usize) -> Result<Vec<u8>, DocumentError> {
    let failed = |source| DocumentError::Read { path: path.to_owned(), source };
    let disk = FileSource::new(open(path)?).map_err(failed)?;
    Ok(frame(&disk, offset, len).map_err(failed)?.bytes)
}

/// Called for each blob of an image while its bytes are in memory: from several threads, and once for equal blobs.
pub type EachBlob<'a, E> = dyn Fn(&Descriptor, Payload<'_>) -> Result<(), E> + Sync + 'a;

/// Describes a release with additional attachments.
pub fn assemble<E: From<DocumentError> + Send>(
    folder: &ReleaseFolder,
    binding: &ReleaseBinding,
    more: &[PathBuf],
    threads: NonZeroUsize,
    each: &EachBlob<'_, E>,
) -> Result<ReleaseDocuments, E> {
    let (mut manifests, mut entries, mut blobs) = (Vec::new(), Vec::new(), BTreeMap::new());
    for image in &folder.images {
        let (layers, config) = layers(folder, image, threads, each)?;
        let config = Written::new(DISK_CONFIG, &config).map_err(DocumentError::from)?;
        each(&config.descriptor, Payload::Bytes(&config.bytes))?;
        let descriptors = layers.iter().map(|blob| blob.descriptor.clone()).collect();
        let manifest = ArtifactManifest::new(DISK, config.descriptor.clone(), descriptors);
        let manifest = Written::new(MANIFEST, &manifest).map_err(DocumentError::from)?;
        entries.push(entry(image, &manifest));
        manifests.push(manifest);
        for blob in layers.into_iter().chain([ReleaseBlob::of(config)]) {
            blobs.entry(blob.descriptor.digest).or_insert(blob);
        }
    }
    let index = index(folder, binding, entries).map_err(DocumentError::from)?;
    let attachments = attachments(folder, more, &index.descriptor)?;
    Ok(ReleaseDocuments { index, manifests, blobs: blobs.into_values().collect(), attachments })
}

/// The layers of an image and its config.
fn layers<E: From<DocumentError> + Send>(
    folder: &ReleaseFolder,
    image: &NamedImage,
    threads: NonZeroUsize,
    each: &EachBlob<'_, E>,
) -> Result<(Vec<ReleaseBlob>, DiskConfig), E> {
    let failed = |source| DocumentError::Read { path: image.path.clone(), source };
    let source = FileSource::new(open(&image.path)?).map_err(failed)?;
    let size = source.len();
    check(image, &source, threads)?;
    let mut config = DiskConfig {
        architecture: image.inputs.arch.clone(),
        os: "linux".to_owned(),
        name: image.name.clone(),
        kind: image.inputs.kind.clone(),
        system: image.inputs.os.clone(),
        version: image.version.clone(),
        format: image.format,
        size,
        checksum: image.checksum,
        manifest: image.inputs.manifest,
        program: image.inputs.program.digest,
        chunk_size: 0,
        chunks: Vec::new(),
        files: folder.files_of(&image.name),
    };
    let layers = match (image.format, image.checksum) {
        (Format::Raw, _) => {
            let chunk_size = chunk_len(size).ok_or_else(|| {
                DocumentError::Message(message!(
                    "{}: {size} bytes, more than the limit of a manifest",
                    image.path.display()
                ))
            })?;
            let (layers, chunks) = chunks(image, &source, chunk_size, threads, each)?;
            (config.chunk_size, config.chunks) = (chunk_size, chunks);
            layers
        }
        (format, Checksum::Bytes(digest)) => {
            let file_name = format!("{}.{format}", image.name);
            let descriptor = titled(Descriptor::new(&media_type(format), digest, size), &file_name);
            let file = open(&image.path)?;
            each(&descriptor, Payload::Range { file: &file, offset: 0, len: size })?;
            vec![ReleaseBlob { descriptor, source: BlobSource::File(image.path.clone()) }]
        }
        (_, Checksum::Verity(_)) => {
            return Err(DocumentError::Unlisted { path: image.path.clone() }.into());
        }
    };
    Ok((layers, config))
}

/// Compares an image with its listed checksum.
fn check(image: &NamedImage, source: &FileSource, threads: NonZeroUsize) -> Result<(), DocumentError> {
    let failed = |source| DocumentError::Read { path: image.path.clone(), source };
    let found = match image.checksum {
        Checksum::Verity(_) => Checksum::Verity(Digest::Sha256(fsverity(source, threads).map_err(failed)?)),
        Checksum::Bytes(like) => Checksum::Bytes(like.of_stream(open(&image.path)?).map_err(failed)?.0),
    };
    if found == image.checksum {
        return Ok(());
    }
    let (expected, found) = (Box::new(image.checksum), Box::new(found));
    Err(DocumentError::Checksum { path: image.path.clone(), expected, found })
}

/// The chunks of a raw image, and the digests of their contents.
fn chunks<E: From<DocumentError> + Send>(
    image: &NamedImage,
    disk: &FileSource,
    chunk_size: u64,
    threads: NonZeroUsize,
    each: &EachBlob<'_, E>,
) -> Result<(Vec<ReleaseBlob>, Vec<Digest>), E> {
    let failed = |source| DocumentError::Read { path: image.path.clone(), source };
    let whole = usize::try_from(chunk_size).map_err(|error| failed(io::Error::other(error)))?;
    let empty = zeros(whole).map_err(failed)?;
    let empty_digest = Digest::of(&empty.bytes);
    each(&Descriptor::new(CHUNK, empty_digest, empty.bytes.len() as u64), Payload::Bytes(&empty.bytes))?;
    let has_failed = AtomicBool::new(false);
    let work = |offset: u64| -> Result<Option<(Descriptor, Digest, usize)>, E> {
        if has_failed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let len = usize::try_from(disk.len().saturating_sub(offset)).map_or(whole, |left| left.min(whole));
        let described = |digest, Frame { content, bytes }: &Frame| {
            (Descriptor::new(CHUNK, digest, bytes.len() as u64), *content, len)
        };
        if len == whole && is_hole(disk, offset, len).map_err(failed)? {
            return Ok(Some(described(empty_digest, &empty)));
        }
        let frame = frame(disk, offset, len).map_err(failed)?;
        let described = described(Digest::of(&frame.bytes), &frame);
        each(&described.0, Payload::Bytes(&frame.bytes)).map(|()| Some(described))
    };
    let starts = (0..disk.len().div_ceil(chunk_size)).map(|number| number * chunk_size).collect();
    let results = parallel::for_each(starts, threads, |offset| {
        let result = work(offset);
        has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
        (offset, result)
    });
    let (mut layers, mut contents) = (Vec::new(), Vec::new());
    // The first error by offset, if any.
    for (number, (offset, result)) in results.into_iter().enumerate() {
        let Some((descriptor, content, len)) = result? else { continue };
        let descriptor = titled(descriptor, &format!("{}.raw.zst.{number:04}", image.name));
        layers.push(ReleaseBlob { descriptor, source: BlobSource::Chunk { path: image.path.clone(), offset, len } });
        contents.push(content);
    }
    Ok((layers, contents))
}

fn entry(image: &NamedImage, manifest: &Written) -> Descriptor {
    let mut entry = manifest.descriptor.clone().of_platform("linux", &image.inputs.arch);
    entry.artifact_type = Some(DISK.to_owned());
    entry.annotations.insert(DISK_TYPE.to_owned(), image.format.name().to_owned());
    entry
}

fn index(
    folder: &ReleaseFolder,
    binding: &ReleaseBinding,
    manifests: Vec<Descriptor>,
) -> Result<Written, serde_json::Error> {
    let mut annotations: BTreeMap<String, String> = binding.annotations().collect();
    if let Some(image) = folder.images.first() {
        annotations.insert(VERSION.to_owned(), image.version.clone());
        let epoch = image.inputs.source_date_epoch.and_then(|epoch| Timestamp::from_second(epoch.into()).ok());
        annotations.extend(epoch.map(|time| (CREATED.to_owned(), time.to_string())));
    }
    let (media_type, artifact_type) = (INDEX.to_owned(), RELEASE.to_owned());
    Written::new(INDEX, &ReleaseIndex { schema_version: 2, media_type, artifact_type, manifests, annotations })
}

fn attachments(folder: &ReleaseFolder, more: &[PathBuf], index: &Descriptor) -> Result<Vec<Attachment>, DocumentError> {
    let images: Vec<&str> = folder.images.iter().map(|image| image.name.as_str()).collect();
    let mut files: BTreeMap<String, Vec<u8>> = folder.files.clone();
    files.extend(folder.signatures.clone());
    for path in more {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.ok_or_else(|| DocumentError::Name { path: path.clone() })?;
        let content = super::folder::read(path)?;
        if files.insert(name, content.clone()).is_some_and(|other| other != content) {
            return Err(DocumentError::Twice { path: path.clone(), other: path.clone() });
        }
    }
    let attached = files.into_iter().map(|(name, content)| Attachment::of_file(index, &name, content, &images));
    Ok(attached.collect::<Result<_, _>>()?)
}

fn open(path: &Path) -> Result<File, DocumentError> {
    input::open_regular(path).map_err(|source| DocumentError::Read { path: path.to_owned(), source })
}
