//! All combinations of settings on machines of both kinds.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::image::{Image, put};
use super::machine::{Machine, as_root, scratch};
use super::settings::{AXES, Choice};
use super::snapshot::{self, Tree};
use crate::tools::have;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/firstboot");

/// The file of variables with one line for each that is mutable.
const MUTABLE: &str = "/opt/podplane/etc/mutable.env";

/// Set it to write the snapshot anew.
const REWRITE: &str = "REWRITE_SNAPSHOT";

#[test]
fn are_those_of_the_snapshot() {
    if !as_root("trees::are_those_of_the_snapshot") {
        return;
    }
    let work = scratch();
    let emulated = have(&["qemu-aarch64-static"]);
    let (mut trees, mut roots) = (BTreeMap::new(), Vec::new());
    let kinds = AXES[0].iter().map(|kind| {
        let work = work.path().join(kind);
        move || boot_all(kind, &work, emulated)
    });
    thread::scope(|scope| {
        let running: Vec<_> = kinds.map(|kind| scope.spawn(kind)).collect();
        for (choice, root, tree) in running.into_iter().flat_map(|kind| kind.join().unwrap()) {
            trees.insert(choice.0.to_vec(), tree);
            roots.push(root);
        }
    });
    compare("trees.txt", &snapshot::text(&AXES, &trees));
    judge(&roots);
}

/// Machines of a kind after two boots, with every choice of settings.
fn boot_all(kind: &str, work: &Path, emulated: bool) -> Vec<(Choice, PathBuf, Tree)> {
    let image = Image::new(kind);
    fs::create_dir(work).unwrap();
    let choices = Choice::all().into_iter().filter(|choice| choice.kind() == kind);
    let booted = choices.map(|choice| {
        let machine = boot(work.join(choice.to_string()), &image, "amd64", choice);
        let mut tree = snapshot::tree(&machine.root);
        if emulated {
            let other = boot(work.join("arm64"), &image, "arm64", choice);
            assert_eq!(snapshot::tree(&other.root), tree, "{choice}: the architectures differ");
            fs::remove_dir_all(other.root).unwrap();
        }
        again(&machine, choice);
        commands(&machine, &image, &mut tree);
        // What Python finds right there needs no snapshot.
        tree.remove(MUTABLE);
        (choice, machine.root, tree)
    });
    booted.collect()
}

/// A machine after its first boot.
fn boot(root: PathBuf, image: &Image, arch: &str, choice: Choice) -> Machine {
    let machine = Machine::new(root, image, arch, &choice.user_data());
    if choice.dual() {
        machine.dual();
    }
    if let Some(data) = choice.cloud() {
        put(&machine.root, "/run/cloud-init/instance-data.json", data);
    }
    machine.succeed(&["configure"]);
    machine
}

/// A second run touches nothing.
fn again(machine: &Machine, choice: Choice) {
    let before = stamps(&machine.root);
    machine.succeed(&["configure"]);
    assert_eq!(stamps(&machine.root), before, "{choice}: the second run changed something");
}

/// Inode and times of everything below `root`.
fn stamps(root: &Path) -> BTreeMap<PathBuf, [i64; 5]> {
    let mut stamps = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(path) = todo.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
        if found.is_dir() {
            todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let [mtime, mtime_nsec, ctime, ctime_nsec] = times;
        stamps.insert(path, [i64::try_from(found.ino()).unwrap(), mtime, mtime_nsec, ctime, ctime_nsec]);
    }
    stamps
}

/// What `restart` would do and what each program would be run with, as if they were files.
pub fn commands(machine: &Machine, image: &Image, tree: &mut Tree) {
    // A line for each word: where units differ, only they do.
    let restart = machine.succeed(&["restart"]).replace(' ', "\n    ");
    tree.insert("restart".to_owned(), format!("commands\n{restart}"));
    for name in image.plan.exec.keys() {
        let output = machine.run(&["exec", name]);
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
        let said = said.concat().replace(&machine.root.display().to_string(), "");
        tree.insert(format!("exec {name}"), format!("exit code {}\n{said}", output.status.code().unwrap()));
    }
}

/// The snapshot is what it was.
pub fn compare(name: &str, text: &str) {
    let path = format!("{DATA}/{name}");
    if std::env::var_os(REWRITE).is_some() {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let mut lines = expected.lines().zip(text.lines()).enumerate();
    let hint = format!("hint: {REWRITE}=1, then look at git diff");
    if let Some((line, (old, new))) = lines.find(|(_, (old, new))| old != new) {
        panic!("{path}:{}: expected {old:?}, found {new:?}\n{hint}", line + 1);
    }
    assert_eq!(expected.lines().count(), text.lines().count(), "lines of {path}\n{hint}");
}

/// Jinja and parsers of the formats agree.
pub fn judge(roots: &[PathBuf]) {
    let python = Path::new("/usr/bin/python3");
    let ready = Command::new(python).args(["-c", "import jinja2, yaml, tomllib"]).output();
    if !ready.is_ok_and(|output| output.status.success()) {
        crate::tools::skip::skip("python3-jinja2 or python3-yaml is not installed");
        return;
    }
    let output = Command::new(python).arg(format!("{DATA}/judge.py")).args(roots).output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(output.status.success(), "{}", said.concat());
}
