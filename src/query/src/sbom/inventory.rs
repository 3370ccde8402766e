//! The inventory of an image, independent of any standard: elements and their relations.

use std::collections::{BTreeMap, BTreeSet};

use super::copyright::OwnLicence;
use super::files::HashedFile;
use vmbake_common::digest::Digest;

/// Maximum number of characters of a name in an identifier.
const MAX_ID: usize = 160;

pub(super) const IMAGE: usize = 0;

/// Type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Image,
    System,
    Base,
    /// A published bundle of components.
    Bundle,
    Package,
    /// An artifact of another upstream.
    Program,
    /// A Go program.
    GoProgram,
    /// A Go module that is linked into programs.
    GoModule,
    Container,
}

/// Maintainer of a package: name and email address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Supplier {
    pub(super) name: String,
    pub(super) email: Option<String>,
}

/// A component of the image.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) role: Role,
    /// Unique; letters, digits, `.` and `-`.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) purl: Option<String>,
    pub(super) supplier: Option<Supplier>,
    /// SPDX expression.
    pub(super) licence: Option<String>,
    pub(super) digest: Option<Digest>,
    /// Download URL.
    pub(super) url: Option<String>,
    /// Name and version of the source package.
    pub(super) source: Option<(String, String)>,
    /// Other facts, by name: layer, proof, path.
    pub(super) facts: BTreeMap<&'static str, String>,
}

/// Relation of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Relationship {
    Contains,
    DependsOn,
    DescendantOf,
}

/// Inventory of an image.
#[derive(Debug, Default)]
pub struct Inventory {
    /// `<kind>.<os>.<arch>`, or the name of the image's file.
    pub name: String,
    /// Missing information, and why.
    pub notes: Vec<String>,
    /// Creation time in seconds since 1970, by the times of its files.
    pub(super) created: i64,
    pub(super) elements: Vec<Element>,
    pub(super) relations: BTreeSet<(usize, Relationship, usize)>,
    /// Licenses without an SPDX identifier, by their generated identifiers.
    pub(super) licences: BTreeMap<String, OwnLicence>,
    /// The files, if requested.
    pub(super) files: Vec<HashedFile>,
    used: BTreeSet<String>,
    repeated: BTreeMap<String, usize>,
}

impl Inventory {
    /// An empty inventory of an image with that creation time.
    pub(super) fn new(created: i64) -> Self {
        Self { created, ..Self::default() }
    }

    /// A new element with only a name. `parts` form its identifier.
    pub(super) fn element(&mut self, role: Role, name: &str, version: Option<&str>, parts: &[&str]) -> Element {
        Element {
            role,
            id: self.id(parts),
            name: name.to_owned(),
            version: version.filter(|version| !version.is_empty()).map(str::to_owned),
            purl: None,
            supplier: None,
            licence: None,
            digest: None,
            url: None,
            source: None,
            facts: BTreeMap::new(),
        }
    }

    /// Adds an element, and returns its index.
    pub(super) fn add(&mut self, element: Element) -> usize {
        self.elements.push(element);
        self.elements.len() - 1
    }

    pub(super) fn relate(&mut self, from: usize, how: Relationship, to: usize) {
        self.relations.insert((from, how, to));
    }

    fn id(&mut self, parts: &[&str]) -> String {
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '.';
        let plain = parts.join("-");
        let id: String = plain.chars().take(MAX_ID).map(|char| if is_allowed(char) { char } else { '-' }).collect();
        if self.used.insert(id.clone()) {
            return id;
        }
        let repeated = self.repeated.entry(id.clone()).or_insert(1);
        loop {
            *repeated += 1;
            let next = format!("{id}-{repeated}");
            if self.used.insert(next.clone()) {
                return next;
            }
        }
    }
}

impl Supplier {
    /// Parses `Name <address>`, the format of `Maintainer`.
    pub(super) fn parse(maintainer: &str) -> Self {
        let maintainer = maintainer.trim();
        match maintainer.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
            Some((name, email)) if !name.trim().is_empty() => {
                Self { name: name.trim().trim_matches('"').to_owned(), email: Some(email.to_owned()) }
            }
            _ => Self { name: maintainer.to_owned(), email: None },
        }
    }

    /// Guesses whether the name is that of a group: SPDX distinguishes, Debian does not.
    pub(super) fn is_group(&self) -> bool {
        const WORDS: [&str; 10] = [
            "team",
            "maintainers",
            "developers",
            "group",
            "packagers",
            "project",
            "packaging",
            "maint",
            "debian",
            "list",
        ];
        let words = self.name.split(|char: char| !char.is_alphanumeric());
        words.into_iter().any(|word| WORDS.contains(&word.to_ascii_lowercase().as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_plain_and_differ() {
        let mut inventory = Inventory::default();
        let mut id = |parts: &[&str]| inventory.id(parts);
        assert_eq!(id(&["Package", "g++", "amd64"]), "Package-g---amd64");
        assert_eq!(id(&["Package", "g--", "amd64"]), "Package-g---amd64-2");
        assert_eq!(id(&["Package", "g++", "amd64-2"]), "Package-g---amd64-2-2");
        assert_eq!(id(&["Package", "g_+", "amd64"]), "Package-g---amd64-3");
        assert_eq!(id(&[&"\u{1}é/".repeat(1 << 20)]), "-".repeat(MAX_ID));
    }

    #[test]
    fn suppliers_are_groups_or_persons() {
        for (maintainer, name, email, group) in [
            ("Debian Adduser Developers <a@b.org>", "Debian Adduser Developers", Some("a@b.org"), true),
            ("Michael Biebl <biebl@debian.org>", "Michael Biebl", Some("biebl@debian.org"), false),
            ("\"Adam C. Powell, IV\" <a@b>", "Adam C. Powell, IV", Some("a@b"), false),
            ("<only@address>", "<only@address>", None, false),
            ("nobody", "nobody", None, false),
        ] {
            let found = Supplier::parse(maintainer);
            assert_eq!((found.name.as_str(), found.email.as_deref(), found.is_group()), (name, email, group));
        }
    }
}
