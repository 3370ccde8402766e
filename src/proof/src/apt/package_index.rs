//! All packages of an index with their relations, for dependency resolution.
//!
//! Reads a verified index, or the status file of a base image; finds packages by name and by what they provide.
//! Debian's `main` has 57 MB of text, of which 25 MB of relevant fields are kept.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;

use super::AptError;
use super::packages::{Package, each_line, entry, not_text, verified};
use super::release::IndexFile;
use vmbake_manifest::relation;

/// The fields to keep. Relations come first, in the order in which apt reads them.
const KEPT: [&str; 20] = [
    "Pre-Depends",
    "Depends",
    "Conflicts",
    "Breaks",
    "Recommends",
    "Suggests",
    "Replaces",
    "Enhances",
    "Provides",
    "Package",
    "Source",
    "Version",
    "Architecture",
    "Multi-Arch",
    "Essential",
    "Important",
    "Protected",
    "Priority",
    "Status",
    "Filename",
];
/// The number of relations among them.
const RELATIONS: usize = 9;
/// Additional fields, which identify the file.
const FILE: [&str; 3] = ["Size", "SHA256", "SHA512"];

#[derive(Debug, Default)]
pub struct PackageIndex {
    /// The kept fields of all stanzas.
    text: String,
    stanzas: Vec<Range<usize>>,
    /// Stanzas by package name, and by provided name.
    named: HashMap<Box<str>, Vec<usize>>,
    provided: HashMap<Box<str>, Vec<usize>>,
}

/// A package of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stanza<'a> {
    text: &'a str,
}

impl PackageIndex {
    /// Reads an index listed in a verified release, without packages for other architectures.
    pub fn read(index: &IndexFile, input: impl Read) -> Result<Self, AptError> {
        let bytes = verified(index, input)?;
        let mut builder = Builder::default();
        each_line(index, &bytes, |line| {
            builder.line(line);
            Ok(())
        })?;
        let mut package_index = builder.finish().ok_or_else(|| not_text(index))?;
        package_index.list_for(&index.arch);
        Ok(package_index)
    }

    /// Reads the text of an unsigned index for `arch`, for comparisons with apt and for fuzzers.
    #[doc(hidden)]
    pub fn unsigned(text: &str, arch: &str) -> Self {
        let mut package_index = Builder::read(text);
        package_index.list_for(arch);
        package_index
    }

    /// Reads the text of dpkg's status file, without packages that are not installed.
    pub fn installed(status: &str) -> Self {
        let mut package_index = Builder::read(status);
        let is_there =
            |state: &str| matches!(state.split_whitespace().next_back(), Some("installed" | "triggers-pending"));
        package_index.list(|stanza| stanza.get("Status").is_some_and(is_there));
        package_index
    }

    fn list_for(&mut self, arch: &str) {
        self.list(|stanza| stanza.get("Architecture").is_some_and(|found| found == arch || found == "all"));
    }

    /// Indexes the stanzas accepted by `counts`.
    fn list(&mut self, counts: impl Fn(Stanza<'_>) -> bool) {
        for (number, range) in self.stanzas.iter().enumerate() {
            let Some(stanza) = self.text.get(range.clone()).map(|text| Stanza { text }) else { continue };
            let Some(name) = stanza.get("Package").filter(|_| counts(stanza)) else { continue };
            push(&mut self.named, name, number);
            for group in stanza.get("Provides").unwrap_or_default().split(',') {
                let name = group.trim().split([' ', '(', ':']).next().unwrap_or_default();
                if !name.is_empty() {
                    push(&mut self.provided, name, number);
                }
            }
        }
    }

    /// The packages of a name, one for each version, in the order of the index.
    pub fn named(&self, name: &str) -> impl Iterator<Item = Stanza<'_>> {
        self.stanzas_of(self.named.get(name))
    }

    /// The packages that provide a name, in the order of the index.
    pub fn providers(&self, name: &str) -> impl Iterator<Item = Stanza<'_>> {
        self.stanzas_of(self.provided.get(name))
    }

    /// All packages, in the order of the index.
    pub fn iter(&self) -> impl Iterator<Item = Stanza<'_>> {
        let is_listed = |number: &usize, stanza: &Stanza<'_>| {
            stanza.get("Package").and_then(|name| self.named.get(name)).is_some_and(|of| of.contains(number))
        };
        let all = self.stanzas.iter().enumerate();
        let all = all.filter_map(|(number, range)| Some((number, Stanza { text: self.text.get(range.clone())? })));
        all.filter(move |(number, stanza)| is_listed(number, stanza)).map(|(_, stanza)| stanza)
    }

    fn stanzas_of(&self, numbers: Option<&Vec<usize>>) -> impl Iterator<Item = Stanza<'_>> {
        let ranges = numbers.into_iter().flatten().filter_map(|number| self.stanzas.get(*number));
        ranges.filter_map(|range| Some(Stanza { text: self.text.get(range.clone())? }))
    }

    /// Where a package is first mentioned, as a name or in a relation: apt numbers packages in that order. It counts a
    /// name with `:any` as another package.
    pub fn first_mention(&self, name: &str) -> Option<usize> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let bytes = self.text.as_bytes();
        let is_whole = |at: usize| {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            let rest = bytes.get(at + name.len()..).unwrap_or_default();
            let ends = !rest.first().is_some_and(|byte| is_part(*byte)) && !rest.starts_with(b":any");
            !before.is_some_and(|byte| is_part(*byte)) && ends
        };
        let in_relation = |at: usize| {
            let line = self.text.get(..at).and_then(|text| text.rfind('\n')).map_or(0, |end| end + 1);
            let field = self.text.get(line..at).and_then(|text| text.split_once(':')).map_or("", |(field, _)| field);
            field == "Package" || KEPT.iter().take(RELATIONS).any(|relation| *relation == field)
        };
        self.text.match_indices(name).map(|(at, _)| at).find(|at| is_whole(*at) && in_relation(*at))
    }
}

impl<'a> Stanza<'a> {
    /// The value of a field, without surrounding white space.
    pub fn get(self, field: &str) -> Option<&'a str> {
        let mut rest = self.text;
        while !rest.is_empty() {
            let mut end = rest.find('\n').map_or(rest.len(), |end| end + 1);
            while rest.get(end..).is_some_and(|more| more.starts_with([' ', '\t'])) {
                end += rest.get(end..)?.find('\n').map_or(rest.len() - end, |more| more + 1);
            }
            let (line, more) = rest.split_at(end);
            match line.split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case(field) => return Some(value.trim()),
                _ => rest = more,
            }
        }
        None
    }

    /// Its groups of relations; an invalid field yields a group that no package satisfies.
    pub fn groups(self, field: &str) -> Option<Vec<Vec<relation::Relation>>> {
        relation::groups(self.get(field).unwrap_or_default())
    }

    /// The file of the package, as listed in its index `index`.
    pub fn package(self, index: &IndexFile) -> Result<Package, AptError> {
        let missing = || AptError::Missing { file: index.path.clone(), field: "Architecture" };
        entry(index, self.text)?.ok_or_else(missing)
    }
}

fn push(lists: &mut HashMap<Box<str>, Vec<usize>>, name: &str, number: usize) {
    match lists.get_mut(name) {
        Some(list) if list.last() == Some(&number) => {}
        Some(list) => list.push(number),
        None => {
            lists.insert(name.into(), vec![number]);
        }
    }
}

/// Builds an index line by line.
#[derive(Default)]
struct Builder {
    text: Vec<u8>,
    stanzas: Vec<Range<usize>>,
    start: usize,
    is_kept: bool,
}

impl Builder {
    fn read(text: &str) -> PackageIndex {
        let mut builder = Self::default();
        text.split_inclusive('\n').chain([""]).for_each(|line| builder.line(line.as_bytes()));
        builder.finish().unwrap_or_default()
    }

    fn line(&mut self, line: &[u8]) {
        match line.first() {
            _ if line.trim_ascii().is_empty() => {
                if self.text.len() > self.start {
                    self.stanzas.push(self.start..self.text.len());
                }
                self.start = self.text.len();
                self.is_kept = false;
            }
            Some(b' ' | b'\t') => {}
            _ => {
                let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
                let is_name = |kept: &&&str| name.eq_ignore_ascii_case(kept.as_bytes());
                self.is_kept = KEPT.iter().chain(&FILE).find(is_name).is_some();
            }
        }
        if self.is_kept {
            self.text.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                self.text.push(b'\n');
            }
        }
    }

    /// `None` if the input is not valid text.
    fn finish(self) -> Option<PackageIndex> {
        let Self { text, stanzas, .. } = self;
        let mut text = String::from_utf8(text).ok()?;
        text.shrink_to_fit();
        Some(PackageIndex { text, stanzas, named: HashMap::new(), provided: HashMap::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Package: a\nStatus: install ok installed\nVersion: 1\nProvides: v (= 2), w\nDescription: of a\n depends: b\n\n\
        Package: b\nStatus: deinstall ok config-files\nVersion: 1\n\n\
        Package: c\nStatus: hold ok installed\nVersion: 1\nDepends: a,\n b-x (>= 1),\n b";

    #[test]
    fn packages_are_found_by_name_and_by_what_they_provide() {
        let package_index = PackageIndex::installed(STATUS);
        let names =
            |found: Vec<Stanza<'_>>| found.iter().map(|one| one.get("package").unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(package_index.iter().collect()), ["a", "c"]);
        assert_eq!(names(package_index.providers("w").collect()), ["a"]);
        assert_eq!(package_index.named("b").count(), 0);
        let found = package_index.named("c").next().unwrap();
        assert_eq!(found.get("Depends"), Some("a,\n b-x (>= 1),\n b"));
        assert_eq!(found.groups("Depends").unwrap().len(), 3);
        assert_eq!(found.get("Description"), None);
    }

    #[test]
    fn a_name_is_mentioned_where_it_stands_alone() {
        let package_index = PackageIndex::installed(
            "Package: x\nFilename: pool/b/b_1.deb\nStatus: install ok installed\nDepends: b-x, cb, b:any\n\nPackage: y\nSuggests: c | b (>= 1)",
        );
        let first = |name: &str| package_index.first_mention(name).unwrap();
        assert!(
            first("x") < first("b-x")
                && first("b-x") < first("y")
                && first("y") < first("c")
                && first("c") < first("b")
        );
        assert_eq!(package_index.first_mention("pool"), None);
    }
}
