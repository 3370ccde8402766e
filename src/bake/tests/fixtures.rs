//! Packages, archives and trees that tests make. Used by the tests of `bake` and by those of the program.
#![allow(dead_code, reason = "neither uses all of it")]

use std::fs;
use std::io::{Seek, Write};
use std::sync::Arc;
use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

/// The status file of the base.
pub const BASE_STATUS: &str = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.41-12\n\
    Provides: libc-dev-virtual (= 3)\n\nPackage: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\n\
    Version: 1\n\nPackage: wall\nStatus: install ok installed\nArchitecture: all\nVersion: 1\nBreaks: fragile (<< 2)\n\n";

/// A base with accounts, dpkg's state, a shell, and `/lib` and `/bin` as links into `/usr`.
pub fn base() -> Tree {
    let meta = Metadata::root(0o755, Timestamp::default());
    let mut tree = Tree::new(meta.clone(), Origin { layer: "base".to_owned(), ..Origin::default() });
    let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
    for dir in ["/etc", "/usr/bin", "/usr/lib", "/var/lib/dpkg/info"] {
        tree.make_dirs(dir.as_bytes(), &meta, origin).unwrap();
    }
    for (path, target) in [("/lib", "usr/lib"), ("/bin", "usr/bin")] {
        let kind = Kind::Symlink(target.as_bytes().to_vec());
        tree.place(path.as_bytes(), Inode { meta: meta.clone(), kind, origin }).unwrap();
    }
    for (path, text) in [
        ("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"),
        ("/etc/group", "root:x:0:\n"),
        ("/etc/taken.conf", "mine\n"),
        ("/usr/bin/sh", "the shell of scripts"),
        ("/usr/bin/systemctl", "\x7fELF"),
        ("/usr/lib/os-release", "ID=debian\n"),
        ("/var/lib/dpkg/status", BASE_STATUS),
    ] {
        let source = tree.sources_mut().add(Arc::new(text.as_bytes().to_vec()));
        let kind = Kind::File(Map::whole(source, 0, text.len() as u64));
        tree.place(path.as_bytes(), Inode { meta: Metadata::root(0o644, meta.mtime), kind, origin }).unwrap();
    }
    tree
}

/// The base with more files, or with other text in those that it has.
pub fn base_with(files: &[(&str, &str)]) -> Tree {
    let mut tree = base();
    let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
    let meta = Metadata::root(0o755, Timestamp::default());
    // Without it, no unit is started.
    for (path, text) in files.iter().chain(&[("/usr/lib/systemd/systemd", "")]) {
        let source = tree.sources_mut().add(Arc::new(text.as_bytes().to_vec()));
        let kind = Kind::File(Map::whole(source, 0, text.len() as u64));
        tree.make_dirs(path.rsplit_once('/').unwrap().0.as_bytes(), &meta, origin).unwrap();
        tree.place(path.as_bytes(), Inode { meta: Metadata::root(0o644, meta.mtime), kind, origin }).unwrap();
    }
    tree
}

/// The text of a file of the tree.
pub fn text(tree: &Tree, path: &str) -> String {
    String::from_utf8(tree.read(path.as_bytes(), 1 << 20).unwrap()).unwrap()
}

/// Where a symbolic link of the tree points to.
pub fn link(tree: &Tree, path: &str) -> String {
    match &tree.inode(tree.lookup(path.as_bytes()).unwrap()).kind {
        Kind::Symlink(target) => String::from_utf8(target.clone()).unwrap(),
        other => panic!("{path}: {}", other.name()),
    }
}

/// One member of a tar archive, as any hostile program could write it.
pub fn member(kind: u8, name: &[u8], link: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
    header.set_mode(if kind == b'5' { 0o755 } else { 0o644 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1_600_000_000);
    header.set_size(content.len() as u64);
    header.set_entry_type(tar::EntryType::new(kind));
    if kind == b'S' {
        let gnu = header.as_gnu_mut().unwrap();
        (gnu.realsize, gnu.sparse[0].numbytes) = (*b"00000010000\0", *b"00000000000\0");
        gnu.sparse[0].offset = *b"00000010000\0";
    }
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// The same member with another mode and owner.
pub fn owned(mut member: Vec<u8>, mode: u32, uid: u64, gid: u64) -> Vec<u8> {
    let mut header = tar::Header::from_byte_slice(&member[..512]).clone();
    header.set_mode(mode);
    header.set_uid(uid);
    header.set_gid(gid);
    header.set_cksum();
    member[..512].copy_from_slice(header.as_bytes());
    member
}

/// A regular file.
pub fn file(name: &str, content: &str) -> Vec<u8> {
    member(b'0', name.as_bytes(), b"", content.as_bytes())
}

/// A directory.
pub fn dir(name: &str) -> Vec<u8> {
    member(b'5', name.as_bytes(), b"", b"")
}

/// A member with another mode.
pub fn with_mode(mut member: Vec<u8>, mode: u32) -> Vec<u8> {
    let mut header = tar::Header::from_byte_slice(&member[..512]).clone();
    header.set_mode(mode);
    header.set_cksum();
    member[..512].copy_from_slice(header.as_bytes());
    member
}

/// A pax header with one record, for the member after it.
pub fn pax(key: &str, value: &[u8]) -> Vec<u8> {
    record(b'x', key, value)
}

/// A pax header with one record, for all members after it.
pub fn global(key: &str, value: &[u8]) -> Vec<u8> {
    record(b'g', key, value)
}

fn record(kind: u8, key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let len = (rest + 1..).find(|len| len.to_string().len() + rest == *len).unwrap();
    member(kind, b"PaxHeaders/x", b"", &[format!("{len} {key}=").as_bytes(), value, b"\n"].concat())
}

/// An archive of members, with the two empty blocks at its end.
pub fn tar(members: &[Vec<u8>]) -> Vec<u8> {
    [members.concat(), vec![0; 1024]].concat()
}

/// Compresses bytes in the format of that file name extension.
pub fn compress(format: &str, bytes: &[u8]) -> Vec<u8> {
    match format {
        "gz" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "xz" => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "zst" => zstd::encode_all(bytes, 1).unwrap(),
        other => panic!("{other}"),
    }
}

/// A control file for a package of that name, with more lines.
pub fn control(name: &str, more: &str) -> String {
    format!(
        "Package: {name}\nVersion: 1.0-1\nArchitecture: amd64\nMaintainer: M <m@example.org>\n{more}Description: d\n"
    )
}

/// A package from its control file, other control files, and the members of its data.
pub fn deb(control: &str, info: &[(&str, &str)], data: &[Vec<u8>]) -> Vec<u8> {
    let mut files = vec![dir("./"), file("./control", control)];
    files.extend(info.iter().map(|(name, text)| file(&format!("./{name}"), text)));
    let control = compress("xz", &tar(&files));
    ar(&[("debian-binary", b"2.0\n"), ("control.tar.xz", &control), ("data.tar.xz", &compress("xz", &tar(data)))])
}

/// An ar archive.
pub fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = ar::Builder::new(Vec::new());
    for (name, bytes) in members {
        builder.append(&ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64), *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

/// A temporary file with that content.
pub fn temporary(bytes: &[u8]) -> fs::File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}
