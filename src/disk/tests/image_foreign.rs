//! Files other than raw or qcow2 images, made by the real tools: each is refused with the name of its format and a
//! command that helps.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use vmbake_disk::image::{Image, ImageError};

use crate::image_tools::{arg, mixed};
use crate::tools::{have, run};

/// The message, which names the file, and the hint.
fn refused(path: &Path) -> (String, String) {
    let error = Image::open(path).unwrap_err();
    let hint = error.hint().unwrap();
    let text = error.to_string();
    let name = format!("{}: ", path.display());
    assert!(text.starts_with(&name), "{text}");
    (text[name.len()..].to_owned(), hint.replace(&format!("{}/", path.parent().unwrap().display()), ""))
}

fn disk(dir: &TempDir) -> std::path::PathBuf {
    let path = dir.path().join("disk.raw");
    let mut bytes = vec![0; 1 << 20];
    bytes.extend(mixed(1 << 20));
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn formats_that_qemu_converts() {
    if !have("qemu-img") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let disk = disk(&dir);
    for (name, format, options, what) in [
        ("a.vmdk", "vmdk", "subformat=monolithicSparse", "a VMware disk image (vmdk)"),
        ("b.vmdk", "vmdk", "subformat=streamOptimized", "a VMware disk image (vmdk)"),
        ("c.vmdk", "vmdk", "subformat=monolithicFlat", "a descriptor of a VMware disk image (vmdk)"),
        ("a.vdi", "vdi", "static=off", "a VirtualBox disk image (vdi)"),
        ("a.vhdx", "vhdx", "subformat=dynamic", "a Hyper-V disk image (vhdx)"),
        ("a.vhd", "vpc", "subformat=dynamic", "a dynamic Virtual PC disk image (vhd)"),
        ("b.vhd", "vpc", "subformat=fixed", "a fixed Virtual PC disk image (vhd)"),
        ("a.qed", "qed", "cluster_size=65536", "a QEMU enhanced disk image (qed)"),
        ("a.hdd", "parallels", "cluster_size=1048576", "a Parallels disk image"),
    ] {
        let path = dir.path().join(name);
        run("qemu-img", &["convert", "-f", "raw", "-O", format, "-o", options, arg(&disk), arg(&path)]);
        let (text, hint) = refused(&path);
        assert_eq!(text, format!("{what}; only raw and qcow2 disk images are supported"));
        // The command works, and makes what is read.
        let command = hint.strip_prefix("convert it: ").unwrap();
        let done = Command::new("sh").args(["-c", command]).current_dir(dir.path()).status().unwrap();
        assert!(done.success(), "{command}");
        let made = path.with_extension("qcow2");
        assert!(Image::open(&made).is_ok());
        fs::remove_file(made).unwrap();
    }
}

#[test]
fn compressed_files_and_archives() {
    if !["gzip", "xz", "zstd", "tar"].into_iter().all(have) {
        return;
    }
    let dir = TempDir::new().unwrap();
    disk(&dir);
    for (make, name, what, command) in [
        ("gzip -k disk.raw", "disk.raw.gz", "compressed with gzip", "gzip -dk disk.raw.gz"),
        ("xz -0k disk.raw", "disk.raw.xz", "compressed with xz", "xz -dk disk.raw.xz"),
        ("zstd -q disk.raw", "disk.raw.zst", "compressed with zstd", "zstd -d disk.raw.zst"),
        ("tar -cf disk.tar disk.raw", "disk.tar", "a tar archive", "tar -xf disk.tar"),
        ("tar -cJf disk.tar.xz disk.raw", "disk.tar.xz", "compressed with xz", "tar -xf disk.tar.xz"),
    ] {
        let shell = |command: &str| Command::new("sh").args(["-c", command]).current_dir(dir.path()).output().unwrap();
        assert!(shell(make).status.success(), "{make}");
        let (text, hint) = refused(&dir.path().join(name));
        assert!(text.starts_with(what), "{text}");
        assert_eq!(hint, format!("unpack it: {command}"));
        fs::remove_file(dir.path().join("disk.raw")).unwrap();
        let done = shell(command);
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        assert!(Image::open(&dir.path().join("disk.raw")).is_ok(), "{command}");
    }
}

#[test]
fn rarer_ones_by_their_magic_numbers() {
    let dir = TempDir::new().unwrap();
    let footer = [&vec![0; 4096][..], b"koly", &[0; 508]].concat();
    for (bytes, what, hint) in [
        (&b"BZh91AY&SY\0\0"[..], "compressed with bzip2", "bzip2 -dk it"),
        (b"PK\x03\x04\x14\0", "a zip archive", "unzip it"),
        (b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive", "7z x it"),
        (b"\x04\x22\x4d\x18\x64\x40", "compressed with lz4", "lz4 -d it"),
        (b"\x3a\xff\x26\xed\x01\0", "an Android sparse image", "simg2img it"),
        (&footer, "an Apple disk image (dmg)", "qemu-img convert -f dmg -O qcow2 it it.qcow2"),
        (b"COWD\x01\0", "a VMware disk image (vmdk)", "qemu-img convert -f vmdk -O qcow2 it it.qcow2"),
    ] {
        let path = dir.path().join("it");
        fs::write(&path, bytes).unwrap();
        let (text, found) = refused(&path);
        assert!(text.starts_with(what) && found.ends_with(hint), "{text}; {found}");
    }
}

#[test]
fn text_and_nothing() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("it's here");
    let page = "\n<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n";
    let sums = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  disk.raw\n";
    for (bytes, what) in [
        (page.as_bytes(), ": an HTML page; "),
        (sums.as_bytes(), ": a text file; "),
        ("ä\r\n\tnaïve".as_bytes(), ": a text file; "),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = Image::open(&path).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.hint().unwrap().contains(r"/it'\''s here'` shows it"), "{:?}", error.hint());
    }
    fs::write(&path, "").unwrap();
    assert!(matches!(Image::open(&path), Err(ImageError::Empty { .. })));
    assert!(matches!(Image::open(dir.path()), Err(ImageError::Directory { .. })));
    // Files that may be a disk rather than text: with a zero, an invalid UTF-8 byte, or larger than any text file.
    for bytes in [b"text\0".to_vec(), b"text\xff\n".to_vec(), vec![b'x'; (1 << 20) + 1]] {
        fs::write(&path, bytes).unwrap();
        assert!(Image::open(&path).is_ok());
    }
}
