//! The image's tree for scripts: files that a script writes belong to its package, and must not have privileges that no layer lists.

use std::cell::{Cell, RefCell};

use vmbake_disk::tree::Metadata;
use vmbake_shell::{Errno, Files, Follow, Node};

use crate::merge::MergeError;
use crate::merge::place::Target;

/// The file of the machine's ID, which is empty in images.
pub(super) const MACHINE_ID: &[u8] = b"/etc/machine-id";

/// The tree, which the commands of the same script change too.
pub(super) struct TargetFiles<'a, 't> {
    target: &'a RefCell<&'t mut Target>,
    /// What a script may not do ends it here.
    fault: &'a RefCell<Option<MergeError>>,
    /// Whether the script has read the machine ID.
    reads_id: Cell<bool>,
}

impl<'a, 't> TargetFiles<'a, 't> {
    pub(super) fn new(target: &'a RefCell<&'t mut Target>, fault: &'a RefCell<Option<MergeError>>) -> Self {
        Self { target, fault, reads_id: Cell::new(false) }
    }

    /// Whether the script has read the machine ID, which only a machine has.
    pub(super) fn reads_id(&self) -> bool {
        self.reads_id.get()
    }

    fn note_read(&self, path: &[u8]) {
        let target = self.target.borrow();
        let found = |path| target.tree.resolve(path).ok();
        if found(path).is_some_and(|id| Some(id) == found(MACHINE_ID)) {
            self.reads_id.set(true);
        }
    }
}

impl Files for TargetFiles<'_, '_> {
    fn lookup(&self, path: &[u8], follow: Follow) -> Result<Node, Errno> {
        self.target.borrow_mut().files().lookup(path, follow)
    }

    fn read(&self, path: &[u8], limit: usize) -> Result<Vec<u8>, Errno> {
        self.note_read(path);
        self.target.borrow_mut().files().read(path, limit)
    }

    fn write(&mut self, path: &[u8], content: Vec<u8>, mode: u16) -> Result<(), Errno> {
        self.target.borrow_mut().files().write(path, content, mode)
    }

    fn copy(&mut self, from: &[u8], to: &[u8], mode: u16, limit: usize) -> Result<(), Errno> {
        self.note_read(from);
        self.target.borrow_mut().files().copy(from, to, mode, limit)
    }

    fn list(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        self.target.borrow_mut().files().list(path)
    }

    fn read_link(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        self.target.borrow_mut().files().read_link(path)
    }

    fn create_dir(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        self.target.borrow_mut().files().create_dir(path, mode)
    }

    fn symlink(&mut self, target: &[u8], path: &[u8]) -> Result<(), Errno> {
        self.target.borrow_mut().files().symlink(target, path)
    }

    fn hard_link(&mut self, from: &[u8], path: &[u8]) -> Result<(), Errno> {
        self.target.borrow_mut().files().hard_link(from, path)
    }

    fn remove(&mut self, path: &[u8]) -> Result<(), Errno> {
        self.target.borrow_mut().files().remove(path)
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        self.target.borrow_mut().files().rename(from, to)
    }

    fn set_mode(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        let mut target = self.target.borrow_mut();
        if let Ok(id) = target.tree.resolve(path) {
            let inode = target.tree.inode(id);
            let meta = Metadata { mode, ..inode.meta.clone() };
            if mode & 0o7000 != 0
                && let Err(error) = target.check_privileges(path, &meta, &inode.kind)
            {
                self.fault.borrow_mut().get_or_insert(error);
            }
        }
        target.files().set_mode(path, mode)
    }

    fn set_owner(&mut self, path: &[u8], uid: u32, gid: u32, follow: Follow) -> Result<(), Errno> {
        self.target.borrow_mut().files().set_owner(path, uid, gid, follow)
    }

    fn has_attributes(&self, path: &[u8]) -> bool {
        self.target.borrow_mut().files().has_attributes(path)
    }

    fn copy_attributes(&mut self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        let mut target = self.target.borrow_mut();
        target.files().copy_attributes(from, to)?;
        if let Ok(id) = target.tree.resolve(to) {
            let inode = target.tree.inode(id);
            if let Err(error) = target.check_privileges(to, &inode.meta, &inode.kind) {
                self.fault.borrow_mut().get_or_insert(error);
            }
        }
        Ok(())
    }

    fn dangles(&self, path: &[u8]) -> bool {
        self.target.borrow_mut().files().dangles(path)
    }

    fn new_time(&self) -> Option<(i64, u32)> {
        self.target.borrow_mut().files().new_time()
    }

    fn link_count(&self, path: &[u8]) -> Result<u64, Errno> {
        self.target.borrow_mut().files().link_count(path)
    }

    fn set_mtime(&mut self, path: &[u8], mtime: Option<(i64, u32)>) -> Result<(), Errno> {
        self.target.borrow_mut().files().set_mtime(path, mtime)
    }
}
