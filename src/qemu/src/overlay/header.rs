//! The header of a qcow2 overlay: writing an empty one, reading an existing one.

use super::*;
use vmbake_common::message;
use vmbake_common::message::FileError;

/// Maximum disk size: QEMU limits the L1 table to 32 MiB.
pub const MAX_SIZE: u64 = (32 << 20) / 8 * L2_REACH;

const CLUSTER_BITS: u32 = 16;
const CLUSTER: u64 = 1 << CLUSTER_BITS;
/// Disk bytes per L2 table.
const L2_REACH: u64 = CLUSTER / 8 * CLUSTER;
const MAGIC_VERSION: u64 = 0x5146_49fb_0000_0003;
/// Length of the header of version 3 without further fields.
const LEN: u64 = 104;
/// Maximum length of a backing file name.
const MAX_NAME: usize = 1023;
/// Header extensions: backing file format, ours, end.
const FORMAT: u32 = 0xe279_2aca;
const CONTENT: u32 = u32::from_be_bytes(*b"vmbk");
const END: u32 = 0;

/// Backing file of an overlay.
pub struct Header {
    /// Disk size in bytes.
    pub size: u64,
    pub backing: PathBuf,
    /// Identity of the image's content.
    pub content: Option<String>,
    format: String,
}

impl Header {
    pub fn new(size: u64, guest: &Guest, path: &Path) -> Result<Self, OverlayError> {
        let open = |source| OverlayError::File(FileError::new(path, "open the disk", source));
        let backing = guest.path.canonicalize().map_err(open)?;
        if backing.as_os_str().len() > MAX_NAME {
            return Err(OverlayError::Message(message!(
                "{}: the image path is too long for a qcow2 header",
                backing.display()
            )));
        }
        let content = Some(guest.identity().map_err(open)?.content);
        Ok(Self { size, backing, content, format: guest.format.to_string() })
    }

    /// Writes an empty overlay: header, reference counts, L1 table.
    pub fn write(&self, file: &File) -> io::Result<()> {
        let l1_len = self.size.div_ceil(L2_REACH);
        let l1_clusters = (l1_len * 8).div_ceil(CLUSTER);
        let clusters = 3 + l1_clusters;
        let mut extensions = Vec::new();
        let content = self.content.as_deref().unwrap_or_default();
        for (kind, data) in [(FORMAT, self.format.as_str()), (CONTENT, content), (END, "")] {
            let len = u32::try_from(data.len()).map_err(io::Error::other)?;
            extensions.extend([kind, len].iter().flat_map(|word| word.to_be_bytes()));
            extensions.extend(data.as_bytes());
            extensions.resize(extensions.len().next_multiple_of(8), 0);
        }
        let name = self.backing.as_os_str().as_bytes();
        let words = [
            MAGIC_VERSION,
            LEN + extensions.len() as u64,                       // backing_file_offset
            (name.len() as u64) << 32 | u64::from(CLUSTER_BITS), // backing_file_size, cluster_bits
            self.size,                                           // size
            l1_len,                                              // crypt_method, l1_size
            3 * CLUSTER,                                         // l1_table_offset
            CLUSTER,                                             // refcount_table_offset
            1 << 32,                                             // refcount_table_clusters, nb_snapshots
            0,                                                   // snapshots_offset
            0,                                                   // incompatible_features
            0,                                                   // compatible_features
            0,                                                   // autoclear_features
            4 << 32 | LEN,                                       // refcount_order (16 bits), header_length
        ];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend(extensions);
        bytes.extend(name);
        file.set_len(clusters * CLUSTER)?;
        file.write_all_at(&bytes, 0)?;
        // One refcount table, one block: every cluster has one reference.
        file.write_all_at(&(2 * CLUSTER).to_be_bytes(), CLUSTER)?;
        let counts: Vec<u8> = (0..clusters).flat_map(|_| 1u16.to_be_bytes()).collect();
        file.write_all_at(&counts, 2 * CLUSTER)
    }

    /// Reads the header of an overlay; the inner error describes a file that is not an overlay.
    pub fn read(file: &File) -> io::Result<Result<Self, &'static str>> {
        let mut bytes = Vec::new();
        let len = file.metadata()?.len().min(CLUSTER);
        bytes.resize(usize::try_from(len).map_err(io::Error::other)?, 0);
        file.read_exact_at(&mut bytes, 0)?;
        Ok(parse(&bytes))
    }
}

/// Reads a header from the first cluster of a file.
fn parse(bytes: &[u8]) -> Result<Header, &'static str> {
    const SHORT: &str = "truncated qcow2 header";
    if word(bytes, 0) != Some(MAGIC_VERSION) {
        return Err("not qcow2 version 3");
    }
    let name_at = word(bytes, 8).ok_or(SHORT)?;
    let name_len = word(bytes, 16).ok_or(SHORT)? >> 32;
    let size = word(bytes, 24).ok_or(SHORT)?;
    let extensions_at = word(bytes, 96).ok_or(SHORT)? & u64::from(u32::MAX);
    if name_at == 0 {
        return Err("a qcow2 image without a backing file");
    }
    let name = part(bytes, name_at, name_len).ok_or(SHORT)?;
    let content = extension(bytes, extensions_at, CONTENT).map(|text| String::from_utf8_lossy(text).into_owned());
    let format = extension(bytes, extensions_at, FORMAT).map(|text| String::from_utf8_lossy(text).into_owned());
    let backing = PathBuf::from(std::ffi::OsString::from_vec(name.to_vec()));
    Ok(Header { size, backing, content, format: format.unwrap_or_default() })
}

/// Finds the header extension `kind` in the list that starts at `at`.
fn extension(bytes: &[u8], mut at: u64, kind: u32) -> Option<&[u8]> {
    loop {
        let head = word(bytes, at)?;
        let (found, len) = (head >> 32, head & u64::from(u32::MAX));
        let data = at.checked_add(8)?;
        match found {
            _ if found == u64::from(END) => return None,
            _ if found == u64::from(kind) => return part(bytes, data, len),
            _ => at = data.checked_add(len.next_multiple_of(8))?,
        }
    }
}

fn word(bytes: &[u8], at: u64) -> Option<u64> {
    Some(u64::from_be_bytes(part(bytes, at, 8)?.try_into().ok()?))
}

fn part(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(at).ok()?..usize::try_from(at.checked_add(len)?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_damage_is_told() {
        let header = Header {
            size: 3 << 30,
            backing: PathBuf::from("/images/a, \"b\"\u{e4}.raw"),
            content: Some("3221225472 1.000000002".to_owned()),
            format: "raw".to_owned(),
        };
        let file = tempfile::tempfile().unwrap();
        header.write(&file).unwrap();
        let read = Header::read(&file).unwrap().unwrap();
        assert_eq!((read.size, &read.backing, &read.content), (header.size, &header.backing, &header.content));
        let mut bytes = vec![0; 512];
        file.read_exact_at(&mut bytes, 0).unwrap();
        // Truncation and corruption give an error, never a panic.
        for len in 0..bytes.len() {
            let cut = parse(&bytes[..len]);
            assert!(cut.is_err() || cut.is_ok_and(|cut| cut.backing == header.backing), "{len}");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = parse(&damaged);
            }
        }
    }
}
