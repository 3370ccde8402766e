//! Defines where layers, sources and trust anchors are looked up: an ordered list of roots, with the built-in one
//! first.
//!
//! Every command merges the entries of all roots by name and records the root of each. Equal entries are merged. An
//! entry that differs from that of an earlier root is refused, and so is one with a weaker proof requirement, unless
//! the user overrides it by name: then the later root takes precedence, reported as an [`Override`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::hint::Hint;

/// The types of entries. `TYPE/NAME` identifies one entry.
pub const SORTS: [&str; 6] = ["archives", "dependencies", "images", "layers", "systems", "trust"];

/// Why entries of several roots conflict.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("{entry}: {found} differs from {known}")]
    Differs { entry: String, known: Root, found: Root },
    #[error("{entry}: {found} requires a weaker proof than {known}: {weaker}")]
    Weakens {
        entry: String,
        known: Root,
        found: Root,
        /// The relaxed requirement.
        weaker: String,
    },
}

impl Hint for CatalogError {
    fn hint(&self) -> Option<String> {
        let (Self::Differs { entry, known, found } | Self::Weakens { entry, known, found, .. }) = self;
        let without = if *known == Root::BuiltIn { "; use --no-builtin to leave out the built-in entries" } else { "" };
        Some(format!("use `--override {entry}` to accept the entry of {found}, or another name to keep both{without}"))
    }
}

/// Where entries are read from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// Compiled into the program.
    BuiltIn,
    /// A file or directory of the user.
    Path(PathBuf),
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("the built-in one"),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Serialize for Root {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The roots of one type of entry, and the names of entries that may be overridden.
#[derive(Clone, Debug)]
pub struct Catalog {
    roots: Vec<Root>,
    overrides: BTreeSet<String>,
}

impl Catalog {
    /// The built-in entries, unless `built_in` is false, followed by those at `paths`.
    pub fn new(built_in: bool, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let roots = built_in.then_some(Root::BuiltIn).into_iter().chain(paths.into_iter().map(Root::Path));
        Self { roots: roots.collect(), overrides: BTreeSet::new() }
    }

    /// The built-in entries only.
    pub fn built_in() -> Self {
        Self::new(true, [])
    }

    /// The entries at `path` only.
    pub fn only(path: impl Into<PathBuf>) -> Self {
        Self::new(false, [path.into()])
    }

    /// Allows later roots to override these entries, given as `TYPE/NAME`.
    #[must_use]
    pub fn overriding(self, entries: impl IntoIterator<Item = String>) -> Self {
        Self { overrides: entries.into_iter().collect(), ..self }
    }

    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// The entries that may be overridden, as `TYPE/NAME`.
    pub fn overrides(&self) -> impl Iterator<Item = &String> {
        self.overrides.iter()
    }

    /// A copy with one more root at the end.
    #[must_use]
    pub fn with(&self, path: PathBuf) -> Self {
        let mut more = self.clone();
        more.roots.push(Root::Path(path));
        more
    }

    /// Replaces the entry of root `known` with that of root `found` if the user allows it. `weaker` is the proof
    /// requirement that the new entry relaxes.
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

/// An entry that replaced one of an earlier root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Override {
    pub entry: String,
    /// The root of the replaced entry.
    pub known: Root,
    /// The root of the new entry.
    pub found: Root,
    /// The relaxed proof requirement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weaker: Option<String>,
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, known, found, weaker } = self;
        write!(f, "{entry}: {found} overrides {known}")?;
        weaker.iter().try_for_each(|weaker| write!(f, ", which requires a stronger proof: {weaker}"))
    }
}

/// A type of entry that roots contain.
pub trait Entry {
    /// The first part of the names of these entries, one of [`SORTS`].
    const SORT: &'static str;

    /// Whether both entries are equal.
    fn is_same(&self, other: &Self) -> bool;

    /// The proof requirement that this entry relaxes compared with `other`.
    fn weaker_than(&self, _other: &Self) -> Option<String> {
        None
    }
}

/// Merged entries of several roots.
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
    /// Adds an entry of `root`, which must come after the roots of the existing entries. Fails if the entry may not
    /// replace an existing one.
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

    /// Inserts or replaces an entry.
    pub fn put(&mut self, root: &Root, name: String, entry: T) {
        self.entries.insert(name, (root.clone(), entry));
    }
}

impl<T> Entries<T> {
    pub fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(name).map(|(_, entry)| entry)
    }

    /// All entries with their roots, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Root, &T)> {
        self.entries.iter().map(|(name, (root, entry))| (name, root, entry))
    }

    /// The replacements.
    pub fn overridden(&self) -> &[Override] {
        &self.overridden
    }

    /// Converts the values.
    pub fn map<U>(self, change: impl Fn(T) -> U) -> Entries<U> {
        let Self { entries, overridden } = self;
        let entries = entries.into_iter().map(|(name, (root, entry))| (name, (root, change(entry)))).collect();
        Entries { entries, overridden }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text; fewer letters mean a weaker requirement.
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

    /// Adds `second` of a user's directory after the built-in `first`.
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
        assert_eq!(differs.to_string(), "trust/a: mine differs from the built-in one");
        assert!(differs.hint().unwrap().starts_with("use `--override trust/a` to accept the entry of mine, "));
        let weakens = merge(&catalog, "other", "some").err().unwrap();
        assert_eq!(weakens.to_string(), "trust/a: mine requires a weaker proof than the built-in one: some");

        let of_another = catalog.clone().overriding(["layers/a".to_owned(), "trust/b".to_owned()]);
        assert!(merge(&of_another, "some", "other").is_err());
        let merged = merge(&catalog.overriding(["trust/a".to_owned()]), "other", "some").unwrap();
        assert_eq!(merged.get("a").unwrap().0, "some");
        let said: Vec<_> = merged.overridden().iter().map(ToString::to_string).collect();
        assert_eq!(said, ["trust/a: mine overrides the built-in one, which requires a stronger proof: some"]);
    }
}
