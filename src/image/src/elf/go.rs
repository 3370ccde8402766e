//! Build information of Go programs: the main package, its module with version, and the linked modules.
//!
//! Format: the section `.go.buildinfo` (gABI, chapter 4, "Sections"; Go's package `debug/buildinfo`), which is kept
//! when symbols are stripped. At a multiple of 16 bytes, it has `\xff Go buildinf:`, the pointer size and flags, one
//! byte each, and zeros up to byte 32. Since Go 1.18, flag 2 means that two strings follow, each prefixed with its
//! length as an unsigned LEB128: the version of Go, and tab-separated lines framed by two marks of 16 bytes. Offsets
//! are bytes from the start of the file.
//!
//! Stricter than Go: the section must be named, older formats are refused, and so are duplicate lines.

use vmbake_disk::source::{Map, Sources};

use super::input::{Fields, Input};
use super::{ElfError, GoFault, header};

const NAME: &[u8] = b".go.buildinfo";
const MAGIC: &[u8] = b"\xff Go buildinf:";
/// Alignment of the magic number, and offset of the strings after it.
const ALIGN: usize = 16;
const STRINGS: usize = 32;
const FLAGS: usize = 15;
const FLAG_INLINE: u8 = 2;
/// Length of each mark around the lines.
const MARK: usize = 16;

/// Maximum number of sections: Go's linker writes about 30, including debugging information.
const MAX_SHNUM: u16 = 512;
/// Maximum length of the table of section names in bytes: those of 512 sections are shorter.
const MAX_SHSTRTAB: u64 = 64 << 10;
/// Maximum length of the section in bytes: a program of 1,000 modules has 100 KB.
const MAX_BUILD_INFO: u64 = 1 << 20;

/// Build information of a Go program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildInfo {
    /// Version of the toolchain, such as `go1.24.2`.
    pub go: String,
    /// Import path of the main package, such as `k8s.io/kubernetes/cmd/kubelet`.
    pub package: String,
    /// The module of the main package, if known.
    pub module: Option<Module>,
    /// The other linked modules, after replacements, in the linker's order.
    pub dependencies: Vec<Module>,
}

/// A Go module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    pub path: String,
    /// Its version: `v1.2.3`; with `+dirty` for modified sources; `(devel)` if no version was known.
    pub version: String,
}

impl BuildInfo {
    /// Reads the ELF file in `map`; `None` for other files, and programs not made by Go.
    pub fn read(map: &Map, sources: &Sources) -> Result<Option<Self>, ElfError> {
        let input = Input { map, sources };
        let Some((_, header)) = header(&input)? else { return Ok(None) };
        match section(&input, &header)? {
            Some((offset, bytes)) => parse(offset, &bytes).map(Some),
            None => Ok(None),
        }
    }
}

/// The content of the section and its offset.
fn section(input: &Input<'_>, header: &Fields) -> Result<Option<(u64, Vec<u8>)>, ElfError> {
    let wide = header.wide();
    let (e_shoff, sizes) = if wide { (header.u64(0x28), 0x3a) } else { (header.u32(0x20).into(), 0x2e) };
    let [e_shentsize, e_shnum, e_shstrndx] = [0, 2, 4].map(|at| header.u16(sizes + at));
    let entry: u16 = if wide { 0x40 } else { 0x28 };
    if e_shnum == 0 {
        return Ok(None);
    }
    if e_shentsize != entry {
        let expected = if wide { "0x40" } else { "0x28" };
        return Err(ElfError::Corrupt { what: "e_shentsize", found: e_shentsize.into(), expected });
    }
    if e_shnum > MAX_SHNUM {
        return Err(ElfError::Unsupported { what: "e_shnum", found: e_shnum.into(), limit: MAX_SHNUM.into() });
    }
    let table = input.bytes("the section headers", e_shoff, u64::from(e_shnum) * u64::from(entry))?;
    let sections: Vec<Section> =
        table.chunks_exact(entry.into()).map(|bytes| Section::new(&header.like(bytes))).collect();
    let Some(names) = sections.get(usize::from(e_shstrndx)) else {
        return Err(ElfError::Corrupt { what: "e_shstrndx", found: e_shstrndx.into(), expected: "below e_shnum" });
    };
    let names = names.read(input, "the names of sections", MAX_SHSTRTAB)?;
    let is_named = |section: &&Section| {
        let name = usize::try_from(section.sh_name).ok().and_then(|at| names.get(at..));
        name.and_then(|name| name.strip_prefix(NAME)).is_some_and(|rest| rest.first() == Some(&0))
    };
    let Some(found) = sections.iter().find(is_named) else { return Ok(None) };
    Ok(Some((found.sh_offset, found.read(input, "the section .go.buildinfo", MAX_BUILD_INFO)?)))
}

struct Section {
    sh_name: u32,
    sh_offset: u64,
    sh_size: u64,
}

impl Section {
    fn new(fields: &Fields) -> Self {
        let sh_name = fields.u32(0);
        match fields.wide() {
            true => Self { sh_name, sh_offset: fields.u64(0x18), sh_size: fields.u64(0x20) },
            false => Self { sh_name, sh_offset: fields.u32(0x10).into(), sh_size: fields.u32(0x14).into() },
        }
    }

    fn read(&self, input: &Input<'_>, what: &'static str, limit: u64) -> Result<Vec<u8>, ElfError> {
        match self.sh_size > limit {
            true => Err(ElfError::Unsupported { what, found: self.sh_size, limit }),
            false => input.bytes(what, self.sh_offset, self.sh_size),
        }
    }
}

/// Parses the section, which starts at `offset` of the file.
fn parse(offset: u64, section: &[u8]) -> Result<BuildInfo, ElfError> {
    let start = section.chunks(ALIGN).position(|chunk| chunk.starts_with(MAGIC));
    let start = start.ok_or(ElfError::Go { offset, fault: GoFault::Magic })? * ALIGN;
    let flags = section.get(start + FLAGS).copied().unwrap_or_default();
    if flags & FLAG_INLINE == 0 {
        return Err(ElfError::Go { offset, fault: GoFault::Old });
    }
    let mut strings = Strings { offset, section, at: start + STRINGS };
    let go = text(strings.next()?)?;
    let (place, framed) = strings.next()?;
    // A program linked without modules has neither lines nor marks.
    let lines = framed.len().checked_sub(MARK).and_then(|end| framed.get(MARK..end)).unwrap_or_default();
    let mut found = Lines::default();
    for line in text((place, lines))?.lines() {
        if found.take(line) {
            return Err(ElfError::Go { offset: place, fault: GoFault::Twice });
        }
    }
    let Lines { package, module, dependencies } = found;
    let package = package.ok_or(ElfError::Go { offset: place, fault: GoFault::NoPackage })?;
    Ok(BuildInfo { go, package, module, dependencies })
}

/// The parsed lines.
#[derive(Default)]
struct Lines {
    package: Option<String>,
    module: Option<Module>,
    dependencies: Vec<Module>,
}

impl Lines {
    /// Parses a line; returns whether it is an invalid duplicate.
    fn take(&mut self, line: &str) -> bool {
        let mut words = line.split('\t');
        let module = |path: &str, version: &str| Module { path: path.to_owned(), version: version.to_owned() };
        match (words.next(), words.next(), words.next()) {
            (Some("path"), Some(path), None) => self.package.replace(path.to_owned()).is_some(),
            (Some("mod"), Some(path), Some(version)) => self.module.replace(module(path, version)).is_some(),
            (Some("dep"), Some(path), Some(version)) => {
                self.dependencies.push(module(path, version));
                false
            }
            // A replacement of the previous module; a local directory has no version.
            (Some("=>"), Some(path), Some(version)) if !version.is_empty() => {
                if let Some(replaced) = self.dependencies.last_mut() {
                    *replaced = module(path, version);
                }
                false
            }
            _ => false,
        }
    }
}

/// Iterates over the strings of the section.
struct Strings<'a> {
    /// Offset of the section in the file.
    offset: u64,
    section: &'a [u8],
    at: usize,
}

impl<'a> Strings<'a> {
    /// The next string with its offset in the file: its length, of at most five bytes, and its bytes.
    fn next(&mut self) -> Result<(u64, &'a [u8]), ElfError> {
        let offset = self.offset.saturating_add(self.at as u64);
        self.take().map(|text| (offset, text)).ok_or(ElfError::Go { offset, fault: GoFault::Endless })
    }

    fn take(&mut self) -> Option<&'a [u8]> {
        let mut len: u64 = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = *self.section.get(self.at)?;
            self.at += 1;
            len |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let end = self.at.checked_add(usize::try_from(len).ok()?)?;
                let text = self.section.get(self.at..end)?;
                self.at = end;
                return Some(text);
            }
        }
        None
    }
}

fn text((offset, bytes): (u64, &[u8])) -> Result<String, ElfError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ElfError::Go { offset, fault: GoFault::NotUtf8 })?;
    Ok(text.to_owned())
}
