//! Lines of tmpfiles.d(5): the files of the finished tree in, an error out for a line of a layer that systemd-tmpfiles(8) ignores, because
//! it has read another line for the path.

use std::collections::BTreeMap;

use super::{files_in, of_layer};
use crate::merge::MergeError;
use crate::merge::place::Target;
pub use vmbake_layer::{Layer, TmpfilesConflict, tmpfiles_conflicts};

/// Directories in the order of their priority: of files with one name, the first is read.
const DIRECTORIES: [&str; 3] = ["/etc/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];

const HINT: &str = "systemd-tmpfiles reads files in the order of their names, and keeps the first line for a path: use a name that comes earlier, \
     or a file with the name of the other one";

/// Fails for the first such line, unless a later layer has the other one: then it warns.
pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<Vec<String>, MergeError> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for path in DIRECTORIES.iter().flat_map(|dir| files_in(target, dir, &[".conf"])) {
        let name = path.rsplit_once('/').map_or("", |(_, name)| name);
        files.entry(name.to_owned()).or_insert(path);
    }
    // A link to /dev/null hides files of the same name.
    let read = |path: String| {
        let text = target.bytes(&path).unwrap_or_default();
        (path, String::from_utf8_lossy(&text).into_owned())
    };
    let files: Vec<(String, String)> = files.into_values().map(read).collect();
    let mut warnings = Vec::new();
    for conflict in tmpfiles_conflicts(files.iter().map(|(_, text)| text.as_str())) {
        let TmpfilesConflict { place: (file, line), first: (other, other_line), path: subject, is_conditional } =
            conflict;
        let (path, other) = (&files[file].0, &files[other].0);
        let Some(layer) = of_layer(target, layers, path) else { continue };
        let writer = target.layer_at(other);
        let by = writer.map_or("the base".to_owned(), |layer| format!("layer {layer}"));
        let what = format!(
            "systemd-tmpfiles ignores the line: {other}:{other_line} of {by}, which it reads first, has other settings for {subject}"
        );
        let path = format!("{path}:{line}");
        let position = |name: Option<&str>| layers.iter().position(|layer| Some(layer.schema.name.as_str()) == name);
        if !is_conditional && position(Some(layer)) >= position(writer) {
            return Err(MergeError::Unread { path, layer: layer.to_owned(), what, hint: HINT });
        }
        warnings.push(format!("layer {layer}: {path}: {what}"));
    }
    Ok(warnings)
}
