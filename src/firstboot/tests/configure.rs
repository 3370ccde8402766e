//! Runs the program below a separate root: it converges, makes no needless changes and refuses unsafe
//! input.
#![allow(clippy::unwrap_used, reason = "helpers of tests are not #[test] functions, which may unwrap")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

const PLAN: &str = r#"{"vmconfig": {"version": "1.2", "kind": "node", "os": {"name": "debian-13", "arch": "amd64"}}}"#;

fn root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "opt/podplane/share/vmconfig-installed.json", PLAN.as_bytes());
    write(root.path(), "opt/podplane/share/firstboot.json", b"{}");
    write(root.path(), "proc/sys/kernel/hostname", b"vm-7\n");
    root
}

fn write(root: &Path, path: &str, content: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firstboot"));
    command.args(arguments).arg("--root").arg(root);
    command
}

fn run(root: &Path, arguments: &[&str]) -> Output {
    command(root, arguments).output().unwrap()
}

fn record(root: &Path) -> PathBuf {
    root.join("var/lib/vmbake/firstboot.json")
}

fn parsed(root: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(record(root)).unwrap()).unwrap()
}

fn names(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join("var/lib/vmbake")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn install_finds_the_record_under_the_name_of_the_script_too() {
    let root = root();
    let script = root.path().join("install.sh");
    symlink(env!("CARGO_BIN_EXE_firstboot"), &script).unwrap();
    for (program, arguments) in [(env!("CARGO_BIN_EXE_firstboot"), &["install"][..]), (script.to_str().unwrap(), &[])] {
        let done = Command::new(program).args(arguments).arg("--root").arg(root.path()).output().unwrap();
        assert_eq!(String::from_utf8(done.stdout).unwrap(), "installed: node.debian-13.amd64\n");
        assert_eq!(done.status.code(), Some(0));
    }
    fs::remove_file(root.path().join("opt/podplane/share/vmconfig-installed.json")).unwrap();
    assert_eq!(run(root.path(), &["install"]).status.code(), Some(1));
}

#[test]
fn configure_records_once_and_says_so() {
    let root = root();
    let before = run(root.path(), &["status"]);
    assert_eq!(before.status.code(), Some(3));
    let dry = run(root.path(), &["configure", "--dry-run"]);
    assert!(dry.status.success() && !root.path().join("var").exists(), "a dry run changes nothing");

    let line = "vmbake-firstboot: configured node.debian-13.amd64 1.2 host=vm-7 dev=- ipv4=-\n";
    let first = run(root.path(), &["configure"]);
    assert_eq!((first.status.code(), String::from_utf8(first.stdout).unwrap().as_str()), (Some(0), line));
    let found = fs::metadata(record(root.path())).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o600);
    assert!(run(root.path(), &["configure"]).status.success());
    let again = fs::metadata(record(root.path())).unwrap();
    assert_eq!(
        (again.ino(), again.mtime_nsec()),
        (found.ino(), found.mtime_nsec()),
        "an equal record is not rewritten"
    );
    assert_eq!(String::from_utf8(run(root.path(), &["status"]).stdout).unwrap(), line);

    write(root.path(), "proc/sys/kernel/hostname", b"vm-8\n");
    assert!(run(root.path(), &["configure"]).status.success());
    assert_eq!(parsed(root.path())["hostname"], "vm-8");
}

#[test]
fn a_killed_run_is_made_good_by_the_next() {
    let root = root();
    for attempt in 0..60 {
        write(root.path(), "proc/sys/kernel/hostname", format!("vm-{attempt}\n").as_bytes());
        let mut child = command(root.path(), &["configure"]).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(100 * attempt));
        child.kill().unwrap();
        child.wait().unwrap();
        if record(root.path()).exists() {
            parsed(root.path());
        }
    }
    assert!(run(root.path(), &["configure"]).status.success());
    assert_eq!(parsed(root.path())["hostname"], "vm-59");
    assert_eq!(names(root.path()), ["firstboot.json"], "no temporary file remains");
}

#[test]
fn runs_at_the_same_time_leave_one_record() {
    let root = root();
    let runs: Vec<_> = (0..8).map(|_| command(root.path(), &["configure"]).spawn().unwrap()).collect();
    for mut run in runs {
        assert!(run.wait().unwrap().success());
    }
    assert_eq!(parsed(root.path())["image"]["version"], "1.2");
    assert_eq!(names(root.path()), ["firstboot.json"]);
}

#[test]
fn a_damaged_record_is_replaced() {
    let root = root();
    for damage in [&b""[..], b"{\"schema\"", b"\xff\xfe", b"[]"] {
        write(root.path(), "var/lib/vmbake/firstboot.json", damage);
        assert_eq!(run(root.path(), &["status"]).status.code(), Some(1));
        assert!(run(root.path(), &["configure"]).status.success());
        assert_eq!(parsed(root.path())["schema"], 2);
    }
}

#[test]
fn what_is_not_safe_to_use_is_refused() {
    let huge = vec![b' '; (1 << 20) + 1];
    for (plan, expected) in [(&b"{"[..], "JSON"), (b"\xff", "UTF-8"), (b"[]", "object"), (&huge[..], "at most 1 MiB")] {
        let root = root();
        write(root.path(), "opt/podplane/share/vmconfig-installed.json", plan);
        refused(root.path(), expected);
    }
    for plan in ["", "[]", r#"{"variables": []}"#] {
        let root = root();
        write(root.path(), "opt/podplane/share/firstboot.json", plan.as_bytes());
        refused(root.path(), "firstboot.json: expected a plan");
        fs::remove_file(root.path().join("opt/podplane/share/firstboot.json")).unwrap();
        refused(root.path(), "firstboot.json: entity not found");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let linked = root();
    fs::create_dir_all(linked.path().join("var/lib")).unwrap();
    symlink(elsewhere.path(), linked.path().join("var/lib/vmbake")).unwrap();
    refused(linked.path(), "found a symbolic link");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    let file = root();
    write(file.path(), "var/lib/vmbake", b"");
    refused(file.path(), "expected a directory");
    let pointed = root();
    fs::create_dir_all(pointed.path().join("var/lib/vmbake")).unwrap();
    symlink("/etc/passwd", record(pointed.path())).unwrap();
    refused(pointed.path(), "found a symbolic link");
}

fn refused(root: &Path, expected: &str) {
    let output = run(root, &["configure"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.starts_with("vmbake-firstboot: error: ") && message.contains(expected), "{message}");
}

#[test]
fn wrong_usage_is_told_apart_from_failure() {
    for arguments in [&[][..], &["frobnicate"], &["configure", "--json"], &["status", "--no-block"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_firstboot")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let help = Command::new(env!("CARGO_BIN_EXE_firstboot")).arg("--help").output().unwrap();
    assert!(help.status.success() && String::from_utf8(help.stdout).unwrap().contains("Exit codes"));
}

const SETTINGS: &str = r#"{
    "inputs": {"user_data": "/opt/user.env", "detected": "/opt/detected.env", "mutable": "/opt/mutable.env",
        "defaults": "/opt/defaults.env", "marker": "/opt/done"},
    "variables": {"KEYS": {"mutable": true, "aliases": ["KEY"]}, "CA": {"format": "base64"}},
    "detect": [{"name": "HOST", "value": "{{ hostname }}"}],
    "files": [{"path": "/opt/keys", "mode": "0600", "content": {"text": "{{ KEYS }}"}}],
    "services": [{"unit": "one.service", "on_receive": true}],
    "receive": {"directory": "/opt/recv", "trigger": "last", "mutable": "mutable.env", "keys": "/opt/private",
        "stamp": "/opt/stamp"},
    "received": {"a.crt": {"directory": "/opt", "group": "root"}, "b.crt": {"directory": "/opt", "group": "root"}},
    "keys": {"a.key": {"directory": "/opt", "group": "none", "certificate": "/opt/a.crt"},
        "b.key": {"directory": "/opt", "group": "root", "certificate": "/opt/b.crt"}}
}"#;

/// A machine with settings and deliveries.
fn with_settings() -> tempfile::TempDir {
    let root = root();
    write(root.path(), "opt/podplane/share/firstboot.json", SETTINGS.as_bytes());
    write(root.path(), "opt/user.env", b"KEY=old\n");
    root
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn user_data_that_did_not_work_can_be_put_right() {
    let root = with_settings();
    let plan = SETTINGS.replacen('{', r#"{"checks": [{"that": "KEYS != 'wrong'", "otherwise": "wrong keys"}],"#, 1);
    write(root.path(), "opt/podplane/share/firstboot.json", plan.as_bytes());
    write(root.path(), "opt/user.env", b"KEY=wrong\n");
    assert!(said(&run(root.path(), &["configure"])).contains("wrong keys"));
    write(root.path(), "opt/user.env", b"KEY=right\n");
    let output = run(root.path(), &["configure"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read_to_string(root.path().join("opt/keys")).unwrap(), "right");
    // They are not read any more.
    write(root.path(), "opt/user.env", b"KEY=other\n");
    assert!(run(root.path(), &["configure"]).status.success());
    assert_eq!(fs::read_to_string(root.path().join("opt/keys")).unwrap(), "right");
}

#[test]
fn a_plan_may_have_nothing_to_find_out_and_nothing_that_may_change() {
    let root = root();
    let plan = r#"{"inputs": {"user_data": "/u", "detected": "/d", "mutable": "/m", "defaults": "/x", "marker": "/y"},
        "variables": {"A": {"default": "1"}}, "files": [{"path": "/a", "mode": "0600", "content": {"text": "{{ A }}"}}]}"#;
    write(root.path(), "opt/podplane/share/firstboot.json", plan.as_bytes());
    for (user_data, expected) in [("\n", "1"), ("A='2'\n", "2")] {
        write(root.path(), "u", user_data.as_bytes());
        let done = run(root.path(), &["configure"]);
        assert!(done.status.success(), "{done:?}");
        assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), expected);
    }
}

#[test]
fn a_setting_under_an_older_name_can_be_taken_back() {
    let root = with_settings();
    let keys = || fs::read_to_string(root.path().join("opt/keys")).unwrap();
    assert!(run(root.path(), &["configure"]).status.success());
    assert_eq!(keys(), "old");
    write(root.path(), "opt/new.env", b"KEYS=\n");
    assert!(run(root.path(), &["update-mutable-env", "/opt/new.env", "/opt/mutable.env"]).status.success());
    assert!(run(root.path(), &["configure"]).status.success());
    assert_eq!(keys(), "", "what user data says under the older name does not come back");
}

#[test]
fn a_value_that_may_be_a_secret_is_not_shown() {
    let root = with_settings();
    write(root.path(), "opt/user.env", b"CA='top secret!'\n");
    let output = run(root.path(), &["configure"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("CA: expected a certificate in PEM or text in base64")
            && !said(&output).contains("secret")
    );
    assert!(!fs::read_to_string(record(root.path())).unwrap().contains("secret"));
}

#[test]
fn files_are_taken_although_the_clock_was_set_back() {
    let root = with_settings();
    write(root.path(), "opt/stamp", b"");
    let ahead = std::time::SystemTime::now() + Duration::from_secs(3600);
    fs::File::open(root.path().join("opt/stamp")).unwrap().set_modified(ahead).unwrap();
    write(root.path(), "opt/recv/b.crt", b"B");
    write(root.path(), "opt/recv/last", b"");
    let output = run(root.path(), &["recv-watch"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read(root.path().join("opt/b.crt")).unwrap(), b"B");
}

#[test]
fn what_was_taken_just_before_the_last_run_restarts_nothing_by_itself() {
    let root = with_settings();
    write(root.path(), "opt/recv/b.crt", b"B");
    write(root.path(), "opt/recv/last", b"");
    assert!(said(&run(root.path(), &["recv-watch"])).contains("restart one.service"));
    assert!(!said(&run(root.path(), &["recv-watch"])).contains("restart one.service"));
    // Time of a file that arrived at the start of that run.
    write(root.path(), "opt/recv/b.crt", b"C");
    let stamp = fs::metadata(root.path().join("opt/stamp")).unwrap().modified().unwrap();
    let received = fs::File::open(root.path().join("opt/recv/b.crt")).unwrap();
    received.set_modified(stamp - Duration::from_millis(5)).unwrap();
    assert!(said(&run(root.path(), &["recv-watch"])).contains("restart one.service"));
    assert_eq!(fs::read(root.path().join("opt/b.crt")).unwrap(), b"C");
}

#[test]
fn settings_that_arrived_once_do_not_come_back() {
    let root = with_settings();
    assert!(run(root.path(), &["configure"]).status.success());
    write(root.path(), "opt/recv/mutable.env", b"KEYS=arrived\n");
    let received = fs::File::open(root.path().join("opt/recv/mutable.env")).unwrap();
    received.set_modified(std::time::SystemTime::now() - Duration::from_millis(100)).unwrap();
    let keys = || {
        write(root.path(), "opt/recv/last", b"");
        assert!(run(root.path(), &["recv-watch"]).status.success());
        fs::read_to_string(root.path().join("opt/keys")).unwrap()
    };
    assert_eq!(keys(), "arrived");
    write(root.path(), "opt/new.env", b"KEYS=changed\n");
    assert!(run(root.path(), &["update-mutable-env", "/opt/new.env", "/opt/mutable.env"]).status.success());
    assert_eq!(keys(), "changed");
}

#[test]
fn a_unit_is_restarted_first_when_its_file_has_changed_and_else_left_alone() {
    let root = with_settings();
    let plan =
        SETTINGS.replace(r#""services": ["#, r#""services": [{"unit": "two.service", "on_change": "/opt/keys"}, "#);
    write(root.path(), "opt/podplane/share/firstboot.json", plan.as_bytes());
    assert!(run(root.path(), &["configure"]).status.success());
    for (settings, expected) in [
        ("KEYS=new\n", "two.service one.service"),
        ("KEYS=new\n", "one.service"),
        ("KEYS=\n", "two.service one.service"),
    ] {
        write(root.path(), "opt/recv/mutable.env", settings.as_bytes());
        write(root.path(), "opt/recv/last", b"");
        let output = run(root.path(), &["recv-watch"]);
        assert!(output.status.success(), "{}", said(&output));
        let said = said(&output);
        let restarted: Vec<_> = said.lines().filter_map(|line| line.split_once("systemctl restart ")).collect();
        assert_eq!(restarted.iter().map(|(_, units)| *units).collect::<Vec<_>>().join(" "), expected, "{said}");
    }
}

#[test]
fn a_key_that_cannot_be_placed_does_not_hold_up_another() {
    let root = with_settings();
    for path in ["opt/recv/a.crt", "opt/recv/b.crt", "opt/recv/last", "opt/private/a.key", "opt/private/b.key"] {
        write(root.path(), path, b"X");
    }
    let output = run(root.path(), &["recv-watch"]);
    assert!(output.status.code() == Some(1) && said(&output).contains("no group none"), "{}", said(&output));
    assert!(root.path().join("opt/b.key").exists());
}

#[test]
fn a_name_that_somebody_made_up_is_one_line_of_the_log() {
    let root = with_settings();
    write(root.path(), "opt/recv/x\nvmbake-firstboot: error: \u{1b}[2J", b"");
    write(root.path(), "opt/recv/last", b"");
    let said = said(&run(root.path(), &["recv-watch"]));
    assert!(said.contains(r"x\nvmbake-firstboot: error: ") && !said.contains('\u{1b}'), "{said}");
}

#[test]
fn no_run_waits_for_one_that_waits_for_services() {
    for command_of in ["restart", "recv-watch"] {
        let root = with_settings();
        assert!(run(root.path(), &["configure"]).status.success());
        write(root.path(), "opt/recv/b.crt", b"B");
        // Instead of services: a full pipe, so that the first line about them blocks.
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[b'.'; 65536]).unwrap();
        let mut waiting = command(root.path(), &[command_of]).stdout(writer).spawn().unwrap();
        while command_of == "recv-watch" && !root.path().join("opt/b.crt").exists() {
            std::thread::yield_now();
        }
        let mut other = Command::new("/usr/bin/timeout");
        other.args(["5", env!("CARGO_BIN_EXE_firstboot"), "hosts", "--root"]).arg(root.path());
        assert_eq!(other.status().unwrap().code(), Some(0), "{command_of}");
        let mut lines = String::new();
        reader.read_to_string(&mut lines).unwrap();
        assert!(waiting.wait().unwrap().success() && lines.contains("restart one.service"), "{command_of}");
    }
}

#[test]
fn a_user_that_was_half_made_becomes_whole() {
    let plan = r#"{"users": {"admin": {"when": "true", "shell": "/bin/bash"}}, "files": [{
        "path": "/home/admin/.ssh/keys", "mode": "0600", "owner": "admin", "group": "admin",
        "directory": {"mode": "0700", "owner": "admin", "group": "admin"}, "content": {"text": "key"}}]}"#;
    let fresh = root();
    write(fresh.path(), "opt/podplane/share/firstboot.json", plan.as_bytes());
    write(fresh.path(), "home/other", b"");
    let output = run(fresh.path(), &["configure", "--dry-run"]);
    assert!(output.status.success() && said(&output).contains("write /home/admin/.ssh/keys"), "{}", said(&output));
    // useradd was killed before it wrote the groups, before it made the home, and before that had its owner.
    for (group, home) in [("", false), ("admin:x:1234:\n", false), ("admin:x:1234:\n", true)] {
        let root = root();
        write(root.path(), "opt/podplane/share/firstboot.json", plan.as_bytes());
        write(root.path(), "etc/passwd", b"admin:x:1234:1234::/home/admin:/bin/bash\n");
        write(root.path(), "etc/group", group.as_bytes());
        fs::create_dir(root.path().join("home")).unwrap();
        if home {
            fs::DirBuilder::new().mode(0o000).create(root.path().join("home/admin")).unwrap();
        }
        for arguments in [&["configure", "--dry-run"][..], &["configure"]] {
            let output = run(root.path(), arguments);
            assert!(output.status.success(), "{}", said(&output));
        }
        let found = fs::metadata(root.path().join("home/admin")).unwrap();
        assert_eq!((found.mode() & 0o7777, found.uid()), (0o700, 1234));
        assert!(root.path().join("home/admin/.ssh/keys").exists());
    }
}
