//! Finds the modules of a kernel: of several with the same name, the one with the highest priority.
//!
//! Stricter than depmod, which keeps the first one that it finds where priorities are equal: that depends on the order of directories.

use std::collections::BTreeMap;

use super::config::{Config, Search};
use crate::error::{KmodError, shown, unsupported};
use crate::files::{EntryKind, Files, list};
use crate::name;

/// Maximum depth of directories: a link may lead to its parent.
const MAX_DEPTH: usize = 64;

/// A module of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub name: String,
    pub path: String,
    /// As indexes name it.
    pub shown: String,
    /// `shown` without extension.
    pub stem: String,
}

/// The modules by name, which is unique.
pub fn search(
    files: &impl Files,
    directory: &str,
    config: &Config,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<String, Found>, KmodError> {
    let mut walk = Walk { files, directory, config, warnings, found: BTreeMap::new() };
    if !walk.walk(directory, 0)? {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(KmodError::Read { path: directory.to_owned(), source });
    }
    for external in &config.externals {
        if external.starts_with(directory) {
            return Err(unsupported(external, "external directory whose path starts with that of the kernel"));
        }
        if !walk.walk(external, 0)? {
            walk.warnings.push(format!("ERROR: could not open directory {external}: No such file or directory"));
        }
    }
    walk.found.into_iter().map(|(name, found)| Ok((name, best(found, config)?))).collect()
}

struct Walk<'a, F> {
    files: &'a F,
    directory: &'a str,
    config: &'a Config,
    warnings: &'a mut Vec<String>,
    found: BTreeMap<String, Vec<Found>>,
}

impl<F: Files> Walk<'_, F> {
    /// Adds the modules below a directory, if it exists.
    fn walk(&mut self, directory: &str, depth: usize) -> Result<bool, KmodError> {
        if depth > MAX_DEPTH {
            return Err(unsupported(directory, format!("directories nested more than {MAX_DEPTH} levels deep")));
        }
        let Some(mut entries) = list(self.files, directory)? else { return Ok(false) };
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in entries {
            let excluded = |name: &[u8]| self.config.excludes.iter().any(|other| other.as_bytes() == name);
            if matches!(&entry.name[..], b"build" | b"source") || excluded(&entry.name) {
                continue;
            }
            let is_ascii = entry.name.is_ascii();
            let path = format!("{directory}/{}", String::from_utf8_lossy(&entry.name));
            match entry.kind {
                EntryKind::Directory if is_ascii => {
                    self.walk(&path, depth + 1)?;
                }
                EntryKind::File if is_ascii => self.file(path)?,
                EntryKind::Other | EntryKind::Null => {
                    self.warnings.push(format!("ERROR: unsupported file type {path}"))
                }
                // Indexes would contain the name.
                _ => return Err(unsupported(directory, format!("name {}, which is not ASCII", shown(&entry.name)))),
            }
        }
        Ok(true)
    }

    fn file(&mut self, path: String) -> Result<(), KmodError> {
        let file_name = path.rsplit('/').next().unwrap_or_default();
        let Some(stem) = name::stem(file_name) else { return Ok(()) };
        if stem.contains('.') || path.len() >= name::PATH_MAX || path.bytes().any(|byte| byte.is_ascii_whitespace()) {
            return Err(unsupported(
                &path,
                "module with a path that is too long or contains white space, or with a dot in its name",
            ));
        }
        let name = name::module(stem);
        let relative = path.strip_prefix(self.directory).and_then(|rest| rest.strip_prefix('/'));
        let shown = relative.unwrap_or(&path).to_owned();
        let stem = shown[..shown.len() - (file_name.len() - stem.len())].to_owned();
        self.found.entry(name.clone()).or_default().push(Found { name, path, shown, stem });
        Ok(())
    }
}

/// The module that depmod keeps, in whatever order it finds them.
fn best(mut found: Vec<Found>, config: &Config) -> Result<Found, KmodError> {
    let wins = |new: &Found, old: &Found| new == old || (replaces(new, old, config) && !replaces(old, new, config));
    let winner = found.iter().position(|new| found.iter().all(|old| wins(new, old)));
    winner.map(|number| found.swap_remove(number)).ok_or_else(|| {
        let paths: Vec<_> = found.iter().map(|found| &found.path[..]).collect();
        unsupported(&found[0].path, format!("modules with the same name and equal priority: {}", paths.join(", ")))
    })
}

/// Whether a module replaces the one that was found before.
fn replaces(new: &Found, old: &Found, config: &Config) -> bool {
    let is_external = |found: &Found| found.shown.starts_with('/');
    for path in &config.overrides {
        if !is_external(new) && new.stem == *path {
            return true;
        }
        if !is_external(old) && old.stem == *path {
            return false;
        }
    }
    let below =
        |found: &Found, directory: &str| found.stem.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    let (mut built_in, mut new_priority, mut old_priority, mut number) = (None, None, None, 0);
    for search in &config.searches {
        match search {
            Search::BuiltIn => built_in = Some(number),
            Search::External => {
                for external in &config.externals {
                    if below(new, external) {
                        new_priority = Some(number);
                    }
                    if below(old, external) {
                        old_priority = Some(number);
                    }
                    number += 1;
                }
            }
            // A directory that has both gives a priority only to the new one.
            Search::Directory(directory) if !is_external(new) && below(new, directory) => new_priority = Some(number),
            Search::Directory(directory) if !is_external(old) && below(old, directory) => old_priority = Some(number),
            Search::Directory(_) => {}
        }
        number += 1;
    }
    new_priority.or(built_in) > old_priority.or(built_in)
}
