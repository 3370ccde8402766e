//! Trust anchors: the keys and authorities in `trust/`, built in or in directories of the user.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::sources::{Demand, Sources};
use vmbake_common::catalog::{Catalog, CatalogError, Entries, Entry, Override, Root};
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_embedded::TRUST;
use vmbake_manifest::Content;
use vmbake_proof::sigstore::ROOT;

/// Maximum size of an anchor; the known ones have less than 100 KB.
const MAX_LEN: u64 = 4 << 20;

/// Maximum number of files in a directory of anchors.
const MAX_FILES: usize = 1000;

/// Why a trust anchor cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    #[error("{path}: cannot read the trust anchor")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {len} bytes, more than the limit of {MAX_LEN} for a trust anchor")]
    TooLarge {
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
    },
    #[error("{path}: more than the limit of {MAX_FILES} files for a directory of trust anchors")]
    TooMany { path: PathBuf },
    #[error("trust anchor {name} not found in {searched}")]
    Missing { name: String, searched: String },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

pub(super) const HINT: &str =
    "use --trust to name a directory of trust anchors; without it, the built-in ones are used";

impl Hint for AnchorError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Catalog(_) => None,
            _ => Some(HINT.to_owned()),
        }
    }

    vmbake_common::causes!(Catalog; Read);
}

/// The trust anchors of all roots, by file name.
#[derive(Clone, Debug)]
pub struct Anchors {
    files: Entries<Bytes>,
    /// The searched locations, for messages.
    searched: String,
}

#[derive(Clone, Debug)]
struct Bytes(Vec<u8>);

impl Entry for Bytes {
    const SORT: &'static str = "trust";

    fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Anchors {
    /// Reads the anchors of all roots. `README*` and hidden files are ignored.
    pub fn load(catalog: &Catalog) -> Result<Self, AnchorError> {
        let mut files = Entries::default();
        for root in catalog.roots() {
            let found = match root {
                Root::BuiltIn => built_in(),
                Root::Path(folder) => read_folder(folder)?,
            };
            for (name, bytes) in found {
                files.add(catalog, root, name, bytes)?;
            }
        }
        let searched = catalog.roots().iter().map(described).collect::<Vec<_>>();
        let searched = if searched.is_empty() { "any location".to_owned() } else { searched.join(" or ") };
        Ok(Self { files, searched })
    }

    /// SHA-256 of the existing anchors that the proofs of `content` by `sources` may require, by file name.
    pub fn digests(&self, sources: &Sources, content: &Content) -> BTreeMap<String, Digest> {
        let schema = sources.schema();
        let keyrings = schema.archives.values().map(|archive| archive.keyring.as_str());
        let images = schema.systems.values().map(|system| &system.image);
        let upstreams = schema.dependencies.iter().map(|source| &source.upstream).chain(images);
        let requested = content.requests.values().flat_map(|request| request.downloads.values());
        let signed = upstreams.chain(requested).filter_map(|upstream| match &upstream.proof {
            Demand::Openpgp { keyring, .. } => Some(keyring.as_str()),
            _ => None,
        });
        let names: BTreeSet<&str> = keyrings.chain([ROOT]).chain(signed).collect();
        let digest = |name: &str| Some((name.to_owned(), Digest::of(&self.read(name).ok()?)));
        names.into_iter().filter_map(digest).collect()
    }

    /// The content of an anchor, by file name.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, AnchorError> {
        let missing = || AnchorError::Missing { name: name.to_owned(), searched: self.searched.clone() };
        self.files.get(name).map(|bytes| bytes.0.clone()).ok_or_else(missing)
    }

    /// The anchors that replaced others.
    pub fn overridden(&self) -> &[Override] {
        self.files.overridden()
    }
}

impl Default for Anchors {
    /// The built-in anchors.
    fn default() -> Self {
        let mut files = Entries::default();
        built_in().into_iter().for_each(|(name, bytes)| files.put(&Root::BuiltIn, name, bytes));
        Self { files, searched: described(&Root::BuiltIn) }
    }
}

fn built_in() -> Vec<(String, Bytes)> {
    let anchors = TRUST.iter().filter(|(name, _)| is_anchor(name));
    anchors.map(|(name, bytes)| ((*name).to_owned(), Bytes(bytes.to_vec()))).collect()
}

fn is_anchor(name: &str) -> bool {
    !name.starts_with("README") && !name.starts_with('.')
}

fn described(root: &Root) -> String {
    match root {
        Root::BuiltIn => "the built-in anchors".to_owned(),
        Root::Path(path) => path.display().to_string(),
    }
}

/// The files of a directory of anchors. Names that are not UTF-8 cannot be referred to, and are ignored.
fn read_folder(folder: &Path) -> Result<Vec<(String, Bytes)>, AnchorError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| AnchorError::Read { path, source }
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
        let entry = entry.map_err(failed(folder))?;
        let path = entry.path();
        let Some(name) = entry.file_name().to_str().filter(|name| is_anchor(name)).map(str::to_owned) else { continue };
        let meta = std::fs::metadata(&path).map_err(failed(&path))?;
        if meta.is_dir() {
            continue;
        }
        if found.len() == MAX_FILES {
            return Err(AnchorError::TooMany { path: folder.to_owned() });
        }
        if meta.len() > MAX_LEN {
            return Err(AnchorError::TooLarge { path, len: meta.len() });
        }
        let bytes = input::read(&path, MAX_LEN).map_err(failed(&path))?;
        found.push((name, Bytes(bytes)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_that_differs_from_a_built_in_one_is_refused() {
        let mine = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(mine.path().join(name), bytes).unwrap();
        let catalog = Catalog::built_in().with(mine.path().to_owned());
        let (name, content) = built_in().remove(0);
        write(&name, &content.0);
        write("README.md", b"of mine");
        write("own.asc", b"own");
        let anchors = Anchors::load(&catalog).unwrap();
        assert_eq!(anchors.read("own.asc").unwrap(), b"own");
        assert_eq!(anchors.read(&name).unwrap(), content.0);
        assert!(anchors.overridden().is_empty());
        let missing = anchors.read("none.asc").unwrap_err().to_string();
        assert_eq!(
            missing,
            format!("trust anchor none.asc not found in the built-in anchors or {}", mine.path().display())
        );

        write(&name, b"other");
        let error = Anchors::load(&catalog).unwrap_err();
        let expected = format!("trust/{name}: {} differs from the built-in one", mine.path().display());
        assert_eq!(error.to_string(), expected);
        let overriding = catalog.overriding([format!("trust/{name}")]);
        let anchors = Anchors::load(&overriding).unwrap();
        assert_eq!((anchors.read(&name).unwrap(), anchors.overridden().len()), (b"other".to_vec(), 1));
        let alone = Anchors::load(&Catalog::only(mine.path())).unwrap();
        assert!(alone.read("sigstore-root.json").is_err() && alone.overridden().is_empty());
    }

    #[test]
    fn a_directory_of_anchors_has_bounds() {
        let mine = tempfile::tempdir().unwrap();
        let catalog = Catalog::only(mine.path());
        let absent = Anchors::load(&Catalog::only(mine.path().join("none"))).unwrap_err();
        assert!(matches!(absent, AnchorError::Read { .. }), "{absent}");
        std::fs::create_dir(mine.path().join("folder")).unwrap();
        assert!(Anchors::load(&catalog).is_ok());
        let large = std::fs::File::create(mine.path().join("large.asc")).unwrap();
        large.set_len(MAX_LEN + 1).unwrap();
        assert!(matches!(Anchors::load(&catalog), Err(AnchorError::TooLarge { .. })));
        large.set_len(0).unwrap();
        (0..MAX_FILES).for_each(|at| drop(std::fs::File::create(mine.path().join(format!("{at}.asc"))).unwrap()));
        assert!(matches!(Anchors::load(&catalog), Err(AnchorError::TooMany { .. })));
    }
}
