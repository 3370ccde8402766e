//! Disk images: reads base images and file trees, and writes disks.
//!
//! The modules are in the order of processing: a disk image is opened (`image`), its partitions (`layout`, from `gpt`
//! or `mbr`) and file systems (`ext4`, `fat`) are read into a [`tree::Tree`], a tree becomes a [`ext4::Volume`], and
//! volumes become a [`disk::Disk`] that is written as raw or qcow2 (`write`).
//!
//! No network access, clock or random numbers. All input is untrusted: sizes and offsets are checked before use, and no
//! input may cause a panic.
//!
//! A tree with one file becomes a volume, the volume a disk, and the disk a file, which is read again:
//!
//! ```
//! use std::num::NonZeroUsize;
//! use std::sync::Arc;
//!
//! use vmbake_disk::disk::Disk;
//! use vmbake_disk::ext4::{self, Size, VolumeOptions};
//! use vmbake_disk::image::Format;
//! use vmbake_disk::source::{FileSource, Map};
//! use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};
//! use vmbake_disk::write::{Output, write};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
//! let source = tree.sources_mut().add(Arc::new(b"hello\n".to_vec()));
//! let content = Kind::File(Map::whole(source, 0, 6));
//! let meta = Metadata::root(0o644, Timestamp::default());
//! tree.place(b"/greeting", Inode { meta, kind: content, origin: tree.first_origin() })?;
//!
//! let size = Size::Smallest { margin_bytes: 1 << 20 };
//! let options = VolumeOptions { size, uuid: [1; 16], label: b"demo".to_vec(), hash_seed: [2; 16], epoch: 0 };
//! let volume = ext4::author(&tree, &options)?;
//! let disk = Disk::new(volume.map().clone(), volume.sources().clone());
//!
//! let file = tempfile::tempfile()?;
//! write(&disk, &[Output::new(Format::Raw, &file)], NonZeroUsize::MIN, &|_| ())?;
//!
//! let (found, tree) = ext4::read(Arc::new(FileSource::new(file)?), Origin::default())?;
//! assert_eq!(found.label, b"demo");
//! assert_eq!(tree.read(b"/greeting", 100)?, b"hello\n");
//! # Ok(())
//! # }
//! ```

pub mod source;
pub mod tree;
pub mod image;
pub mod gpt;
pub mod mbr;
pub mod fat;
pub mod ext4;
pub mod squashfs;
pub mod tar;
pub mod cpio;
pub mod signature;
pub mod layout;
pub mod disk;
pub mod write;
