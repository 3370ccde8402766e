//! Extended attributes (`ext4_xattr_entry`): converts between the on-disk format and that of `getxattr(2)`. They are
//! stored in the inode, in a block that inodes may share, and with the feature `ea_inode` in separate inodes.

use std::collections::BTreeMap;
use std::ops::Range;

use mkext4::csum;

use super::corruption::AttributeFault;
use super::error::REBUILD;
use super::superblock::Super;
use super::{Location, ReadError, acl, inodes, le16, le32, mapping};

/// Attributes by full name.
pub(super) type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// The attributes whose values have different formats on disk and in system calls.
pub(super) const ACLS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

/// First word of a list, in an inode and in a block (`EXT4_XATTR_MAGIC`).
const MAGIC: u32 = 0xea02_0000;
/// Length of an entry without its name.
const ENTRY: usize = 16;
/// Where the entries of a block start.
const BLOCK_ENTRIES: usize = 0x20;
/// Maximum length of a value in system calls (`XATTR_SIZE_MAX`).
const MAX_VALUE: u64 = 65_536;
/// `e_name_index` of `system.`; the name `data` is the rest of inline data.
const SYSTEM: u8 = 7;

/// `e_name_index` of attributes hidden from system calls: without a namespace, of encryption and of fs-verity.
const HIDDEN: [u8; 3] = [0, 9, 11];

/// The attributes in an inode.
#[derive(Default)]
pub(super) struct InBody {
    pub(super) xattrs: Xattrs,
    /// The location of the rest of inline data in the inode, in bytes.
    pub(super) data: Range<usize>,
}

/// The inode that has the attributes.
pub(super) struct Owner {
    pub(super) number: u32,
    pub(super) generation: u32,
}

/// The attributes in an inode, after its `extra` bytes of fields.
pub(super) fn in_body(volume: &Super<'_>, owner: &Owner, raw: &[u8], extra: usize) -> Result<InBody, ReadError> {
    // As in the kernel, there are none without extra fields.
    let list = raw.get(128 + extra..).filter(|list| extra != 0 && list.len() > 4 && le32(list, 0) == MAGIC);
    let Some(list) = list else { return Ok(InBody::default()) };
    let place = Location::Inode(owner.number);
    let mut body = InBody::default();
    // Values are counted from the first entry.
    let list = &list[4..];
    for entry in entries(list, list, &place)? {
        if entry.index == SYSTEM && entry.name == b"data" {
            let start = raw.len() - list.len() + entry.value.start;
            body.data = start..start + entry.value.len();
        } else {
            add(&mut body.xattrs, volume, owner, &entry, list, &place)?;
        }
    }
    Ok(body)
}

/// The attributes in a block.
pub(super) struct InBlock {
    pub(super) xattrs: Xattrs,
    /// `h_refcount`: the number of inodes that use it.
    pub(super) users: u32,
}

/// The attributes of the block at `block` of the volume, used by `owner`.
pub(super) fn in_block(volume: &Super<'_>, owner: &Owner, block: u64, bytes: &[u8]) -> Result<InBlock, ReadError> {
    let place = Location::Block { inode: owner.number, block };
    let (h_magic, h_blocks, h_checksum) = (le32(bytes, 0x00), le32(bytes, 0x08), le32(bytes, 0x10));
    if h_magic != MAGIC || h_blocks != 1 {
        let what = AttributeFault::Magic { found: h_magic, blocks: h_blocks };
        return Err(ReadError::corrupt(place, what));
    }
    if let Some(seed) = volume.seed {
        let expected = csum::xattr_block(seed, block, bytes);
        if h_checksum != expected {
            return Err(ReadError::checksum(place, h_checksum, expected));
        }
    }
    let mut xattrs = Xattrs::new();
    for entry in entries(&bytes[BLOCK_ENTRIES..], bytes, &place)? {
        add(&mut xattrs, volume, owner, &entry, bytes, &place)?;
    }
    Ok(InBlock { xattrs, users: le32(bytes, 0x04) })
}

/// An entry of a list.
struct Entry<'a> {
    /// `e_name_index`: the namespace.
    index: u8,
    name: &'a [u8],
    /// The range of the value; empty if it is in an inode.
    value: Range<usize>,
    /// `e_value_inum`, 0 if the value is here.
    inode: u32,
    /// `e_value_size`.
    size: u32,
}

/// The entries of a list, terminated by four zeros; values are counted from the start of `values`.
fn entries<'a>(list: &'a [u8], values: &[u8], place: &Location) -> Result<Vec<Entry<'a>>, ReadError> {
    let corrupt = |what: AttributeFault| ReadError::corrupt(place.clone(), what);
    let mut all = Vec::new();
    let mut at = 0;
    loop {
        let rest = list.get(at..).filter(|rest| rest.len() >= 4);
        let rest = rest.ok_or_else(|| corrupt(AttributeFault::NoEnd))?;
        if le32(rest, 0) == 0 {
            return Ok(all);
        }
        let name = rest.get(ENTRY..).and_then(|names| names.get(..usize::from(rest[0])));
        let name = name.ok_or_else(|| corrupt(AttributeFault::NameLen { len: rest[0] }))?;
        let (start, inode, size) = (usize::from(le16(rest, 0x02)), le32(rest, 0x04), le32(rest, 0x08));
        let len = if inode == 0 { usize::try_from(size).unwrap_or(usize::MAX) } else { 0 };
        let value = start..start.saturating_add(len);
        if inode == 0 && value.end > values.len() {
            return Err(corrupt(AttributeFault::ValueRange { size, at: start }));
        }
        all.push(Entry { index: rest[1], name, value, inode, size });
        at += ENTRY + name.len().next_multiple_of(4);
    }
}

fn add(
    all: &mut Xattrs,
    volume: &Super<'_>,
    owner: &Owner,
    entry: &Entry<'_>,
    values: &[u8],
    place: &Location,
) -> Result<(), ReadError> {
    let corrupt = |what: AttributeFault| ReadError::corrupt(place.clone(), what);
    if HIDDEN.contains(&entry.index) {
        return Ok(());
    }
    let Some(prefix) = prefix(entry.index) else {
        let feature = format!("attribute of namespace {}", entry.index);
        return Err(ReadError::unsupported(place.clone(), feature, REBUILD));
    };
    let name = [prefix, entry.name].concat();
    let shown = String::from_utf8_lossy(&name).into_owned();
    let is_acl = ACLS.contains(&name.as_slice());
    if name.contains(&0) || (!is_acl && ACLS.iter().any(|acl| name.starts_with(acl))) {
        return Err(corrupt(AttributeFault::Name { name: shown }));
    }
    let value = match entry.inode {
        // An empty value may have any offset.
        0 => values.get(entry.value.clone()).unwrap_or_default().to_vec(),
        number => value(volume, owner, entry, number).map_err(|error| error.of_attribute(place, &shown))?,
    };
    let value = if is_acl { acl::from_disk(&value) } else { Ok(value) };
    let value = value.map_err(|fault| corrupt(AttributeFault::Acl { name: shown.clone(), fault }))?;
    match all.insert(name, value) {
        Some(_) => Err(corrupt(AttributeFault::Twice { name: shown })),
        None => Ok(()),
    }
}

/// The prefix of a namespace.
fn prefix(index: u8) -> Option<&'static [u8]> {
    Some(match index {
        1 => b"user.",
        2 => ACLS[0],
        3 => ACLS[1],
        4 => b"trusted.",
        6 => b"security.",
        SYSTEM => b"system.",
        8 => b"system.richacl",
        10 => b"gnu.",
        _ => return None,
    })
}

/// A value in a separate inode.
fn value(volume: &Super<'_>, owner: &Owner, entry: &Entry<'_>, number: u32) -> Result<Vec<u8>, ReadError> {
    let corrupt = |what: AttributeFault| ReadError::corrupt(Location::Inode(number), what);
    if !volume.features.ea_inode() {
        return Err(corrupt(AttributeFault::NoFeature));
    }
    let found = inodes::read_value(volume, number)?;
    let (node, proof) = found.ok_or_else(|| corrupt(AttributeFault::NotValue))?;
    let size = u64::from(entry.size);
    if node.size != size || size > MAX_VALUE {
        return Err(corrupt(AttributeFault::ValueLen { found: node.size, expected: size }));
    }
    // Reading it costs at least one block.
    volume.spend_on_attribute(size.max(volume.block))?;
    let value = mapping::content(volume, &node, size)?;
    let expected = csum::crc32c_raw(volume.value_seed, &value);
    // Lustre, which introduced the feature, wrote the owner of the value instead of a checksum.
    let of_owner = proof.parent == owner.number && proof.generation == owner.generation;
    if proof.hash != expected && !of_owner {
        return Err(ReadError::checksum(Location::Inode(number), proof.hash, expected));
    }
    Ok(value)
}
