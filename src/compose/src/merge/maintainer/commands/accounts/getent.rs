//! getent(1) for the databases that are files, and groups(1).

use vmbake_shell::{Call, Outcome};

use super::{Done, System, fail, status, unsupported, words};
use crate::merge::accounts::{Table, Tables};

pub(super) fn getent(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let [database, keys @ ..] = words.as_slice() else { return unsupported(call) };
    let tables = Tables::read(&system.target())?;
    let (table, by_id) = match database.as_str() {
        "passwd" => (&tables.passwd, true),
        "group" => (&tables.group, true),
        "shadow" => (&tables.shadow, false),
        "gshadow" => (&tables.gshadow, false),
        "hosts" | "ahosts" | "ahostsv4" | "ahostsv6" => {
            return Ok(Outcome::Deferred("host names are only known on the machine".to_owned()));
        }
        "services" => return listed(system, call, "/etc/services", keys),
        "protocols" => return listed(system, call, "/etc/protocols", keys),
        _ => return unsupported(call),
    };
    if keys.is_empty() {
        table.lines().for_each(|line| print(call, line));
        return status(0);
    }
    let mut code = 0;
    for key in keys {
        match find(table, key, by_id) {
            Some(line) => print(call, line),
            None => code = 2,
        }
    }
    status(code)
}

fn find<'a>(table: &'a Table, key: &str, by_id: bool) -> Option<&'a [String]> {
    match key.parse::<u32>() {
        Ok(id) if by_id => table.find(table.name(id)?),
        _ => table.find(key),
    }
}

fn print(call: &mut Call<'_>, line: &[String]) {
    call.stdout.extend_from_slice(format!("{}\n", line.join(":")).as_bytes());
}

/// Whether services(5) or protocols(5) has the names; what it prints of them nothing reads.
fn listed(system: &System<'_, '_>, call: &mut Call<'_>, path: &str, keys: &[String]) -> Done {
    let text = system.target().text_or_empty(path)?;
    if keys.is_empty() {
        return unsupported(call);
    }
    let mut code = 0;
    for key in keys {
        let (name, protocol) = key.split_once('/').map_or((key.as_str(), None), |(name, rest)| (name, Some(rest)));
        let found = text.lines().find_map(|line| {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let [first, number, aliases @ ..] = words.as_slice() else { return None };
            let fits = protocol.is_none_or(|wanted| number.ends_with(&format!("/{wanted}")));
            let named = *first == name || aliases.contains(&name) || number.split('/').next() == Some(name);
            (fits && named).then(|| {
                let aliases: String = aliases.iter().map(|alias| format!(" {alias}")).collect();
                format!("{first:<21} {number}{aliases}\n")
            })
        });
        match found {
            Some(line) => call.stdout.extend_from_slice(line.as_bytes()),
            None => code = 2,
        }
    }
    status(code)
}

pub(super) fn groups(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let tables = Tables::read(&system.target())?;
    let [user] = words.as_slice() else { return unsupported(call) };
    let Some(gid) = tables.passwd.field(user, 3).and_then(|gid| gid.parse::<u32>().ok()) else {
        return fail(call, 1, &format!("‘{user}’: no such user"));
    };
    let own = tables.group.name(gid).map_or_else(|| gid.to_string(), str::to_owned);
    let mut names = vec![own.clone()];
    names.extend(tables.groups_of(user).into_iter().filter(|name| *name != own));
    call.stdout.extend_from_slice(format!("{user} : {}\n", names.join(" ")).as_bytes());
    status(0)
}
