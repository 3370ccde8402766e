//! Checks the headers of a tar archive before a library reads it, so that an archive that would exhaust memory or disk is refused first.
//!
//! Blocks of 512 bytes (POSIX.1-2001, ustar). The number of members is limited, and the size of extended headers, which a reader keeps in
//! memory. Damage is left to the reader, which stops there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{ArchiveError, MemberFault, refused};
use vmbake_common::message;
use vmbake_common::message::Message;

const BLOCK: usize = 512;

/// Longest extended header, in bytes: names have 4 KiB, extended attributes of Linux 64 KiB.
const MAX_EXTENDED: u64 = 1 << 20;

/// What has been seen of an archive.
#[derive(Debug)]
pub(super) struct Headers {
    members: usize,
    limit: usize,
    /// The header that is being put together.
    block: Vec<u8>,
    /// Bytes of content until the next header.
    skip: u64,
    /// Whether the archive has ended: at its first block of zeros, as for the reader.
    ended: bool,
}

impl Headers {
    /// For an archive of at most `limit` members.
    pub(super) fn new(limit: usize) -> Self {
        Self { members: 0, limit, block: Vec::with_capacity(BLOCK), skip: 0, ended: false }
    }

    /// Takes the next bytes of the archive.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), ArchiveError> {
        while !bytes.is_empty() && !self.ended {
            let count = match self.skip {
                0 => bytes.len().min(BLOCK - self.block.len()),
                skip => usize::try_from(skip).unwrap_or(usize::MAX).min(bytes.len()),
            };
            let (now, later) = bytes.split_at(count);
            if self.skip > 0 {
                self.skip -= count as u64;
            } else {
                self.block.extend_from_slice(now);
                if self.block.len() == BLOCK {
                    let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK));
                    self.skip = self.header(&block)?;
                }
            }
            bytes = later;
        }
        Ok(())
    }

    /// Judges a header; returns how many bytes of content follow it.
    fn header(&mut self, block: &[u8]) -> Result<u64, ArchiveError> {
        if block.iter().all(|byte| *byte == 0) {
            self.ended = true;
            return Ok(0);
        }
        let header = tar::Header::from_byte_slice(block);
        let Ok(size) = header.entry_size() else { return Ok(0) };
        let refused = |fault: MemberFault| Err(refused(&header.path_bytes(), fault));
        match header.entry_type().as_byte() {
            b'L' | b'K' | b'x' | b'g' if size > MAX_EXTENDED => {
                return refused(MemberFault::Message(message!(
                    "extended header of {size} bytes, more than {}",
                    MAX_EXTENDED
                )));
            }
            b'L' | b'K' | b'x' | b'g' => {}
            b'S' => return refused(MemberFault::Sparse),
            _ => self.members += 1,
        }
        if self.members > self.limit {
            return Err(ArchiveError::TooMany { limit: self.limit });
        }
        Ok(size.checked_next_multiple_of(BLOCK as u64).unwrap_or(u64::MAX))
    }

    /// Looks at all headers of the uncompressed archive `file`, and at what extended headers hold.
    pub(super) fn check(file: &File, limit: usize) -> Result<Extended, ArchiveError> {
        let mut headers = Self::new(limit);
        let mut extended = Extended::default();
        let mut block = [0; BLOCK];
        let mut at = 0_u64;
        while !headers.ended && file.read_exact_at(&mut block, at).is_ok() {
            let skip = headers.header(&block)?;
            extended.see(file, tar::Header::from_byte_slice(&block), at)?;
            match at.checked_add(BLOCK as u64).and_then(|start| start.checked_add(skip)) {
                Some(next) => at = next,
                None => break,
            }
        }
        extended.end = (!headers.ended).then_some(at);
        Ok(extended)
    }
}

/// The extended headers of an archive, of those kinds that say something of the member behind them.
#[derive(Debug, Default)]
pub(super) struct Extended {
    /// Offset and length of the records of a member, by the offset of its header.
    records: BTreeMap<u64, (u64, usize)>,
    /// Records of a member that has not come yet.
    pending: Option<(u64, usize)>,
    /// Whether a long name or target of it has come, as GNU tar writes them.
    long: bool,
    /// Where the archive ends that has no block of zeros at its end.
    pub(super) end: Option<u64>,
}

impl Extended {
    /// The records of the member whose header is at `offset`, if it has an extended header.
    pub(super) fn read(&self, file: &File, offset: u64) -> Result<Option<Vec<u8>>, io::Error> {
        let Some((offset, len)) = self.records.get(&offset) else { return Ok(None) };
        let mut bytes = vec![0; *len];
        file.read_exact_at(&mut bytes, *offset)?;
        Ok(Some(bytes))
    }

    fn see(&mut self, file: &File, header: &tar::Header, at: u64) -> Result<(), ArchiveError> {
        let refused = |fault: MemberFault| Err(refused(&header.path_bytes(), fault));
        let content = at.saturating_add(BLOCK as u64);
        // The reader refuses invalid numbers.
        let len = header.entry_size().ok().and_then(|len| usize::try_from(len).ok()).unwrap_or(0);
        match header.entry_type().as_byte() {
            b'x' => self.pending = Some((content, len)),
            b'L' | b'K' => {
                self.long = true;
                let mut last = [0];
                let there = len > 0 && file.read_exact_at(&mut last, content.saturating_add(len as u64 - 1)).is_ok();
                if there && last != [0] {
                    return refused(MemberFault::Message(Message::new("long name does not end with a NUL byte")));
                }
            }
            b'g' => {}
            _ => {
                self.long = false;
                if let Some(records) = self.pending.take() {
                    self.records.insert(at, records);
                }
            }
        }
        // Which of them wins is not agreed on.
        if self.long && self.pending.is_some() {
            return refused(MemberFault::Message(Message::new(
                "extended headers of GNU tar and of pax for one member",
            )));
        }
        Ok(())
    }
}
