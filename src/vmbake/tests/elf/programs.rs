//! Checks of programs in layers: a program that cannot run stops the bake, with both sides named.

use std::collections::BTreeSet;
use std::error::Error;

use vmbake_compose::merge::check_programs;
use vmbake_disk::tree::Tree;

use super::parts::{AARCH64, Image, Make, library, program};

/// A base with a C library, a shell and env, and a program that would not run.
fn base() -> Image {
    Image::new()
        .link("/lib", "usr/lib")
        .link("/lib64", "usr/lib64")
        .link("/bin", "usr/bin")
        .file("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", 0o755, library(&[]).bytes())
        .link("/usr/lib64/ld-linux-x86-64.so.2", "../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
        .file("/usr/lib/x86_64-linux-gnu/libc.so.6", 0o755, named("libc.so.6", &["ld-linux-x86-64.so.2"]))
        .file("/usr/bin/dash", 0o755, program(&["libc.so.6"]).bytes())
        .link("/usr/bin/sh", "dash")
        .file("/usr/bin/env", 0o755, program(&["libc.so.6"]).bytes())
        .file("/usr/bin/broken", 0o755, program(&["libgone.so.1"]).bytes())
        .file("/etc/ld.so.conf", 0o644, "include ld.so.conf.d/*.conf\n")
        .artifact("artifact")
}

fn named(soname: &'static str, needed: &[&'static str]) -> Vec<u8> {
    Make { soname: Some(soname), ..library(needed) }.bytes()
}

fn with_runpath(runpath: &'static str, needed: &[&'static str]) -> Vec<u8> {
    Make { runpath: Some(runpath), ..program(needed) }.bytes()
}

fn with_rpath(rpath: &'static str, needed: &[&'static str]) -> Vec<u8> {
    Make { rpath: Some(rpath), ..program(needed) }.bytes()
}

fn check(tree: &Tree) -> Result<(), String> {
    check_programs(tree, "amd64", &BTreeSet::new()).map_err(|error| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })
}

#[test]
fn what_can_run_is_taken() {
    let foreign = Make { machine: AARCH64, ..library(&[]) };
    let cases = [
        ("nothing", base()),
        ("a program", base().file("/opt/p", 0o755, program(&["libc.so.6"]).bytes())),
        (
            "a static program",
            base().file("/opt/p", 0o755, Make { e_type: 2, interpreter: None, ..program(&[]) }.bytes()),
        ),
        ("a needed loader", base().file("/opt/p", 0o755, program(&["ld-linux-x86-64.so.2"]).bytes())),
        ("an object file", base().file("/opt/x.o", 0o644, Make { e_type: 1, ..foreign.clone() }.bytes())),
        ("a script", base().file("/opt/s", 0o755, "#! /bin/sh -e\n")),
        ("a script for env", base().file("/opt/s", 0o755, "#!/usr/bin/env -S A=b sh -e\n")),
        ("a script that is data", base().file("/opt/s", 0o644, "#!/usr/bin/ruby\n")),
        ("no script", base().file("/opt/s", 0o755, "#!\n").file("/opt/t", 0o755, "")),
        (
            "a library next to the program",
            base().file("/opt/bin/p", 0o755, with_runpath("/none:$ORIGIN/../lib", &["liba.so"])).file(
                "/opt/lib/liba.so",
                0o644,
                library(&["libc.so.6"]).bytes(),
            ),
        ),
        (
            "a library by the tokens of its path",
            base().file("/opt/p", 0o755, with_rpath("/opt/${LIB}/$PLATFORM", &["liba.so"])).file(
                "/opt/lib/x86_64-linux-gnu/x86_64/liba.so",
                0o644,
                library(&[]).bytes(),
            ),
        ),
        (
            "a library by its path",
            base().file("/opt/p", 0o755, program(&["/opt/liba.so"]).bytes()).file(
                "/opt/liba.so",
                0o644,
                library(&[]).bytes(),
            ),
        ),
        (
            "RPATH holds for libraries of libraries",
            base()
                .file("/opt/p", 0o755, with_rpath("/opt/lib", &["liba.so"]))
                .file("/opt/lib/liba.so", 0o644, library(&["libb.so"]).bytes())
                .file("/opt/lib/libb.so", 0o644, library(&[]).bytes()),
        ),
        (
            "loaded before it is needed without a path",
            base()
                .file("/opt/p", 0o755, with_runpath("/opt/lib", &["liba.so", "libb.so.1"]))
                .file("/opt/lib/liba.so", 0o644, library(&["libb.so.1"]).bytes())
                .file("/opt/lib/libb.so.1", 0o644, library(&[]).bytes()),
        ),
        (
            "loaded under another name",
            base()
                .file("/opt/p", 0o755, with_runpath("/opt/lib", &["libb.so", "liba.so"]))
                .file("/opt/lib/liba.so", 0o644, library(&["libb.so.1"]).bytes())
                .file("/opt/lib/libb.so", 0o644, named("libb.so.1", &[])),
        ),
        (
            "libraries that need each other",
            base()
                .file("/opt/p", 0o755, with_rpath("/opt/lib", &["liba.so"]))
                .file("/opt/lib/liba.so", 0o644, library(&["libb.so"]).bytes())
                .file("/opt/lib/libb.so", 0o644, library(&["liba.so"]).bytes()),
        ),
        (
            "a configured directory",
            base()
                .file("/etc/ld.so.conf.d/x.conf", 0o644, "/opt/lib\n")
                .file("/opt/p", 0o755, program(&["liba.so.1"]).bytes())
                .file("/opt/lib/liba.so.1", 0o644, named("liba.so.1", &[])),
        ),
        (
            "a plugin of a program that has loaded what it needs",
            base()
                .file("/opt/p", 0o755, with_runpath("/opt/lib", &["libown.so.1"]))
                .file("/opt/lib/libown.so.1", 0o644, named("libown.so.1", &[]))
                .file("/opt/plugins/x.so", 0o644, library(&["libown.so.1"]).bytes()),
        ),
        (
            "one for another machine comes first",
            base()
                .file("/opt/p", 0o755, with_runpath("/opt/lib", &["libc.so.6"]))
                .link("/opt/lib/libc.so.6", "/usr/lib/none")
                .file("/etc/ld.so.conf", 0o644, "/opt/32\n"),
        ),
    ];
    for (name, image) in cases {
        check(&image.tree).expect(name);
    }
}

#[test]
fn what_cannot_run_is_refused() {
    let foreign = Make { machine: AARCH64, ..program(&["libc.so.6"]) }.bytes();
    let damaged = program(&["libc.so.6"]).bytes()[..100].to_vec();
    let cases = [
        (
            base().file("/opt/p", 0o755, foreign.clone()),
            "/opt/p of artifact: is for ELF64 AArch64, but the image is for ELF64 x86-64",
        ),
        (
            base().file("/opt/libx.so", 0o644, Make { class: 1, ..library(&[]) }.bytes()),
            "/opt/libx.so of artifact: is for ELF32 x86-64, but the image is for ELF64 x86-64",
        ),
        (
            base().file("/opt/p", 0o755, damaged),
            "/opt/p of artifact: invalid ELF file: the program headers, 224 bytes at byte 64, extends beyond the end of the file at 100",
        ),
        (
            base().file(
                "/opt/p",
                0o755,
                Make { interpreter: Some("/lib/ld-musl-x86_64.so.1"), ..program(&[]) }.bytes(),
            ),
            "/opt/p of artifact: its interpreter /lib/ld-musl-x86_64.so.1 is not in the image",
        ),
        (
            base().link("/opt/ld.so", "gone").file(
                "/opt/p",
                0o755,
                Make { interpreter: Some("/opt/ld.so"), ..program(&[]) }.bytes(),
            ),
            "/opt/p of artifact: its interpreter /opt/ld.so is not in the image",
        ),
        (
            base().file("/opt/p", 0o755, program(&["libc.so.6", "libgone.so.1"]).bytes()),
            "/opt/p of artifact: needs libgone.so.1, which the loader of /opt/p does not find",
        ),
        (
            base().file("/opt/p", 0o755, with_runpath("lib:", &["liba.so"])).file("/lib/x/liba.so", 0o644, "text"),
            "/opt/p of artifact: needs liba.so, which",
        ),
        (
            base()
                .file("/opt/p", 0o755, with_runpath("/opt/lib", &["liba.so"]))
                .artifact("other")
                .file("/opt/lib/liba.so", 0o644, library(&["libb.so"]).bytes())
                .file("/opt/lib/libb.so", 0o644, library(&[]).bytes()),
            "/opt/lib/liba.so of other: needs libb.so, which the loader of /opt/p does not find",
        ),
        (
            base().file("/opt/lib/liba.so", 0o644, library(&["libgone.so"]).bytes()),
            "/opt/lib/liba.so of artifact: needs libgone.so, which the loader of /opt/lib/liba.so does not find",
        ),
        (
            base()
                .file("/etc/ld.so.conf.d/x.conf", 0o644, "/opt/lib\n")
                .file("/opt/p", 0o755, program(&["plugin.so"]).bytes())
                .file("/opt/lib/plugin.so", 0o644, library(&[]).bytes()),
            "/opt/p of artifact: needs plugin.so, which",
        ),
        (base().file("/opt/s", 0o755, "#!/usr/bin/ruby -w\n"), "/opt/s of artifact: its interpreter /usr/bin/ruby is"),
        (base().file("/opt/s", 0o755, "#!sh\n"), "/opt/s of artifact: its interpreter sh is not in the image"),
        (base().file("/opt/s", 0o755, "#!/usr/bin/env ruby\n"), "/opt/s of artifact: its interpreter ruby is not in"),
    ];
    for (image, expected) in cases {
        let error = check(&image.tree).expect_err(expected);
        assert!(error.starts_with(expected), "{error}");
    }
    let error = check_programs(&base().tree, "riscv64", &BTreeSet::new()).unwrap_err().to_string();
    assert_eq!(error, "riscv64: unsupported architecture of programs: expected amd64 or arm64");
}
