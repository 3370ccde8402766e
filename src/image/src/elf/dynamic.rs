//! The dynamic section (gABI chapter 5, "Dynamic Section"): entries of two words, `d_tag` and `d_val`, up to `DT_NULL`.
//! Names are offsets into the string table, whose location is an address.

use super::input::{Fields, Input};
use super::{ElfError, MAX_STRING, PT_LOAD, Segment};

const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_SONAME: u64 = 14;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// Maximum length of the dynamic section in bytes: that of a program with 100 libraries has 2,000.
const MAX_DYNAMIC: u64 = 64 << 10;

/// Maximum total length of the names of needed libraries: the section can repeat one long string 4,000 times.
const MAX_NEEDED: usize = 64 << 10;

/// The names in the dynamic section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// `DT_NEEDED`: libraries, in the order in which they are loaded.
    pub needed: Vec<Vec<u8>>,
    /// `DT_SONAME`: the name of this library.
    pub soname: Option<Vec<u8>>,
    /// `DT_RPATH`: directories to search, also for dependencies of the libraries.
    pub rpath: Option<Vec<u8>>,
    /// `DT_RUNPATH`: directories to search for the direct dependencies.
    pub runpath: Option<Vec<u8>>,
}

/// Reads the dynamic section in `segment`; `None` if it has no string table, and so no names.
pub(super) fn read(
    input: &Input<'_>,
    header: &Fields,
    segment: &Segment,
    segments: &[Segment],
) -> Result<Option<Dynamic>, ElfError> {
    if segment.p_filesz > MAX_DYNAMIC {
        let (what, found) = ("the length of PT_DYNAMIC", segment.p_filesz);
        return Err(ElfError::Unsupported { what, found, limit: MAX_DYNAMIC });
    }
    let bytes = input.bytes("PT_DYNAMIC", segment.p_offset, segment.p_filesz)?;
    let entries = entries(header, &bytes);
    let find = |tag| entries.iter().find(|(d_tag, _)| *d_tag == tag).map(|(_, value)| *value);
    let Some(address) = find(DT_STRTAB) else { return Ok(None) };
    let strings = Strings { input, offset: file_offset(segments, address)?, len: find(DT_STRSZ).unwrap_or(0) };
    let text = |tag| find(tag).map(|at| strings.get(at)).transpose();
    let (mut needed, mut total) = (Vec::new(), 0);
    for (_, at) in entries.iter().filter(|(d_tag, _)| *d_tag == DT_NEEDED) {
        let name = strings.get(*at)?;
        total += name.len();
        if total > MAX_NEEDED {
            let (what, found, limit) = ("the length of all DT_NEEDED", total as u64, MAX_NEEDED as u64);
            return Err(ElfError::Unsupported { what, found, limit });
        }
        needed.push(name);
    }
    Ok(Some(Dynamic { needed, soname: text(DT_SONAME)?, rpath: text(DT_RPATH)?, runpath: text(DT_RUNPATH)? }))
}

/// Tags and values, up to `DT_NULL`.
fn entries(header: &Fields, bytes: &[u8]) -> Vec<(u64, u64)> {
    let size = if header.wide() { 16 } else { 8 };
    let pairs = bytes.chunks_exact(size).map(|bytes| {
        let fields = header.like(bytes);
        if header.wide() { (fields.u64(0), fields.u64(8)) } else { (fields.u32(0).into(), fields.u32(4).into()) }
    });
    pairs.take_while(|(d_tag, _)| *d_tag != DT_NULL).collect()
}

/// Converts a virtual address to an offset in the file.
fn file_offset(segments: &[Segment], address: u64) -> Result<u64, ElfError> {
    let inside = segments.iter().filter(|segment| segment.p_type == PT_LOAD).find_map(|segment| {
        let at = address.checked_sub(segment.p_vaddr).filter(|at| *at < segment.p_filesz)?;
        segment.p_offset.checked_add(at)
    });
    inside.ok_or(ElfError::Corrupt { what: "DT_STRTAB", found: address, expected: "an address of a PT_LOAD" })
}

struct Strings<'a> {
    input: &'a Input<'a>,
    offset: u64,
    len: u64,
}

impl Strings<'_> {
    /// Bytes to read first: most names are shorter.
    const FIRST: u64 = 128;

    /// The string at `at`, without its NUL.
    fn get(&self, at: u64) -> Result<Vec<u8>, ElfError> {
        let what = "an offset into the string table";
        let outside = ElfError::Corrupt { what, found: at, expected: "below DT_STRSZ" };
        let left = self.len.checked_sub(at).filter(|left| *left > 0).ok_or(outside)?;
        let what = "a string of the dynamic section";
        let offset = self.offset.saturating_add(at);
        for limit in [Self::FIRST, MAX_STRING] {
            let mut bytes = self.input.bytes(what, offset, left.min(limit))?;
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                bytes.truncate(end);
                return Ok(bytes);
            }
        }
        match left > MAX_STRING {
            true => Err(ElfError::Unsupported { what: "the length of a string", found: left, limit: MAX_STRING }),
            false => Err(ElfError::Corrupt { what: "DT_STRSZ", found: self.len, expected: "the end of a string" }),
        }
    }
}
