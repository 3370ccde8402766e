//! The EFI system partition as grub-install(8) of Debian writes it with `--uefi-secure-boot --force-extra-removable`: copies of the signed
//! shim, GRUB and MokManager, once for the firmware's default path and once for a boot entry, and a menu that leads to that of the root.

use vmbake_disk::fat;
use vmbake_disk::tree::Tree;

use crate::error::GrubError;
use crate::ids::DiskIds;

/// Limit for a program; Debian's are smaller.
const MAX_FILE: u64 = 16 << 20;

/// The programs of an architecture.
#[derive(Clone, Copy, Debug)]
pub struct EfiFiles {
    /// UEFI's name of the architecture: `x64`, `aa64`.
    pub(crate) arch: &'static str,
    /// GRUB's name of the platform, also of the directory with its modules.
    pub platform: &'static str,
}

impl EfiFiles {
    /// The programs for an architecture as Debian names it.
    pub fn of(arch: &str) -> Option<Self> {
        match arch {
            "amd64" => Some(Self { arch: "x64", platform: "x86_64-efi" }),
            "arm64" => Some(Self { arch: "aa64", platform: "arm64-efi" }),
            _ => None,
        }
    }

    /// The packages that contain them.
    pub(crate) fn packages(self, arch: &str) -> String {
        format!("shim-signed with grub-efi-{arch}-signed")
    }

    fn shim(self, name: &str) -> String {
        format!("/usr/lib/shim/{name}{}.efi.signed", self.arch)
    }

    fn grub(self) -> String {
        format!("/usr/lib/grub/{}-signed/grub{}.efi.signed", self.platform, self.arch)
    }

    /// Paths on the ESP and in the tree.
    fn copies(self) -> Vec<(String, String)> {
        let (arch, upper) = (self.arch, self.arch.to_uppercase());
        vec![
            (format!("EFI/BOOT/BOOT{upper}.EFI"), self.shim("shim")),
            (format!("EFI/BOOT/grub{arch}.efi"), self.grub()),
            (format!("EFI/BOOT/mm{arch}.efi"), self.shim("mm")),
            (format!("EFI/debian/shim{arch}.efi"), self.shim("shim")),
            (format!("EFI/debian/grub{arch}.efi"), self.grub()),
            (format!("EFI/debian/mm{arch}.efi"), self.shim("mm")),
            (format!("EFI/debian/fb{arch}.efi"), self.shim("fb")),
            (format!("EFI/debian/BOOT{upper}.CSV"), format!("/usr/lib/shim/BOOT{upper}.CSV")),
        ]
    }
}

/// Whether a tree has shim and GRUB, signed for UEFI.
pub fn is_bootable_by_efi(tree: &Tree, files: EfiFiles) -> bool {
    [files.shim("shim"), files.grub()].iter().all(|path| tree.resolve(path.as_bytes()).is_ok())
}

/// The volume, without the zeros at its end.
pub(crate) fn build(tree: &Tree, files: EfiFiles, ids: &DiskIds, len: u64) -> Result<Vec<u8>, GrubError> {
    let mut contents = Vec::new();
    for (path, source) in files.copies() {
        contents.push((path, tree.read(source.as_bytes(), MAX_FILE)?));
    }
    contents.push(("EFI/debian/grub.cfg".to_owned(), menu(ids).into_bytes()));
    fat::author(len, ids.esp_serial, &contents).map_err(|source| GrubError::Esp { source })
}

/// What the signed GRUB reads first: finds the root file system.
fn menu(ids: &DiskIds) -> String {
    format!(
        "search.fs_uuid {} root \nset prefix=($root)'{}'\nconfigfile $prefix/grub.cfg\n",
        ids.root_uuid_text(),
        crate::BOOT_DIR
    )
}
