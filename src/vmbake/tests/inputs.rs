//! Inputs that are not regular files: a named pipe is refused with name and type, without waiting for a writer.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::sources;

/// A safety net: a command that waits for a pipe would never end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command, with `PIPE` for a named pipe, and the name that its message must have.
const COMMANDS: &[(&str, &str)] = &[
    ("inspect PIPE", "PIPE"),
    ("lint PIPE", "PIPE"),
    ("ls PIPE", "PIPE"),
    ("cat PIPE /etc/passwd", "PIPE"),
    ("sbom PIPE", "PIPE"),
    ("explain PIPE /etc", "PIPE"),
    ("changelog PIPE PIPE", "PIPE"),
    ("diff PIPE PIPE", "PIPE"),
    ("report PIPE --out page.html", "PIPE"),
    ("preflight aws PIPE", "PIPE"),
    ("boot PIPE", "PIPE"),
    ("convert PIPE --format raw --out new.raw", "PIPE"),
    ("delta PIPE PIPE --out new.delta", "PIPE"),
    ("delta file PIPE --out new.delta", "PIPE"),
    ("apply delta --base file --out new.raw", "delta.json"),
    ("manifest show PIPE", "PIPE"),
    ("layer check own/piped", "own/piped/layer.json"),
    ("layer check own/filed", "own/filed/files/etc/x"),
    ("layer list --layers own", "own/"),
    ("update node --sources PIPE", "PIPE"),
    ("update node --no-builtin=layers --layers none --sources PIPE", "PIPE"),
    ("verify image listless --key key.pub", "listless/SHA256SUMS"),
    ("verify image release --key key.pub", "SHA256SUMS.sigstore.json"),
    ("verify image release --key PIPE", "PIPE"),
    ("verify image release --policy PIPE", "PIPE"),
    ("verify checksum --sums PIPE file", "PIPE"),
    ("verify checksum --sums sums PIPE", "PIPE"),
    ("verify sigstore --bundle PIPE --key key.pub file", "PIPE"),
    ("verify sigstore --bundle file --key PIPE file", "PIPE"),
    (
        "verify sigstore --bundle file --trusted-root PIPE --certificate-identity a --certificate-oidc-issuer b file",
        "PIPE",
    ),
    ("verify apt --keyring PIPE --suite s --component c --arch amd64 --package p .", "PIPE"),
    ("sign release --key PIPE", "PIPE"),
    ("archive verify PIPE", "PIPE"),
    ("archive import PIPE", "PIPE"),
    ("bundle inspect PIPE", "PIPE"),
    ("bundle verify PIPE --key key.pub", "PIPE"),
    ("bundle inspect layout", "layout"),
    ("bundle check bundle", "bundle/bundle.json"),
    ("bundle trust file --key PIPE", ""),
    ("user-data render --kind node --ca PIPE", "PIPE"),
    ("user-data render --kind node --nonce PIPE", "PIPE"),
    ("user-data render --kind node --ssh-key PIPE", "PIPE"),
    ("user-data render --kind node --env PIPE", "PIPE"),
    ("user-data render --kind node --file A=PIPE", ""),
    ("profile render PIPE --machine-deployment PIPE", "PIPE"),
    ("profile import PIPE --machine-deployment PIPE --out new", "PIPE"),
    ("fetch node --manifest PIPE", "PIPE"),
    ("trust show --trust trust", "trust/x.asc"),
];

fn pipe(path: &Path) {
    mkfifoat(CWD, path, Mode::from_raw_mode(0o600)).unwrap();
}

/// A folder with pipes where inputs are looked for.
fn yard() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for folder in
        ["listless", "release", "layout", "bundle", "none", "trust", "own/piped", "own/filed/files/etc", "new"]
    {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for name in
        ["PIPE", "listless/SHA256SUMS", "layout/oci-layout", "bundle/bundle.json", "own/piped/layer.json", "delta.json"]
    {
        pipe(&at(name));
    }
    pipe(&at("own/filed/files/etc/x"));
    pipe(&at("release/SHA256SUMS.sigstore.json"));
    pipe(&at("trust/x.asc"));
    let layer = r#"{"name": "filed", "version": "1", "description": "d", "os": ["o"]}"#;
    fs::write(at("own/filed/layer.json"), layer).unwrap();
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    fs::write(at("release/SHA256SUMS"), format!("{digest}  box.json\n")).unwrap();
    fs::write(at("sums"), format!("{digest}  PIPE\n")).unwrap();
    fs::write(at("file"), vec![0; 4096]).unwrap();
    fs::write(at("delta"), "delta").unwrap();
    let mut key = Command::new(env!("CARGO_BIN_EXE_vmbake"));
    key.args(["key", "generate", "--out", "key"]).current_dir(dir.path());
    assert!(key.output().unwrap().status.success());
    dir
}

fn start(dir: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
    command
        .args(args)
        .current_dir(dir)
        .env("XDG_CONFIG_HOME", dir.join("config"))
        .env("XDG_CACHE_HOME", dir.join("cache"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Whether it ended by itself, its status and what it said.
fn end(mut child: Child) -> (bool, Option<i32>, String) {
    let begun = Instant::now();
    let mut ended = true;
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            ended = false;
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (ended, child.wait().unwrap().code(), said)
}

#[test]
fn a_pipe_in_place_of_an_input_is_refused_by_name() {
    let dir = yard();
    let mut wrong = Vec::new();
    for (command, name) in COMMANDS {
        let (ended, code, said) = end(start(dir.path(), &command.split(' ').collect::<Vec<_>>()));
        let is_told = name.is_empty() || (said.contains(name) && said.contains("a named pipe"));
        if !ended || code != Some(1) || !is_told {
            wrong.push(format!("{command}: ended {ended}, status {code:?}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_special_files_and_directories_are_refused_by_their_type() {
    let dir = yard();
    let _listener = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    for (name, kind) in [
        ("socket", "a socket"),
        ("/dev/zero", "a character device"),
        ("none", "a directory"),
        ("/dev/null", "a character device"),
    ] {
        let (ended, code, said) = end(start(dir.path(), &["verify", "image", "release", "--policy", name]));
        let expected = format!("expected a regular file, found {kind}");
        assert!(ended && code == Some(1) && said.contains(&expected) && said.contains(name), "{name}: {said}");
    }
}

#[test]
fn the_configuration_file_is_no_pipe() {
    let dir = yard();
    fs::create_dir_all(dir.path().join("config/vmbake")).unwrap();
    pipe(&dir.path().join("config/vmbake/config.json"));
    let (ended, code, said) = end(start(dir.path(), &["bundle", "inspect", "registry.example/a:1"]));
    assert!(ended && code == Some(1) && said.contains("config.json") && said.contains("a named pipe"), "{said}");
}

#[test]
fn a_pipe_that_was_given_as_a_descriptor_is_read() {
    let dir = yard();
    fs::write(dir.path().join("policy.json"), r#"{"schema": "wrong"}"#).unwrap();
    let program = env!("CARGO_BIN_EXE_vmbake");
    for (shell, script) in [
        ("bash", format!("{program} verify image release --policy <(sleep 0.2; cat policy.json)")),
        ("sh", format!("(sleep 0.2; cat policy.json) | {program} verify image release --policy /dev/stdin")),
        ("sh", format!("{program} verify image release --policy /dev/stdin <policy.json")),
    ] {
        let output = Command::new(shell).args(["-c", &script]).current_dir(dir.path()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        // The content was read, and found wrong.
        assert!(said.contains("schema") && !said.contains("regular file"), "{script}: {said}");
    }
}

/// Sources that open what is not an input, and the number of places where they do.
const OTHERS: &[(&str, usize)] = &[
    // The opener itself, and that for files of the store, which follows no link.
    ("common/src/input.rs", 1),
    ("common/src/ownership.rs", 5),
    ("bundle/src/place.rs", 1),
    ("qemu/src/guest.rs", 1),
    ("qemu/src/overlay.rs", 1),
    // Outputs and directories.
    ("common/src/atomic_file.rs", 1),
    ("release/src/pull/partial.rs", 1),
    ("archive/src/staged.rs", 3),
    ("sysext/src/folder.rs", 2),
    ("pin/src/update/open.rs", 1),
    // Files of the kernel.
    ("store/src/file_identity.rs", 1),
    ("store/src/store.rs", 1),
    ("vmbake/src/sync/destination.rs", 1),
];

#[test]
fn inputs_are_opened_in_one_place() {
    let openers = [
        "File::open(",
        "File::options()",
        "OpenOptions::new()",
        "std::fs::read(",
        "std::fs::read_to_string(",
        " fs::read(",
        "(fs::read(",
        "&fs::read(",
        " fs::read_to_string(",
    ];
    for path in sources::sources() {
        let name = path.strip_prefix(sources::root()).unwrap().display().to_string();
        if name.contains("tests") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let is_opened =
            |line: &str| openers.iter().any(|opener| line.contains(opener)) && !line.contains("ImageFile::open(");
        let found = sources::code(&text).filter(|(_, line)| is_opened(line)).count();
        let expected = OTHERS.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count);
        assert_eq!(found, expected, "{name}: inputs are opened with `crate::input`, so that pipes are refused");
    }
}
