//! What a disk image says about itself: its format, its size, the processor it was made for, and its kernel.

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
use vmbake_common::hint::{Hint, IMAGE};
use vmbake_common::spelling::of_path;
use vmbake_image::disk::InspectError;
use vmbake_image::grub::{BootError, Menu};

/// Why an image is not booted.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{path}: cannot open the image")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path}: not the image of a disk that boots")]
    Disk { path: PathBuf, source: LayoutError },
    #[error("{path}: its architecture is not known: the types of its partitions do not tell")]
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
                "the file is damaged or incomplete: `sha256sum -c SHA256SUMS` where there is one, else fetch or bake it again"
            }
            Self::Image(error) => return Hint::hint(error),
            Self::Open { path, source } => return of_path(path, source, IMAGE),
            Self::Disk { .. } => {
                "an image is raw or qcow2, with a GUID partition table and a root partition; `vmbake inspect` says what is on it"
            }
            Self::UnknownArch { .. } => {
                "give the root partition the type of a root: `sgdisk --typecode=1:8304` for amd64, 1:8305 for arm64; an MBR has no \
                 such types"
            }
            Self::Kernel(BootError::Image {
                source: InspectError::Layout { error: LayoutError::SeveralRoots { .. }, .. },
                ..
            }) => "--partition N chooses one of them",
            Self::Kernel(_) => "--firmware bios or uefi starts what the image itself starts",
            Self::Scratch(error) => return error.hint(),
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Image, Kernel, Scratch; Open, Disk);
}

/// A disk image that can be booted.
pub struct Guest {
    /// Where it is.
    pub path: PathBuf,
    /// The image, open for reading.
    pub file: File,
    /// Its disk.
    image: Arc<Image>,
    /// How the disk is stored.
    pub format: Format,
    /// Bytes of the disk.
    pub size: u64,
    /// The processor it was made for.
    pub arch: Arch,
}

impl Guest {
    /// Reads header, partition table and architecture of the image at `path`, which is opened here and nowhere else: what qemu
    /// gets is what was read.
    pub fn open(path: &Path) -> Result<Self, GuestError> {
        let path = path.to_owned();
        // Without O_NONBLOCK the opening of a named pipe would wait for its writer.
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
        // Of several roots all are for one machine, or nobody can tell.
        let mut arches = layout.parts().iter().filter_map(|part| Arch::of(part.kind));
        match (arches.next(), arches.next()) {
            (Some(arch), None) => Ok(Self { path, file, image, format, size, arch }),
            (Some(arch), Some(other)) if arch == other && arches.all(|other| arch == other) => {
                Ok(Self { path, file, image, format, size, arch })
            }
            _ => Err(GuestError::UnknownArch { path }),
        }
    }

    /// Which file the image is, and which content it has had, as far as the file system tells.
    pub fn identity(&self) -> io::Result<Identity> {
        let found = self.file.metadata()?;
        Ok(Identity {
            file: (found.dev(), found.ino()),
            content: format!("{} {}.{:09}", found.len(), found.mtime(), found.mtime_nsec()),
        })
    }

    /// The kernel of the first menu entry, its initial RAM disk, and its command line with what is added.
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

/// Tells images apart without reading them.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device and inode.
    pub file: (u64, u64),
    /// Length and time of the last change.
    pub content: String,
}

/// What a direct boot starts.
pub struct Kernel {
    pub kernel: File,
    /// The initial RAM disk.
    pub initrd: File,
    /// The kernel's arguments.
    pub cmdline: String,
}
