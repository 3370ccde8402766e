//! Archives: what is taken and what is refused.

use vmbake_compose::stage::{ArchiveLimits, MemberKind, archive};

use super::parts::{
    self, bake, chain, compress, dir, file, global, member, pax, program, tar, temporary, text, with_mode,
};

fn read(bytes: &[u8], limits: &ArchiveLimits) -> Result<Vec<archive::Member>, String> {
    archive::read(&temporary(bytes), limits).map_err(|error| chain(&error))
}

#[test]
fn hostile_archives_are_refused() {
    let link = |target: &[u8]| member(b'1', b"link", target, b"");
    let whole = tar(&[file("a", &"x".repeat(1000))]);
    let long_name = [member(b'L', b"././@LongLink", b"", b"/abs\0"), file("a", "x")].concat();
    let endless_name =
        [member(b'L', b"././@LongLink", b"", &[&b"a/".repeat(3000)[..], b"\0"].concat()), file("a", "x")].concat();
    let deep = "d/".repeat(129) + "x";
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("endless name", tar(&[endless_name]), "name is longer than 4095 bytes"),
        ("deep", tar(&[pax("path", deep.as_bytes()), file("a", "x")]), "is more than 128 directories deep"),
        ("global path", tar(&[global("path", b"b"), file("a", "x")]), "global header with \"path\" is not supported"),
        (
            "global between",
            tar(&[pax("comment", b"x"), global("comment", b"y"), file("a", "x")]),
            "global header is between a member and its extended header",
        ),
        (
            "global behind a name",
            tar(&[member(b'L', b"././@LongLink", b"", b"b\0"), global("comment", b"y"), file("a", "x")]),
            "global header is between a member and its extended header",
        ),
        ("parent", tar(&[file("../x", "x")]), "\"../x\": name contains `..`"),
        ("parent inside", tar(&[file("a/../../x", "x")]), "name contains `..`"),
        ("absolute", tar(&[file("/etc/shadow", "x")]), "\"/etc/shadow\": name is absolute"),
        ("absolute long name", tar(&[long_name]), "\"/abs\": name is absolute"),
        ("pax parent", tar(&[pax("path", b"../x"), file("a", "x")]), "\"../x\": name contains `..`"),
        ("pax NUL", tar(&[pax("path", b"a\0b"), file("a", "x")]), "a NUL byte"),
        (
            "through its link",
            tar(&[member(b'2', b"d", b"/etc", b""), file("d/passwd", "x")]),
            "\"d/passwd\": leads through the archive's symbolic link \"d\"",
        ),
        ("hard link out", tar(&[link(b"../../etc/shadow")]), "\"../../etc/shadow\": name contains `..`"),
        ("hard link to an absolute path", tar(&[link(b"/etc/shadow")]), "\"/etc/shadow\": name is absolute"),
        (
            "hard link to nothing",
            tar(&[link(b"none")]),
            "is a hard link to \"none\", which is not an earlier file of the archive",
        ),
        ("hard link to a later file", tar(&[link(b"a"), file("a", "x")]), "which is not an earlier file"),
        ("hard link to a link", tar(&[member(b'2', b"s", b"/x", b""), link(b"s")]), "which is not an earlier file"),
        ("hard link without target", tar(&[link(b"")]), "link without target"),
        ("character device", tar(&[member(b'3', b"null", b"", b"")]), "devices and named pipes are not"),
        ("block device", tar(&[member(b'4', b"sda", b"", b"")]), "devices and named pipes are not"),
        ("pipe", tar(&[member(b'6', b"pipe", b"", b"")]), "devices and named pipes are not"),
        ("twice", tar(&[file("a", "x"), file("./a", "y")]), "\"a\": is duplicated"),
        ("file, then directory", tar(&[file("a", "x"), dir("a/")]), "\"a\": is duplicated"),
        ("directory, then link", tar(&[dir("a/"), member(b'2', b"a", b"b", b"")]), "\"a\": is duplicated"),
        ("GNU sparse", tar(&[member(b'S', b"s", b"", b"")]), "sparse members are not supported"),
        ("pax sparse", tar(&[pax("GNU.sparse.major", b"1"), file("a", "x")]), "sparse members are not supported"),
        ("unknown type", tar(&[member(b'Z', b"z", b"", b"")]), "unknown type 'Z'"),
        ("owner out of range", tar(&[pax("uid", b"4294967296"), file("a", "x")]), "out of range"),
        ("bad time", tar(&[pax("mtime", b"1.x"), file("a", "x")]), "bad mtime record"),
        ("ends in a member", whole[..512 + 300].to_vec(), "ends at byte 812, inside member \"a\""),
        ("ends in a header", whole[..300].to_vec(), "cannot read at byte 0"),
        ("ends in a later header", whole[..1536].iter().chain(&whole[..100]).copied().collect(), "cannot read at byte"),
        ("ends in the padding", tar(&[file("a", "x")])[..700].to_vec(), "ends at byte 700, inside member \"a\""),
        ("no archive", vec![b'x'; 2048], "cannot read at byte 0"),
    ];
    for (label, bytes, expected) in cases {
        let error = read(&bytes, &ArchiveLimits::ARTIFACT).expect_err(label);
        assert!(error.contains(expected), "{label}: {error}");
    }
}

/// Archives that programs read differently, so that their contents would be ambiguous.
#[test]
fn ambiguous_archives_are_refused() {
    let long = |name: &[u8]| member(b'L', b"././@LongLink", b"", name);
    let two = |first: &[u8], second: &[u8]| member(b'x', b"x", b"", &[first, second].concat());
    let a = || file("a", "x");
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("directory with a content", member(b'5', b"d", b"", b"x"), "is not a file, but has 1 bytes of content"),
        ("link with a content", member(b'2', b"l", b"a", b"x"), "is not a file, but has"),
        ("old directory with a content", file("d/", "x"), "is not a file, but has"),
        ("hard link with a content", [a(), member(b'1', b"b", b"a", b"x")].concat(), "is not a file, but has"),
        (
            "names of two kinds",
            [long(b"b\0"), pax("path", b"c"), a()].concat(),
            "headers of GNU tar and of pax for one",
        ),
        (
            "in the other order",
            [pax("mtime", b"1"), long(b"b\0"), a()].concat(),
            "headers of GNU tar and of pax for one",
        ),
        ("long name without its end", [long(b"b"), a()].concat(), "long name does not end with a NUL byte"),
        ("one key twice", [two(b"9 path=b\n", b"9 path=c\n"), a()].concat(), "two records of \"path\""),
        ("key with a NUL", [pax("a\0b", b"c"), a()].concat(), "record with the key"),
        ("record without a key", [pax("", b"c"), a()].concat(), "record with the key \"\""),
        ("record too long", [member(b'x', b"x", b"", b"99 path=b\n"), a()].concat(), "malformed record"),
        ("record without a line end", [member(b'x', b"x", b"", b"9 path=b "), a()].concat(), "malformed record"),
        ("nameless attribute", [pax("SCHILY.xattr.", b"c"), a()].concat(), "extended attribute without a name"),
        ("signed owner", [pax("uid", b"+7"), a()].concat(), "bad uid record"),
        ("signed time", [pax("mtime", b"+7"), a()].concat(), "bad mtime record"),
        ("empty name", [pax("path", b""), a()].concat(), "has no name"),
        ("signed mode", changed(&a(), 100, b"+7\0"), "mode is"),
        ("owner of another base", changed(&a(), 108, b"0x1\0"), "uid is"),
        ("large owner", changed(&a(), 108, b"\x80\x01"), "is out of range"),
        ("large time", changed(&a(), 136, b"\x80\x01\0\0\0\0\0\0\0\0\0\0"), "mtime is"),
        ("large size", changed(&a(), 124, b"\x80\x01\0\0\0\0\0\0\0\0\0\x01"), "size is"),
        ("version of ustar", changed(&a(), 257, b"ustar\x0001"), "unknown version of ustar"),
        (
            "device out of range",
            changed(&member(b'3', b"c", b"", b""), 329, b"0010000\x000000000\0"),
            "is out of range",
        ),
    ];
    for (label, members, expected) in cases {
        let error = read(&tar(&[members]), &ArchiveLimits::ROOT).expect_err(label);
        assert!(error.contains(expected), "{label}: {error}");
    }
}

/// A member with other bytes in its header.
fn changed(member: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut member = member.to_vec();
    member[at..at + bytes.len()].copy_from_slice(bytes);
    let mut header = tar::Header::from_byte_slice(&member[..512]).clone();
    header.set_cksum();
    member[..512].copy_from_slice(header.as_bytes());
    member
}

#[test]
fn odd_archives_are_read_as_gnu_tar_reads_them() {
    let value = b"line\nend\0\n14 path=other\n";
    let members = [
        file("old/", ""),
        changed(&member(b'2', b"link", b"old", b""), 100, b"0000640\0"),
        changed(&file("early", ""), 136, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe"),
        [pax("SCHILY.xattr.user.a", value), file("attribute", "x")].concat(),
    ];
    let entries = read(&tar(&members), &ArchiveLimits::ARTIFACT).unwrap();
    let [old, link, early, attribute] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((old.path.as_slice(), &old.kind), (&b"old"[..], &MemberKind::Directory));
    assert_eq!(link.meta.mode, 0o777);
    assert_eq!(early.meta.mtime.secs, -2);
    assert_eq!(attribute.path, b"attribute");
    assert_eq!(attribute.meta.xattrs[&b"user.a"[..]], value);
}

#[test]
fn members_and_devices_are_limited() {
    let bytes = tar(&[file("a", ""), file("b", ""), member(b'6', b"pipe", b"", b"")]);
    let limits = ArchiveLimits { members: 2, ..ArchiveLimits::ROOT };
    assert_eq!(read(&bytes, &limits).unwrap_err(), "more than 2 members");
    let entries = read(&bytes, &ArchiveLimits::ROOT).unwrap();
    assert_eq!(entries[2].kind, MemberKind::Fifo);
}

#[test]
fn directories_that_are_only_on_the_way_count() {
    let limits = ArchiveLimits { members: 3, ..ArchiveLimits::ARTIFACT };
    assert!(read(&tar(&[file("a/b/x", ""), file("a/b/y", "")]), &limits).is_ok());
    let error = read(&tar(&[file("a/b/x", ""), file("c/d/y", "")]), &limits).unwrap_err();
    assert_eq!(error, "more than 3 members");
}

#[test]
fn what_git_archive_writes_is_read() {
    let entries = read(&tar(&[global("comment", b"0123456789"), file("a", "x")]), &ArchiveLimits::ARTIFACT).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.path.as_slice()).collect::<Vec<_>>(), [b"a"]);
}

#[test]
fn all_streams_of_a_file_are_decompressed() {
    let plain = tar(&[file("a", "1"), file("b", "2")]);
    for format in ["gz", "xz", "zst"] {
        let (first, second) = plain.split_at(1024);
        let bytes = [compress(format, first), compress(format, second)].concat();
        let tree = bake(&[parts::archive("tools", bytes)]).unwrap();
        assert_eq!((text(&tree, "/opt/a"), text(&tree, "/opt/b")), ("1".to_owned(), "2".to_owned()), "{format}");
    }
}

#[test]
fn bombs_are_refused() {
    let zeros = tar(&[member(b'0', b"zeros", b"", &vec![0; 100 << 20])]);
    let control = compress("xz", &tar(&[file("control", &parts::control("p", ""))]));
    for format in ["gz", "xz", "zst"] {
        let bomb = compress(format, &zeros);
        let expected =
            format!("{} bytes decompress to more than {}: refused as a decompression bomb", bomb.len(), 64 << 20);
        let data = format!("data.tar.{format}");
        let deb = parts::ar(&[("debian-binary", b"2.0\n"), ("control.tar.xz", &control), (&data, &bomb)]);
        for part in [parts::archive("a", bomb), parts::package("a", deb)] {
            let error = bake(&[part]).unwrap_err();
            assert!(error.starts_with("a: invalid ") && error.ends_with(&expected), "{format}: {error}");
        }
    }
}

#[test]
fn every_compression_gives_the_same_files() {
    let plain = tar(&[
        pax("mtime", b"1600000000.25"),
        file("./bin/tool", "#!/bin/sh\n"),
        member(b'1', b"./bin/same", b"./bin/tool", b""),
    ]);
    for bytes in [plain.clone(), compress("gz", &plain), compress("xz", &plain), compress("zst", &plain)] {
        let tree = bake(&[parts::archive("tools", bytes)]).unwrap();
        assert_eq!(text(&tree, "/opt/bin/tool"), "#!/bin/sh\n");
        let inode = tree.inode(tree.lookup(b"/opt/bin/tool").unwrap());
        assert_eq!((inode.meta.mtime.secs, inode.meta.mtime.nanos), (1_600_000_000, 250_000_000));
        assert_eq!(tree.origin(inode.origin).artifact.as_deref(), Some("tools"));
    }
    let cut = compress("gz", &plain);
    let error = bake(&[parts::archive("tools", cut[..cut.len() - 9].to_vec())]).unwrap_err();
    assert!(error.starts_with("tools: invalid archive: cannot decompress: failed after"), "{error}");
}

#[test]
fn two_artifacts_do_not_write_one_path() {
    let packed = || parts::archive("packed", tar(&[file("x", "x")]));
    let package = |path: &str| parts::package("deb", parts::deb(&parts::control("p", ""), &[], &[file(path, "x")]));
    let cases = [
        ("one path", [program("a", "/usr/bin/x"), program("b", "/usr/bin/x")], "/usr/bin/x: written by both a and b"),
        ("a linked directory", [program("a", "/lib/x"), program("b", "/usr/lib/x")], "written by both a and b"),
        ("the link last", [program("a", "/usr/lib/x"), program("b", "/lib/x")], "/lib/x: written by both a and b"),
        ("archive and file", [packed(), program("b", "/opt/x")], "/opt/x: written by both packed and b"),
        ("package and archive", [package("./opt/x"), packed()], "opt/x: written by both deb and packed"),
        ("package and file", [package("./lib/x"), program("b", "/usr/lib/x")], "written by both deb and b"),
        ("over a directory", [program("a", "/etc"), packed()], "/etc: a needs a regular file, found a directory"),
        ("below a file", [program("a", "/etc/passwd/x"), packed()], "expected a directory, found regular file"),
        ("directory over a file", [package("./etc"), packed()], "etc: deb needs a regular file, found"),
    ];
    for (label, parts, expected) in cases {
        let error = bake(&parts).expect_err(label);
        assert!(error.contains(expected), "{label}: {error}");
    }
    let package = parts::deb(&parts::control("p", ""), &[], &[dir("./etc/"), dir("./etc/passwd/")]);
    let error = bake(&[parts::package("deb", package)]).unwrap_err();
    assert_eq!(error, "etc/passwd: deb needs a directory, found a regular file");
}

/// The archive's own root has the mode of a new directory that it is unpacked into; one that exists keeps its own, as all directories do.
#[test]
fn the_root_of_an_archive_is_the_directory_that_it_is_unpacked_into() {
    let part = |path: &str, members: &[Vec<u8>]| parts::Part {
        install: format!(r#"{{"type": "tar", "path": "{path}"}}"#),
        ..parts::archive("a", tar(members))
    };
    let closed = [with_mode(dir("./"), 0o750), file("./a", "x")];
    for (path, members, expected) in [
        ("/opt/new", &closed[..], 0o750),
        ("/opt/new", &closed[1..], 0o755),
        ("/etc", &closed[..], 0o755),
        ("/", &closed[..], 0o755),
    ] {
        let tree = bake(&[part(path, members)]).unwrap();
        assert_eq!(tree.inode(tree.resolve(path.as_bytes()).unwrap()).meta.mode, expected, "{path}");
        assert!(tree.lookup(format!("{path}/a").as_bytes()).is_some(), "{path}");
    }
}

#[test]
fn empty_files_are_not_archives() {
    for kind in ["tar", "zip"] {
        let install = format!(r#"{{"type": "{kind}", "path": "/opt"}}"#);
        let error = bake(&[parts::Part { name: "tools", kind, install, bytes: Vec::new() }]).unwrap_err();
        assert!(error.starts_with("tools: invalid archive: "), "{error}");
    }
}
