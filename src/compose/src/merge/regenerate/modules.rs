//! Kernel modules: modprobe(8) finds only modules that are listed in modules.dep(5).

use crate::merge::MergeError;
use crate::merge::place::Target;

/// Fails if the index of a kernel does not list a module.
pub(super) fn check(target: &Target, path: &str, layer: &str) -> Result<(), MergeError> {
    let Some((kernel, module)) = path.strip_prefix("/usr/lib/modules/").and_then(|rest| rest.split_once('/')) else {
        return Ok(());
    };
    // Without an index there is no kernel that could load it.
    let Ok(index) = target.text(&format!("/usr/lib/modules/{kernel}/modules.dep")) else { return Ok(()) };
    if index.lines().any(|line| line.split(':').next() == Some(module)) {
        return Ok(());
    }
    Err(MergeError::Unread {
        path: path.to_owned(),
        layer: layer.to_owned(),
        what: "modprobe needs an index by `depmod`".to_owned(),
        hint: "install it with a modules.dep that lists it, or put it into another directory and load it with insmod in a unit",
    })
}
