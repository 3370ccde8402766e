//! Where layers, sources and trust anchors are looked up: an ordered list of roots, of which what is built in comes first.
//!
//! Every command merges the entries of all roots by name, and knows of each which root it is from. Equal entries are one entry.
//! An entry that differs from that of an earlier root is refused, and so is one that demands less of a proof, unless the user
//! overrides it by name: then the later root counts, and an [`Override`] says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::hint::Hint;

/// The sorts of entries that roots have. `SORT/NAME` names one entry.
pub const SORTS: [&str; 6] = ["archives", "dependencies", "images", "layers", "systems", "trust"];

/// Why the entries of several roots do not go together.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("{entry}: {found} differs from {known}")]
    Differs {
        /// `SORT/NAME`.
        entry: String,
        known: Root,
        found: Root,
    },
    #[error("{entry}: {found} demands less than {known}: {weaker}")]
    Weakens {
        /// `SORT/NAME`.
        entry: String,
        known: Root,
        found: Root,
        /// What it demands less of a proof.
        weaker: String,
    },
}

impl Hint for CatalogError {
    fn hint(&self) -> Option<String> {
        let (Self::Differs { entry, known, found } | Self::Weakens { entry, known, found, .. }) = self;
        let without = if *known == Root::BuiltIn { "; --no-builtin leaves out what is built in" } else { "" };
        Some(format!("`--override {entry}` takes what {found} says; another name keeps both{without}"))
    }
}

/// Where entries come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// The program itself.
    BuiltIn,
    /// A file or directory of the user's.
    Path(PathBuf),
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("what is built in"),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Serialize for Root {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The roots of one kind of thing, and which of their entries the user overrides.
#[derive(Clone, Debug)]
pub struct Catalog {
    roots: Vec<Root>,
    overrides: BTreeSet<String>,
}

impl Catalog {
    /// What is built in, if it is wanted, then what is at `paths`.
    pub fn new(built_in: bool, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let roots = built_in.then_some(Root::BuiltIn).into_iter().chain(paths.into_iter().map(Root::Path));
        Self { roots: roots.collect(), overrides: BTreeSet::new() }
    }

    /// What is built in, and nothing else.
    pub fn built_in() -> Self {
        Self::new(true, [])
    }

    /// What is at `path`, and nothing else.
    pub fn only(path: impl Into<PathBuf>) -> Self {
        Self::new(false, [path.into()])
    }

    /// The same roots, of which later ones may override these entries, `SORT/NAME`.
    #[must_use]
    pub fn overriding(self, entries: impl IntoIterator<Item = String>) -> Self {
        Self { overrides: entries.into_iter().collect(), ..self }
    }

    /// The roots in their order.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// The entries of later roots that may override earlier ones, `SORT/NAME`.
    pub fn overrides(&self) -> impl Iterator<Item = &String> {
        self.overrides.iter()
    }

    /// The same with one more root behind all others.
    #[must_use]
    pub fn with(&self, path: PathBuf) -> Self {
        let mut more = self.clone();
        more.roots.push(Root::Path(path));
        more
    }

    /// Lets `entry` of the root `found` take the place of that of `known`, if the user has said so. `weaker` is what it demands
    /// less of a proof.
    pub fn replace(
        &self,
        entry: String,
        known: &Root,
        found: &Root,
        weaker: Option<String>,
    ) -> Result<Override, CatalogError> {
        let (known, found) = (known.clone(), found.clone());
        match weaker {
            weaker if self.overrides.contains(&entry) => Ok(Override { entry, known, found, weaker }),
            Some(weaker) => Err(CatalogError::Weakens { entry, known, found, weaker }),
            None => Err(CatalogError::Differs { entry, known, found }),
        }
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::built_in()
    }
}

/// An entry that took the place of one of an earlier root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Override {
    /// `SORT/NAME`.
    pub entry: String,
    /// The root whose entry no longer counts.
    pub known: Root,
    /// The root whose entry counts.
    pub found: Root,
    /// What it demands less of a proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weaker: Option<String>,
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, known, found, weaker } = self;
        write!(f, "{entry}: {found} counts instead of {known}")?;
        weaker.iter().try_for_each(|weaker| write!(f, ", which demands more: {weaker}"))
    }
}

/// What roots have by name.
pub trait Entry {
    /// The first part of the names of such entries, one of [`SORTS`].
    const SORT: &'static str;

    /// Whether both say the same.
    fn is_same(&self, other: &Self) -> bool;

    /// What this one demands less of a proof than `other`.
    fn weaker_than(&self, _other: &Self) -> Option<String> {
        None
    }
}

/// Entries of several roots.
#[derive(Clone, Debug)]
pub struct Entries<T> {
    entries: BTreeMap<String, (Root, T)>,
    overridden: Vec<Override>,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), overridden: Vec::new() }
    }
}

impl<T: Entry> Entries<T> {
    /// Adds an entry of `root`, which comes behind the roots of those that are there already. An entry that may not take the
    /// place of another one is left out.
    pub fn add(&mut self, catalog: &Catalog, root: &Root, name: String, entry: T) -> Result<(), CatalogError> {
        if let Some((known, other)) = self.entries.get(&name) {
            if entry.is_same(other) {
                return Ok(());
            }
            let weaker = entry.weaker_than(other);
            self.overridden.push(catalog.replace(format!("{}/{name}", T::SORT), known, root, weaker)?);
        }
        self.put(root, name, entry);
        Ok(())
    }

    /// Puts an entry into the place of whatever has its name.
    pub fn put(&mut self, root: &Root, name: String, entry: T) {
        self.entries.insert(name, (root.clone(), entry));
    }
}

impl<T> Entries<T> {
    /// The entry of that name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(name).map(|(_, entry)| entry)
    }

    /// All entries with their roots, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Root, &T)> {
        self.entries.iter().map(|(name, (root, entry))| (name, root, entry))
    }

    /// The entries that took the place of others.
    pub fn overridden(&self) -> &[Override] {
        &self.overridden
    }

    /// The entries with other values of the same names.
    pub fn map<U>(self, change: impl Fn(T) -> U) -> Entries<U> {
        let Self { entries, overridden } = self;
        let entries = entries.into_iter().map(|(name, (root, entry))| (name, (root, change(entry)))).collect();
        Entries { entries, overridden }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text; fewer letters demand less.
    struct Word(&'static str);

    impl Entry for Word {
        const SORT: &'static str = "trust";

        fn is_same(&self, other: &Self) -> bool {
            self.0 == other.0
        }

        fn weaker_than(&self, other: &Self) -> Option<String> {
            (self.0.len() < other.0.len()).then(|| self.0.to_owned())
        }
    }

    /// Adds `second` of a user's folder behind the built-in `first`.
    fn merge(catalog: &Catalog, first: &'static str, second: &'static str) -> Result<Entries<Word>, CatalogError> {
        let mut merged = Entries::default();
        for (root, word) in catalog.roots().iter().zip([first, second]) {
            merged.add(catalog, root, "a".to_owned(), Word(word))?;
        }
        Ok(merged)
    }

    #[test]
    fn equal_entries_are_one_and_others_need_an_override() {
        let catalog = Catalog::built_in().with("mine".into());
        let merged = merge(&catalog, "same", "same").unwrap();
        let (name, root, word) = merged.iter().next().unwrap();
        assert_eq!((name.as_str(), root, word.0), ("a", &Root::BuiltIn, "same"));
        assert!(merged.overridden().is_empty());

        let differs = merge(&catalog, "some", "other").err().unwrap();
        assert_eq!(differs.to_string(), "trust/a: mine differs from what is built in");
        assert!(differs.hint().unwrap().starts_with("`--override trust/a` takes what mine says; "));
        let weakens = merge(&catalog, "other", "some").err().unwrap();
        assert_eq!(weakens.to_string(), "trust/a: mine demands less than what is built in: some");

        let of_another = catalog.clone().overriding(["layers/a".to_owned(), "trust/b".to_owned()]);
        assert!(merge(&of_another, "some", "other").is_err());
        let merged = merge(&catalog.overriding(["trust/a".to_owned()]), "other", "some").unwrap();
        assert_eq!(merged.get("a").unwrap().0, "some");
        let said: Vec<_> = merged.overridden().iter().map(ToString::to_string).collect();
        assert_eq!(said, ["trust/a: mine counts instead of what is built in, which demands more: some"]);
    }
}
