//! `dpkg -l`: a table of packages.

use vmbake_shell::Call;

use super::packages;
use super::{Done, PROGRAM, none_found, status};
use crate::merge::maintainer::system::System;

const HEAD: &str = "Desired=Unknown/Install/Remove/Purge/Hold
| Status=Not/Inst/Conf-files/Unpacked/halF-conf/Half-inst/trig-aWait/Trig-pend
|/ Err?=(none)/Reinst-required (Status,Err: uppercase=bad)
";

/// The columns: title and least width.
const COLUMNS: [(&str, usize); 4] = [("Name", 14), ("Version", 12), ("Architecture", 12), ("Description", 33)];

pub(super) fn list(system: &System<'_, '_>, call: &mut Call<'_>, operands: &[&str]) -> Done {
    let (found, missing) = packages::select(system, operands);
    let rows: Vec<(String, [String; 4])> = found
        .iter()
        .map(|package| {
            let or = |text: &str, other: &str| if text.is_empty() { other } else { text }.to_owned();
            let description = package.field("Description").unwrap_or_default().lines().next().unwrap_or_default();
            let version = or(package.field("Version").unwrap_or_default(), "<none>");
            let (arch, description) = (or(package.arch(), "<none>"), or(description, "(no description available)"));
            (package.letters(), [package.shown(system), version, arch, description])
        })
        .collect();
    let [name, version, arch, description] = std::array::from_fn(|at| {
        let widths = rows.iter().filter_map(|(_, cells)| Some(cells.get(at)?.chars().count()));
        widths.chain(COLUMNS.get(at).map(|(_, least)| *least)).max().unwrap_or_default()
    });
    let line = |[a, b, c, d]: [&str; 4]| format!("{a:<name$} {b:<version$} {c:<arch$} {d}");
    if !rows.is_empty() {
        let rule = [name, version, arch, description].map(|width| "=".repeat(width)).join("-");
        call.stdout.extend(format!("{HEAD}||/ {}\n+++-{rule}\n", line(COLUMNS.map(|(title, _)| title))).bytes());
    }
    for (letters, cells) in &rows {
        call.stdout.extend(format!("{letters} {}\n", line(cells.each_ref().map(String::as_str))).bytes());
    }
    status(none_found(call, PROGRAM, &missing))
}
