//! A small archive signed by gpg on loopback, a base image, and a layer with packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;
use vmbake_common::digest::Digest;

use crate::apt::lab::Lab;
use crate::fixtures as parts;
use crate::hostile::{self, Site};
use crate::origin::image::{TOOLS, write_disk};
use crate::tools::have;

/// When the archive is signed, by a key of 2012: before any clock that runs these tests.
const SIGNED: &str = "20240601T080000";

/// What the base has.
const STATUS: &str = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.41-12\n\n\
    Package: libold\nStatus: install ok installed\nArchitecture: amd64\nVersion: 0.9\nDescription: d\n\n";

/// Where `main`, `extra` and the flat archive `vendor` are; the key of `extra` is missing.
const SOURCES: &str = r#"{
  "archives": {
    "main": {"url": "https://a.example/debian", "suite": "{codename}", "component": "main", "keyring": "k.asc", "label": "Test", "snapshot": "https://s.example/archive/debian"},
    "extra": {"url": "https://b.example/debian", "suite": "{codename}", "component": "main", "keyring": "absent.asc"},
    "vendor": {"url": "https://v.example/repos/one/", "suite": "/", "keyring": "vendor.asc"}},
  "systems": {"o": {"codename": "one", "archive": "main", "arches": ["amd64", "arm64"],
    "image": {"type": "qcow2", "version": {"pinned": "1"}, "url": "https://i.example/{version}", "proof": "first-use"}}}
}"#;

/// A folder in which images can be made of packages of that archive.
pub struct Workshop {
    dir: TempDir,
    site: Site,
}

/// A package: its control file, and a file that it brings. A tool brings a program with privileges as well, and a grouper
/// creates a group.
fn package(name: &str, version: &str, arch: &str, more: &str) -> (String, Vec<u8>) {
    let control = parts::control(name, more).replace("1.0-1", version).replace(": amd64", &format!(": {arch}"));
    let share = format!("./usr/share/{name}");
    let mut data = vec![
        parts::dir("./"),
        parts::dir("./usr/"),
        parts::dir("./usr/share/"),
        parts::dir(&format!("{share}/")),
        parts::file(&format!("{share}/version"), version),
    ];
    if name == "tool" {
        data.push(parts::with_mode(parts::file(&format!("{share}/helper"), "helper"), 0o4755));
    }
    let postinst = ("postinst", "#!/bin/sh\nset -e\naddgroup --system first\naddgroup --system groupers\n");
    let info = if name == "grouper" { &[postinst][..] } else { &[] };
    let deb = parts::deb(&control, info, &data);
    (control, deb)
}

impl Workshop {
    /// `None` if a tool is missing.
    pub fn new() -> Option<Self> {
        if !have(&TOOLS) {
            return None;
        }
        let lab = Lab::with_keys(&["old"])?;
        let dir = tempfile::tempdir().unwrap();
        let mut files = BTreeMap::new();
        let mut listed = String::new();
        for (arch, packages) in [("amd64", for_amd64()), ("arm64", vec![package("pi-only", "1", "arm64", "")])] {
            let mut index = String::new();
            for (control, deb) in packages {
                let path = format!("pool/{}.deb", Digest::of(&deb).hex());
                index +=
                    &format!("{control}Filename: {path}\nSize: {}\nSHA256: {}\n\n", deb.len(), Digest::of(&deb).hex());
                files.insert(format!("/debian/{path}"), hostile::file(deb));
            }
            let path = format!("main/binary-{arch}/Packages");
            listed += &format!(" {} {} {path}\n", Digest::of(index.as_bytes()).hex(), index.len());
            files.insert(format!("/debian/dists/one/{path}"), hostile::file(index));
        }
        let release = format!("Codename: one\nDate: Sat, 01 Jun 2024 08:00:00 UTC\nSHA256:\n{listed}");
        let sign = ["--digest-algo", "SHA256", "--local-user", "old@test.invalid", "--clearsign"];
        let signed = lab.gpg(SIGNED, &sign, release.as_bytes());
        files.insert("/debian/dists/one/InRelease".to_owned(), hostile::file(signed));
        snapshots(&lab, &release, &mut files);
        flat(&lab, &mut files);
        let workshop = Self { dir, site: hostile::serve(Duration::ZERO, files) };
        fs::create_dir(workshop.path("trust")).unwrap();
        fs::write(workshop.path("trust/k.asc"), lab.export(&["old"])).unwrap();
        fs::write(workshop.path("trust/vendor.asc"), lab.export(&["old"])).unwrap();
        fs::write(workshop.path("sources.json"), SOURCES).unwrap();
        workshop.layer("hygiene", r#", "os_release": {"IMAGE_ID": "{kind}", "IMAGE_VERSION": "{version}"}"#);
        let menu = "menuentry 'x' {\n linux /boot/vmlinuz ro\n initrd /boot/initrd\n}\n";
        let files = [
            ("/boot/grub/grub.cfg", menu),
            ("/boot/vmlinuz", "v"),
            ("/boot/initrd", "i"),
            ("/var/lib/dpkg/status", STATUS),
        ];
        let files = [
            &files[..],
            &[("/etc/machine-id", ""), ("/etc/os-release", "ID=o\n"), ("/var/lib/dpkg/info/libold.list", "/.\n")],
        ]
        .concat();
        write_disk(&parts::base_with(&files), &workshop.path("base.raw"));
        Some(workshop)
    }

    /// Address of the server that has all archives.
    pub fn url(&self) -> &str {
        &self.site.url
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a layer.
    pub fn layer(&self, name: &str, keys: &str) {
        fs::create_dir_all(self.path("layers").join(name)).unwrap();
        let head = format!(r#"{{"name": "{name}", "version": "1", "description": "d", "os": ["o"]"#);
        fs::write(self.path("layers").join(name).join("layer.json"), format!("{head}{keys}}}\n")).unwrap();
    }

    /// Runs a command that looks things up.
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        command.args(args).args(["--no-builtin", "--sources=sources.json", "--trust=trust", "--store=store"]);
        command.env("VMBAKE_MIRRORS", "").env("XDG_CONFIG_HOME", self.path("config")).current_dir(self.dir.path());
        command.output().unwrap()
    }

    /// Pins the packages of the layer `web`, with more arguments.
    pub fn update(&self, more: &[&str]) -> Output {
        let mirror = format!("--mirror=https://a.example={}", self.site.url);
        let vendor = format!("--mirror=https://v.example={}", self.site.url);
        let args =
            ["update", "web", "--os=o", "--manifests=m", "--layers=layers", "--image=base.raw", &mirror, &vendor];
        self.run(&[&args, more].concat())
    }

    /// Pins them as of a time.
    pub fn update_at(&self, at: &str) -> Output {
        self.update(&[&format!("--mirror=https://s.example={}", self.site.url), &format!("--at={at}")])
    }

    /// The same for `fetch`.
    pub fn fetch(&self) -> Output {
        let mirror = format!("--mirror=https://a.example={}", self.site.url);
        self.run(&["fetch", "web", "--os=o", "--manifests=m", &mirror])
    }

    pub fn bake(&self) -> Output {
        let args = ["bake", "web", "--os=o", "--manifests=m", "--layers=layers", "--base=base.raw", "--offline"];
        self.run(&[&args[..], &["--out=dist", "--format=raw", "--force"]].concat())
    }

    pub fn manifest(&self) -> String {
        fs::read_to_string(self.path("m/web.o.amd64.json")).unwrap()
    }
}

/// Adds past states of the archive: one that the server redirects later times to, one that is only in its list, and one without an InRelease.
fn snapshots(lab: &Lab, release: &str, files: &mut BTreeMap<String, hostile::File>) {
    let sign = |how: &'static str| ["--digest-algo", "SHA256", "--local-user", "old@test.invalid", how];
    let pool: Vec<_> = files.clone().into_iter().filter(|(path, _)| !path.ends_with("InRelease")).collect();
    for (time, day) in [("20240401T060000Z", "01 Apr"), ("20240501T060000Z", "01 May"), ("20240601T100000Z", "01 Jun")]
    {
        let until = day.replace("01", "08");
        let past = release.replace(
            "01 Jun 2024 08:00:00 UTC",
            &format!("{day} 2024 05:00:00 UTC\nValid-Until: Sat, {until} 2024 05:00:00 UTC"),
        );
        let when = SIGNED.replace("0601T08", &format!("{}T05", &time[4..8]));
        let root = format!("/archive/debian/{time}");
        let place = |name: &str| format!("{root}/dists/one/{name}");
        if day.ends_with("Apr") {
            let signature = lab.gpg(&when, &sign("--detach-sign"), past.as_bytes());
            files.insert(place("Release.gpg"), hostile::file(signature));
            files.insert(place("Release"), hostile::file(past));
        } else {
            files.insert(place("InRelease"), hostile::file(lab.gpg(&when, &sign("--clearsign"), past.as_bytes())));
        }
        for (path, file) in &pool {
            files.insert(path.replacen("/debian", &root, 1), file.clone());
        }
    }
    let later = "/archive/debian/20240602T000000Z/dists/one/InRelease";
    files.insert(later.to_owned(), hostile::redirect("/archive/debian/20240601T100000Z/dists/one/InRelease"));
    let later = "/archive/debian/20240405T000000Z/dists/one/Release";
    files.insert(later.to_owned(), hostile::redirect("/archive/debian/20240401T060000Z/dists/one/Release"));
    let wrong = "/archive/debian/20240503T000000Z/dists/one/InRelease";
    files.insert(wrong.to_owned(), hostile::redirect("/archive/debian/20240601T100000Z/dists/one/InRelease"));
    let list = r#"<a href="20240501T060000Z/">..</a> <a href="20240601T100000Z/">..</a>"#;
    files.insert("/archive/debian/".to_owned(), hostile::file(list));
}

/// Adds a flat archive: packages of all architectures and the index of all of them are in one directory.
fn flat(lab: &Lab, files: &mut BTreeMap<String, hostile::File>) {
    let mut index = String::new();
    for (control, deb) in [
        package("app", "3.0", "amd64", "Depends: libapp (>= 1), agent-data\n"),
        package("app", "2.5", "amd64", "Depends: libapp (>= 1), agent-data\n"),
        package("app", "4.0", "arm64", ""),
        package("agent-data", "1", "all", ""),
    ] {
        let digest = Digest::of(&deb).hex();
        index += &format!("{control}Filename: ./{digest}.deb\nSize: {}\nSHA256: {digest}\n\n", deb.len());
        files.insert(format!("/repos/one/{digest}.deb"), hostile::file(deb));
    }
    let listed = format!(" {} {} Packages\n", Digest::of(index.as_bytes()).hex(), index.len());
    let release = format!("Origin: vendor\nDate: Sat, 01 Jun 2024 08:00:00 UTC\nSHA256:\n{listed}");
    let sign = ["--digest-algo", "SHA256", "--local-user", "old@test.invalid", "--clearsign"];
    let in_release = lab.gpg(SIGNED, &sign, release.as_bytes());
    let detached = ["--digest-algo", "SHA256", "--local-user", "old@test.invalid", "--armor", "--detach-sign"];
    let signature = lab.gpg(SIGNED, &detached, release.as_bytes());
    let without = release.replace(" Packages\n", " Sources\n");
    let without_signature = lab.gpg(SIGNED, &detached, without.as_bytes());
    // The same packages without an InRelease: signed, signed without an index, signed before it was changed, and not signed.
    let packages: Vec<_> = files.iter().filter(|(path, _)| path.starts_with("/repos/one/")).collect();
    let packages: Vec<_> = packages.into_iter().map(|(path, file)| (path.clone(), file.clone())).collect();
    for (name, text, signature) in [
        ("detached", release.clone(), Some(&signature)),
        ("changed", release.replace("vendor", "other"), Some(&signature)),
        ("unsigned", release.clone(), None),
        ("without-index", without, Some(&without_signature)),
    ] {
        let place = |path: &str| format!("/repos/{name}/{path}");
        files.extend(packages.iter().map(|(path, file)| (path.replace("/one/", &place("")[6..]), file.clone())));
        files.insert(place("Packages"), hostile::file(index.clone()));
        files.insert(place("Release"), hostile::file(text));
        files.extend(signature.map(|signature| (place("Release.gpg"), hostile::file(signature.clone()))));
    }
    files.insert("/repos/one/Packages".to_owned(), hostile::file(index));
    files.insert("/repos/one/InRelease".to_owned(), hostile::file(in_release));
}

fn for_amd64() -> Vec<(String, Vec<u8>)> {
    vec![
        package("app", "1.2", "amd64", "Depends: libapp (>= 1), libc6, tool | other\nRecommends: app-doc\n"),
        package("app", "2.0", "amd64", "Depends: libapp (>= 2)\n"),
        package("app-doc", "1.2", "all", ""),
        package("libapp", "1.5", "amd64", "Pre-Depends: libold (>= 1.0)\n"),
        package("libold", "1.0", "amd64", ""),
        package("other", "1", "amd64", ""),
        package("tool", "1", "amd64", ""),
        package("clash", "1", "amd64", "Depends: clash-lib\n"),
        package("clash-lib", "1", "amd64", "Conflicts: tool\n"),
        package("newer-libc", "1", "amd64", "Depends: libc6 (>= 3)\n"),
        package("libc6", "3.0", "amd64", ""),
        package("grouper", "1", "amd64", ""),
        package("grub-pc", "2.12", "amd64", ""),
    ]
}

/// Output of a command.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file of a baked image.
pub fn file(image: &Path, path: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_vmbake")).arg("cat").arg(image).arg(path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
