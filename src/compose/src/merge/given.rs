//! Modes, capabilities and set-id bits that layers give to files: each must last until all layers are applied.

use std::collections::BTreeSet;

use vmbake_disk::tree::{InodeId, Kind, Metadata};

use super::error::TakenAway;
use super::place::Target;
use super::place::limits::privilege;
use super::{MergeError, expand};
pub use vmbake_layer::{ATTRIBUTE, Schema};

/// What layers have given so far.
#[derive(Default)]
pub(super) struct Given(Vec<Grant>);

struct Grant {
    layer: String,
    key: &'static str,
    path: String,
    state: State,
}

/// What can be taken away.
#[derive(PartialEq, Eq)]
struct State {
    mode: u16,
    uid: u32,
    gid: u32,
    capability: Option<Vec<u8>>,
}

impl Given {
    /// Fails if the layer that was applied last has taken away what an earlier one gives. Then adds what the layer gives.
    pub(super) fn leave_layer(&mut self, target: &Target, schema: &Schema, arch: &str) -> Result<(), MergeError> {
        let multiarch = expand::multiarch("modes", arch).unwrap_or_default();
        let own = entries(schema, multiarch);
        // What the layer says itself of a path replaces what earlier ones say.
        let with_mode = schema.files.iter().filter(|(_, file)| file.mode.is_some()).map(|(path, _)| path.clone());
        let modes: BTreeSet<String> = with_mode.chain(paths(&own, "modes")).collect();
        let setuid: BTreeSet<String> = paths(&own, "setuid").collect();
        self.0.retain(|grant| match grant.key {
            "modes" => !modes.contains(&grant.path),
            "setuid" => !setuid.contains(&grant.path),
            _ => true,
        });
        for grant in &self.0 {
            let found = node(target, grant.key, &grant.path).map(|id| (State::of(target, id), id));
            if let Some((found, id)) = found.filter(|(found, _)| !grant.lasts(found)) {
                return Err(MergeError::TakenAway(Box::new(TakenAway {
                    path: grant.path.clone(),
                    key: grant.key,
                    first: grant.layer.clone(),
                    wanted: grant.shown(&grant.state),
                    second: schema.name.clone(),
                    found: grant.shown(&found)
                        + if is_replaced(target, id, &schema.name) { ", in a new file" } else { "" },
                })));
            }
        }
        let states = own.into_iter().filter_map(|(key, path)| {
            let id = node(target, key, &path)?;
            let inode = target.tree.inode(id);
            // Set-id bits of the first boot are not there yet.
            let is_given = key != "setuid" || privilege(&inode.meta, &inode.kind).is_some();
            is_given.then(|| Grant { layer: schema.name.clone(), key, path, state: State::of(target, id) })
        });
        self.0.extend(states);
        Ok(())
    }
}

/// Keys and paths of what a layer gives.
fn entries(schema: &Schema, multiarch: &str) -> Vec<(&'static str, String)> {
    let modes = schema.modes.keys().map(|path| ("modes", path));
    let capabilities = schema.capabilities.keys().map(|path| ("capabilities", path));
    let setuid = schema.setuid.iter().map(|path| ("setuid", path));
    let all = modes.chain(capabilities).chain(setuid);
    all.map(|(key, path)| (key, path.replace("{multiarch}", multiarch))).collect()
}

fn paths<'a>(entries: &'a [(&'static str, String)], key: &'a str) -> impl Iterator<Item = String> + 'a {
    entries.iter().filter(move |(found, _)| *found == key).map(|(_, path)| path.clone())
}

/// The file that a path of a key means.
fn node(target: &Target, key: &str, path: &str) -> Option<InodeId> {
    match key {
        "setuid" => target.tree.find(path.as_bytes()).ok().flatten(),
        _ => target.tree.resolve(path.as_bytes()).ok(),
    }
}

fn is_replaced(target: &Target, id: InodeId, layer: &str) -> bool {
    matches!(target.tree.inode(id).kind, Kind::File(_)) && target.layer_of(id) == layer
}

impl State {
    fn of(target: &Target, id: InodeId) -> Self {
        let Metadata { mode, uid, gid, xattrs, .. } = &target.tree.inode(id).meta;
        Self { mode: mode & 0o7777, uid: *uid, gid: *gid, capability: xattrs.get(ATTRIBUTE).cloned() }
    }
}

impl Grant {
    fn lasts(&self, found: &State) -> bool {
        let State { mode, uid, gid, capability } = &self.state;
        match self.key {
            "modes" => (*mode, *uid, *gid) == (found.mode, found.uid, found.gid),
            "capabilities" => *capability == found.capability,
            _ => found.mode & mode & 0o7000 == mode & 0o7000 && (capability.is_none() || found.capability.is_some()),
        }
    }

    /// A state as far as the key is about it.
    fn shown(&self, state: &State) -> String {
        let State { mode, uid, gid, capability } = state;
        match (self.key, &self.state.capability) {
            ("modes", _) => format!("mode {mode:04o} of {uid}:{gid}"),
            ("setuid", None) => format!("mode {mode:04o}"),
            _ if capability == &self.state.capability => "its capabilities".to_owned(),
            _ if capability.is_none() => "no capabilities".to_owned(),
            _ => "other capabilities".to_owned(),
        }
    }
}
