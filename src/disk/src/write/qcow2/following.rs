//! The SHA-256 of a file, made while it is written.
//!
//! The hash begins with the header, which names what stands behind the last cluster. So it can only be made meanwhile where
//! the lengths of all clusters are known before. Otherwise the file is read once more when it is complete.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use sha2::{Digest, Sha256};

use super::tables::{End, Piece, Tables};
use super::{CLUSTER, CLUSTER_LEN, index};
use crate::image::{ClusterCompression, Format};
use crate::write::chunk::Chunk;
use crate::write::{WriteError, output_error};

/// Where everything in a file will be.
pub struct Plan {
    tables: Tables,
    chunks: VecDeque<Vec<Piece>>,
}

impl Plan {
    pub fn new(disk_len: u64, compression: ClusterCompression) -> Result<Self, WriteError> {
        Ok(Self { tables: Tables::new(disk_len, compression)?, chunks: VecDeque::new() })
    }

    /// Adds the next chunk of the disk, of which only what its clusters are is looked at.
    pub fn add(&mut self, chunk: &Chunk) {
        self.chunks.push_back(self.tables.place(chunk));
    }
}

/// A thread that reads a file as it is written, as far as nothing more will change there.
pub struct Following {
    /// What each chunk still to come writes, and up to where the file is complete then.
    chunks: VecDeque<(Vec<Piece>, u64)>,
    end: End,
    marks: Option<Sender<u64>>,
    thread: Option<JoinHandle<Result<[u8; 32], WriteError>>>,
}

impl Following {
    /// Follows `file`, which will be as planned.
    pub fn start(file: &File, plan: Plan) -> Result<Self, WriteError> {
        let end = plan.tables.finish();
        let first = |pieces: &[Piece]| pieces.iter().map(|piece| piece.at).min().unwrap_or(u64::MAX);
        let (mut complete, mut chunks) = (first(&end.tables), VecDeque::new());
        for pieces in plan.chunks.into_iter().rev() {
            let before = complete.min(first(&pieces));
            chunks.push_front((pieces, complete));
            complete = before;
        }
        let same = file.try_clone().map_err(|source| output_error(Format::Qcow2, "open", 0, source))?;
        let mut header = end.header.clone();
        header.resize(CLUSTER, 0);
        let (marks, inbox) = channel();
        let thread = Builder::new().spawn(move || follow(&same, &header, &inbox));
        let thread = thread.map_err(|source| WriteError::Thread { source })?;
        Ok(Self { chunks, end, marks: Some(marks), thread: Some(thread) })
    }

    /// How long the file will be.
    pub fn file_len(&self) -> u64 {
        self.end.file_len
    }

    /// Takes note of what was written of the next chunk.
    pub fn wrote(&mut self, pieces: &[Piece]) {
        match self.chunks.pop_front() {
            Some((planned, complete)) if planned == pieces => self.tell(complete),
            _ => self.marks = None,
        }
    }

    /// The digest of the file, when all of it is written; `None` if it is not what was planned.
    pub fn finish(mut self, end: &End) -> Option<[u8; 32]> {
        let planned = (&self.end.tables, &self.end.header, self.end.file_len);
        if !self.chunks.is_empty() || planned != (&end.tables, &end.header, end.file_len) {
            self.marks = None;
        }
        self.tell(end.file_len);
        self.marks.take()?;
        // What cannot be read now is read again, and refused then.
        self.thread.take()?.join().ok()?.ok()
    }

    fn tell(&mut self, complete: u64) {
        // A thread that has met an error does not listen any more; it says so at the end.
        let _listens = self.marks.as_ref().map(|marks| marks.send(complete));
    }
}

/// After an error, nothing holds the file any more either.
impl Drop for Following {
    fn drop(&mut self) {
        self.marks = None;
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

fn follow(file: &File, header: &[u8], marks: &Receiver<u64>) -> Result<[u8; 32], WriteError> {
    let mut hash = Sha256::new_with_prefix(header);
    let mut at = CLUSTER_LEN;
    for mark in marks {
        update(&mut hash, file, at, mark)?;
        at = at.max(mark);
    }
    Ok(hash.finalize().into())
}

/// The SHA-256 of `len` bytes of a file that is complete.
pub fn whole(file: &File, len: u64) -> Result<[u8; 32], WriteError> {
    let mut hash = Sha256::new();
    update(&mut hash, file, 0, len)?;
    Ok(hash.finalize().into())
}

fn update(hash: &mut Sha256, file: &File, mut at: u64, end: u64) -> Result<(), WriteError> {
    // It stays in a core's own cache.
    let mut buf = vec![0; 64 << 10];
    while at < end {
        let part = index(end - at).min(buf.len());
        let read = file.read_exact_at(&mut buf[..part], at);
        read.map_err(|source| output_error(Format::Qcow2, "read back", at, source))?;
        hash.update(&buf[..part]);
        at += part as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tables::Bytes;
    use super::*;
    use crate::write::chunk::{CHUNK, Cluster, Stored};

    /// A chunk with compressed clusters of these lengths.
    fn chunk(number: u64, lens: &[usize]) -> Chunk {
        let mut chunk = Chunk::default();
        chunk.set_range(number * CHUNK, 4 * CHUNK);
        for len in lens {
            let start = chunk.packed.len();
            chunk.packed.extend((0_u8..=255).cycle().skip(*len % 7).take(*len));
            let stored = Stored::Compressed(start..start + len);
            chunk.clusters.push(Cluster { stored, name: None, sum: [0; 32] });
        }
        chunk
    }

    /// Writes a file of `chunks`, followed as one that was planned of `planned`; its digest by following, and by reading.
    fn write(planned: &[Chunk], chunks: &[Chunk]) -> (Option<[u8; 32]>, [u8; 32]) {
        let mut plan = Plan::new(4 * CHUNK, ClusterCompression::Zlib).unwrap();
        planned.iter().for_each(|chunk| plan.add(chunk));
        let file = tempfile::tempfile().unwrap();
        let mut following = Following::start(&file, plan).unwrap();
        file.set_len(following.file_len()).unwrap();
        let mut tables = Tables::new(4 * CHUNK, ClusterCompression::Zlib).unwrap();
        for chunk in chunks {
            let pieces = tables.place(chunk);
            for Piece { at, bytes } in &pieces {
                let Bytes::Packed(range) = bytes else { continue };
                file.write_all_at(&chunk.packed[range.clone()], *at).unwrap();
            }
            following.wrote(&pieces);
        }
        let end = tables.finish();
        for Piece { at, bytes } in &end.tables {
            let Bytes::Table(table) = bytes else { continue };
            file.write_all_at(table, *at).unwrap();
        }
        file.set_len(end.file_len).unwrap();
        file.write_all_at(&end.header, 0).unwrap();
        (following.finish(&end), whole(&file, end.file_len).unwrap())
    }

    #[test]
    fn a_file_is_hashed_while_it_is_written_as_planned() {
        let chunks = || [chunk(0, &[60_000, 10, 65_535]), chunk(1, &[]), chunk(2, &[30_000; 16])];
        let (followed, read) = write(&chunks(), &chunks());
        assert_eq!(followed, Some(read));
        for other in [&[60_000, 11, 65_535][..], &[60_000, 10], &[60_000, 65_535, 10]] {
            let [_, second, third] = chunks();
            assert_eq!(write(&chunks(), &[chunk(0, other), second, third]).0, None, "{other:?}");
        }
        assert_eq!(write(&chunks(), &chunks()[..2]).0, None);
        assert_eq!(write(&chunks()[..2], &chunks()).0, None);
    }
}
