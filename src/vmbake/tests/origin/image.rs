//! Disk images of trees that a test creates or changes.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use vmbake_disk::disk;
use vmbake_disk::ext4::{self, Size, VolumeOptions};
use vmbake_disk::image::{Format, Image};
use vmbake_disk::source::{Map, ReadAt, Sources};
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};
use vmbake_disk::write;
use vmbake_image::inspect::open_tree;

/// What the images need; everything else is vmbake's own.
pub const TOOLS: [&str; 1] = ["sgdisk"];

/// A tree that is only a root directory.
pub fn empty() -> Tree {
    Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default())
}

/// A regular file's content.
pub fn content(tree: &mut Tree, bytes: &[u8]) -> Kind {
    let source = tree.sources_mut().add(Arc::new(bytes.to_vec()));
    Kind::File(Map::whole(source, 0, bytes.len() as u64))
}

/// Places a node that is root's and 0644, with the directories above it; returns its metadata to be changed.
pub fn put<'a>(tree: &'a mut Tree, path: &[u8], kind: Kind) -> &'a mut Metadata {
    let origin = tree.add_origin(Origin::default());
    let parent = path.iter().rposition(|byte| *byte == b'/').unwrap();
    tree.make_dirs(&path[..parent], &Metadata::root(0o755, Timestamp::default()), origin).unwrap();
    let mode = match &kind {
        Kind::Directory(_) => 0o755,
        Kind::Symlink(_) => 0o777,
        _ => 0o644,
    };
    let id = tree.place(path, Inode { meta: Metadata::root(mode, Timestamp::default()), kind, origin }).unwrap();
    tree.meta_mut(id)
}

/// Places a file with that text.
pub fn file<'a>(tree: &'a mut Tree, path: &str, text: &str) -> &'a mut Metadata {
    let kind = content(tree, text.as_bytes());
    put(tree, path.as_bytes(), kind)
}

/// Places a symbolic link.
pub fn link(tree: &mut Tree, path: &str, target: &str) {
    put(tree, path.as_bytes(), Kind::Symlink(target.as_bytes().to_vec()));
}

/// Writes the tree as the root file system of a raw disk with the partitions of Debian's cloud images.
pub fn write_disk(tree: &Tree, out: &Path) {
    write_disk_for("8304", tree, out);
}

/// The same with another type of the root partition, as sgdisk numbers them: `8305` for arm64.
pub fn write_disk_for(root: &str, tree: &Tree, out: &Path) {
    let blank = out.with_extension("blank");
    fs::File::create(&blank).unwrap().set_len(48 << 20).unwrap();
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let sgdisk = Command::new("sgdisk")
        .args(["--disk-guid=01234567-89AB-CDEF-0123-456789ABCDEF", "--new=14:2048:4095", "--typecode=14:EF02"])
        .args(["--new=15:4096:8191", "--typecode=15:EF00", "--new=1:8192:98270"])
        .arg(format!("--typecode=1:{root}"))
        .args([1, 14, 15].map(|number| format!("--partition-guid={number}:00000000-0000-4000-8000-{number:012}")))
        .arg(&blank)
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(sgdisk.status.success(), "{}", String::from_utf8_lossy(&sgdisk.stderr));
    write_onto(&blank, tree, out);
}

/// Writes a copy of the image at `from` whose tree was changed by `edit`.
pub fn change(from: &Path, out: &Path, edit: impl FnOnce(&mut Tree)) {
    let mut tree = open_tree(from, None).unwrap();
    edit(&mut tree);
    write_onto(from, &tree, out);
}

fn write_onto(disk: &Path, tree: &Tree, out: &Path) {
    let image = Image::open(disk).unwrap();
    let len = image.len();
    let base = disk::open(Arc::new(image), None).unwrap();
    let options = VolumeOptions {
        size: Size::Exact(disk::root_len(&base, len).unwrap()),
        uuid: [1; 16],
        label: Vec::new(),
        hash_seed: [2; 16],
        epoch: 0,
    };
    let volume = ext4::author(tree, &options).unwrap();
    let disk = disk::assemble(&base, len, volume.map(), volume.sources()).unwrap();
    let file = fs::File::options().read(true).write(true).create_new(true).open(out).unwrap();
    let outputs = [write::Output::new(Format::Raw, &file)];
    write::write(&disk, &outputs, NonZeroUsize::MIN, &|_| ()).unwrap();
}

/// Writes the disk of the image at `from` as qcow2.
pub fn convert(from: &Path, out: &Path) {
    let image = Image::open(from).unwrap();
    let mut sources = Sources::default();
    let len = image.len();
    let map = Map::whole(sources.add(Arc::new(image)), 0, len);
    let file = fs::File::options().read(true).write(true).create_new(true).open(out).unwrap();
    let outputs = [write::Output::new(Format::Qcow2, &file)];
    write::write(&disk::Disk::new(map, sources), &outputs, NonZeroUsize::MIN, &|_| ()).unwrap();
}

/// Runs vmbake.
pub fn vmbake(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vmbake")).args(arguments).output().unwrap()
}

/// What a program wrote.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
