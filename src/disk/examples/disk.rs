//! Prints what is in disk images, for checks that compare it with what other programs say: `disk IMAGE...` prints each as the
//! example `tree` prints a volume that holds a single file, `/disk`; or why the image cannot be read.

mod table;

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use vmbake_disk::image::Image;
use vmbake_disk::source::{Map, ReadAt};
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for path in std::env::args_os().skip(1) {
        writeln!(out, "image\t{}", path.display())?;
        match content(Path::new(&path)) {
            Ok(lines) => out.write_all(&lines)?,
            Err(error) => table::refused(&*error, &mut out)?,
        }
    }
    Ok(out.flush()?)
}

fn content(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let image = Image::open(path)?;
    let len = image.len();
    let meta = Metadata::root(0o644, Timestamp::default());
    let mut tree = Tree::new(meta.clone(), Origin::default());
    let source = tree.sources_mut().add(Arc::new(image));
    let origin = tree.first_origin();
    tree.place(b"/disk", Inode { meta, origin, kind: Kind::File(Map::whole(source, 0, len)) })?;
    let mut lines = Vec::new();
    table::print(&tree, &mut lines)?;
    Ok(lines)
}
