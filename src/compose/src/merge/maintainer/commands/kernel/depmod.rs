//! depmod(8): writes the indexes of the modules of a kernel.

use std::error::Error;
use std::num::NonZeroUsize;

use vmbake_kmod::{KmodError, Release, Settings, depmod as index};
use vmbake_shell::{Call, Follow, Outcome};

use super::super::programs::{is_present, not_found};
use super::super::{Done, System, status, unsupported, words};
use crate::merge::Directories;

/// `depmod [-a] [-b DIRECTORY] VERSION`
pub(super) fn depmod(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if !is_present(call) {
        return not_found(call);
    }
    let words = words(call).unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "-a").collect();
    let (root, version) = match words[..] {
        [version] if !version.starts_with('-') => ("", version),
        ["-b", root, version] if !version.starts_with('-') => (root, version),
        _ => return unsupported(call),
    };
    let directory = format!("{root}/lib/modules/{version}");
    if version.contains('/') || call.files.lookup(directory.as_bytes(), Follow::Yes).is_err() {
        return unsupported(call);
    }
    let Some(release) = release(system) else {
        return Ok(Outcome::Unsupported("kmod of another version than 30 and 34".to_owned()));
    };
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let settings = Settings { directory: &directory, release, system_map: None, threads };
    let indexes = index(&Directories(&system.target().tree), &settings);
    let indexes = match indexes {
        Ok(indexes) => indexes,
        Err(error) => return Ok(Outcome::Unsupported(chain(&error))),
    };
    for warning in &indexes.warnings {
        call.stderr.extend(format!("depmod: {warning}\n").bytes());
    }
    for (name, content) in indexes.files {
        let path = format!("{directory}/{name}");
        if let Err(error) = call.files.write(path.as_bytes(), content, 0o644) {
            return Ok(Outcome::Unsupported(format!("{path}: {error}")));
        }
    }
    status(0)
}

fn release(system: &System<'_, '_>) -> Option<Release> {
    Release::of_version(system.database.status.package("kmod")?.get("Version")?)
}

/// The message of an error, with those of its causes.
pub(in crate::merge::maintainer::commands) fn chain(error: &KmodError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
