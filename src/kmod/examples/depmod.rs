//! Indexes the modules of a kernel in a directory, for checks that compare the files with depmod's:
//! `depmod RELEASE ROOT VERSION OUT [SYSTEM.MAP]` reads `ROOT/lib/modules/VERSION` as kmod RELEASE, writes the files into `OUT`, and prints
//! warnings.

mod directory;

use std::error::Error;
use std::fs;
use std::path::Path;

use directory::{Directory, chain};
use vmbake_kmod::{Release, Settings, depmod};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [release, root, version, out, rest @ ..] = &arguments[..] else {
        return Err("usage: depmod RELEASE ROOT VERSION OUT [SYSTEM.MAP]".into());
    };
    let system_map = rest.first().map(fs::read).transpose()?;
    let settings = Settings {
        directory: &format!("/lib/modules/{version}"),
        release: Release::of_version(release).ok_or_else(|| format!("unsupported release {release}"))?,
        system_map: system_map.as_deref(),
        threads: std::thread::available_parallelism()?,
    };
    let indexes = depmod(&Directory(root.into()), &settings).map_err(chain)?;
    indexes.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    for (name, content) in &indexes.files {
        fs::write(Path::new(out).join(name), content)?;
    }
    Ok(())
}
