//! Volumes that mke2fs made and the kernel filled, read by our reader: as the mount shows them.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation)]

use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use crate::common::*;

/// Makes a volume, lets the kernel fill it, and compares.
fn compare(features: &str, more: &[&str]) {
    if !have(&["mke2fs", "setfacl", "setcap", "fallocate", "mknod", "touch"]) || !can_mount() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    run("mke2fs", &[&["-q", "-F", "-t", "ext4", "-b", "4096", "-O", features], more, &[text(&image), "300M"]].concat());
    let mount = Mount::new(&image, "loop,user_xattr,acl");
    fill(mount.path());
    drop(mount);
    let mount = Mount::new(&image, "loop,ro");
    let expected = kernel_table(mount.path());
    drop(mount);
    assert!(expected.len() > 3000);
    assert_same(&table(&open(&image)), &expected);
}

fn fill(root: &Path) {
    let at = |name: &str| root.join(name);
    std::fs::create_dir_all(at("many/deep/er")).unwrap();
    for index in 0..3000 {
        std::fs::write(at(&format!("many/a-file-with-a-long-name-{index}")), format!("{index}")).unwrap();
    }
    for index in (0..3000).step_by(3) {
        std::fs::remove_file(at(&format!("many/a-file-with-a-long-name-{index}"))).unwrap();
        std::fs::write(at(&format!("many/deep/{index}")), vec![index as u8; index]).unwrap();
    }
    attributes(root);
    symlink("short", at("fast")).unwrap();
    symlink("l".repeat(59), at("fast59")).unwrap();
    symlink("l".repeat(60), at("slow60")).unwrap();
    symlink("l".repeat(4000), at("slow4000")).unwrap();
    std::fs::hard_link(at("many/deep/9"), at("linked")).unwrap();
    run("mknod", &[text(&at("null")), "c", "1", "3"]);
    run("mknod", &[text(&at("large")), "b", "259", "70000"]);
    run("mknod", &[text(&at("pipe")), "p"]);
    drop(std::os::unix::net::UnixListener::bind(at("socket")).unwrap());
    let sparse = std::fs::File::create(at("sparse")).unwrap();
    sparse.set_len(10 << 30).unwrap();
    for index in 0..700 {
        sparse.write_all_at(b"data in the middle of a block", index * 12_288 + 100).unwrap();
    }
    drop(sparse);
    run("fallocate", &["-l", "5M", text(&at("unwritten"))]);
    std::fs::OpenOptions::new().write(true).open(at("unwritten")).unwrap().write_all_at(b"x", 9999).unwrap();
    std::fs::write(at("kept"), "kept").unwrap();
    run("fallocate", &["-n", "-l", "1M", text(&at("kept"))]);
    for (name, time) in [("past", "1905-03-04 05:06:07.123456789"), ("future", "2400-01-01 00:00:00.5")] {
        run("touch", &["-m", "-d", time, text(&at(name))]);
    }
}

fn attributes(root: &Path) {
    let at = |name: &str| root.join(name);
    for (name, value) in [("small", 10), ("large", 3000), ("none", 0)] {
        let file = at(&format!("with-{name}"));
        std::fs::write(&file, name).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&file, "user.test", &vec![b'v'; value], flags).unwrap();
        rustix::fs::setxattr(&file, "trusted.test", b"t", flags).unwrap();
    }
    // Equal attribute blocks are shared by the kernel.
    for index in 0..20 {
        let file = at(&format!("shared{index}"));
        std::fs::write(&file, "x").unwrap();
        rustix::fs::setxattr(&file, "user.same", &[b's'; 500], rustix::fs::XattrFlags::empty()).unwrap();
    }
    run("setfacl", &["-m", "u:1000:r,g:7:rwx", text(&at("with-small"))]);
    run("setfacl", &["-d", "-m", "u:1000:rx", text(&at("many/deep"))]);
    run("setcap", &["cap_net_raw+ep", text(&at("with-none"))]);
    run("chown", &["70000:80000", text(&at("with-large"))]);
    run("chmod", &["6751", text(&at("with-large"))]);
    run("chmod", &["1777", text(&at("many/deep/er"))]);
}

#[test]
fn a_volume_as_trixie_makes_it() {
    compare("metadata_csum,metadata_csum_seed,64bit,orphan_file", &[]);
}

#[test]
fn a_volume_without_checksums_and_64bit() {
    compare("^metadata_csum,^64bit,^resize_inode", &[]);
}

#[test]
fn a_volume_with_small_inodes() {
    // Inodes of 128 bytes have neither nanoseconds nor room for attributes, and end in 2038.
    compare("metadata_csum,^64bit", &["-I", "128"]);
}
