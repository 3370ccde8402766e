//! Bounded reads of a file, and integers in the data.

use vmbake_disk::source::{Map, Sources};

use super::{Class, Data, ElfError};

pub(super) struct Input<'a> {
    pub(super) map: &'a Map,
    pub(super) sources: &'a Sources,
}

impl Input<'_> {
    /// `len` bytes at `offset`, which must be inside the file. Callers bound `len`.
    pub(super) fn bytes(&self, what: &'static str, offset: u64, len: u64) -> Result<Vec<u8>, ElfError> {
        let file_len = self.map.len();
        let inside = offset.checked_add(len).is_some_and(|end| end <= file_len);
        let size = usize::try_from(len).ok().filter(|_| inside);
        let size = size.ok_or(ElfError::Truncated { what, offset, len, file_len })?;
        let mut bytes = vec![0; size];
        let read = self.map.read_exact_at(self.sources, &mut bytes, offset);
        read.map_err(|source| ElfError::Read { offset, len, source })?;
        Ok(bytes)
    }
}

/// Bytes with the class and the byte order of their file. An integer outside of them is 0: callers read whole
/// structures.
pub(super) struct Fields {
    pub(super) bytes: Vec<u8>,
    pub(super) class: Class,
    pub(super) data: Data,
}

impl Fields {
    /// Other bytes of the same file.
    pub(super) fn like(&self, bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), class: self.class, data: self.data }
    }

    /// Whether addresses have 64 bits.
    pub(super) fn wide(&self) -> bool {
        self.class == Class::Elf64
    }

    pub(super) fn u16(&self, at: usize) -> u16 {
        self.array(at).map_or(0, |bytes| match self.data {
            Data::Lsb => u16::from_le_bytes(bytes),
            Data::Msb => u16::from_be_bytes(bytes),
        })
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        self.array(at).map_or(0, |bytes| match self.data {
            Data::Lsb => u32::from_le_bytes(bytes),
            Data::Msb => u32::from_be_bytes(bytes),
        })
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        self.array(at).map_or(0, |bytes| match self.data {
            Data::Lsb => u64::from_le_bytes(bytes),
            Data::Msb => u64::from_be_bytes(bytes),
        })
    }

    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..)?.first_chunk().copied()
    }
}
