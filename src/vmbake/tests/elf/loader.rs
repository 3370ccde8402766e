//! Compiles programs and libraries, and compares with this host's dynamic linker which of them can be loaded.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use vmbake_compose::merge::check_programs;

use super::parts::{Image, host, run};
use crate::tools::have;

/// A file to compile: its path below the scratch directory, and what the linker is told. `@` is the directory.
type Source = (&'static str, &'static [&'static str]);

const CASES: &[(&str, &[Source])] = &[
    ("alone", &[("p", &[])]),
    ("runpath", &[("lib/liba.so", &["-shared"]), ("p", &["@/lib/liba.so", "-Wl,-rpath,$ORIGIN/lib"])]),
    ("no path", &[("lib/liba.so", &["-shared", "-Wl,-soname,liba.so.1"]), ("p", &["@/lib/liba.so"])]),
    (
        "runpath is not inherited",
        &[
            ("lib/libb.so", &["-shared", "-Wl,-soname,libb.so"]),
            ("lib/liba.so", &["-shared", "@/lib/libb.so", "-Wl,-soname,liba.so"]),
            ("p", &["@/lib/liba.so", "-Wl,--enable-new-dtags,-rpath,@/lib"]),
        ],
    ),
    (
        "rpath is inherited",
        &[
            ("lib/libb.so", &["-shared", "-Wl,-soname,libb.so"]),
            ("lib/liba.so", &["-shared", "@/lib/libb.so", "-Wl,-soname,liba.so"]),
            ("p", &["@/lib/liba.so", "-Wl,--disable-new-dtags,-rpath,@/lib"]),
        ],
    ),
    (
        "a library with runpath ends what is inherited",
        &[
            ("lib/libb.so", &["-shared", "-Wl,-soname,libb.so"]),
            ("lib/liba.so", &["-shared", "@/lib/libb.so", "-Wl,-soname,liba.so,--enable-new-dtags,-rpath,/none"]),
            ("p", &["@/lib/liba.so", "-Wl,--disable-new-dtags,-rpath,@/lib"]),
        ],
    ),
    (
        "loaded before",
        &[
            ("lib/libb.so", &["-shared", "-Wl,-soname,libb.so"]),
            ("lib/liba.so", &["-shared", "@/lib/libb.so", "-Wl,-soname,liba.so"]),
            ("p", &["@/lib/liba.so", "@/lib/libb.so", "-Wl,--enable-new-dtags,-rpath,@/lib"]),
        ],
    ),
    ("by its path", &[("lib/liba.so", &["-shared"]), ("p", &["@/lib/liba.so"])]),
    (
        "origin of a library",
        &[
            ("lib/b/libb.so", &["-shared", "-Wl,-soname,libb.so"]),
            ("lib/liba.so", &["-shared", "@/lib/b/libb.so", "-Wl,-soname,liba.so,-rpath,$ORIGIN/b"]),
            ("p", &["@/lib/liba.so", "-Wl,-rpath,${ORIGIN}/lib"]),
        ],
    ),
];

/// What of this machine every program needs, and the compiled files, at the paths that they have here.
fn image(dir: &Path) -> Image {
    let loader = match host().0 {
        "amd64" => "/lib64/ld-linux-x86-64.so.2",
        _ => "/lib/ld-linux-aarch64.so.1",
    };
    let library = format!("/lib/{}-linux-gnu/libc.so.6", std::env::consts::ARCH);
    let mut image = Image::new();
    for path in [loader, &library] {
        image = image.file(path, 0o755, fs::read(path).unwrap());
    }
    image.artifact("a").directory(Path::new("/"), dir.to_str().unwrap())
}

#[test]
fn the_loader_of_this_machine_finds_the_same() {
    if !have(&["cc"]) {
        return;
    }
    let (mut good, mut bad) = (0, 0);
    for (name, sources) in CASES {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        fs::write(dir.path().join("x.c"), "int main(void) { return 0; }\n").unwrap();
        for (path, flags) in *sources {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let flags: Vec<String> = flags.iter().map(|flag| flag.replace('@', root)).collect();
            let args = ["-fPIC", "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", "-o", path.to_str().unwrap()];
            let source = format!("{root}/x.c");
            let args = args.into_iter().chain([source.as_str()]).chain(flags.iter().map(String::as_str));
            run("cc", &args.collect::<Vec<_>>());
        }
        fs::remove_file(dir.path().join("x.c")).unwrap();
        let status = Command::new(dir.path().join("p")).env_remove("LD_LIBRARY_PATH").output().unwrap().status;
        let found = check_programs(&image(dir.path()).tree, host().0, &BTreeSet::new());
        assert_eq!(found.is_ok(), status.success(), "{name}: {found:?}");
        if status.success() { good += 1 } else { bad += 1 }
    }
    assert!(good >= 4 && bad >= 3, "{good} run, {bad} do not");
}
