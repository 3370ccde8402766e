//! `vmbake boot`: QEMU's inputs, checked with fsck.vfat, mtools and qemu-img while a real QEMU has them open; refusals, and
//! remains. The machines of these tests never run (`-S`), except one that boots up to its kernel's first output.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::SystemTime;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use vmbake_common::digest::Digest;

use crate::base::base;
use crate::tools::have;

mod checks;
mod disks;
mod ends;
mod refusals;
mod seeds;

/// Types of a root partition.
const AMD64: &str = "8304";
const ARM64: &str = "8305";
const LINUX: &str = "8300";

/// A folder with a disk of 8 MiB, on which is nothing but a partition table.
struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let lab = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(lab.path("tmp")).unwrap();
        lab.disk("disk.raw", AMD64);
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    fn disk(&self, name: &str, kind: &str) {
        let disk = self.path(name);
        File::create(&disk).unwrap().set_len(8 << 20).unwrap();
        run("sgdisk", &["--new=1:2048:0", &format!("--typecode=1:{kind}"), disk.to_str().unwrap()]);
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        command.arg("boot").args(args).current_dir(self.dir.path()).env("TMPDIR", self.path("tmp"));
        command
    }

    /// A machine that has been made and does not run.
    fn machine(&self, args: &[&str]) -> Machine {
        let mut command = self.command(args);
        command.args(["--accel", "tcg", "--network", "none", "--", "-S"]);
        Machine::start(command)
    }

    /// Why an image is not booted. There is no qemu on PATH, so nothing but that can be the reason.
    fn refused(&self, args: &[&str]) -> String {
        let output = self.command(args).env("PATH", "").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(self.nothing_left());
        said
    }

    fn nothing_left(&self) -> bool {
        fs::read_dir(self.path("tmp")).unwrap().count() == 0
    }
}

/// A qemu that `vmbake boot` became.
struct Machine(Child);

impl Machine {
    /// Waits until qemu has made the machine: then its monitor speaks, or its end closes.
    fn start(mut command: Command) -> Self {
        let (ours, its) = UnixStream::pair().unwrap();
        fcntl_setfd(&its, FdFlags::empty()).unwrap();
        let its = OwnedFd::from(its);
        let socket = format!("socket,id=test,fd={}", its.as_raw_fd());
        command.args(["-chardev", &socket, "-mon", "chardev=test,mode=control"]);
        let qemu = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        drop(its);
        let machine = Self(qemu);
        (&ours).write_all(b"{\"execute\": \"qmp_capabilities\"}\n").unwrap();
        // The greeting comes early, the answer from the loop in which a machine runs.
        let answer = BufReader::new(&ours).lines().map_while(Result::ok).find(|line| line.starts_with("{\"return\""));
        assert!(answer.is_some(), "{command:?} ended");
        machine
    }

    /// What qemu was told of the disk `node`.
    fn node(&self, node: &str) -> Value {
        let arguments = fs::read(format!("/proc/{}/cmdline", self.0.id())).unwrap();
        let mut nodes =
            arguments.split(|byte| *byte == 0).filter_map(|text| serde_json::from_slice::<Value>(text).ok());
        nodes.find(|found| found["node-name"] == node).unwrap()
    }

    /// What qemu has opened as the disk `node`.
    fn file(&self, node: &str) -> PathBuf {
        let node = self.node(node);
        let name = node["file"]["filename"].as_str().unwrap();
        PathBuf::from(name.replace("self", &self.0.id().to_string()))
    }

    fn end(mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        self.0.wait().unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program that must succeed; returns its output.
fn run(program: &str, args: &[&str]) -> String {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(args).env("PATH", path).output().unwrap();
    let [said, complaint] = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(output.status.success(), "{program} {args:?}: {said}{complaint}");
    said
}

fn state(image: &Path) -> (Digest, SystemTime) {
    let changed = fs::metadata(image).unwrap().modified().unwrap();
    (Digest::of(b"").of_stream(File::open(image).unwrap()).unwrap().0, changed)
}
