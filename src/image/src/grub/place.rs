//! Locates `/boot`: in the root file system, or on a separate partition.

use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::layout::Part;
use vmbake_disk::tree::{Kind, Tree};

use crate::disk::DiskImage;
use crate::filesystem::probe;

/// Maximum size of fstab.
const MAX_FSTAB: u64 = 1 << 20;

/// The partition with GRUB's menu and the kernels.
pub struct BootPlace<'a> {
    pub part: &'a Part,
    /// The directory of `/boot` in its file system: `/boot` or the root.
    pub(crate) dir: &'static str,
    /// GRUB's menu, in the same file system.
    pub config: &'static str,
}

/// The files of the root file system that [`BootPlace::find`] reads.
pub const WANTS: [Want<'static>; 2] =
    [Want { path: b"/etc/fstab", depth: Depth::Node }, Want { path: IN_ROOT.as_bytes(), depth: Depth::Node }];

const IN_ROOT: &str = "/boot/grub/grub.cfg";
const ON_ITS_OWN: &str = "/grub/grub.cfg";

impl<'a> BootPlace<'a> {
    /// Finds the partition that fstab(5) mounts on `/boot`; without such a line, the root if it has GRUB's menu;
    /// otherwise the only other partition that has one.
    pub fn find(image: &'a DiskImage, root: &'a Part, tree: &Tree) -> Self {
        let apart = |part| Self { part, dir: "/", config: ON_ITS_OWN };
        let mounted = mounted_on_boot(tree).and_then(|spec| {
            let mut others = others(image, root);
            others.find(|part| is_meant(image, part, &spec))
        });
        if let Some(part) = mounted {
            return apart(part);
        }
        if !has_file(tree, IN_ROOT) {
            let with_menu: Vec<&Part> = others(image, root).filter(|part| has_menu(image, part)).collect();
            if let [part] = with_menu[..] {
                return apart(part);
            }
        }
        Self { part: root, dir: "/boot", config: IN_ROOT }
    }
}

fn others<'a>(image: &'a DiskImage, root: &'a Part) -> impl Iterator<Item = &'a Part> {
    image.layout().parts().iter().filter(move |part| part.number != root.number && !part.kind.is_extended())
}

fn has_menu(image: &DiskImage, part: &Part) -> bool {
    let wants = [Want { path: ON_ITS_OWN.as_bytes(), depth: Depth::Node }];
    image.tree(part, Some(&wants)).is_ok_and(|tree| has_file(&tree, ON_ITS_OWN))
}

fn has_file(tree: &Tree, path: &str) -> bool {
    tree.resolve(path.as_bytes()).is_ok_and(|id| matches!(tree.inode(id).kind, Kind::File(_)))
}

/// The device in fstab's line for `/boot`.
fn mounted_on_boot(tree: &Tree) -> Option<String> {
    let fstab = tree.read(b"/etc/fstab", MAX_FSTAB).ok()?;
    let fstab = String::from_utf8_lossy(&fstab);
    let mut lines = fstab.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.find_map(|line| {
        let mut fields = line.split_whitespace();
        let (spec, target) = (fields.next()?, fields.next()?);
        (target.trim_end_matches('/') == "/boot").then(|| spec.to_owned())
    })
}

/// Whether the device in a line of fstab refers to a partition.
pub fn is_meant(image: &DiskImage, part: &Part, spec: &str) -> bool {
    let tagged = ["UUID", "LABEL", "PARTUUID", "PARTLABEL"].into_iter().find_map(|tag| {
        let link = format!("/dev/disk/by-{}/", tag.to_lowercase());
        let value = spec.strip_prefix(tag).and_then(|rest| rest.strip_prefix('='));
        Some((tag, value.or_else(|| spec.strip_prefix(&link))?.trim_matches('"')))
    });
    match tagged {
        Some(("PARTUUID", value)) => part.uuid.eq_ignore_ascii_case(value),
        Some(("PARTLABEL", value)) => part.name == value,
        Some((tag, value)) => {
            let found = image.layout().open(part).ok().and_then(|source| probe(&*source).0);
            found.is_some_and(|found| match tag {
                "UUID" => found.uuid.eq_ignore_ascii_case(value),
                _ => found.label == value,
            })
        }
        // A device name, such as /dev/vda2 or /dev/nvme0n1p2: the image is assumed to be the only disk.
        None => spec.starts_with("/dev/") && number(spec) == Some(part.number),
    }
}

/// The number at the end of a partition's name.
fn number(device: &str) -> Option<u32> {
    let name = device.trim_end_matches(|char: char| char.is_ascii_digit());
    // A number at the end of a logical volume's name is not a partition number.
    if device.starts_with("/dev/mapper/") { None } else { device[name.len()..].parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn names_of_partitions_end_with_their_number() {
        let cases = [
            ("/dev/vda2", Some(2)),
            ("/dev/nvme0n1p15", Some(15)),
            ("/dev/vda", None),
            ("/dev/mapper/vg-1", None),
            ("/dev/sda99999999999", None),
        ];
        for (device, expected) in cases {
            assert_eq!(number(device), expected, "{device}");
        }
    }
}
