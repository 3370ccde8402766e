//! `--base` of `vmbake update`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Failure;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_common::message;
use vmbake_compose::stage::archive::is_archive;
use vmbake_fetch::{FetchError, local};
use vmbake_manifest::{Manifest, OCI, Target};
use vmbake_oci::{InvalidReference, RemoteName};
use vmbake_pin::resolve::WantedBase;
use vmbake_store::registry::RegistryError;
use vmbake_store::store::Store;

/// What an image is based on.
#[derive(Clone, Debug)]
pub(super) enum BaseArg {
    Packages,
    Published,
    Container(String),
    File(PathBuf),
}

impl FromStr for BaseArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "packages" => Self::Packages,
            "image" => Self::Published,
            _ => match text.strip_prefix(OCI) {
                Some(name) => Self::Container(name.to_owned()),
                None => Self::File(PathBuf::from(text)),
            },
        })
    }
}

/// The targets that are made of packages: all that are asked for, or without another base those whose manifest says so.
pub(super) fn on_packages(
    base: Option<&BaseArg>,
    has_image: bool,
    folder: &Path,
    targets: &[Target],
) -> Result<BTreeSet<Target>, Failure> {
    match base {
        Some(BaseArg::Packages) => return Ok(targets.iter().cloned().collect()),
        None if !has_image => {}
        _ => return Ok(BTreeSet::new()),
    }
    let mut found = BTreeSet::new();
    for target in targets {
        let path = folder.join(format!("{}.json", target.name()));
        if path.symlink_metadata().is_ok() && Manifest::load(&path)?.content().bottom().is_some() {
            found.insert(target.clone());
        }
    }
    Ok(found)
}

/// The base to pin. An archive is copied into the store.
pub(super) fn wanted(
    base: Option<BaseArg>,
    image: Option<PathBuf>,
    partition: Option<u32>,
    store: &Store,
) -> Result<Option<WantedBase>, Failure> {
    Ok(match (base, image) {
        (None, None) | (Some(BaseArg::Packages), _) => None,
        (Some(BaseArg::Published), _) => Some(WantedBase::Published),
        (Some(BaseArg::Container(name)), _) => Some(WantedBase::Container(container(&name)?)),
        (Some(BaseArg::File(path)), _) => Some(file(path, store)?),
        (None, Some(path)) => Some(WantedBase::Disk { path, partition }),
    })
}

fn container(text: &str) -> Result<RemoteName, Failure> {
    let name: RemoteName = text.parse().map_err(|error: InvalidReference| RegistryError::from(error))?;
    match (&name.tag, &name.digest) {
        (None, None) => Err(format!("--base {OCI}{name}: expected a tag or a digest, such as {OCI}{name}:1.0").into()),
        _ => Ok(name),
    }
}

fn file(path: PathBuf, store: &Store) -> Result<WantedBase, Failure> {
    let unreadable = |source| message!("{}: cannot read the base", path.display()).by(source);
    let opened = input::open_regular(&path).map_err(unreadable)?;
    if !is_archive(&opened).map_err(|source| message!("{}: cannot read the base", path.display()).by(source))? {
        return Ok(WantedBase::Disk { path, partition: None });
    }
    let (digest, size) = Digest::of(b"").of_stream(&opened).map_err(unreadable)?;
    local::keep([(path.clone(), digest)], store).map_err(FetchError::from)?;
    Ok(WantedBase::Archive { path, digest, size })
}
