//! Section on changes since an older image: changelog and comparison of paths.

use std::collections::BTreeMap;
use std::path::Path;

use super::table::{Section, Table};
use super::{ReportError, ReportRequest, file_name};
use vmbake_query::changelog::{Changelog, changelog};
use vmbake_query::diff::{Change, DiffOptions, Difference, diff};

/// Maximum number of paths in this section; the table of all paths marks every change.
const MAX_PATHS: usize = 500;

pub(super) struct Changes {
    changelog: Changelog,
    difference: Difference,
    notes: Vec<String>,
    old: String,
}

impl Changes {
    pub(super) fn read(old: &Path, request: &ReportRequest<'_>) -> Result<Self, ReportError> {
        let options = DiffOptions { partition: request.partition, times: false, threads: request.threads };
        let difference = diff(old, request.image, options)?;
        let changelog = changelog(old, request.image)?;
        // The report must not contain directories of the host.
        let notes = changelog.notes.iter().chain(&difference.notes).map(|note| {
            let of = |path: &Path, name: &str| {
                note.strip_prefix(&format!("{}: ", path.display())).map(|rest| format!("{name}: {rest}"))
            };
            of(old, "before").or_else(|| of(request.image, "after")).unwrap_or_else(|| note.clone())
        });
        Ok(Self { notes: notes.collect(), changelog, difference, old: file_name(old) })
    }

    /// `added`, `removed` or `changed` by path.
    pub(super) fn marks(&self) -> BTreeMap<&str, &'static str> {
        self.difference.paths.iter().map(|path| (path.path.as_str(), path.change)).collect()
    }

    pub(super) fn into_section(self) -> Section {
        let mut tables: Vec<Table> =
            self.changelog.lists().into_iter().filter_map(|(title, list)| table(&title, list)).collect();
        let artifacts = [("Artifacts of the manifests", &self.difference.artifacts)];
        tables.extend(artifacts.into_iter().filter_map(|(title, list)| table(title, list)));
        let sizes = self
            .changelog
            .sizes
            .iter()
            .map(|size| vec![size.what.to_owned(), size.shown(size.from), size.shown(size.to)]);
        tables.extend(rows("Sizes", &["what", "before", "after"], sizes.collect()));
        let all = self.difference.paths.len();
        let title = match all > MAX_PATHS {
            true => format!("First {MAX_PATHS} of {all} different paths; the table of all paths marks every one"),
            false => "Different paths".to_owned(),
        };
        let paths = self.difference.paths.iter().take(MAX_PATHS).map(|path| {
            let properties: Vec<String> = path.properties.iter().map(ToString::to_string).collect();
            vec![path.change.to_owned(), path.path.clone(), path.kind.to_owned(), properties.join("; ")]
        });
        tables.extend(rows(title, &["change", "path", "type", "differences"], paths.collect()));
        tables.extend(rows("Not compared", &["why"], self.notes.into_iter().map(|note| vec![note]).collect()));
        let text = match self.changelog.is_empty() && self.difference.is_empty() {
            true => format!("No changes since {}.", self.old),
            false => format!("Since {}: {}.", self.old, self.difference.summary()),
        };
        Section { id: "changes", title: "Changes", text, tables, ..Section::default() }
    }
}

fn table(title: &str, list: &[Change]) -> Option<Table> {
    let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "none".to_owned());
    let cells = |change: &Change| vec![change.name.clone(), side(&change.from), side(&change.to)];
    rows(title, &["name", "before", "after"], list.iter().map(cells).collect())
}

fn rows(title: impl Into<String>, heads: &[&'static str], rows: Vec<Vec<String>>) -> Option<Table> {
    (!rows.is_empty()).then(|| Table::new(title, heads, rows))
}
