//! Catalogs of SGML and XML: update-catalog(8) of sgml-base and update-xmlcatalog(8) of xml-core.
//!
//! Both programs are written in Perl. They are implemented for the versions in [`PROGRAMS`]; any other version runs on the machine, and so
//! does a call that a program would end with an error of the system.

mod options;
mod sgml;
mod tokens;
mod xml;

use vmbake_common::digest::Digest;
use vmbake_shell::{Call, Follow, Outcome};

use super::{Command, Done, System, status, words};
use crate::merge::triggers;

/// Longest file that is read, in bytes: catalogs have thousands.
const MAX_FILE: usize = 1 << 20;

/// A program, its digest, which is the same in Debian 12 and 13, and what it does.
const PROGRAMS: [(&str, &str, Command); 2] = [
    ("update-catalog", "65b6aed63e68b8ef975c03736fbb6d6dcb4d34287a7054effd70bfe447790674", update_catalog),
    ("update-xmlcatalog", "66a7ee901314863c9f2f3e6bd891af9bf73a216ad97ce9bf998311284102ea1f", update_xmlcatalog),
];

pub(super) fn find(name: &str, call: &Call<'_>) -> Option<Command> {
    let (_, sha256, command) = PROGRAMS.iter().find(|(known, ..)| *known == name)?;
    let program = call.files.read(format!("/usr/sbin/{name}").as_bytes(), MAX_FILE).ok()?;
    (Digest::of(&program).hex() == *sha256).then_some(*command)
}

fn update_catalog(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    match sgml::update(call) {
        Ok(sgml::Ended::SetsOff(trigger)) => {
            let by = system.script.stem.to_owned();
            triggers::activate_name(&system.target(), system.database, &by, trigger)?;
            status(0)
        }
        Ok(sgml::Ended::Done) => status(0),
        Err(what) => waits(call, &what),
    }
}

fn update_xmlcatalog(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    match xml::update(call) {
        Ok(ended) => status(ended),
        Err(what) => waits(call, &what),
    }
}

fn waits(call: &Call<'_>, what: &str) -> Done {
    let program = String::from_utf8_lossy(call.base_name());
    Ok(Outcome::Deferred(format!("{program} has to run on the machine: {what}")))
}

/// Perl's `-f`.
fn is_file(call: &Call<'_>, path: &str) -> bool {
    call.files.lookup(&call.path(path.as_bytes()), Follow::Yes).is_ok_and(|node| node.is_file())
}

fn read(call: &Call<'_>, path: &str) -> Result<Vec<u8>, String> {
    call.files.read(&call.path(path.as_bytes()), MAX_FILE).map_err(|error| format!("{path}: {error}"))
}

/// Creates or replaces a file as `open` of Perl does.
fn write(call: &mut Call<'_>, path: &str, content: Vec<u8>) -> Result<(), String> {
    let (at, mode) = (call.path(path.as_bytes()), 0o666 & !call.umask);
    call.files.write(&at, content, mode).map_err(|error| format!("{path}: {error}"))
}

fn rename(call: &mut Call<'_>, from: &str, to: &str) -> Result<(), String> {
    let (old, new) = (call.path(from.as_bytes()), call.path(to.as_bytes()));
    call.files.rename(&old, &new).map_err(|error| format!("{from}: {error}"))
}

/// The lines of a file, each without its last byte, which is not a newline at the end of a file that lacks one.
fn chopped(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.split_last().map(|(_, line)| line))
}

/// Joins lines, each with a newline at its end.
fn lines<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    lines.into_iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

#[cfg(test)]
mod tests;
