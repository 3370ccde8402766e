//! How a disk image boots: what the first entry of its GRUB menu starts, read by our own readers.
//!
//! Only what Debian's `grub-mkconfig` writes is understood: `menuentry … {` with one `linux` and one `initrd` command, whose
//! paths are those of the root file system (GNU GRUB manual, sections 16.1.2 and 17.3).

use std::path::{Path, PathBuf};

use vmbake_disk::source::MapReader;
use vmbake_disk::tree::{Kind, Tree, TreeError};

use crate::inspect::{InspectError, open_root};
use crate::manifest::{Boot, BootFile, Digest};

/// Where Debian's GRUB has its menu.
const CONFIG: &[u8] = b"/boot/grub/grub.cfg";
/// Largest menu that is read. Debian's has some 10 KiB.
const MAX_CONFIG: u64 = 1 << 20;

/// Why it is not known how an image boots.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum BootError {
    #[error("{path}: cannot read the image")]
    Image { path: PathBuf, source: InspectError },
    #[error("{path}: /boot/grub/grub.cfg has no menu entry with a linux and an initrd command")]
    NoEntry { path: PathBuf },
    #[error("{path}: cannot read {file}")]
    File { path: PathBuf, file: String, source: TreeError },
    #[error("{path}: {file} is not a regular file")]
    NotAFile { path: PathBuf, file: String },
    #[error("{path}: cannot read {file}")]
    Content { path: PathBuf, file: String, source: std::io::Error },
}

/// A menu entry of GRUB.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path of the kernel.
    pub kernel: String,
    /// Arguments of the kernel, with one space between each two.
    pub cmdline: String,
    /// Path of the initial RAM disk.
    pub initrd: Option<String>,
}

/// Reads how the disk image at `path` boots.
pub fn read(path: &Path) -> Result<Boot, BootError> {
    let (tree, partition) = open_root(path).map_err(|source| BootError::Image { path: path.to_owned(), source })?;
    let file = |source| BootError::File { path: path.to_owned(), file: "/boot/grub/grub.cfg".to_owned(), source };
    let config = tree.read(CONFIG, MAX_CONFIG).map_err(file)?;
    let no_entry = || BootError::NoEntry { path: path.to_owned() };
    let entry = first_entry(&String::from_utf8_lossy(&config)).ok_or_else(no_entry)?;
    let initrd = entry.initrd.ok_or_else(no_entry)?;
    let boot_file = |name: String| Ok(BootFile { partition, digest: digest(path, &tree, &name)?, path: name });
    Ok(Boot { cmdline: entry.cmdline, kernel: boot_file(entry.kernel)?, initrd: boot_file(initrd)? })
}

/// SHA-256 of a file, which may be large.
fn digest(path: &Path, tree: &Tree, name: &str) -> Result<Digest, BootError> {
    let (path, file) = (path.to_owned(), name.to_owned());
    match tree.resolve(name.as_bytes()).map(|id| &tree.inode(id).kind) {
        Ok(Kind::File(map)) => {
            let digest = Digest::of(b"").of_stream(MapReader::new(map, tree.sources()));
            Ok(digest.map_err(|source| BootError::Content { path, file, source })?.0)
        }
        Ok(_) => Err(BootError::NotAFile { path, file }),
        Err(source) => Err(BootError::File { path, file, source }),
    }
}

/// The first menu entry of a grub.cfg that starts a kernel.
pub fn first_entry(config: &str) -> Option<Entry> {
    let lines = config.lines().map(str::trim).skip_while(|line| !line.starts_with("menuentry")).skip(1);
    let mut entry = None;
    for line in lines {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("linux" | "linux16" | "linuxefi") => {
                let kernel = words.next()?.to_owned();
                entry = Some(Entry { kernel, cmdline: words.collect::<Vec<_>>().join(" "), initrd: None });
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
        let expected = Entry {
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
