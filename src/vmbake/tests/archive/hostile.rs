//! Modified archives, and hosts without space.

use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;

use tar::EntryType;
use vmbake_archive::contents::Contents;
use vmbake_archive::verify::verify;
use vmbake_common::digest::Digest;

use super::lab::{Lab, Member, blob, join, member, members, name, shell, stderr, text};

/// A modification of the members, its name, and the expected error.
type Attack<'a> = (&'a str, &'a dyn Fn(&mut Vec<Member>), &'a str);

/// Where a member of some sort may stand that is none.
fn last(kind: EntryType, named: &'static str) -> impl Fn(&mut Vec<Member>) {
    move |members| members.push(member(named, b"", |header| header.set_entry_type(kind)))
}

fn index(members: &mut [Member], change: impl Fn(String) -> String) {
    let text = String::from_utf8(members[1].1.clone()).unwrap();
    members[1] = member("index.json", change(text.trim_end_matches('\0').to_owned()).as_bytes(), |_| ());
}

/// The largest blob, which no document is read from.
fn largest(members: &[Member]) -> usize {
    (0..members.len()).max_by_key(|number| members[*number].1.len()).unwrap()
}

#[test]
fn no_changed_archive_is_taken() {
    let lab = Lab::short();
    let archive = lab.archive("a.tar", &[]);
    let original = members(&fs::read(&archive).unwrap());
    assert!(join(&original) == fs::read(&archive).unwrap());
    let attacks: &[Attack<'_>] = &[
        ("a symbolic link", &last(EntryType::Symlink, "blobs/sha256/x"), "is a symbolic link"),
        ("a hard link", &last(EntryType::Link, "blobs/sha256/x"), "is a hard link"),
        ("a folder", &last(EntryType::Directory, "blobs/x"), "is a directory"),
        ("a device", &last(EntryType::Char, "blobs/x"), "is a device"),
        ("a disk", &last(EntryType::Block, "blobs/x"), "is a device"),
        ("a pipe", &last(EntryType::Fifo, "blobs/x"), "is a named pipe"),
        ("a header of pax", &last(EntryType::XHeader, "blobs/x"), "is a pax extended header"),
        ("a global header", &last(EntryType::XGlobalHeader, "blobs/x"), "is a pax extended header"),
        ("a long name", &last(EntryType::GNULongName, "blobs/x"), "is a GNU tar long name"),
        ("a sparse file", &last(EntryType::GNUSparse, "blobs/x"), "is a GNU tar sparse file"),
        ("another sort", &last(EntryType::new(b'V'), "blobs/x"), "has an unknown type"),
        ("another name", &|m| m.push(member("etc/passwd", b"x", |_| ())), "is not a blob"),
        ("a short name", &|m| m.push(member("blobs/sha256/ab", b"x", |_| ())), "is not a blob"),
        (
            "a folder above",
            &|m| m.push(member("x", b"x", |h| h.as_mut_bytes()[..6].copy_from_slice(b"../../"))),
            "has an unsafe name",
        ),
        (
            "the root",
            &|m| m.push(member("x", b"x", |h| h.as_mut_bytes()[..4].copy_from_slice(b"/etc"))),
            "has an unsafe name",
        ),
        (
            "a time",
            &|m| m[2] = member(&name(&m[2]), &m[2].1.clone(), |h| h.set_mtime(1)),
            "has a header that vmbake would not write",
        ),
        (
            "an owner",
            &|m| m[2] = member(&name(&m[2]), &m[2].1.clone(), |h| h.set_uid(1)),
            "has a header that vmbake would not write",
        ),
        (
            "a mode",
            &|m| m[2] = member(&name(&m[2]), &m[2].1.clone(), |h| h.set_mode(0o4755)),
            "has a header that vmbake would not write",
        ),
        ("a checksum", &|m| m[2].0[148] ^= 1, "has a header that vmbake would not write"),
        ("a hostile length", &|m| m[2] = member(&name(&m[2]), b"", |h| h.set_size(1 << 40)), "truncated at offset"),
        ("the largest length", &|m| m[2] = member(&name(&m[2]), b"", |h| h.set_size(u64::MAX)), "blobs/"),
        ("two that are swapped", &|m| m.swap(3, 4), "is out of order or duplicated"),
        ("one twice", &|m| m.insert(3, m[2].clone()), "is out of order or duplicated"),
        ("no marker", &|m| drop(m.remove(0)), "oci-layout is in the wrong place of the archive"),
        ("no index", &|m| drop(m.remove(1)), "index.json is in the wrong place of the archive"),
        ("the index first", &|m| m.swap(0, 1), "oci-layout is in the wrong place of the archive"),
        ("another marker", &|m| m[0] = member("oci-layout", b"{}", |_| ()), "is not the marker of an image layout"),
        ("an index of nothing", &|m| index(m, |_| "{}".to_owned()), "index.json is not a valid document of an archive"),
        (
            "a key twice",
            &|m| index(m, |t| t.replacen('{', "{\"schemaVersion\":2,", 1)),
            "is not a valid document of an archive",
        ),
        (
            "an unknown key",
            &|m| index(m, |t| t.replacen('{', "{\"more\":2,", 1)),
            "is not a valid document of an archive",
        ),
        ("another schema", &|m| index(m, |t| t.replace("Version\":2", "Version\":3")), "is not the index"),
        (
            "another digest",
            &|m| index(m, |t| t.replacen("\"sha256:", &format!("\"sha256:{}\",\"x\":\"", "0".repeat(64)), 1)),
            "is not a valid document of an archive",
        ),
        ("a blob that is gone", &|m| drop(m.remove(largest(m))), "is missing: base"),
        (
            "a blob more",
            &|m| {
                m.push(blob(b"more"));
                m[2..].sort_by_key(name);
            },
            "is extra: not listed in any document",
        ),
        (
            "a blob of another length",
            &|m| {
                let at = largest(m);
                m[at] = member(&name(&m[at]), b"short", |_| ());
            },
            "5 bytes, but",
        ),
        (
            "a damaged blob",
            &|m| {
                let at = largest(m);
                m[at].1[9] ^= 1;
            },
            "expected digest sha256:",
        ),
        (
            "something behind a file",
            &|m| {
                let last = m[0].1.len() - 1;
                m[0].1[last] = 1;
            },
            "has trailing data",
        ),
    ];
    for (what, change, expected) in attacks {
        let mut changed = original.clone();
        change(&mut changed);
        fs::write(lab.path("b.tar"), join(&changed)).unwrap();
        let verified = lab.run("verify", &lab.path("b.tar"), &[]);
        let said = stderr(&verified) + &String::from_utf8(verified.stdout).unwrap();
        assert_eq!(verified.status.code(), Some(1), "{what}: {said}");
        let [store, inputs] = ["site", "inputs"].map(|name| lab.path(name));
        let imported = lab.run("import", &lab.path("b.tar"), &["--store", text(&store), "--inputs-to", text(&inputs)]);
        let refused = stderr(&imported);
        assert_eq!(imported.status.code(), Some(1), "{what}: {refused}");
        assert!(refused.contains(expected), "{what}: {refused}");
        assert!(!inputs.exists(), "{what}");
        // Of a damaged blob the others are good ones; nothing that has a name has another digest.
        assert!(lab.blobs("site") == 0 || *what == "a damaged blob", "{what}");
        let sound = shell(lab.dir.path(), "\"$0\" store verify --store site");
        assert!(sound.status.success(), "{what}: {}", stderr(&sound));
        let _none = fs::remove_dir_all(&store);
    }
}

#[test]
fn an_archive_that_is_cut_off_or_goes_on_is_refused() {
    let lab = Lab::short();
    let bytes = fs::read(lab.archive("a.tar", &[])).unwrap();
    let ends = [
        0,
        1,
        511,
        512,
        1024,
        5000,
        bytes.len() / 2,
        bytes.len() - 1025,
        bytes.len() - 1024,
        bytes.len() - 512,
        bytes.len() - 1,
    ];
    for end in ends {
        fs::write(lab.path("b.tar"), &bytes[..end]).unwrap();
        let verified = lab.run("verify", &lab.path("b.tar"), &[]);
        assert!(stderr(&verified).contains("truncated at offset"), "{end}: {}", stderr(&verified));
        assert_eq!(verified.status.code(), Some(1));
    }
    for more in [&b"x"[..], &[0; 512], &bytes] {
        fs::write(lab.path("b.tar"), [&bytes, more].concat()).unwrap();
        let verified = lab.run("verify", &lab.path("b.tar"), &[]);
        assert!(stderr(&verified).contains("trailing data at offset"), "{}", stderr(&verified));
    }
    let parts = lab.archive("p.tar", &["--split", "100000"]);
    fs::remove_file(lab.path("p.tar.001")).unwrap();
    assert!(stderr(&lab.run("verify", &parts, &[])).contains("truncated at offset"));
    assert!(stderr(&lab.run("verify", &lab.path("none.tar"), &[])).contains("none.tar: cannot read"));
}

#[test]
fn what_does_not_belong_into_an_archive_stops_it() {
    let lab = Lab::short();
    let made = |what: &str| {
        let made = lab.create("tools", "a.tar", &["--force"]);
        assert_eq!(made.status.code(), Some(1), "{what}");
        assert!(!lab.path("a.tar").exists(), "{what}");
        stderr(&made)
    };
    let link = lab.path("layers/tools/files/etc/link");
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
    assert!(made("a link").contains("etc/link: neither a regular file nor a directory, which archives do not support"));
    fs::remove_file(&link).unwrap();
    let other = lab.path("base.raw");
    let base = fs::read(&other).unwrap();
    fs::write(&other, [&base[..], b"x"].concat()).unwrap();
    assert!(made("another base").contains("base: expected digest sha256:"));
    fs::remove_file(&other).unwrap();
    assert!(made("no base").contains("base.raw: cannot read"));
    fs::write(&other, base).unwrap();
    fs::remove_dir_all(lab.path("store/blobs")).unwrap();
    assert!(made("no blobs").contains("is not in the store"));
}

#[test]
fn where_the_disk_is_full_or_the_program_killed_nothing_has_the_name() {
    let lab = Lab::short();
    let archive = lab.archive("a.tar", &[]);
    let [layers, sources, manifest, base] =
        ["layers", "sources.json", "manifest.json", "base.raw"].map(|name| text(&lab.path(name)).to_owned());
    let create = format!(
        "archive create tools --os o --no-builtin -o b.tar --layers {layers} --sources {sources} --manifest {manifest} --base {base} \
         --store store"
    );
    let import = format!("archive import {} --store site --inputs-to inputs", text(&archive));
    for command in [create, import] {
        let full = shell(lab.dir.path(), &format!("trap '' XFSZ; ulimit -f 200; \"$0\" {command}"));
        assert_eq!(full.status.code(), Some(1));
        assert!(stderr(&full).contains("File too large"), "{}", stderr(&full));
        let killed = shell(lab.dir.path(), &format!("ulimit -c 0; ulimit -f 200; exec \"$0\" {command}"));
        assert_eq!(killed.status.signal(), Some(25), "killed by SIGXFSZ: {}", stderr(&killed));
        assert!(!lab.path("b.tar").exists() && !lab.path("inputs").exists());
        assert!(shell(lab.dir.path(), "\"$0\" store verify --store site").status.success());
    }
    // Afterwards it works.
    let args = ["--store", text(&lab.path("site")).to_owned().leak()];
    assert!(lab.run("import", &archive, &args).status.success());
}

#[test]
fn damage_anywhere_is_refused_or_found_and_nothing_else_happens() {
    let lab = Lab::short();
    let original = fs::read(lab.archive("a.tar", &[])).unwrap();
    // The documents and headers at its start, where every byte means something, and a few anywhere.
    let places = (0..6000).step_by(61).chain((6000..original.len()).step_by(original.len() / 12));
    let path = lab.path("b.tar");
    fs::write(&path, &original).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    let index = Digest::of(&index_of(&original));
    for (number, at) in places.enumerate() {
        let put = |byte: u8| file.write_all_at(&[byte], at as u64).unwrap();
        put(original[at] ^ [1, 0x80, 0xff][number % 3]);
        let whole = Contents::open(&path).is_ok_and(|contents| {
            let report = verify(&contents, NonZeroUsize::MIN).unwrap();
            report.ok && report.index == index
        });
        assert!(!whole, "{at}");
        put(original[at]);
    }
    let report = verify(&Contents::open(&path).unwrap(), NonZeroUsize::MIN).unwrap();
    assert!(report.ok && report.index == index);
}

fn index_of(archive: &[u8]) -> Vec<u8> {
    let member = &members(archive)[1];
    let len = usize::try_from(tar::Header::from_byte_slice(&member.0).entry_size().unwrap()).unwrap();
    member.1[..len].to_vec()
}
