//! Keys of ssh that sshd(8) ignores because of `StrictModes`: the file, or a directory up to the home directory, belongs to another user,
//! or its group or others can write to it.

use vmbake_disk::tree::{Inode, InodeId, Kind};

use super::sshd::{SSHD, settings, value_of};
use crate::merge::MergeError;
use crate::merge::place::Target;

const HINT: &str = "sshd reads keys only if the file and all directories up to the home directory belong to the user or root, and only the owner can write \
     to them: correct `modes`, `directories` or `files` of the layer";

/// A line of passwd(5), as far as sshd uses it.
struct User<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
}

/// Fails if sshd ignores a file with keys because of something that a layer has written or changed.
pub(super) fn check(target: &Target) -> Result<(), MergeError> {
    let settings = settings(target);
    let is_lax = || value_of(&settings, "strictmodes").is_some_and(|value| value.eq_ignore_ascii_case("no"));
    if target.tree.resolve(SSHD.as_bytes()).is_err() || is_lax() {
        return Ok(());
    }
    let patterns = value_of(&settings, "authorizedkeysfile");
    let patterns = patterns.as_deref().unwrap_or(".ssh/authorized_keys .ssh/authorized_keys2");
    let text = target.text_or_empty("/etc/passwd")?;
    for user in text.lines().filter_map(User::read) {
        for pattern in patterns.split_whitespace().filter(|pattern| *pattern != "none") {
            check_file(target, &user, &user.expand(pattern))?;
        }
    }
    Ok(())
}

impl<'a> User<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, _, home, _] = *fields.as_slice() else { return None };
        Some(Self { name, uid: uid.parse().ok()?, gid: gid.parse().ok()?, home })
    }

    /// The path of a pattern of `AuthorizedKeysFile`.
    fn expand(&self, pattern: &str) -> String {
        let path = pattern.replace("%h", self.home).replace("%u", self.name).replace("%U", &self.uid.to_string());
        let path = path.replace("%%", "%");
        if path.starts_with('/') { path } else { format!("{}/{path}", self.home) }
    }

    /// Why sshd would not use keys below a node.
    fn fault(&self, inode: &Inode) -> Option<String> {
        let meta = &inode.meta;
        let (mode, is_directory) = (meta.mode & 0o7777, matches!(inode.kind, Kind::Directory(_)));
        if meta.uid != 0 && meta.uid != self.uid {
            return Some(format!("it belongs to the user id {}, not to {} or root", meta.uid, self.name));
        }
        if mode & 0o022 != 0 {
            return Some(format!("its group or others can write to it, mode {mode:04o}"));
        }
        let needed = if is_directory { 0o1 } else { 0o4 };
        let shift = if meta.uid == self.uid {
            6
        } else if meta.gid == self.gid {
            3
        } else {
            0
        };
        let is_denied = self.uid != 0 && (mode >> shift) & needed == 0;
        is_denied.then(|| format!("{} cannot read it, mode {mode:04o}", self.name))
    }
}

fn check_file(target: &Target, user: &User<'_>, path: &str) -> Result<(), MergeError> {
    let real = |path: &str| target.tree.real_path(path.as_bytes(), true).ok().flatten();
    let Some((file, id)) = real(path).filter(|(_, id)| matches!(target.tree.inode(*id).kind, Kind::File(_))) else {
        return Ok(());
    };
    let home = real(user.home).map(|(home, _)| home);
    let nodes = nodes(target, file, id, home.as_deref());
    // A base that is at fault itself stays as it is.
    if nodes.iter().all(|(_, id)| target.layer_of_change(*id).is_none()) {
        return Ok(());
    }
    for (node, id) in &nodes {
        if let Some(fault) = user.fault(target.tree.inode(*id)) {
            let changed =
                target.layer_of_change(*id).or_else(|| nodes.iter().find_map(|(_, id)| target.layer_of_change(*id)));
            let (layer, path) = (changed.unwrap_or_default().to_owned(), vmbake_common::escape::name(node));
            let what = format!(
                "sshd ignores the keys of {}, in {}: {fault}",
                user.name,
                vmbake_common::escape::name(&nodes[0].0)
            );
            return Err(MergeError::Unread { path, layer, what, hint: HINT });
        }
    }
    Ok(())
}

/// A file, and the directories above it, up to the home directory or the root.
fn nodes(target: &Target, file: Vec<u8>, id: InodeId, home: Option<&[u8]>) -> Vec<(Vec<u8>, InodeId)> {
    let mut nodes = vec![(file.clone(), id)];
    let mut path = file.as_slice();
    while let Some(at) = path.iter().rposition(|byte| *byte == b'/').filter(|_| Some(path) != home) {
        path = &path[..at];
        let above: &[u8] = if at == 0 { b"/" } else { path };
        let Some(id) = target.tree.lookup(above) else { break };
        nodes.push((above.to_vec(), id));
    }
    nodes
}
