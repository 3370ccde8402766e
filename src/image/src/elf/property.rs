//! Properties of a file (Linux extensions to the gABI, "Program Property"): a note `NT_GNU_PROPERTY_TYPE_0` by `GNU`,
//! with properties in ascending order of their types, each padded to the size of an address.

use super::input::{Fields, Input};
use super::{Class, EM_386, EM_X86_64, ElfError, Machine, Segment};

const NT_GNU_PROPERTY_TYPE_0: u32 = 5;
const GNU_PROPERTY_X86_ISA_1_NEEDED: u32 = 0xc000_8002;

/// Maximum length of a note segment in bytes: compilers write less than 100.
const MAX_NOTES: u64 = 4096;

/// Size of a note's header: the lengths of its name and content, and its type.
const NOTE: usize = 12;

/// The highest bit of the property for required instructions, 0 without one. As in the loader, invalid notes are
/// ignored.
pub(super) fn isa_level(input: &Input<'_>, machine: Machine, segment: &Segment) -> Result<u32, ElfError> {
    let align: u8 = if machine.class == Class::Elf64 { 8 } else { 4 };
    let x86 = matches!(machine.e_machine, EM_386 | EM_X86_64);
    if !x86 || segment.p_align != u64::from(align) || segment.p_filesz > MAX_NOTES {
        return Ok(0);
    }
    let bytes = input.bytes("PT_GNU_PROPERTY", segment.p_offset, segment.p_filesz)?;
    let notes = Fields { bytes, class: machine.class, data: machine.data };
    let needed = property(&notes, align.into()).filter(|bits| *bits != 0);
    Ok(needed.map_or(0, u32::ilog2))
}

/// The value of the property in the first suitable note.
fn property(notes: &Fields, align: usize) -> Option<u32> {
    let mut at = 0_usize;
    loop {
        notes.bytes.get(at..at.checked_add(NOTE)?)?;
        let (name, content) = (usize::try_from(notes.u32(at)).ok()?, usize::try_from(notes.u32(at + 4)).ok()?);
        let start = at.checked_add(NOTE)?.checked_add(name)?.checked_next_multiple_of(align)?;
        let end = start.checked_add(content)?;
        let owner = notes.bytes.get(at + NOTE..at + NOTE + 4);
        if owner == Some(b"GNU\0") && name == 4 && notes.u32(at + 8) == NT_GNU_PROPERTY_TYPE_0 {
            return needed(&notes.like(notes.bytes.get(start..end)?), align);
        }
        at = end.checked_next_multiple_of(align)?;
    }
}

fn needed(properties: &Fields, align: usize) -> Option<u32> {
    let (mut at, mut last) = (0_usize, 0);
    loop {
        properties.bytes.get(at..at.checked_add(8)?)?;
        let (pr_type, pr_datasz) = (properties.u32(at), usize::try_from(properties.u32(at + 4)).ok()?);
        let data = properties.bytes.get(at + 8..at.checked_add(8)?.checked_add(pr_datasz)?)?;
        if pr_type < last || pr_type > GNU_PROPERTY_X86_ISA_1_NEEDED {
            return None;
        }
        if pr_type == GNU_PROPERTY_X86_ISA_1_NEEDED {
            return (data.len() == 4).then(|| properties.u32(at + 8));
        }
        last = pr_type;
        at = (at + 8).checked_add(pr_datasz)?.checked_next_multiple_of(align)?;
    }
}
