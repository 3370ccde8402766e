//! Effects of imported profile scripts that depend on the rest of the image.
//!
//! Archives are extracted as by GNU tar run by root: members keep their owners from the archive, by name if the system has the name and by
//! number otherwise; existing directories get mode and owner from the archive.
//!
//! Stricter than tar: a directory does not replace a symbolic link, and an owner that only a package, a layer or cloud-init creates is
//! refused, because its id depends on the order of creation. A file that a script wrote in place is refused if the image has a file there
//! whose mode would be kept, or a link that the script would follow.

use vmbake_disk::source::SourceId;
use vmbake_disk::tree::{Kind, Metadata, Origin, Tree};
use vmbake_layer::{ExtractOption, InPlace, Schema};

use super::database::Database;
use super::place::Target;
use super::{MAX_TEXT, MergeError, accounts};
use crate::stage::{Member, MemberKind};

/// Files of users and groups, with what they are.
const FILES: [(&str, &str); 2] = [("user", "/etc/passwd"), ("group", "/etc/group")];
/// Mode of a directory that `mkdir` creates.
const NEW_DIRECTORY: u16 = 0o755;
/// The default user of Debian's cloud-init, and the group that it makes for it.
const OF_CLOUD_INIT: [&str; 2] = ["debian", "netdev"];

/// Users and groups of the base, in the form of passwd(5) and group(5).
pub(super) struct BaseAccounts([String; 2]);

impl BaseAccounts {
    pub(super) fn of(tree: &Tree) -> Self {
        let text = |path: &str| tree.read(path.as_bytes(), MAX_TEXT).unwrap_or_default();
        Self(FILES.map(|(_, path)| String::from_utf8_lossy(&text(path)).into_owned()))
    }
}

/// Fails if something of these origins is that a script which writes in place would not leave as the layer has it.
pub(super) fn check_in_place(
    target: &Target,
    schema: &Schema,
    concerns: impl Fn(&str, &Origin) -> bool,
) -> Result<(), MergeError> {
    for (path, InPlace { mode: wanted }) in &schema.in_place {
        let Some(id) = target.wrap(target.tree.find(path.as_bytes()))? else { continue };
        let inode = target.tree.inode(id);
        if !concerns(path, target.tree.origin(inode.origin)) {
            continue;
        }
        let Metadata { mode, uid, gid, .. } = inode.meta;
        let is_same = (uid, gid) == (0, 0) && wanted.is_none_or(|wanted| wanted == mode);
        if !(is_same && matches!(inode.kind, Kind::File(_))) {
            let found = format!("{} with mode {mode:04o} and owner {uid}:{gid}", inode.kind.name());
            let wanted = wanted.map(|mode| format!(" with mode {mode:04o}")).unwrap_or_default();
            return Err(MergeError::InPlace { path: path.clone(), layer: schema.name.clone(), found, wanted });
        }
    }
    Ok(())
}

/// Fails where a package of the layer has what a script created before it installed the package, and dpkg would not leave it as it is.
pub(super) fn check_before_packages(target: &Target, schema: &Schema, packages: &Database) -> Result<(), MergeError> {
    for path in &schema.before_packages {
        let Some(id) = target.wrap(target.tree.find(path.as_bytes()))? else { continue };
        let inode = target.tree.inode(id);
        let origin = target.tree.origin(inode.origin);
        if origin.layer != schema.name {
            continue;
        }
        if let Some(package) = packages.owner_of_conffile(path) {
            // dpkg keeps a link or directory, too, but leaves its own version next to it as `.dpkg-new`.
            let is_file = !schema.symlinks.contains_key(path) && !schema.directories.contains_key(path);
            if is_file && schema.keep_conffiles.iter().any(|kept| kept == package) {
                continue;
            }
            let (path, layer, package) = (path.clone(), schema.name.clone(), package.to_owned());
            return Err(MergeError::ConffilePrompt { path, layer, package });
        }
        let has_mode = || schema.directories.get(path).is_some_and(|directory| directory.mode.is_some());
        let Metadata { mode, uid, gid, .. } = inode.meta;
        let is_same = (mode, uid, gid) == (NEW_DIRECTORY, 0, 0);
        if !(matches!(inode.kind, Kind::Directory(_)) && (is_same || has_mode())) {
            return Err(MergeError::BeforePackages {
                path: path.clone(),
                layer: schema.name.clone(),
                artifact: origin.artifact.clone().unwrap_or_else(|| "a maintainer script".to_owned()),
                found: inode.kind.name(),
            });
        }
    }
    Ok(())
}

impl Target {
    /// Places the members of an archive, which [`extract`](crate::stage::extract) has selected.
    pub(super) fn extract(
        &mut self,
        members: &[Member],
        source: SourceId,
        option: ExtractOption,
    ) -> Result<(), MergeError> {
        let mut members = members.to_vec();
        for member in &mut members {
            let keeps_owner = option == ExtractOption::SameOwner;
            let owner = if keeps_owner { self.owner_of(member)? } else { [0, 0] };
            [member.meta.uid, member.meta.gid] = owner;
            if member.kind == MemberKind::Directory {
                self.overwrite(&member.path, &member.meta, keeps_owner)?;
            }
        }
        self.entries(&members, source, true)
    }

    /// The user and group of a member.
    fn owner_of(&self, member: &Member) -> Result<[u32; 2], MergeError> {
        let mut owner = [member.meta.uid, member.meta.gid];
        for (index, (what, file)) in FILES.into_iter().enumerate() {
            let name = String::from_utf8_lossy(&member.owner[index]);
            let base = accounts::id_in(&self.base_accounts.0[index], &name);
            owner[index] = match (&*name, base, accounts::lookup(self, file, &name)?) {
                ("", ..) => continue,
                ("root", ..) => 0,
                (_, Some(base), Some(now)) if base == now => base,
                (name, None, None) if !OF_CLOUD_INIT.contains(&name) => continue,
                _ => {
                    let artifact = self.origin().artifact.clone().unwrap_or_default();
                    let path = vmbake_common::escape::name(&member.path);
                    return Err(MergeError::MemberOwner { path, artifact, what, name: name.into_owned() });
                }
            };
        }
        Ok(owner)
    }

    /// Gives a directory that exists the metadata of a member.
    fn overwrite(&mut self, path: &[u8], meta: &Metadata, owner: bool) -> Result<(), MergeError> {
        self.check_visible(path)?;
        self.check_way(path)?;
        let found = self.wrap(self.tree.find(path))?;
        match found.map(|id| (id, &self.tree.inode(id).kind)) {
            Some((id, Kind::Directory(_))) => {
                let before = &self.tree.inode(id).meta;
                let (uid, gid) = if owner { (meta.uid, meta.gid) } else { (before.uid, before.gid) };
                self.set_meta(id, &Metadata { uid, gid, ..meta.clone() });
                Ok(())
            }
            Some((_, Kind::Symlink(_))) => Err(MergeError::Occupied {
                path: vmbake_common::escape::name(path),
                artifact: self.origin().artifact.clone().unwrap_or_default(),
                found: "symbolic link",
                wanted: "directory",
            }),
            _ => Ok(()),
        }
    }
}
