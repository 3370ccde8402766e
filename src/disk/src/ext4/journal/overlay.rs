//! A volume with blocks of its journal shown in place of others.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::superblock::MAGIC;
use crate::source::ReadAt;

/// A block shown from another location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// Its location, in blocks of the volume.
    pub(super) at: u64,
    /// Whether its first word, the magic number of the journal, is stored as zeros.
    pub(super) escaped: bool,
}

/// The volume, with the replaced blocks by number.
pub(super) struct Overlay {
    inner: Arc<dyn ReadAt>,
    block: u64,
    shown: BTreeMap<u64, Shown>,
}

impl Overlay {
    pub(super) fn new(inner: Arc<dyn ReadAt>, block: u64, shown: BTreeMap<u64, Shown>) -> Self {
        Self { inner, block, shown }
    }

    /// Fills `part` from `skip` bytes into a block.
    fn read_shown(&self, part: &mut [u8], shown: Shown, skip: u64) -> io::Result<()> {
        let offset = shown.at.checked_mul(self.block).and_then(|start| start.checked_add(skip));
        self.inner.read_exact_at(part, offset.ok_or(io::ErrorKind::UnexpectedEof)?)?;
        if shown.escaped {
            let skip = usize::try_from(skip).unwrap_or(usize::MAX);
            let word = MAGIC.to_be_bytes();
            part.iter_mut().zip(word.iter().skip(skip)).for_each(|(byte, magic)| *byte = *magic);
        }
        Ok(())
    }
}

impl ReadAt for Overlay {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.inner.read_exact_at(buf, offset)?;
        for (block, shown) in self.shown.range(offset / self.block..end.div_ceil(self.block)) {
            let start = (block * self.block).max(offset);
            let stop = ((block + 1) * self.block).min(end);
            let index = |at: u64| usize::try_from(at - offset).unwrap_or(usize::MAX);
            self.read_shown(&mut buf[index(start)..index(stop)], *shown, start - block * self.block)?;
        }
        Ok(())
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let first = self.shown.range(offset / self.block..).next().map(|(block, _)| *block * self.block);
        let shown = first.map(|start| start.max(offset)..(start + self.block).min(self.len()));
        let inner = self.inner.next_data(offset)?;
        Ok(match (inner, shown) {
            (Some(inner), Some(shown)) if shown.start < inner.start => Some(shown),
            (Some(inner), _) => Some(inner),
            (None, shown) => shown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay() -> Overlay {
        let mut bytes = vec![1; 4];
        bytes.extend([2; 4]);
        bytes.extend([0; 4]);
        bytes.extend([4, 5, 6, 7, 8, 9, 10, 11]);
        let shown = [(0, Shown { at: 3, escaped: false }), (2, Shown { at: 4, escaped: true })];
        Overlay::new(Arc::new(bytes), 4, BTreeMap::from(shown))
    }

    #[test]
    fn blocks_of_the_journal_are_shown() {
        let overlay = overlay();
        let whole = [4, 5, 6, 7, 2, 2, 2, 2, 0xc0, 0x3b, 0x39, 0x98, 4, 5, 6, 7, 8, 9, 10, 11];
        for start in 0..whole.len() {
            for end in start..=whole.len() {
                let mut part = vec![0xaa; end - start];
                overlay.read_exact_at(&mut part, start as u64).unwrap();
                assert_eq!(part, whole[start..end], "{start}..{end}");
            }
        }
        assert!(overlay.read_exact_at(&mut [0; 2], 19).is_err());
    }

    #[test]
    fn what_is_shown_is_data() {
        let shown = [(2, Shown { at: 0, escaped: false })];
        let empty = Overlay::new(Arc::new(vec![0; 16]), 4, BTreeMap::from(shown));
        assert!(empty.next_data(0).unwrap().is_some_and(|data| data.start <= 8));
        assert_eq!(overlay().next_data(20).unwrap(), None);
    }
}
