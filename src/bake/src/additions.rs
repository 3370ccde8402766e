//! Checks that the finished tree meets the requirements of bundles.

use std::collections::BTreeSet;

use vmbake_disk::tree::Tree;

use super::BakeError;
use vmbake_manifest::{Additions, ImageNeed, NeedKind};

const PROGRAMS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Directory of kernel modules.
const MODULES: &str = "/usr/lib/modules/";
/// Name of the list of built-in modules.
const BUILTIN: &str = "modules.builtin";
/// Maximum size of this list in bytes.
const MAX_LIST: u64 = 4 << 20;

pub(super) fn check(tree: &Tree, more: &Additions) -> Result<(), BakeError> {
    if more.layers.is_empty() {
        return Ok(());
    }
    let mut files = BTreeSet::new();
    let mut modules = BTreeSet::new();
    for (path, ..) in tree.walk() {
        let text = String::from_utf8_lossy(&path).into_owned();
        if text.starts_with(MODULES) {
            match text.rsplit_once('/') {
                Some((_, BUILTIN)) => modules.extend(builtin(tree, &path)),
                _ => modules.extend(module(&text)),
            }
        }
        files.insert(text);
    }
    let has = |need: &ImageNeed| match need.kind {
        NeedKind::Program => {
            PROGRAMS.iter().any(|folder| tree.resolve(format!("{folder}/{}", need.name).as_bytes()).is_ok())
        }
        NeedKind::Library => files.iter().any(|path| {
            let is_library =
                path.starts_with("/usr/lib") || path.starts_with("/usr/local/lib") || path.starts_with("/lib");
            is_library && path.rsplit('/').next() == Some(&need.name)
        }),
        NeedKind::Module => modules.contains(&need.name.replace('-', "_")),
    };
    match more.needs.iter().find(|need| !has(need)) {
        Some(need) => Err(BakeError::Need { need: Box::new(need.clone()) }),
        None => Ok(()),
    }
}

/// The built-in modules in a list.
fn builtin(tree: &Tree, list: &[u8]) -> Vec<String> {
    let text = tree.read(list, MAX_LIST).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(module).collect()
}

/// The name of a module, given its possibly compressed file; `-` and `_` are equivalent.
fn module(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let (name, _) = name.split_once(".ko")?;
    Some(name.replace('-', "_"))
}
