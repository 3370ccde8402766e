//! Two images, with one type of difference per path.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use vmbake_common::digest::Digest;
use vmbake_compose::origin::RECORD;
use vmbake_disk::source::Map;
use vmbake_disk::tree::{Kind, ROOT, Timestamp, Tree};
use vmbake_query::diff::{DiffOptions, Difference, Share, diff, diff_blocks};

use super::bakery::{TOOL, baked, can_bake};
use super::image::{self, TOOLS, change, content, file, link, put, text, vmbake};
use crate::tools::have;

/// A tree with all kinds of nodes; `new` makes each of them a little different.
fn sample(new: bool) -> Tree {
    let mut tree = image::empty();
    let choose = |old: &'static str, other: &'static str| if new { other } else { old };
    file(&mut tree, "/same", "same").xattrs.insert(b"user.a".to_vec(), vec![0; 4]);
    file(&mut tree, choose("/renamed-from", "/renamed-to"), "renamed");
    file(&mut tree, "/mode", "").mode = if new { 0o4755 } else { 0o755 };
    let meta = file(&mut tree, "/owner", "");
    (meta.uid, meta.gid) = if new { (1, 70_000) } else { (0, 70_000) };
    file(&mut tree, "/size", choose("a", "ab"));
    file(&mut tree, "/content", choose("abcd", "abxd"));
    file(&mut tree, "/both", choose("abcd", "abxd")).mode = if new { 0o600 } else { 0o644 };
    link(&mut tree, "/link", choose("a", "b"));
    put(&mut tree, b"/device", Kind::CharDevice { major: 1, minor: if new { 300 } else { 3 } });
    put(&mut tree, b"/pipe", if new { Kind::Socket } else { Kind::Fifo });
    put(&mut tree, b"/kind", if new { Kind::directory() } else { Kind::Symlink(b"same".to_vec()) });
    file(&mut tree, choose("/dir/old", "/kind/new"), "");
    put(&mut tree, b"/dir", Kind::directory());
    file(&mut tree, "/time", "").mtime = Timestamp { secs: if new { 7 } else { 6 }, nanos: 5 };
    let attributes = &mut file(&mut tree, "/attributes", "").xattrs;
    attributes.insert(b"security.capability".to_vec(), vec![if new { 1 } else { 0 }; 20]);
    attributes.insert(choose("user.old", "user.new").as_bytes().to_vec(), vec![7; 40]);
    put(&mut tree, b"/odd\x1b\\", Kind::File(Map::hole(if new { 1 << 20 } else { 5 })));
    let shared = content(&mut tree, b"shared");
    put(&mut tree, b"/hard-a", shared.clone());
    let id = tree.resolve(b"/hard-a").unwrap();
    if new {
        put(&mut tree, b"/hard-b", shared);
    } else {
        tree.link(ROOT, b"hard-b", id).unwrap();
    }
    for (first, second) in if new { [("a", "c"), ("b", "d")] } else { [("a", "b"), ("c", "d")] } {
        file(&mut tree, &format!("/pair-{first}"), "p");
        let id = tree.resolve(format!("/pair-{first}").as_bytes()).unwrap();
        tree.link(ROOT, format!("pair-{second}").as_bytes(), id).unwrap();
    }
    let stanza = |name: &str, version: &str| {
        format!("Package: {name}\nStatus: install ok installed\nArchitecture: all\nVersion: {version}\n\n")
    };
    let status = if new { stanza("a", "2") + &stanza("c", "1") } else { stanza("a", "1") + &stanza("b", "1") };
    file(&mut tree, "/var/lib/dpkg/status", &status);
    tree
}

fn compare(from: &Path, to: &Path, times: bool) -> Difference {
    diff(from, to, DiffOptions { partition: None, times, threads: NonZeroUsize::new(2).unwrap() }).unwrap()
}

#[test]
fn every_kind_of_difference_is_listed() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old.raw"), dir.path().join("new.raw"));
    image::write_disk(&sample(false), &old);
    image::write_disk(&sample(true), &new);
    let expected = compare(&old, &new, false).to_string();
    insta::assert_snapshot!(expected);
    let timed = compare(&old, &new, true).to_string();
    let line = "changed /time: mtime 6.000000005 -> 7.000000005\n";
    assert_eq!(timed.replace(line, ""), expected, "times of nothing else differ");
    assert!(timed.contains(line));

    let (from, to) = (old.to_str().unwrap(), new.to_str().unwrap());
    let output = vmbake(&["diff", from, to]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), expected.as_str()));
    assert_eq!(text(&output.stderr), "paths: 2 added, 2 removed, 16 changed; packages: 3; artifacts: 0; layers: 0\n");
    let json: serde_json::Value = serde_json::from_slice(&vmbake(&["diff", from, to, "--json"]).stdout).unwrap();
    assert_eq!(json["paths"][2]["path"], "/content");
    assert_eq!(json["paths"][2]["properties"][0]["name"], "content");
    assert_eq!(json["packages"][1], serde_json::json!({"name": "b:all", "from": "1"}));
}

#[test]
fn equal_images_are_equal_whatever_their_files_are() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one.raw"), dir.path().join("two.raw"));
    image::write_disk(&sample(false), &one);
    // Changed and changed back, so that the same files stand at other places of the disk.
    change(&one, &two, |tree| {
        let kind = content(tree, b"same");
        put(tree, b"/same", kind).xattrs.insert(b"user.a".to_vec(), vec![0; 4]);
    });
    assert!(compare(&one, &two, true).is_empty());
    assert!(compare(&one, &one, true).is_empty());
    let output = vmbake(&["diff", one.to_str().unwrap(), two.to_str().unwrap()]);
    assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), (Some(0), "", ""));

    fs::write(&two, "no disk").unwrap();
    let output = vmbake(&["diff", one.to_str().unwrap(), two.to_str().unwrap()]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(text(&output.stderr).contains("two.raw: cannot be compared"), "{}", text(&output.stderr));
}

#[test]
fn what_baked_images_say_about_themselves_is_compared() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let image = out.join("tools.o.amd64.raw");
    let lines = compare(&dir.path().join("base.raw"), &image, false).to_string();
    for expected in [
        "changed /etc/os-release: type symbolic link -> regular file; mode 0777 -> 0644\n",
        "removed /etc/passwd- (regular file)\n",
        "added   /usr/bin/tool (regular file)\n",
        "artifact os.image: none -> base-1 sha256:",
        "artifact tool: none -> 1.2 sha256:",
        "layer hygiene: none -> 7 sha256:",
        "layer tools: none -> 7 sha256:",
    ] {
        assert!(lines.contains(expected), "{expected}: {lines}");
    }
    // A record that cannot be read does not hide the rest.
    let changed = dir.path().join("changed.raw");
    change(&image, &changed, |tree| {
        file(tree, RECORD, "{\"format\":1}");
        file(tree, "/var/lib/dpkg/status", "no stanza");
        file(tree, "/etc/tool.conf", "tool = 2\n");
    });
    let found = compare(&image, &changed, false);
    assert!(found.to_string().contains("changed /etc/tool.conf: content differs from byte 7 on\n"), "{found}");
    assert_eq!(found.notes.len(), 2, "{:?}", found.notes);
    assert!(
        found.notes[0].contains("changed.raw: its packages are unknown: /var/lib/dpkg/status: stanza 1 is malformed")
    );
    assert!(found.notes[1].contains("layers are unknown: /opt/podplane/share/vmbake-origin.json:1:12: not a valid"));
}

/// Pieces of both disks that are the same, only in the first, only in the second; zeros are none.
fn pieces(from: &[u8], to: &[u8], len: usize) -> [u64; 3] {
    let mut counts = [0; 3];
    for (a, b) in from.chunks(len).zip(to.chunks(len)) {
        let [has_a, has_b] = [a, b].map(|piece| piece.iter().any(|byte| *byte != 0));
        counts[0] += u64::from(has_b && a == b);
        counts[1] += u64::from(has_a && a != b);
        counts[2] += u64::from(has_b && a != b);
    }
    counts
}

#[test]
fn disks_are_compared_by_blocks() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let baked = out.join("tools.o.amd64.raw");
    let (old, new) = (dir.path().join("old.raw"), dir.path().join("new.raw"));
    change(&baked, &old, |_| ());
    change(&baked, &new, |tree| {
        let record = String::from_utf8(tree.read(RECORD.as_bytes(), 1 << 20).unwrap()).unwrap();
        let (tool, other) = (Digest::of(TOOL).to_string(), Digest::of(b"other").to_string());
        file(tree, RECORD, &record.replace(&tool, &other));
        file(tree, "/usr/bin/tool", &"other".repeat(60_000));
    });
    let found = diff_blocks(&old, &new, None, NonZeroUsize::new(2).unwrap()).unwrap();
    let (a, b) = (fs::read(&old).unwrap(), fs::read(&new).unwrap());
    let counts = |share: Share| [share.shared, share.from, share.to];
    assert_eq!(counts(found.clusters), pieces(&a, &b, 64 << 10));
    assert_eq!(counts(found.blocks), pieces(&a, &b, 512 << 10));
    assert_eq!(found.block_delta_bytes, found.blocks.to << 19);
    assert_eq!(found.cluster_delta_bytes, found.contents.to << 16);
    assert!(found.contents.to <= found.clusters.to && found.contents.to >= 5, "{found}");
    assert_eq!((&found.changed_artifacts[..], found.notes.len()), (&["tool".to_owned()][..], 0));
    assert!(found.outside.clusters.to + 4 <= found.clusters.to && found.outside.clusters.shared > 0, "{found}");
    let place = |owner: &str| found.places.iter().find(|place| place.owner == owner);
    assert_eq!(place("artifact tool").unwrap().paths, ["/usr/bin/tool"]);
    assert!(place("metadata").is_some() && place("partition 15").is_none(), "{found}");
    // Where one disk has zeros and the other has not, they differ too: how often depends on the length of each program.
    let differ = a.chunks(64 << 10).zip(b.chunks(64 << 10)).filter(|(a, b)| a != b).count();
    assert_eq!(found.places.iter().map(|place| place.differ).sum::<u64>(), differ as u64);

    let run = |from: &Path, to: &Path, more: &[&str]| {
        vmbake(&[&["diff", "--blocks", from.to_str().unwrap(), to.to_str().unwrap()], more].concat())
    };
    let output = run(&old, &new, &["-j", "3"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), found.to_string().as_str()));
    let json: serde_json::Value = serde_json::from_slice(&run(&old, &new, &["--json"]).stdout).unwrap();
    assert_eq!(json["blocks"]["only_to"], found.blocks.to);
    let output = run(&old, &old, &[]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    // A disk without partitions is still a row of bytes.
    let short = dir.path().join("short.raw");
    fs::write(&short, &a[a.len() - 100_000..]).unwrap();
    let output = run(&short, &new, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("short.raw: owners of bytes are unknown"), "{}", text(&output.stderr));
}
