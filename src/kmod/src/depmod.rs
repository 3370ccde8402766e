//! depmod(8): reads the modules of a kernel and writes their indexes.
//!
//! Input is a directory of modules; output is what `depmod` writes there, and its warnings. The steps are those of depmod: configuration
//! (`config`), modules by name and priority (`search`), their order (`order`), their content, their dependencies (`graph`), the files
//! (`output`).

mod config;
mod search;
mod order;
mod graph;
mod output;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;

use vmbake_common::parallel;

use crate::error::KmodError;
use crate::files::Files;
use crate::module::Module;
use crate::release::Release;
use config::Config;
use graph::Graph;
use search::Found;

/// What to index, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The directory of the modules, such as `/lib/modules/6.12.1-amd64`.
    pub directory: &'a str,
    pub release: Release,
    /// `System.map` of the kernel, to warn of symbols that neither it nor a module exports: `depmod -e -F`.
    pub system_map: Option<&'a [u8]>,
    pub threads: NonZeroUsize,
}

/// The result of depmod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexes {
    /// Name and content of each file, in the order in which depmod writes them.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// What depmod prints, without its name.
    pub warnings: Vec<String>,
}

/// Indexes the modules of a directory. Fails if depmod would write nothing, or if its output is not known.
pub fn depmod(files: &impl Files, settings: &Settings<'_>) -> Result<Indexes, KmodError> {
    let mut warnings = Vec::new();
    let version = settings.directory.rsplit('/').next().unwrap_or_default();
    let config = Config::read(files, version, &mut warnings)?;
    let found = search::search(files, settings.directory, &config, &mut warnings)?;
    let found = order::order(files, found, settings, &mut warnings)?;
    let modules = parallel::for_each(found, settings.threads, |found| Kmod::read(files, found));
    let modules: Vec<Kmod> = modules.into_iter().collect::<Result<_, _>>()?;
    let symbols = Symbols::new(&modules);
    if let Some(map) = settings.system_map {
        symbols.unknown(&modules, map, &mut warnings);
    }
    let graph = Graph::new(&modules, &symbols, settings.directory)?;
    let written = output::write(files, settings, &modules, &symbols, &graph, &mut warnings)?;
    Ok(Indexes { files: written, warnings })
}

/// A module that is indexed. Modules are numbered by their position, which is their priority in indexes.
#[derive(Debug)]
struct Kmod {
    name: String,
    path: String,
    /// As indexes name it: relative to the directory of the kernel, absolute elsewhere.
    shown: String,
    content: Module,
}

impl Kmod {
    fn read(files: &impl Files, found: Found) -> Result<Self, KmodError> {
        let mut content = Module::read(files, &found.path)?;
        content.fields.retain(|(key, _)| matches!(&key[..], b"alias" | b"softdep" | b"weakdep"));
        Ok(Self { name: found.name, path: found.path, shown: found.shown, content })
    }
}

/// The exported symbols, with the number of their module; of several modules that export one, the last.
struct Symbols<'a>(HashMap<&'a [u8], usize>);

impl<'a> Symbols<'a> {
    fn new(modules: &'a [Kmod]) -> Self {
        let exports = modules.iter().enumerate();
        Self(
            exports
                .flat_map(|(number, module)| module.content.exports.iter().map(move |name| (name, number)))
                .collect(),
        )
    }

    /// The module that exports what another one needs.
    fn owner(&self, needed: &[u8]) -> Option<usize> {
        // As depmod does: on PPC64, `.name` is the code of the function `name`.
        self.0.get(needed.strip_prefix(b".").unwrap_or(needed)).copied()
    }

    fn unknown(&self, modules: &[Kmod], map: &[u8], warnings: &mut Vec<String>) {
        let mut known: HashSet<&[u8]> = HashSet::from([&b"__this_module"[..], b"_GLOBAL_OFFSET_TABLE_", b"TOC."]);
        for line in map.split(|byte| *byte == b'\n') {
            let name = line.splitn(3, |byte| *byte == b' ').nth(2).and_then(|name| name.strip_prefix(b"__ksymtab_"));
            known.extend(name);
        }
        for module in modules {
            let weak: HashSet<&[u8]> = module.content.weak.iter().collect();
            for needed in module.content.needs.iter() {
                let name = needed.strip_prefix(b".").unwrap_or(needed);
                if self.owner(needed).is_none() && !known.contains(name) && !weak.contains(needed) {
                    let needed = crate::error::shown(needed);
                    warnings.push(format!("WARNING: {} needs unknown symbol {needed}", module.path));
                }
            }
        }
    }
}
