//! Prints how the modules of a kernel in a directory are loaded, for checks that compare it with modprobe:
//! `modprobe ROOT VERSION [--ignore-install]` reads names and aliases, and prints for each line what `modprobe --show-depends` prints, or
//! `unknown`.

mod directory;

use std::error::Error;
use std::io::{BufRead, Write};

use directory::{Directory, chain};
use vmbake_kmod::Modules;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (root, version, ignore_install) = match &arguments[..] {
        [root, version] => (root, version, false),
        [root, version, flag] if flag == "--ignore-install" => (root, version, true),
        _ => return Err("usage: modprobe ROOT VERSION [--ignore-install]".into()),
    };
    let modules = Modules::read(&Directory(root.into()), &format!("/lib/modules/{version}")).map_err(chain)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for request in std::io::stdin().lock().lines() {
        let request = request?;
        writeln!(out, "{request}:")?;
        match modules.show_depends(&request, ignore_install).map_err(chain)? {
            Some(actions) => actions.iter().try_for_each(|action| writeln!(out, "{action}"))?,
            None => writeln!(out, "unknown")?,
        }
    }
    Ok(out.flush()?)
}
