//! base-image DISK ROOTFS_TAR UUID OUT: fills the root partition of the raw disk DISK with the files of ROOTFS_TAR, in an
//! ext4 file system of that UUID, and writes the result as qcow2. This is how `tools/base-image/build.sh` makes a base
//! image as an ordinary user.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use vmbake_compose::merge::unpack;
use vmbake_compose::stage::{ArchiveLimits, archive};
use vmbake_disk::disk;
use vmbake_disk::ext4::{self, Size, VolumeOptions};
use vmbake_disk::image::{Format, Image};
use vmbake_disk::source::{FileSource, ReadAt};
use vmbake_disk::tree::Origin;
use vmbake_disk::write::{Output, write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [disk, tar, uuid, out] = arguments.as_slice() else {
        return Err("usage: base-image DISK ROOTFS_TAR UUID OUT".into());
    };
    let image = Image::open(Path::new(disk))?;
    let disk_len = image.len();
    let base = disk::open(Arc::new(image), None)?;
    let tar = File::open(tar)?;
    let entries = archive::read(&tar, &ArchiveLimits::ROOT)?;
    let newest = entries.iter().map(|entry| entry.meta.mtime.secs).max().unwrap_or(0);
    let tree = unpack(&entries, Arc::new(FileSource::new(tar)?), Origin::default())?;
    let uuid: [u8; 16] = u128::from_str_radix(&uuid.replace('-', ""), 16)?.to_be_bytes();
    let options = VolumeOptions {
        size: Size::Exact(disk::root_len(&base, disk_len)?),
        uuid,
        label: Vec::new(),
        hash_seed: uuid,
        epoch: u32::try_from(newest)?,
    };
    let volume = ext4::author(&tree, &options)?;
    let disk = disk::assemble(&base, disk_len, volume.map(), volume.sources())?;
    let file = File::options().read(true).write(true).create_new(true).open(out)?;
    let outputs = [Output::new(Format::Qcow2, &file)];
    write(&disk, &outputs, std::thread::available_parallelism()?, &|_| ())?;
    Ok(())
}
