//! Prints a bare ext2, ext3 or ext4 volume as a table, for checks that compare it with what other programs say:
//! `tree VOLUME...` prints for each path its type, mode, owner, group, modification time, size or target or device, digest of the
//! content, attributes, and the first path of the same file, separated by tabs; or why the volume cannot be read.

mod table;

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use vmbake_disk::ext4;
use vmbake_disk::source::FileSource;
use vmbake_disk::tree::Origin;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for path in std::env::args_os().skip(1) {
        writeln!(out, "volume\t{}", path.display())?;
        let source = FileSource::new(File::open(&path)?)?;
        match ext4::read(Arc::new(source), Origin::default()) {
            Ok((_, tree)) => table::print(&tree, &mut out)?,
            Err(error) => table::refused(&error, &mut out)?,
        }
    }
    Ok(out.flush()?)
}
