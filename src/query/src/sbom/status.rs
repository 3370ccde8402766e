//! Reads dpkg's status file: the text in, packages with files in the image out.

use std::collections::BTreeMap;

use debversion::Version;
use vmbake_disk::tree::Tree;

use crate::packages::{PackageError, STATUS, text};
use vmbake_compose::stage::{Control, ControlFault, DebError};
use vmbake_manifest::relation::{Relation, groups};

/// Maximum number of providers to check per relation: in a corrupt database, all packages can provide one name.
const MAX_PROVIDERS: usize = 64;

/// States (dpkg(1)) of packages without files in the image.
const ABSENT: [&str; 2] = ["not-installed", "config-files"];

#[derive(Clone, Debug)]
pub(super) struct Deb {
    pub(super) name: String,
    /// Empty if unknown.
    pub(super) arch: String,
    pub(super) version: String,
    /// Name and version of the source package.
    pub(super) source: (String, String),
    pub(super) maintainer: Option<String>,
    depends: Vec<Vec<Relation>>,
    provides: Vec<Relation>,
    multi_arch: String,
}

#[derive(Debug, Default)]
pub(super) struct Status {
    /// By name and architecture.
    pub(super) debs: Vec<Deb>,
    /// Problems.
    pub(super) notes: Vec<String>,
}

/// The packages of `tree`, by name and architecture; `None` without a database.
pub(super) fn read(tree: &Tree) -> Result<Option<Status>, PackageError> {
    let Some(text) = text(tree, STATUS)? else { return Ok(None) };
    let (mut debs, mut notes) = (BTreeMap::new(), Vec::new());
    for (number, stanza) in text.split("\n\n").filter(|stanza| !stanza.trim().is_empty()).enumerate() {
        let damaged = |fault| PackageError::Stanza { number: number + 1, source: DebError::Control(fault) };
        let control = Control::parse(stanza).map_err(damaged)?;
        if let Some(deb) = deb(&control, &mut notes).map_err(damaged)? {
            debs.insert((deb.name.clone(), deb.arch.clone()), deb);
        }
    }
    Ok(Some(Status { debs: debs.into_values().collect(), notes }))
}

/// The package of a stanza, if its files are in the image.
fn deb(control: &Control, notes: &mut Vec<String>) -> Result<Option<Deb>, ControlFault> {
    let required = |name| control.get(name).filter(|value| !value.is_empty()).ok_or(ControlFault::NoField { name });
    let state = control.get("Status").and_then(|status| status.split_ascii_whitespace().nth(2)).unwrap_or_default();
    let name = required("Package")?.to_owned();
    if state.is_empty() || ABSENT.contains(&state) {
        return Ok(None);
    }
    let version = required("Version")?.to_owned();
    let mut relations = |field: &str| match groups(control.get(field).unwrap_or_default()) {
        Some(groups) => groups,
        None => {
            notes.push(format!("package {name}: field {field} is malformed and ignored"));
            Vec::new()
        }
    };
    let depends = [relations("Pre-Depends"), relations("Depends")].concat();
    let provides = relations("Provides").concat();
    Ok(Some(Deb {
        source: source(control.get("Source"), &name, &version),
        arch: control.get("Architecture").unwrap_or_default().to_owned(),
        maintainer: control.get("Maintainer").filter(|value| !value.is_empty()).map(str::to_owned),
        multi_arch: control.get("Multi-Arch").unwrap_or_default().to_owned(),
        name,
        version,
        depends,
        provides,
    }))
}

/// Parses `Source`: a name, and the version if it differs from the package's.
fn source(field: Option<&str>, name: &str, version: &str) -> (String, String) {
    let field = field.unwrap_or(name);
    let (source, rest) = field.split_once(' ').unwrap_or((field, ""));
    let stated = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    (source.to_owned(), stated.unwrap_or(version).to_owned())
}

/// Index of packages that can satisfy relations.
pub(super) struct Providers<'a> {
    debs: &'a [Deb],
    /// By real or provided name: index of the package, and its version under that name.
    by_name: BTreeMap<&'a str, Vec<(usize, Option<Version>)>>,
}

impl<'a> Providers<'a> {
    pub(super) fn new(debs: &'a [Deb]) -> Self {
        let mut by_name: BTreeMap<&str, Vec<(usize, Option<Version>)>> = BTreeMap::new();
        for (place, deb) in debs.iter().enumerate() {
            by_name.entry(&deb.name).or_default().push((place, deb.version.parse().ok()));
        }
        for (place, deb) in debs.iter().enumerate() {
            for provided in &deb.provides {
                let version = provided.version.as_ref().map(|(_, version)| version.clone());
                by_name.entry(&provided.name).or_default().push((place, version));
            }
        }
        Self { debs, by_name }
    }

    /// Indexes of the packages that a package depends on: the first existing one of each group of alternatives.
    pub(super) fn of(&self, deb: &Deb) -> Vec<usize> {
        let mut found: Vec<usize> = deb.depends.iter().filter_map(|group| self.first(deb, group)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn first(&self, deb: &Deb, group: &[Relation]) -> Option<usize> {
        group.iter().find_map(|relation| {
            let providers = self.by_name.get(relation.name.as_str())?.iter().take(MAX_PROVIDERS);
            let fits = |place: usize, version: Option<&Version>| {
                let other = &self.debs[place];
                relation.accepts(version) && relation.fits_architecture(&deb.arch, &other.arch, &other.multi_arch)
            };
            providers.clone().find(|(place, version)| fits(*place, version.as_ref())).map(|(place, _)| *place)
        })
    }
}
