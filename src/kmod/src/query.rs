//! Queries of modprobe(8) and modinfo(8), answered from the indexes of depmod and the configuration in the tree.
//!
//! Like `modprobe --ignore-loaded`, for a machine that has not started: nothing is read from `/sys` or the command line of a kernel.

pub mod glob;
mod modprobe;

use std::collections::HashSet;
use std::fmt;

use crate::error::{Fault, KmodError, shown, unsupported};
use crate::files::{Files, read};
use crate::index::Index;
use crate::module::Field;
use crate::name;
use modprobe::Config;
pub use modprobe::Softdep;

/// Maximum length of a chain of soft dependencies: those of Debian have 3 modules.
const MAX_DEPTH: usize = 200;

/// The indexes and the configuration of a kernel.
#[derive(Debug)]
pub struct Modules {
    directory: String,
    config: Config,
    dependencies: File,
    aliases: File,
    symbols: File,
    builtin: File,
    builtin_aliases: File,
    builtin_fields: File,
}

#[derive(Debug)]
struct File {
    path: String,
    bytes: Vec<u8>,
}

/// A module that a name stands for. It may be missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub name: String,
    /// The alias that matched. Aliases have their own options, and a blacklist disables them.
    pub alias: Option<String>,
}

/// A line of `modprobe --show-depends`; `Display` writes `insmod` with the trailing space of modprobe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Insert { path: String, options: String },
    Builtin { name: String },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insert { path, options } if options.is_empty() => write!(f, "insmod {path} "),
            Self::Insert { path, options } => write!(f, "insmod {path} {options} "),
            Self::Builtin { name } => write!(f, "builtin {name}"),
        }
    }
}

impl Modules {
    /// Reads what depmod wrote into a directory such as `/lib/modules/6.12.1-amd64`. Missing files are empty.
    pub fn read(files: &impl Files, directory: &str) -> Result<Self, KmodError> {
        let file = |name| {
            let path = format!("{directory}/{name}");
            Ok(File { bytes: read(files, &path)?.unwrap_or_default(), path })
        };
        Ok(Self {
            directory: directory.to_owned(),
            config: Config::read(files, directory)?,
            dependencies: file("modules.dep.bin")?,
            aliases: file("modules.alias.bin")?,
            symbols: file("modules.symbols.bin")?,
            builtin: file("modules.builtin.bin")?,
            builtin_aliases: file("modules.builtin.alias.bin")?,
            builtin_fields: file("modules.builtin.modinfo")?,
        })
    }

    /// The path of a module that is not built in.
    pub fn path(&self, module: &str) -> Result<Option<String>, KmodError> {
        Ok(self.entry(module)?.map(|(path, _)| path))
    }

    /// The modules that a module depends on, in the order in which they are loaded.
    pub fn dependencies(&self, module: &str) -> Result<Vec<String>, KmodError> {
        let paths = self.entry(module)?.map(|(_, used)| used).unwrap_or_default();
        Ok(paths.iter().map(|path| module_of(path)).collect())
    }

    /// Whether a module is built into the kernel.
    pub fn is_builtin(&self, module: &str) -> Result<bool, KmodError> {
        Ok(!self.builtin.get(module)?.is_empty())
    }

    /// The fields of a built-in module, as `modinfo` shows them.
    pub fn builtin_fields(&self, module: &str) -> Vec<Field> {
        let records = self.builtin_fields.bytes.split(|byte| *byte == 0);
        let fields = records.filter_map(|record| record.strip_prefix(module.as_bytes())?.strip_prefix(b"."));
        let field = |text: &[u8]| {
            let equals = text.iter().position(|byte| *byte == b'=')?;
            Some((text[..equals].to_vec(), text[equals + 1..].to_vec()))
        };
        fields.filter_map(field).collect()
    }

    /// The soft dependencies of a module: those of the first line for it.
    pub fn softdeps(&self, module: &str) -> Result<Softdep, KmodError> {
        for (pattern, softdep) in &self.config.softdeps {
            if self.is_match(pattern, module)? {
                return Ok(softdep.clone());
            }
        }
        Ok(Softdep::default())
    }

    /// Modules that a module may load later: those of the first line for it.
    pub fn weakdeps(&self, module: &str) -> Result<Vec<String>, KmodError> {
        for (pattern, weakdeps) in &self.config.weakdeps {
            if self.is_match(pattern, module)? {
                return Ok(weakdeps.clone());
            }
        }
        Ok(Vec::new())
    }

    /// The modules that a name or an alias stands for; none if it is unknown.
    pub fn lookup(&self, request: &str) -> Result<Vec<Target>, KmodError> {
        let normal = name::alias(request.as_bytes()).and_then(|normal| String::from_utf8(normal).ok());
        let Some(name) = normal else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (pattern, module) in &self.config.aliases {
            if self.is_match(pattern, &name)? {
                found.push(Target { name: module.clone(), alias: Some(pattern.clone()) });
            }
        }
        let itself = || vec![Target { name: name.clone(), alias: None }];
        if !found.is_empty() {
            return Ok(found);
        }
        if !name.contains(':') && self.entry(&name)?.is_some() {
            return Ok(itself());
        }
        if name.starts_with("symbol:") {
            found = self.symbols.matching(&name)?;
        }
        let has_command = self.config.installs.contains(&name) || self.config.removes.contains(&name);
        if found.is_empty() && has_command {
            return Ok(itself());
        }
        if found.is_empty() {
            found = self.aliases.matching(&name)?;
        }
        if found.is_empty() && self.is_builtin(&name)? {
            return Ok(itself());
        }
        if found.is_empty() {
            found = self.builtin_aliases.matching(&name)?;
        }
        Ok(found)
    }

    /// What `modprobe --show-depends` prints for a name; with `ignore_install`, as with that option, which also ignores the soft
    /// dependencies of the named module. `None` if the name is unknown.
    pub fn show_depends(&self, request: &str, ignore_install: bool) -> Result<Option<Vec<Action>>, KmodError> {
        let targets = self.lookup(request)?;
        if targets.is_empty() {
            return Ok(None);
        }
        let mut actions = Vec::new();
        for target in targets {
            if target.alias.is_some() && self.config.blacklist.contains(&target.name) {
                continue;
            }
            let mut probe = Probe { modules: self, visited: HashSet::new(), list: Vec::new() };
            probe.visit(&target, ignore_install, 0)?;
            for found in probe.list {
                if self.config.installs.contains(&found.name) && !(ignore_install && found == target) {
                    return Err(unsupported(&self.directory, format!("install command of {}", found.name)));
                }
                actions.extend(self.action(found)?);
            }
        }
        Ok(Some(actions))
    }

    /// The action for a module; `None` if there is no such module.
    fn action(&self, target: Target) -> Result<Option<Action>, KmodError> {
        let Some(path) = self.path(&target.name)? else {
            return Ok(self.is_builtin(&target.name)?.then_some(Action::Builtin { name: target.name }));
        };
        let applies = |name: &String| *name == target.name || target.alias.as_ref() == Some(name);
        let options = self.config.options.iter().filter(|(name, _)| applies(name)).map(|(_, options)| &options[..]);
        Ok(Some(Action::Insert { path, options: options.collect::<Vec<_>>().join(" ") }))
    }

    /// The path of a module, and those of the modules that it depends on, in the order in which they are loaded.
    fn entry(&self, module: &str) -> Result<Option<(String, Vec<String>)>, KmodError> {
        let values = self.dependencies.get(module)?;
        let Some((_, line)) = values.first() else { return Ok(None) };
        let text = std::str::from_utf8(line).ok().and_then(|line| line.split_once(':'));
        let (path, used) = text.ok_or_else(|| unsupported(&self.dependencies.path, format!("line {}", shown(line))))?;
        let used = used.split([' ', '\t']).filter(|path| !path.is_empty()).map(|path| self.absolute(path));
        Ok(Some((self.absolute(path), used.rev().collect())))
    }

    fn absolute(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.directory) }
    }

    fn is_match(&self, pattern: &str, text: &str) -> Result<bool, KmodError> {
        let is_match = glob::matches(pattern.as_bytes(), text.as_bytes());
        is_match.ok_or_else(|| unsupported(&self.directory, format!("pattern {pattern} in modprobe.d")))
    }
}

impl File {
    fn get(&self, key: &str) -> Result<Vec<(u32, &[u8])>, KmodError> {
        self.index()?.get(key.as_bytes()).map_err(|fault| fault.at(&self.path))
    }

    /// The modules of aliases that match a name.
    fn matching(&self, name: &str) -> Result<Vec<Target>, KmodError> {
        let values = self.index()?.matching(name.as_bytes()).map_err(|fault| fault.at(&self.path))?;
        Ok(values
            .iter()
            .map(|(_, value)| Target {
                name: String::from_utf8_lossy(value).into_owned(),
                alias: Some(name.to_owned()),
            })
            .collect())
    }

    fn index(&self) -> Result<Index<'_>, KmodError> {
        Index::new(&self.bytes).map_err(|fault: Fault| fault.at(&self.path))
    }
}

/// Collects the modules to load for one, in kmod's order. The list can contain a module several times: to kmod, a module under an alias is
/// another one.
struct Probe<'a> {
    modules: &'a Modules,
    visited: HashSet<Target>,
    list: Vec<Target>,
}

impl Probe<'_> {
    fn visit(&mut self, target: &Target, is_plain: bool, depth: usize) -> Result<(), KmodError> {
        if depth > MAX_DEPTH {
            let what = format!("more than {MAX_DEPTH} soft dependencies in a chain");
            return Err(unsupported(&self.modules.directory, what));
        }
        if !self.visited.insert(target.clone()) {
            return Ok(());
        }
        for name in self.modules.dependencies(&target.name)? {
            self.add(Target { name, alias: None }, depth)?;
        }
        if is_plain {
            self.list.push(target.clone());
            return Ok(());
        }
        self.add(target.clone(), depth)
    }

    /// Adds a module with its soft dependencies.
    fn add(&mut self, target: Target, depth: usize) -> Result<(), KmodError> {
        let softdep = self.modules.softdeps(&target.name)?;
        self.add_all(&softdep.pre, depth)?;
        self.list.push(target);
        self.add_all(&softdep.post, depth)
    }

    fn add_all(&mut self, requests: &[String], depth: usize) -> Result<(), KmodError> {
        for request in requests {
            for target in self.modules.lookup(request)? {
                self.visit(&target, false, depth + 1)?;
            }
        }
        Ok(())
    }
}

fn module_of(path: &str) -> String {
    let file_name = path.rsplit('/').next().unwrap_or_default();
    name::module(file_name.split('.').next().unwrap_or_default())
}
