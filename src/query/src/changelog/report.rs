//! The changes: what `--json` prints as it stands, and Markdown for people.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::security::SecurityFacts;
use crate::diff::Change;
use vmbake_common::escape;
use vmbake_common::progress::human_bytes;

/// What changed from one release to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changelog {
    /// The older release.
    pub from: ReleaseName,
    /// The newer release.
    pub to: ReleaseName,
    /// What matters for security; absent where not both are images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<SecurityChanges>,
    /// Packages of the distribution, with their versions.
    pub packages: PackageChanges,
    /// What came from other upstreams, and the base image, with versions and digests.
    pub programs: Vec<Change>,
    /// Bundles with versions and digests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bundles: Vec<Change>,
    /// Layers with versions and digests.
    pub layers: Vec<Change>,
    /// Settings of the first boot, and whether each is required.
    pub settings: Vec<Change>,
    /// Sizes of both.
    pub sizes: Vec<SizeChange>,
    /// What could not be compared, and why.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReleaseName {
    /// `<kind>.<os>.<arch>`, or what the image calls itself.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The image or document that was read.
    pub path: PathBuf,
}

/// What matters for security.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecurityChanges {
    /// Files with set-uid or set-gid bits or capabilities.
    pub privileged: Vec<Change>,
    /// Accounts.
    pub users: Vec<Change>,
    pub groups: Vec<Change>,
    /// Enabled units.
    pub units: Vec<Change>,
    /// Sockets that systemd opens.
    pub sockets: Vec<Change>,
    /// Keys and authorities that are trusted, and rules of who may do what.
    pub trust: Vec<Change>,
}

/// Packages by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PackageChanges {
    /// Newer now.
    pub upgraded: Vec<Change>,
    /// Older now.
    pub downgraded: Vec<Change>,
    /// New.
    pub added: Vec<Change>,
    /// Gone.
    pub removed: Vec<Change>,
}

/// One size of both releases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SizeChange {
    /// `disk` and `files` in bytes, or `paths`, a number.
    pub what: &'static str,
    /// Of the older release.
    pub from: u64,
    /// Of the newer release.
    pub to: u64,
}

impl SizeChange {
    /// One of both sizes, for people.
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
            ("Sockets that systemd opens", &self.sockets),
            ("Trusted keys, and rules of who may do what", &self.trust),
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
    /// Whether nothing changed but names.
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
            writeln!(f, "Nothing changed of what is compared.\n")?;
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
    /// All lists with their headings, in the order in which they are told. Those of packages say so.
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
            ("Settings of the first boot", &self.settings),
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

/// A heading with those of its lists that are not empty.
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

/// Text of an image that must not become Markdown or HTML.
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

/// A name as code, between as many backquotes as it needs.
fn code(name: &str) -> String {
    let name = escape::line(name);
    match name.contains('`') {
        true => plain(&name),
        false => format!("`{name}`"),
    }
}
