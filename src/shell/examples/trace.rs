//! `trace ROOT LIST STUBS`: runs maintainer scripts over a tree that has the files of ROOT each and prints the calls of the commands that the interpreter leaves to its caller,
//! for `tests/test_scripts.py`. Each line of LIST is `SCRIPT ARGUMENT…`, separated by tabs. A call is written as the stubs of
//! that check write it, and has status 0.
#![allow(missing_docs, reason = "a program")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use vmbake_disk::source::{FileSource, Map};
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};
use vmbake_shell::{Call, Commands, Host, Outcome, Script, Settings, TreeFiles, parses, run};

/// Of larger files, which no script changes, only the length is told.
const LARGEST: u64 = 100_000;

type Failure = Box<dyn std::error::Error>;

/// Commands that are stubs in the check; a file of one name a line.
struct Stubs {
    names: Vec<Vec<u8>>,
    log: Vec<String>,
}

impl Commands for Stubs {
    fn run(&mut self, call: &mut Call<'_>) -> Option<Outcome> {
        if !self.names.iter().any(|name| name == call.base_name()) {
            return None;
        }
        let words = [&[call.base_name().to_vec()][..], call.args].concat();
        self.log.push(words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join("\u{1f}"));
        Some(Outcome::Status(0))
    }

    fn machine(&self) -> Option<&'static str> {
        Some(std::env::consts::ARCH)
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (Some(root), Some(list), Some(stubs)) = (args.next(), args.next(), args.next()) else {
        eprintln!("trace ROOT LIST STUBS");
        return ExitCode::FAILURE;
    };
    match all(Path::new(&root), Path::new(&list), Path::new(&stubs)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn all(root: &Path, list: &Path, stubs: &Path) -> Result<(), Failure> {
    let names: Vec<Vec<u8>> = std::fs::read_to_string(stubs)?.lines().map(|name| name.as_bytes().to_vec()).collect();
    let tree = tree(root)?;
    let mut out = std::io::stdout().lock();
    for line in std::fs::read_to_string(list)?.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [script, args @ ..] = &fields[..] else { return Err("LIST: too few fields".into()) };
        writeln!(out, "=== {script} {}", args.join(" "))?;
        one(&mut out, Path::new(script), tree.clone(), args, &names)?;
    }
    Ok(())
}

fn one(out: &mut impl Write, path: &Path, mut tree: Tree, args: &[&str], names: &[Vec<u8>]) -> Result<(), Failure> {
    let source = std::fs::read(path)?;
    let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
    let script = Script { name: "/.script", source: &source, args: &args };
    if let Err(error) = parses(&script) {
        writeln!(out, "syntax\t{error}")?;
    }
    let origin = tree.first_origin();
    let mut files = TreeFiles::new(&mut tree, Timestamp::default(), origin);
    let mut stubs = Stubs { names: names.to_vec(), log: Vec::new() };
    let mut host = Host { files: &mut files, commands: &mut stubs };
    let mut settings = Settings::default();
    for (key, value) in [
        ("DPKG_MAINTSCRIPT_PACKAGE", "package"),
        ("DPKG_MAINTSCRIPT_NAME", "postinst"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("LC_ALL", "C"),
        ("HOME", "/root"),
    ] {
        settings.environment.insert(key.into(), value.into());
    }
    let result = run(&script, &mut host, &settings);
    for call in stubs.log {
        writeln!(out, "call\t{call}")?;
    }
    match result {
        Ok(finished) => {
            writeln!(out, "stdout\t{}", finished.stdout.escape_ascii())?;
            writeln!(out, "stderr\t{}", finished.stderr.escape_ascii())?;
            writeln!(out, "status\t{}", finished.status)?;
            files_of(out, &tree)?;
        }
        Err(error) => writeln!(out, "error\t{error}")?,
    }
    Ok(())
}

/// Every path of the tree, as the check lists those of its chroot.
fn files_of(out: &mut impl Write, tree: &Tree) -> Result<(), Failure> {
    for (path, _, inode) in tree.walk().skip(1) {
        let (meta, kind) = (&inode.meta, &inode.kind);
        let text = match kind {
            Kind::Directory(_) => "directory".to_owned(),
            Kind::Symlink(target) => format!("link {}", target.escape_ascii()),
            Kind::File(map) if map.len() > LARGEST => format!("file of {} bytes", map.len()),
            Kind::File(_) => {
                let digest = Sha256::digest(tree.read(&path, LARGEST)?);
                format!("file {}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
            }
            other => other.name().to_owned(),
        };
        let mode = if matches!(kind, Kind::Symlink(_)) { 0o777 } else { meta.mode };
        writeln!(out, "file\t{}\t{mode:o} {}:{}\t{text}", path.escape_ascii(), meta.uid, meta.gid)?;
    }
    Ok(())
}

/// The files of a directory of the host.
fn tree(root: &Path) -> Result<Tree, Failure> {
    let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
    fill(&mut tree, root, "")?;
    Ok(tree)
}

fn fill(tree: &mut Tree, dir: &Path, prefix: &str) -> Result<(), Failure> {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::MetadataExt;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let found = entry.path().symlink_metadata()?;
        let path = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        let kind = if found.is_dir() {
            Kind::directory()
        } else if found.is_symlink() {
            Kind::Symlink(std::fs::read_link(entry.path())?.into_os_string().into_vec())
        } else {
            let source = tree.sources_mut().add(Arc::new(FileSource::new(File::open(entry.path())?)?));
            Kind::File(Map::whole(source, 0, found.len()))
        };
        let mut meta = Metadata::root(u16::try_from(found.mode() & 0o7777)?, Timestamp::default());
        (meta.uid, meta.gid) = (found.uid(), found.gid());
        let directory = found.is_dir();
        let origin = tree.first_origin();
        tree.place(path.as_bytes(), Inode { meta, kind, origin })?;
        if directory {
            fill(tree, &entry.path(), &path)?;
        }
    }
    Ok(())
}
