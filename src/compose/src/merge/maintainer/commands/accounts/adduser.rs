//! adduser(8) and addgroup(8).

use vmbake_shell::Call;

use super::adduser_conf::Conf;
use super::{
    Done, Known, NewUser, Parsed, System, flag, group_id, is_field, is_name, make_home, parse, save, status,
    unsupported, value, words,
};
use crate::merge::accounts::{AccountKind, Defs, Tables, lowest};

pub(super) const KNOWN: &[Known] = &[
    flag("system", '\0'),
    flag("group", '\0'),
    value("ingroup", '\0'),
    value("home", '\0'),
    value("shell", '\0'),
    value("gecos", '\0'),
    value("comment", '\0'),
    value("uid", '\0'),
    value("gid", '\0'),
    value("firstuid", '\0'),
    value("lastuid", '\0'),
    value("firstgid", '\0'),
    value("lastgid", '\0'),
    flag("no-create-home", '\0'),
    flag("disabled-login", '\0'),
    flag("disabled-password", '\0'),
    flag("add-extra-groups", '\0'),
    flag("add_extra_groups", '\0'),
    flag("force-badname", '\0'),
    flag("allow-badname", '\0'),
    flag("allow-bad-names", '\0'),
    flag("allow-all-names", '\0'),
    flag("quiet", 'q'),
    flag("verbose", '\0'),
    // What is told, and where.
    value("stdoutmsglevel", '\0'),
    value("stderrmsglevel", '\0'),
    value("logmsglevel", '\0'),
];

pub(super) fn adduser(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some((parsed, mut conf)) = read(system, call)? else { return unsupported(call) };
    ranges(&parsed, &mut conf);
    match parsed.operands.as_slice() {
        [user, group] if !parsed.has("system") => join(system, call, &conf, user, group),
        [name] if parsed.has("group") && !parsed.has("system") => group(system, call, &conf, &parsed, name),
        [name] if !is_name(name) => conf.fatal(call, 31, 1, "To avoid problems, this name is not allowed."),
        [name] => user(system, call, &conf, &parsed, name),
        _ => conf.fatal(call, 51, 1, "Only one or two names allowed."),
    }
}

pub(super) fn addgroup(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some((parsed, mut conf)) = read(system, call)? else { return unsupported(call) };
    ranges(&parsed, &mut conf);
    match parsed.operands.as_slice() {
        [name] if !is_name(name) => conf.fatal(call, 31, 1, "To avoid problems, this name is not allowed."),
        [name] => group(system, call, &conf, &parsed, name),
        [_, _] => conf.fatal(call, 51, 1, "addgroup with two arguments is an unspecified operation."),
        _ => conf.fatal(call, 51, 1, "Only one or two names allowed."),
    }
}

type Read = Result<Option<(Parsed, Conf)>, crate::merge::MergeError>;

fn read(system: &System<'_, '_>, call: &Call<'_>) -> Read {
    let Some(parsed) = words(call).and_then(|words| parse(&words, KNOWN)) else { return Ok(None) };
    let numbers = ["uid", "gid", "firstuid", "lastuid", "firstgid", "lastgid"];
    if numbers.iter().filter_map(|name| parsed.value(name)).any(|text| text.parse::<u32>().is_err()) {
        return Ok(None);
    }
    Ok(Some((parsed, Conf::read(system)?)))
}

fn number(parsed: &Parsed, name: &str) -> Option<u32> {
    parsed.value(name)?.parse().ok()
}

/// What the call says of ranges, in the place of the configuration.
fn ranges(parsed: &Parsed, conf: &mut Conf) {
    let system = parsed.has("system");
    let (uids, gids) =
        if system { (&mut conf.system_uids, &mut conf.system_gids) } else { (&mut conf.uids, &mut conf.gids) };
    for (name, limit) in
        [("firstuid", &mut uids.0), ("lastuid", &mut uids.1), ("firstgid", &mut gids.0), ("lastgid", &mut gids.1)]
    {
        *limit = number(parsed, name).unwrap_or(*limit);
    }
}

fn contains(range: (u32, u32), id: u32) -> bool {
    (range.0..=range.1).contains(&id)
}

/// `adduser USER GROUP`
fn join(system: &mut System<'_, '_>, call: &mut Call<'_>, conf: &Conf, user: &str, group: &str) -> Done {
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    if tables.passwd.find(user).is_none() {
        return conf.fatal(call, 12, 1, &format!("The user `{user}' does not exist."));
    }
    if tables.group.find(group).is_none() {
        return conf.fatal(call, 12, 1, &format!("The group `{group}' does not exist."));
    }
    if tables.group.members(group).iter().any(|member| member == user) {
        call.stderr
            .extend_from_slice(format!("warn: The user `{user}' is already a member of `{group}'.\n").as_bytes());
        return status(0);
    }
    tables.join(group, user);
    save(&mut target, &tables)?;
    status(0)
}

/// `addgroup GROUP`
fn group(system: &mut System<'_, '_>, call: &mut Call<'_>, conf: &Conf, parsed: &Parsed, name: &str) -> Done {
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    let (is_system, wanted) = (parsed.has("system"), number(parsed, "gid"));
    if let Some(found) = tables.group.id(name) {
        if !is_system {
            return conf.fatal(call, 11, 1, &format!("The group `{name}' already exists."));
        }
        if wanted.is_some_and(|wanted| wanted != found) {
            return conf.fatal(
                call,
                13,
                1,
                &format!("The group `{name}' already exists, but has a different GID. Exiting."),
            );
        }
        if !contains(conf.system_gids, found) {
            return conf.fatal(
                call,
                13,
                1,
                &format!("The group `{name}' already exists and is not a system group. Exiting."),
            );
        }
        return status(0);
    }
    let ids = &mut system.database.ids;
    let gid = match wanted {
        Some(gid) if tables.group.name(gid).is_some() => {
            return conf.fatal(call, 13, 1, &format!("The GID {gid} is already in use."));
        }
        Some(gid) => {
            ids.record(AccountKind::Group, name, gid);
            Some(gid)
        }
        None => {
            let (first, last) = if is_system { conf.system_gids } else { conf.gids };
            ids.choose(AccountKind::Group, name, &tables, |taken| lowest(taken, first, last))?
        }
    };
    let Some(gid) = gid else { return conf.fatal(call, 42, 1, "No GID is available.") };
    tables.add_group(name, gid, "!");
    save(&mut target, &tables)?;
    status(0)
}

/// `adduser USER`, with `--system` or without
fn user(system: &mut System<'_, '_>, call: &mut Call<'_>, conf: &Conf, parsed: &Parsed, name: &str) -> Done {
    let is_system = parsed.has("system");
    let home = parsed.value("home");
    if home.is_some_and(|home| !home.starts_with('/')) {
        return conf.fatal(call, 32, 1, "The home dir must be an absolute path.");
    }
    if usize::from(parsed.has("group")) + usize::from(parsed.has("ingroup")) + usize::from(parsed.has("gid")) > 1 {
        return conf.fatal(call, 53, 1, "The --group, --ingroup, and --gid options are mutually exclusive.");
    }
    let gecos = parsed.value("comment").or_else(|| parsed.value("gecos"));
    if [gecos, home, parsed.value("shell")].into_iter().flatten().any(|field| !is_field(field)) {
        return unsupported(call);
    }
    // Without these it asks for a password and a name.
    let asks = !is_system && (gecos.is_none() || !(parsed.has("disabled-password") || parsed.has("disabled-login")));
    if asks {
        return unsupported(call);
    }
    if let Some(ended) = exists(system, call, conf, parsed, name)? {
        return status(ended);
    }
    let gid = match own_group(system, call, conf, parsed, name)? {
        Ok(gid) => gid,
        Err(ended) => return status(ended),
    };
    create(system, call, conf, parsed, (name, gid))
}

/// A user that is there already: done, if it is one of the system's.
fn exists(
    system: &System<'_, '_>,
    call: &mut Call<'_>,
    conf: &Conf,
    parsed: &Parsed,
    name: &str,
) -> Result<Option<u8>, crate::merge::MergeError> {
    let tables = Tables::read(&system.target())?;
    let wanted = number(parsed, "uid");
    let (code, message) = match tables.passwd.id(name) {
        Some(_) if !parsed.has("system") => (11, format!("The user `{name}' already exists.")),
        Some(found) if !contains(conf.system_uids, found) => {
            (13, format!("The user `{name}' already exists, but is not a system user. Exiting."))
        }
        Some(found) if wanted.is_some_and(|wanted| wanted != found) => {
            (13, format!("The user `{name}' already exists with a different UID. Exiting."))
        }
        Some(_) => return Ok(Some(0)),
        None if wanted.is_some_and(|wanted| tables.passwd.name(wanted).is_some()) => {
            (13, format!("The user `{name}' already exists with a different UID. Exiting."))
        }
        None => return Ok(None),
    };
    call.stderr.extend_from_slice(format!("fatal: {message}\n").as_bytes());
    Ok(Some(if conf.old { 1 } else { code }))
}

/// The group of a new user, which is made if it has to be; or the exit status where it cannot.
fn own_group(
    system: &mut System<'_, '_>,
    call: &mut Call<'_>,
    conf: &Conf,
    parsed: &Parsed,
    name: &str,
) -> Result<Result<u32, u8>, crate::merge::MergeError> {
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    let mut end = |code: u8, message: String| {
        call.stderr.extend_from_slice(format!("fatal: {message}\n").as_bytes());
        Ok(Err(if conf.old { 1 } else { code }))
    };
    let is_system = parsed.has("system");
    if let Some(group) = parsed.value("ingroup") {
        return match group_id(&tables, group) {
            Some(gid) => Ok(Ok(gid)),
            None => end(12, format!("The group `{group}' does not exist.")),
        };
    }
    if let Some(gid) = number(parsed, "gid") {
        return match tables.group.name(gid) {
            Some(_) => Ok(Ok(gid)),
            None => end(12, format!("No group with GID {gid} found.")),
        };
    }
    if !parsed.has("group") && is_system {
        return Ok(Ok(tables.group.id("nogroup").unwrap_or(65_534)));
    }
    if !is_system && !conf.user_groups {
        return Ok(Ok(conf.users_gid));
    }
    if let Some(gid) = tables.group.id(name) {
        return if is_system { Ok(Ok(gid)) } else { end(11, format!("The group `{name}' already exists.")) };
    }
    let (first, last) = if is_system { conf.system_gids } else { conf.gids };
    let gid = match number(parsed, "uid") {
        Some(id) if tables.group.name(id).is_some() => return end(82, format!("GID '{id}' already exists")),
        Some(id) => {
            system.database.ids.record(AccountKind::Group, name, id);
            Some(id)
        }
        None => {
            let users = if is_system { std::collections::BTreeSet::new() } else { tables.passwd.ids() };
            // A regular user has the same id as its group.
            let free = |taken: &std::collections::BTreeSet<u32>| lowest(&(taken | &users), first, last);
            system.database.ids.choose(AccountKind::Group, name, &tables, free)?
        }
    };
    let Some(gid) = gid else { return end(42, "No GID is available.".to_owned()) };
    tables.add_group(name, gid, "!");
    save(&mut target, &tables)?;
    Ok(Ok(gid))
}

/// Adds the user, creates its home and writes its comment, each in a separate step.
fn create(
    system: &mut System<'_, '_>,
    call: &mut Call<'_>,
    conf: &Conf,
    parsed: &Parsed,
    (name, gid): (&str, u32),
) -> Done {
    let is_system = parsed.has("system");
    let mut target = system.target();
    let defs = Defs::read(&target)?;
    let mut tables = Tables::read(&target)?;
    let ids = &mut system.database.ids;
    let own = (!is_system && tables.group.name(gid) == Some(name)).then_some(gid);
    let (first, last) = if is_system { conf.system_uids } else { conf.uids };
    let uid = match number(parsed, "uid").or(own) {
        Some(uid) => {
            ids.record(AccountKind::User, name, uid);
            Some(uid)
        }
        None => ids.choose(AccountKind::User, name, &tables, |taken| lowest(taken, first, last))?,
    };
    let Some(uid) = uid else { return conf.fatal(call, 42, 1, "No UID is available.") };
    let own_home = conf.home(name);
    let home = parsed.value("home").unwrap_or(if is_system { "/nonexistent" } else { &own_home });
    let no_login = is_system || (parsed.has("disabled-login") && !conf.old);
    let shell = parsed.value("shell").unwrap_or(if no_login { "/usr/sbin/nologin" } else { &conf.shell });
    let aging = defs.aging(is_system);
    let user = NewUser { name, uid, gid, gecos: "", home, shell, password: "!", aging: &aging };
    tables.add_user(&user);
    if !is_system {
        tables.subordinate(name, &defs);
    }
    save(&mut target, &tables)?;
    if !parsed.has("no-create-home") && home != "/nonexistent" {
        let mode = if is_system { conf.system_mode } else { conf.mode };
        make_home(&mut target, &user, mode, (!is_system).then_some(super::SKELETON))?;
    }
    if let Some(gecos) = parsed.value("comment").or_else(|| parsed.value("gecos")) {
        // chfn(1) fills up its fields.
        let commas = if conf.old { 3_usize.saturating_sub(gecos.matches(',').count()) } else { 0 };
        let gecos = format!("{gecos}{}", ",".repeat(commas));
        if !gecos.is_empty() {
            tables = Tables::read(&target)?;
            tables.passwd.set(name, 4, &gecos);
            save(&mut target, &tables)?;
        }
    }
    for group in conf.extra_groups.iter().filter(|_| !is_system) {
        let mut tables = Tables::read(&target)?;
        if tables.join(group, name) {
            save(&mut target, &tables)?;
        }
    }
    status(0)
}
