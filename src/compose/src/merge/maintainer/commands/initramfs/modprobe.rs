//! modprobe(8) and modinfo(8), as initramfs-tools of Debian 12 calls them.

use vmbake_kmod::{KmodError, Module, Modules};
use vmbake_shell::{Call, Outcome};

use super::super::kernel::chain;
use super::super::programs::{is_present, not_found};
use super::super::{Done, System, status, words};
use super::{done, outside};
use crate::merge::Directories;

/// `modprobe --all --set-version=VERSION [--ignore-install] --quiet --show-depends MODULE…` lists the modules to load.
pub(super) fn modprobe(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if !is_present(call) {
        return not_found(call);
    }
    if system.initrd.is_none() {
        // No module can be loaded.
        return status(1);
    }
    let ended = show_depends(system, call);
    done(ended)
}

fn show_depends(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Result<u8, Outcome> {
    let words = words(call).unwrap_or_default();
    let (mut version, mut ignores_install, mut wanted, mut names) = (None, false, [false; 3], Vec::new());
    for word in &words {
        match word.as_str() {
            "--all" => wanted[0] = true,
            "--quiet" => wanted[1] = true,
            "--show-depends" => wanted[2] = true,
            "--ignore-install" => ignores_install = true,
            word if word.starts_with("--set-version=") => version = word.strip_prefix("--set-version="),
            word if word.starts_with('-') => wanted[0] = false,
            word => names.push(word),
        }
    }
    let Some(version) = version.filter(|_| wanted.iter().all(|found| *found)) else {
        return Err(Outcome::Unsupported(words.join(" ")));
    };
    let failed = |error: KmodError| Outcome::Unsupported(chain(&error));
    let target = system.target();
    let Some(building) = &mut system.initrd else { return outside(call) };
    let modules = match building.modules.take() {
        Some(modules) => modules,
        None => Modules::read(&Directories(&target.tree), &format!("/lib/modules/{version}")).map_err(failed)?,
    };
    let (mut lines, mut ended) = (String::new(), 0);
    for name in names {
        match modules.show_depends(name, ignores_install).map_err(failed)? {
            Some(actions) => lines.extend(actions.iter().map(|action| format!("{action}\n"))),
            None => ended = 1,
        }
    }
    building.modules = Some(modules);
    call.stdout.extend(lines.bytes());
    Ok(ended)
}

/// `modinfo -k VERSION -F FIELD FILE`
pub(super) fn modinfo(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if !is_present(call) {
        return not_found(call);
    }
    let ended = show_field(system, call);
    done(ended)
}

fn show_field(system: &System<'_, '_>, call: &mut Call<'_>) -> Result<u8, Outcome> {
    if system.initrd.is_none() {
        return outside(call);
    }
    let words = words(call).unwrap_or_default();
    let ["-k", _, "-F", field, path] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return Err(Outcome::Unsupported(words.join(" ")));
    };
    if !path.starts_with('/') {
        return Err(Outcome::Unsupported(words.join(" ")));
    }
    let read = Module::read(&Directories(&system.target().tree), path);
    let module = read.map_err(|error| Outcome::Unsupported(chain(&error)))?;
    module.values(field).for_each(|value| call.stdout.extend([value, b"\n"].concat()));
    Ok(0)
}
