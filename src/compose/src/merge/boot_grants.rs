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
        let mine: Vec<&Layer> = layers.iter().filter(|other| bundles.is_same(layer, &other.schema.name)).collect();
        let users = mine.iter().flat_map(|layer| layer.schema.user_names()).collect();
        let groups = mine.iter().flat_map(|layer| layer.schema.accounts()).collect();
        let check = Check { target, layer, users, groups };
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
    /// Users of the bundle's layers.
    users: BTreeSet<&'a str>,
    /// Groups of the bundle's layers, among them those of the users.
    groups: BTreeSet<&'a str>,
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
                BootEffect::User(name) if self.has_user(&name)? => continue,
                BootEffect::User(name) => format!("{name} is not a user of the bundle's layers"),
                BootEffect::Group(name) if self.has_group(&name)? => continue,
                BootEffect::Group(name) => format!("{name} is not a group of the bundle's layers"),
                BootEffect::Member { user, group }
                    if self.users.contains(user.as_str()) && self.groups.contains(group.as_str()) =>
                {
                    continue;
                }
                BootEffect::Member { user, group } => {
                    format!("{user} and {group} are not a user and a group of the bundle's layers")
                }
                BootEffect::Unknown => "not supported in a bundle".to_owned(),
            };
            return Err(self.refused(path, Some(line), &what));
        }
        Ok(())
    }

    /// Whether the bundle or the image has a user, and its group, so that nothing is created at boot.
    fn has_user(&self, name: &str) -> Result<bool, MergeError> {
        let is_own = self.users.contains(name);
        Ok(is_own || (lookup(self.target, "/etc/passwd", name)?.is_some() && self.has_group(name)?))
    }

    /// Whether the bundle or the image has a group.
    fn has_group(&self, name: &str) -> Result<bool, MergeError> {
        Ok(self.groups.contains(name) || lookup(self.target, "/etc/group", name)?.is_some())
    }

    fn refused(&self, path: &str, line: Option<usize>, what: &str) -> MergeError {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        let (layer, path, what) = (self.layer.to_owned(), format!("{}{line}", escape::line(path)), escape::line(what));
        MergeError::BootConfig { layer, path, what }
    }
}
