//! What maintainer scripts would do when a package is installed, or takes the place of an older version, without running
//! them.
//!
//! Sections that debhelper generated are interpreted ([`super::debhelper`]). What stands outside of them must do nothing,
//! or the script must be on a layer's audited list, with its digest and what it does. For an upgrade, the branches that are
//! not reached are dropped before ([`super::situation`]), and the scripts of the old version count too.

use std::collections::BTreeSet;

use vmbake_disk::tree::Metadata;

use super::accounts::lookup;
use super::effects::{Effects, Run};
use super::place::Target;
use super::situation::{Arguments, reached};
use super::upgrade::Old;
use super::{ContentFault, MergeError, alternatives, debhelper, units};
use crate::compose::stage::Deb;
use crate::digest::Digest;
use crate::layer::{AuditedScript, Ownership};

/// One script of those that dpkg would run.
struct Script<'a> {
    name: &'static str,
    bytes: &'a [u8],
    run: Run<'a>,
    arguments: Option<Arguments<'a>>,
}

/// Reads the scripts of `deb`, which takes the place of `old`; one that is not understood is an error that shows it.
pub(super) fn effects(deb: &Deb, old: Option<&Old>, audited: &[AuditedScript]) -> Result<Effects, MergeError> {
    let mut effects = Effects { upgrade: old.is_some(), ..Effects::default() };
    for script in scripts(deb, old) {
        read(deb, &script, audited, &mut effects)?;
    }
    Ok(effects)
}

/// The scripts that run when the package is installed, in their order; the others are only kept.
fn scripts<'a>(deb: &'a Deb, old: Option<&'a Old>) -> Vec<Script<'a>> {
    let new = |name, action| {
        let bytes = deb.info.get(name)?;
        let (run, arguments) = match old {
            Some(old) => (Run::After(&old.version), Some(Arguments { action, version: &old.version })),
            None => (Run::New, None),
        };
        Some(Script { name, bytes, run, arguments })
    };
    let before = |name| {
        let bytes = old?.scripts.get(name)?;
        let arguments = Some(Arguments { action: "upgrade", version: deb.version() });
        Some(Script { name, bytes, run: Run::Before, arguments })
    };
    let order = [before("prerm"), new("preinst", "upgrade"), before("postrm"), new("postinst", "configure")];
    order.into_iter().flatten().collect()
}

fn read(deb: &Deb, script: &Script<'_>, audited: &[AuditedScript], effects: &mut Effects) -> Result<(), MergeError> {
    let sha256 = Digest::of(script.bytes).hex();
    let known = |entry: &&AuditedScript| entry.package == deb.name() && entry.script == script.name;
    let entry = audited.iter().filter(known).find(|entry| entry.sha256 == sha256);
    let text = String::from_utf8_lossy(script.bytes);
    let refused = |reason: &str| MergeError::Script {
        package: deb.name().to_owned(),
        script: script.name,
        sha256: sha256.clone(),
        upgrade: script.run != Run::New,
        reason: reason.to_owned(),
        text: text.trim_end().to_owned(),
    };
    let run = script.arguments.map_or_else(|| text.clone().into_owned(), |arguments| reached(&text, arguments));
    let entry = entry.filter(|entry| script.run == Run::New || entry.upgrade);
    match entry {
        // A preinst runs before the files are there: it cannot wait.
        Some(entry) if entry.defer && script.name != "postinst" => {
            return Err(refused("only a postinst can be deferred"));
        }
        Some(entry) if entry.defer => effects.extend(entry),
        Some(entry) => {
            debhelper::interpret(&run, script.run, effects).map_err(|reason| refused(&reason))?;
            effects.extend(entry);
        }
        None => {
            let rest = debhelper::interpret(&run, script.run, effects).map_err(|reason| refused(&reason))?;
            if let Some(reason) = rest.reason() {
                return Err(refused(reason));
            }
        }
    }
    Ok(())
}

/// Reads a script as each of those that dpkg would run.
pub(super) fn judge(script: &[u8]) {
    let text = String::from_utf8_lossy(script);
    for (run, arguments) in [
        (Run::New, None),
        (Run::Before, Some(Arguments { action: "upgrade", version: "2.0-1" })),
        (Run::After("1.0-1"), Some(Arguments { action: "configure", version: "1.0-1" })),
    ] {
        let text = arguments.map_or_else(|| text.clone().into_owned(), |arguments| reached(&text, arguments));
        let _ = debhelper::interpret(&text, run, &mut Effects::default());
    }
}

/// Makes the changes, for `package`.
pub(super) fn apply(target: &mut Target, package: &str, effects: &Effects) -> Result<(), MergeError> {
    for name in &effects.sysusers {
        check_sysusers(target, package, name)?;
    }
    for name in &effects.tmpfiles {
        // systemd-tmpfiles-setup.service makes what they say on every boot.
        find_config(target, "tmpfiles.d", name)?;
    }
    for (what, file, names) in [("user", "/etc/passwd", &effects.users), ("group", "/etc/group", &effects.groups)] {
        for name in names {
            id(target, package, what, file, name)?;
        }
    }
    for (path, owner) in &effects.directories {
        let meta = metadata(target, package, owner)?;
        target.directory(path, meta)?;
    }
    for (path, owner) in &effects.files {
        let meta = metadata(target, package, owner)?;
        target.set_mode(path, &meta)?;
    }
    for (path, to) in &effects.symlinks {
        target.symlink(path, to)?;
    }
    for (script, enabled) in &effects.init {
        units::rc_links(target, script, *enabled)?;
    }
    let mut enable = BTreeSet::new();
    for unit in &effects.enable {
        let was_there = !effects.earlier.contains(unit) || units::has_record(target, unit);
        if !effects.upgrade || (was_there && units::was_enabled(target, unit)?) {
            enable.insert(unit);
            units::helper_enable(target, unit)?;
        }
    }
    for unit in effects.record.iter().filter(|unit| !enable.contains(unit)) {
        units::helper_record(target, unit)?;
    }
    alternatives::install(target, &effects.alternatives)
}

fn metadata(target: &Target, package: &str, owner: &Ownership) -> Result<Metadata, MergeError> {
    let mut meta = target.meta(owner.mode);
    meta.uid = id(target, package, "user", "/etc/passwd", &owner.owner)?;
    meta.gid = id(target, package, "group", "/etc/group", &owner.group)?;
    Ok(meta)
}

/// The id of an account that scripts of a package need. Ids are the layers' to give: they stay the same in every image.
fn id(target: &Target, package: &str, what: &'static str, file: &str, name: &str) -> Result<u32, MergeError> {
    let (package, name) = (package.to_owned(), name.to_owned());
    lookup(target, file, &name)?.ok_or(MergeError::Needs { package, what, name })
}

/// systemd-sysusers has nothing to do where all users, groups and memberships of the file exist (sysusers.d(5)).
fn check_sysusers(target: &Target, package: &str, name: &str) -> Result<(), MergeError> {
    let path = find_config(target, "sysusers.d", name)?;
    let text = target.text(&path)?;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["u" | "u!", name, rest @ ..] => {
                id(target, package, "user", "/etc/passwd", name)?;
                // `id:group` names another group, which has to exist anyway.
                if !rest.first().is_some_and(|id| id.contains(':')) {
                    id(target, package, "group", "/etc/group", name)?;
                }
            }
            ["g", name, ..] => {
                id(target, package, "group", "/etc/group", name)?;
            }
            ["m", user, group] => {
                let groups = target.text_or_empty("/etc/group")?;
                let member = |line: &str| {
                    let fields: Vec<&str> = line.split(':').collect();
                    fields.first() == Some(group)
                        && fields.get(3).is_some_and(|all| all.split(',').any(|one| one == *user))
                };
                if !groups.lines().any(member) {
                    let name = format!("{user} as a member of {group}");
                    return Err(MergeError::Needs { package: package.to_owned(), what: "user", name });
                }
            }
            ["r", ..] => {}
            _ => {
                return Err(MergeError::content(path, ContentFault::Line { line: line.to_owned() }));
            }
        }
    }
    Ok(())
}

/// A configuration file of systemd, by its name.
fn find_config(target: &Target, folder: &str, name: &str) -> Result<String, MergeError> {
    let paths = ["/etc", "/usr/lib"].map(|dir| format!("{dir}/{folder}/{name}"));
    let found = paths.iter().find(|path| target.tree.resolve(path.as_bytes()).is_ok());
    let missing = || MergeError::content(format!("/usr/lib/{folder}/{name}"), ContentFault::NoConfig);
    found.cloned().ok_or_else(missing)
}
