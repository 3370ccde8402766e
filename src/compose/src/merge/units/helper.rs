//! deb-systemd-helper(1p): enables units of packages and records this, so that a unit that an administrator disabled stays disabled.

use std::collections::BTreeSet;

use vmbake_disk::tree::Kind;

use super::lookup::{ConfigLinks, Lookup, lookup};
use super::{Scope, is_masked, is_preset, preset_links};
use crate::merge::place::Target;
use crate::merge::{MergeError, os_release};

fn records(scope: Scope) -> &'static str {
    match scope {
        Scope::System => "/var/lib/systemd/deb-systemd-helper-enabled",
        Scope::User => "/var/lib/systemd/deb-systemd-user-helper-enabled",
    }
}

fn masks(scope: Scope) -> &'static str {
    match scope {
        Scope::System => "/var/lib/systemd/deb-systemd-helper-masked",
        Scope::User => "/var/lib/systemd/deb-systemd-user-helper-masked",
    }
}

/// The file that lists the links of a unit.
fn list(scope: Scope, unit: &str) -> String {
    format!("{}/{unit}.dsh-also", records(scope))
}

/// The record of a link.
fn record(scope: Scope, link: &str) -> String {
    let inside = link.strip_prefix(&scope.etc()).unwrap_or(link);
    format!("{}{inside}", records(scope))
}

fn is_there(target: &Target, path: &str) -> bool {
    target.tree.find(path.as_bytes()).ok().flatten().is_some()
}

fn is_link(target: &Target, path: &str) -> bool {
    let found = target.tree.find(path.as_bytes()).ok().flatten();
    found.is_some_and(|id| matches!(target.tree.inode(id).kind, Kind::Symlink(_)))
}

/// Enables a unit: the first time as presets have it, later only links that a new version adds. Tells whether the unit, and
/// all that it names in `Also`, could be read.
pub(in crate::merge) fn enable(target: &mut Target, scope: Scope, unit: &str) -> Result<bool, MergeError> {
    let first = !has_record(target, scope, unit);
    let enabled = was_enabled(target, scope, unit)?;
    let is_unit = matches!(lookup(target, scope, unit, ConfigLinks::Follow)?, Lookup::Unit(_));
    // Without systemctl, it makes all links itself.
    let has_systemctl = ["/bin/systemctl", "/usr/bin/systemctl"].iter().any(|path| is_there(target, path));
    if first && has_systemctl && is_unit && is_preset(target, scope, unit)? {
        preset_links(target, scope, unit)?;
    }
    let makes_links = !has_systemctl || (!first && enabled);
    let Some(links) = closure(target, scope, unit)? else { return Ok(false) };
    for (link, file) in &links {
        let record = record(scope, link);
        if is_there(target, &record) {
            continue;
        }
        if makes_links && !is_there(target, link) {
            // It looks for units below `/lib`.
            let file = file.strip_prefix("/usr").filter(|_| file.starts_with("/usr/lib/")).unwrap_or(file);
            target.symlink(link, file)?;
        }
        target.empty(&record)?;
    }
    write(target, scope, unit, &links)?;
    Ok(true)
}

/// Records the links of a unit without making them. Tells whether it could be read.
pub(in crate::merge) fn update(target: &mut Target, scope: Scope, unit: &str) -> Result<bool, MergeError> {
    let Some(links) = closure(target, scope, unit)? else { return Ok(false) };
    write(target, scope, unit, &links)?;
    Ok(true)
}

fn write(target: &mut Target, scope: Scope, unit: &str, links: &[(String, String)]) -> Result<(), MergeError> {
    if links.is_empty() {
        return Ok(());
    }
    let text: String = links.iter().map(|(link, _)| format!("{link}\n")).collect();
    target.set_text(&list(scope, unit), &text)
}

/// Whether a package has left a record of what enabling the unit links.
pub(in crate::merge) fn has_record(target: &Target, scope: Scope, unit: &str) -> bool {
    is_there(target, &list(scope, unit))
}

/// Whether all links that are recorded for the unit are there, so that it was not disabled.
pub(in crate::merge) fn was_enabled(target: &Target, scope: Scope, unit: &str) -> Result<bool, MergeError> {
    let text = target.text_or_empty(&list(scope, unit))?;
    Ok(text.lines().filter(|line| !line.is_empty()).all(|line| is_link(target, line)))
}

/// Whether all links of the unit are there; `None` where it cannot be read.
pub(in crate::merge) fn is_enabled(target: &Target, scope: Scope, unit: &str) -> Result<Option<bool>, MergeError> {
    let links = closure(target, scope, unit)?;
    Ok(links.map(|links| links.iter().all(|(link, _)| is_link(target, link))))
}

/// Removes the recorded links, with their records.
pub(in crate::merge) fn disable(target: &mut Target, scope: Scope, unit: &str) -> Result<(), MergeError> {
    let text = target.text_or_empty(&list(scope, unit))?;
    for link in text.lines().filter(|line| !line.is_empty()) {
        if is_link(target, link) {
            remove(target, link)?;
        }
        remove(target, &record(scope, link))?;
    }
    Ok(())
}

/// Removes all that is recorded of a unit.
pub(in crate::merge) fn purge(target: &mut Target, scope: Scope, unit: &str) -> Result<(), MergeError> {
    disable(target, scope, unit)?;
    remove(target, &list(scope, unit))
}

/// Masks a unit, unless an administrator has put something there.
pub(in crate::merge) fn mask(target: &mut Target, scope: Scope, unit: &str) -> Result<(), MergeError> {
    let path = format!("{}/{unit}", scope.etc());
    if is_there(target, &path) {
        return Ok(());
    }
    target.symlink(&path, "/dev/null")?;
    target.empty(&format!("{}/{unit}", masks(scope)))
}

/// Takes back that a removed package has masked a unit; what an administrator has masked stays so.
pub(in crate::merge) fn unmask(target: &mut Target, scope: Scope, unit: &str) -> Result<(), MergeError> {
    let (record, path) = (format!("{}/{unit}", masks(scope)), format!("{}/{unit}", scope.etc()));
    if !is_there(target, &record) {
        return Ok(());
    }
    remove(target, &record)?;
    if is_masked(target, &path) { remove(target, &path) } else { Ok(()) }
}

/// Removes a path, and its directory if that becomes empty.
fn remove(target: &mut Target, path: &str) -> Result<(), MergeError> {
    if !is_there(target, path) {
        return Ok(());
    }
    target.remove_below(path)?;
    let Some((dir, _)) = path.rsplit_once('/') else { return Ok(()) };
    let found = target.tree.find(dir.as_bytes()).ok().flatten().map(|id| &target.tree.inode(id).kind);
    let made = [".wants", ".requires", ".upholds", "-masked"].iter().any(|end| dir.ends_with(end));
    match found {
        Some(Kind::Directory(names)) if names.is_empty() && made => target.remove_below(dir),
        _ => Ok(()),
    }
}

/// The links that are recorded for a unit, each with its unit's file: aliases and what `Also` names in their order, then the links of
/// others that want it, without those of `UpheldBy`. `None` where a unit cannot be read.
fn closure(target: &Target, scope: Scope, unit: &str) -> Result<Option<Vec<(String, String)>>, MergeError> {
    let (mut links, mut seen) = (Vec::new(), BTreeSet::new());
    if !collect(target, scope, unit, &mut seen, &mut links)? {
        return Ok(None);
    }
    let mut known = BTreeSet::new();
    links.retain(|(link, _)| known.insert(link.clone()));
    Ok(Some(links))
}

fn collect(
    target: &Target,
    scope: Scope,
    unit: &str,
    seen: &mut BTreeSet<String>,
    links: &mut Vec<(String, String)>,
) -> Result<bool, MergeError> {
    let Some((file, text)) = read(target, scope, unit)? else { return Ok(false) };
    let (mut name, etc) = (unit.to_owned(), scope.etc());
    let mut wants = Vec::new();
    for (key, value) in text.lines().filter_map(|line| line.trim_start().split_once('=')) {
        let words = || value.split_whitespace().map(unquoted).filter(|word| !word.contains('/'));
        match key.to_ascii_lowercase().as_str() {
            "wantedby" => wants.extend(words().map(|word| format!("{etc}/{word}.wants"))),
            "requiredby" => wants.extend(words().map(|word| format!("{etc}/{word}.requires"))),
            // The script takes the whole value for the name.
            "alias" if value != unit && !value.contains('/') => links.push((format!("{etc}/{value}"), file.clone())),
            "also" => {
                for other in words().filter(|other| *other != unit) {
                    if seen.insert(other.to_owned()) && !collect(target, scope, other, seen, links)? {
                        return Ok(false);
                    }
                }
            }
            "defaultinstance" if !value.trim().is_empty() => {
                if let Some((prefix, kind)) = unit.split_once("@.") {
                    name = format!("{prefix}@{}.{kind}", unquoted(value.trim()));
                }
            }
            _ => {}
        }
    }
    links.extend(wants.into_iter().map(|dir| (format!("{dir}/{name}"), file.clone())));
    Ok(true)
}

/// A word without the quotes around it.
fn unquoted(word: &str) -> &str {
    let inner = |quote| word.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(word)
}

/// The file of a unit by exactly that name, as the script looks for it, and its text. Up to Debian 12, `/usr/lib` is `/lib` to it.
fn read(target: &Target, scope: Scope, unit: &str) -> Result<Option<(String, String)>, MergeError> {
    let lib = if os_release::is_debian_12_or_older(target)? { "/lib" } else { "/usr/lib" };
    for dir in [scope.etc(), format!("{lib}/systemd/{}", scope.name())] {
        let path = format!("{dir}/{unit}");
        let found = target.tree.resolve(path.as_bytes()).ok().map(|id| &target.tree.inode(id).kind);
        if matches!(found, Some(Kind::File(_))) {
            let text = target.text(&path)?;
            return Ok(Some((path, text)));
        }
    }
    Ok(None)
}
