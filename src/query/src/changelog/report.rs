//! The changes as printed by `--json`, and their rendering as Markdown.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::security::SecurityFacts;
use crate::diff::Change;
use vmbake_common::escape;
use vmbake_common::progress::human_bytes;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changelog {
    pub from: ReleaseName,
    pub to: ReleaseName,
    /// Security-relevant changes; absent unless both are images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<SecurityChanges>,
    pub packages: PackageChanges,
    /// Artifacts of other upstreams, and the base image, with versions and digests.
    pub programs: Vec<Change>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bundles: Vec<Change>,
    pub layers: Vec<Change>,
    /// First-boot settings, and whether each is required.
    pub settings: Vec<Change>,
    pub sizes: Vec<SizeChange>,
    /// Parts that could not be compared, and why.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReleaseName {
    /// `<kind>.<os>.<arch>`, or the image's own name.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub path: PathBuf,
}

/// Security-relevant changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecurityChanges {
    /// Files with set-uid or set-gid bits or capabilities.
    pub privileged: Vec<Change>,
    pub users: Vec<Change>,
    pub groups: Vec<Change>,
    pub units: Vec<Change>,
    /// Listening sockets of systemd.
    pub sockets: Vec<Change>,
    /// Trusted keys and authorities, and authorization rules.
    pub trust: Vec<Change>,
}

/// Packages by type of change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PackageChanges {
    /// Upgraded.
    pub upgraded: Vec<Change>,
    /// Downgraded.
    pub downgraded: Vec<Change>,
    /// Added.
    pub added: Vec<Change>,
    /// Removed.
    pub removed: Vec<Change>,
}

/// One size of both releases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SizeChange {
    /// `disk` and `files` in bytes, or the number of `paths`.
    pub what: &'static str,
    pub from: u64,
    pub to: u64,
}

impl SizeChange {
    /// Formats a size.
    pub fn shown(&self, size: u64) -> String {
        if self.what == "paths" { size.to_string() } else { human_bytes(size) }
    }
}

impl SecurityChanges {
    pub(super) fn between(from: &SecurityFacts, to: &SecurityFacts) -> Self {
        Self {
            privileged: super::changes(&from.privileged, &to.privileged),
            users: super::changes(&from.users, &to.users),
            groups: super::changes(&from.groups, &to.groups),
            units: super::changes(&from.units, &to.units),
            sockets: super::changes(&from.sockets, &to.sockets),
            trust: super::changes(&from.trust, &to.trust),
        }
    }

    fn sections(&self) -> [(&'static str, &[Change]); 6] {
        [
            ("Files with set-uid or set-gid bits or capabilities", &self.privileged),
            ("Users", &self.users),
            ("Groups", &self.groups),
            ("Enabled units", &self.units),
            ("Listening sockets of systemd", &self.sockets),
            ("Trusted keys and authorization rules", &self.trust),
        ]
    }
}

impl PackageChanges {
    fn sections(&self) -> [(&'static str, &[Change]); 4] {
        [
            ("Downgraded", &self.downgraded),
            ("Upgraded", &self.upgraded),
            ("Added", &self.added),
            ("Removed", &self.removed),
        ]
    }
}

impl Changelog {
    /// Whether nothing but names changed.
    pub fn is_empty(&self) -> bool {
        let lists = [&self.programs, &self.bundles, &self.layers, &self.settings];
        let security = self.security.iter().flat_map(SecurityChanges::sections);
        lists.iter().all(|list| list.is_empty())
            && security.into_iter().chain(self.packages.sections()).all(|(_, list)| list.is_empty())
    }
}

impl fmt::Display for Changelog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {} → {}\n", title(&self.from), title(&self.to))?;
        if self.is_empty() {
            writeln!(f, "No changes.\n")?;
        }
        if let Some(security) = &self.security {
            group(f, "Security", security.sections())?;
        }
        group(f, "Packages", self.packages.sections())?;
        for (heading, list) in self.others().into_iter().filter(|(_, list)| !list.is_empty()) {
            writeln!(f, "## {heading}\n")?;
            items(f, list)?;
        }
        self.write_sizes(f)?;
        if !self.notes.is_empty() {
            writeln!(f, "## Not compared\n")?;
            self.notes.iter().try_for_each(|note| writeln!(f, "- {}", plain(note)))?;
        }
        Ok(())
    }
}

impl Changelog {
    /// All lists with their headings, in output order. The flag marks lists of packages.
    pub fn lists(&self) -> Vec<(String, &[Change])> {
        let security = self.security.iter().flat_map(SecurityChanges::sections);
        let security = security.map(|(heading, list)| (heading.to_owned(), list));
        let packages = self.packages.sections().into_iter();
        let packages = packages.map(|(heading, list)| (format!("{heading} packages"), list));
        let others = self.others().into_iter().map(|(heading, list)| (heading.to_owned(), list));
        security.chain(packages).chain(others).collect()
    }

    fn others(&self) -> [(&'static str, &[Change]); 4] {
        [
            ("Programs and base image", &self.programs),
            ("Bundles", &self.bundles),
            ("Layers", &self.layers),
            ("First-boot settings", &self.settings),
        ]
    }

    fn write_sizes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sizes.is_empty() {
            return Ok(());
        }
        writeln!(f, "## Sizes\n\n| | before | after |\n|---|---:|---:|")?;
        for size in &self.sizes {
            writeln!(f, "| {} | {} | {} |", size.what, size.shown(size.from), size.shown(size.to))?;
        }
        writeln!(f)
    }
}

fn title(release: &ReleaseName) -> String {
    match &release.version {
        Some(version) => format!("{} {}", plain(&release.name), plain(version)),
        None => plain(&release.name),
    }
}

/// A heading with its non-empty lists.
fn group<const N: usize>(f: &mut fmt::Formatter<'_>, heading: &str, lists: [(&str, &[Change]); N]) -> fmt::Result {
    if lists.iter().all(|(_, list)| list.is_empty()) {
        return Ok(());
    }
    writeln!(f, "## {heading}\n")?;
    for (heading, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        writeln!(f, "### {heading}\n")?;
        items(f, list)?;
    }
    Ok(())
}

fn items(f: &mut fmt::Formatter<'_>, list: &[Change]) -> fmt::Result {
    for Change { name, from, to } in list {
        let name = code(name);
        match (from, to) {
            (Some(from), Some(to)) => writeln!(f, "- {name}: {} → {}", plain(from), plain(to))?,
            (None, Some(to)) => writeln!(f, "- added {name}: {}", plain(to))?,
            (Some(from), None) => writeln!(f, "- removed {name}: {}", plain(from))?,
            (None, None) => {}
        }
    }
    writeln!(f)
}

/// Escapes text of an image, which must not become Markdown or HTML.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for char in escape::line(text).chars() {
        match char {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => plain.extend(['\\', char]),
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            _ => plain.push(char),
        }
    }
    plain
}

/// A name as inline code, between as many backquotes as necessary.
fn code(name: &str) -> String {
    let name = escape::line(name);
    match name.contains('`') {
        true => plain(&name),
        false => format!("`{name}`"),
    }
}
