//! `vmbake boot --check`: the machine is checked, reported and stopped. A boot sector replaces a system here; whole ones are checked by
//! the boot tests below qemu-tests.

use std::os::unix::fs::FileExt;
use std::process::Output;
use std::thread::sleep;
use std::time::Duration;

use super::*;

/// Writes what stands behind it, up to a zero, to the first serial port, and halts (real mode of x86, loaded at 0x7c00): `cli; xor ax, ax;
/// mov ds, ax; mov si, 0x7c16; mov dx, 0x3f8; next: lodsb; test al, al; jz end; out dx, al; jmp next; end: hlt; jmp end`.
const SPEAK: [u8; 22] = [
    0xfa, 0x31, 0xc0, 0x8e, 0xd8, 0xbe, 0x16, 0x7c, 0xba, 0xf8, 0x03, 0xac, 0x84, 0xc0, 0x74, 0x03, 0xee, 0xeb, 0xf8,
    0xf4, 0xeb, 0xfd,
];

fn speaking(text: &str) -> Lab {
    let lab = Lab::new();
    let disk = File::options().write(true).open(lab.path("disk.raw")).unwrap();
    let code = [&SPEAK, text.as_bytes(), &[0]].concat();
    assert!(code.len() <= 440);
    disk.write_all_at(&code, 0).unwrap();
    lab
}

fn judged(lab: &Lab, args: &[&str]) -> (Output, String) {
    let output = lab.command(args).args(["--accel", "tcg"]).output().unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(lab.nothing_left());
    (output, said)
}

#[test]
fn a_boot_that_fails_is_told_at_once_with_what_the_console_showed() {
    if !have(&["sgdisk", "qemu-system-x86_64", "setpriv"]) {
        return;
    }
    let lab = speaking("loading\r\n\x1b[31mKernel panic\x1b[0m - not syncing: no <init>\r\n");
    let args = [
        "disk.raw",
        "--network",
        "none",
        "--timeout",
        "600",
        "--check",
        "unit=a.service,file=/etc/a",
        "--check",
        "run=a, b",
    ];
    let (output, said) = judged(&lab, &[&args[..], &["--junit", "a.xml", "--log", "console"]].concat());
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("\nloading\nKernel panic - not syncing: no <init>\n"), "{said}");
    assert!(said.ends_with("failed  the boot failed: Kernel panic\n"), "{said}");
    let expected = ["unit=a.service", "file=/etc/a", "run=a, b"]
        .map(|check| format!("LATE  {check}  (0.0 s)\n      | the machine has not reported\n"))
        .concat();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let junit = fs::read_to_string(lab.path("a.xml")).unwrap();
    assert!(junit.contains("tests=\"3\" failures=\"3\"") && junit.contains("no &lt;init&gt;"), "{junit}");
    assert!(fs::read(lab.path("console")).unwrap().windows(5).any(|bytes| bytes == b"\x1b[31m"));

    let (output, _) = judged(&lab, &[&args[..], &["--json"]].concat());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["ok"], &found["ended"]), (&Value::Bool(false), &Value::from("the boot failed: Kernel panic")));
    assert_eq!(found["checks"][2]["check"], "run=a, b");
    assert_eq!(found["checks"][2]["state"], "pending");
}

#[test]
fn a_machine_that_says_nothing_is_given_up() {
    if !have(&["sgdisk", "qemu-system-x86_64", "setpriv"]) {
        return;
    }
    let lab = speaking("login: ");
    let (output, said) = judged(&lab, &["disk.raw", "--check", "tcp:22,http:80/a,run=a", "--timeout", "5"]);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.ends_with("failed  checks did not pass within 5 s\n"), "{said}");
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(found.contains("LATE  tcp:22") && found.contains("LATE  http:80/a=200"), "{found}");
}

#[test]
fn a_machine_ends_with_who_judges_it() {
    if !have(&["sgdisk", "qemu-system-x86_64", "setpriv"]) {
        return;
    }
    let lab = speaking("up\r\n");
    let args = ["disk.raw", "--check", "run=a", "--log", "console", "--accel", "tcg"];
    let mut child = lab.command(&args).stderr(Stdio::null()).spawn().unwrap();
    let deadline = SystemTime::now() + Duration::from_secs(300);
    let wait = |holds: &dyn Fn() -> bool| {
        while !holds() {
            assert!(SystemTime::now() < deadline);
            sleep(Duration::from_millis(50));
        }
    };
    wait(&|| fs::read(lab.path("console")).is_ok_and(|shown| shown.starts_with(b"up")));
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let qemu = PathBuf::from(format!("/proc/{}/exe", children.trim()));
    assert!(fs::read_link(&qemu).unwrap().ends_with("qemu-system-x86_64"));
    child.kill().unwrap();
    child.wait().unwrap();
    // A zombie process has no program.
    wait(&|| fs::read_link(&qemu).is_err());
    assert!(lab.nothing_left());
}

#[test]
fn what_cannot_be_judged_is_refused() {
    if !have(&["sgdisk", "qemu-system-x86_64"]) {
        return;
    }
    let lab = Lab::new();
    for (args, reason) in [
        (&["--check", "unit=ssh"][..], "invalid unit"),
        (&["--check", "tcp:22", "--network", "none"], "--check of a port requires --network"),
        (&["--check", "run=a", "--console"], "cannot be used with"),
        (&["--timeout", "5"], "--check"),
        (&["--json"], "--check"),
    ] {
        let output = lab.command(&["disk.raw"]).args(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(reason), "{args:?}: {said}");
    }
    // qemu says why it does not begin.
    let (output, said) = judged(&lab, &["disk.raw", "--check", "run=a", "--log", "no/folder"]);
    assert!(output.status.code() == Some(1) && said.contains("no/folder: cannot write the console output"), "{said}");
    let output = lab.command(&["disk.raw", "--check", "run=a", "--", "-no-such-option"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("no-such-option"), "{said}");
    assert!(said.contains("error: QEMU exited during startup"), "{said}");
}
