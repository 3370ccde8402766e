//! Features (`s_feature_compat`, `_incompat`, `_ro_compat`): their names, and which of them are refused by readers and
//! by bakes.

use super::error::{REBUILD, REPAIR};
use super::{Location, ReadError};

/// How a feature is handled.
enum Use {
    /// Readable, or irrelevant for a reader; an authored volume preserves its effect.
    Read,
    /// Readable, but an authored volume would lose its effect; with a hint.
    NotBase(&'static str),
    /// Refused, with a hint.
    Refuse(&'static str),
}

/// A feature: bit, name in `dumpe2fs`, and how it is handled.
type Feature = (u32, &'static str, Use);

/// `s_feature_compat`.
const COMPAT: &[Feature] = &[
    (0x1, "dir_prealloc", Use::Read),
    (0x2, "imagic_inodes", Use::Read),
    (0x4, "has_journal", Use::Read),
    (0x8, "ext_attr", Use::Read),
    (0x10, "resize_inode", Use::Read),
    (0x20, "dir_index", Use::Read),
    (0x40, "lazy_bg", Use::NotBase(REBUILD)),
    (0x100, "snapshot_bitmap", Use::NotBase(REBUILD)),
    (0x200, "sparse_super2", Use::Read),
    (0x400, "fast_commit", Use::Read),
    (0x800, "stable_inodes", Use::Read),
    (0x1000, "orphan_file", Use::Read),
];

/// `s_feature_incompat`: unknown ones are refused, as by the kernel.
const INCOMPAT: &[Feature] = &[
    (0x1, "compression", Use::Refuse(REBUILD)),
    (FILETYPE, "filetype", Use::Read),
    (NEEDS_RECOVERY, "needs_recovery", Use::NotBase(REPAIR)),
    (0x8, "journal_dev", Use::Refuse("use the volume that this external journal belongs to")),
    (META_BG, "meta_bg", Use::Read),
    (0x40, "extent", Use::Read),
    (BITS64, "64bit", Use::Read),
    (0x100, "mmp", Use::NotBase("run `tune2fs -O ^mmp` on it")),
    (0x200, "flex_bg", Use::Read),
    (EA_INODE, "ea_inode", Use::Read),
    (0x1000, "dirdata", Use::Refuse(REBUILD)),
    (CSUM_SEED, "metadata_csum_seed", Use::Read),
    (LARGE_DIR, "large_dir", Use::Read),
    (INLINE_DATA, "inline_data", Use::Read),
    (0x1_0000, "encrypt", Use::NotBase(REBUILD)),
    (0x2_0000, "casefold", Use::NotBase(REBUILD)),
];

/// `s_feature_ro_compat`: unknown ones are ignored by readers.
const RO_COMPAT: &[Feature] = &[
    (SPARSE_SUPER, "sparse_super", Use::Read),
    (0x2, "large_file", Use::Read),
    (0x4, "btree_dir", Use::NotBase(REBUILD)),
    (0x8, "huge_file", Use::Read),
    (GDT_CSUM, "uninit_bg", Use::Read),
    (0x20, "dir_nlink", Use::Read),
    (0x40, "extra_isize", Use::Read),
    (0x80, "snapshot", Use::NotBase(REBUILD)),
    (QUOTA, "quota", Use::NotBase("run `tune2fs -O ^quota` on it")),
    (BIGALLOC, "bigalloc", Use::Read),
    (METADATA_CSUM, "metadata_csum", Use::Read),
    (0x800, "replica", Use::NotBase(REBUILD)),
    (0x1000, "read-only", Use::Read),
    (0x2000, "project", Use::NotBase("run `tune2fs -O ^project` on it")),
    (SHARED_BLOCKS, "shared_blocks", Use::Read),
    (0x8000, "verity", Use::NotBase(REBUILD)),
    (0x1_0000, "orphan_present", Use::NotBase(REPAIR)),
];

/// Bit of `s_feature_compat`: the superblock lists up to two groups with a backup.
const SPARSE_SUPER2: u32 = 0x200;
const HAS_JOURNAL: u32 = 0x4;
const DIR_INDEX: u32 = 0x20;
const ORPHAN_FILE: u32 = 0x1000;
const FILETYPE: u32 = 0x2;
const NEEDS_RECOVERY: u32 = 0x4;
const META_BG: u32 = 0x10;
const BITS64: u32 = 0x80;
const EA_INODE: u32 = 0x400;
const CSUM_SEED: u32 = 0x2000;
const LARGE_DIR: u32 = 0x4000;
const INLINE_DATA: u32 = 0x8000;
const SPARSE_SUPER: u32 = 0x1;
const GDT_CSUM: u32 = 0x10;
const SHARED_BLOCKS: u32 = 0x4000;
const QUOTA: u32 = 0x100;
const BIGALLOC: u32 = 0x200;
const METADATA_CSUM: u32 = 0x400;

/// The three words of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    pub(super) compat: u32,
    pub(super) incompat: u32,
    pub(super) ro_compat: u32,
}

impl Features {
    pub(super) fn sparse_super2(self) -> bool {
        self.compat & SPARSE_SUPER2 != 0
    }

    pub(super) fn has_journal(self) -> bool {
        self.compat & HAS_JOURNAL != 0
    }

    pub(super) fn dir_index(self) -> bool {
        self.compat & DIR_INDEX != 0
    }

    pub(super) fn orphan_file(self) -> bool {
        self.compat & ORPHAN_FILE != 0
    }

    pub(super) fn filetype(self) -> bool {
        self.incompat & FILETYPE != 0
    }

    pub(super) fn needs_recovery(self) -> bool {
        self.incompat & NEEDS_RECOVERY != 0
    }

    pub(super) fn meta_bg(self) -> bool {
        self.incompat & META_BG != 0
    }

    pub(super) fn bits64(self) -> bool {
        self.incompat & BITS64 != 0
    }

    pub(super) fn ea_inode(self) -> bool {
        self.incompat & EA_INODE != 0
    }

    pub(super) fn csum_seed(self) -> bool {
        self.incompat & CSUM_SEED != 0
    }

    pub(super) fn large_dir(self) -> bool {
        self.incompat & LARGE_DIR != 0
    }

    pub(super) fn sparse_super(self) -> bool {
        self.ro_compat & SPARSE_SUPER != 0
    }

    /// Whether group descriptors have a CRC-16, if `metadata_csum` is not set.
    pub(super) fn gdt_csum(self) -> bool {
        self.ro_compat & GDT_CSUM != 0
    }

    /// Whether quota files are inodes without a name.
    pub(super) fn quota(self) -> bool {
        self.ro_compat & QUOTA != 0
    }

    pub(super) fn bigalloc(self) -> bool {
        self.ro_compat & BIGALLOC != 0
    }

    /// Whether files may share blocks.
    pub(super) fn shared_blocks(self) -> bool {
        self.ro_compat & SHARED_BLOCKS != 0
    }

    pub(super) fn metadata_csum(self) -> bool {
        self.ro_compat & METADATA_CSUM != 0
    }

    /// The names of known features, in the order of the tables.
    pub(super) fn names(self) -> Vec<&'static str> {
        self.known().map(|(_, name, _)| *name).collect()
    }

    /// The names of unknown features, as in `dumpe2fs`.
    pub(super) fn unknown(self) -> Vec<String> {
        let words = [('C', self.compat, COMPAT), ('I', self.incompat, INCOMPAT), ('R', self.ro_compat, RO_COMPAT)];
        let unknown = |(kind, bits, table): (char, u32, &[Feature])| {
            let bits = table.iter().fold(bits, |bits, (bit, ..)| bits & !bit);
            (0..32).filter(move |at| bits >> at & 1 != 0).map(move |at| format!("FEATURE_{kind}{at}"))
        };
        words.into_iter().flat_map(unknown).collect()
    }

    /// Refuses features that are not supported by readers.
    pub(super) fn check(self) -> Result<(), ReadError> {
        for (_, name, usage) in self.known() {
            if let Use::Refuse(hint) = usage {
                return Err(refused(name, hint));
            }
        }
        match self.unknown().iter().find(|name| name.starts_with("FEATURE_I")) {
            Some(name) => Err(refused(name, REBUILD)),
            None => Ok(()),
        }
    }

    /// Refuses features that an authored volume would lose.
    pub(super) fn check_base(self) -> Result<(), ReadError> {
        for (_, name, usage) in self.known() {
            if let Use::NotBase(hint) | Use::Refuse(hint) = usage {
                return Err(refused(name, hint));
            }
        }
        match self.unknown().first() {
            Some(name) => Err(refused(name, REBUILD)),
            None => Ok(()),
        }
    }

    fn known(self) -> impl Iterator<Item = &'static Feature> {
        let words = [(self.compat, COMPAT), (self.incompat, INCOMPAT), (self.ro_compat, RO_COMPAT)];
        words.into_iter().flat_map(|(bits, table)| table.iter().filter(move |(bit, ..)| bits & bit != 0))
    }
}

fn refused(name: &str, hint: &'static str) -> ReadError {
    ReadError::unsupported(Location::Superblock, format!("feature {name}"), hint)
}
