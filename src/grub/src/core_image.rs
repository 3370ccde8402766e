//! GRUB for BIOS: the boot sector, and the core image in the BIOS boot partition, as grub-mkimage(1) and grub-bios-setup(8) write them.
//!
//! The core image is `diskboot.img`, one sector, which loads the rest; `lzma_decompress.img`; and, compressed, the kernel, a header, the
//! modules that read the root file system, and the prefix, where GRUB finds everything else. Little endian; offsets in bytes.
//!
//! Differences from GRUB's tools: the compressed bytes are those of liblzma, and there is no Reed-Solomon code, which repairs sectors that
//! other programs overwrite in the gap behind an MBR: a BIOS boot partition has none.

use std::io;

use liblzma::stream::{Action, Filters, LzmaOptions, Status, Stream};
use vmbake_disk::tree::Tree;

use crate::BIOS_DIR;
use crate::error::{Fault, GrubError, put};
use crate::{kernel, modules};

/// Modules of the core image for a root file system of ext4 in a GUID partition table.
pub const DEFAULT_MODULES: [&str; 3] = ["ext2", "part_gpt", "biosdisk"];
/// GRUB's directory for a root file system in partition 1 of the disk that the machine boots from.
pub const PREFIX: &str = "(,gpt1)/boot/grub";

const SECTOR: usize = 512;
/// Code of the boot sector; behind it are the disk signature and the partition table.
const BOOT_CODE_LEN: usize = 440;
/// In the boot sector: the sector of the core image.
const KERNEL_SECTOR: usize = 0x5C;
/// In the boot sector: a jump over the code that corrects an invalid drive number from the BIOS. As grub-bios-setup(8) does for hard disks,
/// the jump is replaced, so that the code runs.
const DRIVE_CHECK: usize = 0x66;
const NO_OPERATION: [u8; 2] = [0x90, 0x90];
/// In `diskboot.img`: first sector (u64), number of sectors (u16) and segment (u16) of what it loads.
const BLOCK_LIST: usize = 500;
const LOAD_SEGMENT: u16 = 0x820;
/// In `lzma_decompress.img`: compressed and uncompressed length (u32 each).
const COMPRESSED_LEN: usize = 8;
const UNCOMPRESSED_LEN: usize = 12;
/// The dictionary for which GRUB's decompressor has memory.
const DICTIONARY: u32 = 1 << 16;
/// The memory from 0x8000 on that a core image may use.
const MAX_CORE: usize = 0x7_0000;
/// The header of the modules (`struct grub_module_info`): magic number, offset of the first, total length.
const MODULE_MAGIC: &[u8; 4] = b"mimg";
const MODULE_HEADER_LEN: usize = 12;
/// Types of objects behind it: an ELF module, the prefix.
const OBJECT_ELF: u32 = 0;
const OBJECT_PREFIX: u32 = 3;
/// Limit for a file of GRUB; modules and the kernel are smaller.
const MAX_FILE: u64 = 4 << 20;

/// What a BIOS starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreImage {
    /// The first bytes of sector 0.
    pub boot_code: [u8; BOOT_CODE_LEN],
    /// The content of the BIOS boot partition.
    pub core: Vec<u8>,
}

impl CoreImage {
    /// Builds the core image of a disk with `modules` and the directory `prefix`, for a BIOS boot partition of `room` bytes from sector
    /// `start` on.
    pub fn build(tree: &Tree, modules: &[&str], prefix: &str, start: u64, room: u64) -> Result<Self, GrubError> {
        let payload = payload(tree, modules, prefix)?;
        let packed = compress(&payload).map_err(|source| GrubError::Compress { source })?;
        let (path, mut decompressor) = read(tree, "lzma_decompress.img")?;
        for (offset, len) in [(COMPRESSED_LEN, packed.len()), (UNCOMPRESSED_LEN, payload.len())] {
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            put(&mut decompressor, offset, &len.to_le_bytes()).map_err(|fault| fault.at(&path))?;
        }
        let loaded = [decompressor, packed].concat();
        let limit = MAX_CORE.min(usize::try_from(room).unwrap_or(MAX_CORE));
        let len = SECTOR + loaded.len();
        if len > limit {
            return Err(GrubError::TooLarge { what: "GRUB's core image", len: len as u64, limit: limit as u64 });
        }
        let core = [loader(tree, start, loaded.len())?, loaded].concat();
        Ok(Self { boot_code: boot_code(tree, start)?, core })
    }
}

/// `diskboot.img` for `len` bytes behind it.
fn loader(tree: &Tree, start: u64, len: usize) -> Result<Vec<u8>, GrubError> {
    let (path, mut loader) = sector(tree, "diskboot.img")?;
    let sectors = u16::try_from(len.div_ceil(SECTOR)).unwrap_or(u16::MAX);
    let list = [&(start + 1).to_le_bytes()[..], &sectors.to_le_bytes(), &LOAD_SEGMENT.to_le_bytes()].concat();
    put(&mut loader, BLOCK_LIST, &list).map_err(|fault| fault.at(&path))?;
    Ok(loader)
}

fn boot_code(tree: &Tree, start: u64) -> Result<[u8; BOOT_CODE_LEN], GrubError> {
    let (path, mut boot) = sector(tree, "boot.img")?;
    let set =
        put(&mut boot, KERNEL_SECTOR, &start.to_le_bytes()).and_then(|()| put(&mut boot, DRIVE_CHECK, &NO_OPERATION));
    set.map_err(|fault| fault.at(&path))?;
    let mut code = [0; BOOT_CODE_LEN];
    code.copy_from_slice(&boot[..BOOT_CODE_LEN]);
    Ok(code)
}

/// The kernel, the modules and the prefix.
fn payload(tree: &Tree, wanted: &[&str], prefix: &str) -> Result<Vec<u8>, GrubError> {
    let (path, list) = read(tree, "moddep.lst")?;
    let list = String::from_utf8(list).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Fault::new(offset, "text", "UTF-8", "other bytes").at(&path)
    })?;
    let (path, kernel) = read(tree, "kernel.img")?;
    let mut payload = kernel::load(&kernel).map_err(|fault| fault.at(&path))?;
    let mut objects = Vec::new();
    for module in modules::closure(&format!("{BIOS_DIR}/moddep.lst"), &list, wanted)? {
        let (_, module) = read(tree, &format!("{module}.mod"))?;
        objects.extend(object(OBJECT_ELF, module));
    }
    objects.extend(object(OBJECT_PREFIX, [prefix.as_bytes(), b"\0"].concat()));
    payload.extend(MODULE_MAGIC);
    for number in [MODULE_HEADER_LEN, MODULE_HEADER_LEN + objects.len()] {
        payload.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }
    payload.extend(objects);
    Ok(payload)
}

/// An object with its header: type and length with the header.
fn object(kind: u32, mut content: Vec<u8>) -> Vec<u8> {
    content.resize(content.len().next_multiple_of(4), 0);
    let len = u32::try_from(content.len() + 8).unwrap_or(u32::MAX);
    [&kind.to_le_bytes()[..], &len.to_le_bytes(), &content].concat()
}

/// LZMA without a header, with the parameters that GRUB's decompressor has built in.
fn compress(payload: &[u8]) -> io::Result<Vec<u8>> {
    let mut options = LzmaOptions::new_preset(9)?;
    options.dict_size(DICTIONARY).literal_context_bits(3).literal_position_bits(0).position_bits(2);
    let mut stream = Stream::new_raw_encoder(Filters::new().lzma1(&options))?;
    // More than LZMA adds to random bytes.
    let mut packed = Vec::with_capacity(payload.len() + payload.len() / 2 + 1024);
    match stream.process_vec(payload, &mut packed, Action::Finish)? {
        Status::StreamEnd => Ok(packed),
        _ => Err(io::Error::other("the compressed bytes need too much room")),
    }
}

/// A file of GRUB with its path.
fn read(tree: &Tree, name: &str) -> Result<(String, Vec<u8>), GrubError> {
    let path = format!("{BIOS_DIR}/{name}");
    let content = tree.read(path.as_bytes(), MAX_FILE)?;
    Ok((path, content))
}

/// A file of one sector.
fn sector(tree: &Tree, name: &str) -> Result<(String, Vec<u8>), GrubError> {
    let (path, content) = read(tree, name)?;
    match content.len() {
        SECTOR => Ok((path, content)),
        len => Err(Fault::new(0, "length", SECTOR, len).at(&path)),
    }
}
