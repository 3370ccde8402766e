//! `vmbake ls` and `vmbake cat`: files of an image, without mounting it.

use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::source::MapReader;
use vmbake_disk::tree::{Inode, InodeId, Kind, Tree, TreeError, components, permissions};

use super::{Failure, Outcome, READABLE};
use vmbake_common::escape;
use vmbake_image::disk::InspectError;
use vmbake_image::inspect::{open_some, open_tree};

const LS_EXAMPLES: &str = "\
Examples:
  vmbake ls dist/node.debian-13.amd64.qcow2 /etc
  vmbake ls dist/node.debian-13.amd64.qcow2 / -R --json
  vmbake ls disk.raw --partition 15               # the EFI system partition";

#[derive(Debug, Args)]
#[command(after_help = LS_EXAMPLES)]
pub(super) struct LsArgs {
    #[arg(help = format!("Disk image, {READABLE}"))]
    image: PathBuf,
    /// File or directory
    #[arg(default_value = "/")]
    path: PathBuf,
    /// Partition number; 0 for a file system without a partition table [default: the root partition]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// List directories recursively
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Interpret \xNN in PATH as a byte, as in `escaped_path` of --json
    #[arg(long)]
    escaped: bool,
}

const CAT_EXAMPLES: &str = "\
Examples:
  vmbake cat dist/node.debian-13.amd64.qcow2 /etc/os-release
  vmbake cat disk.raw --escaped '/var/log/caf\\xe9'";

#[derive(Debug, Args)]
#[command(after_help = CAT_EXAMPLES)]
pub(super) struct CatArgs {
    #[arg(help = format!("Disk image, {READABLE}"))]
    image: PathBuf,
    /// Regular file; symbolic links are followed inside the image
    path: PathBuf,
    /// Partition number; 0 for a file system without a partition table [default: the root partition]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Interpret \xNN in PATH as a byte, as in `escaped_path` of `ls --json`
    #[arg(long)]
    escaped: bool,
}

pub(super) fn cat(args: &CatArgs) -> Result<Outcome, Failure> {
    let path = &path_bytes(&args.path, args.escaped)?;
    let tree = open_some(&args.image, args.partition, &[Want { path, depth: Depth::Node }])?;
    let failed = |error| InspectError::Tree { path: args.image.clone(), error };
    let inode = tree.inode(tree.resolve(path).map_err(failed)?);
    let Kind::File(map) = &inode.kind else {
        let path = escape::name(path);
        return Err(failed(TreeError::NotFile { path, found: inode.kind.name() }).into());
    };
    finish(io::copy(&mut MapReader::new(map, tree.sources()), &mut io::stdout().lock()).map(|_| ()))
}

pub(super) fn ls(args: &LsArgs) -> Result<Outcome, Failure> {
    let start = &path_bytes(&args.path, args.escaped)?;
    let tree = match args.recursive {
        true => open_tree(&args.image, args.partition)?,
        false => open_some(&args.image, args.partition, &[Want { path: start, depth: Depth::Entries }])?,
    };
    let dir = tree.resolve(start).map_err(|error| InspectError::Tree { path: args.image.clone(), error })?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = list(&tree, start, dir, args.recursive, |path, id| {
        let inode = tree.inode(id);
        if args.json {
            out.write_all(escape::json_line(&Entry::new(path, inode))?.as_bytes())
        } else {
            write_line(&mut out, path, inode)
        }
    });
    finish(written.and_then(|()| out.flush()))
}

/// Ignores a closed pipe, as after `| head`.
pub(super) fn finish(written: io::Result<()>) -> Result<Outcome, Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Outcome::Clean),
    }
}

/// Parses a path argument: verbatim, or with `\xNN` for bytes.
pub(super) fn path_bytes(path: &Path, escaped: bool) -> Result<Vec<u8>, Failure> {
    let bytes = path.as_os_str().as_bytes();
    if !escaped {
        return Ok(bytes.to_vec());
    }
    let invalid = || format!("{}: expected two hexadecimal digits after \\x", path.display()).into();
    escape::unescape(bytes).ok_or_else(invalid)
}

/// Writes to stdout, verbatim.
pub(super) fn print(text: &str) -> Result<Outcome, Failure> {
    finish(io::stdout().lock().write_all(text.as_bytes()))
}

/// Writes text to stdout. The caller has escaped control characters and line breaks.
pub(super) fn show(text: &str) -> Result<Outcome, Failure> {
    print(&escape::lines(text))
}

/// Writes JSON to stdout.
pub(super) fn print_json(value: &impl Serialize) -> Result<Outcome, Failure> {
    print(&escape::json(value)?)
}

/// Yields the entries of the directory at `path`, or the single entry for another file.
fn list(
    tree: &Tree,
    path: &[u8],
    found: InodeId,
    recursive: bool,
    mut each: impl FnMut(&[u8], InodeId) -> io::Result<()>,
) -> io::Result<()> {
    let shown: Vec<u8> = components(path).flat_map(|name| [b"/", name].concat()).collect();
    match &tree.inode(found).kind {
        Kind::Directory(_) if recursive => {
            tree.walk_from(found).skip(1).try_for_each(|(below, id, _)| each(&[&shown[..], &below].concat(), id))
        }
        Kind::Directory(entries) => {
            entries.iter().try_for_each(|(name, id)| each(&[&shown[..], b"/", name].concat(), *id))
        }
        _ => each(&shown, found),
    }
}

fn write_line(out: &mut impl Write, path: &[u8], inode: &Inode) -> io::Result<()> {
    let meta = &inode.meta;
    let size = match &inode.kind {
        Kind::File(map) => map.len().to_string(),
        Kind::CharDevice { major, minor } | Kind::BlockDevice { major, minor } => format!("{major},{minor}"),
        _ => "-".to_owned(),
    };
    // A corrupt image can have a time that is out of range.
    let time = jiff::Timestamp::from_second(meta.mtime.secs);
    let time = time.map_or_else(|_| format!("@{}", meta.mtime.secs), |time| time.to_string());
    let mode = mode_string(inode);
    write!(out, "{mode} {:>5} {:>5} {size:>12} {time} ", meta.uid, meta.gid)?;
    out.write_all(escape::name(path).as_bytes())?;
    if let Kind::Symlink(target) = &inode.kind {
        write!(out, " -> {}", escape::name(target))?;
    }
    out.write_all(b"\n")
}

/// Type and permissions as `ls -l` shows them.
fn mode_string(inode: &Inode) -> String {
    let kind = match inode.kind {
        Kind::Directory(_) => 'd',
        Kind::File(_) => '-',
        Kind::Symlink(_) => 'l',
        Kind::CharDevice { .. } => 'c',
        Kind::BlockDevice { .. } => 'b',
        Kind::Fifo => 'p',
        Kind::Socket => 's',
    };
    format!("{kind}{}", permissions(inode.meta.mode))
}

/// One line of `ls --json`. Invalid UTF-8 is replaced in names and targets; then an escaped field has the exact bytes.
#[derive(Serialize)]
struct Entry {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    escaped_path: Option<String>,
    #[serde(rename = "type")]
    kind: &'static str,
    mode: String,
    uid: u32,
    gid: u32,
    mtime: i64,
    mtime_nanos: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    escaped_target: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    xattrs: Vec<String>,
}

impl Entry {
    fn new(path: &[u8], inode: &Inode) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let escaped = |bytes: &[u8]| str::from_utf8(bytes).is_err().then(|| escape::path(bytes));
        let meta = &inode.meta;
        let target = if let Kind::Symlink(target) = &inode.kind { Some(target) } else { None };
        Self {
            path: text(path),
            escaped_path: escaped(path),
            kind: inode.kind.name(),
            mode: format!("{:04o}", meta.mode),
            uid: meta.uid,
            gid: meta.gid,
            mtime: meta.mtime.secs,
            mtime_nanos: meta.mtime.nanos,
            size: if let Kind::File(map) = &inode.kind { Some(map.len()) } else { None },
            target: target.map(|target| text(target)),
            escaped_target: target.and_then(|target| escaped(target)),
            xattrs: meta.xattrs.keys().map(|name| escape::name(name)).collect(),
        }
    }
}
