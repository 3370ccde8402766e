//! Subject of the checks: the root file system, the one with the kernels, and the first entry of GRUB's menu.

use std::io::Read;

use flate2::read::GzDecoder;
use vmbake_disk::disk::Arch;
use vmbake_disk::layout::Part;
use vmbake_disk::source::MapReader;
use vmbake_disk::tree::{Kind, Tree};

use super::initramfs::Initramfs;
use vmbake_image::disk::{DiskImage, InspectError};
use vmbake_image::grub::{BootPlace, MenuEntry, first_entry};
use vmbake_image::inspect::reasons;

/// Maximum length of a text file.
const MAX_TEXT: u64 = 1 << 20;
/// Length of a program's head that contains its headers.
const HEAD: u64 = 64 << 10;
/// Programs that determine the architecture of the system; every system has one of them.
const PROGRAMS: [&str; 3] = ["/usr/lib/systemd/systemd", "/bin/sh", "/bin/busybox"];

/// An open image, read as far as checks need it.
pub(super) struct Subject<'a> {
    pub(super) image: &'a DiskImage,
    pub(super) root: &'a Part,
    pub(super) tree: Tree,
    /// The file system with kernels and menu, if it is not the root file system.
    boot: Option<Tree>,
    pub(super) entry: Result<MenuEntry, String>,
    arch: Result<Arch, String>,
    pub(super) initramfs: Result<Initramfs, String>,
}

impl<'a> Subject<'a> {
    pub(super) fn read(image: &'a DiskImage, partition: Option<u32>) -> Result<Self, InspectError> {
        let root = image.root(partition)?;
        let tree = image.tree(root, None)?;
        let (boot, config) = {
            let place = BootPlace::find(image, root, &tree);
            let apart = place.part.number != root.number;
            (if apart { Some(image.tree(place.part, None)?) } else { None }, place.config)
        };
        let unknown = || Err("not known".to_owned());
        let mut subject =
            Self { image, root, tree, boot, entry: unknown(), arch: Err(String::new()), initramfs: Err(String::new()) };
        let menu = text(subject.boot_tree(), config).unwrap_or_default();
        subject.entry = first_entry(&menu).ok_or_else(|| format!("{config}: no menu entry boots a kernel"));
        subject.arch = subject.read_arch();
        subject.initramfs = subject.read_initramfs();
        Ok(subject)
    }

    fn boot_tree(&self) -> &Tree {
        self.boot.as_ref().unwrap_or(&self.tree)
    }

    /// Architecture of the kernel.
    pub(super) fn kernel_arch(&self) -> Result<Arch, String> {
        self.arch.clone()
    }

    fn read_arch(&self) -> Result<Arch, String> {
        let entry = self.entry.as_ref().map_err(Clone::clone)?;
        let head = head(self.boot_tree(), &entry.kernel)
            .ok_or_else(|| format!("{}: cannot read the kernel of the menu entry", entry.kernel))?;
        arch_of(&head).ok_or_else(|| format!("{}: kernel of unknown architecture", entry.kernel))
    }

    fn read_initramfs(&self) -> Result<Initramfs, String> {
        let Some(path) = self.entry.as_ref().map_err(Clone::clone)?.initrd.as_deref() else {
            return Ok(Initramfs::default());
        };
        let tree = self.boot_tree();
        let map = tree.resolve(path.as_bytes()).ok().map(|id| &tree.inode(id).kind);
        let Some(Kind::File(map)) = map else { return Err(format!("{path}: is missing")) };
        Initramfs::read(MapReader::new(map, tree.sources()))
            .map_err(|error| format!("{path}: {}", reasons(&error, self.image.path())))
    }

    /// Module directory of the kernel.
    pub(super) fn modules_dir(&self) -> Result<String, String> {
        let entry = self.entry.as_ref().map_err(Clone::clone)?;
        let name = entry.kernel.rsplit('/').next().unwrap_or_default();
        let version = name.split_once('-').map(|(_, version)| version).unwrap_or_default();
        let dir = format!("/lib/modules/{version}");
        let is_there = !version.is_empty() && self.tree.resolve(dir.as_bytes()).is_ok();
        is_there.then_some(dir).ok_or_else(|| format!("{}: no modules of this kernel in /lib/modules", entry.kernel))
    }

    /// The arguments of the kernel.
    pub(super) fn arguments(&self) -> Result<impl Iterator<Item = &str>, String> {
        Ok(self.entry.as_ref().map_err(Clone::clone)?.cmdline.split_whitespace())
    }

    /// Whether a path exists, following links.
    pub(super) fn has(&self, path: &str) -> bool {
        self.tree.resolve(path.as_bytes()).is_ok()
    }

    /// The text of a file of the root file system; `None` if it is missing.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        text(&self.tree, path)
    }

    /// The files of a directory with a given suffix, by name, with their texts.
    pub(super) fn texts(&self, dir: &str, ends: &[&str]) -> Vec<(String, String)> {
        let kind = self.tree.resolve(dir.as_bytes()).map(|id| &self.tree.inode(id).kind);
        let Ok(Kind::Directory(entries)) = kind else { return Vec::new() };
        let names = entries.keys().filter_map(|name| std::str::from_utf8(name).ok());
        let paths = names.filter(|name| ends.iter().any(|end| name.ends_with(end))).map(|name| format!("{dir}/{name}"));
        paths.filter_map(|path| Some((path.clone(), self.text(&path)?))).collect()
    }

    /// Architecture of the system, and the program that determines it.
    pub(super) fn system_arch(&self) -> Result<(Arch, &'static str), String> {
        let mut found = PROGRAMS.iter().filter_map(|path| Some((arch_of(&head(&self.tree, path)?)?, *path)));
        found
            .next()
            .ok_or_else(|| format!("expected a program of a known architecture at one of {}", PROGRAMS.join(", ")))
    }
}

fn text(tree: &Tree, path: &str) -> Option<String> {
    tree.read(path.as_bytes(), MAX_TEXT).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn head(tree: &Tree, path: &str) -> Option<Vec<u8>> {
    let Kind::File(map) = &tree.inode(tree.resolve(path.as_bytes()).ok()?).kind else { return None };
    let mut bytes = Vec::new();
    MapReader::new(map, tree.sources()).take(HEAD).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// AWS name of an architecture.
pub(super) fn aws_name(arch: Arch) -> &'static str {
    match arch {
        Arch::Amd64 => "x86_64",
        Arch::Arm64 => "arm64",
    }
}

/// Architecture of a program or kernel: ELF (`e_machine`), PE/COFF of EFI (`Machine`), Linux boot protocol of x86
/// (`xloadflags`) or the header of arm64. Compressed kernels are decompressed.
pub(super) fn arch_of(bytes: &[u8]) -> Option<Arch> {
    let at = |offset: usize, len: usize| bytes.get(offset..offset.checked_add(len)?);
    let number = |offset: usize| Some(u16::from_le_bytes(*at(offset, 2)?.first_chunk()?));
    if at(0, 2)? == [0x1f, 0x8b] {
        let mut unpacked = Vec::new();
        // The head is truncated, so an error at its end is expected.
        let _cut = GzDecoder::new(bytes).take(HEAD).read_to_end(&mut unpacked);
        return if unpacked.starts_with(&[0x1f, 0x8b]) { None } else { arch_of(&unpacked) };
    }
    if at(0, 4)? == b"\x7fELF" {
        return match number(18)? {
            62 => Some(Arch::Amd64),
            183 => Some(Arch::Arm64),
            _ => None,
        };
    }
    if at(0, 2)? == b"MZ" {
        let pe = usize::try_from(u32::from_le_bytes(*at(0x3c, 4)?.first_chunk()?)).ok()?;
        if at(pe, 4) == Some(b"PE\0\0") {
            return match number(pe.checked_add(4)?)? {
                0x8664 => Some(Arch::Amd64),
                0xaa64 => Some(Arch::Arm64),
                _ => None,
            };
        }
    }
    if at(0x202, 4) == Some(b"HdrS") {
        return (number(0x236)? & 1 == 1).then_some(Arch::Amd64);
    }
    (at(0x38, 4)? == b"ARM\x64").then_some(Arch::Arm64)
}
