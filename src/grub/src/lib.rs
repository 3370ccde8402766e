//! GRUB for a new disk: a tree with Debian's packages of GRUB and shim in; a [`BaseDisk`] with boot sector, core image and EFI system
//! partition, but an empty root partition, out.
//!
//! [`check`] says whether a system can start from a new disk, [`with_mounts`] and [`menu`](menu()) make its `fstab` and its menu.
//!
//! [`new_disk`] has the partitions of Debian's cloud images. Machines with BIOS start GRUB's [`CoreImage`], which is built from the
//! modules of the package `grub-pc-bin` as by grub-mkimage(1). Machines with UEFI start copies of the signed programs of `shim-signed` and
//! `grub-efi-ARCH-signed`: nothing is built for them. All GUIDs are derived from the name of the image ([`DiskIds`]).
//!
//! All input is untrusted: sizes and offsets are checked, and a fault is reported with path and offset.
//!
//! [`BaseDisk`]: vmbake_disk::disk::BaseDisk

mod error;
mod ids;
mod kernel;
mod modules;
mod core_image;
mod esp;
mod menu;
mod system;
mod layout;

pub use core_image::{CoreImage, DEFAULT_MODULES, PREFIX};
pub use error::{Fault, GrubError};
pub use esp::{EfiFiles, is_bootable_by_efi};
pub use ids::DiskIds;
pub use layout::{DEFAULT_LEN, new_disk};
pub use menu::{MKCONFIG, menu};
pub use system::{ESP_POINT, FSTAB, check, has_bios, with_mounts, without_initrd};

/// Where `grub-pc-bin` keeps the parts of GRUB for BIOS.
pub const BIOS_DIR: &str = "/usr/lib/grub/i386-pc";
/// GRUB's directory on the root file system.
pub const BOOT_DIR: &str = "/boot/grub";
