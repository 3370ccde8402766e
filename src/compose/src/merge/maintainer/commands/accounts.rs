//! Users and groups: adduser(8) and related commands, the tools of shadow, and getent(1) for databases in files.

mod adduser;
mod adduser_conf;
mod deluser;
mod getent;
mod groups;
mod options;
mod passwd;
mod shadow;
mod useradd;
mod usermod;

use vmbake_shell::Call;

use super::{Command, Done, System, status, unsupported, words};
use crate::merge::MergeError;
use crate::merge::accounts::{AccountKind, NewUser, SKELETON, Tables};
use crate::merge::place::Target;
use options::{Known, Parsed, flag, parse, value};

pub(super) fn find(name: &str) -> Option<Command> {
    Some(match name {
        "adduser" => adduser::adduser,
        "addgroup" => adduser::addgroup,
        "deluser" => deluser::deluser,
        "delgroup" => deluser::delgroup,
        "useradd" => useradd::useradd,
        "userdel" => useradd::userdel,
        "usermod" => usermod::usermod,
        "groupadd" => groups::groupadd,
        "groupmod" => groups::groupmod,
        "groupdel" => groups::groupdel,
        "gpasswd" => groups::gpasswd,
        "chfn" => passwd::chfn,
        "chsh" => passwd::chsh,
        "passwd" => passwd::passwd,
        "chage" => passwd::chage,
        "pwck" => shadow::pwck,
        "grpck" => shadow::grpck,
        "pwconv" => shadow::pwconv,
        "grpconv" => shadow::grpconv,
        "getent" => getent::getent,
        "groups" => getent::groups,
        _ => return None,
    })
}

/// Whether the command is one of the package adduser, which a system need not have: a script that is called when its package
/// is removed cannot rely on it (Debian Policy 7.2).
pub(super) fn is_optional(call: &Call<'_>) -> bool {
    [&b"adduser"[..], b"addgroup", b"deluser", b"delgroup"].contains(&call.base_name())
}

/// The account that a command creates, by its words, with all options that are known. Membership in a group is not an account.
pub(in crate::merge::maintainer) fn created(name: &str, args: &[String]) -> Option<(AccountKind, String)> {
    let known = match name {
        "useradd" => useradd::KNOWN,
        "adduser" | "addgroup" => adduser::KNOWN,
        "groupadd" => groups::GROUPADD,
        _ => return None,
    };
    let parsed = parse(args, known).unwrap_or_else(|| Parsed::of_operands(args));
    let is_group = name.starts_with("group")
        || name == "addgroup"
        || (name == "adduser" && parsed.has("group") && !parsed.has("system"));
    let kind = if is_group { AccountKind::Group } else { AccountKind::User };
    match parsed.operands.as_slice() {
        [_, _] if name == "adduser" => Some((kind, String::new())),
        operands => Some((kind, operands.last().cloned().unwrap_or_default())),
    }
}

/// The command fails, and says why as the real one does.
fn fail(call: &mut Call<'_>, code: u8, message: &str) -> Done {
    let name = String::from_utf8_lossy(call.base_name()).into_owned();
    call.stderr.extend_from_slice(format!("{name}: {message}\n").as_bytes());
    status(code)
}

/// Whether a name may stand in a line of the tables: what shadow accepts with `--badname` at the most.
fn is_name(name: &str) -> bool {
    let bad = |char: char| matches!(char, ':' | ',' | '/' | '"') || char.is_whitespace() || char.is_control();
    !name.is_empty() && !name.starts_with(['-', '+', '~']) && !name.contains(bad) && name.len() <= 256
}

/// Whether a text may be a field of a line.
fn is_field(text: &str) -> bool {
    !text.contains(|char: char| char == ':' || char.is_control())
}

/// A group by its name or its number.
fn group_id(tables: &Tables, text: &str) -> Option<u32> {
    match text.parse::<u32>() {
        Ok(id) => tables.group.name(id).map(|_| id),
        Err(_) => tables.group.id(text),
    }
}

/// What each tool makes where it is missing, to lock the tables with (lckpwdf(3)).
fn lock(target: &mut Target) -> Result<(), MergeError> {
    let path = "/etc/.pwd.lock";
    if target.wrap(target.tree.find(path.as_bytes()))?.is_none() {
        let meta = target.meta(0o600);
        target.file(path, meta, Vec::new())?;
    }
    Ok(())
}

/// Writes the tables as one of the tools does.
fn save(target: &mut Target, tables: &Tables) -> Result<(), MergeError> {
    lock(target)?;
    tables.write(target, true)
}

/// Makes a home directory with what is in the skeleton directory, unless something is there.
fn make_home(target: &mut Target, user: &NewUser<'_>, mode: u16, skeleton: Option<&str>) -> Result<(), MergeError> {
    if target.tree.resolve(user.home.as_bytes()).is_ok() {
        return Ok(());
    }
    let mut meta = target.meta(mode);
    (meta.uid, meta.gid) = (user.uid, user.gid);
    target.directory(user.home, meta)?;
    skeleton.map_or(Ok(()), |skeleton| target.skeleton(skeleton, user.home, user.uid, user.gid))
}
