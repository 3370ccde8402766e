//! The indexes of kernel modules, in which modprobe(8) looks for modules. If they do not list a module of a layer, they are written again, as
//! by the image's depmod(8).

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;

use vmbake_disk::tree::{Kind, Origin, Tree};
use vmbake_kmod::{Entry, EntryKind, Files, KmodError, Module, Release, Settings, depmod};

use crate::merge::MergeError;
use crate::merge::database::Database;
use crate::merge::place::Target;

const MODULES: &str = "/usr/lib/modules";

/// The largest file that is read, in bytes.
const LARGEST: u64 = 512 << 20;

/// Modules of layers that the index of their kernel does not list: paths and layers, by kernel.
#[derive(Default)]
pub(super) struct New(BTreeMap<String, Vec<(String, String)>>);

impl New {
    /// Adds a module of a layer, unless the index lists it.
    pub(super) fn add(&mut self, target: &Target, path: &str, layer: &str) {
        let inner = path.strip_prefix(MODULES).and_then(|rest| rest.strip_prefix('/')?.split_once('/'));
        let Some((kernel, module)) = inner else { return };
        // Without an index, the image has no such kernel.
        let Ok(index) = target.text(&format!("{MODULES}/{kernel}/modules.dep")) else { return };
        if !index.lines().any(|line| line.split(':').next() == Some(module)) {
            self.0.entry(kernel.to_owned()).or_default().push((path.to_owned(), layer.to_owned()));
        }
    }

    /// Writes the indexes of the kernels.
    pub(super) fn index(
        &self,
        target: &mut Target,
        packages: &Database,
        warnings: &mut Vec<String>,
    ) -> Result<(), MergeError> {
        for (kernel, modules) in &self.0 {
            let Some((path, layer)) = modules.last() else { continue };
            let release = release(target, packages, kernel, path, layer)?;
            let directory = format!("{MODULES}/{kernel}");
            let files = TreeDirectories(&target.tree);
            for (path, layer) in modules {
                let module = Module::read(&files, path).map_err(|source| fault(layer, source))?;
                warnings.extend(other_kernel(&module, kernel).map(|found| format!("{path}: {found}")));
            }
            let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
            let settings = Settings { directory: &directory, release, system_map: None, threads };
            let indexes = depmod(&files, &settings).map_err(|source| fault(layer, source))?;
            warnings.extend(indexes.warnings.iter().map(|warning| format!("depmod: {warning}")));
            let outer = target.origin().clone();
            target.enter(Origin { layer: layer.clone(), ..Origin::default() });
            for (name, content) in indexes.files {
                let path = format!("{directory}/{name}");
                modules.iter().try_for_each(|(_, layer)| target.check_landing(layer, path.as_bytes()).map(|_| ()))?;
                target.file(&path, target.meta(0o644), content)?;
            }
            target.enter(outer);
        }
        Ok(())
    }
}

fn fault(layer: &str, source: KmodError) -> MergeError {
    MergeError::Modules { layer: layer.to_owned(), source: Box::new(source) }
}

/// The kmod release of the image.
fn release(target: &Target, packages: &Database, kernel: &str, path: &str, layer: &str) -> Result<Release, MergeError> {
    let unread =
        |what: String, hint| Err(MergeError::Unread { path: path.to_owned(), layer: layer.to_owned(), what, hint });
    if target.is_file_of_layer(&format!("{MODULES}/{kernel}/modules.dep")) {
        return unread(
            "modules.dep of a layer does not list it".to_owned(),
            "remove the modules.* files from the layer, so that the bake writes them",
        );
    }
    let version = packages.status.package("kmod").and_then(|control| control.get("Version"));
    match version.map(Release::of_version) {
        Some(Some(release)) => Ok(release),
        found => unread(
            match (found, version) {
                (Some(_), Some(version)) => {
                    format!("cannot be indexed as by kmod {version}: only kmod 30 and 34 are supported")
                }
                _ => "cannot be indexed without the package kmod".to_owned(),
            },
            "add \"kmod\" of Debian 12 or 13 to `packages`, or a modules.dep that lists the module, or load it from another directory with insmod in a unit",
        ),
    }
}

/// A warning about a module that was built for another kernel. With CONFIG_MODVERSIONS, the kernel may load it nevertheless.
fn other_kernel(module: &Module, kernel: &str) -> Option<String> {
    let magic = module.values("vermagic").next()?;
    let built = String::from_utf8_lossy(magic.split(|byte| *byte == b' ').next()?).into_owned();
    (built != kernel).then(|| format!("built for kernel {built}: {kernel} loads it only if all symbol versions match"))
}

/// The tree of the image.
struct TreeDirectories<'a>(&'a Tree);

impl Files for TreeDirectories<'_> {
    fn list(&self, path: &str) -> io::Result<Option<Vec<Entry>>> {
        let found = self.0.real_path(path.as_bytes(), true).map_err(io::Error::other)?;
        let Some((real, id)) = found else { return Ok(None) };
        let Kind::Directory(entries) = &self.0.inode(id).kind else {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        };
        let kind =
            |name: &[u8]| match self.0.resolve(&[&real[..], b"/", name].concat()).map(|id| &self.0.inode(id).kind) {
                Ok(Kind::Directory(_)) => EntryKind::Directory,
                Ok(Kind::File(_)) => EntryKind::File,
                _ => EntryKind::Other,
            };
        Ok(Some(entries.keys().map(|name| Entry { name: name.clone(), kind: kind(name) }).collect()))
    }

    fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        match self.0.real_path(path.as_bytes(), true).map_err(io::Error::other)? {
            Some((real, _)) => self.0.read(&real, LARGEST).map(Some).map_err(io::Error::other),
            None => Ok(None),
        }
    }
}
