//! Each pair of formats, with and without vmbake.

use std::fs;

use serde_json::Value;
use vmbake_disk::image::Format;

use super::lab::{CLUSTER, Lab, bytes, run_in, statement_of, stderr, text, vmbake};
use crate::tools::have;

#[test]
fn every_pair_of_formats_leads_to_the_new_image() {
    let lab = Lab::new();
    let key = ["--key", text(&lab.path("one.pub")).to_owned().leak()];
    for old in ["raw", "qcow2"] {
        for new in ["raw", "qcow2"] {
            let name = format!("{old}-{new}.delta");
            let private = lab.path("one.key");
            let delta = lab.delta(&format!("old.{old}"), &format!("new.{new}"), &name, &["--key", text(&private)]);
            // The base may be stored in either format: what counts is its disk.
            for base in ["old.raw", "old.qcow2"] {
                for (args, result) in [(&[][..], new), (&["--format", "raw"], "raw"), (&["--format", "qcow2"], "qcow2")]
                {
                    let out = format!("{name}-{base}-{result}-{}", args.len());
                    let applied = lab.apply(&delta, base, &out, &[&key, args].concat());
                    assert!(applied.status.success(), "{out}: {}", stderr(&applied));
                    let expected = fs::read(lab.path(&format!("new.{result}"))).unwrap();
                    assert!(fs::read(lab.path(&out)).unwrap() == expected, "{out}");
                    fs::remove_file(lab.path(&out)).unwrap();
                }
            }
            if have(&["qemu-img"]) {
                run_in(lab.dir.path(), "qemu-img", &["check", "-f", "qcow2", &name]);
                run_in(lab.dir.path(), "qemu-img", &["convert", "-O", "raw", &name, "by-qemu.raw"]);
                assert!(fs::read(lab.path("by-qemu.raw")).unwrap() == lab.new, "{name} by qemu-img");
            }
        }
    }
}

#[test]
fn images_of_other_programs_and_other_lengths_have_deltas() {
    if !have(&["qemu-img"]) {
        return;
    }
    let lab = Lab::new();
    let qemu = |args: &[&str]| run_in(lab.dir.path(), "qemu-img", args);
    qemu(&["convert", "-f", "raw", "-c", "-O", "qcow2", "old.raw", "zlib.qcow2"]);
    qemu(&["convert", "-f", "raw", "-O", "qcow2", "-o", "cluster_size=4k", "new.raw", "small.qcow2"]);
    let short = lab.new[..9 * CLUSTER + 512].to_vec();
    lab.store(&short, Format::Raw, "short.raw");
    for (old, new, expected) in [
        ("zlib.qcow2", "new.raw", &lab.new),
        ("old.raw", "small.qcow2", &lab.new),
        ("zlib.qcow2", "small.qcow2", &lab.new),
        ("zlib.qcow2", "old.qcow2", &lab.old),
        ("new.raw", "short.raw", &short),
        ("short.raw", "new.raw", &lab.new),
    ] {
        let delta = lab.delta(old, new, "d.delta", &["--force"]);
        let applied = lab.apply(&delta, old, "out.raw", &["--format", "raw", "--force"]);
        assert!(applied.status.success(), "{old} {new}: {}", stderr(&applied));
        assert!(fs::read(lab.path("out.raw")).unwrap() == *expected, "{old} {new}");
        qemu(&["convert", "-O", "raw", "d.delta", "by-qemu.raw"]);
        assert!(fs::read(lab.path("by-qemu.raw")).unwrap() == *expected, "{old} {new} by qemu-img");
        if old == "zlib.qcow2" && new == "old.qcow2" {
            assert!(delta.metadata().unwrap().len() < 8 * CLUSTER as u64, "no cluster of the same disk differs");
        }
    }
    // A qcow2 file that vmbake would write otherwise cannot come out as it was; its disk can.
    let delta = lab.delta("old.raw", "small.qcow2", "other.delta", &[]);
    lab.refused("other clusters", &delta, "old.raw", &[], "the disk is correct, but the qcow2 file has digest sha256:");
}

#[test]
fn a_delta_and_its_statement_depend_on_the_images_alone() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("a/b")).unwrap();
    for name in ["old.raw", "new.qcow2"] {
        fs::copy(lab.path(name), lab.path("a/b").join(name)).unwrap();
    }
    let one = lab.delta("old.raw", "new.qcow2", "one.delta", &["--jobs", "1"]);
    fs::create_dir(lab.path("other")).unwrap();
    let other = lab.delta("a/b/old.raw", "a/b/new.qcow2", "other/one.delta", &["--jobs", "3"]);
    for path in [|path: &std::path::Path| path.to_owned(), statement_of] {
        assert!(fs::read(path(&one)).unwrap() == fs::read(path(&other)).unwrap());
    }
    let statement: Value = serde_json::from_slice(&fs::read(statement_of(&one)).unwrap()).unwrap();
    assert_eq!(statement["base"]["name"], "old.raw");
    assert_eq!(statement["base"]["sha256"], Value::Null);
    assert_eq!(statement["result"]["disk_length"], lab.new.len());
    assert_eq!(statement["delta"]["length"], fs::metadata(&one).unwrap().len());
}

#[test]
fn nothing_is_replaced_unasked_and_nothing_that_cannot_be_a_delta_is_made() {
    let lab = Lab::new();
    let delta = lab.signed("d.delta");
    let [old, new, out, odd, full] =
        ["old.raw", "new.raw", "d.delta", "o:ld.raw", "odd.raw"].map(|name| text(&lab.path(name)).to_owned());
    fs::copy(&old, &odd).unwrap();
    fs::write(&full, bytes(3, 1000)).unwrap();
    fs::write(lab.path("e.delta.json"), "{}").unwrap();
    let taken = text(&lab.path("e.delta")).to_owned();
    for (args, expected) in [
        (["delta", &old, &new, "-o", &out], "d.delta.json: already exists"),
        (["delta", &old, &new, "-o", &taken], "e.delta.json: already exists"),
        (["delta", &odd, &new, "-o", &format!("{out}2")], "protocol"),
        (["delta", &old, &full, "-o", &format!("{out}2")], "a multiple of 512"),
        (["delta", &old, &format!("{new}x"), "-o", &format!("{out}2")], "cannot open the image"),
    ] {
        let before = lab.names();
        let made = vmbake(&args, &[]);
        assert_eq!(made.status.code(), Some(1));
        assert!(stderr(&made).contains(expected), "{}", stderr(&made));
        assert_eq!(lab.names(), before);
    }
    let applied = lab.apply(&delta, "old.raw", "new.raw", &[]);
    assert!(stderr(&applied).contains("new.raw: already exists"), "{}", stderr(&applied));
    // In place of the old image, if that is asked for.
    let applied = lab.apply(&delta, "old.raw", "old.raw", &["--force"]);
    assert!(applied.status.success(), "{}", stderr(&applied));
    assert!(fs::read(lab.path("old.raw")).unwrap() == lab.new);
}
