//! Swap files, as created by mkswap(8): a header in the first page (`union swap_header` of linux/swap.h, version 1, little-endian), and
//! zeros. All blocks are allocated in the file system, as swapon(8) requires; in the disk image, the zeros take no space.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::Kind;

use super::MergeError;
use super::place::Target;
use vmbake_common::digest::Digest;
pub use vmbake_layer::{PAGE, Schema};

/// Offset of `info`, behind the boot bits.
const INFO: usize = 1024;
/// Offset of `magic`, the last ten bytes of the page.
const MAGIC: usize = 4086;

/// swapon(8) warns of others.
const MODE: u16 = 0o600;

/// The content: a first page, and zeros.
struct SwapContent {
    header: Vec<u8>,
    len: u64,
}

impl ReadAt for SwapContent {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64).filter(|end| *end <= self.len);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.fill(0);
        let rest = usize::try_from(offset).ok().and_then(|offset| self.header.get(offset..)).unwrap_or_default();
        let len = rest.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..len), rest.get(..len)) {
            to.copy_from_slice(from);
        }
        Ok(())
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        Ok((offset < PAGE).then_some(offset..PAGE))
    }
}

/// Writes the swap file of a layer.
pub(super) fn write(target: &mut Target, schema: &Schema) -> Result<(), MergeError> {
    let Some((swap, len)) = schema.swap.as_ref().and_then(|swap| Some((swap, swap.len_bytes()?))) else {
        return Ok(());
    };
    target.check_visible(swap.path.as_bytes())?;
    let found = target.wrap(target.tree.find(swap.path.as_bytes()))?.map(|id| target.tree.inode(id));
    // That of an image that is baked anew gives way.
    if let Some(found) = found.filter(|found| !matches!(found.kind, Kind::File(_)) || found.meta.mode & 0o7777 != MODE)
    {
        return Err(MergeError::Occupied {
            path: swap.path.clone(),
            artifact: format!("`swap` of layer {}", schema.name),
            found: found.kind.name(),
            wanted: "new file",
        });
    }
    // The same inputs give the same file.
    let uuid = uuid(&format!("swap\n{}\n{}\n{len}\n", schema.name, swap.path));
    let meta = target.meta(MODE);
    target.source_file(&swap.path, meta, Arc::new(SwapContent { header: header(len, uuid), len }))
}

fn header(len: u64, uuid: [u8; 16]) -> Vec<u8> {
    let last_page = u32::try_from(len / PAGE - 1).unwrap_or(u32::MAX);
    let mut page = vec![0; INFO];
    page.extend(1_u32.to_le_bytes()); // version
    page.extend(last_page.to_le_bytes());
    page.extend(0_u32.to_le_bytes()); // nr_badpages
    page.extend(uuid);
    page.resize(MAGIC, 0);
    page.extend(b"SWAPSPACE2");
    page
}

/// A UUID of version 8 (RFC 9562, section 5.8) of a text.
fn uuid(text: &str) -> [u8; 16] {
    let Digest::Sha256(digest) = Digest::of(text.as_bytes()) else { return [0; 16] };
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}
