//! Triggers (deb-triggers(5)): the interests of packages, and their activation by files and the `triggers` control file of a new package.
//!
//! Interests are recorded as by dpkg. Activated triggers are processed after all packages of a layer are configured, except those that have
//! no effect on a system that is not running.

use std::collections::BTreeSet;

use vmbake_disk::tree::components;

use super::database::Database;
use super::maintainer::has_catalog;
use super::owners::INFO;
use super::place::Target;
use super::status::state;
use super::upgrade::Old;
use super::{ContentFault, MergeError, TriggerFault};
use crate::stage::Deb;
use vmbake_common::digest::Digest;
use vmbake_layer::AuditedScript;

const TRIGGERS: &str = "/var/lib/dpkg/triggers";

/// What runs ldconfig(8).
const LINKER: (&str, &str) = ("libc-bin", "ldconfig");

/// What compiles the messages of the journal.
const CATALOG: (&str, &str) = ("systemd", "/usr/lib/systemd/catalog");

/// Interested package and trigger, where the postinst only tells running programs, or makes caches that are made again
/// on the first boot or by a timer.
const HARMLESS: [(&str, &str); 11] = [
    // The cache of the dynamic linker is written for the finished tree, see `ldcache`.
    LINKER,
    // Reloads the configuration of a running bus.
    ("dbus", "/etc/dbus-1/system.d"),
    ("dbus", "/usr/share/dbus-1/system.d"),
    ("dbus", "/usr/share/dbus-1/system-services"),
    // systemd-binfmt.service and systemd-sysctl.service read them on every boot.
    ("systemd", "/usr/lib/binfmt.d"),
    ("systemd", "/usr/lib/sysctl.d"),
    ("procps", "/usr/lib/sysctl.d"),
    CATALOG,
    // Restarts systemd after an upgrade of the C library.
    ("systemd", "libc-upgrade"),
    // systemd reads all units when it starts.
    ("systemd", "/usr/lib/systemd/system"),
    // man-db.timer makes the index of manual pages.
    ("man-db", "/usr/share/man"),
];

/// A line of a `triggers` control file.
struct Directive<'a> {
    interest: bool,
    name: &'a str,
    noawait: bool,
}

/// Records what a package is interested in. Packages that it has set off itself before do not count.
pub(super) fn record(target: &mut Target, deb: &Deb) -> Result<(), MergeError> {
    let text = control_file(deb)?;
    for directive in directives(deb.name(), &text)?.iter().filter(|directive| directive.interest) {
        let (file, line) = interest(directive, &deb.info_stem());
        let kept = others(&target.text_or_empty(&file)?, &line);
        target.set_text(&file, &format!("{kept}{line}\n"))?;
    }
    Ok(())
}

/// Forgets what an older version was interested in.
pub(super) fn forget(target: &mut Target, old: &Old) -> Result<(), MergeError> {
    let package = old.control.get("Package").unwrap_or_default();
    let text = String::from_utf8(old.triggers.clone()).map_err(|_| damaged(package, ContentFault::NotUtf8))?;
    for directive in directives(package, &text)?.iter().filter(|directive| directive.interest) {
        let (file, line) = interest(directive, &old.stem);
        let kept: String = others(&target.text_or_empty(&file)?, &line);
        match directive.name.starts_with('/') || !kept.is_empty() {
            true => target.set_text(&file, &kept)?,
            false => target.remove(&file)?,
        }
    }
    Ok(())
}

/// The file that has an interest of the package whose files below `info` have that stem, and its line there.
fn interest(directive: &Directive<'_>, stem: &str) -> (String, String) {
    let options = if directive.noawait { "/noawait" } else { "" };
    match directive.name.starts_with('/') {
        true => (format!("{TRIGGERS}/File"), format!("{} {stem}{options}", directive.name)),
        false => (format!("{TRIGGERS}/{}", directive.name), format!("{stem}{options}")),
    }
}

/// The lines of a file of interests without that one, however it is awaited.
fn others(text: &str, line: &str) -> String {
    let same = |found: &&str| found.trim_end_matches("/noawait") == line.trim_end_matches("/noawait");
    text.lines().filter(|found| !same(found)).map(|found| format!("{found}\n")).collect()
}

/// Notes what a package sets off, by the paths that it places and by name.
pub(super) fn activate(
    target: &Target,
    database: &mut Database,
    deb: &Deb,
    paths: &[Vec<u8>],
) -> Result<(), MergeError> {
    set_off(target, database, (deb.name(), &deb.info_stem()), &control_file(deb)?, paths)
}

/// Notes what a package sets off that is removed, by its paths and by name.
pub(super) fn activate_removed(
    target: &Target,
    database: &mut Database,
    old: &Old,
    paths: &[Vec<u8>],
) -> Result<(), MergeError> {
    let package = old.control.get("Package").unwrap_or_default();
    let text = String::from_utf8(old.triggers.clone()).map_err(|_| damaged(package, ContentFault::NotUtf8))?;
    set_off(target, database, (package, &old.stem), &text, paths)
}

/// `text` is the `triggers` control file of the package with that name and stem.
fn set_off(
    target: &Target,
    database: &mut Database,
    (package, stem): (&str, &str),
    text: &str,
    paths: &[Vec<u8>],
) -> Result<(), MergeError> {
    let named = directives(package, text)?;
    let named: Vec<&str> = named.iter().filter(|directive| !directive.interest).map(|found| found.name).collect();
    let by_path = named.iter().filter(|name| name.starts_with('/')).map(|name| name.as_bytes());
    let files = target.text_or_empty(&format!("{TRIGGERS}/File"))?;
    let files: Vec<(&str, &str)> = files.lines().filter_map(|line| line.split_once(' ')).collect();
    let mut set_off = BTreeSet::new();
    for path in paths.iter().map(Vec::as_slice).chain(by_path) {
        set_off.extend(files.iter().filter(|(trigger, _)| is_below(path, trigger.as_bytes())).copied());
    }
    for (trigger, line) in set_off {
        note(database, stem, trigger, line);
    }
    for name in named.iter().filter(|name| !name.starts_with('/')) {
        activate_name(target, database, stem, name)?;
    }
    Ok(())
}

/// Notes what a file of a layer sets off, as if a package had brought it.
pub(super) fn activate_path(target: &Target, database: &mut Database, path: &[u8]) -> Result<(), MergeError> {
    let files = target.text_or_empty(&format!("{TRIGGERS}/File"))?;
    for (trigger, line) in files.lines().filter_map(|line| line.split_once(' ')) {
        if is_below(path, trigger.as_bytes()) {
            note(database, "", trigger, line);
        }
    }
    Ok(())
}

/// Notes what the package with that stem sets off by a name or by the path of a file, as dpkg-trigger(1).
pub(super) fn activate_name(target: &Target, database: &mut Database, by: &str, name: &str) -> Result<(), MergeError> {
    let (file, of_name) = match name.starts_with('/') {
        true => (format!("{TRIGGERS}/File"), None),
        false => (format!("{TRIGGERS}/{name}"), Some(name)),
    };
    for line in target.text_or_empty(&file)?.lines() {
        match of_name {
            Some(name) => note(database, by, name, line),
            None => match line.split_once(' ') {
                Some((trigger, line)) if is_below(name.as_bytes(), trigger.as_bytes()) => {
                    note(database, by, trigger, line);
                }
                _ => {}
            },
        }
    }
    Ok(())
}

/// Notes that a trigger is set off for the package that a line of interests names.
fn note(database: &mut Database, by: &str, trigger: &str, line: &str) {
    let stem = line.split('/').next().unwrap_or_default();
    // A package that is not configured yet is not set off: configuring it does what there is to do.
    let ready = |found| matches!(state(found), "installed" | "triggers-pending" | "triggers-awaited");
    let package = stem.split(':').next().unwrap_or_default();
    if stem == by || !database.status.package(stem).is_some_and(ready) {
        return;
    }
    database.is_linked |= (package, trigger) == LINKER;
    if !is_idle(database, package, trigger) {
        database.pending.entry(stem.to_owned()).or_default().insert(trigger.to_owned());
    }
}

/// Whether processing a trigger has no effect during a bake.
fn is_idle(database: &Database, package: &str, trigger: &str) -> bool {
    // Where the catalog is not compiled, systemd-journal-catalog-update.service does it, since /var is newer than its last update on a first
    // boot.
    HARMLESS.contains(&(package, trigger)) && !((package, trigger) == CATALOG && has_catalog(database))
}

/// The triggers that an installed package is interested in.
pub(super) fn interests(target: &Target, stem: &str) -> Result<BTreeSet<String>, MergeError> {
    let text = target.text_or_empty(&format!("{INFO}/{stem}.triggers"))?;
    let found = directives(stem, &text)?;
    Ok(found.iter().filter(|directive| directive.interest).map(|directive| directive.name.to_owned()).collect())
}

/// What a layer says about the script of a package that a trigger is for.
pub(super) fn answer<'a>(
    audited: &'a [AuditedScript],
    package: &str,
    trigger: &str,
    postinst: &[u8],
) -> Option<&'a AuditedScript> {
    let answers = |entry: &&AuditedScript| {
        entry.package == package && entry.script == "postinst" && entry.triggers.iter().any(|name| name == trigger)
    };
    let mut found = audited.iter().filter(answers).peekable();
    found.peek()?;
    let sha256 = Digest::of(postinst).hex();
    found.find(|entry| entry.sha256 == sha256)
}

/// Whether `path`, absolute or not, is `dir` or below it.
fn is_below(path: &[u8], dir: &[u8]) -> bool {
    let mut path = components(path);
    components(dir).all(|name| path.next() == Some(name))
}

fn control_file(deb: &Deb) -> Result<String, MergeError> {
    let bytes = deb.info.get("triggers").cloned().unwrap_or_default();
    String::from_utf8(bytes).map_err(|_| damaged(deb.name(), ContentFault::NotUtf8))
}

fn directives<'a>(package: &str, text: &'a str) -> Result<Vec<Directive<'a>>, MergeError> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let (word, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let name = name.trim_start();
        let (interest, noawait) = match word {
            "interest" | "interest-await" => (true, false),
            "interest-noawait" => (true, true),
            "activate" | "activate-await" => (false, false),
            "activate-noawait" => (false, true),
            _ => return Err(damaged(package, TriggerFault::Directive { line: line.to_owned() })),
        };
        match is_name(name) {
            true => Ok(Directive { interest, name, noawait }),
            false => Err(damaged(package, TriggerFault::Name { line: line.to_owned() })),
        }
    });
    parsed.collect()
}

/// Whether a trigger can have that name: a path without empty components, or a word made like the name of a package.
pub(super) fn is_name(name: &str) -> bool {
    match name.strip_prefix('/') {
        Some(path) => {
            path.split('/').all(|part| !part.is_empty() && part != "..") && !name.contains(char::is_whitespace)
        }
        None => {
            name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        }
    }
}

fn damaged(package: &str, fault: impl Into<ContentFault>) -> MergeError {
    MergeError::content(format!("triggers of {package}"), fault)
}
