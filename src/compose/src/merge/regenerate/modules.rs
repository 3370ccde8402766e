//! The indexes of kernel modules, in which modprobe(8) looks for modules. Where layers change what depmod(8) reads, they are written again, as
//! by the image's depmod.

mod kernel;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use vmbake_disk::tree::{Kind, Origin};
use vmbake_kmod::{KmodError, Module, Release, Settings, depmod};

use crate::merge::cleaned::Brought;
use crate::merge::database::Database;
use crate::merge::place::Target;
use crate::merge::{MergeError, initrd};
use kernel::{Change, Kernel};
pub(in crate::merge) use tree::Directories;

/// The modules of the base, by kernel.
pub(super) struct Before(BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>);

impl Before {
    pub(super) fn find(target: &Target) -> Self {
        let kernels = kernel::all(&target.tree).into_iter();
        Self(kernels.map(|kernel| (kernel.name.clone(), kernel.modules(&target.tree))).collect())
    }

    /// Writes the indexes of the kernels whose modules or settings layers change.
    pub(super) fn update(
        &self,
        target: &mut Target,
        packages: &mut Database,
        brought: &Brought,
        warnings: &mut Vec<String>,
    ) -> Result<(), MergeError> {
        for kernel in kernel::all(&target.tree) {
            let changes = kernel.changes(&target.tree, brought);
            let modules = kernel.modules(&target.tree);
            let is_gone = self.0.get(&kernel.name).is_some_and(|before| !before.is_subset(&modules));
            let has_index = target.tree.lookup(&[&kernel.directory[..], b"/modules.dep"].concat()).is_some();
            if (changes.is_empty() && !is_gone) || (modules.is_empty() && !has_index) {
                continue;
            }
            if !has_index && packages.status.package("kmod").is_none() {
                let directory = vmbake_common::escape::name(&kernel.directory);
                warnings.push(format!(
                    "{directory}: without the package kmod, there is no index of the modules, and no modprobe"
                ));
                continue;
            }
            let version = vmbake_common::escape::name(&kernel.name);
            let layer = changes.last().map_or_else(|| target.origin().layer.clone(), |change| change.layer.clone());
            Index { kernel, changes }.write(target, packages, warnings)?;
            // No warning if there is none to make: one of the base then keeps the modules that it has.
            initrd::note(target, packages, &layer, Some(&version));
        }
        Ok(())
    }
}

/// The work for one kernel.
struct Index {
    kernel: Kernel,
    changes: Vec<Change>,
}

impl Index {
    fn write(&self, target: &mut Target, packages: &Database, warnings: &mut Vec<String>) -> Result<(), MergeError> {
        let directory = vmbake_common::escape::name(&self.kernel.directory);
        let layer = self.changes.last().map_or_else(|| target.origin().layer.clone(), |change| change.layer.clone());
        let path = self.changes.last().map_or(&directory, |change| &change.path);
        let release = release(packages, path, &layer)?;
        for change in &self.changes {
            self.check(target, packages, change, warnings)?;
        }
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let settings = Settings { directory: &directory, release, system_map: None, threads };
        let indexes = depmod(&Directories(&target.tree), &settings).map_err(|source| fault(&layer, source))?;
        warnings.extend(indexes.warnings.iter().map(|warning| format!("depmod: {warning}")));
        let name = vmbake_common::escape::name(&self.kernel.name);
        let images = [format!("/boot/vmlinuz-{name}"), format!("{directory}/vmlinuz")];
        if images.iter().all(|path| target.tree.lookup(path.as_bytes()).is_none()) {
            warnings.push(format!("{directory}: there is no kernel {name} in /boot that could load its modules"));
        }
        let outer = target.origin().clone();
        target.enter(Origin { layer: layer.clone(), ..Origin::default() });
        for (name, content) in indexes.files {
            let path = format!("{directory}/{name}");
            if target.tree.read(path.as_bytes(), tree::LARGEST).is_ok_and(|found| found == content) {
                continue;
            }
            if target.is_file_of_layer(&path) {
                let what = "depmod writes other content".to_owned();
                let hint = "remove the modules.* files that depmod writes from the layer: the bake writes them";
                return Err(MergeError::Unread { path, layer, what, hint });
            }
            for change in &self.changes {
                target.check_landing(&change.layer, path.as_bytes())?;
            }
            target.file(&path, target.meta(0o644), content)?;
        }
        target.enter(outer);
        Ok(())
    }

    /// Checks a module that a layer brings.
    fn check(
        &self,
        target: &Target,
        packages: &Database,
        change: &Change,
        warnings: &mut Vec<String>,
    ) -> Result<(), MergeError> {
        let is_file = target.tree.resolve(change.path.as_bytes()).is_ok_and(|id| {
            matches!(target.tree.inode(id).kind, Kind::File(_)) && kernel::is_module(change.path.as_bytes())
        });
        if !is_file {
            return Ok(());
        }
        let module = Module::read(&Directories(&target.tree), &change.path).map_err(|it| fault(&change.layer, it))?;
        if module.arch != packages.arch {
            return Err(MergeError::Unread {
                path: change.path.clone(),
                layer: change.layer.clone(),
                what: format!("it is a kernel module for {}, but the image is for {}", module.arch, packages.arch),
                hint: "use the module for the image's architecture",
            });
        }
        let kernel = vmbake_common::escape::name(&self.kernel.name);
        warnings.extend(other_kernel(&module, &kernel).map(|found| format!("{}: {found}", change.path)));
        Ok(())
    }
}

fn fault(layer: &str, source: KmodError) -> MergeError {
    MergeError::Modules { layer: layer.to_owned(), source: Box::new(source) }
}

/// The kmod release of the image.
fn release(packages: &Database, path: &str, layer: &str) -> Result<Release, MergeError> {
    let version = packages.status.package("kmod").and_then(|control| control.get("Version"));
    if let Some(release) = version.and_then(Release::of_version) {
        return Ok(release);
    }
    Err(MergeError::Unread {
        path: path.to_owned(),
        layer: layer.to_owned(),
        what: match version {
            Some(version) => {
                format!("kernel modules cannot be indexed as by kmod {version}: only kmod 30 and 34 are supported")
            }
            None => "kernel modules cannot be indexed without the package kmod".to_owned(),
        },
        hint: "add \"kmod\" of Debian 12 or 13 to `packages`, or load the module from another directory with insmod in a unit",
    })
}

/// A warning about a module that was built for another kernel. With CONFIG_MODVERSIONS, the kernel may load it nevertheless.
fn other_kernel(module: &Module, kernel: &str) -> Option<String> {
    let magic = module.values("vermagic").next()?;
    let built = String::from_utf8_lossy(magic.split(|byte| *byte == b' ').next()?).into_owned();
    (built != kernel).then(|| format!("built for kernel {built}: {kernel} loads it only if all symbol versions match"))
}
