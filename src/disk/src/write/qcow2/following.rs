//! Computes the SHA-256 of a file while it is written.
//!
//! The hash starts with the header, which refers to the data after the last cluster. So the lengths of all clusters
//! must be known in advance. Otherwise the complete file is read again.

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

/// The layout of a file.
pub struct Plan {
    tables: Tables,
    chunks: VecDeque<Vec<Piece>>,
}

impl Plan {
    pub fn new(disk_len: u64, compression: ClusterCompression) -> Result<Self, WriteError> {
        Ok(Self { tables: Tables::new(disk_len, compression)?, chunks: VecDeque::new() })
    }

    /// Adds the next chunk of the disk; only the stored lengths of its clusters are used.
    pub fn add(&mut self, chunk: &Chunk) {
        self.chunks.push_back(self.tables.place(chunk));
    }
}

/// A thread that reads a file as it is written, up to the part that is final.
pub struct Following {
    /// The pieces of each chunk still to come, and up to where the file is then complete.
    chunks: VecDeque<(Vec<Piece>, u64)>,
    end: End,
    marks: Option<Sender<u64>>,
    thread: Option<JoinHandle<Result<[u8; 32], WriteError>>>,
}

impl Following {
    /// Follows `file`, which must be written as planned.
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

    pub fn file_len(&self) -> u64 {
        self.end.file_len
    }

    /// Records the written pieces of the next chunk.
    pub fn wrote(&mut self, pieces: &[Piece]) {
        match self.chunks.pop_front() {
            Some((planned, complete)) if planned == pieces => self.notify(complete),
            _ => self.marks = None,
        }
    }

    /// The digest of the complete file; `None` if it was not written as planned.
    pub fn finish(mut self, end: &End) -> Option<[u8; 32]> {
        let planned = (&self.end.tables, &self.end.header, self.end.file_len);
        if !self.chunks.is_empty() || planned != (&end.tables, &end.header, end.file_len) {
            self.marks = None;
        }
        self.notify(end.file_len);
        self.marks.take()?;
        // After a read error, the file is read again, which reports the error.
        self.thread.take()?.join().ok()?.ok()
    }

    fn notify(&mut self, complete: u64) {
        // A thread with an error has closed the channel; the error is reported at the end.
        let _listens = self.marks.as_ref().map(|marks| marks.send(complete));
    }
}

/// After an error, the thread must release the file.
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

/// The SHA-256 of `len` bytes of a complete file.
pub fn whole(file: &File, len: u64) -> Result<[u8; 32], WriteError> {
    let mut hash = Sha256::new();
    update(&mut hash, file, 0, len)?;
    Ok(hash.finalize().into())
}

fn update(hash: &mut Sha256, file: &File, mut at: u64, end: u64) -> Result<(), WriteError> {
    // Fits into the cache of a core.
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

    /// Writes a file of `chunks`, followed according to a plan of `planned`; returns its digest by following, and by
    /// reading.
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
