//! The tar files of archives: regular files only, each with the one header that its name and length lead to.
//!
//! Format: POSIX.1 "ustar Interchange Format", blocks of 512 bytes. Stricter than that: mode 0644, user and group 0, time 0, no names
//! of users; zeros behind each file; two blocks of zeros at the end, and nothing behind them. Lengths above 8 GiB are binary, as GNU
//! and BSD write them.

use std::path::Path;

use tar::{EntryType, Header};
use vmbake_disk::source::ReadAt;

use super::CarryError;

/// Bytes of a block.
pub const BLOCK: u64 = 512;
/// What an archive ends with.
pub const END: [u8; 1024] = [0; 1024];
/// Most members: more than any store has blobs.
const MAX_MEMBERS: usize = 1 << 20;

/// A regular file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TarMember {
    /// Its name.
    pub name: String,
    /// Where its content begins.
    pub at: u64,
    /// Length of its content.
    pub len: u64,
}

impl TarMember {
    /// Where its header is.
    pub fn header_at(&self) -> u64 {
        self.at.saturating_sub(BLOCK)
    }
}

/// The header of a regular file.
pub fn header(name: &str, len: u64) -> Result<[u8; 512], CarryError> {
    let wrong = || CarryError::Name { name: name.to_owned() };
    if !is_plain(name) {
        return Err(wrong());
    }
    let mut header = Header::new_ustar();
    header.set_path(name).map_err(|_| wrong())?;
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(len);
    header.set_cksum();
    Ok(*header.as_bytes())
}

/// Zeros behind a file of that length.
pub fn padding(len: u64) -> &'static [u8] {
    // Less than a block.
    let rest = usize::try_from(len.wrapping_neg() % BLOCK).unwrap_or_default();
    &END[..rest]
}

/// Whether a name leads to a file below the folder that it is unpacked in, by one way only.
fn is_plain(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    !name.chars().any(|char| char.is_control() || char == '\\') && name.split('/').all(is_part)
}

/// All files of the archive at `path`, whose bytes are `source`. None of their contents is read.
pub fn members(source: &dyn ReadAt, path: &Path) -> Result<Vec<TarMember>, CarryError> {
    let (mut members, mut at) = (Vec::new(), 0);
    loop {
        let Some(header) = block(source, path, at)? else { return check_end(source, path, at).map(|()| members) };
        let member = member(&header, path, at)?;
        let end = member.len.checked_next_multiple_of(BLOCK).and_then(|len| member.at.checked_add(len));
        let Some(end) = end.filter(|end| *end <= source.len()) else {
            let (path, what) = (path.to_owned(), format!("the end of {}, which has {} bytes", member.name, member.len));
            return Err(CarryError::Truncated { path, at: source.len(), what });
        };
        let mut behind = vec![0; padding(member.len).len()];
        read(source, path, &mut behind, member.at + member.len)?;
        if behind.iter().any(|byte| *byte != 0) || members.len() == MAX_MEMBERS {
            return Err(refused(path, &member.name, at, "has something behind its content, or is one too many"));
        }
        members.push(member);
        at = end;
    }
}

/// The header at `at`; `None` where there are zeros.
fn block(source: &dyn ReadAt, path: &Path, at: u64) -> Result<Option<[u8; 512]>, CarryError> {
    if source.len().saturating_sub(at) < BLOCK {
        let what = "the blocks of zeros at its end".to_owned();
        return Err(CarryError::Truncated { path: path.to_owned(), at: source.len(), what });
    }
    let mut header = [0; 512];
    read(source, path, &mut header, at)?;
    Ok(header.iter().any(|byte| *byte != 0).then_some(header))
}

fn check_end(source: &dyn ReadAt, path: &Path, at: u64) -> Result<(), CarryError> {
    if block(source, path, at + BLOCK)?.is_some() {
        return Err(CarryError::Trailing { path: path.to_owned(), at: at + BLOCK });
    }
    let end = at + END.len() as u64;
    if source.len() == end { Ok(()) } else { Err(CarryError::Trailing { path: path.to_owned(), at: end }) }
}

/// What a header says, if it is the one that its name and length lead to.
fn member(bytes: &[u8; 512], path: &Path, at: u64) -> Result<TarMember, CarryError> {
    let found = Header::from_byte_slice(bytes);
    let name = String::from_utf8_lossy(&found.path_bytes()).into_owned();
    let sort = match found.entry_type() {
        EntryType::Regular => None,
        EntryType::Link => Some("is a hard link"),
        EntryType::Symlink => Some("is a symbolic link"),
        EntryType::Directory => Some("is a folder"),
        EntryType::Char | EntryType::Block => Some("is a device"),
        EntryType::Fifo => Some("is a named pipe"),
        EntryType::XHeader | EntryType::XGlobalHeader => Some("is an extended header of pax"),
        EntryType::GNULongName | EntryType::GNULongLink => Some("is a long name of GNU tar"),
        EntryType::GNUSparse => Some("is a sparse file of GNU tar"),
        _ => Some("is nothing that an archive has"),
    };
    if let Some(sort) = sort {
        return Err(refused(path, &name, at, &format!("{sort}, where only regular files may be")));
    }
    let len = found.entry_size().map_err(|_| refused(path, &name, at, "has no length"))?;
    match header(&name, len) {
        Err(_) => Err(refused(path, &name, at, "has a name that leads elsewhere")),
        Ok(expected) if expected != *bytes => {
            Err(refused(path, &name, at, "has a header in another form than vmbake writes"))
        }
        Ok(_) => Ok(TarMember { name, at: at + BLOCK, len }),
    }
}

fn refused(path: &Path, name: &str, at: u64, what: &str) -> CarryError {
    CarryError::Member { path: path.to_owned(), name: name.to_owned(), at, what: what.to_owned() }
}

fn read(source: &dyn ReadAt, path: &Path, buffer: &mut [u8], at: u64) -> Result<(), CarryError> {
    source.read_exact_at(buffer, at).map_err(|source| CarryError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_whatever_the_length() {
        for len in [0, 1, 511, 512, 8 << 30, (8 << 30) - 1, 1 << 50] {
            let bytes = header("blobs/sha256/0", len).unwrap();
            let member = member(&bytes, Path::new("a"), 1024).unwrap();
            assert_eq!(member, TarMember { name: "blobs/sha256/0".to_owned(), at: 1536, len });
            assert_eq!((len + padding(len).len() as u64) % BLOCK, 0);
        }
        let long = format!("blobs/sha512/{}", "a".repeat(128));
        assert_eq!(member(&header(&long, 3).unwrap(), Path::new("a"), 0).unwrap().name, long);
        for name in ["", "/a", "../a", "a/../b", "./a", "a//b", "a/", "a\nb", &"a".repeat(300)] {
            assert!(header(name, 0).is_err(), "{name:?}");
        }
    }
}
