//! Upload journals, used to resume interrupted uploads.
//!
//! A file in the store for each disk, account and region: a line with the snapshot, then a line for each confirmed
//! block. It is used only if AWS returns the same snapshot for the same request, and the checksum that completes a
//! snapshot detects a wrong journal. The writer holds a lock, so that no two processes publish the same disk from one
//! store.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use vmbake_common::digest::Digest;
use vmbake_common::ownership;
use vmbake_common::parallel::locked;
use vmbake_common::progress::emit_message;

use super::error::AmiError;

/// The directory in the store.
pub(super) const FOLDER: &str = "published";
/// The line for a completed snapshot.
const COMPLETE: &str = "complete";

/// The first line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    /// The number of restarts.
    attempt: u32,
    /// The snapshot; empty before the first.
    snapshot: String,
}

/// The journal of a snapshot.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    head: Head,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    sent: BTreeSet<u64>,
    is_complete: bool,
}

impl Journal {
    /// Opens the journal of a disk, and waits for its lock.
    pub(super) fn open(store: &Path, digest: &Digest, account: &str, region: &str) -> Result<Self, AmiError> {
        let folder = store.join(FOLDER);
        let path = folder.join(format!("{}.{account}.{region}.journal", digest.hex()));
        let failed = |source| AmiError::Journal { path: path.clone(), source };
        ownership::create_folder(&folder).map_err(failed)?;
        let file = ownership::open_or_make(&path).map_err(failed)?;
        if file.try_lock().is_err() {
            emit_message("another process is publishing this disk: waiting for it");
            file.lock().map_err(failed)?;
        }
        let (head, sent, is_complete) = read(&file).map_err(failed)?;
        Ok(Self { path, head, state: Mutex::new(State { file, sent, is_complete }) })
    }

    /// The number of restarts; part of the client token.
    pub(super) fn attempt(&self) -> u32 {
        self.head.attempt
    }

    /// The current snapshot, if any.
    pub(super) fn snapshot(&self) -> Option<&str> {
        Some(self.head.snapshot.as_str()).filter(|snapshot| !snapshot.is_empty())
    }

    /// Starts anew, unless the journal is for this snapshot.
    pub(super) fn begin(&mut self, attempt: u32, snapshot: &str) -> Result<(), AmiError> {
        let head = Head { attempt, snapshot: snapshot.to_owned() };
        if self.head == head {
            return Ok(());
        }
        let text = serde_json::to_string(&head).map_err(|error| self.failed(error.into()))? + "\n";
        let mut state = locked(&self.state);
        (state.sent, state.is_complete) = (BTreeSet::new(), false);
        let file = &mut state.file;
        let begun = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
        begun.and_then(|()| file.sync_data()).map_err(|source| self.failed(source))?;
        drop(state);
        self.head = head;
        Ok(())
    }

    /// The uploaded blocks.
    pub(super) fn sent(&self) -> BTreeSet<u64> {
        locked(&self.state).sent.clone()
    }

    pub(super) fn is_complete(&self) -> bool {
        locked(&self.state).is_complete
    }

    /// Records an uploaded block.
    pub(super) fn add(&self, index: u64) -> Result<(), AmiError> {
        let mut state = locked(&self.state);
        state.file.write_all(format!("{index}\n").as_bytes()).map_err(|source| self.failed(source))?;
        state.sent.insert(index);
        Ok(())
    }

    /// Records that the snapshot is complete.
    pub(super) fn complete(&self) -> Result<(), AmiError> {
        let mut state = locked(&self.state);
        state.is_complete = true;
        state.file.write_all(format!("{COMPLETE}\n").as_bytes()).map_err(|source| self.failed(source))
    }

    /// Deletes a journal that is no longer needed.
    pub(super) fn remove(self) -> Result<(), AmiError> {
        // A process waiting for the lock then holds an unlinked file, and finds the published AMI.
        std::fs::remove_file(&self.path).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> AmiError {
        AmiError::Journal { path: self.path.clone(), source }
    }
}

/// Parses a journal; empty if it is invalid. An incomplete last line, left by a kill, is truncated.
fn read(mut file: &File) -> std::io::Result<(Head, BTreeSet<u64>, bool)> {
    let (mut reader, mut line, mut whole) = (BufReader::new(file), String::new(), 0);
    let (mut head, mut sent, mut is_complete) = (None, BTreeSet::new(), false);
    while reader.read_line(&mut line).unwrap_or(0) > 0 {
        let Some(text) = line.strip_suffix('\n') else { break };
        match head {
            None => match serde_json::from_str::<Head>(text) {
                Ok(found) => head = Some(found),
                Err(_) => break,
            },
            Some(_) if text == COMPLETE => is_complete = true,
            Some(_) => match text.parse() {
                Ok(index) => drop(sent.insert(index)),
                Err(_) => break,
            },
        }
        whole += line.len() as u64;
        line.clear();
    }
    drop(reader);
    file.set_len(whole)?;
    file.seek(std::io::SeekFrom::Start(whole))?;
    Ok((head.unwrap_or_default(), sent, is_complete))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(store: &Path) -> Journal {
        Journal::open(store, &Digest::of(b"disk"), "123456789012", "eu-central-1").unwrap()
    }

    #[test]
    fn it_goes_on_where_it_ended() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path());
        assert_eq!((journal.attempt(), journal.snapshot(), journal.sent().len()), (0, None, 0));
        journal.begin(2, "snap-1").unwrap();
        [7, 5, 7].into_iter().for_each(|index| journal.add(index).unwrap());
        drop(journal);
        let mut journal = open(dir.path());
        assert_eq!((journal.attempt(), journal.snapshot(), journal.is_complete()), (2, Some("snap-1"), false));
        journal.begin(2, "snap-1").unwrap();
        assert_eq!(journal.sent(), BTreeSet::from([5, 7]));
        journal.complete().unwrap();
        drop(journal);
        let mut journal = open(dir.path());
        assert!(journal.is_complete());
        journal.begin(2, "snap-2").unwrap();
        assert_eq!((journal.sent().len(), journal.is_complete()), (0, false));
        journal.remove().unwrap();
        assert_eq!(open(dir.path()).snapshot(), None);
    }

    #[test]
    fn what_a_kill_cut_off_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = open(dir.path());
        journal.begin(0, "snap-1").unwrap();
        [3, 12, 345].into_iter().for_each(|index| journal.add(index).unwrap());
        let path = journal.path.clone();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        let expected = |len: usize| -> BTreeSet<u64> {
            let lines = String::from_utf8(whole[..len].to_vec()).unwrap();
            let whole = lines.rsplit_once('\n').map_or("", |(whole, _)| whole);
            whole.lines().skip(1).map(|line| line.parse().unwrap()).collect()
        };
        for len in 0..=whole.len() {
            std::fs::write(&path, &whole[..len]).unwrap();
            let mut journal = open(dir.path());
            assert_eq!(journal.sent(), expected(len), "{len}");
            journal.begin(0, "snap-1").unwrap();
            journal.add(99).unwrap();
            drop(journal);
            assert!(open(dir.path()).sent().contains(&99), "{len}");
        }
    }

    #[test]
    fn what_is_no_journal_counts_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = open(dir.path()).path;
        for text in ["", "\n", "x\n1\n", "{\"attempt\":0}\n1\n", "\u{0}\u{1}\n3\n", "1\n2\n"] {
            std::fs::write(&path, text).unwrap();
            let journal = open(dir.path());
            assert_eq!((journal.snapshot(), journal.sent().len()), (None, 0), "{text:?}");
        }
        std::fs::write(&path, b"\xff\xfe\n1\n").unwrap();
        assert_eq!(open(dir.path()).sent().len(), 0);
    }
}
