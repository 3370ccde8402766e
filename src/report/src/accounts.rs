//! Section on privileges: accounts, units, sockets, set-uid files and trusted keys.

use std::collections::BTreeMap;

use vmbake_disk::tree::{Tree, TreeError};

use super::table::{Section, Table};
use vmbake_query::changelog::SecurityFacts;

/// Units and accounts of `tree`.
pub(super) fn sections(tree: &Tree) -> Result<Vec<Section>, TreeError> {
    let facts = SecurityFacts::read(tree)?;
    let table = |title, heads, facts: &BTreeMap<String, String>| Table::of_facts(title, heads, facts);
    let units = [
        table("Enabled units", ["unit", "wanted by"], &facts.units),
        table("Listening sockets of systemd", ["socket", "address"], &facts.sockets),
    ];
    let accounts = [
        table("Users", ["user", "what"], &facts.users),
        table("Groups", ["group", "what"], &facts.groups),
        table("Files with set-uid or set-gid bits or capabilities", ["path", "privilege"], &facts.privileged),
        table("Trusted keys and authorization rules", ["path", "digest"], &facts.trust),
    ];
    let section = |id, title, tables: Vec<Option<Table>>, nothing: &str| {
        let tables: Vec<Table> = tables.into_iter().flatten().collect();
        let text = if tables.is_empty() { nothing.to_owned() } else { String::new() };
        Section { id, title, text, tables, ..Section::default() }
    };
    Ok(vec![
        section("units", "Units", units.into(), "No units are enabled in /etc/systemd/system."),
        section("accounts", "Users and privileges", accounts.into(), "There are no users, groups or privileged files."),
    ])
}
