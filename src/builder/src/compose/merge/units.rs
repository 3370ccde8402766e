//! Units of systemd: the links that `systemctl enable`, `disable` and `mask` make, and the records of Debian's
//! deb-systemd-helper(1p) about them.

use vmbake_disk::tree::Kind;

use super::place::Target;
use super::{MergeError, UnitFault};
use crate::layer::Schema;

const ETC: &str = "/etc/systemd/system";
const UNIT_DIRS: [&str; 3] = [ETC, "/usr/lib/systemd/system", "/usr/local/lib/systemd/system"];
const MASKED: &str = "/var/lib/systemd/deb-systemd-helper-masked";
const HELPER: &str = "/var/lib/systemd/deb-systemd-helper-enabled";

/// Does what a layer says about units.
pub(super) fn apply(target: &mut Target, schema: &Schema) -> Result<(), MergeError> {
    for unit in &schema.units.enable {
        let links = links(target, unit)?;
        if links.is_empty() {
            return Err(fault(target, unit, UnitFault::NoInstall));
        }
        for link in links {
            target.symlink(&link.path, &link.target)?;
        }
    }
    for unit in &schema.units.disable {
        let of_install = links(target, unit)?.into_iter().map(|link| link.path);
        for path in of_install.chain(links_to(target, unit)).collect::<Vec<_>>() {
            target.remove(&path)?;
        }
    }
    for unit in &schema.units.mask {
        target.symlink(&format!("{ETC}/{unit}"), "/dev/null")?;
    }
    Ok(())
}

/// Whether enabling a unit makes links.
pub(super) fn has_install(target: &Target, unit: &str) -> Result<bool, MergeError> {
    Ok(!links(target, unit)?.is_empty())
}

/// Enables a unit as a package's postinst does: links and their record.
pub(super) fn helper_enable(target: &mut Target, unit: &str) -> Result<(), MergeError> {
    for link in links(target, unit)? {
        target.symlink(&link.path, &link.target)?;
        let inside = link.path.strip_prefix(ETC).unwrap_or(&link.path).to_owned();
        target.empty(&format!("{HELPER}{inside}"))?;
    }
    helper_record(target, unit)
}

/// Records which links enabling the unit makes, so that purging the package removes them.
pub(super) fn helper_record(target: &mut Target, unit: &str) -> Result<(), MergeError> {
    let paths: String = links(target, unit)?.into_iter().map(|link| link.path + "\n").collect();
    target.set_text(&format!("{HELPER}/{unit}.dsh-also"), &paths)
}

/// Takes back that a removed package has masked a unit; what an administrator has masked stays so.
pub(super) fn helper_unmask(target: &mut Target, unit: &str) -> Result<(), MergeError> {
    let record = format!("{MASKED}/{unit}");
    if target.tree.resolve(record.as_bytes()).is_err() {
        return Ok(());
    }
    target.remove(&record)?;
    target.remove(&format!("{ETC}/{unit}"))
}

/// Whether a package has left a record of what enabling the unit links.
pub(super) fn has_record(target: &Target, unit: &str) -> bool {
    target.tree.resolve(format!("{HELPER}/{unit}.dsh-also").as_bytes()).is_ok()
}

/// Whether all links that are recorded for the unit are there, so that nobody has disabled it.
pub(super) fn was_enabled(target: &Target, unit: &str) -> Result<bool, MergeError> {
    let record = target.text_or_empty(&format!("{HELPER}/{unit}.dsh-also"))?;
    let is_link = |path: &str| {
        let found = target.tree.find(path.as_bytes()).ok().flatten();
        found.is_some_and(|id| matches!(target.tree.inode(id).kind, Kind::Symlink(_)))
    };
    Ok(record.lines().filter(|line| !line.is_empty()).all(is_link))
}

/// Makes the links of a System V script as `update-rc.d NAME defaults` does without insserv: those of its header
/// (`Default-Start`, `Default-Stop`; LSB 3.1 chapter 22), unless it has some already. systemd looks at them only where
/// no unit of that name is.
pub(super) fn rc_links(target: &mut Target, script: &str, enabled: bool) -> Result<(), MergeError> {
    let file = format!("/etc/init.d/{script}");
    // What dpkg does not find there, or not executable, it does not register.
    let found = target.tree.resolve(file.as_bytes()).ok().map(|id| target.tree.inode(id).meta.mode);
    if found.is_none_or(|mode| mode & 0o111 == 0) {
        return Ok(());
    }
    let levels = ["0", "1", "2", "3", "4", "5", "6", "S"];
    let taken = |name: &[u8]| {
        let digits = name.get(1..3).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
        digits && matches!(name.first(), Some(b'S' | b'K')) && name.get(3..) == Some(script.as_bytes())
    };
    for level in levels {
        let dir = target.tree.resolve(format!("/etc/rc{level}.d").as_bytes()).ok();
        if let Some(Kind::Directory(names)) = dir.map(|id| &target.tree.inode(id).kind)
            && names.keys().any(|name| taken(name))
        {
            return Ok(());
        }
    }
    let text = target.text(&file)?;
    let header: Vec<&str> = text
        .lines()
        .skip_while(|line| line.trim_end() != "### BEGIN INIT INFO")
        .take_while(|line| line.trim_end() != "### END INIT INFO")
        .collect();
    let start = if enabled { 'S' } else { 'K' };
    for (key, letter) in [("# Default-Start:", start), ("# Default-Stop:", 'K')] {
        let listed = header.iter().rev().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        for level in listed.split_whitespace().filter(|level| levels.contains(level)) {
            target.symlink(&format!("/etc/rc{level}.d/{letter}01{script}"), &format!("../init.d/{script}"))?;
        }
    }
    Ok(())
}

/// The links to a unit that `systemctl disable` removes, whoever made them: where others want it, and its other names.
fn links_to(target: &Target, unit: &str) -> Vec<String> {
    let kind = |id| &target.tree.inode(id).kind;
    let Some(Kind::Directory(names)) = target.tree.resolve(ETC.as_bytes()).ok().map(kind) else { return Vec::new() };
    let mut found = Vec::new();
    for (name, id) in names {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        match kind(*id) {
            Kind::Directory(inner)
                if [".wants", ".requires", ".upholds"].iter().any(|end| name.ends_with(end))
                    && inner.get(unit.as_bytes()).is_some_and(|id| matches!(kind(*id), Kind::Symlink(_))) =>
            {
                found.push(format!("{ETC}/{name}/{unit}"));
            }
            Kind::Symlink(to) if name != unit && to.rsplit(|byte| *byte == b'/').next() == Some(unit.as_bytes()) => {
                found.push(format!("{ETC}/{name}"));
            }
            _ => {}
        }
    }
    found
}

struct Link {
    path: String,
    target: String,
}

/// The links of a unit's `[Install]` section (systemd.unit(5)): `Alias`, `WantedBy`, `RequiredBy`, `UpheldBy`, and those
/// of the units that it names in `Also`.
fn links(target: &Target, unit: &str) -> Result<Vec<Link>, MergeError> {
    let mut links = Vec::new();
    let mut todo = vec![unit.to_owned()];
    let mut done = Vec::new();
    while let Some(unit) = todo.pop() {
        if done.contains(&unit) {
            continue;
        }
        let (file, text) = find(target, &unit)?;
        for (key, value) in install_section(&text) {
            for word in value.split_whitespace() {
                // systemd takes names only; with a slash the link would stand anywhere, and specifiers are not expanded here.
                if word.contains(['%', '/']) {
                    let (key, value) = (key.to_owned(), word.to_owned());
                    return Err(fault(target, &unit, UnitFault::Name { key, value }));
                }
                let path = match key {
                    "Alias" => format!("{ETC}/{word}"),
                    "WantedBy" => format!("{ETC}/{word}.wants/{unit}"),
                    "RequiredBy" => format!("{ETC}/{word}.requires/{unit}"),
                    "UpheldBy" => format!("{ETC}/{word}.upholds/{unit}"),
                    "Also" => {
                        todo.push(word.to_owned());
                        continue;
                    }
                    _ => continue,
                };
                links.push(Link { path, target: file.clone() });
            }
        }
        done.push(unit);
    }
    Ok(links)
}

/// A unit's file: where it is, and its text.
fn find(target: &Target, unit: &str) -> Result<(String, String), MergeError> {
    if unit.contains('/') || unit.contains('@') {
        return Err(fault(target, unit, UnitFault::Template));
    }
    for dir in UNIT_DIRS {
        let path = format!("{dir}/{unit}");
        if matches!(target.tree.find(path.as_bytes()), Ok(Some(_))) {
            let text = target.text(&path)?;
            return Ok((path, unfold(&text)));
        }
    }
    Err(fault(target, unit, UnitFault::Missing))
}

/// Drops comments, and joins lines that end with a backslash with the next (systemd.syntax(7)).
fn unfold(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(['#', ';']));
    lines.flat_map(|line| line.strip_suffix('\\').map_or([line, "\n"], |line| [line, " "])).collect()
}

fn fault(target: &Target, unit: &str, fault: UnitFault) -> MergeError {
    MergeError::Unit { layer: target.origin().layer.clone(), unit: unit.to_owned(), fault }
}

/// The settings of all sections of that name.
fn install_section(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut inside = false;
    let lines = text.lines().map(str::trim).filter(move |line| {
        inside = if line.starts_with('[') { *line == "[Install]" } else { inside };
        inside
    });
    lines.filter_map(|line| line.split_once('=')).map(|(k, v)| (k.trim(), v))
}
