//! The dynamic linker's cache and links of libraries, compared with ldconfig: same bytes, same names.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use vmbake_compose::merge::ldconfig;
use vmbake_disk::tree::{Kind, Timestamp, Tree};

use super::parts::{Image, Make, host, library, run};
use crate::base::base;
use crate::tools::have;
use crate::tools::skip::skip;

const CACHE: &str = "/etc/ld.so.cache";

fn refreshed(tree: Tree) -> Tree {
    ldconfig(tree, host().0, Timestamp { secs: 1_700_000_000, nanos: 0 }).unwrap()
}

fn cache(tree: &Tree) -> Vec<u8> {
    tree.read(CACHE.as_bytes(), 1 << 20).unwrap()
}

/// Every name with what it is: the target of a link, or the kind.
fn names(tree: &Tree) -> BTreeMap<String, String> {
    let show = |kind: &Kind| match kind {
        Kind::Symlink(target) => String::from_utf8_lossy(target).into_owned(),
        other => other.name().to_owned(),
    };
    let names = tree.walk().map(|(path, _, inode)| (String::from_utf8_lossy(&path).into_owned(), show(&inode.kind)));
    names.filter(|(path, _)| !path.starts_with("/var")).collect()
}

/// Runs ldconfig on a directory and ours on a tree of it; both must leave the same.
fn judge(program: &str, root: &Path) -> String {
    let ours = refreshed(Image::new().directory(root, "").tree);
    run(program, &["-r", root.to_str().unwrap()]);
    let judge = Image::new().directory(root, "").tree;
    let (names, judged) = (names(&ours), names(&judge));
    let differ: Vec<_> = names.iter().filter(|(path, what)| judged.get(*path) != Some(*what)).collect();
    let missing: Vec<_> = judged.keys().filter(|path| !names.contains_key(*path)).collect();
    assert!(differ.is_empty() && missing.is_empty(), "ours are {differ:?}, not made are {missing:?}");
    let said = run(program, &["-r", root.to_str().unwrap(), "-p"]);
    fs::write(root.join("etc/ld.so.cache"), cache(&ours)).unwrap();
    let ours_said = run(program, &["-r", root.to_str().unwrap(), "-p"]);
    for (line, judged) in ours_said.lines().zip(said.lines()) {
        assert_eq!(line, judged, "the first line that differs");
    }
    assert!(cache(&ours) == cache(&judge), "the same bytes");
    assert!(cache(&refreshed(judge.clone())) == cache(&judge), "what fits stays");
    said
}

/// A file of a scratch root.
fn put(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn link(root: &Path, path: &str, target: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}

fn made(soname: Option<&'static str>) -> Vec<u8> {
    Make { machine: host().1, soname, ..library(&[]) }.bytes()
}

/// Libraries, links and configuration of every sort that ldconfig tells apart.
fn fill(root: &Path, triplet: &str) {
    let conf =
        "# comment\n\tinclude  /etc/ld.so.conf.d/*.conf more/?.conf\t\nhwcap 1 x\n/opt/late/ # last\n/opt/none\n";
    put(root, "etc/ld.so.conf", conf);
    put(root, "etc/ld.so.conf.d/b.conf", format!("/usr/lib/{triplet}\n/lib/{triplet}//\n"));
    put(root, "etc/ld.so.conf.d/a.conf", "/usr/local/lib\n\n/opt/linked\n/etc/ld.so.conf\n");
    put(root, "etc/ld.so.conf.d/.hidden.conf", "/opt/hidden\n");
    put(root, "etc/ld.so.conf.d/c.conf.dpkg-old", "/opt/hidden\n");
    put(root, "etc/more/1.conf", "/opt/x\n");
    if !root.join("lib").exists() {
        link(root, "lib", "usr/lib");
    }
    link(root, "opt/linked", "/opt/real");
    let own = |name: &str| format!("usr/lib/{triplet}/{name}");
    for (path, soname) in [
        // Without a link; with an older version; with a link to that one.
        (own("libone.so.1.2.3"), Some("libone.so.1")),
        (own("libtwo.so.2.9"), Some("libtwo.so.2")),
        (own("libtwo.so.2.10"), Some("libtwo.so.2")),
        (own("libthree.so.3.1"), Some("libthree.so.3")),
        (own("libthree.so.3.2"), Some("libthree.so.3")),
        // Named by its soname; without one; with another; with a file in place of the link.
        (own("libfour.so.4"), Some("libfour.so.4")),
        (own("libfive-5.so"), None),
        (own("libsix-1.so"), Some("libsix.so.6")),
        (own("libseven.so.7.1"), Some("libseven.so.7")),
        (own("libseven.so.7"), Some("libother.so.7")),
        (own("ld-test.so.2"), Some("ld-test.so.2")),
        (own("module.so"), Some("module.so.1")),
        // The same library in several directories.
        ("usr/local/lib/libone.so.1.0".to_owned(), Some("libone.so.1")),
        ("opt/real/libone.so.1".to_owned(), Some("libone.so.1")),
        ("opt/late/libone.so.1".to_owned(), Some("libone.so.1")),
        ("opt/x/libx.so.1".to_owned(), Some("libx.so.1")),
        ("opt/hidden/libhidden.so.1".to_owned(), Some("libhidden.so.1")),
        ("usr/lib/libplain.so.1.1".to_owned(), Some("libplain.so.1")),
    ] {
        put(root, &path, made(soname));
    }
    link(root, &own("libthree.so.3"), "libthree.so.3.1");
    link(root, &own("libthree.so"), "libthree.so.3");
    link(root, &own("libfour.so"), "/lib/libplain.so.1.1");
    link(root, &own("libstale.so.1"), "libstale.so.1.0");
    link(root, &own("libstale.so"), "libstale.so.1");
    link(root, &own("libdirectory.so.1"), "..");
    // No libraries: a linker script, damaged files, other machines, object files.
    put(root, &own("libscript.so"), "/* GNU ld script */ GROUP ( libone.so.1 )");
    put(root, &own("libempty.so.1"), "");
    put(root, &own("libshort.so.1"), &made(None)[..60]);
    let other = Make { machine: 22, data: 2, ..library(&[]) };
    put(root, &own("libs390.so.1"), other.bytes());
    put(root, &own("libobject.so.1"), Make { machine: host().1, e_type: 1, ..library(&[]) }.bytes());
}

/// Libraries that are chosen by what the processor can do.
fn fill_hwcaps(root: &Path, triplet: &str) {
    for (path, isa) in [
        ("x86-64-v3/libone.so.1.2.3", Some(4)),
        ("x86-64-v2/libone.so.1.2.3", Some(2)),
        ("x86-64-v2/libnew.so.1.0", None),
        ("x86-64-v2/module.so", Some(2)),
        ("not:this/libone.so.1", None),
        (".nor-this/libone.so.1", None),
    ] {
        let soname = Some(if path.contains("libone") { "libone.so.1" } else { "libnew.so.1" });
        let bytes = Make { machine: host().1, soname, isa, ..library(&[]) }.bytes();
        put(root, &format!("usr/lib/{triplet}/glibc-hwcaps/{path}"), bytes);
    }
    fs::create_dir_all(root.join(format!("usr/lib/{triplet}/glibc-hwcaps/empty"))).unwrap();
    link(root, &format!("usr/lib/{triplet}/glibc-hwcaps/x86-64-v2/linked"), "libnew.so.1.0");
    put(root, "usr/lib/elsewhere/libnew.so.1.0", made(Some("libnew.so.1")));
    link(root, &format!("usr/lib/{triplet}/glibc-hwcaps/linked"), "/usr/lib/elsewhere");
}

#[test]
fn ldconfig_of_this_machine_writes_the_same() {
    if !have(&["ldconfig"]) {
        return;
    }
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let dir = tempfile::tempdir().unwrap();
    // The first cache is ldconfig's own: ours takes from it who wrote it.
    fs::create_dir(dir.path().join("etc")).unwrap();
    run("ldconfig", &["-r", dir.path().to_str().unwrap()]);
    assert!(judge("ldconfig", dir.path()).starts_with("0 libs"));
    fill(dir.path(), &triplet);
    let said = judge("ldconfig", dir.path());
    for expected in ["libone.so.1", "libfive-5.so", "libother.so.7", "ld-test.so.2", "/opt/linked/libone.so.1"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!said.contains("hidden") && !said.contains("stale"), "{said}");
    fill_hwcaps(dir.path(), &triplet);
    let said = judge("ldconfig", dir.path());
    assert!(said.contains("hwcap: \"x86-64-v3\""), "{said}");
    fs::remove_dir_all(dir.path().join("opt")).unwrap();
    judge("ldconfig", dir.path());
}

#[test]
fn ldconfig_of_the_base_writes_the_same() {
    if host().0 != "amd64" {
        return skip("the base image has an ldconfig for amd64");
    }
    let Some(base) = base().map(|base| base.with_file_name("rootfs.tar")) else { return };
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let parts =
        ["./etc/ld.so*", "./lib", "./lib64", "./usr/lib*/*.so*", "./usr/lib/*-linux-gnu/*.so*", "./usr/sbin/ldconfig"];
    let args =
        ["-xf", base.to_str().unwrap(), "-C", root.to_str().unwrap(), "--wildcards", "--no-wildcards-match-slash"];
    run("tar", &args.into_iter().chain(parts).collect::<Vec<_>>());
    let before = fs::read(root.join("etc/ld.so.cache")).unwrap();
    let tree = Image::new().directory(root, "").tree;
    assert!(refreshed(tree).walk().count() > 200, "the base has libraries");
    assert_eq!(cache(&refreshed(Image::new().directory(root, "").tree)), before, "the base's own cache stays");
    let program = root.join("usr/sbin/ldconfig");
    judge(program.to_str().unwrap(), root);
    fs::remove_file(root.join("usr/lib/x86_64-linux-gnu/libz.so.1")).unwrap();
    fill(root, "x86_64-linux-gnu");
    // Since glibc 2.39 these are passed over.
    for name in ["libtemporary.so.1;5f2a", "libtemporary.so.1.0.dpkg-new"] {
        put(root, &format!("usr/lib/x86_64-linux-gnu/{name}"), made(Some("libtemporary.so.1")));
    }
    fill_hwcaps(root, "x86_64-linux-gnu");
    judge(program.to_str().unwrap(), root);
}

#[test]
fn trees_without_a_cache_get_none() {
    let image = Image::new().file("/usr/lib/liba.so.1.0", 0o644, made(Some("liba.so.1")));
    assert_eq!(
        names(&refreshed(image.tree)).keys().collect::<Vec<_>>(),
        ["", "/usr", "/usr/lib", "/usr/lib/liba.so.1.0"]
    );
}

#[test]
fn what_is_not_understood_is_refused() {
    let good = Image::new().file(CACHE, 0o644, [&b"glibc-ld.so.cache1.1"[..], &[0; 28]].concat());
    let error = ldconfig(good.tree, "amd64", Timestamp::default()).unwrap_err().to_string();
    assert_eq!(error, "/etc/ld.so.cache: is not a cache of glibc 2.33 or later");
    let empty = || {
        let generator = [&[0x74, 0x21, 0xa4, 0xea, 1, 0, 0, 0][..], &[0; 8], &[72, 0, 0, 0, 1, 0, 0, 0], b"x"].concat();
        let header = [&b"glibc-ld.so.cache1.1"[..], &[0; 8], &[2, 0, 0, 0, 48, 0, 0, 0], &[0; 12]].concat();
        Image::new().file(CACHE, 0o644, [header, generator].concat())
    };
    let conf = |text: &str| ldconfig(empty().file("/etc/ld.so.conf", 0o644, text).tree, "amd64", Timestamp::default());
    assert_eq!(cache(&conf("").unwrap()), cache(&empty().tree));
    for (text, expected) in [
        ("include /etc/ld.so.conf\n", "/etc/ld.so.conf: has too many levels of includes"),
        ("include /etc/[a-c].conf\n", "/etc/ld.so.conf: includes \"/etc/[a-c].conf\": patterns only support * and ?"),
    ] {
        assert_eq!(conf(text).unwrap_err().to_string(), expected);
    }
    let mut many = empty().file("/etc/ld.so.conf", 0o644, "include /*/../*/../*/../*/../*/../*.conf\n");
    for name in 0..12 {
        many = many.file(&format!("/{name}/x"), 0o644, "");
    }
    let error = ldconfig(many.tree, "amd64", Timestamp::default()).unwrap_err().to_string();
    assert!(error.ends_with("matches too many paths"), "{error}");
    let each = |name: &str| format!("include /etc/{name}\n").repeat(40);
    let many = empty().file("/etc/ld.so.conf", 0o644, each("1")).file("/etc/1", 0o644, each("2"));
    let error = ldconfig(many.file("/etc/2", 0o644, "").tree, "amd64", Timestamp::default()).unwrap_err().to_string();
    assert_eq!(error, "/etc/2: has too many levels of includes");
    let escaping =
        empty().file("/usr/lib/liba.so.1.0", 0o644, Make { soname: Some("../../etc/x"), ..library(&[]) }.bytes());
    let before = names(&escaping.tree);
    assert_eq!(names(&refreshed(escaping.tree)), before, "no link leaves its directory");
}
