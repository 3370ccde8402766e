//! Go build information: synthetic, malformed and real programs.

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use proptest::prelude::*;
use vmbake_disk::source::{Map, Sources};
use vmbake_image::elf::{BuildInfo, ElfError};
use vmbake_pin::sources::Upstream;
use vmbake_proof::program;

use super::parts::{AARCH64, Make, X86_64, library, program as elf_program, run};
use crate::tools::have;

const KUBELET: &str =
    "path\tk8s.io/kubernetes/cmd/kubelet\nmod\tk8s.io/kubernetes\tv1.34.2\t\ndep\ta\tv1\th1:x\nbuild\tGOOS=linux\n";

/// The section's content: the lines between two marks, behind Go's version.
fn section(lines: &str) -> Vec<u8> {
    let mut bytes = [b"\xff Go buildinf:\x08\x02", &[0; 16][..]].concat();
    for text in ["go1.24.2".to_owned(), format!("{0}{lines}{0}", "0123456789abcdef")] {
        let mut len = text.len();
        while len > 0x7f {
            bytes.push(u8::try_from(len & 0x7f).unwrap() | 0x80);
            len >>= 7;
        }
        bytes.push(u8::try_from(len).unwrap());
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// A file of 64 bits with the section at its end, behind its header table and the names.
fn with_section(make: &Make, content: &[u8]) -> Vec<u8> {
    let mut bytes = make.bytes();
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    let (table, names) = (bytes.len(), b"\0.shstrtab\0.go.buildinfo\0");
    let [names_at, content_at] = [table + 3 * 64, table + 3 * 64 + 32];
    for (name, at, len) in [(0, 0, 0), (1, names_at, names.len()), (11, content_at, content.len())] {
        let mut header = [0; 64];
        header[0] = name;
        header[0x18..0x20].copy_from_slice(&(at as u64).to_le_bytes());
        header[0x20..0x28].copy_from_slice(&(len as u64).to_le_bytes());
        bytes.extend(header);
    }
    bytes[0x28..0x30].copy_from_slice(&(table as u64).to_le_bytes());
    bytes[0x3a..0x40].copy_from_slice(&[64, 0, 3, 0, 1, 0]);
    bytes.extend(names);
    bytes.resize(content_at, 0);
    bytes.extend(content);
    bytes
}

/// A program of Go with these lines.
pub fn go_program(lines: &str) -> Vec<u8> {
    with_section(&library(&[]), &section(lines))
}

fn read(bytes: &[u8]) -> Result<Option<BuildInfo>, ElfError> {
    let mut sources = Sources::default();
    let map = Map::whole(sources.add(Arc::new(bytes.to_vec())), 0, bytes.len() as u64);
    BuildInfo::read(&map, &sources)
}

#[test]
fn the_main_package_and_its_version_are_read() {
    let info = read(&with_section(&library(&[]), &section(KUBELET))).unwrap().unwrap();
    assert_eq!((&*info.go, &*info.package), ("go1.24.2", "k8s.io/kubernetes/cmd/kubelet"));
    let module = info.module.unwrap();
    assert_eq!((&*module.path, &*module.version), ("k8s.io/kubernetes", "v1.34.2"));
    let info = read(&with_section(&library(&[]), &section("path\tcommand-line-arguments\n"))).unwrap().unwrap();
    assert_eq!((&*info.package, info.module), ("command-line-arguments", None));
    for other in [library(&[]).bytes(), b"#!/bin/sh\n".to_vec(), Vec::new()] {
        assert_eq!(read(&other).unwrap(), None);
    }
}

#[test]
fn modules_are_those_that_are_linked() {
    let lines = "path\tm\nmod\tm\tv1\t\n=>\tmine\tv8\t\ndep\ta\tv1\th1:x\ndep\tb\tv2\n=>\tfork\tv3\th1:y\ndep\tc\tv4\n=>\t./c\t\n";
    let info = read(&go_program(lines)).unwrap().unwrap();
    let modules: Vec<_> = info.dependencies.iter().map(|module| (&*module.path, &*module.version)).collect();
    assert_eq!(modules, [("a", "v1"), ("fork", "v3"), ("c", "v4")]);
}

#[test]
fn what_is_damaged_is_named() {
    let place = |bytes: &[u8]| with_section(&library(&[]), bytes);
    let good = place(&section(KUBELET));
    let edited = |at: usize, bytes: &[u8]| {
        let mut edited = good.clone();
        edited[at..at + bytes.len()].copy_from_slice(bytes);
        edited
    };
    let table = usize::try_from(u64::from_le_bytes(good[0x28..0x30].try_into().unwrap())).unwrap();
    let twice = format!("{KUBELET}{KUBELET}");
    let pointers = [b"\xff Go buildinf:\x08\x00", &[0; 16][..]].concat();
    let open = [&section(KUBELET)[..32], &[0xff; 8]].concat();
    let mut binary = section(KUBELET);
    binary[33] = 0xff;
    for (name, bytes, expected) in [
        ("no magic", place(b"nothing"), "Go build information: missing magic number at byte"),
        ("cut", place(&section(KUBELET)[..60]), "Go build information: unterminated string at byte"),
        ("a length without end", place(&open), "Go build information: unterminated string at byte"),
        ("pointers", place(&pointers), "Go build information: unsupported format from before Go 1.18 at byte"),
        ("no lines", place(&section("")), "Go build information: missing main package at byte"),
        ("two", place(&section(&twice)), "Go build information: duplicate main package or module at byte"),
        ("binary", place(&binary), "Go build information: string that is not valid UTF-8 at byte"),
        ("entries", edited(0x3a, &[40]), "e_shentsize is 0x28, expected 0x40"),
        ("count", edited(0x3c, &[1, 2]), "e_shnum is 513, more than the limit of 512"),
        ("names", edited(0x3e, &[3]), "e_shstrndx is 0x3, expected below e_shnum"),
        ("table", edited(0x28, &[0xff; 8]), "the section headers, 192 bytes at byte 18446744073709551615"),
        (
            "long names",
            edited(table + 64 + 0x20, &[1, 0, 1]),
            "the names of sections is 65537, more than the limit of 65536",
        ),
        (
            "long section",
            edited(table + 128 + 0x20, &[1, 0, 0x10]),
            "the section .go.buildinfo is 1048577, more than the limit of",
        ),
        ("outside", edited(table + 128 + 0x18, &[0xff; 8]), "the section .go.buildinfo, "),
    ] {
        let error = read(&bytes).expect_err(name).to_string();
        assert!(error.starts_with(expected), "{name}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_build_information(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = with_section(&library(&[]), &section(KUBELET));
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes);
    }
}

/// Checks a file as an artifact of type `kind` whose source demands `program`, of version 1.34.2 for amd64.
fn check(kind: &str, program: &str, bytes: &[u8]) -> Result<(), String> {
    let upstream = format!(r#"{{"type": "{kind}", "version": {{"pinned": "1.34.2"}}, "proof": "first-use"{program}}}"#);
    let upstream: Upstream = serde_json::from_str(&upstream).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    judged(program::check(&upstream, "1.34.2", "amd64", &file))
}

fn judged(result: Result<(), program::ProgramError>) -> Result<(), String> {
    result.map_err(|error| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })
}

const DEMAND: &str = r#", "program": {"package": "k8s.io/kubernetes/cmd/kubelet", "version": "v{version}"}"#;
const PACKAGE: &str = r#", "program": {"package": "k8s.io/kubernetes/cmd/kubelet"}"#;

#[test]
fn only_the_program_that_was_asked_for_passes() {
    let make = |machine| Make { machine, ..elf_program(&[]) };
    let go = |lines: &str| with_section(&make(X86_64), &section(lines));
    let of = |version: &str| go(&KUBELET.replace("v1.34.2", version));
    for (kind, demand, bytes) in [
        ("binary", DEMAND, go(KUBELET)),
        ("binary", PACKAGE, of("(devel)")),
        ("binary", "", make(X86_64).bytes()),
        ("binary", "", b"#!/bin/sh\n".to_vec()),
        ("deb", "", make(AARCH64).bytes()),
    ] {
        assert_eq!(check(kind, demand, &bytes), Ok(()), "{kind} {demand}");
    }
    let package = "k8s.io/kubernetes/cmd/kubelet";
    for (demand, bytes, expected) in [
        (DEMAND, of("v1.34.1"), format!("{package} has version v1.34.1, expected v1.34.2")),
        (DEMAND, of("v1.34.2+dirty"), format!("{package} has version v1.34.2+dirty, expected v1.34.2")),
        (DEMAND, of("(devel)"), format!("{package} has version (devel), expected v1.34.2")),
        (
            DEMAND,
            go("path\tk8s.io/kubernetes/cmd/kubelet\n"),
            format!("{package} has version (none), expected v1.34.2"),
        ),
        (
            DEMAND,
            go(&KUBELET.replace("kubelet", "kubectl")),
            format!("main package is k8s.io/kubernetes/cmd/kubectl, expected {package}"),
        ),
        (
            PACKAGE,
            make(X86_64).bytes(),
            format!("not a Go program, so its identity cannot be checked: expected {package}"),
        ),
        (
            PACKAGE,
            b"#!/bin/sh\n".to_vec(),
            format!("not a Go program, so its identity cannot be checked: expected {package}"),
        ),
        (
            DEMAND,
            with_section(&make(AARCH64), &section(KUBELET)),
            "program for ELF64 AArch64, expected ELF64 x86-64".to_owned(),
        ),
        ("", make(AARCH64).bytes(), "program for ELF64 AArch64, expected ELF64 x86-64".to_owned()),
        (
            DEMAND,
            go("mod\tx\n"),
            "cannot parse the program: Go build information: missing main package at byte".to_owned(),
        ),
    ] {
        let error = check("binary", demand, &bytes).unwrap_err();
        assert!(error.starts_with(&expected), "{error}");
    }
}

/// A module proxy in a directory that has one version of k8s.io/kubernetes, with one program, and of a module that this needs.
const PROXY: &str = r#"
import pathlib, sys, zipfile
def module(path, version, needs, name, text):
    folder = pathlib.Path(sys.argv[1], path, "@v")
    folder.mkdir(parents=True)
    module = f"module {path}\n\ngo 1.18\n{needs}"
    (folder / f"{version}.info").write_text('{"Version": "%s"}' % version)
    (folder / f"{version}.mod").write_text(module)
    with zipfile.ZipFile(folder / f"{version}.zip", "w") as file:
        file.writestr(f"{path}@{version}/go.mod", module)
        file.writestr(f"{path}@{version}/{name}", text)
module("example.org/dep", "v0.9.1", "", "dep.go", 'package dep\n\nfunc Say() { println("x") }\n')
module("k8s.io/kubernetes", "v1.34.2", "\nrequire example.org/dep v0.9.1\n", "cmd/kubelet/main.go",
       'package main\n\nimport "example.org/dep"\n\nfunc main() { dep.Say() }\n')
"#;

/// Lets Go build the program as releases are built, stripped and without paths; returns where it is.
fn built(dir: &Path, arch: &str, mode: &str) -> PathBuf {
    let go = |variable: &str| format!("{}/{variable}-{mode}", dir.display());
    let status = Command::new("go")
        .args(["install", "-trimpath", &format!("-buildmode={mode}"), "-ldflags=-s -w"])
        .arg("k8s.io/kubernetes/cmd/kubelet@v1.34.2")
        .env("GOPATH", go("path"))
        .env("GOCACHE", dir.join("cache"))
        .env("GOENV", "off")
        .env("GOFLAGS", "-modcacherw")
        .env("GOTOOLCHAIN", "local")
        .env("GOPROXY", format!("file://{}/proxy", dir.display()))
        .env("GOSUMDB", "off")
        .env("CGO_ENABLED", "0")
        .env("GOOS", "linux")
        .env("GOARCH", arch)
        .current_dir(dir)
        .status()
        .unwrap();
    assert!(status.success());
    let bin = PathBuf::from(go("path")).join("bin");
    [bin.join(format!("linux_{arch}/kubelet")), bin.join("kubelet")].into_iter().find(|path| path.exists()).unwrap()
}

#[test]
fn go_says_the_same_of_what_it_builds() {
    if !have(&["go", "python3"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    run("python3", &["-c", PROXY, dir.path().join("proxy").to_str().unwrap()]);
    for (arch, mode) in [("amd64", "exe"), ("amd64", "pie"), ("arm64", "exe")] {
        let path = built(dir.path(), arch, mode);
        let said = run("go", &["version", "-m", path.to_str().unwrap()]);
        let info = read(&fs::read(&path).unwrap()).unwrap().unwrap();
        let module = info.module.unwrap();
        assert!(said.starts_with(&format!("{}: {}\n", path.display(), info.go)), "{said}");
        assert!(said.contains(&format!("\n\tpath\t{}\n", info.package)), "{said}");
        assert!(said.contains(&format!("\n\tmod\t{}\t{}\t", module.path, module.version)), "{said}");
        assert_eq!(said.matches("\n\tdep\t").count(), 1, "{said}");
        let needed = &info.dependencies[0];
        assert_eq!((&*needed.path, &*needed.version, info.dependencies.len()), ("example.org/dep", "v0.9.1", 1));
        assert!(said.contains(&format!("\n\tdep\t{}\t{}\t", needed.path, needed.version)), "{said}");

        let upstream =
            format!(r#"{{"type": "binary", "version": {{"pinned": "1.34.2"}}, "proof": "first-use"{DEMAND}}}"#);
        let upstream: Upstream = serde_json::from_str(&upstream).unwrap();
        let check = |version, arch| judged(program::check(&upstream, version, arch, &File::open(&path).unwrap()));
        assert_eq!(check("1.34.2", arch), Ok(()));
        assert!(check("1.34.3", arch).unwrap_err().ends_with("has version v1.34.2, expected v1.34.3"));
        let other = if arch == "amd64" { "arm64" } else { "amd64" };
        assert!(check("1.34.2", other).unwrap_err().starts_with("program for ELF64 "));
    }
}
