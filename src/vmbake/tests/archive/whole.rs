//! `archive apply` is atomic, even after errors and kills.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::lab::{Lab, join, members, name, shell, stderr, text};
use crate::origin::bakery::{bake, can_bake};

const RAW: &str = "tools.o.amd64.raw";
const QCOW2: &str = "tools.o.amd64.qcow2";
const APPLY: &str = "archive apply a.tar --store site/store --inputs-to site/inputs --out site/dist --format qcow2";

/// A lab with `a.tar`: inputs to bake of, and with `images` the baked files, too.
fn lab(images: bool) -> Option<Lab> {
    if !can_bake() {
        return None;
    }
    let lab = Lab::new();
    bake(&lab.request).unwrap();
    let image = lab.request.out.join(QCOW2);
    let what = if images { text(&image) } else { "tools" };
    let made = lab.create(what, "a.tar", &[]);
    assert!(made.status.success(), "{}", stderr(&made));
    fs::create_dir(lab.path("site")).unwrap();
    Some(lab)
}

/// Runs vmbake with [`APPLY`] behind some commands of the shell.
fn apply(lab: &Lab, before: &str, more: &str) -> Output {
    shell(lab.dir.path(), &format!("{before} exec \"$0\" {APPLY} {more}"))
}

/// Names below a folder with their content, but for the store.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name == "store" {
            continue;
        }
        match entry.file_type().unwrap().is_dir() {
            true => {
                found.insert(format!("{name}/"), Vec::new());
                let below = content(&entry.path());
                found.extend(below.into_iter().map(|(below, content)| (format!("{name}/{below}"), content)));
            }
            false => drop(found.insert(name, fs::read(entry.path()).unwrap())),
        }
    }
    found
}

fn names(content: &BTreeMap<String, Vec<u8>>) -> Vec<&String> {
    content.keys().collect()
}

/// Applies, which must work and leave nothing hidden; returns what there is.
fn complete(lab: &Lab) -> BTreeMap<String, Vec<u8>> {
    let applied = apply(lab, "", "");
    assert!(applied.status.success(), "{}", stderr(&applied));
    let content = content(&lab.path("site"));
    assert!(content.contains_key(&format!("dist/{QCOW2}")) && content.contains_key("inputs/layers/"));
    assert!(!content.keys().any(|name| name.starts_with('.')), "{:?}", names(&content));
    assert!(content[&format!("dist/{QCOW2}")] == fs::read(lab.request.out.join(QCOW2)).unwrap());
    content
}

#[test]
fn a_damaged_archive_leaves_nothing() {
    for images in [false, true] {
        let Some(lab) = lab(images) else { return };
        let whole = members(&fs::read(lab.path("a.tar")).unwrap());
        // Every blob that is not a document of the archive, which is read at its start.
        for damaged in (2..whole.len()).rev().filter(|number| whole[*number].1.len() > 4096) {
            let mut archive = whole.clone();
            let last = archive[damaged].1.len() - 512;
            archive[damaged].1[last] ^= 1;
            fs::write(lab.path("a.tar"), join(&archive)).unwrap();
            let refused = apply(&lab, "", "");
            let (blob, said) = (name(&archive[damaged]), stderr(&refused));
            let digest = blob.strip_prefix("blobs/").unwrap().replacen('/', ":", 1);
            let is_told = said.contains(&format!("expected digest {digest}, found sha256:"))
                || said.contains(&format!("{blob} is corrupt: digest is sha256:"));
            assert!(is_told, "{blob}: {said}");
            assert_eq!(names(&content(&lab.path("site"))), Vec::<&String>::new());
            assert_eq!(lab.blobs("site/store"), 0);
        }
        fs::write(lab.path("a.tar"), join(&whole)).unwrap();
        complete(&lab);
    }
}

/// A file size limit simulates a full disk: write(2) fails, or kills the program where it does not ignore SIGXFSZ.
#[test]
fn a_full_disk_and_a_kill_leave_nothing_that_counts() {
    for images in [false, true] {
        let Some(lab) = lab(images) else { return };
        let longest = fs::metadata(lab.path("a.tar")).unwrap().len() / 512;
        let (mut full, mut killed) = (0, 0);
        for limit in [0, 8, longest / 64, longest / 8, longest / 2] {
            let failed = apply(&lab, &format!("trap '' XFSZ; ulimit -f {limit};"), "");
            if !failed.status.success() {
                full += 1;
                assert_eq!(names(&content(&lab.path("site"))), Vec::<&String>::new(), "{}", stderr(&failed));
            }
            let _ = fs::remove_dir_all(lab.path("site"));
            fs::create_dir(lab.path("site")).unwrap();
            let failed = apply(&lab, &format!("ulimit -c 0; ulimit -f {limit};"), "");
            if !failed.status.success() {
                killed += 1;
                let left = content(&lab.path("site"));
                assert!(!left.keys().any(|name| !name.starts_with('.')), "{:?}", names(&left));
            }
            if failed.status.success() {
                fs::remove_dir_all(lab.path("site")).unwrap();
                fs::create_dir(lab.path("site")).unwrap();
            }
        }
        assert!(full > 1 && killed > 1, "{full} {killed}");
        // The next run removes what kills left.
        complete(&lab);
    }
}

#[test]
fn a_kill_at_any_time_leaves_all_or_nothing() {
    for images in [false, true] {
        let Some(lab) = lab(images) else { return };
        let whole = complete(&lab);
        for pause in [0, 1, 3, 10, 30, 100, 300] {
            fs::remove_dir_all(lab.path("site")).unwrap();
            fs::create_dir(lab.path("site")).unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
            command.args(APPLY.split(' ')).current_dir(lab.dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut process = command.spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(pause));
            process.kill().unwrap();
            process.wait().unwrap();
            let found: Vec<_> =
                content(&lab.path("site")).into_iter().filter(|(name, _)| !name.starts_with('.')).collect();
            let of = |folder: &str| {
                let part = |content: Vec<(&String, &Vec<u8>)>| -> Vec<(String, Vec<u8>)> {
                    let below = content.into_iter().filter(|(name, _)| name.starts_with(folder));
                    below.map(|(name, content)| (name.clone(), content.clone())).collect()
                };
                (part(found.iter().map(|(name, content)| (name, content)).collect()), part(whole.iter().collect()))
            };
            for folder in ["inputs/", "dist/"] {
                let (found, whole) = of(folder);
                assert!(found.is_empty() || found == whole, "{folder} after {pause} ms");
            }
            if !found.iter().any(|(name, _)| name.starts_with("dist/")) {
                assert!(complete(&lab) == whole);
            }
        }
    }
}

#[test]
fn what_is_there_stays_unless_it_may_be_replaced() {
    for images in [false, true] {
        let Some(lab) = lab(images) else { return };
        let dist = lab.path("site/dist");
        fs::create_dir(&dist).unwrap();
        fs::write(dist.join("other.txt"), "other").unwrap();
        fs::write(dist.join(QCOW2), "own").unwrap();
        let before = content(&lab.path("site"));
        let refused = apply(&lab, "", "");
        assert!(stderr(&refused).contains(&format!("site/dist/{QCOW2}: already exists")), "{}", stderr(&refused));
        assert!(content(&lab.path("site")) == before);
        assert_eq!(lab.blobs("site/store"), 0);

        // A folder cannot be in two places at once.
        fs::create_dir(dist.join("logs")).unwrap();
        let refused = apply(&lab, "", "--force");
        assert!(stderr(&refused).contains("contains the directory \"logs\""), "{}", stderr(&refused));
        fs::remove_dir(dist.join("logs")).unwrap();
        assert!(content(&lab.path("site")) == before);

        // Another name for the same folder.
        fs::rename(&dist, lab.path("site/there")).unwrap();
        std::os::unix::fs::symlink("there", &dist).unwrap();
        let applied = apply(&lab, "", "--force");
        assert!(applied.status.success(), "{}", stderr(&applied));
        assert!(dist.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read(dist.join("other.txt")).unwrap(), b"other");
        assert!(fs::read(dist.join(QCOW2)).unwrap() == fs::read(lab.request.out.join(QCOW2)).unwrap());
        assert!(!dist.join(RAW).exists());
        let said = stderr(&applied);
        assert!(said.contains(&format!("site/dist/{QCOW2}")) && !said.contains(".staged"), "{said}");

        // Equal inputs are accepted; others are not replaced, and then no images are written.
        fs::remove_file(&dist).unwrap();
        let applied = apply(&lab, "", "");
        assert!(applied.status.success(), "{}", stderr(&applied));
        fs::remove_dir_all(&dist).unwrap();
        fs::write(lab.path("site/inputs/more"), "").unwrap();
        let refused = apply(&lab, "", "--force");
        assert!(
            stderr(&refused).contains("site/inputs: already exists with different content"),
            "{}",
            stderr(&refused)
        );
        assert!(!dist.exists());
        let refused = apply(&lab, "", "--inputs-to site/dist/inputs");
        assert!(stderr(&refused).contains("used multiple times"), "{}", stderr(&refused));
        let nested = format!("exec \"$0\" {}", APPLY.replace("site/inputs", "site/dist/inputs"));
        let refused = shell(lab.dir.path(), &nested);
        assert!(stderr(&refused).contains("one contains the other"), "{}", stderr(&refused));
        assert!(!dist.exists());
    }
}

#[test]
fn one_of_two_at_once_does_it() {
    let Some(lab) = lab(true) else { return };
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        command.args(APPLY.split(' ')).current_dir(lab.dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let running: Vec<_> = (0..4).map(|_| start()).collect();
    let ended: Vec<Output> = running.into_iter().map(|process| process.wait_with_output().unwrap()).collect();
    let won = ended.iter().filter(|output| output.status.success()).count();
    let said: Vec<String> = ended.iter().map(stderr).collect();
    assert_eq!(won, 1, "{said:?}");
    for output in ended.iter().filter(|output| !output.status.success()) {
        let said = stderr(output);
        assert!(said.contains("another vmbake process") || said.contains("already exists"), "{said}");
    }
    let left = content(&lab.path("site"));
    assert!(!left.keys().any(|name| name.starts_with('.')), "{:?}", names(&left));
    assert!(left[&format!("dist/{QCOW2}")] == fs::read(lab.request.out.join(QCOW2)).unwrap());
}
