//! Kernel parameters of the key `sysctl`: the files of sysctl.d(5) in the order in which systemd-sysctl(8) reads them in, an error out if
//! a later file sets another value.

use std::collections::BTreeMap;

use super::files_in;
use crate::merge::MergeError;
use crate::merge::place::Target;
pub use vmbake_layer::{Layer, sysctl_entries, sysctl_lines};

/// Directories in the order of their priority: of files with one name, the first is read.
const DIRECTORIES: [&str; 3] = ["/etc/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];

const HINT: &str = "files are read in the order of their names: change the file, or set the parameter in a file of `files` with a later name";

/// The last assignment of a parameter.
struct Last {
    path: String,
    line: usize,
    value: String,
}

/// Fails if a parameter of a layer has another value on machines, unless a later layer sets it: then it warns.
pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<Vec<String>, MergeError> {
    let (last, mut warnings) = (assignments(target), Vec::new());
    for (index, layer) in layers.iter().enumerate() {
        let name = &layer.schema.name;
        for (parameter, value) in sysctl_entries(&layer.schema) {
            let Some(found) = last.get(&parameter).filter(|found| found.value != value) else { continue };
            let Last { path, line, value: other } = found;
            let writer = target.layer_at(path);
            let by = writer.map_or("the base".to_owned(), |layer| format!("layer {layer}"));
            let what = format!(
                "`sysctl` sets {parameter} to {value}, but {path}:{line} of {by}, which is read later, sets it to {other}"
            );
            let is_later = layers[index + 1..].iter().any(|later| Some(later.schema.name.as_str()) == writer);
            if !is_later {
                let path = format!("/etc/sysctl.d/60-{name}.conf");
                return Err(MergeError::Unread { path, layer: name.clone(), what, hint: HINT });
            }
            warnings.push(format!("layer {name}: {what}"));
        }
    }
    Ok(warnings)
}

fn assignments(target: &Target) -> BTreeMap<String, Last> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for path in DIRECTORIES.iter().flat_map(|dir| files_in(target, dir, &[".conf"])) {
        let name = path.rsplit_once('/').map_or("", |(_, name)| name);
        files.entry(name.to_owned()).or_insert(path);
    }
    let mut last = BTreeMap::new();
    for path in files.into_values() {
        // A link to /dev/null hides files of the same name.
        for found in sysctl_lines(&target.text(&path).unwrap_or_default()) {
            last.insert(found.name, Last { path: path.clone(), line: found.line, value: found.value });
        }
    }
    last
}
