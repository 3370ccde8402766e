//! Modes of directories and programs, as the account of a service meets them.

use super::accounts::Identity;
use super::loaded::Loaded;
use super::{Fault, Image};
use vmbake_disk::tree::{Inode, Kind};

const HINT: &str = "change the mode or the group of the path in `directories`, `modes` or `files` of a layer, or add the account to the group";

/// Access control lists, with which the mode alone does not decide.
const ACL: &[u8] = b"system.posix_acl_access";

const READ: u16 = 0o4;
const EXECUTE: u16 = 0o1;

impl Image<'_> {
    /// Programs and working directories that the account of a service cannot reach.
    pub(super) fn denied_paths(&self, unit: &Loaded) -> Vec<Fault> {
        if unit.has_root() {
            return Vec::new();
        }
        let identity = self.identity(unit);
        let mut found = Vec::new();
        for program in unit.programs() {
            let Some(path) = self.found(&program.path) else { continue };
            let as_user = identity.as_ref().filter(|_| !program.is_privileged && !program.is_root);
            if let Some(reason) = self.denied(as_user, &path, true) {
                found.push(Fault::of(program.setting, format!("it runs {path}, but {reason}"), HINT));
            }
        }
        let directory = unit.of_service("WorkingDirectory").filter(|setting| setting.value.starts_with('/'));
        if let Some((setting, identity)) = directory.zip(identity.as_ref())
            && let Some(reason) = self.denied(Some(identity), &setting.value, false)
        {
            found.push(Fault::of(setting, format!("its working directory is {}, but {reason}", setting.value), HINT));
        }
        found
    }

    /// Why an account, or root if there is none, cannot enter a directory or run a program that the image has.
    fn denied(&self, identity: Option<&Identity>, path: &str, is_program: bool) -> Option<String> {
        let (real, id) = self.target.tree.real_path(path.as_bytes(), true).ok()??;
        let real = String::from_utf8(real).ok()?;
        let inode = self.target.tree.inode(id);
        if let Some(identity) = identity {
            let above = real.match_indices('/').map(|(at, _)| &real[..at.max(1)]);
            let denied = above.into_iter().find(|dir| {
                let id = self.target.tree.lookup(dir.as_bytes());
                id.is_some_and(|id| !self.allows(identity, dir, self.target.tree.inode(id), EXECUTE))
            });
            if let Some(dir) = denied {
                let inode = self.target.tree.inode(self.target.tree.lookup(dir.as_bytes())?);
                return Some(format!("{} cannot enter {dir}: {}", identity.name, self.described(inode)));
            }
        }
        let described = || format!("{real} has {}", self.described(inode));
        match &inode.kind {
            Kind::Directory(_) if is_program => Some(format!("{real} is a directory")),
            Kind::Directory(_) => {
                let identity = identity.filter(|identity| !self.allows(identity, &real, inode, EXECUTE))?;
                Some(format!("{} cannot enter {real}: {}", identity.name, self.described(inode)))
            }
            Kind::File(_) if inode.meta.mode & 0o111 == 0 => {
                // A base that is at fault itself stays as it is.
                let is_judged = self.target.layer_of_change(id).is_some() && !self.made.changes(&real);
                is_judged.then(|| format!("no account may execute it: {}", described()))
            }
            Kind::File(_) => {
                let identity = identity?;
                let is_script = self.target.bytes(&real).is_ok_and(|bytes| bytes.starts_with(b"#!"));
                let needed = if is_script { READ | EXECUTE } else { EXECUTE };
                let is_denied = !self.allows(identity, &real, inode, needed);
                is_denied.then(|| format!("{} may not execute it: {}", identity.name, described()))
            }
            _ => None,
        }
    }

    fn allows(&self, identity: &Identity, path: &str, inode: &Inode, needed: u16) -> bool {
        let meta = &inode.meta;
        let shift = if identity.uid == Some(meta.uid) {
            6
        } else if identity.gids.contains(&meta.gid) {
            3
        } else {
            0
        };
        (meta.mode >> shift) & needed == needed || meta.xattrs.contains_key(ACL) || self.made.changes(path)
    }

    /// Mode and owner.
    fn described(&self, inode: &Inode) -> String {
        let name = |file: &str, id: u32| {
            let text = self.target.text(file).unwrap_or_default();
            let line = text.lines().find(|line| line.split(':').nth(2) == Some(id.to_string().as_str()));
            line.and_then(|line| line.split(':').next()).map_or(id.to_string(), str::to_owned)
        };
        let meta = &inode.meta;
        let (user, group) = (name("/etc/passwd", meta.uid), name("/etc/group", meta.gid));
        format!("mode {:04o} {user}:{group}", meta.mode & 0o7777)
    }
}
