//! Settings of systemd's daemons, such as journald.conf(5), and of networks (systemd.network(5), systemd.netdev(5), systemd.link(5)).

use vmbake_common::spelling::near;

use super::super::{File, Problem};
use super::settings::{Specifiers, Table, Verdict};
use crate::unit_install::{Statement, statements};

/// Tables of settings as in [`Table`], each after a line with the end of the names of its files in braces. Printed by
/// `tools/unit_settings.py`.
const TABLES: &str = include_str!("daemons.txt");

/// Where the files are, as places of [`super::super::TABLE`].
pub(in super::super) const PLACES: [&str; 4] =
    ["systemd/**/*.conf", "systemd/network/*.link", "systemd/network/*.netdev", "systemd/network/*.network"];

/// Checks sections, settings and their values. Other files are left to their programs.
pub(in super::super) fn check(file: &File) -> Vec<Problem> {
    let Some(table) = table(file.path) else { return Vec::new() };
    let statements = match statements(file.bytes) {
        Ok(statements) => statements,
        Err((line, reason)) => return vec![Problem::error(line, format!("systemd stops reading the file: {reason}"))],
    };
    let (mut found, mut section) = (Vec::new(), None::<String>);
    let is_known = |name: &str| table.sections().any(|known| known == name);
    for (line, statement) in statements {
        match statement {
            Statement::Header(name) => {
                if !is_known(&name) && !name.starts_with("X-") {
                    let near = near(&name, table.sections());
                    let hint = near.first().map(|near| format!("; did you mean [{near}]?")).unwrap_or_default();
                    found.push(Problem::error(line, format!("systemd ignores the unknown section [{name}]{hint}")));
                }
                section = Some(name);
            }
            Statement::Assignment(key, value) => match section.as_deref() {
                None => {
                    found.push(Problem::error(line, format!("systemd ignores {key}=, which is not in a section")));
                }
                Some(section) if is_known(section) => {
                    let problem = match table.verdict(section, &key, &value, Specifiers::No) {
                        Verdict::Valid => None,
                        Verdict::Obsolete(reason) => Some(Problem::error(line, reason).warning()),
                        Verdict::Ignored(reason) => Some(Problem::error(line, reason)),
                        Verdict::Unknown => Some(Problem::error(line, table.unknown(section, &key, found.len()))),
                    };
                    found.extend(problem);
                }
                Some(_) => {}
            },
            Statement::Other(text) => {
                found.push(Problem::error(line, format!("systemd ignores {text:?}, which is not an assignment")));
            }
        }
    }
    found
}

/// The settings that a file, or the file of a drop-in, may have.
fn table(path: &str) -> Option<Table> {
    let (_, rest) = path.split_once("/systemd/")?;
    let (is_network, rest) = rest.strip_prefix("network/").map_or((false, rest), |rest| (true, rest));
    let name = match rest.split_once('/') {
        None => rest,
        Some((dir, name)) if !name.contains('/') => dir.strip_suffix(".d")?,
        Some(_) => return None,
    };
    TABLES.split("\n{").skip(1).find_map(|table| {
        let (end, settings) = table.split_once("}\n")?;
        let is_of = if end.starts_with('.') { is_network && name.ends_with(end) } else { !is_network && name == end };
        is_of.then_some(Table(settings))
    })
}
