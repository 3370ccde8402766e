//! What a kind, an operating system and an architecture on the command line mean: manifests that can be made, or are there.

use std::path::{Path, PathBuf};

use vmbake_disk::image::quoted;

use crate::hint::Hint;
use crate::manifest::Target;
use crate::pin::sources::Sources;
use crate::spelling::{did_you_mean, near};

/// Why there is nothing to work on.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("there is no {what} {name}: known are {}", known.join(", "))]
    Unknown { what: &'static str, name: String, known: Vec<String> },
    #[error("nothing is made for {wanted}: known are {}", known.join(", "))]
    Unmade { wanted: String, known: Vec<String> },
    #[error("{}: there is no such manifest", path.display())]
    Missing { path: PathBuf, target: Target },
    #[error("{}: is not a directory of manifests", path.display())]
    NotFolder { path: PathBuf },
}

impl Hint for TargetError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { name, known, .. } => match &near(name, known.iter().map(String::as_str))[..] {
                [] => "--sources FILE names sources that have others".to_owned(),
                near => did_you_mean(near),
            },
            Self::Unmade { .. } => {
                "KIND, --os and --arch choose one of them; --sources FILE names sources that have others".to_owned()
            }
            Self::Missing { path, target } => made_by_update(path, target),
            Self::NotFolder { .. } => {
                "--manifests names a directory, --manifest of fetch and bake a single file".to_owned()
            }
        })
    }
}

/// The command that makes a manifest.
fn made_by_update(path: &Path, target: &Target) -> String {
    let Target { kind, os, arch } = target;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let manifests = match folder == Path::new("manifests") {
        true => String::new(),
        false => format!(" --manifests {}", quoted(folder)),
    };
    let name = format!("{}.json", target.name());
    let made = if path.file_name().is_some_and(|found| *found == *name) { "it".to_owned() } else { name };
    format!("`vmbake update {kind} --os {os} --arch {arch}{manifests}` makes {made}")
}

/// A part of a target: what it is, which of its names are wanted, and where it is.
type Part<'a> = (&'static str, &'a [String], fn(&Target) -> &String);

/// The targets of the sources that fit; every name must fit some. Without names of a sort, all fit.
pub(super) fn choose(
    sources: &Sources,
    kinds: &[String],
    systems: &[String],
    arches: &[String],
) -> Result<Vec<Target>, TargetError> {
    let all = sources.targets();
    let parts: [Part<'_>; 3] = [
        ("kind", kinds, |target| &target.kind),
        ("operating system", systems, |target| &target.os),
        ("architecture", arches, |target| &target.arch),
    ];
    for (what, wanted, of) in parts {
        if let Some(name) = wanted.iter().find(|name| !all.iter().any(|target| of(target) == *name)) {
            let mut known: Vec<String> = all.iter().map(|target| of(target).clone()).collect();
            known.sort();
            known.dedup();
            return Err(TargetError::Unknown { what, name: name.clone(), known });
        }
    }
    let fits = |target: &&Target| parts.iter().all(|(_, wanted, of)| wanted.is_empty() || wanted.contains(of(target)));
    let chosen: Vec<Target> = all.iter().filter(fits).cloned().collect();
    // Each name is of some target, but perhaps not of one that fits the others too.
    let lost = parts.iter().flat_map(|(_, wanted, of)| wanted.iter().map(move |name| (name, of)));
    match lost.into_iter().find(|(name, of)| !chosen.iter().any(|target| of(target) == *name)) {
        None => Ok(chosen),
        Some(_) => {
            let wanted = [kinds, systems, arches].map(|names| names.join(","));
            let wanted = wanted.into_iter().filter(|names| !names.is_empty()).collect::<Vec<_>>().join(" ");
            Err(TargetError::Unmade { wanted, known: all.iter().map(Target::name).collect() })
        }
    }
}

/// Why there is no manifest at `path`: the target is unknown, or nobody has made it yet.
pub(super) fn missing(path: &Path, target: Target, sources: &Sources) -> TargetError {
    let folder = path.parent().unwrap_or(path);
    if folder.metadata().is_ok_and(|found| !found.is_dir()) {
        return TargetError::NotFolder { path: folder.to_owned() };
    }
    let [kind, os, arch] = [&target.kind, &target.os, &target.arch].map(std::slice::from_ref);
    match choose(sources, kind, os, arch) {
        Ok(_) => TargetError::Missing { path: path.to_owned(), target },
        Err(error) => error,
    }
}
