//! The file format of the cache, "glibc-ld.so.cache1.1" (glibc, `sysdeps/generic/dl-cache.h`): little-endian, offsets in bytes from the
//! start of the file.
//!
//! A header of 48 bytes, an entry of 24 bytes for each library, the strings, and at the next multiple of 4 the extensions: the names below
//! `glibc-hwcaps`, and the version of ldconfig that wrote the file.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::search::version_order;

const MAGIC: &[u8; 20] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// `cache_file_new_flags_endian_little`.
const LITTLE_ENDIAN: u8 = 2;
/// Where the header says where the extensions are.
const EXTENSION_OFFSET: usize = 32;
const EXTENSION_MAGIC: u32 = 0xeaa4_2174;
const SECTION: usize = 16;
const TAG_GENERATOR: u32 = 0;
const TAG_GLIBC_HWCAPS: u32 = 1;
/// `DL_CACHE_HWCAP_EXTENSION`: the entry is of a subdirectory of `glibc-hwcaps`, whose number is in the low 32 bits.
const HWCAP_EXTENSION: u64 = 1 << 62;

/// Longest generator, in bytes: Debian's has 67.
const MAX_GENERATOR: usize = 1024;

/// One library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) path: Vec<u8>,
    pub(super) flags: u32,
    pub(super) hwcaps: Option<Vec<u8>>,
    pub(super) isa_level: u32,
}

/// What wrote a cache, from its extensions; `None` if it does not say, or is not such a cache.
pub(super) fn generator(cache: &[u8]) -> Option<Vec<u8>> {
    cache.strip_prefix(MAGIC)?;
    let start = offset(cache, EXTENSION_OFFSET)?;
    let directory = cache.get(start..)?;
    if number(directory, 0)? != EXTENSION_MAGIC {
        return None;
    }
    let sections = directory.get(8..)?.chunks_exact(SECTION).take(offset(directory, 4)?);
    let section = sections.into_iter().find(|section| number(section, 0) == Some(TAG_GENERATOR))?;
    let (start, len) = (offset(section, 8)?, offset(section, 12)?);
    Some(cache.get(start..start.checked_add(len)?).filter(|text| text.len() <= MAX_GENERATOR)?.to_vec())
}

/// What the caches of an ldconfig say wrote them: a text in the program, `ldconfig (PACKAGE) KIND release version VERSION`.
pub(super) fn generator_of(program: &[u8]) -> Option<Vec<u8>> {
    const START: &[u8] = b"\0ldconfig (";
    let at = program.windows(START.len()).position(|window| window == START)?;
    let text = program.get(at + 1..)?.split(|byte| *byte == 0).next()?;
    let is_whole = text.windows(17).any(|window| window == b" release version ");
    (is_whole && text.len() <= MAX_GENERATOR).then(|| text.to_vec())
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn offset(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(number(bytes, at)?).ok()
}

/// The cache of these entries, in any order except that the first of equal ones stays first. `subdirectories` are all
/// names below `glibc-hwcaps`, whether there are libraries or not. `None` when an offset exceeds 32 bits.
pub(super) fn encode(mut entries: Vec<Entry>, subdirectories: &[Vec<u8>], generator: &[u8]) -> Option<Vec<u8>> {
    entries.sort_by(order);
    let names = entries.iter().flat_map(|entry| [&entry.name, &entry.path]).chain(subdirectories);
    let start = HEADER.checked_add(entries.len().checked_mul(ENTRY)?)?;
    let (strings, places) = strings(names.map(Vec::as_slice).collect(), start)?;
    let place = |name: &[u8]| places.get(name).copied();
    let mut used: Vec<&[u8]> = entries.iter().filter_map(|entry| entry.hwcaps.as_deref()).collect();
    used.sort_unstable();
    used.dedup();

    let mut cache = MAGIC.to_vec();
    push(&mut cache, entries.len())?;
    push(&mut cache, strings.len())?;
    cache.extend([LITTLE_ENDIAN, 0, 0, 0]);
    let extensions = start.checked_add(strings.len())?.checked_next_multiple_of(4)?;
    push(&mut cache, extensions)?;
    cache.resize(HEADER, 0);
    for entry in &entries {
        cache.extend(entry.flags.to_le_bytes());
        cache.extend(place(&entry.name)?.to_le_bytes());
        cache.extend(place(&entry.path)?.to_le_bytes());
        cache.extend([0; 4]);
        let number = entry.hwcaps.as_deref().map(|name| used.binary_search(&name)).transpose().ok()?;
        let number = number.map(u64::try_from).transpose().ok()?;
        let hwcap = number.map_or(0, |number| HWCAP_EXTENSION | (u64::from(entry.isa_level) << 32) | number);
        cache.extend(hwcap.to_le_bytes());
    }
    cache.extend(strings);
    cache.resize(extensions, 0);
    let used: Vec<u32> = used.into_iter().map(place).collect::<Option<_>>()?;
    extend(&mut cache, &used, generator)?;
    Some(cache)
}

/// Appends the extensions: a directory of sections, then their contents.
fn extend(cache: &mut Vec<u8>, hwcaps: &[u32], generator: &[u8]) -> Option<()> {
    let count = if hwcaps.is_empty() { 1 } else { 2 };
    let first = cache.len() + 8 + count * SECTION;
    let second = first + hwcaps.len() * 4;
    cache.extend(EXTENSION_MAGIC.to_le_bytes());
    push(cache, count)?;
    let mut section = |tag: u32, offset: usize, len: usize| {
        cache.extend(tag.to_le_bytes());
        cache.extend([0; 4]);
        push(cache, offset)?;
        push(cache, len)
    };
    section(TAG_GENERATOR, second, generator.len())?;
    if !hwcaps.is_empty() {
        section(TAG_GLIBC_HWCAPS, first, hwcaps.len() * 4)?;
    }
    cache.extend(hwcaps.iter().flat_map(|place| place.to_le_bytes()));
    cache.extend(generator);
    Some(())
}

fn push(cache: &mut Vec<u8>, value: usize) -> Option<()> {
    cache.extend(u32::try_from(value).ok()?.to_le_bytes());
    Some(())
}

/// Later versions first, as the loader's binary search wants it; for equal names first the libraries of
/// `glibc-hwcaps`, where the loader stops at the first that is none.
fn order(left: &Entry, right: &Entry) -> Ordering {
    let by_name = version_order(&right.name, &left.name).then(right.flags.cmp(&left.flags));
    by_name.then_with(|| match (&left.hwcaps, &right.hwcaps) {
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (left, right) => left.cmp(right),
    })
}

/// Where each string is.
type Places<'a> = BTreeMap<&'a [u8], u32>;

/// All strings, each ended by NUL, and their places, counted from the start of a file where they stand at `start`. A
/// string that ends another one is not stored again: sorted by their reversed bytes, descending, it follows that one.
fn strings(mut names: Vec<&[u8]>, start: usize) -> Option<(Vec<u8>, Places<'_>)> {
    names.sort_unstable_by(|left, right| right.iter().rev().cmp(left.iter().rev()));
    names.dedup();
    let (mut bytes, mut places) = (Vec::new(), BTreeMap::new());
    let mut previous: &[u8] = &[];
    for name in names {
        if bytes.is_empty() || !previous.ends_with(name) {
            bytes.extend_from_slice(name);
            bytes.push(0);
        }
        let at = bytes.len() - 1 - name.len();
        places.insert(name, u32::try_from(start.checked_add(at)?).ok()?);
        previous = name;
    }
    Some((bytes, places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_share_their_ends() {
        let (bytes, places) = strings(vec![b"so", b"libx.so", b"/lib/libx.so", b"y"], 100).unwrap();
        assert_eq!(bytes, b"y\0/lib/libx.so\0");
        let places: Vec<u32> = [&b"y"[..], b"/lib/libx.so", b"libx.so", b"so"].map(|name| places[name]).to_vec();
        assert_eq!(places, [100, 102, 107, 112]);
    }

    #[test]
    fn the_program_contains_what_its_caches_name() {
        let text = &b"ldconfig (Debian GLIBC 2.41-12) stable release version 2.41"[..];
        for (program, expected) in [
            ([b"\x7fELF\0", text, b"\0more"].concat(), Some(text.to_vec())),
            ([b"\x7fELF\0", text].concat(), Some(text.to_vec())),
            ([b"\x7fELF\0my", text, b"\0"].concat(), None),
            (b"\0ldconfig (%s) %s\0".to_vec(), None),
            (Vec::new(), None),
        ] {
            assert_eq!(generator_of(&program), expected, "{}", String::from_utf8_lossy(&program));
        }
    }

    #[test]
    fn a_damaged_cache_names_no_generator() {
        let cache = encode(Vec::new(), &[], b"ldconfig").unwrap();
        assert_eq!(generator(&cache).as_deref(), Some(&b"ldconfig"[..]));
        for len in 0..cache.len() {
            assert_eq!(generator(&cache[..len]), None, "{len} bytes");
        }
        for at in [0, 19, EXTENSION_OFFSET + 3, HEADER, HEADER + 8, HEADER + 19, HEADER + 23] {
            let mut damaged = cache.clone();
            damaged[at] ^= 0x80;
            assert_eq!(generator(&damaged), None, "byte {at}");
        }
    }
}
