//! A volume as debugfs shows it: what is where, so that a change of the layout can be read and not only noticed.
//! `INSTA_UPDATE=always cargo test` writes the dump anew.

use crate::common::*;
use crate::ext4_author::fixed_tree;
use vmbake_disk::ext4::Size;

/// Lines of the superblock that do not depend on the version of debugfs.
const SUPERBLOCK: [&str; 10] = [
    "Filesystem volume name:",
    "Filesystem features:",
    "Inode count:",
    "Block count:",
    "Reserved block count:",
    "Free blocks:",
    "Free inodes:",
    "Block size:",
    "Blocks per group:",
    "Inodes per group:",
];

/// As for the superblock, of an inode; its times are printed in the local time zone.
const INODE: [&str; 5] = ["Inode:", "User:", "File ACL:", "Links:", "Fast link dest:"];

#[test]
fn of_a_small_volume() {
    if !have(&["debugfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    build(&fixed_tree(), &options(Size::Exact(16 * MIB)), &image);
    let ask = |request: &str| {
        let output = run("debugfs", &["-R", request, text(&image)]);
        String::from_utf8(output.stdout).unwrap()
    };
    let mut dump = chosen(&ask("show_super_stats -h"), &SUPERBLOCK);
    for path in ["/", "/etc", "/etc/hostname", "/bin", "/acl", "/lost+found", "<8>"] {
        let stat = ask(&format!("stat {path}"));
        let extents = stat.split_once("EXTENTS:\n").map_or("", |(_, extents)| extents.trim());
        dump += &format!("\n{path}\n{}", chosen(&stat, &INODE));
        if !extents.is_empty() {
            dump += &format!("extents {extents}\n");
        }
    }
    insta::assert_snapshot!(dump);
}

/// The lines that begin so, each in the form `name: value`.
fn chosen(text: &str, starts: &[&str]) -> String {
    let lines = text.lines().filter(|line| starts.iter().any(|start| line.starts_with(start)));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}
