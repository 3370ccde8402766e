//! Answers file requests of scripts, or records them as unknown.

use std::collections::BTreeSet;

use vmbake_disk::tree::{InodeId, Kind, OriginId};
use vmbake_shell::{Aspect, Errno, Files, Follow, Node};

use super::{KnownFiles, NOW, ResolvedPath, is_below, strip};
use crate::import::base::{self, Basis};
use crate::import::base_tree;
use crate::import::machine::has_token;
use crate::import::runtime::name_of_unknown;

impl Files for KnownFiles<'_> {
    fn lookup(&self, path: &[u8], follow: Follow) -> Result<Node, Errno> {
        self.found(path, follow).and_then(|_| self.files.lookup(path, follow))
    }

    fn read(&self, path: &[u8], limit: usize) -> Result<Vec<u8>, Errno> {
        let (id, full) = self.found(path, Follow::Yes)?;
        match self.base.get(&id) {
            Some(Basis::Exists) if !self.is_dir(id) => self.ask("the content of", &full),
            _ => self.files.read(path, limit),
        }
    }

    fn write(&mut self, path: &[u8], content: Vec<u8>, mode: u16) -> Result<(), Errno> {
        if let Some(name) = name_of_unknown(&content) {
            let _ = self.ask::<()>("the text", format!("{{{{ {name} }}}}").as_bytes());
        }
        self.writable(path)?;
        let is_new = matches!(self.resolve(path, Follow::Yes), ResolvedPath::Unknown(_));
        self.files.write(path, content, mode)?;
        if is_new {
            self.keep(path);
        }
        Ok(())
    }

    fn copy(&mut self, from: &[u8], to: &[u8], mode: u16, limit: usize) -> Result<(), Errno> {
        let content = self.read(from, limit)?;
        self.write(to, content, mode)
    }

    fn list(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        self.fitting(path, &|_| true)
    }

    fn fitting(&self, path: &[u8], fits: &dyn Fn(&[u8]) -> bool) -> Result<Vec<Vec<u8>>, Errno> {
        let (id, full) = self.found(path, Follow::Yes)?;
        if self.is_dir(id) && !self.shows(id, &full, fits) {
            return self.ask("the entries of", &full);
        }
        self.files.list(path)
    }

    fn read_link(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        self.inspect(path, Follow::No, Aspect::Kind);
        self.found(path, Follow::No).and_then(|_| self.files.read_link(path))
    }

    fn create_dir(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        self.vacant(path)?;
        self.files.create_dir(path, mode)?;
        self.created_dir(path);
        Ok(())
    }

    fn symlink(&mut self, target: &[u8], path: &[u8]) -> Result<(), Errno> {
        self.vacant(path).and_then(|()| self.files.symlink(target, path))
    }

    fn hard_link(&mut self, from: &[u8], path: &[u8]) -> Result<(), Errno> {
        let (id, full) = self.own(from, Follow::No)?;
        if self.is_image && self.base.contains_key(&id) {
            return self.ask("other names of the file", &full);
        }
        self.vacant(path).and_then(|()| self.files.hard_link(from, path))
    }

    fn remove(&mut self, path: &[u8]) -> Result<(), Errno> {
        let (id, full) = self.removable(path)?;
        self.files.remove(path)?;
        self.note_removal(id, &full);
        Ok(())
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        let (id, old_path) = self.removable(from)?;
        let is_dir = self.is_dir(id);
        if self.is_image && is_dir && self.base.contains_key(&id) {
            return self.ask("the files of packages in", &old_path);
        }
        match self.resolve(strip(to), Follow::No) {
            ResolvedPath::Found(old, full) => {
                self.own(&full, Follow::No)?;
                if self.is_dir(old) && !self.is_whole(old, &full) {
                    return self.ask("the entries of", &full);
                }
            }
            ResolvedPath::Absent => {}
            ResolvedPath::Unknown(full) if !is_dir && !base::is_protected(&full) => {}
            ResolvedPath::Unknown(full) | ResolvedPath::Beyond(full) => return self.ask("the file", &full),
            ResolvedPath::Error(error) => return Err(error),
        }
        self.files.rename(from, to)?;
        self.note_removal(id, &old_path);
        Ok(())
    }

    fn set_mode(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        if let Ok((id, _)) = self.found(path, Follow::Yes) {
            self.modes.remove(&id);
            if self.files.lookup(path, Follow::Yes)?.mode == mode {
                return Ok(());
            }
        }
        self.own(path, Follow::Yes).and_then(|_| self.files.set_mode(path, mode))
    }

    fn set_owner(&mut self, path: &[u8], uid: u32, gid: u32, follow: Follow) -> Result<(), Errno> {
        if self.found(path, follow).is_ok() {
            let node = self.files.lookup(path, follow)?;
            if (node.uid, node.gid) == (uid, gid) && !(node.is_file() && self.files.has_attributes(path)) {
                return Ok(());
            }
        }
        self.own(path, follow).and_then(|_| self.files.set_owner(path, uid, gid, follow))
    }

    fn has_attributes(&self, path: &[u8]) -> bool {
        self.files.has_attributes(path)
    }

    fn copy_attributes(&mut self, from: &[u8], _to: &[u8]) -> Result<(), Errno> {
        // Layers do not store them.
        match self.files.has_attributes(from) {
            true => self.ask("the extended attributes of", from),
            false => Ok(()),
        }
    }

    fn set_mtime(&mut self, path: &[u8], mtime: Option<(i64, u32)>) -> Result<(), Errno> {
        let (_, full) = self.own(path, Follow::No)?;
        // Layers store no times: only that of new files is right.
        if mtime.is_some_and(|time| time != (NOW.secs, NOW.nanos)) {
            return self.ask("the time of", &full);
        }
        self.files.set_mtime(path, mtime)
    }

    fn none_fits(&self, path: &[u8], fits: &dyn Fn(&[u8]) -> bool) -> bool {
        let is_root = matches!(self.resolve(path, Follow::Yes), ResolvedPath::Found(_, full) if full == b"/");
        is_root
            && !base::fits_root(fits)
            && self.files.list(path).is_ok_and(|names| !names.iter().any(|name| fits(name)))
    }

    fn unknown(&self) -> Option<String> {
        self.unknown.borrow().clone()
    }

    fn inspect(&self, path: &[u8], follow: Follow, property: Aspect) {
        let ResolvedPath::Found(id, full) = self.resolve(path, follow) else { return };
        let is_known = match property {
            Aspect::Kind => !self.kept.contains(&id),
            Aspect::Mode => !self.modes.contains(&id),
            Aspect::Size => self.has_size(id, &full),
            Aspect::Emptiness => full == base::NAME.as_bytes() || self.has_size(id, &full),
            Aspect::Time => false,
        };
        if !is_known {
            let _ = self.ask::<()>(&format!("the {} of", property.name()), &full);
        }
    }

    fn read_program(&self, path: &[u8], limit: usize) -> Result<Vec<u8>, Errno> {
        match self.resolve(path, Follow::Yes) {
            ResolvedPath::Found(_, full) if full == base::SUDO.as_bytes() => self.files.read(&full, limit),
            _ => self.read(path, limit),
        }
    }

    fn dangles(&self, path: &[u8]) -> bool {
        let ResolvedPath::Found(id, _) = self.resolve(path, Follow::No) else { return false };
        let is_link = matches!(self.files.tree().inode(id).kind, Kind::Symlink(_));
        match self.resolve(path, Follow::Yes) {
            ResolvedPath::Absent | ResolvedPath::Error(Errno::Enoent) => is_link,
            ResolvedPath::Unknown(full) | ResolvedPath::Beyond(full) => {
                let _ = self.ask::<()>("the file", &full);
                is_link
            }
            _ => false,
        }
    }

    fn destination(&self, path: &[u8]) -> Result<Node, Errno> {
        match self.resolve(path, Follow::Yes) {
            ResolvedPath::Found(..) => self.files.lookup(path, Follow::Yes),
            ResolvedPath::Error(error) => Err(error),
            ResolvedPath::Unknown(full) | ResolvedPath::Beyond(full) if self.is_named(path) => {
                self.ask("the file", &full)
            }
            _ => Err(Errno::Enoent),
        }
    }

    fn known_link(&self, path: &[u8]) -> Option<Vec<u8>> {
        match self.resolve(path, Follow::No) {
            ResolvedPath::Found(..) => self.files.read_link(path).ok(),
            _ => None,
        }
    }

    fn make_way(&mut self, path: &[u8]) -> Result<(), Errno> {
        match self.resolve(path, Follow::No) {
            ResolvedPath::Found(id, _) if self.is_dir(id) => Err(Errno::Eisdir),
            ResolvedPath::Found(id, full) => {
                self.own(&full, Follow::No)?;
                self.files.remove(path)?;
                self.note_removal(id, &full);
                match self.modes.contains(&id) {
                    true => self.former.insert(full.clone()),
                    false => self.former.remove(&full),
                };
                if !self.replaces_nothing(&full) {
                    self.vacated.insert(full);
                }
                Ok(())
            }
            ResolvedPath::Absent => Ok(()),
            ResolvedPath::Unknown(full) if !base::is_protected(&full) => {
                self.vacated.insert(full);
                Ok(())
            }
            ResolvedPath::Unknown(full) | ResolvedPath::Beyond(full) => self.ask("the file", &full),
            ResolvedPath::Error(error) => Err(error),
        }
    }

    fn inherit(&mut self, path: &[u8], from: &Node) -> Result<(), Errno> {
        self.set_owner(path, from.uid, from.gid, Follow::Yes)?;
        self.set_mode(path, from.mode)?;
        match self.resolve(path, Follow::Yes) {
            ResolvedPath::Found(id, full) if self.former.contains(&full) => drop(self.modes.insert(id)),
            _ => {}
        }
        Ok(())
    }

    fn ensure_dir(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        match self.resolve(path, Follow::Yes) {
            ResolvedPath::Found(id, _) if self.is_dir(id) => Ok(()),
            ResolvedPath::Found(..) => Err(Errno::Eexist),
            ResolvedPath::Absent => self.create_dir(path, mode),
            ResolvedPath::Unknown(full) if base::is_special(&full) || self.is_named(path) => {
                self.ask("the directory", &full)
            }
            ResolvedPath::Unknown(_) => {
                self.files.create_dir(path, mode)?;
                self.keep(path);
                Ok(())
            }
            ResolvedPath::Beyond(full) => self.ask("the file", &full),
            ResolvedPath::Error(error) => Err(error),
        }
    }

    fn is_made(&self, path: &[u8]) -> bool {
        matches!(self.resolve(path, Follow::Yes), ResolvedPath::Found(id, _) if !self.base.contains_key(&id))
    }

    fn packages_come(&mut self) {
        match self.all() {
            Ok(all) => {
                let paths = all.into_iter().map(|(_, found)| found.path.into_bytes());
                let may_be_packaged =
                    |path: &Vec<u8>| !base::is_vacant(path) || self.open.iter().any(|open| is_below(path, open));
                let earlier: Vec<Vec<u8>> = paths.filter(may_be_packaged).collect();
                self.earlier.extend(earlier);
            }
            Err(_) => drop(self.ask::<()>("the entries of", b"/")),
        }
        if !self.is_image || self.has_packages {
            return;
        }
        self.has_packages = true;
        let (origin, absent) = (self.origin, self.absent);
        if base_tree::forget(self.files.tree_mut(), origin, &mut self.base).is_err() {
            let _ = self.ask::<()>("the file", b"/");
        }
        let tree = self.files.tree();
        let is_local =
            |path: &[u8]| base::is_vacant(path) || str::from_utf8(path).is_ok_and(|path| absent.contains(path));
        let local = tree.walk().filter(|(path, ..)| is_local(path)).map(|(_, id, _)| id);
        let local: BTreeSet<InodeId> = local.filter(|id| !self.base.contains_key(id)).collect();
        self.complete.retain(|id| local.contains(id));
    }

    fn may_have_more(&mut self, path: &[u8]) {
        if path == b"/" {
            match self.all() {
                Ok(all) => self.left.push(all.into_iter().map(|(_, found)| found).collect()),
                Err(_) => drop(self.ask::<()>("the entries of", path)),
            }
        }
        if let ResolvedPath::Found(_, full) = self.resolve(path, Follow::Yes) {
            self.open.insert(full);
        }
    }

    fn unpack_into(&mut self, path: &[u8]) -> Vec<Vec<u8>> {
        self.may_have_more(path);
        let ResolvedPath::Found(_, directory) = self.resolve(path, Follow::Yes) else { return Vec::new() };
        let is_own = |id: InodeId, origin: OriginId| match self.base.get(&id) {
            None | Some(Basis::Whole) if !self.is_image => true,
            found => found.is_none() || origin == self.origin,
        };
        let inside = self.files.tree().walk().filter(|(path, id, inode)| {
            is_own(*id, inode.origin) && (*path == directory || is_below(path, &directory))
        });
        let (mut directories, mut others) = (Vec::new(), Vec::new());
        for (path, id, inode) in inside {
            match inode.kind {
                Kind::Directory(_) => directories.push(id),
                // A fetched file and a member of an archive do not get the same name in an image.
                _ if self.files.read(&path, base::LARGEST).is_ok_and(|text| has_token(&text)) => {}
                _ => others.push(path),
            }
        }
        self.modes.extend(directories);
        others
    }
}
