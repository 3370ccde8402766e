//! Properties of a disk image: format, size, architecture and kernel.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use vmbake_disk::disk::Arch;
use vmbake_disk::image::{Format, Image, ImageError};
use vmbake_disk::layout::{Layout, LayoutError};
use vmbake_disk::source::ReadAt;

use super::Options;
use super::scratch::{Scratch, ScratchError};
use vmbake_common::hint::{Hint, image};
use vmbake_common::spelling::of_path;
use vmbake_image::disk::InspectError;
use vmbake_image::grub::{BootError, Menu};

/// Error while opening an image.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{path}: cannot open the image")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path}: not an image of a bootable disk")]
    Disk { path: PathBuf, source: LayoutError },
    #[error("{path}: unknown architecture: its partition types do not specify one")]
    UnknownArch { path: PathBuf },
    #[error(transparent)]
    Kernel(#[from] BootError),
    #[error(transparent)]
    Scratch(#[from] ScratchError),
}

impl Hint for GuestError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Image(ImageError::Corrupt { .. } | ImageError::Decompress { .. }) => {
                "the file is corrupt or incomplete: check it with `sha256sum -c SHA256SUMS`, or fetch or bake it again"
            }
            Self::Image(error) => return Hint::hint(error),
            Self::Open { path, source } => return of_path(path, source, &image()),
            Self::Disk { .. } => {
                return Some(format!(
                    "use a {} image with a GPT and a root partition; `vmbake inspect` shows the contents of an image",
                    Format::NAMES
                ));
            }
            Self::UnknownArch { .. } => {
                "set the partition type with `sgdisk --typecode=1:8304` for amd64, or 1:8305 for arm64; an MBR has no such types"
            }
            Self::Kernel(BootError::Image {
                source: InspectError::Layout { error: LayoutError::SeveralRoots { .. }, .. },
                ..
            }) => "select one with --partition N",
            Self::Kernel(_) => "use the image's boot loader with --firmware bios or uefi",
            Self::Scratch(error) => return error.hint(),
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Image, Kernel, Scratch; Open, Disk);
}

/// A bootable disk image.
pub struct Guest {
    pub path: PathBuf,
    /// The file, open for reading.
    pub file: File,
    image: Arc<Image>,
    /// Image format.
    pub format: Format,
    /// Disk size in bytes.
    pub size: u64,
    /// Architecture.
    pub arch: Arch,
}

impl Guest {
    /// Reads header, partition table and architecture of the image at `path`, which is opened only here, so that QEMU
    /// gets the same file.
    pub fn open(path: &Path) -> Result<Self, GuestError> {
        let path = path.to_owned();
        // Without O_NONBLOCK, opening a named pipe would wait for a writer.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let opened = File::options().read(true).custom_flags(flags).open(&path);
        let (file, same) = match opened.and_then(|file| Ok((file.try_clone()?, file))) {
            Ok(files) => files,
            Err(source) => return Err(GuestError::Open { path, source }),
        };
        let image = Arc::new(Image::of(same, &path)?);
        let (format, size) = (image.format(), image.len());
        let layout = match Layout::read(Arc::clone(&image) as Arc<dyn ReadAt>) {
            Ok(layout) => layout,
            Err(source) => return Err(GuestError::Disk { path, source }),
        };
        // Several root partitions must have the same architecture.
        let mut arches = layout.parts().iter().filter_map(|part| Arch::of(part.kind));
        match (arches.next(), arches.next()) {
            (Some(arch), None) => Ok(Self { path, file, image, format, size, arch }),
            (Some(arch), Some(other)) if arch == other && arches.all(|other| arch == other) => {
                Ok(Self { path, file, image, format, size, arch })
            }
            _ => Err(GuestError::UnknownArch { path }),
        }
    }

    /// Identity of the file and its content, by file system metadata.
    pub fn identity(&self) -> io::Result<Identity> {
        let found = self.file.metadata()?;
        Ok(Identity {
            file: (found.dev(), found.ino()),
            content: format!("{} {}.{:09}", found.len(), found.mtime(), found.mtime_nsec()),
        })
    }

    /// The kernel of the first menu entry, its initrd, and its command line with additions.
    pub fn kernel(&self, options: &Options, scratch: &Scratch) -> Result<Kernel, GuestError> {
        let menu = Menu::of(&self.path, &self.image, options.partition)?;
        let extract = |name: &str| -> Result<File, GuestError> {
            let copied = scratch.copy(&mut menu.file(name)?)?;
            Ok(copied.map_err(|source| menu.unreadable(name, source))?)
        };
        let cmdline = [Some(menu.cmdline.as_str()), options.append.as_deref()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ");
        Ok(Kernel { kernel: extract(&menu.kernel)?, initrd: extract(&menu.initrd)?, cmdline })
    }
}

/// Identifies an image without reading it.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device and inode.
    pub file: (u64, u64),
    /// Length and change time.
    pub content: String,
}

/// Files of a direct boot.
pub struct Kernel {
    pub kernel: File,
    /// initrd.
    pub initrd: File,
    /// Kernel command line.
    pub cmdline: String,
}
