//! Sections of a kernel module: symbols and `.modinfo`.
//!
//! Format: ELF-64 Object File Format, version 1.5, for x86-64 and AArch64; little endian, offsets in bytes from the start of the file. Stricter
//! than kmod, which ignores a damaged table: every section that is read must be inside the file, and names must end in their table.

use std::collections::HashSet;

use super::Field;
use super::Names;
use crate::error::Fault;

const EHDR_LEN: u64 = 64;
const SHDR_LEN: u16 = 64;
const SYM_LEN: usize = 24;
/// `struct modversion_info` of Linux: the CRC of a symbol, and its name.
const VERSION_LEN: usize = 64;
const VERSION_NAME: usize = 8;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;
const SHT_NOBITS: u32 = 8;
const SHN_UNDEF: u16 = 0;
const STB_WEAK: u8 = 2;

/// Prefix of symbols with the checksums of exported ones.
const CRC: &[u8] = b"__crc_";

/// A section that is read.
#[derive(Clone, Copy, Debug)]
struct Section<'a> {
    /// From the start of the file.
    offset: u64,
    bytes: &'a [u8],
}

/// The sections of a module; of equal names, the first one.
#[derive(Debug)]
pub struct Elf<'a> {
    modinfo: Option<Section<'a>>,
    ksymtab_strings: Option<Section<'a>>,
    versions: Option<Section<'a>>,
    symbols: Option<Symbols<'a>>,
    /// The architecture, as Debian calls it.
    pub arch: &'static str,
}

/// `.symtab` and `.strtab`.
#[derive(Clone, Copy, Debug)]
struct Symbols<'a> {
    table: Section<'a>,
    strings: Section<'a>,
}

struct Symbol<'a> {
    name: &'a [u8],
    binding: u8,
    st_shndx: u16,
}

impl<'a> Elf<'a> {
    pub fn new(bytes: &'a [u8]) -> Result<Self, Fault> {
        let headers = section_headers(bytes)?;
        let names = headers.names(bytes)?;
        let find = |name: &[u8]| headers.find(bytes, names, name);
        let table = find(b".symtab")?;
        let symbols = table.zip(find(b".strtab")?).map(|(table, strings)| Symbols { table, strings });
        if let Some(Symbols { table, .. }) = symbols {
            multiple(table, SYM_LEN, "length of .symtab")?;
        }
        let versions = find(b"__versions")?;
        if let Some(versions) = versions {
            multiple(versions, VERSION_LEN, "length of __versions")?;
        }
        let arch = if u16_at(bytes, 18) == EM_AARCH64 { "arm64" } else { "amd64" };
        Ok(Self { arch, modinfo: find(b".modinfo")?, ksymtab_strings: find(b"__ksymtab_strings")?, versions, symbols })
    }

    /// The exported symbols: those with a checksum, or else all strings that exports refer to, which are names and namespaces.
    pub fn exports(&self) -> Result<Names, Fault> {
        let mut names = Names::default();
        for symbol in self.symbols() {
            if let Some(name) = symbol?.name.strip_prefix(CRC).filter(|name| !name.is_empty()) {
                names.push(name);
            }
        }
        if let Some(section) = self.ksymtab_strings.filter(|_| names.is_empty()) {
            if section.bytes.last().is_some_and(|last| *last != 0) {
                let end = section.offset + section.bytes.len() as u64;
                return Err(Fault::new(end, "end of __ksymtab_strings", "NUL", "a name"));
            }
            section.bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty()).for_each(|name| names.push(name));
        }
        Ok(names)
    }

    /// The needed symbols, and those of them that are weak.
    pub fn needs(&self) -> Result<(Names, Names), Fault> {
        let (mut needs, mut weak, mut seen) = (Names::default(), Names::default(), HashSet::new());
        for symbol in self.symbols() {
            let symbol = symbol?;
            if symbol.st_shndx == SHN_UNDEF && !symbol.name.is_empty() {
                needs.push(symbol.name);
                seen.insert(symbol.name);
                if symbol.binding == STB_WEAK {
                    weak.push(symbol.name);
                }
            }
        }
        // kmod reads the versions only together with symbols.
        for version in self.versions.filter(|_| self.symbols.is_some()).iter().flat_map(|section| versions(*section)) {
            let name = version?;
            if !seen.contains(name) {
                needs.push(name);
            }
        }
        Ok((needs, weak))
    }

    pub fn fields(&self) -> Result<Vec<Field>, Fault> {
        let strings = self.modinfo.iter().flat_map(|section| section.bytes.split(|byte| *byte == 0));
        let field = |text: &[u8]| match text.iter().position(|byte| *byte == b'=') {
            Some(at) => (text[..at].to_vec(), text[at + 1..].to_vec()),
            None => (text.to_vec(), Vec::new()),
        };
        Ok(strings.filter(|text| !text.is_empty()).map(field).collect())
    }

    fn symbols(&self) -> impl Iterator<Item = Result<Symbol<'a>, Fault>> {
        self.symbols.into_iter().flat_map(|symbols| {
            let entries = symbols.table.bytes.chunks_exact(SYM_LEN).enumerate();
            // The first entry is reserved.
            entries.skip(1).map(move |(number, entry)| symbols.entry(number, entry))
        })
    }
}

impl<'a> Symbols<'a> {
    fn entry(&self, number: usize, entry: &[u8]) -> Result<Symbol<'a>, Fault> {
        let offset = self.table.offset + (number * SYM_LEN) as u64;
        let name = u32_at(entry, 0);
        let name = string(self.strings, u64::from(name)).ok_or_else(|| {
            let expected = format!("a string in the {} bytes of .strtab", self.strings.bytes.len());
            Fault::new(offset, "st_name", expected, name)
        })?;
        Ok(Symbol { name, binding: entry[4] >> 4, st_shndx: u16_at(entry, 6) })
    }
}

/// The names in `__versions`.
fn versions<'a>(section: Section<'a>) -> impl Iterator<Item = Result<&'a [u8], Fault>> {
    section.bytes.chunks_exact(VERSION_LEN).enumerate().map(move |(number, entry)| {
        let name = &entry[VERSION_NAME..];
        let end = name.iter().position(|byte| *byte == 0).ok_or_else(|| {
            let offset = section.offset + (number * VERSION_LEN + VERSION_NAME) as u64;
            Fault::new(offset, "name in __versions", "NUL within 56 bytes", "none")
        })?;
        Ok(&name[..end])
    })
}

/// The section header table.
struct Headers<'a> {
    e_shoff: u64,
    e_shstrndx: u16,
    table: &'a [u8],
}

fn section_headers(bytes: &[u8]) -> Result<Headers<'_>, Fault> {
    let header = range(bytes, 0, EHDR_LEN, 0, "ELF header")?;
    let check = |offset: u64, what, found: u16, expected: &[u16]| {
        let list = || expected.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ");
        if expected.contains(&found) { Ok(()) } else { Err(Fault::new(offset, what, list(), found)) }
    };
    if !header.starts_with(b"\x7fELF") {
        return Err(Fault::new(0, "magic number", "ELF", header[..4].escape_ascii()));
    }
    check(4, "EI_CLASS", header[4].into(), &[2])?;
    check(5, "EI_DATA", header[5].into(), &[1])?;
    check(18, "e_machine", u16_at(header, 18), &[EM_X86_64, EM_AARCH64])?;
    check(58, "e_shentsize", u16_at(header, 58), &[SHDR_LEN])?;
    let (e_shoff, e_shnum, e_shstrndx) = (u64_at(header, 40), u16_at(header, 60), u16_at(header, 62));
    if e_shstrndx == 0 || e_shstrndx >= e_shnum {
        return Err(Fault::new(62, "e_shstrndx", format!("a section from 1 to {e_shnum}"), e_shstrndx));
    }
    let table = range(bytes, e_shoff, u64::from(e_shnum) * u64::from(SHDR_LEN), 40, "section header table")?;
    Ok(Headers { e_shoff, e_shstrndx, table })
}

impl<'a> Headers<'a> {
    fn section(&self, bytes: &'a [u8], number: usize, header: &[u8], what: &'static str) -> Result<Section<'a>, Fault> {
        let at = self.e_shoff + (number * usize::from(SHDR_LEN)) as u64;
        if u32_at(header, 4) == SHT_NOBITS {
            return Err(Fault::new(at + 4, what, "a section in the file", "SHT_NOBITS"));
        }
        let offset = u64_at(header, 24);
        Ok(Section { offset, bytes: range(bytes, offset, u64_at(header, 32), at + 24, what)? })
    }

    fn names(&self, bytes: &'a [u8]) -> Result<Section<'a>, Fault> {
        let number = usize::from(self.e_shstrndx);
        let start = number * usize::from(SHDR_LEN);
        self.section(bytes, number, &self.table[start..start + usize::from(SHDR_LEN)], "names of sections")
    }

    fn find(&self, bytes: &'a [u8], names: Section<'a>, wanted: &[u8]) -> Result<Option<Section<'a>>, Fault> {
        for (number, header) in self.table.chunks_exact(usize::from(SHDR_LEN)).enumerate().skip(1) {
            let at = u32_at(header, 0);
            let name = string(names, at.into()).ok_or_else(|| {
                let offset = self.e_shoff + (number * usize::from(SHDR_LEN)) as u64;
                Fault::new(offset, "sh_name", format!("a string in {} bytes", names.bytes.len()), at)
            })?;
            if name == wanted {
                return self.section(bytes, number, header, "section").map(Some);
            }
        }
        Ok(None)
    }
}

/// The string at `offset` of a table; `None` if it does not end there.
fn string(table: Section<'_>, offset: u64) -> Option<&[u8]> {
    let rest = table.bytes.get(usize::try_from(offset).ok()?..)?;
    rest.iter().position(|byte| *byte == 0).map(|end| &rest[..end])
}

fn multiple(section: Section<'_>, entry: usize, what: &'static str) -> Result<(), Fault> {
    if section.bytes.len().is_multiple_of(entry) {
        return Ok(());
    }
    Err(Fault::new(section.offset, what, format!("a multiple of {entry}"), section.bytes.len()))
}

/// `len` bytes at `offset`; `stated` is the position of the field that states them.
fn range<'a>(bytes: &'a [u8], offset: u64, len: u64, stated: u64, what: &'static str) -> Result<&'a [u8], Fault> {
    let end = offset.checked_add(len).and_then(|end| usize::try_from(end).ok());
    let found = usize::try_from(offset).ok().zip(end).and_then(|(start, end)| bytes.get(start..end));
    found.ok_or_else(|| {
        Fault::new(stated, what, format!("within {} bytes", bytes.len()), format!("{len} bytes at byte {offset}"))
    })
}

// Callers pass offsets inside entries of fixed length.
fn u16_at(entry: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([entry[offset], entry[offset + 1]])
}

fn u32_at(entry: &[u8], offset: usize) -> u32 {
    u32::from(u16_at(entry, offset)) | u32::from(u16_at(entry, offset + 2)) << 16
}

fn u64_at(entry: &[u8], offset: usize) -> u64 {
    u64::from(u32_at(entry, offset)) | u64::from(u32_at(entry, offset + 4)) << 32
}
