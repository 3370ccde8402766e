//! The file tree of scripts, as an interface. Paths are absolute; symbolic links are followed inside of the tree, as after chroot(2).

mod watched;

use std::fmt;

pub(crate) use watched::Watched;

/// Why an operation on the tree failed, by the names of errno(3); texts are those of strerror(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// Nothing is there.
    Enoent,
    /// A path leads through something that is not a directory.
    Enotdir,
    /// A directory is in place of a file.
    Eisdir,
    /// Something is there already.
    Eexist,
    /// A directory has entries.
    Enotempty,
    Ebusy,
    /// Too many symbolic links.
    Eloop,
    /// No file can have that name, or not that operation.
    Einval,
    /// A name is too long.
    Enametoolong,
    /// The tree does not allow it.
    Eperm,
    /// A file is larger than the caller reads into memory.
    Efbig,
    /// A content cannot be read.
    Eio,
    /// No such device.
    Enxio,
}

impl Errno {
    /// The text of strerror(3).
    pub fn text(self) -> &'static str {
        match self {
            Self::Enoent => "No such file or directory",
            Self::Enotdir => "Not a directory",
            Self::Eisdir => "Is a directory",
            Self::Eexist => "File exists",
            Self::Enotempty => "Directory not empty",
            Self::Ebusy => "Device or resource busy",
            Self::Eloop => "Too many levels of symbolic links",
            Self::Einval => "Invalid argument",
            Self::Enametoolong => "File name too long",
            Self::Eperm => "Operation not permitted",
            Self::Efbig => "File too large",
            Self::Eio => "Input/output error",
            Self::Enxio => "No such device or address",
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}

impl std::error::Error for Errno {}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// As stat(2).
    Yes,
    /// As lstat(2).
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A character device.
    CharDevice,
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
}

/// What stat(2) says of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The same for all names of one inode, and for no other; it may be given again after the inode is gone.
    pub id: u64,
    /// What it is.
    pub kind: NodeKind,
    /// Permission bits, set-id and sticky bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Length of a regular file or of a link's target in bytes; 0 for others.
    pub size: u64,
    /// Last change of the content: seconds since 1970 and nanoseconds.
    pub mtime: (i64, u32),
}

impl Node {
    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind == NodeKind::Directory
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == NodeKind::File
    }

    /// Whether it is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.kind == NodeKind::Symlink
    }
}

/// A property of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// File type.
    Kind,
    /// Permission bits.
    Mode,
    /// Length in bytes.
    Size,
    /// Whether the length is zero.
    Emptiness,
    /// Modification time.
    Time,
}

impl Aspect {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kind => "type",
            Self::Mode => "mode",
            Self::Size | Self::Emptiness => "size",
            Self::Time => "time",
        }
    }
}

/// A file tree. New nodes belong to root, with the group of a directory that has the set-group-ID bit, and have the time of the image.
/// Permissions are not checked, since scripts run as root.
pub trait Files {
    /// stat(2) or lstat(2).
    fn lookup(&self, path: &[u8], follow: Follow) -> Result<Node, Errno>;

    /// The whole content of a regular file of at most `limit` bytes; links are followed.
    fn read(&self, path: &[u8], limit: usize) -> Result<Vec<u8>, Errno>;

    /// Gives a regular file this content, as `open(O_CREAT | O_TRUNC)` and write(2) do: links are followed, one that dangles included, an
    /// existing inode keeps its names, owner and mode, but not its capabilities, and a new one gets `mode`.
    fn write(&mut self, path: &[u8], content: Vec<u8>, mode: u16) -> Result<(), Errno>;

    /// Gives the regular file `to` the content of `from`, as [`Files::write`]. A tree whose contents are references need not read it.
    fn copy(&mut self, from: &[u8], to: &[u8], mode: u16, limit: usize) -> Result<(), Errno> {
        let content = self.read(from, limit)?;
        self.write(to, content, mode)
    }

    /// The names in a directory, without `.` and `..`, sorted by bytes.
    fn list(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, Errno>;

    /// The target of a symbolic link.
    fn read_link(&self, path: &[u8]) -> Result<Vec<u8>, Errno>;

    /// mkdir(2), which ignores set-id bits.
    fn create_dir(&mut self, path: &[u8], mode: u16) -> Result<(), Errno>;

    fn symlink(&mut self, target: &[u8], path: &[u8]) -> Result<(), Errno>;

    /// link(2), which does not follow `from`.
    fn hard_link(&mut self, from: &[u8], path: &[u8]) -> Result<(), Errno>;

    /// unlink(2), and rmdir(2) for a directory.
    fn remove(&mut self, path: &[u8]) -> Result<(), Errno>;

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), Errno>;

    /// chmod(2): links are followed.
    fn set_mode(&mut self, path: &[u8], mode: u16) -> Result<(), Errno>;

    /// chown(2) or lchown(2), which also removes the capabilities of a regular file. The caller clears set-id bits, as Linux does.
    fn set_owner(&mut self, path: &[u8], uid: u32, gid: u32, follow: Follow) -> Result<(), Errno>;

    /// Whether a file has extended attributes, links followed.
    fn has_attributes(&self, path: &[u8]) -> bool {
        let _ = path;
        false
    }

    /// Gives the file `to` the extended attributes of `from`, links followed. A tree without extended attributes has nothing to do.
    fn copy_attributes(&mut self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        let _ = (from, to);
        Ok(())
    }

    /// utimensat(2) on what the path names, a link itself included; `None` is the time of the image.
    fn set_mtime(&mut self, path: &[u8], mtime: Option<(i64, u32)>) -> Result<(), Errno>;

    /// Whether no name in a directory fits a pattern, in a tree that knows this without all of the names.
    fn none_fits(&self, path: &[u8], fits: &dyn Fn(&[u8]) -> bool) -> bool {
        let _ = (path, fits);
        false
    }

    /// The first request whose answer the tree does not know, such as `the file /etc/hosts`. The result of that request means nothing: the
    /// interpreter gives the run up after each command for which this is not `None`. Complete trees know everything.
    fn unknown(&self) -> Option<String> {
        None
    }

    /// Called before a result depends on a property of a [`Node`]. An incomplete tree records properties that it does not know, see
    /// [`Files::unknown`].
    fn inspect(&self, path: &[u8], follow: Follow, property: Aspect) {
        let _ = (path, follow, property);
    }

    /// [`Files::read`] for a program that is about to run.
    fn read_program(&self, path: &[u8], limit: usize) -> Result<Vec<u8>, Errno> {
        self.read(path, limit)
    }

    /// What a new file at this path would replace, links followed: [`Files::lookup`] for commands that create the file whether or not
    /// something is there. An incomplete tree reports an unknown name as [`Errno::Enoent`].
    fn destination(&self, path: &[u8]) -> Result<Node, Errno> {
        self.lookup(path, Follow::Yes)
    }

    /// Whether the path names a symbolic link that leads nowhere. It asks for nothing that the tree does not show.
    fn dangles(&self, path: &[u8]) -> bool {
        let _ = path;
        false
    }

    /// The time that new and changed files get, which stands for that of the run; `None` where each has its own.
    fn new_time(&self) -> Option<(i64, u32)> {
        None
    }

    /// The number of names of an inode, links not followed.
    fn link_count(&self, path: &[u8]) -> Result<u64, Errno> {
        self.lookup(path, Follow::No).map(|_| 1)
    }

    /// The target of a symbolic link, for callers that an unknown name does not stop.
    fn known_link(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.read_link(path).ok()
    }

    /// Removes what is not a directory, if it exists, so that the caller can create the name anew.
    fn make_way(&mut self, path: &[u8]) -> Result<(), Errno> {
        match self.lookup(path, Follow::No) {
            Ok(node) if node.is_dir() => Err(Errno::Eisdir),
            Ok(_) => self.remove(path),
            Err(Errno::Enoent) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Gives a file the owner and mode of the one whose name it took.
    fn inherit(&mut self, path: &[u8], from: &Node) -> Result<(), Errno> {
        self.set_owner(path, from.uid, from.gid, Follow::Yes)?;
        self.set_mode(path, from.mode)
    }

    /// mkdir(2), unless the path leads to a directory already.
    fn ensure_dir(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        match self.lookup(path, Follow::Yes) {
            Ok(node) if node.is_dir() => Ok(()),
            Ok(_) => Err(Errno::Eexist),
            Err(Errno::Enoent) => self.create_dir(path, mode),
            Err(error) => Err(error),
        }
    }

    /// The names in a directory as [`Files::list`], for a caller that looks only at those that fit: a tree that knows these without all of the
    /// others may leave the others out.
    fn fitting(&self, path: &[u8], fits: &dyn Fn(&[u8]) -> bool) -> Result<Vec<Vec<u8>>, Errno> {
        let _ = fits;
        self.list(path)
    }

    /// Whether a path leads to something that commands made: not to what an incomplete tree has of the system.
    fn is_made(&self, path: &[u8]) -> bool {
        self.destination(path).is_ok()
    }

    /// From here on, there are packages that the tree does not have. Complete trees ignore it.
    fn packages_come(&mut self) {}

    /// From here on, a directory may have more below it than the tree shows. Complete trees ignore it.
    fn may_have_more(&mut self, path: &[u8]) {
        let _ = path;
    }

    /// [`Files::may_have_more`] for an archive that is unpacked there, and that may change modes of directories. Gives the files and links
    /// that commands made there before, which the archive would replace. Complete trees ignore it.
    fn unpack_into(&mut self, path: &[u8]) -> Vec<Vec<u8>> {
        let _ = path;
        Vec::new()
    }
}
