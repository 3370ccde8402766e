//! Checks that files in `tmpfiles.d`, `sysusers.d` and `system-preset` of a bundle create only granted paths and accounts at boot. The
//! lines of a file that is granted by its exact path are not checked.

use std::collections::BTreeSet;

use vmbake_common::escape;
use vmbake_disk::tree::{InodeId, Kind, ROOT};
use vmbake_layer::{BootConfig, BootEffect, Layer};

use super::MergeError;
use super::accounts::lookup;
use super::place::Target;
use super::unit_grants::BundleLayers;

/// Fails if a file of a layer with grants has systemd create at boot what is not granted.
pub(super) fn check(target: &Target, layers: &[Layer], bundles: &BundleLayers) -> Result<(), MergeError> {
    for (layer, grants) in &target.grants {
        let mine = layers.iter().filter(|other| bundles.is_same(layer, &other.schema.name));
        let check = Check { target, layer, accounts: mine.flat_map(|layer| layer.schema.accounts()).collect() };
        let found = target.tree.walk_from(ROOT).filter(|(_, id, _)| target.layer_of(*id) == layer);
        for (path, id, inode) in found {
            let path = String::from_utf8_lossy(&path).into_owned();
            let Some(config) = BootConfig::of(&path).filter(|_| !grants.paths.contains(&path)) else { continue };
            match inode.kind {
                Kind::File(_) => check.file(&path, id, config)?,
                Kind::Directory(_) => {}
                _ => return Err(check.refused(&path, None, "is not a regular file")),
            }
        }
    }
    Ok(())
}

struct Check<'a> {
    target: &'a Target,
    layer: &'a str,
    /// Users and groups of the bundle's layers.
    accounts: BTreeSet<&'a str>,
}

impl Check<'_> {
    fn file(&self, path: &str, id: InodeId, config: BootConfig) -> Result<(), MergeError> {
        for other in config.others(path) {
            let found = self.target.tree.lookup(other.as_bytes());
            if found.is_some_and(|other| other != id && self.target.layer_of(other) != self.layer) {
                return Err(self.refused(path, None, &format!("conflicts with {other}")));
            }
        }
        for (line, effect) in config.effects(&self.target.bytes(path)?) {
            let what = match effect {
                BootEffect::Path { path: made, mode } => {
                    self.target.check_end(self.layer, made.as_bytes())?;
                    let landing = self.target.check_landing(self.layer, made.as_bytes())?;
                    self.target.check_mode(self.layer, &landing, mode)?;
                    continue;
                }
                BootEffect::Account(name) if self.has(&name)? => continue,
                BootEffect::Account(name) => format!("{name} is not a user or group of the bundle's layers"),
                BootEffect::Member { user, group } if [&user, &group].iter().all(|name| self.is_own(name)) => continue,
                BootEffect::Member { user, group } => {
                    format!("{user} and {group} are not both users or groups of the bundle's layers")
                }
                BootEffect::Unknown => "not supported in a bundle".to_owned(),
            };
            return Err(self.refused(path, Some(line), &what));
        }
        Ok(())
    }

    fn is_own(&self, account: &str) -> bool {
        self.accounts.contains(account)
    }

    /// Whether the bundle or the image has an account, so that nothing is created at boot.
    fn has(&self, account: &str) -> Result<bool, MergeError> {
        let is_there = |file: &str| Ok::<_, MergeError>(lookup(self.target, file, account)?.is_some());
        Ok(self.is_own(account) || is_there("/etc/passwd")? || is_there("/etc/group")?)
    }

    fn refused(&self, path: &str, line: Option<usize>, what: &str) -> MergeError {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        let (layer, path, what) = (self.layer.to_owned(), format!("{}{line}", escape::line(path)), escape::line(what));
        MergeError::BootConfig { layer, path, what }
    }
}
