//! What a system needs to start from a new disk, and its fstab(5).

use vmbake_disk::tree::{Kind, Tree};

use crate::BIOS_DIR;
use crate::error::GrubError;
use crate::esp::{EfiFiles, is_bootable_by_efi};
use crate::ids::DiskIds;
use crate::menu::MKCONFIG;

/// The list of file systems to mount.
pub const FSTAB: &str = "/etc/fstab";
const BOOT: &str = "/boot";
/// Where the ESP is mounted.
pub const ESP_POINT: &str = "/boot/efi";
const KERNEL: &[u8] = b"vmlinuz-";
const INITRD: &[u8] = b"initrd.img-";
const MAX_FSTAB: u64 = 1 << 20;

/// Fails if the system in `tree` cannot start from a new disk.
pub fn check(tree: &Tree, arch: &str, ids: &DiskIds) -> Result<(), GrubError> {
    let efi = EfiFiles::of(arch).ok_or_else(|| GrubError::Arch { arch: arch.to_owned() })?;
    if versions(tree, KERNEL).is_empty() {
        return Err(GrubError::NoKernel);
    }
    if !has_bios(tree, arch) && !is_bootable_by_efi(tree, efi) {
        let bios = if arch == "amd64" { "grub-pc-bin" } else { "a boot loader for BIOS" };
        return Err(GrubError::NoLoader { bios, efi: efi.packages(arch) });
    }
    if tree.resolve(MKCONFIG.as_bytes()).is_err() {
        return Err(GrubError::NoMkconfig);
    }
    let text = fstab(tree)?;
    for (point, partuuid, uuid) in mounts(ids) {
        let Some(device) = device_of(&text, point) else { continue };
        let is_ours = [format!("PARTUUID={partuuid}"), format!("UUID={uuid}")];
        if !is_ours.iter().any(|ours| ours.eq_ignore_ascii_case(device)) {
            let (point, found) = (point.to_owned(), vmbake_common::escape::line(device));
            return Err(GrubError::Mount { point, found, expected: format!("PARTUUID={partuuid}") });
        }
    }
    Ok(())
}

/// Kernels without an initrd: they start only if they contain the drivers of the machine's disk.
pub fn without_initrd(tree: &Tree) -> Vec<String> {
    let initrds = versions(tree, INITRD);
    versions(tree, KERNEL).into_iter().filter(|version| !initrds.contains(version)).collect()
}

/// The text of fstab(5) with the file systems of the new disk, or `None` if it has them already.
pub fn with_mounts(tree: &Tree, arch: &str, ids: &DiskIds) -> Result<Option<String>, GrubError> {
    let mut text = fstab(tree)?;
    let is_complete = text.is_empty() || text.ends_with('\n');
    let before = text.clone();
    if !is_complete {
        text.push('\n');
    }
    let has_esp = EfiFiles::of(arch).is_some_and(|efi| is_bootable_by_efi(tree, efi));
    if device_of(&before, "/").is_none() {
        let partuuid = ids.root_partuuid();
        text += &format!("PARTUUID={partuuid} / ext4 rw,discard,errors=remount-ro,x-systemd.growfs 0 1\n");
    }
    if has_esp && device_of(&before, ESP_POINT).is_none() {
        text += &format!("PARTUUID={} {ESP_POINT} vfat defaults,umask=077 0 2\n", ids.esp_partuuid());
    }
    Ok((text.lines().ne(before.lines())).then_some(text))
}

/// Whether the tree has GRUB for machines with BIOS.
pub fn has_bios(tree: &Tree, arch: &str) -> bool {
    arch == "amd64" && tree.resolve(BIOS_DIR.as_bytes()).is_ok()
}

/// Mount points of the new disk, with PARTUUID and UUID.
fn mounts(ids: &DiskIds) -> [(&'static str, String, String); 2] {
    let serial = format!("{:08X}", ids.esp_serial);
    let serial = format!("{}-{}", &serial[..4], &serial[4..]);
    [("/", ids.root_partuuid(), ids.root_uuid_text()), (ESP_POINT, ids.esp_partuuid(), serial)]
}

fn fstab(tree: &Tree) -> Result<String, GrubError> {
    if tree.resolve(FSTAB.as_bytes()).is_err() {
        return Ok(String::new());
    }
    let bytes = tree.read(FSTAB.as_bytes(), MAX_FSTAB)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What fstab(5) mounts at `point`.
fn device_of<'a>(text: &'a str, point: &str) -> Option<&'a str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut mounts = lines.filter_map(|line| {
        let mut fields = line.split_whitespace();
        Some((fields.next()?, fields.next()?))
    });
    mounts.find(|(_, found)| *found == point || found.trim_end_matches('/') == point).map(|(device, _)| device)
}

/// The versions of the files in `/boot` that begin with `prefix`.
fn versions(tree: &Tree, prefix: &[u8]) -> Vec<String> {
    let Ok(id) = tree.resolve(BOOT.as_bytes()) else { return Vec::new() };
    let Kind::Directory(entries) = &tree.inode(id).kind else { return Vec::new() };
    let names = entries.keys().filter_map(|name| name.strip_prefix(prefix));
    names.map(|version| String::from_utf8_lossy(version).into_owned()).collect()
}
