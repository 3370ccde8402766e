//! The contents of an archive according to its documents and its list of members, without reading the blobs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use vmbake_disk::source::ReadAt;

use super::ArchiveError;
use super::document::{self, ArchiveIndex, ArchiveManifest, BlobReference, BlobRole, MAX_DOCUMENT, SINCE};
use super::parts::ArchiveParts;
use super::tar::{TarMember, members};
use vmbake_bake::release::verify::{NamedSigner, document_signed};
use vmbake_common::digest::Digest;
use vmbake_oci::{INDEX, MARKER, MARKER_FILE};
use vmbake_proof::sigstore::SigstoreRoot;

/// An archive whose documents have been read.
pub struct Contents {
    pub(super) path: PathBuf,
    pub(super) archive: Arc<dyn ReadAt>,
    /// Digest of its index, which covers all contents.
    pub index_digest: Digest,
    /// Its index, which is signed.
    index: Vec<u8>,
    /// Digest of the index of the archive that it is based on.
    pub since: Option<String>,
    pub(super) manifests: Vec<ArchiveManifest>,
    /// The members that are blobs.
    pub(super) members: BTreeMap<Digest, TarMember>,
    /// The blobs that the documents list.
    pub(super) listed: BTreeMap<Digest, BlobReference>,
    problems: Vec<ArchiveProblem>,
}

/// A blob that the documents of an archive list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArchiveEntry {
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
    #[serde(rename = "type")]
    pub role: BlobRole,
    /// Its file name, if it has one.
    pub title: String,
    /// Whether it is left out, as an earlier archive contains it.
    pub held: bool,
}

/// A fault in an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArchiveProblem {
    /// `missing`, `extra` or `damaged`.
    pub state: &'static str,
    /// The member.
    pub name: String,
    /// Its role and the fault.
    pub said: String,
}

impl Contents {
    /// Whether the archive exists.
    pub fn exist(path: &Path) -> bool {
        ArchiveParts::exist(path)
    }

    /// Reads the documents of the archive at `path`.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let archive: Arc<dyn ReadAt> = Arc::new(ArchiveParts::open(path)?);
        let mut all = members(&*archive, path)?.into_iter();
        let marker = read_first(&*archive, path, &mut all, MARKER_FILE)?;
        if marker != MARKER.as_bytes() {
            return Err(meaning(path, MARKER_FILE, "is not the marker of an image layout"));
        }
        let index = read_first(&*archive, path, &mut all, INDEX)?;
        let members = blobs(path, all)?;
        let index_digest = Digest::of(&index);
        let parsed: ArchiveIndex = parse(path, INDEX, &index)?;
        if !parsed.is_sound() {
            return Err(meaning(path, INDEX, "is not the index of an archive"));
        }
        let since = parsed.annotations.get(SINCE).cloned();
        let (manifests, listed, problems) = (Vec::new(), BTreeMap::new(), Vec::new());
        let path = path.to_owned();
        let mut contents = Self { path, archive, index_digest, index, since, manifests, members, listed, problems };
        for reference in parsed.manifests {
            contents.read_manifest(reference)?;
        }
        contents.compare();
        Ok(contents)
    }

    /// The blobs that the documents list, by digest.
    pub fn entries(&self) -> Vec<ArchiveEntry> {
        let entry = |blob: &BlobReference| ArchiveEntry {
            digest: blob.digest,
            size: blob.size,
            role: blob.role,
            title: blob.title().to_owned(),
            held: blob.is_held(),
        };
        self.listed.values().map(entry).collect()
    }

    /// Fails unless all of these signers have signed the index, in bundles next to the archive.
    pub fn require_signed(
        &self,
        signers: &[NamedSigner],
        root: &SigstoreRoot,
        now: Timestamp,
    ) -> Result<(), ArchiveError> {
        signers.iter().try_for_each(|signer| {
            document_signed(&self.path, &self.index, signer, root, now).map_err(|reason| {
                let (path, signer) = (self.path.clone(), signer.name.clone());
                ArchiveError::NotSigned { path, signer, reason }
            })
        })
    }

    /// Differences between documents and members.
    pub fn problems(&self) -> &[ArchiveProblem] {
        &self.problems
    }

    /// Fails if there is a problem.
    pub fn require_complete(&self) -> Result<(), ArchiveError> {
        let Some(ArchiveProblem { state, name, said }) = self.problems.first() else { return Ok(()) };
        let (path, others) = (self.path.clone(), self.problems.len() - 1);
        Err(ArchiveError::Incomplete { path, first: format!("{name} is {state}: {said}"), others })
    }

    /// The bytes of a document in the archive, with a verified digest.
    pub(super) fn document(&self, reference: &BlobReference) -> Result<Vec<u8>, ArchiveError> {
        let name = blob_name(&reference.digest);
        let member = self.members.get(&reference.digest).filter(|member| member.len == reference.size);
        let member = member.ok_or_else(|| {
            meaning(&self.path, &name, "is listed in a document, but missing or of a different length")
        })?;
        let bytes = content(&*self.archive, &self.path, member)?;
        let (found, _) = reference.digest.of_stream(&bytes[..]).map_err(|source| self.unreadable(source))?;
        match found == reference.digest {
            true => Ok(bytes),
            false => Err(meaning(&self.path, &name, &format!("is corrupt: digest is {found}"))),
        }
    }

    pub(super) fn unreadable(&self, source: std::io::Error) -> ArchiveError {
        ArchiveError::Read { path: self.path.clone(), source }
    }

    fn read_manifest(&mut self, reference: BlobReference) -> Result<(), ArchiveError> {
        let name = blob_name(&reference.digest);
        let manifest: ArchiveManifest = parse(&self.path, &name, &self.document(&reference)?)?;
        if !manifest.is_sound() || reference.artifact_type != Some(manifest.artifact_type) {
            return Err(meaning(&self.path, &name, "is not the manifest of an archive"));
        }
        for blob in [&reference, &manifest.config].into_iter().chain(&manifest.layers) {
            let known = self.listed.entry(blob.digest).or_insert_with(|| blob.clone());
            if (known.size, known.is_held()) != (blob.size, blob.is_held()) {
                return Err(meaning(&self.path, &name, &format!("lists {} twice with different values", blob.digest)));
            }
        }
        self.manifests.push(manifest);
        Ok(())
    }

    /// Finds missing, unexpected and truncated members.
    fn compare(&mut self) {
        let mut problems = Vec::new();
        let mut problem = |state, digest: &Digest, said| {
            problems.push(ArchiveProblem { state, name: blob_name(digest), said });
        };
        for (digest, blob) in &self.listed {
            match self.members.get(digest) {
                None if blob.is_held() => {}
                None => problem("missing", digest, format!("{}, {} bytes", called(blob), blob.size)),
                Some(_) if blob.is_held() => problem("extra", digest, "listed as excluded".to_owned()),
                Some(member) if member.len != blob.size => {
                    problem("damaged", digest, format!("{} bytes, but {} bytes are listed", member.len, blob.size));
                }
                Some(_) => {}
            }
        }
        for digest in self.members.keys().filter(|digest| !self.listed.contains_key(*digest)) {
            problem("extra", digest, "not listed in any document".to_owned());
        }
        self.problems = problems;
    }

    /// Blobs that are left out.
    pub(super) fn held(&self) -> BTreeSet<Digest> {
        self.listed.iter().filter(|(_, blob)| blob.is_held()).map(|(digest, _)| *digest).collect()
    }
}

/// The name of a blob in messages.
pub(super) fn called(blob: &BlobReference) -> &str {
    if blob.title().is_empty() { "a document" } else { blob.title() }
}

/// The member name of a blob.
pub(super) fn blob_name(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm(), digest.hex())
}

/// The content of the next member, which must have that name.
fn read_first(
    archive: &dyn ReadAt,
    path: &Path,
    members: &mut impl Iterator<Item = TarMember>,
    name: &str,
) -> Result<Vec<u8>, ArchiveError> {
    let member = members.next().filter(|member| member.name == name);
    let member = member.ok_or_else(|| meaning(path, name, "is in the wrong place of the archive"))?;
    content(archive, path, &member)
}

fn content(archive: &dyn ReadAt, path: &Path, member: &TarMember) -> Result<Vec<u8>, ArchiveError> {
    let len = usize::try_from(member.len).ok().filter(|_| member.len <= MAX_DOCUMENT);
    let len = len.ok_or_else(|| meaning(path, &member.name, "is larger than the limit for documents"))?;
    let mut bytes = vec![0; len];
    archive
        .read_exact_at(&mut bytes, member.at)
        .map_err(|source| ArchiveError::Read { path: path.to_owned(), source })?;
    Ok(bytes)
}

/// The remaining members, which must be blobs, sorted.
fn blobs(path: &Path, members: impl Iterator<Item = TarMember>) -> Result<BTreeMap<Digest, TarMember>, ArchiveError> {
    let mut blobs: BTreeMap<Digest, TarMember> = BTreeMap::new();
    for member in members {
        let digest = member.name.strip_prefix("blobs/").and_then(|name| name.replacen('/', ":", 1).parse().ok());
        let what = match (digest, blobs.last_key_value()) {
            (None, _) => "is not a blob",
            (Some(digest), Some((last, _))) if digest <= *last => "is out of order or duplicated",
            (Some(digest), _) => {
                blobs.insert(digest, member);
                continue;
            }
        };
        let (path, at) = (path.to_owned(), member.header_at);
        return Err(ArchiveError::Member { path, name: member.name, at, what: what.to_owned() });
    }
    Ok(blobs)
}

fn parse<T: DeserializeOwned>(path: &Path, name: &str, bytes: &[u8]) -> Result<T, ArchiveError> {
    let wrong = |source| ArchiveError::Document { path: path.to_owned(), name: name.to_owned(), source };
    document::parse(bytes).map_err(wrong)
}

fn meaning(path: &Path, name: &str, what: &str) -> ArchiveError {
    ArchiveError::Meaning { path: path.to_owned(), name: name.to_owned(), what: what.to_owned() }
}
