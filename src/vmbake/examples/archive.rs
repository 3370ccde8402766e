//! Prints what tar archives hold, for checks that compare it with what other programs unpack: `archive FILE...` prints the tree
//! that each becomes, as the example `tree` of vmbake-disk prints volumes; or why the archive cannot be read.

#[path = "../../disk/examples/table/mod.rs"]
mod table;

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use vmbake_compose::merge::unpack;
use vmbake_compose::stage::{ArchiveLimits, archive};
use vmbake_disk::source::FileSource;
use vmbake_disk::tree::{Origin, Tree};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for path in std::env::args_os().skip(1) {
        writeln!(out, "archive\t{}", path.display())?;
        match content(Path::new(&path)) {
            Ok(tree) => table::print(&tree, &mut out)?,
            Err(error) => table::refused(&*error, &mut out)?,
        }
    }
    Ok(out.flush()?)
}

fn content(path: &Path) -> Result<Tree, Box<dyn Error>> {
    let (plain, entries) = archive::open(&File::open(path)?, &ArchiveLimits::ROOT)?;
    Ok(unpack(&entries, Arc::new(FileSource::new(plain)?), Origin::default())?)
}
