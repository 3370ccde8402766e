//! Programs that mkinitramfs(8) of initramfs-tools runs.
//!
//! In scripts of packages, mkinitramfs only notes for which kernel an initial RAM disk is wanted. It runs once, when the tree is finished
//! ([`crate::merge::initrd`]); then the programs here have their effects. There are no devices: blkid(8) finds nothing.

mod archive;
mod copied;
mod dracut;
mod libraries;
mod modprobe;

use std::collections::BTreeMap;

use vmbake_kmod::Modules;
use vmbake_shell::{Call, Follow, Outcome};

use super::programs::{ends, is_present, not_found};
use super::{Command, Done, System, idle, status, unsupported, words};
use crate::merge::initrd::{BOOT, Due};

pub(super) use libraries::ldconfig;

const PROGRAM: &[u8] = b"/usr/sbin/mkinitramfs";

/// What is known while an initial RAM disk is made.
#[derive(Default)]
pub(in crate::merge::maintainer) struct Building {
    /// The kernel's modules.
    modules: Option<Modules>,
    /// The libraries of the image, the path of each name.
    libraries: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
}

pub(super) fn find(name: &str, call: &Call<'_>) -> Option<Command> {
    Some(match name {
        "mkinitramfs" => note,
        // A script of initramfs-tools, which calls mkinitramfs.
        "update-initramfs" if has_mkinitramfs(call) => return None,
        "update-initramfs" => idle::machine,
        "uname" if call.script.ends_with("/update-initramfs") && call.args == [b"-r"] => no_release,
        "blkid" => blkid,
        "fstype" if call.name.ends_with(b"/klibc/bin/fstype") => fstype,
        "cpio" => archive::cpio,
        "gzip" => archive::gzip,
        "zstd" => archive::zstd,
        "dracut-install" => dracut::install,
        "ldd" => libraries::ldd,
        "modinfo" => modprobe::modinfo,
        "modprobe" => modprobe::modprobe,
        _ => return None,
    })
}

/// A program whose effect on an initial RAM disk is not known.
pub(super) fn refuse(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    unsupported(call)
}

fn has_mkinitramfs(call: &Call<'_>) -> bool {
    [b"/usr/sbin/update-initramfs", PROGRAM].iter().all(|path| call.files.lookup(path, Follow::Yes).is_ok())
}

/// Notes that an initial RAM disk is wanted: `mkinitramfs [-v] -o OUTPUT VERSION`. Until it is made, the old one or an empty file is there.
fn note(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if !is_present(call) {
        return not_found(call);
    }
    let words = words(call).unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "-v").collect();
    if words == ["--version"] {
        let command: [&[u8]; 3] = [b"sh", PROGRAM, b"--version"];
        return Ok(Outcome::Exec(command.map(<[u8]>::to_vec).into()));
    }
    let ["-o", output, version] = words[..] else { return unsupported(call) };
    let path = format!("{BOOT}-{version}");
    if output != format!("{path}.new") && output != path {
        return unsupported(call);
    }
    let old = call.files.lookup(path.as_bytes(), Follow::Yes);
    let made = match old {
        Ok(_) if output == path => Ok(()),
        Ok(node) => call.files.copy(path.as_bytes(), output.as_bytes(), node.mode, usize::MAX),
        Err(_) => call.files.write(output.as_bytes(), Vec::new(), 0o666 & !call.umask),
    };
    if let Err(error) = made {
        return Ok(Outcome::Unsupported(format!("{output}: {error}")));
    }
    let due = Due { origin: system.target().origin().clone(), is_of_package: true };
    system.database.initrds.insert(version.to_owned(), due);
    status(0)
}

/// The running kernel is not one of the image.
fn no_release(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    call.stdout.extend(b"unknown\n");
    status(0)
}

/// Finds no device.
fn blkid(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if system.initrd.is_some() { ends(call, Outcome::Status(2)) } else { idle::machine(system, call) }
}

fn fstype(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if system.initrd.is_some() { ends(call, Outcome::Status(1)) } else { idle::machine(system, call) }
}

/// Defers a program that is called while no initial RAM disk is made.
fn outside<T>(call: &Call<'_>) -> Result<T, Outcome> {
    let name = String::from_utf8_lossy(call.base_name());
    Err(Outcome::Deferred(format!("{name} has to run on the machine")))
}

/// The outcome of a program that ended, or that cannot run here.
fn done(ended: Result<u8, Outcome>) -> Done {
    Ok(ended.map_or_else(|outcome| outcome, Outcome::Status))
}
