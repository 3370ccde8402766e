use std::io::{Seek, Write};

use tar::{Builder, EntryType, Header};
use vmbake_disk::tree::Kind;

use super::*;

/// Type, name, and target or content.
type Entry<'a> = (EntryType, &'a str, &'a str);

const FILE: EntryType = EntryType::Regular;
const DIR: EntryType = EntryType::Directory;
const LINK: EntryType = EntryType::Link;
const SYMLINK: EntryType = EntryType::Symlink;

fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, text) in entries {
        let mut header = Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(if *kind == DIR { 0o755 } else { 0o644 });
        header.set_uid(7);
        header.set_gid(8);
        header.set_mtime(9);
        header.set_size(0);
        let mut content = &b""[..];
        match *kind {
            FILE => content = text.as_bytes(),
            LINK | SYMLINK => header.set_link_name_literal(text).unwrap(),
            _ => {}
        }
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn read_all(archives: &[Vec<u8>], form: RootForm) -> Result<Tree, String> {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(Some(dir.path().to_owned())).unwrap();
    let layer = |(number, bytes): (usize, &Vec<u8>)| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        RootLayer { name: format!("layer {number}"), digest: Digest::of(bytes), file }
    };
    let layers: Vec<RootLayer> = archives.iter().enumerate().map(layer).collect();
    read(&layers, form, &store).map_err(|error| {
        let mut text = error.to_string();
        let mut next = std::error::Error::source(&error);
        while let Some(cause) = next {
            text.push_str(&format!(": {cause}"));
            next = cause.source();
        }
        text
    })
}

fn layers(all: &[&[Entry<'_>]]) -> Result<Tree, String> {
    let archives: Vec<Vec<u8>> = all.iter().map(|entries| archive(entries)).collect();
    read_all(&archives, RootForm::Container)
}

/// All paths but the root, with the contents of files and the targets of links.
fn paths(tree: &Tree) -> Vec<String> {
    let shown = |(path, _, inode): (Vec<u8>, _, &vmbake_disk::tree::Inode)| {
        let text = String::from_utf8(path).unwrap();
        match &inode.kind {
            Kind::File(_) => format!("{text}={}", String::from_utf8(tree.read(text.as_bytes(), 99).unwrap()).unwrap()),
            Kind::Symlink(to) => format!("{text}>{}", String::from_utf8(to.clone()).unwrap()),
            _ => format!("{text}/"),
        }
    };
    tree.walk().skip(1).map(shown).collect()
}

#[test]
fn an_archive_is_unpacked_with_its_metadata() {
    let root = archive(&[(DIR, "./", ""), (FILE, "/abs", "x"), (LINK, "./hard", "/abs"), (FILE, "a/.wh.b", "kept")]);
    let tree = read_all(&[root], RootForm::Archive).unwrap();
    assert_eq!(paths(&tree), ["/a/", "/a/.wh.b=kept", "/abs=x", "/hard=x"]);
    assert_eq!(tree.lookup(b"/abs"), tree.lookup(b"/hard"));
    let meta = &tree.inode(tree.lookup(b"/abs").unwrap()).meta;
    assert_eq!((meta.mode, meta.uid, meta.gid, meta.mtime.secs), (0o644, 7, 8, 9));
    assert_eq!(tree.inode(tree.lookup(b"/").unwrap()).meta.uid, 7);
}

#[test]
fn layers_replace_and_hide_what_is_below() {
    let lower: &[Entry<'_>] = &[
        (DIR, "d", ""),
        (FILE, "d/a", "1"),
        (FILE, "d/b", "1"),
        (DIR, "d/sub", ""),
        (FILE, "d/sub/x", "1"),
        (FILE, "file", "1"),
        (SYMLINK, "way", "d"),
    ];
    for (upper, expected) in [
        (&[(FILE, "d/.wh.a", ""), (FILE, "d/.wh.sub", "")][..], &["/d/", "/d/b=1", "/file=1", "/way>d"][..]),
        // An opaque directory hides nothing of the same layer, wherever the whiteout is.
        (
            &[(FILE, "d/new", "2"), (FILE, "d/.wh..wh..opq", ""), (FILE, "d/sub/y", "2")],
            &["/d/", "/d/new=2", "/d/sub/", "/d/sub/y=2", "/file=1", "/way>d"],
        ),
        (
            &[(FILE, "d/a", "2"), (FILE, "d/.wh.a", "")],
            &["/d/", "/d/a=2", "/d/b=1", "/d/sub/", "/d/sub/x=1", "/file=1", "/way>d"],
        ),
        (&[(FILE, "d", "2")], &["/d=2", "/file=1", "/way>d"]),
        (
            &[(FILE, ".wh.file", ""), (FILE, ".wh.d", ""), (FILE, ".wh.nothing", ""), (FILE, "no/.wh.x", "")],
            &["/way>d"],
        ),
        (&[(FILE, ".wh..wh..opq", ""), (DIR, "n", "")], &["/n/"]),
        // A link becomes a directory: what it led to stays.
        (
            &[(DIR, "way", ""), (FILE, "way/.wh..wh..opq", ""), (FILE, "way/z", "2")],
            &["/d/", "/d/a=1", "/d/b=1", "/d/sub/", "/d/sub/x=1", "/file=1", "/way/", "/way/z=2"],
        ),
        (
            &[(FILE, "way/a", "2"), (LINK, "hard", "file")],
            &["/d/", "/d/a=2", "/d/b=1", "/d/sub/", "/d/sub/x=1", "/file=1", "/hard=1", "/way>d"],
        ),
    ] {
        assert_eq!(paths(&layers(&[lower, upper]).unwrap()), expected, "{upper:?}");
    }
}

#[test]
fn links_never_lead_out_of_the_tree() {
    let lower: &[Entry<'_>] = &[(SYMLINK, "out", "/../../etc"), (DIR, "etc", "")];
    let tree = layers(&[lower, &[(FILE, "out/passwd", "x")]]).unwrap();
    assert_eq!(paths(&tree), ["/etc/", "/etc/passwd=x", "/out>/../../etc"]);
}

#[test]
fn bad_layers_are_refused() {
    for (entries, expected) in [
        (
            &[(FILE, "../x", "")][..],
            "layer 1: not a usable archive of a root file system: member \"../x\": name contains `..`",
        ),
        (&[(SYMLINK, "d", "/etc"), (FILE, "d/x", "")], "leads through the archive's symbolic link \"d\""),
        (&[(LINK, "a", "none")], "layer 1: member \"a\": is a hard link to \"none\", which does not exist before it"),
        (&[(LINK, "a", "dir")], "cannot unpack \"a\": a: cannot replace a directory with a hard link"),
        (&[(FILE, "file/x", "")], "cannot unpack \"file/x\""),
        (&[(FILE, ".wh.", "")], "member \".wh.\": is not a whiteout of the OCI image specification"),
        (&[(FILE, "d/.wh...", "")], "is not a whiteout"),
        (&[(FILE, ".wh..wh.plnk", "")], "is not a whiteout"),
        (&[(SYMLINK, "./", "x")], "is the root, but not a directory"),
        (&[(FILE, "a", "1"), (FILE, "a", "2")], "\"a\": is duplicated"),
    ] {
        let error = layers(&[&[(DIR, "dir", ""), (FILE, "file", "1")], entries]).map(|_| ()).expect_err(expected);
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

#[test]
fn damaged_archives_are_refused() {
    let whole = archive(&[(FILE, "a", &"x".repeat(2000))]);
    for len in [100, 512, 1500] {
        let error = read_all(&[whole[..len].to_vec()], RootForm::Archive).map(|_| ()).unwrap_err();
        assert!(error.contains("layer 0: not a usable archive"), "{error}");
    }
    assert!(read_all(&[Vec::new()], RootForm::Archive).map(|_| ()).unwrap_err().contains("is empty"));
}

#[test]
fn owners_that_no_file_can_have_are_refused() {
    let number = u64::from(u32::MAX);
    let mut binary = archive(&[(FILE, "a", "")]);
    let mut header = Header::from_byte_slice(&binary[..512]).clone();
    header.set_uid(number);
    header.set_cksum();
    binary[..512].copy_from_slice(header.as_bytes());
    let mut pax = Builder::new(Vec::new());
    pax.append_pax_extensions([("gid", number.to_string().as_bytes())]).unwrap();
    let pax = [pax.into_inner().unwrap()[..1024].to_vec(), archive(&[(FILE, "a", "")])].concat();
    for bytes in [binary, pax] {
        let error = read_all(&[bytes], RootForm::Archive).map(|_| ()).unwrap_err();
        assert!(error.contains("owner 4294967295 is out of range"), "{error}");
    }
}
