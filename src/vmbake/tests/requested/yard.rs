//! A site with files and container images on loopback, a base image, and a layer `box` with some of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use vmbake_common::digest::Digest;
use vmbake_oci::Image;

use crate::fixtures as parts;
use crate::hostile::{self, Site, file};
use crate::origin::image::{TOOLS, write_disk_for};
use crate::tools::have;

const BLOBS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/oci/ok-index/blobs/sha256");
const INDEX: &str = "sha256:4461a5020135a94d0eb69ac0484ddb231038c1c4b5bc681c30594b89f2ac047a";

/// The sources, with artifacts and images between.
const SOURCES: [&str; 3] = [
    r#"{"systems": {"o": {"codename": "one", "kinds": ["box"], "arches": ["amd64", "arm64"],
      "image": {"type": "qcow2", "version": {"pinned": "1"}, "url": "https://i.example/{version}", "proof": "first-use"}}},
      "dependencies": ["#,
    r#"], "images": ["#,
    "]}\n",
];

/// A folder in which images can be made of what that site has.
pub struct Yard {
    dir: TempDir,
    site: Site,
}

/// The archive of an architecture, with a program in it.
pub fn archive(arch: &str) -> Vec<u8> {
    let program = parts::with_mode(parts::file("tool-1.0/bin/tool", &format!("#!/bin/sh\n# {arch}\n")), 0o755);
    let members = [parts::dir("tool-1.0/"), parts::dir("tool-1.0/bin/"), program, parts::file("tool-1.0/README", "r")];
    parts::compress("gz", &parts::tar(&members))
}

/// The hexadecimal SHA-256 of an archive.
pub fn sha256(arch: &str) -> String {
    Digest::of(&archive(arch)).hex()
}

/// `downloads` with that archive, proven by these keys.
pub fn tool(proof: &str) -> String {
    format!(
        r#", "downloads": {{"tool": {{"url": "https://up.example/v{{version}}/tool-{{arch}}.tar.gz", "version": "1.0", {proof},
          "install": {{"type": "tar", "path": "/opt/tool", "strip": 1, "members": ["tool-1.0/bin/tool"]}}}}}}"#
    )
}

/// The same, proven by the digests of both architectures.
pub fn stated() -> String {
    tool(&format!(r#""sha256": {{"amd64": "{}", "arm64": "{}"}}"#, sha256("amd64"), sha256("arm64")))
}

/// What the site serves.
fn files() -> BTreeMap<String, hostile::File> {
    let mut files = BTreeMap::from([
        ("/latest".to_owned(), file("tool v1.0\n")),
        ("/v1.0/hello".to_owned(), file("#!/bin/sh\necho hello\n")),
    ]);
    let mut sums = String::new();
    for arch in ["amd64", "arm64"] {
        sums += &format!("{}  tool-{arch}.tar.gz\n", sha256(arch));
        files.insert(format!("/v1.0/tool-{arch}.tar.gz"), file(archive(arch)));
    }
    files.insert("/v1.0/sums.txt".to_owned(), file(sums));
    let blob = |digest: &Digest| fs::read(Path::new(BLOBS).join(digest.hex())).unwrap();
    let index: Digest = INDEX.parse().unwrap();
    let image = Image::find(index, &"linux/amd64".parse().unwrap(), &|wanted| Ok(blob(&wanted.digest))).unwrap();
    for digest in image.blobs().map(|found| found.digest).chain([index]) {
        for part in ["manifests", "blobs"] {
            files.insert(format!("/v2/pause/{part}/{digest}"), file(blob(&digest)));
        }
    }
    for tag in ["3.10", "3.11"] {
        files.insert(format!("/v2/pause/manifests/{tag}"), file(blob(&index)));
    }
    files
}

/// The site once version 2.0 is out: everything of before is where it was.
pub fn next_site() -> Site {
    let mut files = files();
    files.insert("/latest".to_owned(), file("tool v2.0\n"));
    let mut sums = String::new();
    for arch in ["amd64", "arm64"] {
        let next = archive(&format!("{arch}, next"));
        sums += &format!("{}  tool-{arch}.tar.gz\n", Digest::of(&next).hex());
        files.insert(format!("/v2.0/tool-{arch}.tar.gz"), file(next));
    }
    files.insert("/v2.0/sums.txt".to_owned(), file(sums));
    hostile::serve(Duration::ZERO, files)
}

impl Yard {
    /// `None` if a tool is missing.
    pub fn new() -> Option<Self> {
        if !have(&TOOLS) {
            return None;
        }
        let yard = Self { dir: tempfile::tempdir().unwrap(), site: hostile::serve(Duration::ZERO, files()) };
        yard.sources("", "");
        yard.layer("hygiene", r#", "os_release": {"IMAGE_ID": "{kind}", "IMAGE_VERSION": "{version}"}"#);
        let menu = "menuentry 'x' {\n linux /boot/vmlinuz ro\n initrd /boot/initrd\n}\n";
        let base = [
            ("/boot/grub/grub.cfg", menu),
            ("/boot/vmlinuz", "v"),
            ("/boot/initrd", "i"),
            ("/etc/machine-id", ""),
            ("/etc/os-release", "ID=o\n"),
        ];
        for (root, name) in [("8304", "base.raw"), ("8305", "base.arm64.raw")] {
            write_disk_for(root, &parts::base_with(&base), &yard.path(name));
        }
        Some(yard)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the sources, with artifacts and images of theirs.
    pub fn sources(&self, dependencies: &str, images: &str) {
        let [head, middle, end] = SOURCES;
        fs::write(self.path("sources.json"), [head, dependencies, middle, images, end].concat()).unwrap();
    }

    /// Writes a layer.
    pub fn layer(&self, name: &str, keys: &str) {
        fs::create_dir_all(self.path("layers").join(name)).unwrap();
        let head = format!(r#"{{"name": "{name}", "version": "1", "description": "d", "os": ["o"]"#);
        fs::write(self.path("layers").join(name).join("layer.json"), format!("{head}{keys}}}\n")).unwrap();
    }

    /// Runs a command that looks things up; whether it succeeded, and what it said.
    pub fn run(&self, args: &[&str]) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        command.args(args).args(["--no-builtin", "--sources=sources.json", "--store=store"]);
        command.env("VMBAKE_MIRRORS", "").env("XDG_CONFIG_HOME", self.path("config")).current_dir(self.dir.path());
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.success(), String::from_utf8(stderr).unwrap() + &String::from_utf8(stdout).unwrap())
    }

    pub fn online(&self, args: &[&str], more: &[&str]) -> (bool, String) {
        self.online_at(&self.site, args, more)
    }

    /// The same with another site.
    pub fn online_at(&self, site: &Site, args: &[&str], more: &[&str]) -> (bool, String) {
        let mirrors = ["up", "registry"].map(|host| format!("--mirror=https://{host}.example={}", site.url));
        self.run(&[args, more, &mirrors.each_ref().map(String::as_str)].concat())
    }

    /// Pins what the layer `box` asks for, with more arguments.
    pub fn update(&self, more: &[&str]) -> (bool, String) {
        self.update_for("amd64", more)
    }

    /// The same for another architecture.
    pub fn update_for(&self, arch: &str, more: &[&str]) -> (bool, String) {
        let image = if arch == "arm64" { "--image=base.arm64.raw" } else { "--image=base.raw" };
        let arch = format!("--arch={arch}");
        let args = ["update", "box", "--os=o", "--manifests=m", "--layers=layers", image, &arch];
        self.online(&args, more)
    }

    /// The same, which must succeed.
    pub fn updated(&self) -> String {
        let (ok, said) = self.update(&[]);
        assert!(ok, "{said}");
        said
    }

    pub fn fetch(&self) -> (bool, String) {
        self.online(&["fetch", "box", "--os=o", "--manifests=m", "--layers=layers"], &[])
    }

    pub fn bake(&self) -> (bool, String) {
        let args = ["bake", "box", "--os=o", "--manifests=m", "--layers=layers", "--base=base.raw", "--offline"];
        self.run(&[&args[..], &["--out=dist", "--format=raw", "--force"]].concat())
    }

    /// Proves the manifest anew.
    pub fn show(&self) -> (bool, String) {
        self.run(&["manifest", "show", "m/box.o.amd64.json"])
    }

    pub fn manifest(&self) -> Value {
        serde_json::from_str::<Value>(&self.text()).unwrap()["vmconfig"].take()
    }

    /// The manifest as it is written.
    pub fn text(&self) -> String {
        fs::read_to_string(self.path("m/box.o.amd64.json")).unwrap()
    }

    /// Writes another manifest.
    pub fn forge(&self, manifest: &Value) {
        let text = serde_json::json!({"vmconfig": manifest}).to_string();
        fs::write(self.path("m/box.o.amd64.json"), text).unwrap();
    }

    /// What `vmbake COMMAND IMAGE PATH` says of the baked image.
    pub fn ask(&self, command: &str, path: &str) -> String {
        let image = self.path("dist/box.o.amd64.raw");
        let output = Command::new(env!("CARGO_BIN_EXE_vmbake")).arg(command).arg(image).arg(path).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }
}
