//! How a disk image boots: the first entry of its GRUB menu.
//!
//! Supports only the output of Debian's `grub-mkconfig`: `menuentry … {` with one `linux` and one `initrd` command,
//! whose paths are in the file system with the menu (GNU GRUB manual, sections 16.1.2 and 17.3): the root, or a
//! separate `/boot` partition.

mod place;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::image::Image;
use vmbake_disk::source::{MapReader, ReadAt};
use vmbake_disk::tree::{Kind, Tree, TreeError};

use crate::disk::{DiskImage, InspectError};
pub use place::{BootPlace, WANTS, is_meant};
use vmbake_common::digest::Digest;
use vmbake_manifest::{Boot, BootFile};

/// Maximum size of the menu. Debian's has some 10 KiB.
const MAX_CONFIG: u64 = 1 << 20;

/// Why the boot menu cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error("{path}: cannot read the image")]
    Image { path: PathBuf, source: InspectError },
    #[error("{path}: cannot read {file}")]
    File { path: PathBuf, file: String, source: TreeError },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for BootError {
    vmbake_common::causes!(Message; Image, File);
}

/// A menu entry of GRUB.
#[derive(Debug, PartialEq, Eq)]
pub struct MenuEntry {
    pub kernel: String,
    /// Kernel command line, separated by single spaces.
    pub cmdline: String,
    /// Path of the initial RAM disk.
    pub initrd: Option<String>,
}

/// Reads how the disk image at `path` boots; `root` is the number of its root partition, if it cannot be detected.
pub fn read(path: &Path, root: Option<u32>) -> Result<Boot, BootError> {
    let menu = Menu::open(path, root)?;
    let boot_file = |name: &str| {
        let digest = Digest::of(b"").of_stream(menu.file(name)?);
        let digest = digest.map_err(|source| menu.unreadable(name, source))?.0;
        Ok::<_, BootError>(BootFile { partition: menu.partition, digest, path: name.to_owned() })
    };
    Ok(Boot { cmdline: menu.cmdline.clone(), kernel: boot_file(&menu.kernel)?, initrd: boot_file(&menu.initrd)? })
}

/// The first menu entry of a disk image, and the file system with its files.
pub struct Menu {
    path: PathBuf,
    /// Contains only the files of the entry.
    tree: Tree,
    partition: u32,
    pub kernel: String,
    /// Path of the initial RAM disk.
    pub initrd: String,
    pub cmdline: String,
}

impl Menu {
    /// Opens the disk image at `path` and reads its menu; `root` is the number of its root partition, if it cannot be
    /// detected.
    pub fn open(path: &Path, root: Option<u32>) -> Result<Self, BootError> {
        match Image::open(path) {
            Ok(image) => Self::of(path, &Arc::new(image), root),
            Err(error) => Err(BootError::Image { path: path.to_owned(), source: error.into() }),
        }
    }

    /// As [`Menu::open`], for an open image; `path` is for messages.
    pub fn of(path: &Path, image: &Arc<Image>, root: Option<u32>) -> Result<Self, BootError> {
        let unreadable = |source| BootError::Image { path: path.to_owned(), source };
        let image = DiskImage::of(path, image.format(), Arc::clone(image) as Arc<dyn ReadAt>).map_err(unreadable)?;
        let root = image.root(root).map_err(unreadable)?;
        let tree = image.tree(root, Some(&WANTS)).map_err(unreadable)?;
        let BootPlace { part, config, .. } = BootPlace::find(&image, root, &tree);
        let wanted = [Want { path: config.as_bytes(), depth: Depth::Node }];
        let tree = image.tree(part, Some(&wanted)).map_err(unreadable)?;
        let (path_of, file) = (|| path.to_owned(), || config.to_owned());
        let config = match tree.read(config.as_bytes(), MAX_CONFIG) {
            Ok(config) => config,
            Err(source) => return Err(BootError::File { path: path_of(), file: file(), source }),
        };
        let Some(MenuEntry { kernel, cmdline, initrd: Some(initrd) }) = first_entry(&String::from_utf8_lossy(&config))
        else {
            return Err(BootError::Message(message!(
                "{}: no menu entry with a linux and an initrd command in {}",
                path_of().display(),
                file()
            )));
        };
        let wanted = [&kernel, &initrd].map(|name| Want { path: name.as_bytes(), depth: Depth::Node });
        let tree = image.tree(part, Some(&wanted)).map_err(unreadable)?;
        Ok(Self { path: path_of(), tree, partition: part.number, kernel, initrd, cmdline })
    }

    /// The content of a file, which may be large.
    pub fn file(&self, name: &str) -> Result<MapReader<'_>, BootError> {
        let (path, file) = (self.path.clone(), name.to_owned());
        match self.tree.resolve(name.as_bytes()).map(|id| &self.tree.inode(id).kind) {
            Ok(Kind::File(map)) => Ok(MapReader::new(map, self.tree.sources())),
            Ok(_) => Err(BootError::Message(message!("{}: {file} is not a regular file", path.display()))),
            Err(source) => Err(BootError::File { path, file, source }),
        }
    }

    /// The error for a file that could not be copied.
    pub fn unreadable(&self, name: &str, source: std::io::Error) -> BootError {
        BootError::Message(message!("{}: cannot read {name}", self.path.display()).by(source))
    }
}

/// The first menu entry of a grub.cfg that starts a kernel.
pub fn first_entry(config: &str) -> Option<MenuEntry> {
    let lines = config.lines().map(str::trim).skip_while(|line| !line.starts_with("menuentry")).skip(1);
    let mut entry = None;
    for line in lines {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("linux" | "linux16" | "linuxefi") => {
                let kernel = words.next()?.to_owned();
                entry = Some(MenuEntry { kernel, cmdline: words.collect::<Vec<_>>().join(" "), initrd: None });
            }
            Some("initrd" | "initrd16" | "initrdefi") => {
                if let Some(entry) = &mut entry {
                    entry.initrd = words.next().map(str::to_owned);
                }
            }
            Some("menuentry" | "}") if entry.is_some() => break,
            _ => {}
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_is_what_boots() {
        let config = "linux /ignored before\nmenuentry 'Debian' --class gnu {\n\tif [ x ]; then\n\tinsmod ext2\n\tfi\n\
            \tlinux\t/boot/vmlinuz-6.12 root=PARTUUID=x ro  quiet\n\tinitrd /boot/initrd.img-6.12\n}\n\
            menuentry 'other' {\n\tlinux /boot/other single\n\tinitrd /boot/other.img\n}\n";
        let expected = MenuEntry {
            kernel: "/boot/vmlinuz-6.12".to_owned(),
            cmdline: "root=PARTUUID=x ro quiet".to_owned(),
            initrd: Some("/boot/initrd.img-6.12".to_owned()),
        };
        assert_eq!(first_entry(config), Some(expected));
        assert_eq!(first_entry("menuentry 'x' {\n linux /vmlinuz\n}").unwrap().initrd, None);
        assert_eq!(first_entry("menuentry 'x' {\n linux\n}"), None);
        assert_eq!(first_entry("set default=0\n"), None);
    }
}
