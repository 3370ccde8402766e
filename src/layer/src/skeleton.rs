//! `vmbake init`: a name in, a directory with a commented `layer.json` out.

use std::fs;
use std::path::{Path, PathBuf};

use super::read::DESCRIPTION;
use super::{Fault, LayerError, validate};
use vmbake_common::atomic_file::write_file;
use vmbake_common::message::FileError;

const SKELETON: &str = include_str!("skeleton.json");

/// Writes the layer `name` for the system `os` below `dir`, with a folder for its files; tells where its description is. One that is
/// there stays as it is.
pub fn init(dir: &Path, name: &str, os: &str) -> Result<PathBuf, LayerError> {
    let layer = dir.join(name);
    let fault = |message| Fault { path: layer.clone(), position: None, warning: false, message };
    let faults: Vec<Fault> = [validate::name(name), validate::name(os)].into_iter().flatten().map(fault).collect();
    if !faults.is_empty() {
        return Err(LayerError::Faults(faults));
    }
    let files = layer.join("files");
    fs::create_dir_all(&files)
        .map_err(|source| LayerError::File(FileError::new(files, "create the directory", source)))?;
    let path = layer.join(DESCRIPTION);
    write_file(&path, text(&layer.to_string_lossy(), name, os).as_bytes(), false)?;
    Ok(path)
}

fn text(dir: &str, name: &str, os: &str) -> String {
    // A path may have anything in it, even the end of a line.
    let dir = vmbake_common::escape::line(dir);
    SKELETON.replace("@{dir}", &dir).replace("@{name}", name).replace("@{os}", os)
}

#[cfg(test)]
mod tests {
    use super::super::document::Document;
    use super::*;

    #[test]
    fn all_of_it_is_right_with_and_without_slashes() {
        let text = text("layers/web\n// x", "web", "debian-13");
        let schema = Document::read(text.as_bytes()).unwrap().schema;
        assert_eq!((schema.name.as_str(), schema.motd.unwrap().as_str()), ("web", "This is web.\n"));
        // Examples are those that look like a member, or like its rest.
        let is_member = |line: &str| line.starts_with('"') || line.starts_with("  \"") || line.starts_with('}');
        let uncommented = text.lines().map(|line| match line.trim_start().strip_prefix("// ") {
            Some(member) if is_member(member) => format!("{member}\n"),
            _ => format!("{line}\n"),
        });
        let schema = Document::read(uncommented.collect::<String>().as_bytes()).unwrap().schema;
        assert_eq!(schema.units.files.len(), 1);
        assert_eq!(schema.ssh_authorized_keys.len(), 1);
        assert_eq!(schema.packages.len(), 2);
        assert!(schema.timezone.is_some() && !schema.sysctl.is_empty() && !schema.users.is_empty());
    }
}
