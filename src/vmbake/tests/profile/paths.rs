//! Path resolution in scripts of profiles, compared with openat2(2) on the same trees on disk.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use serde_json::json;

use super::import::{content, document, run};

const TREES: u64 = 25;
const PATHS: usize = 60;
const NAMES: [&str; 5] = ["a", "b", "c", "d", "..."];

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    /// Some names with slashes and dots between them.
    fn names(&mut self, most: usize) -> String {
        let mut path = String::new();
        for at in 0..=self.below(most) {
            path += if at == 0 { "" } else { ["/", "/", "//", "/./"][self.below(4)] };
            path += match self.below(9) {
                0 => "..",
                1 => "missing",
                2 if self.below(9) == 0 => return path + &"n".repeat(256),
                at => NAMES[at % NAMES.len()],
            };
        }
        path + ["", "", "", "/", "/.", "//", "/.."][self.below(7)]
    }

    fn path(&mut self, most: usize) -> String {
        let start = ["/opt/", "/opt/a/", "/opt/b//"][self.below(3)];
        start.to_owned() + &self.names(most)
    }
}

/// Makes a tree in `/opt` on disk, and gives the commands for it.
fn made(numbers: &mut Numbers, root: &std::path::Path) -> String {
    fs::create_dir(root.join("opt")).unwrap();
    let mut directories = vec!["/opt".to_owned()];
    let mut script = String::new();
    for _ in 0..25 {
        let path = format!("{}/{}", directories[numbers.below(directories.len())], NAMES[numbers.below(NAMES.len())]);
        let real = root.join(&path[1..]);
        if real.symlink_metadata().is_ok() {
            continue;
        }
        script += &match numbers.below(5) {
            0 => {
                File::create(&real).unwrap();
                format!("touch {path}\n")
            }
            1 | 2 => {
                fs::create_dir(&real).unwrap();
                directories.push(path.clone());
                format!("mkdir {path}\n")
            }
            at => {
                let target = if at == 3 { numbers.path(2) } else { numbers.names(3) };
                symlink(&target, &real).unwrap();
                format!("ln -s {target} {path}\n")
            }
        };
    }
    script
}

#[test]
fn scripts_find_what_linux_finds() {
    let (mut found, mut missing) = (0, 0);
    for seed in 1..=TREES {
        let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let dir = tempfile::tempdir().unwrap();
        let mut script = made(&mut numbers, dir.path()) + "mkdir /opt/found\n";
        let root = File::open(dir.path()).unwrap();
        let mut expected = BTreeSet::new();
        for at in 0..PATHS {
            let path = numbers.path(5);
            script += &format!("[ ! -e {path} ] || echo {at} >> /opt/list\n");
            if openat2(&root, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::IN_ROOT).is_ok() {
                expected.insert(at);
            }
        }
        let imported = run(&script, &[], &json!({})).unwrap_or_else(|error| panic!("{error}\n{script}"));
        let list = content(&imported, "/opt/list").unwrap_or_default();
        let real: BTreeSet<usize> = list.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(real, expected, "seed {seed}\n{script}");
        found += expected.len();
        missing += PATHS - expected.len();
    }
    assert!(found > 80 && missing > 800, "{found} {missing}");
}

#[test]
fn a_file_is_not_a_directory() {
    for (script, is_done) in [
        ("touch /opt/a /opt/b; [ -e /opt/a/../b ]", false),
        ("touch /opt/a; ln -s /opt/a/ /opt/l; [ -e /opt/l ]", false),
        ("touch /opt/a; ln -s a/. /opt/l; cat /opt/l", false),
        ("touch /opt/a; [ -e /opt/a/ ]", false),
        ("touch /opt/a; [ -e /opt/a/. ]", false),
        ("mkdir /opt/a; ln -s a/ /opt/l; [ -d /opt/l ]", true),
        ("mkdir /opt/a; touch /opt/b; cat /opt/a/../b", true),
    ] {
        let imported = run(&format!("if {script}; then touch /opt/x; fi"), &[], &json!({})).unwrap();
        assert_eq!(document(&imported)["files"].get("/opt/x").is_some(), is_done, "{script}");
    }
}
