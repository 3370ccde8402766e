//! Forged deltas, statements and bases, and hosts without space.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use super::lab::{CLUSTER, Lab, bytes, edit, statement_of, stderr, text};

/// A modification of a delta, its name, and the expected error.
type Attack<'a> = (&'a str, &'a dyn Fn(&mut Vec<u8>), &'a str);

fn put(bytes: &mut [u8], at: usize, part: &[u8]) {
    bytes[at..at + part.len()].copy_from_slice(part);
}

/// The big-endian word at `at`.
fn word(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
}

/// Where the first L2 table is.
fn l2(bytes: &[u8]) -> usize {
    word(bytes, word(bytes, 40)) & 0x00ff_ffff_ffff_fe00
}

/// The first entry of that for a compressed cluster.
fn compressed(bytes: &[u8]) -> usize {
    (l2(bytes)..).step_by(8).find(|at| bytes[*at] & 0x40 != 0).unwrap()
}

/// Gives the backing file a name of the same length.
fn rename(bytes: &mut [u8], name: &[u8]) {
    let at = word(bytes, 8);
    put(bytes, at, name);
}

const FORMAT: usize = 112;

#[test]
fn no_forged_overlay_is_applied() {
    let lab = Lab::new();
    let attacks: &[Attack<'_>] = &[
        ("a folder above", &|b| rename(b, b"../x.ra"), "refers to another directory"),
        ("a file of the system", &|b| rename(b, b"/etc/pa"), "refers to another directory"),
        ("another machine", &|b| rename(b, b"nbd:abc"), "before a colon as a protocol"),
        ("a line", &|b| rename(b, b"old\n\x1bra"), "a control character"),
        (
            "another file",
            &|b| rename(b, b"new.raw"),
            "delta is based on new.raw (raw), but the statement specifies old.raw (raw)",
        ),
        ("no text", &|b| rename(b, b"old\xff\xfera"), "whose name is unreadable"),
        ("a name outside", &|b| put(b, 8, &u64::MAX.to_be_bytes()), "whose name is unreadable"),
        ("a long name", &|b| put(b, 16, &u32::MAX.to_be_bytes()), "whose name is unreadable"),
        ("no base", &|b| put(b, 8, &[0; 8]), "no backing file"),
        ("another format", &|b| put(b, FORMAT + 8, b"vdi"), "a backing file of format \"vdi\""),
        (
            "the other format",
            &|b| put(b, FORMAT + 4, b"\0\0\0\x05qcow2"),
            "delta is based on old.raw (qcow2), but the statement specifies old.raw (raw)",
        ),
        ("no format", &|b| put(b, FORMAT, b"abcd"), "a backing file without a format"),
        ("an endless extension", &|b| put(b, FORMAT, b"abcd\xff\xff\xff\xff"), "a backing file without a format"),
        ("a data file", &|b| b[79] |= 4, "an external data file"),
        ("subclusters", &|b| b[79] |= 16, "extended L2 entries"),
        ("the corrupt bit", &|b| b[79] |= 2, "the corrupt bit set"),
        ("an unknown feature", &|b| b[74] = 1, "unknown incompatible features"),
        ("a compatible feature", &|b| b[87] = 1, "compatible features"),
        ("an autoclear feature", &|b| b[95] = 1, "autoclear features"),
        ("a snapshot", &|b| b[63] = 1, "snapshots"),
        ("encryption", &|b| b[35] = 2, "encryption"),
        ("an old version", &|b| b[7] = 2, "qcow2"),
        ("small clusters", &|b| b[23] = 9, "qcow2"),
        (
            "another length",
            &|b| put(b, 24, &(1u64 << 20).to_be_bytes()),
            "d.delta: disk of 1048576 bytes, but the statement specifies",
        ),
        ("an endless disk", &|b| put(b, 24, &(1u64 << 60).to_be_bytes()), "size at offset 0x18"),
        ("an L1 table outside", &|b| put(b, 40, &(1u64 << 40).to_be_bytes()), "l1_table_offset"),
        (
            "an L2 table outside",
            &|b| {
                let at = word(b, 40);
                put(b, at, &(1u64 << 40).to_be_bytes());
            },
            "L2 table at offset",
        ),
        (
            "a cluster outside",
            &|b| {
                let at = compressed(b);
                put(b, at, &(1u64 << 40).to_be_bytes());
            },
            "data cluster at offset",
        ),
        (
            "compressed outside",
            &|b| {
                let at = compressed(b);
                put(b, at, &((1u64 << 62) | (1 << 40)).to_be_bytes());
            },
            "L2 entry at offset",
        ),
        (
            "reserved bits",
            &|b| {
                let at = compressed(b);
                put(b, at, &(1u64 << 58).to_be_bytes());
            },
            "reserved bits clear",
        ),
        (
            "other compressed bytes",
            &|b| {
                let at = word(b, compressed(b)) & 0xffff_ffff;
                put(b, at, b"abcd");
            },
            "cannot decompress the cluster",
        ),
        (
            "a cluster less",
            &|b| {
                let at = compressed(b);
                put(b, at, &[0; 8]);
            },
            "the resulting disk has fs-verity digest sha256:",
        ),
        (
            "a cluster more",
            &|b| {
                let at = l2(b);
                put(b, at, &1u64.to_be_bytes());
            },
            "the resulting disk has fs-verity digest sha256:",
        ),
        ("a header cut off", &|b| b.truncate(50), "header"),
        ("half of it", &|b| b.truncate(b.len() / 2), "qcow2"),
        ("nothing", &|b| b.clear(), "the file is empty"),
        ("a text", &|b| *b = b"hello\n".to_vec(), "d.delta: a text file; only raw and qcow2 disk images are supported"),
        ("a raw disk", &|b| *b = bytes(4, 4096), "d.delta: not a qcow2 file"),
    ];
    for (what, change, expected) in attacks {
        let delta = lab.signed("d.delta");
        lab.forge(&delta, |bytes| change(bytes));
        lab.refused(what, &delta, "old.raw", &[], expected);
        // Who asks for a signature does not get as far.
        let key = lab.path("one.pub");
        lab.refused(what, &delta, "old.raw", &["--key", text(&key)], "not signed by");
        for end in ["", ".json", ".json.sigstore.json"] {
            fs::remove_file(lab.path(&format!("d.delta{end}"))).unwrap();
        }
    }
}

#[test]
fn a_small_delta_does_not_become_a_large_disk() {
    let mut new = vec![0; 512 << 20];
    put(&mut new, 0, &bytes(1, CLUSTER));
    let lab = Lab::of(vec![0; 512 << 20], new);
    let delta = lab.signed("d.delta");
    lab.forge(&delta, |bytes| {
        let (table, entry) = (l2(bytes), compressed(bytes));
        let entry: Vec<u8> = bytes[entry..entry + 8].to_vec();
        put(bytes, table, &entry.repeat(CLUSTER / 8));
    });
    lab.refused("a bomb", &delta, "old.raw", &[], "decompression bomb");
    let delta = lab.signed("e.delta");
    lab.forge(&delta, |bytes| {
        put(bytes, 24, &(1u64 << 41).to_be_bytes());
        put(bytes, 36, &4096u32.to_be_bytes());
    });
    lab.restate(&delta, |statement| statement["result"]["disk_length"] = (1u64 << 41).into());
    lab.refused("an endless disk", &delta, "old.raw", &[], "the result of 2199023255552 bytes exceeds the limit of");
}

#[test]
fn another_base_is_refused_with_both_digests() {
    let lab = Lab::new();
    let delta = lab.signed("d.delta");
    let mut other = lab.old.clone();
    // Where the delta has a cluster itself: the result would be right.
    other[CLUSTER + 9] ^= 1;
    fs::write(lab.path("other.raw"), &other).unwrap();
    let stated = fs::read_to_string(statement_of(&delta)).unwrap();
    let stated: serde_json::Value = serde_json::from_str(&stated).unwrap();
    let expected = stated["base"]["disk_fsverity"].as_str().unwrap();
    lab.refused("a byte", &delta, "other.raw", &[], &format!(", but the delta is for {expected}"));
    lab.refused("a byte", &delta, "other.raw", &[], "other.raw: the disk has fs-verity digest sha256:");
    fs::write(lab.path("short.raw"), &lab.old[..CLUSTER]).unwrap();
    lab.refused("a shorter one", &delta, "short.raw", &[], "disk of 65536 bytes, but the statement specifies");
    lab.refused("the new one", &delta, "new.raw", &[], "the statement specifies");
    lab.refused("none", &delta, "none.raw", &[], "cannot open the image");
}

#[test]
fn an_edited_statement_is_refused() {
    let lab = Lab::new();
    let key = text(&lab.path("one.pub")).to_owned();
    let digest = format!("sha256:{}", "0".repeat(64));
    for (field, value, expected) in [
        ("/base/name", "other.raw", "delta is based on old.raw (raw), but the statement specifies other.raw (raw)"),
        ("/base/format", "qcow2", "delta is based on old.raw (raw), but the statement specifies old.raw (qcow2)"),
        ("/base/disk_fsverity", &digest, "the delta is for sha256:0000"),
        ("/result/disk_fsverity", &digest, "the statement specifies sha256:0000"),
        ("/delta/sha256", &digest, "bytes with sha256:0000"),
        ("/schema", "vmbake.delta.v2", "unsupported schema \"vmbake.delta.v2\", expected \"vmbake.delta.v1\""),
        ("/base/format", "vmdk", "not a valid statement of a delta"),
        ("/delta/sha256", "sha256:00", "not a valid statement of a delta"),
    ] {
        let delta = lab.signed("d.delta");
        lab.restate(&delta, |statement| *statement.pointer_mut(field).unwrap() = value.into());
        lab.refused(field, &delta, "old.raw", &[], expected);
        // What cannot be read is not worth asking who has signed it.
        let is_read = !expected.starts_with("not a valid") && field != "/schema";
        lab.refused(field, &delta, "old.raw", &["--key", &key], if is_read { "not signed by" } else { expected });
        for end in ["", ".json", ".json.sigstore.json"] {
            fs::remove_file(lab.path(&format!("d.delta{end}"))).unwrap();
        }
    }
    let delta = lab.signed("d.delta");
    let original = fs::read_to_string(statement_of(&delta)).unwrap();
    for (text, expected) in [
        (original.replacen('{', "{\"more\": 1,", 1), "not a valid statement of a delta"),
        (original.replacen('{', "{\"schema\": \"vmbake.delta.v1\",", 1), "not a valid statement of a delta"),
        (original.replace("vmbake", "v\u{e9}mbake"), "unsupported schema"),
        (String::new(), "not a valid statement of a delta"),
        (" ".repeat(70_000) + &original, "cannot read"),
    ] {
        fs::write(statement_of(&delta), text).unwrap();
        lab.refused("another document", &delta, "old.raw", &[], expected);
    }
    fs::remove_file(statement_of(&delta)).unwrap();
    lab.refused("no statement", &delta, "old.raw", &[], "d.delta.json: cannot read");
}

#[test]
fn only_the_signature_of_whom_was_asked_for_counts() {
    let lab = Lab::new();
    let [one, two] = ["one.pub", "two.pub"].map(|key| text(&lab.path(key)).to_owned());
    let unsigned = lab.delta("old.raw", "new.raw", "unsigned.delta", &[]);
    lab.refused("unsigned", &unsigned, "old.raw", &["--key", &one], "no signature next to the document");
    let delta = lab.signed("d.delta");
    lab.refused("of another", &delta, "old.raw", &["--key", &two], "not signed by");
    lab.refused("of one of two", &delta, "old.raw", &["--key", &one, "--key", &two], "not signed by");
    let applied = lab.apply(&delta, "old.raw", "out.raw", &["--key", &one]);
    assert!(applied.status.success(), "{}", stderr(&applied));
    assert!(!stderr(&applied).contains("was not checked"));
    let applied = lab.apply(&delta, "old.raw", "out.raw", &["--force"]);
    assert!(stderr(&applied).contains("the signature was not checked"), "{}", stderr(&applied));
    // A bundle of the same key over something else.
    let bundle = |delta: &Path| format!("{}.sigstore.json", statement_of(delta).display());
    let other = lab.delta("old.raw", "old.raw", "e.delta", &["--key", text(&lab.path("one.key"))]);
    fs::copy(bundle(&other), bundle(&delta)).unwrap();
    lab.refused("over another", &delta, "old.raw", &["--key", &one], "not signed by");
    edit(Path::new(&bundle(&delta)), |_| "{}".to_owned());
    lab.refused("no bundle", &delta, "old.raw", &["--key", &one], "not signed by");
}

/// Runs vmbake with a limit for the files that it writes; with `signal`, the system kills it there.
fn limited(args: &[&str], signal: bool) -> std::process::Output {
    let script = format!("{} ulimit -f 200; exec \"$@\"", if signal { "ulimit -c 0;" } else { "trap '' XFSZ;" });
    Command::new("sh").args(["-c", &script, "sh", env!("CARGO_BIN_EXE_vmbake")]).args(args).output().unwrap()
}

#[test]
fn where_the_disk_is_full_or_the_program_killed_nothing_has_the_name() {
    let lab = Lab::new();
    let delta = lab.signed("d.delta");
    let [old, new, out, made] =
        ["old.raw", "new.raw", "out.raw", "e.delta"].map(|name| text(&lab.path(name)).to_owned());
    let commands: [&[&str]; 2] =
        [&["apply", text(&delta), "--base", &old, "-o", &out], &["delta", &new, &old, "-o", &made]];
    // What is new must be more than the limit.
    fs::write(lab.path("old.raw"), bytes(7, 20 * CLUSTER)).unwrap();
    for args in commands {
        let before = lab.names();
        let full = limited(args, false);
        assert_eq!(full.status.code(), Some(1));
        assert!(stderr(&full).contains("File too large"), "{}", stderr(&full));
        assert_eq!(lab.names(), before);
        assert_eq!(limited(args, true).status.signal(), Some(25), "killed by SIGXFSZ");
        assert_eq!(lab.names(), before);
    }
}
