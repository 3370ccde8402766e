//! ldd(1) and `ldconfig -r`: the libraries of programs, and of the directory of an initial RAM disk.

use vmbake_disk::tree::Kind;
use vmbake_shell::{Call, Errno, Follow, Outcome};

use super::super::programs::{is_present, not_found};
use super::super::{Done, System, words};
use super::{done, outside};
use crate::merge::ldcache::{Change, of_directory};
use crate::merge::programs::{libraries, needed};

/// `ldd FILE` lists the libraries that a program loads. Their addresses, which are random, are zeros.
pub(super) fn ldd(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if !is_present(call) {
        return not_found(call);
    }
    let ended = list(system, call);
    done(ended)
}

fn list(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Result<u8, Outcome> {
    if system.initrd.is_none() {
        return outside(call);
    }
    let words = words(call).unwrap_or_default();
    let [file] = &words[..] else { return Err(Outcome::Unsupported(words.join(" "))) };
    let arch = system.database.arch.clone();
    let target = system.target();
    let Some(building) = &mut system.initrd else { return outside(call) };
    let failed = |error: crate::merge::MergeError| Outcome::Unsupported(error.to_string());
    let known = match building.libraries.take() {
        Some(known) => known,
        None => libraries(&target.tree, &arch).map_err(failed)?,
    };
    let found = needed(&target.tree, &arch, &call.path(file.as_bytes()), &known);
    building.libraries = Some(known);
    let Some(found) = found.map_err(failed)? else {
        call.stdout.extend(b"\tnot a dynamic executable\n");
        return Ok(1);
    };
    for (name, path) in found {
        let shown = match path {
            Some(path) if path == name => path,
            Some(path) => [&name[..], b" => ", &path].concat(),
            None => {
                call.stdout.extend([b"\t", &name[..], b" => not found\n"].concat());
                continue;
            }
        };
        call.stdout.extend([b"\t", &shown[..], b" (0x0000000000000000)\n"].concat());
    }
    Ok(0)
}

/// `ldconfig -r DIRECTORY`
pub(in crate::merge::maintainer::commands) fn ldconfig(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let ([_, directory], true) = (call.args, system.initrd.is_some()) else { return done(outside(call)) };
    let directory = call.path(directory);
    let changes = of_directory(&system.target(), &directory, &system.database.arch)?;
    for (path, change) in changes {
        let path = [&directory[..], &path].concat();
        if let Err(error) = apply(call, &path, change) {
            return Ok(Outcome::Unsupported(format!("{}: {error}", vmbake_common::escape::name(&path))));
        }
    }
    Ok(Outcome::Status(0))
}

fn apply(call: &mut Call<'_>, path: &[u8], change: Change) -> Result<(), Errno> {
    if call.files.lookup(path, Follow::No).is_ok() {
        call.files.remove(path)?;
    }
    match change {
        Change::Removed => Ok(()),
        Change::Made(Kind::Symlink(to), _) => call.files.symlink(&to, path),
        Change::Made(_, content) => call.files.write(path, content, 0o644),
    }
}
