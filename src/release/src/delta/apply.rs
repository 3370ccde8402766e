//! Applies a delta to an old image.
//!
//! Order of checks: the signature of the statement, the digest of the delta, its header. Then the disk is written to an
//! unnamed file, while it and the base are hashed; unchanged data are read once. The base is checked first, then the
//! result; only then is the file named. Concurrent changes of the base are detected, since the written data are
//! checked.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use vmbake_common::message;
use vmbake_disk::image::{Format, Image, Overlay};
use vmbake_disk::source::ReadAt;
use vmbake_disk::write::{FileDigest, Output, Patched, patch};

use super::DeltaError;
use super::statement::{DeltaStatement, StatedFile, StatedImage, statement_path};
use vmbake_bake::release::verify::{NamedSigner, document_signed};
use vmbake_common::atomic_file::Pending;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_common::progress::{Event, Progress};
use vmbake_proof::sigstore::SigstoreRoot;

/// Minimum limit for the size of the result: 64 MiB of hashes.
const MAX_GROWN: u64 = 1 << 40;

pub struct ApplyRequest<'a> {
    /// The delta, with its statement next to it.
    pub delta: &'a Path,
    /// The old image.
    pub base: &'a Path,
    /// The new image.
    pub out: &'a Path,
    /// Its format; by default as in the statement.
    pub format: Option<Format>,
    /// Whether an existing file may be replaced.
    pub force: bool,
    /// Required signers of the statement.
    pub signers: &'a [NamedSigner],
    /// Authorities and logs of sigstore.
    pub root: &'a SigstoreRoot,
    pub now: Timestamp,
    /// Threads for reading, hashing and compressing.
    pub threads: NonZeroUsize,
}

/// Applies a delta; returns the verified statement.
pub fn apply(request: &ApplyRequest<'_>, progress: &Progress) -> Result<DeltaStatement, DeltaError> {
    let statement = statement(request)?;
    let delta = open_delta(request.delta, &statement.delta)?;
    let overlay = Arc::new(Overlay::of(delta, request.delta)?);
    check_header(request.delta, &overlay, &statement)?;
    let base: Arc<dyn ReadAt> = Arc::new(Image::open(request.base)?);
    check_length(request.base, base.len(), &statement.base)?;
    check_growth(request.delta, overlay.len(), base.len())?;
    let pending = Pending::create(request.out, request.force)?;
    let format = request.format.unwrap_or(statement.result.format);
    let compression = statement.result.compression.into();
    let output = Output { format, file: pending.file(), compression };
    let bar = progress.bar("applying", overlay.len());
    let patched = patch(&base, &overlay, output, request.threads, &|len| bar.inc(len));
    bar.finish_and_clear();
    let patched = patched.map_err(|source| DeltaError::Write { path: request.out.to_owned(), source })?;
    check_result(request, format, &patched, &statement)?;
    pending.publish()?;
    progress.emit(Event::Wrote { path: request.out.to_owned(), bytes: patched.written.file_len });
    Ok(statement)
}

/// The statement, with its signatures verified.
fn statement(request: &ApplyRequest<'_>) -> Result<DeltaStatement, DeltaError> {
    let (statement, text) = DeltaStatement::read(request.delta)?;
    let path = statement_path(request.delta);
    for signer in request.signers {
        document_signed(&path, &text, signer, request.root, request.now).map_err(|reason| {
            let signer = signer.name.clone();
            DeltaError::NotSigned { path: path.clone(), signer, reason }
        })?;
    }
    Ok(statement)
}

/// Opens the delta, if it matches the statement.
fn open_delta(path: &Path, expected: &StatedFile) -> Result<File, DeltaError> {
    let unreadable = |source| DeltaError::Read { path: path.to_owned(), source };
    let file = input::open_regular(path).map_err(unreadable)?;
    let (found, found_len) = Digest::of(b"").of_stream(&file).map_err(unreadable)?;
    if found == expected.sha256 && found_len == expected.length {
        return Ok(file);
    }
    let (path, found, expected_len) = (path.to_owned(), Box::new(found), expected.length);
    Err(DeltaError::OtherDelta { path, found, found_len, expected: Box::new(expected.sha256), expected_len })
}

/// Checks that base and size of the delta match the statement.
fn check_header(path: &Path, overlay: &Overlay, statement: &DeltaStatement) -> Result<(), DeltaError> {
    let StatedImage { name, format, .. } = &statement.base;
    let (backing, format) = (overlay.backing(), *format);
    if (backing.name(), backing.format()) != (name, format) {
        let (found, expected) = (Box::new(backing.clone()), format!("{name} ({format})"));
        return Err(DeltaError::Message(message!(
            "{}: delta is based on {found}, but the statement specifies {expected}",
            path.display()
        )));
    }
    check_length(path, overlay.len(), &statement.result)
}

fn check_length(path: &Path, found: u64, stated: &StatedImage) -> Result<(), DeltaError> {
    let expected = stated.disk_length;
    if found == expected { Ok(()) } else { Err(DeltaError::Length { path: path.to_owned(), found, expected }) }
}

/// Block hashes are kept in memory, including those of zeros: a small file must not cause a huge number.
fn check_growth(path: &Path, found: u64, base: u64) -> Result<(), DeltaError> {
    let limit = base.saturating_mul(2).max(MAX_GROWN);
    if found <= limit {
        Ok(())
    } else {
        Err(DeltaError::Message(message!(
            "{}: the result of {found} bytes exceeds the limit of {limit} bytes for this base",
            path.display()
        )))
    }
}

/// Checks the disk of the base, the resulting disk, and its file.
fn check_result(
    request: &ApplyRequest<'_>,
    format: Format,
    patched: &Patched,
    statement: &DeltaStatement,
) -> Result<(), DeltaError> {
    let boxed =
        |found: [u8; 32], stated: &StatedImage| (Box::new(Digest::Sha256(found)), Box::new(stated.disk_fsverity));
    let (found, expected) = boxed(patched.base, &statement.base);
    if found != expected {
        return Err(DeltaError::OtherBase { path: request.base.to_owned(), found, expected });
    }
    let (found, expected) = boxed(patched.result, &statement.result);
    let path = request.delta.to_owned();
    if found != expected {
        return Err(DeltaError::Message(message!(
            "{}: the resulting disk has fs-verity digest {found}, but the statement specifies {expected}",
            path.display()
        )));
    }
    match (statement.result.sha256, patched.written.digest) {
        (Some(expected), FileDigest::Sha256(found)) if expected != Digest::Sha256(found) => {
            let found = Box::new(patched.written.digest.into());
            Err(DeltaError::OtherFile { path, format, found, expected: Box::new(expected) })
        }
        _ => Ok(()),
    }
}
