//! What an image is made of, before it has the form of any standard: elements, and how they belong together.

use std::collections::{BTreeMap, BTreeSet};

use super::copyright::OwnLicence;
use super::files::HashedFile;
use vmbake_common::digest::Digest;

/// Longest part of an identifier that is made of a name, in characters.
const MAX_ID: usize = 160;

/// The image itself is the first element.
pub(super) const IMAGE: usize = 0;

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Image,
    /// The distribution.
    System,
    /// The base image that it was made from.
    Base,
    /// A bundle of components that somebody publishes.
    Bundle,
    /// A package of the distribution.
    Package,
    /// A file of another upstream.
    Program,
    /// A program that Go's linker made.
    GoProgram,
    /// A module that is linked into such programs.
    GoModule,
    /// A container image.
    Container,
}

/// Who made a package: as `Maintainer` has it, a name and an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Supplier {
    pub(super) name: String,
    pub(super) email: Option<String>,
}

/// A part of the image.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) role: Role,
    /// Letters, digits, `.` and `-`, as in no other element.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) purl: Option<String>,
    pub(super) supplier: Option<Supplier>,
    /// An expression of SPDX.
    pub(super) licence: Option<String>,
    pub(super) digest: Option<Digest>,
    /// Where it can be fetched.
    pub(super) url: Option<String>,
    /// Name and version of the source package.
    pub(super) source: Option<(String, String)>,
    /// What else is known, by name: layer, proof, path.
    pub(super) facts: BTreeMap<&'static str, String>,
}

/// How two elements belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Relationship {
    Contains,
    DependsOn,
    DescendantOf,
}

/// What an image is made of.
#[derive(Debug, Default)]
pub struct Inventory {
    /// `<kind>.<os>.<arch>`, or the name of the image's file.
    pub name: String,
    /// What is not known, and why.
    pub notes: Vec<String>,
    /// When the image was made: in seconds since 1970, by the times of its files.
    pub(super) created: i64,
    pub(super) elements: Vec<Element>,
    pub(super) relations: BTreeSet<(usize, Relationship, usize)>,
    /// Licences that SPDX does not know, by their identifiers.
    pub(super) licences: BTreeMap<String, OwnLicence>,
    /// The files, where they were asked for.
    pub(super) files: Vec<HashedFile>,
    used: BTreeSet<String>,
    repeated: BTreeMap<String, usize>,
}

impl Inventory {
    /// One without elements, of an image that was made at that time.
    pub(super) fn new(created: i64) -> Self {
        Self { created, ..Self::default() }
    }

    /// A new element, of which no more is known than its name. `parts` make its identifier.
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

    /// Takes an element in and tells its place.
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
    /// `Name <address>`, as Debian's `Maintainer` has it.
    pub(super) fn parse(maintainer: &str) -> Self {
        let maintainer = maintainer.trim();
        match maintainer.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
            Some((name, email)) if !name.trim().is_empty() => {
                Self { name: name.trim().trim_matches('"').to_owned(), email: Some(email.to_owned()) }
            }
            _ => Self { name: maintainer.to_owned(), email: None },
        }
    }

    /// Whether the name is rather that of a group than of one person: SPDX wants to know, and Debian does not say.
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
