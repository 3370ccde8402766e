//! Uploads the blocks of a snapshot concurrently, and completes it.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use sha2::{Digest as _, Sha256};
use vmbake_disk::source::ReadAt;
use vmbake_disk::write::BLOCK_LEN;

use crate::Aws;
use crate::StartSnapshot;
use vmbake_common::parallel::locked;
use vmbake_common::progress::{Event, counted, emit, human_bytes};
use vmbake_publish::ebs::blocks::{BLOCK, BlockDigest, linear_checksum, zeros};
use vmbake_publish::source::DiskSource;

use super::error::AmiError;
use super::identity::{PARENT, Subject};
use super::journal::Journal;
use super::options::AmiOptions;
use super::parent::{Parent, Sent};
use super::register::until_completed;

/// Maximum number of restarts, needed if AWS has another snapshot for the same request.
const MAX_ATTEMPTS: u32 = 16;
/// Minimum and maximum idle time in minutes after which AWS fails a snapshot.
const IDLE_MINUTES: (u64, u64) = (60, 4320);

/// Maximum time for which a complete snapshot may still be pending.
const SEALED: Duration = Duration::from_secs(120);

/// An upload of a disk to a snapshot.
pub(super) struct Upload<'a> {
    pub(super) aws: &'a Aws,
    pub(super) source: &'a DiskSource,
    pub(super) options: &'a AmiOptions<'a>,
    pub(super) subject: &'a Subject,
    pub(super) parent: Option<&'a Parent>,
    pub(super) sent: &'a Sent,
    /// Whether the snapshot is encrypted by the requested key.
    pub(super) encrypted: bool,
}

/// The result of an upload.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transferred {
    /// Blocks uploaded now.
    pub(super) blocks: u64,
    /// Blocks uploaded by an earlier attempt.
    pub(super) resumed: u64,
}

impl Upload<'_> {
    /// Starts a snapshot or resumes one, uploads the missing blocks, and completes it.
    pub(super) fn run(&self, journal: &mut Journal, bar: &ProgressBar) -> Result<(String, Transferred), AmiError> {
        let snapshot = self.begin(journal)?;
        if journal.is_complete() {
            return Ok((snapshot, Transferred { blocks: 0, resumed: self.sent.len() as u64 }));
        }
        let there = journal.sent();
        let missing: Sent = self.sent.iter().filter(|(index, _)| !there.contains(index)).copied().collect();
        let resumed = (self.sent.len() - missing.len()) as u64;
        emit(&Event::Snapshot {
            id: snapshot.clone(),
            region: self.aws.region().to_owned(),
            blocks: self.sent.len() as u64,
            there: resumed,
        });
        bar.set_length(missing.len() as u64 * BLOCK);
        let count = AtomicU64::new(0);
        let done = self.send(&snapshot, &missing, journal, &|| {
            bar.inc(BLOCK);
            count.fetch_add(1, Ordering::Relaxed);
        });
        let blocks = count.into_inner();
        let finished = done.and_then(|()| self.complete(&snapshot));
        match finished {
            Ok(()) => journal.complete()?,
            // Another publisher of the same disk may have completed the same snapshot.
            Err(error) if self.is_completed(&snapshot, &error) => {}
            Err(source) => {
                let (sent, total) = (resumed + blocks, self.sent.len() as u64);
                return Err(AmiError::Upload { snapshot, sent, total, source: Box::new(source) });
            }
        }
        Ok((snapshot, Transferred { blocks, resumed }))
    }

    /// The snapshot for this disk. AWS returns the same one for the same request as long as it is usable.
    fn begin(&self, journal: &mut Journal) -> Result<String, AmiError> {
        if let Some(id) = journal.snapshot() {
            let state = self.aws.snapshot(id)?.map(|snapshot| snapshot.state);
            // A new snapshot may not be visible yet: AWS returns it again below.
            if state.is_some_and(|state| state == "error" || state == "recoverable") {
                journal.begin(journal.attempt() + 1, "")?;
            }
        }
        let mut tags = self.subject.tags.clone();
        tags.extend(self.parent.map(|parent| (PARENT.to_owned(), parent.id.clone())));
        for attempt in journal.attempt()..journal.attempt().saturating_add(MAX_ATTEMPTS) {
            let token = self.token(attempt, &tags);
            let start = StartSnapshot {
                volume_size: self.subject.blocks.gib(),
                parent: self.parent.map(|parent| parent.id.as_str()),
                client_token: &token,
                description: &self.subject.name,
                timeout_minutes: self.idle_minutes(),
                tags: &tags,
                // A child inherits the encryption of its parent.
                kms_key: self.options.kms_key.filter(|_| self.parent.is_none()),
                encrypted: self.encrypted && self.parent.is_none() && self.options.kms_key.is_some(),
            };
            let started = match self.aws.start_snapshot(&start) {
                Ok(started) => started,
                Err(error) if error.is_conflict() => continue,
                Err(error) => return Err(error.into()),
            };
            if started.status == "error" {
                continue;
            }
            journal.begin(attempt, &started.id)?;
            // Another publisher of the same disk has completed it.
            if started.status == "completed" {
                journal.complete()?;
            }
            return Ok(started.id);
        }
        Err(AmiError::State {
            id: "every snapshot of this disk".to_owned(),
            region: self.aws.region().to_owned(),
            state: "error".to_owned(),
            expected: "pending",
            reason: None,
        })
    }

    /// The client token (`ClientToken`, 64 characters), derived from all parameters of the request.
    fn token(&self, attempt: u32, tags: &[(String, String)]) -> String {
        let mut hasher = Sha256::new_with_prefix(b"vmbake snapshot 1\0");
        let region = self.aws.region().to_owned();
        let texts = [self.subject.digest.to_string(), region, attempt.to_string(), self.subject.name.clone()];
        let pairs = tags.iter().flat_map(|(key, value)| [key, value]);
        for text in texts.iter().chain(pairs) {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        vmbake_common::digest::Digest::Sha256(hasher.finalize().into()).hex()
    }

    /// Longer for larger uploads.
    fn idle_minutes(&self) -> u32 {
        let (least, most) = IDLE_MINUTES;
        u32::try_from((least + self.subject.blocks.gib()).min(most)).unwrap_or(u32::MAX)
    }

    fn send(
        &self,
        snapshot: &str,
        missing: &Sent,
        journal: &Journal,
        sent: &(dyn Fn() + Sync),
    ) -> Result<(), AmiError> {
        let (next, stop, failure) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
        let zeros = zeros();
        let put = |buffer: &mut [u8], (index, digest): (u64, BlockDigest)| -> Result<(), AmiError> {
            let DiskSource { path, disk, .. } = self.source;
            // Blocks of the parent that are zeros on the disk are uploaded as zeros.
            read(path, &**disk, buffer, index, digest == zeros)?;
            self.aws.put_block(snapshot, index, &digest, buffer)?;
            journal.add(index)
        };
        std::thread::scope(|scope| {
            for _ in 0..self.options.workers.get().min(missing.len()) {
                scope.spawn(|| {
                    let mut buffer = vec![0; BLOCK_LEN];
                    while !stop.load(Ordering::Relaxed)
                        && let Some(block) = missing.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        match put(&mut buffer, *block) {
                            Ok(()) => sent(),
                            Err(error) => {
                                stop.store(true, Ordering::Relaxed);
                                locked(&failure).get_or_insert(error);
                            }
                        }
                    }
                });
            }
        });
        failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn complete(&self, snapshot: &str) -> Result<(), AmiError> {
        let checksum = linear_checksum(self.sent.iter().map(|(_, digest)| *digest));
        self.aws.complete_snapshot(snapshot, self.sent.len() as u64, Some(&checksum))?;
        Ok(())
    }

    /// Whether AWS refuses a block because the snapshot is complete: a response was lost, or another publisher was
    /// faster. The state may be delayed.
    fn is_completed(&self, snapshot: &str, error: &AmiError) -> bool {
        let is_refusal = matches!(error, AmiError::Aws(error)
            if error.refusal().is_some() && !error.is_denied() && !error.is_expired() && !error.is_temporary());
        is_refusal && until_completed(self.aws, snapshot, SEALED).is_ok()
    }
}

/// Reads a block, or zeros.
fn read(path: &Path, disk: &dyn ReadAt, buffer: &mut [u8], index: u64, is_zero: bool) -> Result<(), AmiError> {
    if is_zero {
        buffer.fill(0);
        return Ok(());
    }
    let read = disk.read_exact_at(buffer, index * BLOCK);
    read.map_err(|source| AmiError::Read { path: path.to_owned(), index, source })
}

/// The result of an upload as text.
pub(super) fn summary(transferred: Transferred) -> String {
    let Transferred { blocks, resumed } = transferred;
    let sent = format!("{} uploaded, {}", counted(blocks, "block"), human_bytes(blocks * BLOCK));
    if resumed == 0 { sent } else { format!("{sent}; {} by an earlier attempt", counted(resumed, "block")) }
}
