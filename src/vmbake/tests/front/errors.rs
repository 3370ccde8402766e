//! Errors that newcomers meet first: each names its subject and has a hint.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use clap::CommandFactory;
use rustix::process::geteuid;
use vmbake::cli::Cli;

use super::sections::{built, leaves};

/// Tests as root run the program as this user, for which files can be inaccessible.
const UNPRIVILEGED: u32 = 65534;

/// A folder with nothing but the program, and files of the wrong sorts; there is no store, no base image and one manifest.
pub struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests");
        let home = Self { dir };
        // Not by this process: a concurrent fork of another test would keep it open, and a file that is open for writing cannot be executed.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_vmbake")).arg(home.path("vmbake")).status();
        assert!(copied.unwrap().success());
        for folder in ["folder", "pins"] {
            fs::create_dir(home.path(folder)).unwrap();
        }
        fs::copy(manifests.join("node.debian-13.amd64.json"), home.path("pins/node.debian-13.amd64.json")).unwrap();
        // No partition table, no file system, no text.
        let noise: Vec<u8> = (0..100_000_u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let files: [(&str, &[u8]); 5] = [
            ("text", b"hello\n"),
            ("noise.raw", &noise),
            ("empty.raw", b""),
            ("blank.json", b"{}"),
            ("secret.raw", b"x"),
        ];
        for (name, content) in files {
            fs::write(home.path(name), content).unwrap();
        }
        fs::set_permissions(home.path("secret.raw"), Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(home.dir.path(), Permissions::from_mode(0o755)).unwrap();
        if geteuid().is_root() {
            chown(home.dir.path(), Some(UNPRIVILEGED), None).unwrap();
        }
        home
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.path("vmbake"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.dir.path());
        // No credentials.
        command.env("AWS_EC2_METADATA_DISABLED", "true");
        if geteuid().is_root() {
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        command
    }

    pub fn vmbake(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Command, part of the error, part of the hint.
const REFUSED: &[(&str, &str, &str)] = &[
    ("update nod --manifests new", "unknown kind nod, expected one of: knc, knd, node", "did you mean `node`?"),
    ("update --os debian-14", "unknown operating system debian-14", "`debian-13`"),
    ("update --arch riscv64", "unknown architecture riscv64, expected one of: amd64, arm64", "--sources"),
    ("update knd --os debian-12", "knd debian-12, expected one of: knc.debian-13.amd64", "--os"),
    ("update node --manifests text", "text: not a directory of manifests", "use --manifests with a directory"),
    ("update node --store text", "text: cannot be used as a store: not a directory", "--store"),
    ("update node --sources none", "none: cannot read", "without --sources"),
    ("update node --only runk", "no entry runk in", "`vmbake manifest show FILE`"),
    ("manifest show none", "none: cannot read the manifest", "`vmbake update KIND` creates manifests"),
    ("manifest show pins", "pins: cannot read the manifest", "use the path of a manifest in this directory"),
    (
        "manifest show pins/node.debian-13.amd64.jsn",
        "amd64.jsn: cannot",
        "did you mean `pins/node.debian-13.amd64.json`?",
    ),
    (
        "manifest show blank.json",
        "blank.json:1:2: invalid manifest",
        "use the version of vmbake that wrote this manifest",
    ),
    ("manifest show text", "text:1:1: invalid manifest", "use the version of vmbake that wrote this manifest"),
    ("manifest show pins/node.debian-13.amd64.json", "verification failed", "`vmbake fetch`"),
    ("fetch nod", "unknown kind nod", "did you mean `node`?"),
    (
        "fetch node",
        "manifests/node.debian-13.amd64.json: manifest not found",
        "`vmbake update node --os debian-13 --arch amd64`",
    ),
    ("fetch node --manifests text", "text: not a directory of manifests", "--manifest"),
    ("fetch node --manifest secret.raw", "secret.raw: cannot read the manifest", "`ls -l`"),
    ("publish aws none", "none: cannot open the image", "`vmbake bake` writes such files"),
    ("publish aws text", "text: a text file; only raw and qcow2 disk images are supported", "get the image again"),
    ("publish aws noise.raw", "no AWS credentials", "--profile"),
    (
        "publish aws noise.raw --launch-permission public",
        "the image becomes public; not confirmed, since stdin is not a terminal",
        "--yes",
    ),
    ("publish aws noise.raw --tag a=1 --tag a=2", "--tag a: duplicate tag", "remove one tag"),
    ("publish aws gc --family node --keep 1", "no AWS credentials", "--profile"),
    ("plan nod", "unknown kind nod", "did you mean `node`?"),
    ("plan node --manifests pins --base none", "none: cannot open the base image", "--base to name a disk image"),
    ("bake nod", "unknown kind nod", "did you mean `node`?"),
    (
        "bake node",
        "manifests/node.debian-13.amd64.json: manifest not found",
        "`vmbake update node --os debian-13 --arch amd64`",
    ),
    ("bake node --manifests new", "new/node.debian-13.amd64.json", "--manifests new` creates it"),
    ("bake node --manifest none.json", "none.json", "--manifests .` creates node.debian-13.amd64.json"),
    ("bake node --manifest folder", "folder: cannot read the manifest", "use the path of a manifest in this directory"),
    (
        "bake knd --manifest pins/node.debian-13.amd64.json",
        "manifest is for node.debian-13.amd64, expected knd",
        "KIND",
    ),
    ("bake node --os debian-14", "unknown operating system debian-14", "`debian-13`"),
    ("bake knd --os debian-12", "knd debian-12 amd64", "--os"),
    ("bake node --manifests pins --offline", "busybox-static: verification failed", "`vmbake fetch`"),
    (
        "bake node --manifests pins --offline --store text",
        "text: cannot be used as a store: not a directory",
        "--store",
    ),
    ("key generate --out /k", "/k.key: cannot create", "`ls -l`"),
    ("sign folder --key none", "none: cannot read the key", "--help"),
    ("sign folder --key text", "text: not usable as a private key", "`vmbake key generate`"),
    ("convert none --format gce -o new", "none: cannot open the image", "`vmbake bake` writes"),
    ("convert noise.raw --format vhd -o new", "expected a multiple of one MiB", "--size 1M"),
    ("podplane manifest none --url https://a.example", "none: cannot open the image", "`vmbake bake` writes"),
    (
        "podplane manifest noise.raw --url https://a.example -o noise.raw --force",
        "refusing to overwrite input file noise.raw",
        "use -o to choose another output file",
    ),
    ("podplane manifest noise.raw --url https://a.example", "expected a qcow2 image, found raw", "--compression zlib"),
    ("preflight aws text", "text: a text file; only raw and qcow2 disk images are supported", "`head text`"),
    ("delta none text -o new", "none: cannot open the image", "`vmbake bake` writes"),
    ("delta noise.raw text -o new", "text: a text file; only raw and qcow2 disk images are supported", "`head text`"),
    ("apply none --base noise.raw -o new", "none.json: cannot read", "next to the delta"),
    (
        "archive create node --manifest pins/node.debian-13.amd64.json --store empty -o a.tar",
        "is not in the store",
        "use `vmbake fetch` to download",
    ),
    ("archive create text.raw -o a.tar", "only qcow2 images", "use the qcow2 file of the same bake"),
    ("archive verify none", "none: cannot read", "without .000"),
    ("archive list text", "text: truncated at offset", "a split archive needs all parts"),
    ("archive import none", "none: cannot read", "without .000"),
    ("archive apply folder", "folder: cannot read", "--help of the command"),
    ("bundle init Bad", "`name`: \"Bad\" is invalid: expected at most", "`vmbake schema bundle`"),
    ("bundle pack folder -o new", "folder/bundle.json: cannot read", "--help"),
    ("bundle check none", "none: cannot read", "--help"),
    ("bundle inspect text", "text: truncated at offset", "a split archive needs all parts"),
    ("bundle push none localhost:9/x", "none: cannot read", "--help"),
    ("bundle verify none --key text", "none: cannot read", "--help"),
    ("bundle trust none --key text", "none: cannot read", "--help"),
    ("bundle plan nod --with none", "unknown kind nod", "did you mean `node`?"),
    ("bundle sysext none -o x.raw", "none: cannot read", "--help"),
    ("bundle sysext none -o x", "x: expected a file name", "-o acme-agent.raw"),
    ("bundle upgrade nod --with none", "unknown kind nod", "did you mean `node`?"),
    ("push text localhost:9/x:1", "text: file name is not NAME.raw or NAME.qcow2", "`vmbake bake` wrote"),
    ("push noise.raw localhost:9/x:1", "noise.raw: not listed in SHA256SUMS", "`vmbake bake` wrote"),
    ("pull localhost:9/x --allow-unsigned", "localhost:9/x: neither tag nor digest given", "HOST/NAME@DIGEST"),
    ("pull localhost:9/x:1 --key text", "text: not usable", "--help"),
    ("init node", "node: is the name of a built-in layer", "another name"),
    ("init Web", "name \"Web\" is invalid: expected lowercase letters", "`vmbake schema layer`"),
    ("boot none", "none: cannot open the image", "`vmbake bake` writes"),
    (
        "boot folder",
        "folder: expected a disk image, found a directory",
        "use the path of an image file in this directory",
    ),
    ("boot text", "text: a text file; only raw and qcow2 disk images are supported", "`head text`"),
    ("boot noise.raw", "noise.raw: not an image of a bootable disk", "`vmbake inspect`"),
    ("inspect none", "none: cannot open the image", "`vmbake bake` writes"),
    ("inspect nose.raw", "nose.raw: cannot open the image", "did you mean `noise.raw`?"),
    (
        "inspect folder",
        "folder: expected a disk image, found a directory",
        "use the path of an image file in this directory",
    ),
    ("inspect text", "text: a text file; only raw and qcow2 disk images are supported", "`head text`"),
    ("inspect noise.raw", "noise.raw: neither a partition table nor a known file system", "`qemu-img info noise.raw`"),
    ("inspect empty.raw", "empty.raw: the file is empty", "get the image again"),
    ("inspect secret.raw", "secret.raw: cannot open the image", "`ls -l`"),
    ("lint none", "none: cannot open the image", "`vmbake bake` writes"),
    (
        "ls folder",
        "folder: expected a disk image, found a directory",
        "use the path of an image file in this directory",
    ),
    ("cat text /etc/passwd", "text: a text file; only raw and qcow2 disk images are supported", "`head text`"),
    ("explain none /etc/passwd", "none: cannot open the image", "`vmbake bake` writes"),
    ("diff none text", "none: cannot be opened", "--help"),
    ("diff text folder", "text: a text file; only raw and qcow2 disk images are supported", "`head text`"),
    ("sbom none", "none: cannot open the image", "`vmbake bake` writes"),
    ("sbom noise.raw", "noise.raw: ", "qemu-img info"),
    ("changelog text text", "text: a text file; only raw and qcow2 disk images are supported", "`head text`"),
    (
        "changelog none.json blank.json",
        "none.spdx.json: cannot read the document",
        "`vmbake sbom IMAGE > none.spdx.json`",
    ),
    ("report none -o page.html", "none: cannot open the image", "`vmbake bake` writes"),
    ("report text -o text --force", "refusing to overwrite input file text", "use -o to choose another output file"),
    (
        "report none --compare text -o ./text --force",
        "refusing to overwrite input file ./text",
        "use -o to choose another output file",
    ),
    ("report text -o blank.json", "blank.json: already exists", "use --force to replace it"),
    ("store verify --store text", "text: cannot be used as a store: not a directory", "--store"),
    ("store gc", "manifests: cannot read the manifest", "`vmbake update KIND`"),
    ("store gc --manifests blank.json", "blank.json:1:2", "use the version of vmbake that wrote"),
    (
        "store path sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "is not in the store /",
        "`vmbake fetch KIND`",
    ),
    ("layer check none", "none: cannot read the layer", "`vmbake layer list`"),
    ("layer check text", "text: cannot read the layer", "layer.json"),
    ("layer release none", "none: cannot read the layer", "`vmbake layer list`"),
    ("layer list --layers none", "none: cannot read the layer", "`vmbake layer list`"),
    ("profile render none --machine-deployment none", "none: cannot read", "use the path of a YAML file"),
    ("profile import none --machine-deployment none --out new", "none: cannot read", "use the path of a YAML file"),
    ("profile diff a b --dir new", "profile.lock.json: a not found", "`vmbake profile import --out`"),
    ("profile materials a --dir new", "profile.lock.json: a not found", "`vmbake profile import --out`"),
    ("profile render text --machine-deployment none", "text:1:1: expected a mapping, found hello", "examples/profiles"),
    ("user-data render --kind nod", "layer nod does not exist", "did you mean `node`?"),
    ("user-data render --kind knd", "PROVIDER_KIND", "`vmbake user-data keys --kind knd`"),
    ("user-data render --kind node --env none", "none", "`vmbake user-data render --help`"),
    (
        "user-data keys --kind node --os debian-14",
        "layer node does not support debian-14: expected one of: debian-12, debian-13",
        "--os",
    ),
    ("dev sync ./text --layers folder", "./text: no running machine of `vmbake boot`", "`vmbake boot IMAGE"),
    ("dev sync ./none --layers folder", "./none: cannot find the machine of the image", "vmbake bake"),
    ("dev sync a@b:x --layers folder", "\"a@b:x\": expected an image or [user@]host[:port]", "~/.ssh/config"),
    (
        "dev sync a@b --layers folder -- -l c",
        "a@b: expected user a, found the option \"-l c\" of ssh",
        "only in the address",
    ),
    (
        "dev sync host --layers folder",
        "found no layer.json in any directory of --layers",
        "use --layers with the directory",
    ),
    ("trust show --trust text", "text: cannot read the trust anchor", "--trust"),
    ("trust update --only x", "unknown trust anchor x, expected one of:", "--sources"),
    ("verify image none", "none: cannot read", "--help"),
    ("verify image text", "text: not usable", "--help"),
    ("verify image folder --key text", "text: not usable", "--help"),
    ("verify image folder --policy blank.json", "blank.json: invalid policy", "`vmbake schema policy`"),
    (
        "verify apt --keyring none --suite s --component c --arch a --package p .",
        "none: cannot read the keyring",
        "--help",
    ),
    ("verify checksum --sums none text", "none: cannot read", "--help"),
    ("verify sigstore --bundle none --key text text", "none: cannot read", "--help"),
    ("verify sigstore --bundle text --key text text", "text: not usable", "--help"),
    (
        "verify sigstore --bundle blank.json --certificate-identity a --certificate-oidc-issuer b text",
        "text: not proven by blank.json",
        "--help",
    ),
    (
        "verify cosign --signature none --certificate text --certificate-identity a --certificate-oidc-issuer b text",
        "none: cannot read",
        "--help",
    ),
    (
        "verify oci --platform linux/amd64 --digest sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 folder",
        "folder/oci-layout: cannot read",
        "--help",
    ),
];

/// Whether the program has the command: some are features of it.
fn is_built(args: &str) -> bool {
    let commands = [
        ("boot ", cfg!(feature = "qemu")),
        ("bundle sysext ", cfg!(feature = "sysext")),
        ("profile ", cfg!(feature = "profile")),
        ("publish ", cfg!(feature = "aws")),
        ("report ", cfg!(feature = "report")),
    ];
    commands.iter().all(|(command, is_on)| *is_on || !args.starts_with(command))
}

#[test]
fn each_refusal_names_its_subject_and_the_next_command() {
    let home = Home::new();
    let mut wrong = Vec::new();
    for (args, subject, next) in REFUSED.iter().filter(|(args, ..)| is_built(args)) {
        let output = home.vmbake(&args.split(' ').collect::<Vec<_>>());
        let said = stderr(&output);
        let last = said.lines().last().unwrap_or_default();
        let names = said.contains("error: ") && said.contains(subject);
        if output.status.code() != Some(1) || !names || !last.starts_with("hint: ") || !last.contains(next) {
            wrong.push(format!("$ vmbake {args}\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!home.path("new").exists() && !home.path("manifests").exists(), "a refusal leaves nothing behind");
}

#[test]
fn every_command_that_can_be_refused_is_in_the_table() {
    for command in leaves(&built(Cli::command())) {
        let name = command.get_bin_name().unwrap().strip_prefix("vmbake ").unwrap();
        // These take one of a few words, and nothing of the user's.
        let is_listed = REFUSED.iter().any(|(args, ..)| args.starts_with(&format!("{name} ")) || *args == name);
        assert!(
            is_listed
                || [
                    "schema layer",
                    "schema inputs",
                    "schema policy",
                    "schema bundle",
                    "schema rules",
                    "profile list",
                    "completions"
                ]
                .contains(&name),
            "{name}"
        );
    }
}

#[test]
fn wrong_usage_names_the_help() {
    let home = Home::new();
    let root = built(Cli::command());
    for command in leaves(&root) {
        let name = command.get_bin_name().unwrap().strip_prefix("vmbake ").unwrap().to_owned();
        let words: Vec<&str> = name.split(' ').collect();
        let (last, above) = words.split_last().unwrap();
        let parent = above.iter().fold(&root, |command, word| command.find_subcommand(word).unwrap());
        // Where an operand may stand, a wrong word is one.
        let is_word = parent.get_positionals().next().is_none();
        let misspelt = is_word.then(|| home.vmbake(&[above, &[&format!("{last}x")]].concat()));
        let unknown = home.vmbake(&[&words[..], &["--no-such-option"]].concat());
        for output in misspelt.into_iter().chain([unknown]) {
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{name}: {said}");
            assert!(said.contains("'--help'") && said.contains("Usage: vmbake"), "{name}: {said}");
        }
        if command.get_arguments().any(|arg| arg.is_required_set()) {
            let said = stderr(&home.vmbake(&words));
            let usage = format!("Usage: vmbake {name}");
            assert!(said.contains("required arguments were not provided") && said.contains(&usage), "{name}: {said}");
        }
    }
}

#[test]
fn whoever_stops_listening_ends_nothing() {
    let home = Home::new();
    for args in [&["inspect", "none"][..], &["store", "verify"], &["user-data", "render", "--kind", "knd"]] {
        let expected = home.vmbake(args).status.code();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(home.command(args).stderr(writer).status().unwrap().code(), expected, "{args:?}");
    }
}
