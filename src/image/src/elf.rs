//! ELF programs and shared objects: machine, interpreter and required libraries.
//!
//! Reads a few small parts of a file, given as ranges of sources; returns an [`Elf`], or `None` for any other file.
//! Reads the header, the program headers, `PT_INTERP`, the dynamic section and its strings; no symbols or code, and of
//! all sections only the one with [`BuildInfo`].
//!
//! Format: System V ABI, generic part (gABI), chapters 4 "ELF Header" and 5 "Program Header" and "Dynamic Linking";
//! offsets are bytes from the start of the file, both classes and both byte orders. Stricter than the gABI: counts and
//! lengths are limited to far more than linkers write, and offsets must be inside the file.

mod input;
mod dynamic;
mod go;
mod property;

use std::fmt;

use vmbake_common::hint::Hint;
use vmbake_disk::source::{Map, Sources};

pub use dynamic::Dynamic;
pub use go::{BuildInfo, Module};
use input::{Fields, Input};

/// `e_type` of a program at a fixed address.
pub const ET_EXEC: u16 = 2;
/// `e_type` of a shared object, and of a program at any address.
pub const ET_DYN: u16 = 3;
/// `e_machine` of 32-bit x86.
pub const EM_386: u16 = 3;
/// `e_machine` of 32-bit Arm.
pub const EM_ARM: u16 = 40;
/// `e_machine` of x86-64, also of its x32 with 32-bit addresses.
pub const EM_X86_64: u16 = 62;
/// `e_machine` of 64-bit Arm.
pub const EM_AARCH64: u16 = 183;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_GNU_PROPERTY: u32 = 0x6474_e553;

/// Maximum number of program headers: linkers write about 15. A file with more than 65,534 stores their number
/// elsewhere.
const MAX_PHNUM: u16 = 512;

/// Maximum length of a string: `PATH_MAX` of Linux, in bytes.
const MAX_STRING: u64 = 4096;

/// Why a file that starts as ELF cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    #[error("cannot read {len} bytes at byte {offset}")]
    Read {
        offset: u64,
        /// The number of bytes to read.
        len: u64,
        source: std::io::Error,
    },
    #[error("{what}, {len} bytes at byte {offset}, extends beyond the end of the file at {file_len}")]
    Truncated { what: &'static str, offset: u64, len: u64, file_len: u64 },
    #[error("{what} is {found:#x}, expected {expected}")]
    Corrupt { what: &'static str, found: u64, expected: &'static str },
    #[error("{what} is {found}, more than the limit of {limit}")]
    Unsupported { what: &'static str, found: u64, limit: u64 },
    #[error("Go build information: {fault} at byte {offset}")]
    Go { offset: u64, fault: GoFault },
}

impl Hint for ElfError {
    vmbake_common::causes!(; Read);
}

/// A fault in the build information of a Go program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoFault {
    #[error("missing magic number")]
    Magic,
    #[error("unsupported format from before Go 1.18")]
    Old,
    #[error("duplicate main package or module")]
    Twice,
    #[error("missing main package")]
    NoPackage,
    #[error("unterminated string")]
    Endless,
    #[error("string that is not valid UTF-8")]
    NotUtf8,
}

impl Hint for GoFault {}

/// `EI_CLASS`: the size of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Elf32,
    Elf64,
}

/// `EI_DATA`: the byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Two's complement, least significant byte first.
    Lsb,
    /// Most significant byte first.
    Msb,
}

/// The properties that a loader requires to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    pub class: Class,
    pub data: Data,
    /// Instruction set.
    pub e_machine: u16,
}

impl Machine {
    /// The machine of an architecture as Debian names it; `None` except for `amd64` and `arm64`.
    pub fn of_arch(arch: &str) -> Option<Self> {
        let e_machine = match arch {
            "amd64" => EM_X86_64,
            "arm64" => EM_AARCH64,
            _ => return None,
        };
        Some(Self { class: Class::Elf64, data: Data::Lsb, e_machine })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = if self.class == Class::Elf64 { "64" } else { "32" };
        let order = if self.data == Data::Lsb { "" } else { " big-endian" };
        match self.e_machine {
            EM_386 => write!(f, "ELF{bits}{order} x86"),
            EM_X86_64 => write!(f, "ELF{bits}{order} x86-64"),
            EM_ARM => write!(f, "ELF{bits}{order} Arm"),
            EM_AARCH64 => write!(f, "ELF{bits}{order} AArch64"),
            other => write!(f, "ELF{bits}{order} machine {other}"),
        }
    }
}

/// A part of the file within its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    p_type: u32,
    p_offset: u64,
    p_vaddr: u64,
    p_filesz: u64,
    p_align: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    pub machine: Machine,
    /// Type of file.
    pub e_type: u16,
    /// Processor-specific flags.
    pub e_flags: u32,
    /// `PT_INTERP`: the program interpreter.
    pub interpreter: Option<Vec<u8>>,
    /// The dynamic section, if it has strings.
    pub dynamic: Option<Dynamic>,
    /// `PT_GNU_PROPERTY`.
    property: Option<Segment>,
}

impl Elf {
    /// Reads the file in `map`; `None` if it does not start with the magic number of ELF.
    pub fn read(map: &Map, sources: &Sources) -> Result<Option<Self>, ElfError> {
        let input = Input { map, sources };
        let Some((machine, header)) = header(&input)? else { return Ok(None) };
        let e_type = header.u16(0x10);
        let e_flags = header.u32(if header.wide() { 0x30 } else { 0x24 });
        let mut elf = Self { machine, e_type, e_flags, interpreter: None, dynamic: None, property: None };
        if !elf.is_loadable() {
            return Ok(Some(elf));
        }
        let segments = program_headers(&input, &header)?;
        // In separate debug files, removed parts have headers with the length 0.
        let find = |wanted| segments.iter().find(|segment| segment.p_type == wanted && segment.p_filesz > 0).copied();
        elf.interpreter = find(PT_INTERP).map(|segment| interpreter(&input, &segment)).transpose()?;
        elf.property = find(PT_GNU_PROPERTY);
        if let Some(segment) = find(PT_DYNAMIC) {
            elf.dynamic = dynamic::read(&input, &header, &segment, &segments)?;
        }
        Ok(Some(elf))
    }

    /// Whether it is a program or a shared object, rather than an object file, a kernel module or a core dump.
    pub fn is_loadable(&self) -> bool {
        matches!(self.e_type, ET_EXEC | ET_DYN)
    }

    /// The highest bit of `GNU_PROPERTY_X86_ISA_1_NEEDED`, 0 without that property: the required x86-64 level.
    pub fn isa_level(&self, map: &Map, sources: &Sources) -> Result<u32, ElfError> {
        match &self.property {
            Some(segment) => property::isa_level(&Input { map, sources }, self.machine, segment),
            None => Ok(0),
        }
    }
}

/// The file header, 64 bytes of class 64 and 52 of class 32.
fn header(input: &Input<'_>) -> Result<Option<(Machine, Fields)>, ElfError> {
    const EI_NIDENT: u64 = 16;
    if input.map.len() < 4 || input.bytes("the magic number", 0, 4)? != *b"\x7fELF" {
        return Ok(None);
    }
    let ident = input.bytes("the identification", 0, EI_NIDENT)?;
    let at = |index: usize| ident.get(index).copied().unwrap_or_default();
    let class = match at(4) {
        1 => Class::Elf32,
        2 => Class::Elf64,
        other => return Err(ElfError::Corrupt { what: "EI_CLASS", found: other.into(), expected: "1 or 2" }),
    };
    let data = match at(5) {
        1 => Data::Lsb,
        2 => Data::Msb,
        other => return Err(ElfError::Corrupt { what: "EI_DATA", found: other.into(), expected: "1 or 2" }),
    };
    let len = if class == Class::Elf64 { 0x40 } else { 0x34 };
    let header = Fields { bytes: input.bytes("the header", 0, len)?, class, data };
    Ok(Some((Machine { class, data, e_machine: header.u16(0x12) }, header)))
}

fn program_headers(input: &Input<'_>, header: &Fields) -> Result<Vec<Segment>, ElfError> {
    let wide = header.wide();
    let (e_phoff, sizes) = if wide { (header.u64(0x20), 0x36) } else { (header.u32(0x1c).into(), 0x2a) };
    let (e_phentsize, e_phnum) = (header.u16(sizes), header.u16(sizes + 2));
    let entry: u16 = if wide { 0x38 } else { 0x20 };
    if e_phnum == 0 {
        return Ok(Vec::new());
    }
    if e_phentsize != entry {
        let expected = if wide { "0x38" } else { "0x20" };
        return Err(ElfError::Corrupt { what: "e_phentsize", found: e_phentsize.into(), expected });
    }
    if e_phnum > MAX_PHNUM {
        return Err(ElfError::Unsupported { what: "e_phnum", found: e_phnum.into(), limit: MAX_PHNUM.into() });
    }
    let bytes = input.bytes("the program headers", e_phoff, u64::from(e_phnum) * u64::from(entry))?;
    Ok(bytes.chunks_exact(entry.into()).map(|bytes| segment(header.like(bytes))).collect())
}

fn segment(fields: Fields) -> Segment {
    let [p_offset, p_vaddr, p_filesz, p_align] = match fields.class {
        Class::Elf64 => [0x08, 0x10, 0x20, 0x30].map(|at| fields.u64(at)),
        Class::Elf32 => [0x04, 0x08, 0x10, 0x1c].map(|at| fields.u32(at).into()),
    };
    Segment { p_type: fields.u32(0), p_offset, p_vaddr, p_filesz, p_align }
}

fn interpreter(input: &Input<'_>, segment: &Segment) -> Result<Vec<u8>, ElfError> {
    if segment.p_filesz > MAX_STRING {
        let (what, found) = ("the length of PT_INTERP", segment.p_filesz);
        return Err(ElfError::Unsupported { what, found, limit: MAX_STRING });
    }
    let mut path = input.bytes("PT_INTERP", segment.p_offset, segment.p_filesz)?;
    match path.iter().position(|byte| *byte == 0) {
        Some(end) => path.truncate(end),
        None => {
            let found = path.last().copied().unwrap_or_default().into();
            return Err(ElfError::Corrupt { what: "the last byte of PT_INTERP", found, expected: "0" });
        }
    }
    Ok(path)
}
