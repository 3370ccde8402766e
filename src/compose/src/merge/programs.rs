//! Checks that programs from layers and artifacts can run in the image: the finished tree in, the first error out.
//!
//! The first bytes of every regular file that is not from the base are read. A program or shared object (`ET_EXEC`, `ET_DYN`) must be for
//! the image's machine, and its interpreter and libraries must be in the tree, where the loader looks for them. An executable script must
//! have its interpreter. Object files, kernel modules and data are not checked; files of the base are checked only as far as other files
//! need them.
//!
//! Libraries are searched as by ld.so(8) without environment variables. A library that no program of the layers loads is checked as if it
//! were loaded alone, since a program may load it by name; libraries of the layers in other directories count as loaded.

mod loader;
mod trace;

use std::collections::BTreeSet;

use vmbake_disk::tree::{Inode, InodeId, Kind, Tree};

use super::MergeError;
use loader::Loader;
pub(super) use trace::{libraries, needed};
use vmbake_image::elf::{Elf, Machine};

/// The layer of all nodes that were there before.
const BASE: &str = "base";

/// How much of a script the kernel reads for its first line (`BINPRM_BUF_SIZE`), in bytes.
const SCRIPT_START: u64 = 256;

/// Where programs are looked for by their names.
const PATH: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

/// A program or shared object of a layer.
struct Program {
    path: Vec<u8>,
    id: InodeId,
    elf: Elf,
}

/// Checks that everything which is not the base's can run on the architecture, as Debian names it. Of `packages`, artifacts that were chosen
/// with all that they depend on, nothing is checked: what they do not depend on may be missing, such as the interpreter of an example.
pub fn check(tree: &Tree, arch: &str, packages: &BTreeSet<String>) -> Result<(), MergeError> {
    let machine = Machine::of_arch(arch).ok_or_else(|| MergeError::Arch { arch: arch.to_owned() })?;
    let mut programs = Vec::new();
    let mut seen = BTreeSet::new();
    for (path, id, inode) in tree.walk().filter(|(.., inode)| is_new(tree, inode)) {
        let is_packaged = tree.origin(inode.origin).artifact.as_ref().is_some_and(|name| packages.contains(name));
        if !is_packaged
            && seen.insert(id)
            && let Some(elf) = examine(tree, &path, inode, machine)?
        {
            programs.push(Program { path, id, elf });
        }
    }
    // Only programs tell by which names and directories their libraries come.
    programs.sort_by_key(|program| program.elf.interpreter.is_none());
    let mut loader = Loader::new(tree, arch, machine, &programs)?;
    for program in &programs {
        if program.elf.interpreter.is_some() || !loader.has_loaded(program.id) {
            loader.load(program)?;
        }
    }
    Ok(())
}

fn is_new(tree: &Tree, inode: &Inode) -> bool {
    tree.origin(inode.origin).layer != BASE
}

/// Who brought a file, for messages.
fn owner(tree: &Tree, inode: &Inode) -> String {
    let origin = tree.origin(inode.origin);
    origin.artifact.clone().unwrap_or_else(|| format!("layer {}", origin.layer))
}

fn show(bytes: &[u8]) -> String {
    vmbake_common::escape::name(bytes)
}

/// Checks what a file says about itself; returns it when it is a program or shared object.
fn examine(tree: &Tree, path: &[u8], inode: &Inode, machine: Machine) -> Result<Option<Elf>, MergeError> {
    let Kind::File(map) = &inode.kind else { return Ok(None) };
    let named = || (show(path), owner(tree, inode));
    let elf = Elf::read(map, tree.sources()).map_err(|source| {
        let (path, artifact) = named();
        MergeError::Program { path, artifact, source }
    })?;
    let missing = match elf {
        Some(elf) if !elf.is_loadable() => return Ok(None),
        Some(elf) if elf.machine != machine => {
            let (path, artifact) = named();
            let (found, expected) = (elf.machine.to_string(), machine.to_string());
            return Err(MergeError::Machine { path, artifact, found, expected });
        }
        Some(elf) => match &elf.interpreter {
            Some(interpreter) if !is_file(tree, interpreter) => show(interpreter),
            _ => return Ok(Some(elf)),
        },
        None if inode.meta.mode & 0o111 == 0 => return Ok(None),
        None => {
            let mut start = vec![0; usize::try_from(map.len().min(SCRIPT_START)).unwrap_or(0)];
            if map.read_exact_at(tree.sources(), &mut start, 0).is_err() {
                return Ok(None);
            }
            match missing_interpreter(tree, &start) {
                Some(interpreter) => interpreter,
                None => return Ok(None),
            }
        }
    };
    let (path, artifact) = named();
    Err(MergeError::Interpreter { path, artifact, interpreter: missing })
}

fn is_file(tree: &Tree, path: &[u8]) -> bool {
    path.starts_with(b"/") && tree.resolve(path).is_ok_and(|id| matches!(tree.inode(id).kind, Kind::File(_)))
}

/// The interpreter that a script wants and that is not there, also where env(1) is to find it.
fn missing_interpreter(tree: &Tree, start: &[u8]) -> Option<String> {
    let line = start.strip_prefix(b"#!")?.split(|byte| matches!(byte, b'\n' | 0)).next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let interpreter = words.next()?;
    if !is_file(tree, interpreter) {
        return Some(show(interpreter));
    }
    let program = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
    let found = |dir: &str| is_file(tree, &[dir.as_bytes(), b"/", program].concat());
    let by_name = interpreter.ends_with(b"/env") && !program.contains(&b'/');
    (by_name && !PATH.iter().any(|dir| found(dir))).then(|| show(program))
}
