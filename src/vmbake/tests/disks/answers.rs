//! Consistent results: all commands run on the same images, with little memory.

use super::damaged::{Case, EXT4, FAT, GPT, QCOW2, Seen};
use super::*;
use crate::origin::bakery::{can_bake, request};

/// The address space of a command, in KiB: for the largest that is still read. The attacks took as much as there was.
const MEMORY: u32 = 600_000;

/// Nothing is wrong.
const NONE: [&str; 0] = [];

/// Result of a command for an image.
#[derive(Debug)]
struct Answer {
    /// By itself, not for want of memory.
    ended: bool,
    accepted: bool,
    text: String,
}

fn ask(lab: &Lab, args: &[&str]) -> Answer {
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_vmbake")])
        .args(args)
        // Each arena reserves addresses, and there are as many as the machine has cores.
        .env("MALLOC_ARENA_MAX", "1")
        .current_dir(lab.0.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let ended = matches!(output.status.code(), Some(0 | 1));
    Answer { ended, accepted: !said.contains("error: "), text }
}

/// The commands, with the most that they see.
fn commands<'a>(image: &'a str, path: &'a str) -> [(Seen, Vec<&'a str>); 8] {
    [
        (Seen::Bytes, vec!["diff", "-j", "2", "--blocks", image, image]),
        (Seen::Table, vec!["inspect", image]),
        (Seen::Inside, vec!["ls", image]),
        (Seen::Inside, vec!["cat", image, path]),
        (Seen::Inside, vec!["explain", image, path]),
        (Seen::Whole, vec!["ls", "-R", image]),
        (Seen::Whole, vec!["lint", image]),
        (Seen::Whole, vec!["diff", "-j", "2", image, image]),
    ]
}

fn bake(lab: &Lab, image: &Path) -> Answer {
    request(lab.0.path(), image.to_owned(), "out", 2);
    let base = image.file_name().unwrap().to_str().unwrap();
    let files = [
        "--manifest",
        "manifest.json",
        "--sources",
        "sources.json",
        "--layers",
        "layers",
        "--no-builtin",
        "--store",
        "store",
        "--out",
        "out",
    ];
    let args = ["bake", "tools", "--os", "o", "--arch", "amd64", "--offline", "-j", "2", "--base", base];
    ask(lab, &[&args[..], &files].concat())
}

/// What is wrong with the answers.
fn check(cases: &[Case], bakes: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for case in cases {
        let lab = Lab::new();
        let Some(image) = (case.make)(&lab) else { continue };
        let file = image.file_name().unwrap().to_str().unwrap();
        for (sees, args) in commands(file, case.path) {
            let answer = ask(&lab, &args);
            if !case.is_right(sees, &answer) {
                wrong.push(format!("{}: {args:?}: {answer:?}", case.name));
            }
        }
        if bakes {
            let answer = bake(&lab, &image);
            if !case.is_right(Seen::Whole, &answer) {
                wrong.push(format!("{}: bake: {answer:?}", case.name));
            }
        }
    }
    wrong
}

impl Case {
    fn is_right(&self, sees: Seen, answer: &Answer) -> bool {
        let told = answer.text.contains(self.reason);
        let right = match () {
            () if self.reason.is_empty() => answer.accepted,
            () if sees >= self.seen => !answer.accepted && told,
            // The corruption can be in a part that is not read.
            () if self.seen == Seen::Whole => answer.accepted || told,
            // What is damaged is still a part of a disk, or a row of bytes: the reason is noted, if it is not refused.
            () => told,
        };
        answer.ended && right
    }
}

#[test]
fn of_every_command_are_the_same_for_tables() {
    if can_bake() {
        assert_eq!(check(GPT, true), NONE);
        assert_eq!(check(QCOW2, true), NONE);
    }
}

#[test]
fn of_every_command_are_the_same_for_ext4() {
    if can_bake() {
        // A volume without an operating system is not a base; corruption is reported first.
        assert_eq!(check(&EXT4[..1], false), NONE);
        assert_eq!(check(&EXT4[1..], true), NONE);
    }
}

#[test]
fn of_every_command_are_the_same_for_fat() {
    if have(&["sgdisk"]) {
        // No base has a root of FAT.
        assert_eq!(check(FAT, false), NONE);
    }
}

/// Where QEMU refuses to read an entry, nothing is made of it here either, and what is sound here is sound there.
#[test]
fn of_qemu_are_the_same() {
    if !can_bake() || !have(&["qemu-img"]) {
        return;
    }
    for case in QCOW2.iter().filter(|case| case.reason.is_empty() || case.name == "bit 0 in version 2") {
        let lab = Lab::new();
        let image = (case.make)(&lab).unwrap();
        let args = ["convert", "-f", "qcow2", "-O", "raw"];
        let output = Command::new("qemu-img").args(args).args([&image, &lab.path("qemu.raw")]).output().unwrap();
        assert_eq!(output.status.success(), case.reason.is_empty(), "{}: {output:?}", case.name);
    }
}
