//! py3clean(1): removes the byte-code of a Python package that is removed from the base.

use vmbake_disk::tree::Kind;
use vmbake_shell::{Call, Outcome};

use super::options::{self, Spec};
use super::programs::{ends, is_present};
use super::{Command, Done, System, unsupported};
use crate::merge::maintainer::Occasion;
use crate::merge::owners::INFO;
use crate::merge::place::Target;
use crate::merge::{MAX_TEXT, MergeError, status};

const PROGRAM: &str = "py3clean";

const OPTIONS: [Spec; 3] =
    [("package", Some(b'p'), true), ("verbose", Some(b'v'), false), ("quiet", Some(b'q'), false)];

/// The directory of byte-code next to its sources.
const CACHE: &str = "__pycache__";

pub(super) fn find(name: &str) -> Option<Command> {
    (name == PROGRAM).then_some(clean as Command)
}

/// An upgrade leaves byte-code: Python replaces what does not fit its source.
fn clean(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if system.script.occasion() != Occasion::Removal || !is_present(call) {
        return ends(call, Outcome::Status(0));
    }
    let Some(options) = options::parse(call, &OPTIONS) else { return unsupported(call) };
    let Some(package) = options.value("package").filter(|_| options.operands.is_empty()) else {
        return unsupported(call);
    };
    if let Some(stem) = system.database.status.package(package).map(status::stem) {
        let list = system.target().tree.read(format!("{INFO}/{stem}.list").as_bytes(), MAX_TEXT).unwrap_or_default();
        let list = String::from_utf8_lossy(&list);
        for source in list.lines().filter(|line| line.ends_with(".py")) {
            remove_of(&mut system.target(), source)?;
        }
    }
    ends(call, Outcome::Status(0))
}

/// Removes the byte-code of one source, and its directory if it is empty.
fn remove_of(target: &mut Target, source: &str) -> Result<(), MergeError> {
    let (directory, name) = source.rsplit_once('/').unwrap_or(("", source));
    for old in [format!("{source}c"), format!("{source}o")] {
        target.remove_below(&old)?;
    }
    let cache = format!("{directory}/{CACHE}");
    let stem = name.strip_suffix(".py").unwrap_or(name);
    // Python takes what follows the first dot for the name of the interpreter.
    let stems = [Some(stem), stem.split_once('.').map(|(first, _)| first)];
    let prefixes: Vec<String> = stems.into_iter().flatten().map(|stem| format!("{stem}.")).collect();
    let names = names(target, &cache);
    let is_own = |name: &&Vec<u8>| prefixes.iter().any(|prefix| name.starts_with(prefix.as_bytes()));
    let own: Vec<_> = names.iter().filter(is_own).collect();
    for name in &own {
        target.remove_below(&format!("{cache}/{}", String::from_utf8_lossy(name)))?;
    }
    if !own.is_empty() && own.len() == names.len() {
        target.remove_below(&cache)?;
    }
    Ok(())
}

fn names(target: &Target, directory: &str) -> Vec<Vec<u8>> {
    match target.tree.resolve(directory.as_bytes()).map(|id| &target.tree.inode(id).kind) {
        Ok(Kind::Directory(entries)) => entries.keys().cloned().collect(),
        _ => Vec::new(),
    }
}
