//! Trees and contents as text, for the examples that print what checks compare with other programs.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;

use sha2::{Digest, Sha256};
use vmbake_disk::source::{Map, Sources};
use vmbake_disk::tree::{Inode, Kind, Tree};

/// Contents are hashed by pieces of this length, with their offsets; those that are all zeros are left out.
const PIECE: u64 = 65_536;

/// A line for each path: type, mode, owner, group, modification time, size or target or device, digest of the content, attributes, and
/// the first path of the same file, separated by tabs.
pub fn print(tree: &Tree, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut firsts = BTreeMap::new();
    for (path, id, inode) in tree.walk() {
        let path = escape(&path);
        let first = firsts.entry(id).or_insert_with(|| path.clone());
        let (kind, what, digest) = kind(inode, tree.sources())?;
        let meta = &inode.meta;
        let time = format!("{}.{:09}", meta.mtime.secs, meta.mtime.nanos);
        let xattrs: Vec<String> =
            meta.xattrs.iter().map(|(name, value)| format!("{}={}", escape(name), hex(value))).collect();
        let xattrs = xattrs.join(" ");
        writeln!(
            out,
            "{path}\t{kind}\t{:o}\t{}\t{}\t{time}\t{what}\t{digest}\t{xattrs}\t{first}",
            meta.mode, meta.uid, meta.gid
        )?;
    }
    Ok(())
}

/// A line that says why there is nothing to print, with all causes.
pub fn refused(error: &(dyn Error + 'static), out: &mut impl Write) -> std::io::Result<()> {
    write!(out, "refused\t{error}")?;
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(out, ": {error}")?;
        cause = error.source();
    }
    writeln!(out)
}

fn kind(inode: &Inode, sources: &Sources) -> Result<(&'static str, String, String), Box<dyn Error>> {
    let none = String::new;
    Ok(match &inode.kind {
        Kind::Directory(_) => ("directory", none(), none()),
        Kind::File(map) => ("file", map.len().to_string(), digest(map, sources)?),
        Kind::Symlink(target) => ("link", escape(target), none()),
        Kind::CharDevice { major, minor } => ("character", format!("{major}:{minor}"), none()),
        Kind::BlockDevice { major, minor } => ("block", format!("{major}:{minor}"), none()),
        Kind::Fifo => ("pipe", none(), none()),
        Kind::Socket => ("socket", none(), none()),
    })
}

fn digest(map: &Map, sources: &Sources) -> Result<String, Box<dyn Error>> {
    let mut hash = Sha256::new();
    let mut at = 0;
    while let Some(data) = map.next_data(sources, at)? {
        let start = data.start / PIECE * PIECE;
        let end = (start + PIECE).min(map.len());
        let mut piece = vec![0; usize::try_from(end - start)?];
        map.read_exact_at(sources, &mut piece, start)?;
        if piece.iter().any(|byte| *byte != 0) {
            hash.update(start.to_le_bytes());
            hash.update(&piece);
        }
        at = end;
    }
    Ok(hex(&hash.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Everything but printable ASCII, and the percent sign, as `%` and two digits.
fn escape(bytes: &[u8]) -> String {
    let escape = |byte: &u8| match byte {
        b'!'..=b'~' if *byte != b'%' => char::from(*byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    bytes.iter().map(escape).collect()
}
