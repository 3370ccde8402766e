//! Makes archives and packages, good and bad, and a small base, and bakes them into a tree.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{Seek, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use vmbake::bake::inputs::prepare;
use vmbake::catalog::Catalog;
use vmbake::compose::merge::{ContentFault, MergeError};
use vmbake::compose::stage::Plan;
use vmbake::digest::Digest;
use vmbake::fetch::verify::{Verified, check};
use vmbake::fetch::{Supply, fetch, open_base_file};
use vmbake::hint::Hint;
use vmbake::layer::Layers;
use vmbake::manifest::Manifest;
use vmbake::pin::anchors::Anchors;
use vmbake::pin::sources::Sources;
use vmbake::progress::Progress;
use vmbake::supply::store::Store;
use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

/// One artifact: its name, its type in the manifest, how the layer installs it, and its bytes.
pub struct Part {
    pub name: &'static str,
    pub kind: &'static str,
    pub install: String,
    pub bytes: Vec<u8>,
}

/// A package.
pub fn package(name: &'static str, bytes: Vec<u8>) -> Part {
    Part { name, kind: "deb", install: r#"{"type": "deb"}"#.to_owned(), bytes }
}

/// An archive that goes to `/opt`.
pub fn archive(name: &'static str, bytes: Vec<u8>) -> Part {
    Part { name, kind: "tar.gz", install: r#"{"type": "tar", "path": "/opt"}"#.to_owned(), bytes }
}

/// A program that becomes the file `path`.
pub fn program(name: &'static str, path: &str) -> Part {
    let install = format!(r#"{{"type": "file", "path": "{path}", "mode": "0755"}}"#);
    Part { name, kind: "binary", install, bytes: name.as_bytes().to_vec() }
}

/// Bakes the parts onto the base, as far as the tree; any stage's error comes with all its causes.
pub fn bake(parts: &[Part]) -> Result<Tree, String> {
    bake_onto(base(), parts, "")
}

/// Bakes the parts onto a base, with more keys for the layer that installs them, from the comma on.
pub fn bake_onto(base: Tree, parts: &[Part], keys: &str) -> Result<Tree, String> {
    run(base, &[("k", keys, parts)]).map_err(|error| chain(error.as_ref()))
}

/// Bakes layers, each of which requires the one before it: name, more keys, parts.
pub fn bake_layers(layers: &[(&str, &str, &[Part])]) -> Result<Tree, String> {
    run(base(), layers).map_err(|error| chain(error.as_ref()))
}

/// As [`bake_layers`], onto another base.
pub fn bake_layers_onto(base: Tree, layers: &[(&str, &str, &[Part])]) -> Result<Tree, String> {
    run(base, layers).map_err(|error| chain(error.as_ref()))
}

/// The file that stops a bake of the parts, and what is wrong with it.
pub fn refused(base: Tree, parts: &[Part], keys: &str) -> (String, ContentFault) {
    let error = run(base, &[("k", keys, parts)]).map(|_| ()).unwrap_err();
    match *error.downcast::<MergeError>().unwrap() {
        MergeError::Content { path, fault } => (path, fault),
        other => panic!("{other}"),
    }
}

/// What the user is told to do about what stops a bake of the parts.
pub fn hint(parts: &[Part], keys: &str) -> Option<String> {
    let error = run(base(), &[("k", keys, parts)]).map(|_| ()).unwrap_err();
    error.downcast::<MergeError>().unwrap().hint()
}

fn run(base: Tree, layers: &[(&str, &str, &[Part])]) -> Result<Tree, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(Some(dir.path().join("store"))).unwrap();
    let mut dependencies = Vec::new();
    let mut requires = String::new();
    for (layer, more, parts) in [("hygiene", "", &[][..])].iter().chain(layers) {
        let mut installs = Vec::new();
        for Part { name, kind, install, bytes } in *parts {
            let (digest, size) = (Digest::of(bytes), bytes.len());
            fs::create_dir_all(store.path(&digest).parent().unwrap())?;
            fs::write(store.path(&digest), bytes)?;
            dependencies.push(format!(
                r#""{name}": {{"version": "1", "url": "u", "type": "{kind}", "digest": "{digest}", "size": {size}}}"#
            ));
            installs.push(format!(r#""{name}": {install}"#));
        }
        let rest = format!(r#", "requires": [{requires}], "artifacts": {{{}}}{more}"#, installs.join(", "));
        let folder = dir.path().join("layers").join(layer);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("layer.json"), layer_json(layer, &rest))?;
        if *layer != "hygiene" {
            requires = format!("{layer:?}");
        }
    }
    let top = layers.last().map_or("hygiene", |(name, ..)| name);
    let manifest = format!(
        r#"{{"vmconfig": {{"version": "dev", "kind": "{top}", "os": {{"name": "o", "arch": "amd64"}},
        "dependencies": {{{}}}}}}}"#,
        dependencies.join(", ")
    );
    let manifest = Manifest::parse(Path::new("manifest"), manifest.into_bytes())?;
    let layers = Layers::load(&Catalog::only(dir.path().join("layers")))?.resolve(top, "o")?;
    let (sources, threads) = (Sources::load(&Catalog::built_in())?, NonZeroUsize::MIN);
    let supply = Supply { store: &store, sources: &sources, anchors: &Anchors::default(), client: None, threads };
    let fetched = fetch(&manifest, &supply, &Progress::new(true))?;
    // Its disk is not asked for: the tree is given.
    fs::write(dir.path().join("base"), [0; 512])?;
    let base_file = open_base_file(&manifest, &dir.path().join("base"))?;
    let Verified { artifacts, base: base_file, .. } = check(fetched, base_file, &store, threads)?;
    let (staged, _) = prepare(Plan::new(layers, &manifest)?, artifacts, base_file, None, &store, threads)?;
    let epoch = Timestamp { secs: 1_700_000_000, nanos: 0 };
    Ok(vmbake::compose::merge::merge(base, staged, &manifest, &BTreeMap::new(), epoch)?.tree)
}

/// The text of a layer's description; `rest` are more keys, from the comma on.
pub fn layer_json(name: &str, rest: &str) -> String {
    format!(r#"{{"name": "{name}", "version": "1", "description": "d", "os": ["o"]{rest}}}"#)
}

/// An error with all its causes.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The status file of the base.
pub const BASE_STATUS: &str = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.41-12\n\
    Provides: libc-dev-virtual (= 3)\n\nPackage: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\n\
    Version: 1\n\nPackage: wall\nStatus: install ok installed\nArchitecture: all\nVersion: 1\nBreaks: fragile (<< 2)\n\n";

/// A base with accounts, dpkg's state, a shell, and `/lib` and `/bin` as links into `/usr`.
pub fn base() -> Tree {
    let meta = Metadata::root(0o755, Timestamp::default());
    let mut tree = Tree::new(meta.clone(), Origin { layer: "base".to_owned(), ..Origin::default() });
    let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
    for dir in ["/etc", "/usr/bin", "/usr/lib", "/var/lib/dpkg/info"] {
        tree.make_dirs(dir.as_bytes(), &meta, origin).unwrap();
    }
    for (path, target) in [("/lib", "usr/lib"), ("/bin", "usr/bin")] {
        let kind = Kind::Symlink(target.as_bytes().to_vec());
        tree.place(path.as_bytes(), Inode { meta: meta.clone(), kind, origin }).unwrap();
    }
    for (path, text) in [
        ("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"),
        ("/etc/group", "root:x:0:\n"),
        ("/etc/taken.conf", "mine\n"),
        ("/usr/bin/sh", "the shell of scripts"),
        ("/usr/lib/os-release", "ID=debian\n"),
        ("/var/lib/dpkg/status", BASE_STATUS),
    ] {
        let source = tree.sources_mut().add(Arc::new(text.as_bytes().to_vec()));
        let kind = Kind::File(Map::whole(source, 0, text.len() as u64));
        tree.place(path.as_bytes(), Inode { meta: Metadata::root(0o644, meta.mtime), kind, origin }).unwrap();
    }
    tree
}

/// The base with more files, or with other text in those that it has.
pub fn base_with(files: &[(&str, &str)]) -> Tree {
    let mut tree = base();
    let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
    let meta = Metadata::root(0o755, Timestamp::default());
    for (path, text) in files {
        let source = tree.sources_mut().add(Arc::new(text.as_bytes().to_vec()));
        let kind = Kind::File(Map::whole(source, 0, text.len() as u64));
        tree.make_dirs(path.rsplit_once('/').unwrap().0.as_bytes(), &meta, origin).unwrap();
        tree.place(path.as_bytes(), Inode { meta: Metadata::root(0o644, meta.mtime), kind, origin }).unwrap();
    }
    tree
}

/// The text of a file of the tree.
pub fn text(tree: &Tree, path: &str) -> String {
    String::from_utf8(tree.read(path.as_bytes(), 1 << 20).unwrap()).unwrap()
}

/// Where a symbolic link of the tree points to.
pub fn link(tree: &Tree, path: &str) -> String {
    match &tree.inode(tree.lookup(path.as_bytes()).unwrap()).kind {
        Kind::Symlink(target) => String::from_utf8(target.clone()).unwrap(),
        other => panic!("{path}: {}", other.name()),
    }
}

/// One member of a tar archive, as any hostile program could write it.
pub fn member(kind: u8, name: &[u8], link: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
    header.set_mode(if kind == b'5' { 0o755 } else { 0o644 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1_600_000_000);
    header.set_size(content.len() as u64);
    header.set_entry_type(tar::EntryType::new(kind));
    if kind == b'S' {
        let gnu = header.as_gnu_mut().unwrap();
        (gnu.realsize, gnu.sparse[0].numbytes) = (*b"00000010000\0", *b"00000000000\0");
        gnu.sparse[0].offset = *b"00000010000\0";
    }
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// The same member with another mode and owner.
pub fn owned(mut member: Vec<u8>, mode: u32, uid: u64, gid: u64) -> Vec<u8> {
    let mut header = tar::Header::from_byte_slice(&member[..512]).clone();
    header.set_mode(mode);
    header.set_uid(uid);
    header.set_gid(gid);
    header.set_cksum();
    member[..512].copy_from_slice(header.as_bytes());
    member
}

/// A regular file.
pub fn file(name: &str, content: &str) -> Vec<u8> {
    member(b'0', name.as_bytes(), b"", content.as_bytes())
}

/// A directory.
pub fn dir(name: &str) -> Vec<u8> {
    member(b'5', name.as_bytes(), b"", b"")
}

/// A member with another mode.
pub fn with_mode(mut member: Vec<u8>, mode: u32) -> Vec<u8> {
    let mut header = tar::Header::from_byte_slice(&member[..512]).clone();
    header.set_mode(mode);
    header.set_cksum();
    member[..512].copy_from_slice(header.as_bytes());
    member
}

/// A pax header with one record, for the member after it.
pub fn pax(key: &str, value: &[u8]) -> Vec<u8> {
    record(b'x', key, value)
}

/// A pax header with one record, for all members after it.
pub fn global(key: &str, value: &[u8]) -> Vec<u8> {
    record(b'g', key, value)
}

fn record(kind: u8, key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let len = (rest + 1..).find(|len| len.to_string().len() + rest == *len).unwrap();
    member(kind, b"PaxHeaders/x", b"", &[format!("{len} {key}=").as_bytes(), value, b"\n"].concat())
}

/// An archive of members, with the two empty blocks at its end.
pub fn tar(members: &[Vec<u8>]) -> Vec<u8> {
    [members.concat(), vec![0; 1024]].concat()
}

/// Compresses bytes in the format of that file name extension.
pub fn compress(format: &str, bytes: &[u8]) -> Vec<u8> {
    match format {
        "gz" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "xz" => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "zst" => zstd::encode_all(bytes, 1).unwrap(),
        other => panic!("{other}"),
    }
}

/// A control file for a package of that name, with more lines.
pub fn control(name: &str, more: &str) -> String {
    format!(
        "Package: {name}\nVersion: 1.0-1\nArchitecture: amd64\nMaintainer: M <m@example.org>\n{more}Description: d\n"
    )
}

/// A package from its control file, other control files, and the members of its data.
pub fn deb(control: &str, info: &[(&str, &str)], data: &[Vec<u8>]) -> Vec<u8> {
    let mut files = vec![dir("./"), file("./control", control)];
    files.extend(info.iter().map(|(name, text)| file(&format!("./{name}"), text)));
    let control = compress("xz", &tar(&files));
    ar(&[("debian-binary", b"2.0\n"), ("control.tar.xz", &control), ("data.tar.xz", &compress("xz", &tar(data)))])
}

/// An ar archive.
pub fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = ar::Builder::new(Vec::new());
    for (name, bytes) in members {
        builder.append(&ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64), *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

/// A temporary file with that content.
pub fn temporary(bytes: &[u8]) -> fs::File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}
