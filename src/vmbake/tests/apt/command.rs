//! `vmbake verify apt` with repositories on disk, compared with apt.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use vmbake_common::digest::Digest;

use super::lab::{Lab, NOW, have};

/// A repository of one package, and the key that it is signed with.
struct Repository<'a> {
    lab: &'a Lab,
    dir: tempfile::TempDir,
}

impl<'a> Repository<'a> {
    /// A good one, with its index by digest and by path.
    fn new(lab: &'a Lab) -> Self {
        let repository = Self { lab, dir: tempfile::tempdir().unwrap() };
        let deb = b"the package";
        repository.write("pool/h_1.deb", deb);
        let digest = Digest::of(deb).hex();
        let packages = format!(
            "Package: hello\nVersion: 1\nArchitecture: amd64\nFilename: pool/h_1.deb\nSize: {}\nSHA256: {digest}\n",
            deb.len()
        );
        repository.index(packages.as_bytes());
        repository.write("keys.asc", &lab.export(&["good"]));
        repository
    }

    /// Signs a release that lists this index.
    fn index(&self, packages: &[u8]) {
        let digest = Digest::of(packages).hex();
        let dir = "dists/trixie/main/binary-amd64";
        self.write(&format!("{dir}/by-hash/SHA256/{digest}"), packages);
        self.write(&format!("{dir}/Packages"), packages);
        let release = format!(
            "Suite: stable\nCodename: trixie\nDate: Sat, 14 Nov 2026 08:00:00 UTC\nAcquire-By-Hash: yes\n\
             Architectures: amd64\nComponents: main\nSHA256:\n {digest} {} main/binary-amd64/Packages\n",
            packages.len()
        );
        self.write("dists/trixie/InRelease", &self.lab.sign(&release, &["good"]));
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, content: &[u8]) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), content).unwrap();
    }

    fn by_hash(&self) -> PathBuf {
        let dir = self.path("dists/trixie/main/binary-amd64/by-hash/SHA256");
        fs::read_dir(dir).unwrap().next().unwrap().unwrap().path()
    }

    fn verify(&self, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        command.args(["verify", "apt", "--suite", "trixie", "--component", "main", "--arch", "amd64", "--keyring"]);
        command.arg(self.path("keys.asc")).args(["--package", "hello", "--now", NOW]);
        command.args(more).arg(self.dir.path()).output().unwrap()
    }

    /// Whether apt takes the package from this repository; its clock is the real one.
    fn apt_accepts(&self) -> bool {
        let root = tempfile::tempdir().unwrap();
        for dir in ["lists/partial", "cache/archives/partial", "etc/preferences.d", "out"] {
            fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        let path = |path: &str| root.path().join(path).to_str().unwrap().to_owned();
        let source = format!(
            "deb [arch=amd64 signed-by={}] copy:{} trixie main\n",
            self.path("keys.asc").display(),
            self.dir.path().display()
        );
        fs::write(path("etc/sources.list"), source).unwrap();
        fs::write(path("status"), "").unwrap();
        let options = [
            ("Dir::Etc", path("etc")),
            ("Dir::Etc::sourceparts", "-".to_owned()),
            ("Dir::State::lists", path("lists")),
            ("Dir::State::status", path("status")),
            ("Dir::Cache", path("cache")),
            ("APT::Architecture", "amd64".to_owned()),
            ("APT::Sandbox::User", "root".to_owned()),
            ("APT::Update::Error-Mode", "any".to_owned()),
            ("Debug::NoLocking", "1".to_owned()),
        ];
        let apt = |args: &[&str]| {
            let mut command = Command::new("apt-get");
            options.iter().for_each(|(name, value)| {
                command.arg("-o").arg(format!("{name}={value}"));
            });
            command.args(args).current_dir(path("out")).output().unwrap().status.success()
        };
        apt(&["update"]) && apt(&["download", "hello"])
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_proven_package_is_described() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let repository = Repository::new(&lab);
    let output = repository.verify(&[]);
    let (digest, signer) = (Digest::of(b"the package"), lab.fingerprints("good").remove(0));
    let expected = format!(
        "package hello\nversion 1\narch amd64\nfilename pool/h_1.deb\nsize 11\ndigest {digest}\nsuite trixie\n\
         date 2026-11-14T08:00:00Z\nsigners {signer}\n"
    );
    assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), (Some(0), &*expected, ""));
    let json: serde_json::Value = serde_json::from_slice(&repository.verify(&["--json"]).stdout).unwrap();
    assert_eq!(json["digest"], digest.to_string());
    assert_eq!(json["signers"], serde_json::json!([signer]));
}

#[test]
fn the_verdict_is_that_of_apt_and_the_code_tells_it() {
    let Some(lab) = Lab::with_keys(&["good", "unknown"]) else { return };
    let apt = have("apt-get");
    type Change = fn(&Repository<'_>);
    let cases: [(&str, Change, &str); 10] = [
        ("good", |_| {}, ""),
        ("no index by digest", |repository| fs::remove_file(repository.by_hash()).unwrap(), ""),
        (
            "the next index by path already",
            |repository| repository.write("dists/trixie/main/binary-amd64/Packages", b"x"),
            "",
        ),
        (
            "another key",
            |repository| repository.write("keys.asc", &repository.lab.export(&["unknown"])),
            "error: InRelease: signature verification failed",
        ),
        (
            "another index",
            |repository| {
                fs::write(repository.by_hash(), b"Package: x\n").unwrap();
                repository.write("dists/trixie/main/binary-amd64/Packages", b"Package: x\n");
            },
            "error: main/binary-amd64/Packages: 11 bytes",
        ),
        ("no index", |repository| fs::remove_dir_all(repository.path("dists/trixie/main")).unwrap(), "error: "),
        (
            "another package",
            |repository| repository.write("pool/h_1.deb", b"The package"),
            "error: pool/h_1.deb: expected digest",
        ),
        ("no package", |repository| fs::remove_file(repository.path("pool/h_1.deb")).unwrap(), "error: "),
        (
            "an empty index",
            |repository| repository.index(b""),
            "error: main/binary-amd64/Packages: package hello not found",
        ),
        ("no release", |repository| fs::remove_file(repository.path("dists/trixie/InRelease")).unwrap(), "error: "),
    ];
    for (name, change, message) in cases {
        let repository = Repository::new(&lab);
        change(&repository);
        let output = repository.verify(&[]);
        let expected = if message.is_empty() { 0 } else { 1 };
        assert_eq!(output.status.code(), Some(expected), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stderr).starts_with(message), "{name}: {}", text(&output.stderr));
        if apt {
            assert_eq!(repository.apt_accepts(), message.is_empty(), "{name}: apt");
        }
    }
}

#[test]
fn wrong_usage_is_told_apart_from_a_refusal() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let repository = Repository::new(&lab);
    let cases: [(&[&str], i32); 7] = [
        (&["--now", "yesterday"], 2),
        (&["--previous-date", "2026-11-14"], 2),
        (&["--suite", "../trixie"], 2),
        (&["--arch", "/etc"], 2),
        (&["--nonsense"], 2),
        (&["--previous-date", "2026-11-15T00:00:00Z"], 1),
        (&["--suite", "bookworm"], 1),
    ];
    for (arguments, code) in cases {
        let names: Vec<&str> = arguments.iter().copied().filter(|word| word.starts_with("--")).collect();
        let output = without(&repository, &names, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    }
    fs::remove_file(repository.path("keys.asc")).unwrap();
    assert_eq!(repository.verify(&[]).status.code(), Some(1));
}

/// Runs with the usual options except these, and with more.
fn without(repository: &Repository<'_>, names: &[&str], more: &[&str]) -> Output {
    let keys = repository.path("keys.asc");
    let usual = [
        ("--suite", "trixie"),
        ("--component", "main"),
        ("--arch", "amd64"),
        ("--keyring", keys.to_str().unwrap()),
        ("--package", "hello"),
        ("--now", NOW),
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
    command.args(["verify", "apt"]);
    for (name, value) in usual.into_iter().filter(|(name, _)| !names.contains(name)) {
        command.args([name, value]);
    }
    command.args(more).arg(Path::new(repository.dir.path())).output().unwrap()
}
