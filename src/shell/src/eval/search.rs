//! Resolves the name of a program: a path, or the first match in the search path. Programs of the system need not be in the tree.

use std::rc::Rc;

use super::Run;
use crate::commands;
use crate::files::{Aspect, Errno, Follow};
use crate::host::{SYSTEM, in_system};
use crate::shell::Shell;
use crate::state::Hashed;

/// Programs that the interpreter knows are larger than this; a smaller file in their place that begins as a script is another program.
const LARGEST_SCRIPT: u64 = 16 << 10;

/// Known programs that are scripts on Debian, or links to others.
const SCRIPTS: [&[u8]; 5] = [b"which", b"egrep", b"fgrep", b"sh", b"tempfile"];

/// Where the program is that a name means.
#[derive(Debug, Default)]
pub(crate) struct ProgramLocation {
    /// The name of a program of the system that comes before files elsewhere: the base name, or its path if the script has one.
    pub(crate) system: Option<Vec<u8>>,
    /// The first executable file.
    pub(crate) file: Option<Vec<u8>>,
    /// Why nothing was found.
    pub(crate) error: Option<Errno>,
}

impl ProgramLocation {
    /// The last component of a program of the system.
    pub(crate) fn system_name(&self) -> Option<&[u8]> {
        self.system.as_ref().and_then(|name| name.rsplit(|byte| *byte == b'/').next())
    }
}

impl Shell<'_> {
    /// The program that a simple command means. The shell remembers where it found it.
    pub(crate) fn place(&mut self, name: &[u8]) -> Run<ProgramLocation> {
        if name.contains(&b'/') {
            return Ok(self.place_of_path(name));
        }
        let hashed = self.state.hashed.get(name).copied();
        let candidates = self.candidates(name, None)?;
        let (index, place) = self.first(name, &candidates, hashed);
        let table = Rc::make_mut(&mut self.state.hashed);
        match index {
            Some(index) => drop(table.insert(name.to_vec(), Hashed { index, moved: false })),
            None => drop(table.remove(name)),
        }
        Ok(place)
    }

    /// The program that a search from the beginning finds, in `path` or in the search path of the shell.
    pub(crate) fn search(&self, name: &[u8], path: Option<&[u8]>) -> Run<ProgramLocation> {
        if name.contains(&b'/') {
            return Ok(self.place_of_path(name));
        }
        let candidates = self.candidates(name, path)?;
        Ok(self.first(name, &candidates, None).1)
    }

    /// The path of a program of the tree: an executable file. Where the tree does not know, the caller decides by
    /// [`Question::Program`](crate::Question::Program).
    pub(crate) fn find_program(&self, name: &[u8]) -> Run<Option<Vec<u8>>> {
        let file = self.search(name, None)?.file;
        if file.is_none() {
            self.refuse_denied(name, None)?;
        }
        Ok(file)
    }

    /// Where bash finds no program, it takes a file of the search path that is not executable, and fails to run it.
    pub(crate) fn refuse_denied(&self, name: &[u8], path: Option<&[u8]>) -> Run<()> {
        if !self.state.language.is_bash() || name.contains(&b'/') {
            return Ok(());
        }
        let candidates = self.candidates(name, path)?;
        let is_file = |path: &&Vec<u8>| self.destination(path).is_ok_and(|node| node.is_file());
        match candidates.iter().find(is_file) {
            Some(path) => self.unsupported(&[b"a file of PATH that is not executable: ", &path[..]].concat()),
            None => Ok(()),
        }
    }

    /// The paths that a search looks at.
    fn candidates(&self, name: &[u8], path: Option<&[u8]>) -> Run<Vec<Vec<u8>>> {
        let Some(path) = path.or_else(|| self.state.get(b"PATH")) else { return Ok(Vec::new()) };
        if path.contains(&b'%') {
            return self.unsupported(b"% in PATH");
        }
        let join = |dir: &[u8]| if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() };
        Ok(path.split(|byte| *byte == b':').map(join).collect())
    }

    /// The first program among candidates, and its place in the search path. A command whose place is remembered is not looked for before
    /// it; after `cd` only relative directories are looked at again.
    fn first(&self, name: &[u8], candidates: &[Vec<u8>], hashed: Option<Hashed>) -> (Option<usize>, ProgramLocation) {
        let mut found = ProgramLocation { error: Some(Errno::Enoent), ..ProgramLocation::default() };
        let mut index = None;
        for (at, path) in candidates.iter().enumerate() {
            if hashed.is_some_and(|hashed| at < hashed.index && (!hashed.moved || path.starts_with(b"/"))) {
                continue;
            }
            let one = self.place_in(path, name);
            if one.error == Some(Errno::Eperm) {
                found.error = one.error;
            }
            if found.system.is_none() && one.system.is_some() {
                found.system = one.system;
                index = Some(at);
            }
            if one.file.is_some() {
                found.file = one.file;
                index = index.or(Some(at));
                break;
            }
        }
        (index, found)
    }

    /// What a path of the search path is.
    fn place_in(&self, path: &[u8], name: &[u8]) -> ProgramLocation {
        let dir = &path[..path.len() - name.len()];
        let file = self.executable(path);
        let system = self.is_system_directory(dir) && !self.is_replaced(path, name);
        ProgramLocation {
            system: system.then(|| name.to_vec()),
            error: file.err(),
            file: file.is_ok().then(|| path.to_vec()),
        }
    }

    /// What a path that a script names is. A link to a program of the system is that program.
    fn place_of_path(&self, path: &[u8]) -> ProgramLocation {
        let at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let (dir, name) = path.split_at(at);
        let file = self.executable(path);
        let (error, file) = (file.err(), file.is_ok().then(|| path.to_vec()));
        if self.is_system_directory(dir) {
            let system = (!self.is_replaced(path, name)).then(|| {
                let own = dir.strip_suffix(b"/").unwrap_or(dir);
                if SYSTEM.contains(&own) { path.to_vec() } else { [b"/usr/bin/", name].concat() }
            });
            return ProgramLocation { system, file, error };
        }
        let target = self.files.known_link(&self.path(path));
        let system = target.filter(|target| {
            in_system(target) && target.rsplit(|byte| *byte == b'/').next().is_some_and(commands::is_known)
        });
        ProgramLocation { system, file, error }
    }

    /// Whether a program could run: a file with a permission to execute it.
    fn executable(&self, path: &[u8]) -> Result<(), Errno> {
        let node = self.destination(path)?;
        if node.is_file() {
            self.inspect(path, Follow::Yes, Aspect::Mode);
        }
        if node.is_file() && node.mode & 0o111 != 0 { Ok(()) } else { Err(Errno::Eperm) }
    }

    /// Whether programs of the system are in a directory, which ends with a slash or is empty for the working directory.
    fn is_system_directory(&self, dir: &[u8]) -> bool {
        let path = crate::builtins::normalize(&self.path(dir));
        let real = |path: &[u8]| commands::real_path(self, path).is_some_and(|real| SYSTEM.contains(&&real[..]));
        SYSTEM.contains(&&path[..]) || (self.destination(&path).is_ok_and(|node| node.is_dir()) && real(&path))
    }

    /// Whether the tree has a script where a known program would be.
    fn is_replaced(&self, path: &[u8], name: &[u8]) -> bool {
        if !commands::is_known(name) || SCRIPTS.contains(&name) {
            return false;
        }
        let small = self.destination(path).is_ok_and(|node| node.is_file() && node.size <= LARGEST_SCRIPT);
        small && self.files.read(&self.path(path), 16 << 10).is_ok_and(|content| content.starts_with(b"#!"))
    }

    /// Forgets where programs of relative directories are.
    pub(crate) fn moved(&mut self) {
        for hashed in Rc::make_mut(&mut self.state.hashed).values_mut() {
            hashed.moved = true;
        }
    }

    /// Why a path cannot be executed, and the status of a command that names it.
    pub(crate) fn denial(&self, path: &[u8]) -> (&'static str, u8) {
        match (self.state.language.is_bash(), self.stat(path, Follow::Yes)) {
            (true, Ok(node)) if node.is_dir() => (Errno::Eisdir.text(), 126),
            (_, Ok(_)) => ("Permission denied", 126),
            (true, Err(Errno::Enoent)) => (Errno::Enoent.text(), 127),
            (true, Err(error)) => (error.text(), 126),
            (false, Err(Errno::Enoent | Errno::Enotdir)) => ("not found", 127),
            (false, Err(error @ (Errno::Eloop | Errno::Enametoolong))) => (error.text(), 127),
            (false, Err(_)) => ("Permission denied", 126),
        }
    }
}
