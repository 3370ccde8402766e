//! Recognizes the contents of a disk or partition by magic numbers, as a [`Signature`].
//!
//! For unsupported contents, so that messages can name them. Each row of the table refers to the definition of its
//! numbers; offsets are bytes from the start. Nothing but these bytes is checked: a corrupt file system is named, too.

use crate::source::ReadAt;

/// What was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub name: &'static str,
    pub role: Role,
    /// Label; empty if there is none or its location is unknown.
    pub label: String,
    /// UUID as in `blkid`; empty if its location is unknown.
    pub uuid: String,
}

/// The type of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A supported file system.
    Known,
    /// An unsupported file system.
    FileSystem,
    /// Encrypted data.
    Encrypted,
    /// A member of a volume that consists of several.
    Member,
    Swap,
    /// Metadata of another program.
    Metadata,
}

impl Signature {
    /// A FAT file system that was recognized by more than its magic number.
    pub(crate) fn of_fat(name: &'static str) -> Self {
        Self { name, role: Role::Known, label: String::new(), uuid: String::new() }
    }

    /// Why its files cannot be read.
    pub fn reason(&self) -> String {
        let Self { name, role, .. } = self;
        match role {
            Role::Known => format!("{name} that cannot be read"),
            Role::FileSystem => format!("{name}: unsupported file system, only ext2, ext3, ext4 and FAT can be read"),
            Role::Encrypted => format!("encrypted ({name}): its contents are unreadable without the key"),
            Role::Member => format!("{name}: volumes on it are not supported"),
            Role::Swap => "swap space has no files".to_owned(),
            Role::Metadata => format!("{name} has no files"),
        }
    }
}

/// A row of the table.
struct Row {
    name: &'static str,
    role: Role,
    offset: u64,
    magic: &'static [u8],
    label: Field,
    uuid: Field,
}

/// Offset and length of a field; a length of 0 means that it is missing.
type Field = (u64, usize);

const NONE: Field = (0, 0);

/// Shorter rows, without label and UUID.
const fn row(name: &'static str, role: Role, offset: u64, magic: &'static [u8]) -> Row {
    Row { name, role, offset, magic, label: NONE, uuid: NONE }
}

/// In order of precedence. Containers come before file systems, of which they may contain remains.
const TABLE: &[Row] = &[
    // LUKS1 and LUKS2 On-Disk Format Specification, "Binary header".
    row("LUKS", Role::Encrypted, 0, b"LUKS\xba\xbe"),
    // libbde, "BitLocker Drive Encryption (BDE) format".
    row("BitLocker", Role::Encrypted, 3, b"-FVE-FS-"),
    // LVM2, lib/format_text/layout.h and lib/label/label.h: one of the first four sectors.
    row("LVM2 physical volume", Role::Member, 0x218, b"LVM2 001"),
    row("LVM2 physical volume", Role::Member, 0x18, b"LVM2 001"),
    row("LVM2 physical volume", Role::Member, 0x418, b"LVM2 001"),
    row("LVM2 physical volume", Role::Member, 0x618, b"LVM2 001"),
    // Linux, include/uapi/linux/raid/md_p.h: versions 1.2 and 1.1.
    row("Linux software RAID member", Role::Member, 0x1000, b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
    row("Linux software RAID member", Role::Member, 0, b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
    // Linux, Documentation/admin-guide/device-mapper/verity.rst.
    row("dm-verity hash tree", Role::Metadata, 0, b"verity\0\0"),
    // Linux, fs/xfs/libxfs/xfs_format.h: sb_uuid, sb_fname.
    Row { name: "xfs", role: Role::FileSystem, offset: 0, magic: b"XFSB", label: (0x6C, 12), uuid: (0x20, 16) },
    // Linux, include/uapi/linux/btrfs_tree.h: superblock at 64 KiB; fsid, label.
    Row {
        name: "btrfs",
        role: Role::FileSystem,
        offset: 0x1_0040,
        magic: b"_BHRfS_M",
        label: (0x1_012B, 256),
        uuid: (0x1_0020, 16),
    },
    // Linux, fs/bcachefs/bcachefs_format.h: superblock at 4 KiB.
    row("bcachefs", Role::FileSystem, 0x1018, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    // Linux, include/linux/f2fs_fs.h: superblock at 1 KiB.
    row("f2fs", Role::FileSystem, 0x400, b"\x10\x20\xf5\xf2"),
    // Linux, fs/squashfs/squashfs_fs.h.
    row("squashfs", Role::FileSystem, 0, b"hsqs"),
    // Linux, fs/erofs/erofs_fs.h: superblock at 1 KiB; uuid, volume_name.
    Row {
        name: "erofs",
        role: Role::FileSystem,
        offset: 0x400,
        magic: b"\xe2\xe1\xf5\xe0",
        label: (0x440, 16),
        uuid: (0x430, 16),
    },
    // Linux, fs/jfs/jfs_superblock.h; fs/reiserfs/reiserfs.h.
    row("jfs", Role::FileSystem, 0x8000, b"JFS1"),
    row("reiserfs", Role::FileSystem, 0x1_0034, b"ReIsEr"),
    // Apple File System Reference, nx_superblock_t.
    row("APFS", Role::FileSystem, 0x20, b"NXSB"),
    // Linux, fs/ntfs3/ntfs.h; exFAT file system specification, 3.1.
    row("ntfs", Role::FileSystem, 3, b"NTFS    "),
    row("exfat", Role::FileSystem, 3, b"EXFAT   "),
    // Linux, include/linux/swap.h, for pages of 4, 8, 16 and 64 KiB.
    swap(0x1000),
    swap(0x2000),
    swap(0x4000),
    swap(0x1_0000),
    // Linux, Documentation/filesystems/ext4/super.rst: s_magic, s_volume_name, s_uuid.
    Row { name: "ext4", role: Role::Known, offset: 0x438, magic: b"\x53\xef", label: (0x478, 16), uuid: (0x468, 16) },
    // Microsoft's FAT specification 1.03, 3.1 and 3.2: BS_FilSysType.
    row("FAT", Role::Known, 0x36, b"FAT12   "),
    row("FAT", Role::Known, 0x36, b"FAT16   "),
    row("FAT", Role::Known, 0x52, b"FAT32   "),
    // ECMA-119, 8.1: the first volume descriptor is sector 16 of 2048 bytes; volume identifier. Last, as an
    // installation medium may be a disk as well.
    Row { name: "iso9660", role: Role::FileSystem, offset: 0x8001, magic: b"CD001", label: (0x8028, 32), uuid: NONE },
];

const fn swap(page: u64) -> Row {
    Row {
        name: "swap",
        role: Role::Swap,
        offset: page - 10,
        magic: b"SWAPSPACE2",
        label: (0x41C, 16),
        uuid: (0x40C, 16),
    }
}

/// The signature in the first kilobytes of `source`; `None` if it is unknown, or they cannot be read.
pub fn probe(source: &dyn ReadAt) -> Option<Signature> {
    let row = TABLE.iter().find(|row| {
        let found = field(source, (row.offset, row.magic.len()));
        found.is_some_and(|found| found == row.magic)
    })?;
    let label = field(source, row.label).unwrap_or_default();
    let label = label.split(|byte| *byte == 0).next().unwrap_or_default();
    let uuid = field(source, row.uuid).unwrap_or_default();
    Some(Signature {
        name: row.name,
        role: row.role,
        label: String::from_utf8_lossy(label).trim_end().to_owned(),
        uuid: if uuid.is_empty() { String::new() } else { hyphenated(&uuid) },
    })
}

/// A UUID's bytes in the order and grouping of `blkid`.
pub fn hyphenated(uuid: &[u8]) -> String {
    let mut text = String::new();
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn field(source: &dyn ReadAt, (offset, len): Field) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    source.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
}
