//! GRUB's kernel, `kernel.img`: an ELF program of 32 bits, little endian, linked at a fixed address. Its sections are placed at their
//! addresses in memory.

use crate::error::{Fault, le16, le32};

/// Address of the first byte of the program.
const LINK_ADDRESS: usize = 0x9000;
/// GRUB uses the memory above for itself.
const MEMORY_END: usize = 0x6_8000;
/// 32 bits, little endian.
const IDENT: &[u8] = b"\x7fELF\x01\x01\x01";
const TYPE: usize = 0x10;
const MACHINE: usize = 0x12;
const ENTRY: usize = 0x18;
const SECTIONS: usize = 0x20;
const SECTION_LEN: usize = 0x2E;
const SECTION_COUNT: usize = 0x30;
const PROGRAM: u16 = 2;
const I386: u16 = 3;
/// Bytes of an entry in the table of sections.
const ENTRY_LEN: u16 = 40;
/// Section types: bytes of the file, and zeros.
const PROGBITS: usize = 1;
const NOBITS: usize = 8;
/// Flag of a section that is in memory.
const ALLOC: usize = 2;

/// The program from its first byte to the end of its data.
pub(crate) fn load(file: &[u8]) -> Result<Vec<u8>, Fault> {
    if !file.starts_with(IDENT) {
        return Err(Fault::new(0, "header", "an ELF file of 32 bits", file.get(..7).unwrap_or(file).escape_ascii()));
    }
    expect(file, TYPE, "type", PROGRAM)?;
    expect(file, MACHINE, "machine", I386)?;
    expect(file, SECTION_LEN, "length of a section header", ENTRY_LEN)?;
    let entry = le32(file, ENTRY)?;
    if entry != LINK_ADDRESS {
        return Err(Fault::new(ENTRY, "entry point", LINK_ADDRESS, entry));
    }
    let start = le32(file, SECTIONS)?;
    let mut image = Vec::new();
    for index in 0..usize::from(le16(file, SECTION_COUNT)?) {
        place(file, start + index * usize::from(ENTRY_LEN), &mut image)?;
    }
    // Modules follow at the next byte, and the kernel looks for them at a multiple of four.
    match image.len() % 4 {
        0 if !image.is_empty() => Ok(image),
        _ => Err(Fault::new(SECTIONS, "length of the sections", "a multiple of 4", image.len())),
    }
}

fn expect(file: &[u8], offset: usize, what: &'static str, expected: u16) -> Result<(), Fault> {
    let found = le16(file, offset)?;
    if found == expected { Ok(()) } else { Err(Fault::new(offset, what, expected, found)) }
}

/// Copies the section whose header is at `header`, if it is in memory and not of zeros.
fn place(file: &[u8], header: usize, image: &mut Vec<u8>) -> Result<(), Fault> {
    let field = |number: usize| le32(file, header + 4 * number);
    let (kind, flags) = (field(1)?, field(2)?);
    let (address, offset, len) = (field(3)?, field(4)?, field(5)?);
    if flags & ALLOC == 0 {
        return Ok(());
    }
    if kind != PROGBITS && kind != NOBITS {
        return Err(Fault::new(header + 4, "section type", "bytes or zeros", kind));
    }
    let end = address.saturating_add(len);
    if address < LINK_ADDRESS || end > MEMORY_END {
        let expected = format!("addresses from {LINK_ADDRESS:#x} to {MEMORY_END:#x}");
        return Err(Fault::new(header + 12, "section", expected, format!("{address:#x} to {end:#x}")));
    }
    if kind == NOBITS {
        return Ok(());
    }
    let missing = || {
        Fault::new(
            header + 16,
            "section",
            format!("{len} bytes at {offset:#x}"),
            format!("a file of {} bytes", file.len()),
        )
    };
    let bytes = file.get(offset..offset.saturating_add(len)).ok_or_else(missing)?;
    let (start, end) = (address - LINK_ADDRESS, end - LINK_ADDRESS);
    if image.len() < end {
        image.resize(end, 0);
    }
    image[start..end].copy_from_slice(bytes);
    Ok(())
}
