//! Finds packages as dpkg-query does: those in the status file, and those that other packages only refer to.

use std::collections::BTreeSet;

use vmbake_shell::fnmatch;

use crate::merge::maintainer::system::System;
use crate::merge::status::{state, stem};
use crate::stage::Control;
use vmbake_manifest::relation;

/// Fields that name packages.
const RELATIONS: [&str; 9] =
    ["Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances", "Breaks", "Conflicts", "Replaces", "Provides"];

/// A package by name, and by architecture after a colon; or a pattern of both.
pub(super) struct PackagePattern<'a> {
    name: &'a str,
    arch: Option<&'a str>,
}

impl<'a> PackagePattern<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let (name, arch) = text.split_once(':').map_or((text, None), |(name, arch)| (name, Some(arch)));
        Self { name, arch }
    }

    fn fits(&self, package: &Package<'_>) -> bool {
        let fits = |pattern: &str, text: &str| pattern == text || fnmatch(pattern.as_bytes(), text.as_bytes());
        fits(self.name, package.name()) && self.arch.is_none_or(|arch| arch == "any" || fits(arch, package.arch()))
    }

    /// The package of that name.
    pub(super) fn only<'s>(&self, system: &'s System<'_, '_>) -> Option<Package<'s>> {
        all(system).find(|package| self.fits(package))
    }
}

/// A package in dpkg's database.
pub(super) struct Package<'a> {
    /// What others speak of has a name and nothing else.
    known: Result<(&'a Control, &'a str), String>,
    /// Its state while its own script runs.
    running: Option<&'static str>,
}

impl<'a> Package<'a> {
    fn new(system: &System<'_, '_>, control: &'a Control, text: &'a str) -> Self {
        let running = (stem(control) == system.script.stem).then_some(match system.script.script {
            "preinst" | "postrm" => "half-installed",
            _ => "half-configured",
        });
        Self { known: Ok((control, text)), running }
    }

    /// The package whose files below `info` have that stem.
    pub(super) fn of_stem(system: &'a System<'_, '_>, wanted: &str) -> Option<Self> {
        let control = system.database.status.package(wanted)?;
        Some(Self::new(system, control, ""))
    }

    /// A field of its stanza.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.known.as_ref().ok()?.0.get(name)
    }

    pub(super) fn name(&self) -> &str {
        match &self.known {
            Ok((control, _)) => control.get("Package").unwrap_or_default(),
            Err(name) => name,
        }
    }

    pub(super) fn arch(&self) -> &str {
        self.field("Architecture").unwrap_or_default()
    }

    /// The stem of its files below `info`.
    pub(super) fn stem(&self) -> String {
        self.known.as_ref().map(|(control, _)| stem(control)).unwrap_or_default()
    }

    /// The words of its `Status`: what is wanted, whether it is damaged, and its state.
    fn words(&self) -> [&str; 3] {
        let mut words = self.field("Status").unwrap_or("unknown ok not-installed").split_whitespace();
        let [want, flag, state] = std::array::from_fn(|_| words.next().unwrap_or_default());
        [want, flag, self.running.unwrap_or(state)]
    }

    pub(super) fn want(&self) -> &str {
        self.words()[0]
    }

    pub(super) fn flag(&self) -> &str {
        self.words()[1]
    }

    pub(super) fn state(&self) -> &str {
        self.words()[2]
    }

    /// Whether its files are there, all or some.
    pub(super) fn has_files(&self) -> bool {
        !matches!(self.state(), "not-installed")
    }

    /// Its field `Status`.
    pub(super) fn status(&self) -> String {
        self.words().join(" ")
    }

    /// `Status` by letters, the third of which is a blank where nothing is wrong.
    pub(super) fn letters(&self) -> String {
        let [want, flag, state] = self.words();
        let want = want.chars().next().unwrap_or('u');
        let state = match state {
            "not-installed" => 'n',
            "config-files" => 'c',
            "half-installed" => 'H',
            "unpacked" => 'U',
            "half-configured" => 'F',
            "triggers-awaited" => 'W',
            "triggers-pending" => 't',
            _ => 'i',
        };
        format!("{want}{state}{}", if flag == "reinstreq" { 'R' } else { ' ' })
    }

    /// Its name, with the architecture where there could be more than one.
    pub(super) fn shown(&self, system: &System<'_, '_>) -> String {
        let (name, arch) = (self.name(), self.arch());
        let own = arch == "all" || arch == system.database.arch;
        match self.field("Multi-Arch") {
            Some("same") => format!("{name}:{arch}"),
            _ if own || arch.is_empty() => name.to_owned(),
            _ => format!("{name}:{arch}"),
        }
    }

    /// Its stanza of the status file.
    pub(super) fn stanza(&self) -> String {
        let Ok((_, text)) = &self.known else { return String::new() };
        let line = |line: &str| match line.strip_prefix("Status:") {
            Some(_) => format!("Status: {}\n", self.status()),
            None => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    }
}

/// The packages of the status file.
fn all<'a>(system: &'a System<'_, '_>) -> impl Iterator<Item = Package<'a>> {
    system.database.status.stanzas().map(|(control, text)| Package::new(system, control, text))
}

/// The packages that operands name, each once and sorted, and the operands that name none. Without operands, all that are there.
pub(super) fn select<'a, 'w>(system: &'a System<'_, '_>, operands: &[&'w str]) -> (Vec<Package<'a>>, Vec<&'w str>) {
    let mut found: Vec<Package<'_>> = all(system).collect();
    if operands.is_empty() {
        found.retain(|package| package.state() != "not-installed");
        return (found, Vec::new());
    }
    let named: BTreeSet<&str> = found.iter().filter_map(|package| package.field("Package")).collect();
    let mut others: BTreeSet<String> = BTreeSet::new();
    for (control, _) in system.database.status.stanzas().filter(|(control, _)| state(control) != "not-installed") {
        let groups = RELATIONS.iter().filter_map(|field| relation::groups(control.get(field)?));
        others.extend(
            groups.flatten().flatten().map(|relation| relation.name).filter(|name| !named.contains(name.as_str())),
        );
    }
    found.extend(others.into_iter().map(|name| Package { known: Err(name), running: None }));
    let wanted: Vec<(PackagePattern<'_>, &str)> =
        operands.iter().map(|text| (PackagePattern::new(text), *text)).collect();
    let missing = wanted.iter().filter(|(wanted, _)| !found.iter().any(|package| wanted.fits(package)));
    let missing = missing.map(|(_, text)| *text).collect();
    found.retain(|package| wanted.iter().any(|(wanted, _)| wanted.fits(package)));
    found.sort_by(|one, other| one.name().cmp(other.name()));
    (found, missing)
}
