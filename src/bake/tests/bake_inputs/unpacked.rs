//! Archives as upstreams publish them: the result of a bake is compared with that of GNU tar and unzip.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use vmbake_disk::tree::{Inode, Kind, Metadata, Timestamp, Tree};

use super::judge::{Node, of_dir, of_tree};
use super::parts::{
    Part, bake, bake_layers, bake_onto, base, base_with, control, deb, dir, file, link, member, package, text,
    with_mode,
};
use crate::tools::have;

/// Runs a command of the shell in `dir`.
fn sh(dir: &Path, command: &str) {
    let ran = Command::new("sh").args(["-ec", command]).current_dir(dir).output().unwrap();
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A release as of Node.js or a JDK: programs, links to them, empty directories, a long name.
fn release(dir: &Path) {
    let top = dir.join("tool-1.0");
    for folder in ["bin", "lib/empty", "lib/private", "lib/npm/bin"] {
        fs::create_dir_all(top.join(folder)).unwrap();
    }
    let long = format!("lib/{}", "n".repeat(180));
    for (path, mode) in [
        ("bin/node", 0o755),
        ("lib/npm/bin/npm-cli.js", 0o755),
        ("LICENSE", 0o644),
        ("lib/private/key", 0o640),
        (&long, 0o600),
    ] {
        fs::write(top.join(path), format!("{path}\n")).unwrap();
        fs::set_permissions(top.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(top.join("lib/private"), fs::Permissions::from_mode(0o750)).unwrap();
    for (path, target) in [
        ("bin/npm", "../lib/npm/bin/npm-cli.js"),
        ("lib/etc", "/etc/tool/"),
        ("bin/dangling", "./nowhere"),
        ("lib64", "lib"),
    ] {
        symlink(target, top.join(path)).unwrap();
    }
}

/// The entries below a directory of the tree, owned by the user of the test.
fn below(tree: &Tree, folder: &str) -> BTreeMap<String, Node> {
    let owner = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let all = of_tree(tree).into_iter();
    all.filter_map(|(path, (mode, uid, gid, what))| {
        assert!(!path.starts_with(folder) || (uid, gid) == (0, 0), "{path}");
        Some((path.strip_prefix(folder)?.to_owned(), (mode, owner.0, owner.1, what)))
    })
    .filter(|(path, _)| !path.is_empty())
    .collect()
}

fn unpacked(dir: &Path) -> BTreeMap<String, Node> {
    let mut all = BTreeMap::new();
    of_dir(dir, dir, &mut all);
    all.remove("/");
    all
}

fn part(kind: &'static str, keys: &str, bytes: Vec<u8>) -> Part {
    let form = if kind == "zip" { "zip" } else { "tar" };
    Part { name: "tool", kind, install: format!(r#"{{"type": "{form}", "path": "/opt/tool"{keys}}}"#), bytes }
}

#[test]
fn links_and_directories_are_those_that_tar_and_unzip_make() {
    if !have(&["tar", "zip", "unzip", "bzip2", "xz", "zstd", "gzip"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    release(dir.path());
    for (name, pack, unpack) in [
        ("t.tar", "tar -cf t.tar tool-1.0", "tar -xpf"),
        ("t.tar.gz", "tar -czf t.tar.gz tool-1.0", "tar -xpf"),
        ("t.tar.bz2", "tar -cjf t.tar.bz2 tool-1.0", "tar -xpf"),
        ("t.tar.xz", "tar -cJf t.tar.xz tool-1.0", "tar -xpf"),
        ("t.tar.zst", "tar --zstd -cf t.tar.zst tool-1.0", "tar -xpf"),
        ("pax.tar", "tar --format=pax -cf pax.tar tool-1.0", "tar -xpf"),
        ("t.zip", "zip -qry t.zip tool-1.0", "unzip -qKX"),
    ] {
        sh(dir.path(), pack);
        sh(dir.path(), &format!("rm -rf out; mkdir out; umask 0; cd out; {unpack} ../{name}"));
        let kind = if unpack.starts_with("unzip") { "zip" } else { "tar.gz" };
        let bytes = fs::read(dir.path().join(name)).unwrap();
        let tree = bake(&[part(kind, "", bytes.clone())]).unwrap();
        assert_eq!(below(&tree, "/opt/tool"), unpacked(&dir.path().join("out")), "{name}");
        // The top is one component, which is dropped.
        let tree = bake(&[part(kind, r#", "strip": 1"#, bytes.clone())]).unwrap();
        assert_eq!(below(&tree, "/opt/tool"), unpacked(&dir.path().join("out/tool-1.0")), "{name}");
        let tree = bake(&[part(kind, r#", "strip": 1, "members": ["tool-1.0/bin"]"#, bytes)]).unwrap();
        let expected = unpacked(&dir.path().join("out/tool-1.0/bin"));
        assert_eq!(below(&tree, "/opt/tool/bin"), expected, "{name}");
        assert!(tree.lookup(b"/opt/tool/lib").is_none());
    }
}

#[test]
fn an_archive_brings_nothing_that_its_layer_excludes() {
    if !have(&["tar"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    sh(dir.path(), "mkdir -p t/bin; echo a >t/bin/a; ln -s a t/bin/b; tar -cf t.tar t");
    let bytes = fs::read(dir.path().join("t.tar")).unwrap();
    for (path, is_there) in [
        ("/opt/tool/bin/a", true),
        ("/opt/tool/bin/b", true),
        ("/opt/tool/bin", true),
        ("/opt/tool/bi", false),
        ("/opt/tool/bin/a/x", false),
        ("/opt/tool/t/bin/a", false),
    ] {
        let keys = format!(r#", "strip": 1, "absent": ["{path}"]"#);
        match bake(&[part("tar.gz", &keys, bytes.clone())]) {
            Ok(_) => assert!(!is_there, "{path}"),
            Err(error) => {
                assert!(is_there && error.contains(&format!("contains \"{path}\", which `absent`")), "{path}: {error}");
            }
        }
    }
}

/// Mode, user and group of what GNU tar 1.34 leaves, run by root over the same files.
#[test]
fn what_a_script_unpacked_is_as_root_unpacks_it() {
    if !have(&["tar"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    sh(
        dir.path(),
        "mkdir -p t/bin t/new; echo a >t/bin/a; ln -s a t/bin/b; chmod 755 t t/new; chmod 700 t/bin; chmod 640 t/bin/a\n\
         pack() { owner=$1; shift; tar --owner=$owner --group=$owner \"$@\"; }\n\
         pack runner:1001 -cf t.tar t; pack daemon:7 -cf named.tar t; pack root:5 -cf root.tar t; pack x:6 --numeric-owner -cf number.tar t\n\
         pack late:9 -cf late.tar t; pack debian:9 -cf cloud.tar t; tar -cf dot.tar -C t .; tar -cf dotted.tar ./t",
    );
    let accounts = [
        ("/etc/passwd", "root:x:0:0::/:/bin/sh\ndaemon:x:1:1::/:/bin/sh\n"),
        ("/etc/group", "root:x:0:\ndaemon:x:2:\n"),
    ];
    let unpack = |name: &str, keys: &str, more: &str| {
        let base =
            base_with(&[accounts.as_slice(), &[("/opt/tool/bin/old", "old"), ("/opt/tool/link/old", "old")]].concat());
        let bytes = fs::read(dir.path().join(name)).unwrap();
        bake_onto(base, &[part("tar.gz", keys, bytes)], more)
    };
    let same = r#", "strip": 1, "extract": "same-owner""#;
    let root = r#", "strip": 1, "extract": "no-same-owner""#;
    for (name, keys, owner) in [
        ("t.tar", same, (1001, 1001)),
        ("named.tar", same, (1, 2)),
        ("root.tar", same, (0, 0)),
        ("number.tar", same, (6, 6)),
        ("t.tar", root, (0, 0)),
        ("late.tar", root, (0, 0)),
    ] {
        let tree = unpack(name, keys, "").unwrap();
        for (path, mode) in [("bin", 0o700), ("bin/a", 0o640), ("bin/b", 0o777), ("new", 0o755)] {
            let meta = &tree.inode(tree.lookup(format!("/opt/tool/{path}").as_bytes()).unwrap()).meta;
            assert_eq!((meta.mode, (meta.uid, meta.gid)), (mode, owner), "{name}: {path}");
        }
    }
    // The root of the archive is that of the directory.
    sh(dir.path(), "chmod 750 t; tar -cf dot.tar -C t .");
    let tree = unpack("dot.tar", r#", "extract": "no-same-owner""#, "").unwrap();
    assert_eq!(tree.inode(tree.lookup(b"/opt/tool").unwrap()).meta.mode, 0o750);
    let late = r#", "groups": {"late": 950}"#;
    for (name, keys, more, expected) in [
        ("late.tar", same, late, r#"tool: opt/tool/bin belongs to the group "late", whose id depends on"#),
        ("cloud.tar", same, "", r#"tool: opt/tool/bin belongs to the user "debian", whose id depends on"#),
        ("dotted.tar", same, "", r#"member "t": name begins with `./`"#),
        ("dotted.tar", r#", "members": ["t"], "extract": "same-owner""#, "", r#"member "t": name begins with `./`"#),
    ] {
        let error = unpack(name, keys, more).unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
    // tar would put a directory in place of the link.
    sh(dir.path(), "mkdir -p u/t/lib; tar -cf lib.tar -C u t");
    let bytes = fs::read(dir.path().join("lib.tar")).unwrap();
    let links = [
        ("links", r#", "symlinks": {"/opt/tool/lib": "bin"}, "directories": {"/opt/tool/bin": {}}"#, &[][..]),
        ("k", "", &[part("tar.gz", same, bytes)]),
    ];
    let error = bake_layers(&links).unwrap_err();
    assert!(error.contains("opt/tool/lib: tool needs a directory, found a symbolic link"), "{error}");
}

#[test]
fn a_file_that_a_script_wrote_in_place_replaces_nothing_else() {
    let bake = |base: Tree, rule: &str| {
        let keys = format!(
            r#", "files": {{"/etc/taken.conf": {{"content": "new"}}}}, "in_place": {{"/etc/taken.conf": {{{rule}}}}}"#
        );
        bake_onto(base, &[], &keys)
    };
    let found = |base: Tree, rule: &str| bake(base, rule).unwrap_err();
    let with_mode = |mode| {
        let mut tree = base();
        let id = tree.lookup(b"/etc/taken.conf").unwrap();
        tree.meta_mut(id).mode = mode;
        tree
    };
    let mut link = base();
    link.remove(b"/etc/taken.conf").unwrap();
    let none = link.clone();
    let (meta, origin) = (Metadata::root(0o777, Timestamp::default()), link.first_origin());
    link.place(b"/etc/taken.conf", Inode { meta, kind: Kind::Symlink(b"passwd".to_vec()), origin }).unwrap();
    for (base, rule, expected) in [
        (
            with_mode(0o600),
            r#""mode": "0644""#,
            "expects a missing path or a file of root with mode 0644, found a regular file with mode 0600",
        ),
        (link, "", "expects a missing path or a file of root, found a symbolic link"),
    ] {
        let error = found(base, rule);
        assert!(error.contains(expected), "{error}");
    }
    // What an archive of the layer has there, too.
    if have(&["tar"]) {
        let dir = tempfile::tempdir().unwrap();
        sh(dir.path(), "mkdir t; echo a >t/run; chmod 755 t/run; tar --owner=root:0 --group=root:0 -cf t.tar t");
        let part =
            part("tar.gz", r#", "strip": 1, "extract": "same-owner""#, fs::read(dir.path().join("t.tar")).unwrap());
        let keys =
            r#", "files": {"/opt/tool/run": {"content": "new"}}, "in_place": {"/opt/tool/run": {"mode": "0644"}}"#;
        let error = bake_onto(base(), std::slice::from_ref(&part), keys).unwrap_err();
        assert!(error.contains("found a regular file with mode 0755"), "{error}");
        bake_onto(base(), &[part], &keys.replace("0644", "0755")).unwrap();
    }
    for (base, rule) in [(base(), r#""mode": "0644""#), (none, r#""mode": "0644""#), (with_mode(0o600), "")] {
        assert_eq!(text(&bake(base, rule).unwrap(), "/etc/taken.conf"), "new");
    }
}

/// What dpkg leaves, run over what a script created before or after.
#[test]
fn a_package_leaves_what_a_script_created() {
    let conffiles = [("conffiles", "/etc/p.conf\n")];
    let bake = |info: &[(&str, &str)], member: Vec<u8>, keys: &str| {
        let deb = deb(&control("pk", ""), info, &[dir("./etc/"), member]);
        bake_onto(base(), &[package("pk", deb)], &format!(", {keys}")).map(|tree| text(&tree, "/etc/p.conf"))
    };
    let own = r#""files": {"/etc/p.conf": {"content": "script"}}"#;
    let earlier = format!(r#"{own}, "before_packages": ["/etc/p.conf"]"#);
    let in_place = |mode: &str| format!(r#"{own}, "in_place": {{"/etc/p.conf": {{"mode": "{mode}"}}}}"#);
    let both = format!(r#"{}, "before_packages": ["/etc/p.conf"], "keep_conffiles": ["pk"]"#, in_place("0600"));
    let keeping = format!(r#"{earlier}, "keep_conffiles": ["pk"]"#);
    let other = format!(r#"{earlier}, "keep_conffiles": ["qq"]"#);
    let new = || file("./etc/p.conf", "package");
    let link = || member(b'2', b"./etc/p.conf", b"passwd", b"");
    for (info, member, keys, expected) in [
        (&conffiles[..], new(), &keeping, Ok("script")),
        (&conffiles[..], new(), &both, Ok("script")),
        (&conffiles[..], new(), &earlier, Err("but it is a conffile of pk: dpkg would prompt")),
        (&conffiles[..], new(), &other, Err("dpkg would prompt")),
        (&[][..], new(), &in_place("0644"), Ok("script")),
        (&[][..], new(), &earlier, Err("writes it before installing packages, but pk contains a regular file there")),
        (&[][..], link(), &earlier, Err("but pk contains a symbolic link there")),
        (&[][..], new(), &in_place("0600"), Err("with mode 0600, found a regular file with mode 0644")),
        (&[][..], link(), &in_place("0644"), Err("found a symbolic link with mode")),
    ] {
        match (bake(info, member, keys), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{keys}"),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{keys}: {found}"),
            (found, _) => panic!("{keys}: {found:?}, expected {expected:?}"),
        }
    }
    let directory = r#""before_packages": ["/etc/d"], "directories": {"/etc/d": {}}"#;
    let bake = |mode: u32| {
        let members = [dir("./etc/"), with_mode(dir("./etc/d/"), mode)];
        bake_onto(base(), &[package("p", deb(&control("p", ""), &[], &members))], &format!(", {directory}"))
    };
    assert!(bake(0o755).is_ok());
    assert!(bake(0o700).unwrap_err().contains("p contains a directory there, which replaces or changes it"));
}

#[test]
fn hard_links_stay_one_file() {
    if !have(&["tar"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    sh(dir.path(), "mkdir -p t/bin; echo python >t/bin/python3; ln t/bin/python3 t/bin/python; tar -cf t.tar t");
    let tree = bake(&[part("tar.gz", r#", "strip": 1"#, fs::read(dir.path().join("t.tar")).unwrap())]).unwrap();
    let [first, second] = ["/opt/tool/bin/python", "/opt/tool/bin/python3"].map(|path| tree.lookup(path.as_bytes()));
    assert!(first.is_some() && first == second);
}

#[test]
fn a_compressed_file_becomes_what_is_inside() {
    if !have(&["gzip", "xz", "zstd", "bzip2"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tool"), "a program").unwrap();
    let file = |kind, decompress, bytes| {
        let install = format!(r#"{{"type": "file", "path": "/opt/tool", "mode": "0755"{decompress}}}"#);
        Part { name: "tool", kind, install, bytes }
    };
    let decompress = r#", "decompress": true"#;
    for program in ["gzip", "xz", "zstd -q", "bzip2"] {
        sh(dir.path(), &format!("{program} -c tool >packed"));
        let bytes = fs::read(dir.path().join("packed")).unwrap();
        let tree = bake(&[file("compressed", decompress, bytes.clone())]).unwrap();
        assert_eq!(text(&tree, "/opt/tool"), "a program", "{program}");
        let error = bake(&[file("binary", decompress, bytes.clone())]).unwrap_err();
        assert!(error.contains("the layer has `decompress`, but its type in the manifest is \"binary\""), "{error}");
        // Unchanged without `decompress`.
        let tree = bake(&[file("binary", "", bytes.clone())]).unwrap();
        assert_eq!(tree.read(b"/opt/tool", 1 << 20).unwrap(), bytes);
        assert_eq!(tree.inode(tree.lookup(b"/opt/tool").unwrap()).meta.mode, 0o755);
        let error = bake(&[file("compressed", decompress, bytes[..bytes.len() - 6].to_vec())]).unwrap_err();
        assert!(error.contains("cannot decompress"), "{program}: {error}");
    }
    let error = bake(&[file("compressed", decompress, b"plain".to_vec())]).unwrap_err();
    assert!(error.contains("is not compressed with gzip, xz, Zstandard or bzip2"), "{error}");
}

#[test]
fn a_directory_has_the_mode_that_its_last_member_says() {
    if !have(&["tar", "zip"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    sh(
        dir.path(),
        "mkdir -p t/d; echo x >t/d/f; chmod 700 t/d; tar -cf late.tar --no-recursion t/d/f t/d; zip -q late.zip t/d/f t/d",
    );
    sh(dir.path(), "mkdir -p a/d b/d; chmod 700 b/d; tar -cf equal.tar a/d b/d");
    for (name, kind) in [("late.tar", "tar.gz"), ("late.zip", "zip"), ("equal.tar", "tar.gz")] {
        let bytes = fs::read(dir.path().join(name)).unwrap();
        let tree = bake(&[part(kind, r#", "strip": 1"#, bytes)]).unwrap();
        assert_eq!(tree.inode(tree.lookup(b"/opt/tool/d").unwrap()).meta.mode, 0o700, "{name}");
    }
}

#[test]
fn links_of_zip_files_have_long_names() {
    if !have(&["zip"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let long = format!("{}/{}", "d".repeat(70), "l".repeat(70));
    fs::create_dir(dir.path().join("d".repeat(70))).unwrap();
    symlink("t".repeat(150), dir.path().join(&long)).unwrap();
    sh(dir.path(), "zip -qry t.zip d*");
    let tree = bake(&[part("zip", "", fs::read(dir.path().join("t.zip")).unwrap())]).unwrap();
    assert_eq!(link(&tree, &format!("/opt/tool/{long}")), "t".repeat(150));
}

#[test]
fn other_forms_are_refused_by_name() {
    for (start, expected) in [
        (&b"7z\xbc\xaf\x27\x1c\0\0"[..], "is a 7-Zip archive"),
        (b"Rar!\x1a\x07\x01\0", "is a RAR archive"),
        (b"PK\x03\x04....", "is a zip file"),
        (b"!<arch>\ndebian-binary", "is a Debian package"),
        (b"\x04\x22\x4d\x18....", "compressed with LZ4"),
    ] {
        let error = bake(&[part("tar.gz", "", start.to_vec())]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

/// A zip file by Python's library, from lines of code that have `z` open for writing.
fn zip_by_python(code: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let program = format!(
        "import zipfile, warnings\nwarnings.simplefilter('ignore')\nI = zipfile.ZipInfo\n\
         with zipfile.ZipFile('t.zip', 'w', zipfile.ZIP_DEFLATED) as z:\n{}\n",
        code.lines().map(|line| format!("    {line}\n")).collect::<String>()
    );
    let ran = Command::new("/usr/bin/python3").args(["-c", &program]).current_dir(dir.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    fs::read(dir.path().join("t.zip")).unwrap()
}

#[test]
fn hostile_zip_files_are_refused() {
    if !Path::new("/usr/bin/python3").exists() && !have(&["/usr/bin/python3"]) {
        return;
    }
    for (code, expected) in [
        ("z.writestr('../evil', 'x')", "name contains `..`"),
        ("z.writestr('/etc/passwd', 'x')", "name is absolute"),
        ("z.writestr('a', 'x')\nz.writestr('a', 'y')", "is duplicated"),
        (
            "i = I('l')\ni.create_system = 3\ni.external_attr = 0o120777 << 16\nz.writestr(i, '/etc')\nz.writestr('l/passwd', 'x')",
            "symbolic link \"l\"",
        ),
        (
            "i = I('p')\ni.create_system = 3\ni.external_attr = 0o010644 << 16\nz.writestr(i, '')",
            "is not a file, directory or symbolic link: mode 10644",
        ),
        (
            "i = I('s')\ni.create_system = 3\ni.external_attr = 0o104755 << 16\nz.writestr(i, 'x')",
            "contains it with mode 4755",
        ),
        ("i = I('b')\ni.compress_type = zipfile.ZIP_BZIP2\nz.writestr(i, 'x')", "compression method 12"),
        ("i = I('x')\ni.filename = 'a\\\\b'\nz.writestr(i, 'x')", "backslash"),
        ("i = I('d')\ni.create_system = 0\ni.external_attr = 0x10\nz.writestr(i, '')", "is marked as a directory"),
        (
            "i = I('a_')\ni.extra = b'up\\x08\\x00\\x01' + bytes(4) + 'ä_'.encode()\nz.writestr(i, 'x')",
            "has the name \"ä_\"",
        ),
        ("z.writestr('zeros', bytes(80 << 20))", "refused as a decompression bomb"),
    ] {
        let error = bake(&[part("zip", "", zip_by_python(code))]).unwrap_err();
        assert!(error.contains(expected), "{code}: {error}");
    }
}

#[test]
fn damaged_zip_files_are_refused() {
    if !Path::new("/usr/bin/python3").exists() && !have(&["/usr/bin/python3"]) {
        return;
    }
    let good = zip_by_python("z.writestr('tool', 'a program ' * 100)\nz.writestr('other', 'x')");
    bake(&[part("zip", "", good.clone())]).unwrap();
    let place = |what: &[u8]| good.windows(what.len()).position(|bytes| bytes == what).unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] ^= byte;
        bytes
    };
    let directory = place(b"PK\x01\x02");
    for (what, bytes) in [
        ("cut short", good[..good.len() - 1].to_vec()),
        ("bytes behind", [&good[..], b"more"].concat()),
        ("bytes before", [b"more", &good[..]].concat()),
        ("content", with(place(b"tool") + 10, 0xff)),
        ("its sum", with(directory + 16, 1)),
        ("its length", with(directory + 24, 1)),
        ("another name before the content", with(place(b"tool"), 1)),
        ("encrypted", with(directory + 8, 1)),
        ("one member more", with(good.len() - 12, 1)),
        ("empty", Vec::new()),
    ] {
        assert!(bake(&[part("zip", "", bytes)]).is_err(), "{what}");
    }
}
