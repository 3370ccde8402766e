//! Creates ELF files and small trees.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vmbake_disk::source::{Map, ReadAt, Sources};
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, OriginId, Timestamp, Tree};
use vmbake_image::elf::{Elf, ElfError};

pub const X86_64: u16 = 62;
pub const AARCH64: u16 = 183;

/// The architecture of this machine as Debian names it, and its number.
pub fn host() -> (&'static str, u16) {
    match std::env::consts::ARCH {
        "x86_64" => ("amd64", X86_64),
        "aarch64" => ("arm64", AARCH64),
        other => panic!("{other}"),
    }
}

/// What a file that is made says.
#[derive(Clone)]
pub struct Make {
    pub class: u8,
    pub data: u8,
    pub machine: u16,
    pub e_type: u16,
    pub interpreter: Option<&'static str>,
    pub needed: Vec<&'static str>,
    pub soname: Option<&'static str>,
    pub rpath: Option<&'static str>,
    pub runpath: Option<&'static str>,
    pub isa: Option<u32>,
}

/// A shared object for x86-64 that needs these libraries.
pub fn library(needed: &[&'static str]) -> Make {
    Make {
        class: 2,
        data: 1,
        machine: X86_64,
        e_type: 3,
        interpreter: None,
        needed: needed.to_vec(),
        soname: None,
        rpath: None,
        runpath: None,
        isa: None,
    }
}

/// A program for x86-64 that needs these libraries.
pub fn program(needed: &[&'static str]) -> Make {
    Make { interpreter: Some("/lib64/ld-linux-x86-64.so.2"), ..library(needed) }
}

/// Where the parts of a made file are: the program headers, the dynamic section, and its end.
pub struct Places {
    pub headers: usize,
    pub dynamic: usize,
    pub end: usize,
}

impl Make {
    pub fn bytes(&self) -> Vec<u8> {
        self.build().0
    }

    fn number(&self, bytes: &mut Vec<u8>, value: u64, len: usize) {
        match self.data {
            1 => bytes.extend(&value.to_le_bytes()[..len]),
            _ => bytes.extend(&value.to_be_bytes()[8 - len..]),
        }
    }

    /// The file: header, five program headers, interpreter, strings, property, dynamic section. Addresses are offsets.
    pub fn build(&self) -> (Vec<u8>, Places) {
        let word = if self.class == 2 { 8 } else { 4 };
        let (header, entry) = if self.class == 2 { (64, 56) } else { (52, 32) };
        let mut content = Vec::new();
        let start = header + 4 * entry;
        let interpreter = start;
        content.extend(self.interpreter.unwrap_or_default().bytes());
        content.push(0);
        let mut strings = vec![0];
        let mut tags = Vec::new();
        let named = [(14, self.soname), (15, self.rpath), (29, self.runpath)];
        let named = named.into_iter().filter_map(|(tag, name)| Some((tag, name?)));
        for (tag, name) in self.needed.iter().map(|name| (1, *name)).chain(named) {
            tags.push((tag, strings.len() as u64));
            strings.extend(name.bytes().chain([0]));
        }
        let strtab = start + content.len();
        tags.extend([(5, strtab as u64), (10, strings.len() as u64), (0, 0)]);
        content.extend(strings);
        content.resize((start + content.len()).next_multiple_of(8) - start, 0);
        let property = start + content.len();
        let mut note = Vec::new();
        if let Some(bits) = self.isa {
            let numbers = [4, 8 + word as u64, 5];
            numbers.iter().for_each(|value| self.number(&mut note, *value, 4));
            note.extend(b"GNU\0");
            [0xc000_8002, 4, u64::from(bits)].iter().for_each(|value| self.number(&mut note, *value, 4));
            note.resize(note.len().next_multiple_of(word), 0);
        }
        content.extend(&note);
        let dynamic = start + content.len();
        for (tag, value) in &tags {
            self.number(&mut content, *tag, word);
            self.number(&mut content, *value, word);
        }
        let end = start + content.len();

        let mut bytes = [b"\x7fELF", &[self.class, self.data, 1][..], &[0; 9]].concat();
        for (value, len) in [(self.e_type.into(), 2), (self.machine.into(), 2), (1, 4), (0, word), (header, word)] {
            self.number(&mut bytes, value as u64, len);
        }
        for (value, len) in [(0, word), (0, 4), (header, 2), (entry, 2), (4, 2), (0, 2), (0, 2), (0, 2)] {
            self.number(&mut bytes, value as u64, len);
        }
        let present = |yes: bool, p_type: u64| if yes { p_type } else { 0 };
        for (p_type, at, len, align) in [
            (present(self.interpreter.is_some(), 3), interpreter, self.interpreter.unwrap_or_default().len() + 1, 1),
            (1, 0, end, 4096),
            (2, dynamic, end - dynamic, word),
            (present(self.isa.is_some(), 0x6474_e553), property, note.len(), word),
        ] {
            let (at, len, align) = (at as u64, len as u64, align as u64);
            let fields = match self.class {
                2 => vec![(p_type, 4), (4, 4), (at, 8), (at, 8), (at, 8), (len, 8), (len, 8), (align, 8)],
                _ => vec![(p_type, 4), (at, 4), (at, 4), (at, 4), (len, 4), (len, 4), (4, 4), (align, 4)],
            };
            fields.into_iter().for_each(|(value, len)| self.number(&mut bytes, value, len));
        }
        assert_eq!(bytes.len(), start);
        bytes.extend(content);
        (bytes, Places { headers: header, dynamic, end })
    }
}

/// Bytes that count how many of them were read.
pub struct Counted {
    pub inner: Arc<dyn ReadAt>,
    pub read: AtomicU64,
}

impl ReadAt for Counted {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.inner.read_exact_at(buf, offset)
    }
}

/// Reads an ELF file; tells how many of its bytes that took.
pub fn read_counted(source: Arc<dyn ReadAt>) -> (Result<Option<Elf>, ElfError>, u64) {
    let counted = Arc::new(Counted { inner: source, read: AtomicU64::new(0) });
    let mut sources = Sources::default();
    let id = sources.add(counted.clone());
    let result = Elf::read(&Map::whole(id, 0, counted.len()), &sources);
    (result, counted.read.load(Ordering::Relaxed))
}

pub fn read(bytes: &[u8]) -> Result<Option<Elf>, ElfError> {
    read_counted(Arc::new(bytes.to_vec())).0
}

/// A tree that is being filled.
pub struct Image {
    pub tree: Tree,
    origin: OriginId,
}

impl Image {
    /// An empty one, to be filled with the base's files.
    pub fn new() -> Self {
        let origin = Origin { layer: "base".to_owned(), ..Origin::default() };
        let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), origin.clone());
        let origin = tree.add_origin(origin);
        Self { tree, origin }
    }

    /// From now on files are of this artifact.
    pub fn artifact(mut self, name: &str) -> Self {
        let artifact = Some(name.to_owned());
        self.origin = self.tree.add_origin(Origin { layer: "k".to_owned(), artifact, digest: None });
        self
    }

    pub fn file(mut self, path: &str, mode: u16, content: impl Into<Vec<u8>>) -> Self {
        let content = content.into();
        let len = content.len() as u64;
        let source = self.tree.sources_mut().add(Arc::new(content));
        self.place(path, mode, Kind::File(Map::whole(source, 0, len)));
        self
    }

    pub fn link(mut self, path: &str, target: &str) -> Self {
        self.place(path, 0o777, Kind::Symlink(target.as_bytes().to_vec()));
        self
    }

    fn place(&mut self, path: &str, mode: u16, kind: Kind) {
        let above = Path::new(path).parent().unwrap().to_str().unwrap();
        self.tree.make_dirs(above.as_bytes(), &Metadata::root(0o755, Timestamp::default()), self.origin).unwrap();
        let inode = Inode { meta: Metadata::root(mode, Timestamp::default()), kind, origin: self.origin };
        self.tree.place(path.as_bytes(), inode).unwrap();
    }

    /// Everything in the directory `below` of `root`, at its path below there.
    pub fn directory(mut self, root: &Path, below: &str) -> Self {
        let below = below.trim_start_matches('/');
        let mut entries: Vec<_> = fs::read_dir(root.join(below)).unwrap().map(|entry| entry.unwrap()).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = format!("{below}/{}", entry.file_name().to_str().unwrap());
            let path = path.trim_start_matches('/').to_owned();
            let meta = entry.metadata().unwrap();
            let mode = u16::try_from(meta.permissions().mode() & 0o7777).unwrap();
            let at = format!("/{path}");
            if meta.is_dir() {
                self.place(&at, mode, Kind::directory());
                self = self.directory(root, &path);
            } else if meta.is_symlink() {
                self = self.link(&at, fs::read_link(entry.path()).unwrap().to_str().unwrap());
            } else {
                self = self.file(&at, mode, fs::read(entry.path()).unwrap());
            }
        }
        self
    }
}

/// Runs a program to its end and returns what it printed; it must succeed.
pub fn run(program: &str, args: &[&str]) -> String {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(args).env("PATH", path).env("LC_ALL", "C").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}
