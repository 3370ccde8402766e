//! The disk: partition table and boot loaders.

use vmbake_disk::disk::Arch;
use vmbake_disk::gpt::Guid;
use vmbake_disk::layout::{Part, PartKind, Scheme};
use vmbake_disk::tree::{Kind, ROOT, Tree};

use super::CheckResult;
use super::subject::{Subject, arch_of, aws_name, head};

/// Checked length of the BIOS boot partition: GRUB starts in its first sector.
const BOOT_START: usize = 512;

/// Both copies of the GPT are valid.
pub(super) fn partition_table(subject: &Subject<'_>) -> CheckResult {
    match subject.image.layout().scheme() {
        Scheme::Gpt(table) => match (&table.used_backup, &table.backup_damage) {
            (None, None) => Ok("both copies of the GPT are valid".to_owned()),
            (Some(why), _) => Err(format!("the primary GPT is corrupt: {why}")),
            (None, Some(why)) => Err(format!("the backup GPT is corrupt: {why}")),
        },
        Scheme::Mbr(_) => Err("an MBR partition table".to_owned()),
        Scheme::Whole(_) => Err("no partition table".to_owned()),
    }
}

/// The disk boots on machines of the kernel's architecture.
pub(super) fn boot(subject: &Subject<'_>) -> CheckResult {
    boot_mode(subject).map(|mode| {
        match mode {
            "uefi-preferred" => "boots by UEFI and BIOS",
            "uefi" => "boots by UEFI",
            _ => "boots by BIOS",
        }
        .to_owned()
    })
}

/// The boot mode in AWS terms.
pub(super) fn boot_mode(subject: &Subject<'_>) -> Result<&'static str, String> {
    let arch = subject.kernel_arch()?;
    let uefi = efi_program(subject, arch);
    if arch == Arch::Arm64 {
        return uefi.map(|()| "uefi");
    }
    match (uefi, bios(subject)) {
        (Ok(()), Ok(())) => Ok("uefi-preferred"),
        (Ok(()), Err(_)) => Ok("uefi"),
        (Err(_), Ok(())) => Ok("legacy-bios"),
        (Err(efi), Err(bios)) => Err(format!("not bootable: {efi}; {bios}")),
    }
}

fn part<'a>(subject: &'a Subject<'_>, kind: Guid) -> Option<&'a Part> {
    subject.image.layout().parts().iter().find(|part| part.kind == PartKind::Gpt(kind))
}

/// Whether the EFI system partition has the removable-media boot loader of that architecture.
fn efi_program(subject: &Subject<'_>, arch: Arch) -> Result<(), String> {
    let name = match arch {
        Arch::Amd64 => "BOOTX64.EFI",
        Arch::Arm64 => "BOOTAA64.EFI",
    };
    let esp = part(subject, Guid::ESP).ok_or("no EFI system partition")?;
    let tree = subject.image.tree(esp, None).map_err(|error| error.to_string())?;
    let path = find(&tree, &["EFI", "BOOT", name]).ok_or_else(|| format!("no EFI/BOOT/{name}"))?;
    match head(&tree, &path).and_then(|head| arch_of(&head)) {
        Some(found) if found == arch => Ok(()),
        Some(found) => Err(format!("EFI/BOOT/{name} is for {}", aws_name(found))),
        None => Err(format!("EFI/BOOT/{name} has an unknown architecture")),
    }
}

/// Looks up a path case-insensitively, as firmware does.
fn find(tree: &Tree, names: &[&str]) -> Option<String> {
    let (mut at, mut path) = (ROOT, String::new());
    for name in names {
        let Kind::Directory(entries) = &tree.inode(at).kind else { return None };
        let (found, id) = entries.iter().find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))?;
        path = format!("{path}/{}", std::str::from_utf8(found).ok()?);
        at = *id;
    }
    Some(path)
}

/// Whether there is boot code in the first sector and in a BIOS boot partition.
fn bios(subject: &Subject<'_>) -> Result<(), String> {
    let Scheme::Gpt(table) = subject.image.layout().scheme() else {
        return Err("no BIOS boot partition".to_owned());
    };
    let part = part(subject, Guid::BIOS_BOOT).ok_or("no BIOS boot partition")?;
    let source = subject.image.layout().open(part).map_err(|error| error.to_string())?;
    let mut start = [0; BOOT_START];
    source.read_exact_at(&mut start, 0).map_err(|error| error.to_string())?;
    if start == [0; BOOT_START] {
        return Err("the BIOS boot partition is empty".to_owned());
    }
    let has_code = table.mbr.boot_code.iter().any(|byte| *byte != 0);
    if has_code { Ok(()) } else { Err("no boot code in the first sector".to_owned()) }
}
