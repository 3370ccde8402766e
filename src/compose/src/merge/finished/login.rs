//! Modules of pam.d(5) and libraries of nsswitch.conf(5): files of layers in, an error out for what the image does not have.

use super::{files_in, of_layer};
use crate::merge::MergeError;
use crate::merge::place::Target;
use vmbake_disk::tree::Kind;
pub use vmbake_layer::{Layer, NameSource, PamRule, PamTarget, name_sources, pam_rules};

const RULES: &str = "/etc/pam.d";
/// Where libpam looks for rules that are not in `/etc`.
const MORE_RULES: [&str; 2] = ["/etc/pam.d", "/usr/lib/pam.d"];

const SOURCES: &str = "/etc/nsswitch.conf";

/// Services within the C library, and one that Debian's own file names without its library.
const BUILT_IN: [&str; 4] = ["files", "dns", "compat", "nis"];

/// Where libraries are: here, or one directory below.
const LIBRARIES: &str = "/usr/lib";

const RULE_HINT: &str = "add the package that contains it to `packages`; for a module that may be missing, write `-` before the type of the rule";
const SOURCE_HINT: &str = "add the package that has it to `packages`, such as libnss-systemd, or leave the service out";

/// Fails for the first file of a layer that needs something which is not there.
pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<(), MergeError> {
    let fault = |path: &str, line: usize, layer: &str, what: String, hint| {
        Err(MergeError::Unread { path: format!("{path}:{line}"), layer: layer.to_owned(), what, hint })
    };
    for path in files_in(target, RULES, &[""]) {
        let Some(layer) = of_layer(target, layers, &path) else { continue };
        for PamRule { line, target: needed } in pam_rules(&String::from_utf8_lossy(&target.bytes(&path)?)) {
            let (is_there, name, kind) = match &needed {
                PamTarget::Module(name) => (has_module(target, name), name, "module"),
                PamTarget::Rules(name) => (has_rules(target, name), name, "file"),
            };
            if !is_there {
                return fault(
                    &path,
                    line,
                    layer,
                    format!("makes logins fail: the image has no {kind} {name}"),
                    RULE_HINT,
                );
            }
        }
    }
    let Some(layer) = of_layer(target, layers, SOURCES) else { return Ok(()) };
    for NameSource { line, database, service } in name_sources(&String::from_utf8_lossy(&target.bytes(SOURCES)?)) {
        let library = format!("libnss_{service}.so.2");
        if !BUILT_IN.contains(&service.as_str()) && !has_library(target, "", &library) {
            let what = format!("{service} of {database} has no effect: the image has no {library}");
            return fault(SOURCES, line, layer, what, SOURCE_HINT);
        }
    }
    Ok(())
}

fn has_module(target: &Target, name: &str) -> bool {
    match name.starts_with('/') {
        true => target.tree.resolve(name.as_bytes()).is_ok(),
        false => has_library(target, "security/", name),
    }
}

fn has_rules(target: &Target, name: &str) -> bool {
    let exists = |path: String| target.tree.resolve(path.as_bytes()).is_ok();
    match name.starts_with('/') {
        true => exists(name.to_owned()),
        false => MORE_RULES.iter().any(|dir| exists(format!("{dir}/{name}"))),
    }
}

/// Whether a library is below [`LIBRARIES`], perhaps in the directory of an architecture.
fn has_library(target: &Target, inner: &str, name: &str) -> bool {
    let exists = |dir: &str| target.tree.resolve(format!("{dir}/{inner}{name}").as_bytes()).is_ok();
    let directories = target.tree.resolve(LIBRARIES.as_bytes()).map(|id| &target.tree.inode(id).kind);
    let names = match directories {
        Ok(Kind::Directory(entries)) => entries.keys().filter_map(|name| str::from_utf8(name).ok()).collect(),
        _ => Vec::new(),
    };
    exists(LIBRARIES)
        || names.into_iter().filter(|name| name.contains("-linux-")).any(|name| exists(&format!("{LIBRARIES}/{name}")))
}
