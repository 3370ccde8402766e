//! setcap(8), which writes the extended attribute of file capabilities (capabilities(7)).

use vmbake_disk::tree::Kind;
use vmbake_shell::Call;

use super::{Command, Done, System, status, unsupported, words};
use crate::merge::MergeError;
pub use vmbake_layer::{ATTRIBUTE, attribute};

pub(super) fn find(name: &str) -> Option<Command> {
    (name == "setcap").then_some(setcap as Command)
}

/// `setcap TEXT FILE [TEXT FILE]…`, which ends at the first file that fails.
fn setcap(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "-q").collect();
    let value = |text: &str| if text == "-r" { Some(None) } else { attribute(text).map(Some) };
    let mut pairs = Vec::new();
    for pair in words.chunks(2) {
        match (pair.first().and_then(|text| value(text)), pair.get(1)) {
            (Some(value), Some(path)) => pairs.push((value, path.replace("//", "/"))),
            _ => return unsupported(call),
        }
    }
    if pairs.is_empty() {
        return unsupported(call);
    }
    for (value, path) in pairs {
        if !set(system, call, value, &path)? {
            return status(1);
        }
    }
    status(0)
}

/// Sets or removes the capabilities of one file, unless that fails.
fn set(
    system: &mut System<'_, '_>,
    call: &mut Call<'_>,
    value: Option<Vec<u8>>,
    path: &str,
) -> Result<bool, MergeError> {
    let path = call.path(path.as_bytes());
    let target = &mut system.target();
    let found = target.wrap(target.tree.find(&path))?;
    let Some(id) = found.filter(|id| matches!(target.tree.inode(*id).kind, Kind::File(_))) else {
        call.stderr.extend_from_slice(b"Failed to set capabilities on file: No such file or directory\n");
        return Ok(false);
    };
    let mut meta = target.tree.inode(id).meta.clone();
    match value {
        Some(value) => {
            meta.xattrs.insert(ATTRIBUTE.to_vec(), value);
            target.check_privileges(&path, &meta, &target.tree.inode(id).kind)?;
        }
        None => {
            if meta.xattrs.remove(ATTRIBUTE).is_none() {
                return Ok(false);
            }
        }
    }
    *target.tree.meta_mut(id) = meta;
    Ok(true)
}
