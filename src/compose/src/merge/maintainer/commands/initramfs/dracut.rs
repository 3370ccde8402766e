//! `dracut-install -m` of dracut 106: copies modules with all that they need.
//!
//! Filters apply to the named modules, not to those that they depend on. There is no `/sys`, in which dracut-install would find the modules
//! that supply the machine's devices.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use regex::bytes::Regex;
use vmbake_common::parallel;
use vmbake_kmod::{EntryKind, Files as _, KmodError, Module, Modules, Target};
use vmbake_shell::{Call, Follow, Outcome};

use super::super::kernel::chain;
use super::super::programs::{is_present, not_found};
use super::super::{Done, System, words};
use super::copied::copy;
use super::{done, outside};
use crate::merge::Directories;

/// Directories below that of the kernel in which an operand `=DIRECTORY` is looked for.
const BELOW: [&str; 3] = ["extra", "kernel", "updates"];
/// Suffixes of firmware files, in the order of preference.
const COMPRESSED: [&str; 3] = ["", ".zst", ".xz"];
/// The deepest directories that are followed.
const MAX_DEPTH: usize = 32;

/// The options and operands of a call.
struct Options {
    directory: String,
    kernel: String,
    firmware: Vec<String>,
    without_path: Option<Regex>,
    symbol: Option<Regex>,
    names: Vec<String>,
}

pub(super) fn install(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if !is_present(call) {
        return not_found(call);
    }
    if system.initrd.is_none() {
        return done(outside(call));
    }
    let version = system.database.status.package("dracut-install").and_then(|control| control.get("Version"));
    if !version.is_some_and(|version| version.starts_with("106-")) {
        return Ok(Outcome::Unsupported(format!("dracut-install {}", version.unwrap_or_default())));
    }
    let ended = run(system, call);
    done(ended)
}

fn run(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Result<u8, Outcome> {
    let options = words(call).and_then(Options::parse);
    let Some(options) = options else {
        return Err(Outcome::Unsupported(words(call).unwrap_or_default().join(" ")));
    };
    let wanted = {
        let target = system.target();
        let files = Directories(&target.tree);
        let Some(building) = &mut system.initrd else { return outside(call) };
        let failed = |error: KmodError| Outcome::Unsupported(chain(&error));
        let modules = match building.modules.take() {
            Some(modules) => modules,
            None => Modules::read(&files, &options.kernel).map_err(failed)?,
        };
        let mut search = Search { files: &files, modules: &modules, options: &options, found: BTreeSet::new() };
        let searched = search.run();
        let found = search.found;
        building.modules = Some(modules);
        searched.map_err(failed)?;
        found
    };
    let firmware = if options.has_firmware(call) { firmware(system, &wanted)? } else { BTreeSet::new() };
    for path in &wanted {
        copy(call, &options.directory, path)?;
    }
    for name in firmware {
        options.firmware(call, &name)?;
    }
    Ok(0)
}

/// The names of the firmware of modules.
fn firmware(system: &System<'_, '_>, modules: &BTreeSet<String>) -> Result<BTreeSet<String>, Outcome> {
    let target = system.target();
    let files = Directories(&target.tree);
    let read = parallel::for_each(modules.iter().collect(), threads(), |path| Module::read(&files, path));
    let mut names = BTreeSet::new();
    for module in read {
        let module = module.map_err(|error| Outcome::Unsupported(chain(&error)))?;
        names.extend(module.values("firmware").map(|name| String::from_utf8_lossy(name).into_owned()));
    }
    Ok(names)
}

fn threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

impl Options {
    /// `-D DIRECTORY --kerneldir DIRECTORY --firmwaredirs DIRECTORIES -o -m [-P PATHS] [-s SYMBOLS] MODULE|=DIRECTORY…`
    fn parse(words: Vec<String>) -> Option<Self> {
        let mut options = Self {
            directory: String::new(),
            kernel: String::new(),
            firmware: Vec::new(),
            without_path: None,
            symbol: None,
            names: Vec::new(),
        };
        let (mut is_optional, mut is_modules) = (false, false);
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-D" => options.directory = words.next()?,
                "--kerneldir" => options.kernel = words.next()?,
                "--firmwaredirs" => options.firmware = words.next()?.split(':').map(str::to_owned).collect(),
                "-P" => options.without_path = Some(regex(&words.next()?)?),
                "-s" => options.symbol = Some(regex(&words.next()?)?),
                "-o" => is_optional = true,
                "-m" => is_modules = true,
                "-v" => {}
                word if word.starts_with(['-', '/']) => return None,
                _ => options.names.push(word),
            }
        }
        let is_whole = is_optional && is_modules && options.directory.starts_with('/');
        (is_whole && options.kernel.starts_with("/lib/modules/")).then_some(options)
    }

    fn has_firmware(&self, call: &Call<'_>) -> bool {
        self.firmware.iter().any(|path| call.files.lookup(path.as_bytes(), Follow::Yes).is_ok())
    }

    /// Copies the firmware of a name, plain or compressed, from each directory.
    fn firmware(&self, call: &mut Call<'_>, name: &str) -> Result<(), Outcome> {
        for directory in &self.firmware {
            let path = format!("{directory}/{name}");
            let is_there = |path: &str| call.files.lookup(path.as_bytes(), Follow::Yes).is_ok();
            if name.contains(['*', '?', '[']) && !is_there(&path) {
                return Err(Outcome::Unsupported(format!("the pattern {name} for firmware")));
            }
            let found = COMPRESSED.iter().map(|end| format!("{path}{end}")).find(|path| is_there(path));
            found.map_or(Ok(()), |path| copy(call, &self.directory, &path))?;
        }
        Ok(())
    }
}

/// An extended regular expression (regex(7)), if it means the same to [`Regex`].
fn regex(text: &str) -> Option<Regex> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-/.|()".contains(char);
    let rest = text.replace("\\.", "");
    rest.chars().all(is_plain).then(|| Regex::new(text).ok()).flatten()
}

/// Looks for modules.
struct Search<'a> {
    files: &'a Directories<'a>,
    modules: &'a Modules,
    options: &'a Options,
    /// Paths of modules to copy.
    found: BTreeSet<String>,
}

impl Search<'_> {
    fn run(&mut self) -> Result<(), KmodError> {
        let mut named = Vec::new();
        for name in &self.options.names {
            match name.strip_prefix('=') {
                Some(below) => {
                    for top in BELOW {
                        self.walk(&format!("{}/{top}/{below}", self.options.kernel), 0, &mut named)?;
                    }
                }
                None => {
                    let stem = [".ko", ".ko.xz", ".ko.gz", ".ko.zst"].iter().find_map(|end| name.strip_suffix(end));
                    self.add(stem.unwrap_or(name), None, &mut named)?;
                }
            }
        }
        named.retain(|(_, path)| !self.is_without(path));
        let has_symbol: Vec<Result<bool, KmodError>> = match &self.options.symbol {
            None => named.iter().map(|_| Ok(true)).collect(),
            Some(symbol) => parallel::for_each(named.iter().collect(), threads(), |named| {
                let (_, path): &(Target, String) = named;
                Ok(Module::read(self.files, path)?.needs.iter().any(|name| symbol.is_match(name)))
            }),
        };
        for ((target, path), has_symbol) in named.into_iter().zip(has_symbol) {
            if has_symbol? {
                self.take(&target.name, path)?;
            }
        }
        Ok(())
    }

    fn is_without(&self, path: &str) -> bool {
        self.options.without_path.as_ref().is_some_and(|pattern| pattern.is_match(path.as_bytes()))
    }

    /// Adds the modules below a directory.
    fn walk(&self, directory: &str, depth: usize, named: &mut Vec<(Target, String)>) -> Result<(), KmodError> {
        let read = |source| KmodError::Read { path: directory.to_owned(), source };
        let listed = match self.files.list(directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => None,
            listed => listed.map_err(read)?,
        };
        let Some(entries) = listed.filter(|_| depth < MAX_DEPTH && !self.is_without(directory)) else { return Ok(()) };
        for entry in entries {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            let path = format!("{directory}/{name}");
            match entry.kind {
                EntryKind::Directory => self.walk(&path, depth + 1, named)?,
                EntryKind::File => self.add(name.split('.').next().unwrap_or_default(), Some(path), named)?,
                EntryKind::Null | EntryKind::Other => {}
            }
        }
        Ok(())
    }

    /// Adds the modules that a name stands for. A file that was found is the module of that name, whatever the index says.
    fn add(&self, name: &str, path: Option<String>, named: &mut Vec<(Target, String)>) -> Result<(), KmodError> {
        for target in self.modules.lookup(&name.replace('-', "_"))? {
            let own = path.as_ref().filter(|_| target.name == name.replace('-', "_"));
            let found = match own {
                Some(path) => Some(path.clone()),
                None => self.modules.path(&target.name)?,
            };
            named.extend(found.map(|path| (target, path)));
        }
        Ok(())
    }

    /// Takes a module with those that it depends on or may need.
    fn take(&mut self, name: &str, path: String) -> Result<(), KmodError> {
        if !self.found.insert(path) {
            return Ok(());
        }
        let softdep = self.modules.softdeps(name)?;
        let weak = self.modules.weakdeps(name)?;
        let mut next = self.modules.dependencies(name)?;
        for request in softdep.pre.iter().chain(&softdep.post).chain(&weak) {
            next.extend(self.modules.lookup(request)?.into_iter().map(|target| target.name));
        }
        for name in next {
            if let Some(path) = self.modules.path(&name)? {
                self.take(&name, path)?;
            }
        }
        Ok(())
    }
}
