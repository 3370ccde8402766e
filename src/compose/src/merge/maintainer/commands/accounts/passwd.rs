//! chfn(1), chsh(1), passwd(1), chage(1): change a single field of an account.

use vmbake_shell::Call;

use super::{Done, Known, Parsed, System, fail, flag, is_field, parse, save, status, unsupported, value, words};
use crate::merge::accounts::Tables;

const CHFN: &[Known] = &[
    value("full-name", 'f'),
    value("room", 'r'),
    value("work-phone", 'w'),
    value("home-phone", 'h'),
    value("other", 'o'),
];
const CHSH: &[Known] = &[value("shell", 's')];
const PASSWD: &[Known] = &[flag("lock", 'l'), flag("unlock", 'u'), flag("delete", 'd'), flag("quiet", 'q')];
const CHAGE: &[Known] = &[
    value("mindays", 'm'),
    value("maxdays", 'M'),
    value("warndays", 'W'),
    value("inactive", 'I'),
    value("lastday", 'd'),
    value("expiredate", 'E'),
];

/// The options of chfn(1) in the order of their fields.
const GECOS: [&str; 5] = ["full-name", "room", "work-phone", "home-phone", "other"];
/// The options of chage(1), with the fields of shadow(5).
const AGING: [(&str, usize); 6] =
    [("lastday", 2), ("mindays", 3), ("maxdays", 4), ("warndays", 5), ("inactive", 6), ("expiredate", 7)];

fn read(call: &Call<'_>, known: &[Known]) -> Option<(Parsed, String)> {
    let parsed = parse(&words(call)?, known)?;
    let [name] = parsed.operands.as_slice() else { return None };
    let name = name.clone();
    Some((parsed, name))
}

pub(super) fn chfn(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some((parsed, name)) = read(call, CHFN) else { return unsupported(call) };
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    let Some(old) = tables.passwd.field(&name, 4) else {
        return fail(call, 1, &format!("user '{name}' does not exist"));
    };
    let mut fields: Vec<String> = old.splitn(GECOS.len(), ',').map(str::to_owned).collect();
    fields.resize(GECOS.len(), String::new());
    for (key, field) in GECOS.iter().zip(&mut fields) {
        if let Some(value) = parsed.value(key) {
            if !is_field(value) || (*key != "other" && value.contains([',', '='])) {
                return fail(call, 1, &format!("invalid name: '{value}'"));
            }
            value.clone_into(field);
        }
    }
    // The last field has no comma where it is empty.
    let kept = if fields.last().is_some_and(String::is_empty) { GECOS.len() - 1 } else { GECOS.len() };
    fields.truncate(kept);
    tables.passwd.set(&name, 4, &fields.join(","));
    save(&mut target, &tables)?;
    status(0)
}

pub(super) fn chsh(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some((parsed, name)) = read(call, CHSH) else { return unsupported(call) };
    let Some(shell) = parsed.value("shell").filter(|shell| is_field(shell)) else { return unsupported(call) };
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    if tables.passwd.find(&name).is_none() {
        return fail(call, 1, &format!("user '{name}' does not exist"));
    }
    tables.passwd.set(&name, 6, shell);
    save(&mut target, &tables)?;
    status(0)
}

pub(super) fn passwd(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some((parsed, name)) = read(call, PASSWD) else { return unsupported(call) };
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    let Some(old) = tables.shadow.field(&name, 1).map(str::to_owned) else {
        return fail(call, 1, &format!("user '{name}' does not exist"));
    };
    let new = match (parsed.has("lock"), parsed.has("unlock"), parsed.has("delete")) {
        (true, false, false) if old.starts_with('!') => old,
        (true, false, false) => format!("!{old}"),
        (false, true, false) => match old.strip_prefix('!') {
            Some("") => return fail(call, 3, "unlocking the password would result in a passwordless account."),
            rest => rest.unwrap_or(&old).to_owned(),
        },
        (false, false, true) => String::new(),
        _ => return unsupported(call),
    };
    tables.shadow.set(&name, 1, &new);
    save(&mut target, &tables)?;
    if !parsed.has("quiet") {
        call.stdout.extend_from_slice(b"passwd: password changed.\n");
    }
    status(0)
}

pub(super) fn chage(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some((parsed, name)) = read(call, CHAGE) else { return unsupported(call) };
    let given: Vec<_> = AGING.iter().filter_map(|(key, field)| Some((parsed.value(key)?, *field))).collect();
    if given.is_empty() || given.iter().any(|(days, _)| days.parse::<i32>().is_err()) {
        return unsupported(call);
    }
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    if tables.shadow.find(&name).is_none() {
        return fail(call, 1, &format!("user '{name}' does not exist in /etc/passwd"));
    }
    for (days, field) in given {
        // -1 takes the limit away.
        tables.shadow.set(&name, field, if days == "-1" { "" } else { days });
    }
    save(&mut target, &tables)?;
    status(0)
}
