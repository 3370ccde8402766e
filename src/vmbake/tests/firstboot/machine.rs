//! A machine that was never booted, in a directory, and the program on it.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::image::{Image, put};
use crate::program::write_program;
use crate::tools::have;

pub const USER_DATA: &str = "/opt/podplane/etc/user-data.env";

const ROUTE: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
    eth0\t00000000\t0202000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
    eth0\t0002000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
const TRIE: &str = "Local:\n  |-- 10.0.2.15\n     /32 host LOCAL\n  |-- 127.0.0.1\n     /32 host LOCAL\n";
const INET6: &str =
    "fe800000000000000000000000000015 02 40 20 80 eth0\n20010db8000000000000000000000015 02 40 00 80 eth0\n";

/// Where trees are made: the program waits for the disk after each file, which memory does not have.
pub fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let home = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::tempdir_in(home).unwrap()
}

/// Whether owners can be changed here. If not, the test runs once more, as root of a user namespace.
pub fn as_root(test: &str) -> bool {
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        return true;
    }
    if have(&["unshare", "newuidmap"]) {
        let program = std::env::current_exe().unwrap();
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--map-auto", "--"]).arg(program).args(["--exact", test, "--nocapture"]);
        assert!(unshare.status().unwrap().success(), "{test} as root of a user namespace");
    }
    false
}

/// Addresses of a server that takes every connection: of both families, where the machine has them.
pub fn server() -> &'static [String; 2] {
    static SERVER: OnceLock<[String; 2]> = OnceLock::new();
    SERVER.get_or_init(listening)
}

/// Those of another server.
pub fn moved() -> &'static [String; 2] {
    static SERVER: OnceLock<[String; 2]> = OnceLock::new();
    SERVER.get_or_init(listening)
}

fn listening() -> [String; 2] {
    let ipv4 = TcpListener::bind("127.0.0.1:0").unwrap();
    let ipv6 = TcpListener::bind("[::1]:0");
    let addresses = [&ipv4, ipv6.as_ref().unwrap_or(&ipv4)].map(|one| one.local_addr().unwrap().to_string());
    for listener in [Some(ipv4), ipv6.ok()].into_iter().flatten() {
        std::thread::spawn(move || listener.incoming().for_each(drop));
    }
    addresses
}

/// The static program of an architecture, ready to run.
pub fn program(arch: &str) -> Vec<PathBuf> {
    static PROGRAMS: OnceLock<TempDir> = OnceLock::new();
    let dir = PROGRAMS.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        for arch in ["amd64", "arm64"] {
            let path = dir.path().join(arch);
            write_program(&path, vmbake_embedded::program(arch).unwrap().1);
        }
        dir
    });
    let program = dir.path().join(arch);
    let own = arch == if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    if own { vec![program] } else { vec!["qemu-aarch64-static".into(), program] }
}

/// A machine in a directory.
pub struct Machine {
    pub root: PathBuf,
    program: Vec<PathBuf>,
}

impl Machine {
    /// Before its first boot, with what user data says; servers that take connections are added.
    pub fn new(root: PathBuf, image: &Image, arch: &str, user_data: &BTreeMap<String, String>) -> Self {
        fs::create_dir(&root).unwrap();
        image.unpack(&root);
        put(&root, "/etc/hosts", "127.0.0.1 localhost\n");
        put(&root, "/etc/resolv.conf", "search demo.example\n");
        put(&root, "/proc/net/route", ROUTE);
        put(&root, "/proc/net/fib_trie", TRIE);
        put(&root, "/proc/sys/kernel/hostname", "node-1\n");
        put(&root, "/proc/sys/kernel/osrelease", "6.12\n");
        put(&root, "/var/lib/cloud/data/instance-id", "iid-1\n");
        put(&root, "/opt/nstance-agent/identity/nonce.jwt", "nonce\n");
        let mut user_data = user_data.clone();
        for (name, address) in ["NSTANCE_SERVER_REGISTRATION_ADDR", "NSTANCE_SERVER_AGENT_ADDR"].iter().zip(server()) {
            user_data.entry((*name).to_owned()).or_insert_with(|| address.clone());
        }
        let lines = user_data.iter().map(|(name, value)| format!("{name}='{}'\n", value.replace('\'', r#"'"'"'"#)));
        put(&root, USER_DATA, &lines.collect::<String>());
        Self { root, program: program(arch) }
    }

    /// The kernel has an IPv6 address.
    pub fn dual(&self) {
        put(&self.root, "/proc/net/if_inet6", INET6);
    }

    /// Runs a command of the program.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let [first, rest @ ..] = &self.program[..] else { panic!("no program") };
        Command::new(first).args(rest).args(arguments).arg("--root").arg(&self.root).output().unwrap()
    }

    /// Runs a command that succeeds; what it says on standard output.
    pub fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {arguments:?}: {said}", self.root.display());
        String::from_utf8(output.stdout).unwrap()
    }
}
