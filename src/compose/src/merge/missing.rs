//! Warns about references of layers to paths that the finished image does not have: broken links, shells and units. They are only warnings,
//! because a program may create the path on the machine.

use vmbake_disk::tree::{Arrival, Kind};

use super::finished::files_in;
use super::named_accounts::has_account;
use super::own_content::SUDO;
use super::place::Target;
use super::units::loaded::Names;
use super::{MergeError, host_keys, units};
use vmbake_common::paths::is_at_or_below;
pub use vmbake_layer::{Layer, hidden_by};
use vmbake_layer::{named_accounts, named_route_tables, network_zones, route_tables};

const ZONES: &str = "/usr/share/zoneinfo";

/// Shells of accounts that do not log in.
const NO_SHELLS: [&str; 2] = ["nologin", "false"];

/// Warnings about layers that are all applied. Fails if a unit does not work.
pub(super) fn warnings(target: &Target, layers: &[Layer]) -> Result<Vec<String>, MergeError> {
    let names = Names::find(target);
    names.check(target)?;
    let mut warnings = units::verify::check(target, layers, &names)?;
    for layer in layers {
        let mut warn = |what: String| warnings.push(format!("layer {}: {what}", layer.schema.name));
        for (path, to) in &layer.schema.symlinks {
            if let Some(missing) = dangling(target, layers, path, to) {
                warn(format!("the link {path} leads to {missing}, which is not in the image"));
            }
        }
        for (name, account) in &layer.schema.users {
            let shell = account.shell.as_str();
            let is_login = !shell.is_empty() && !NO_SHELLS.contains(&shell.rsplit('/').next().unwrap_or_default());
            let found = target.tree.resolve(shell.as_bytes()).map(|id| &target.tree.inode(id).kind);
            if is_login && !matches!(found, Ok(Kind::File(_))) {
                warn(format!("user {name} cannot log in: the shell {shell} is not in the image"));
            }
        }
        units::missing(target, &layer.schema.units.enable).into_iter().for_each(&mut warn);
        for (path, what) in unread(target) {
            if layer.files.contains_key(path) {
                warn(format!("{path} {what}"));
            }
        }
        for (path, file) in &layer.files {
            for named in named_accounts(path, &String::from_utf8_lossy(&file.content)) {
                let (line, what, name) = (named.line, named.what, &named.name);
                if !has_account(target, layers, what, name) {
                    let effect = named.effect.before_path;
                    warn(format!("{effect} {path}: line {line}: the image does not have the {what} {name}"));
                }
            }
        }
        for (path, line, name) in unnamed_route_tables(target, layer) {
            warn(format!(
                "systemd-networkd ignores a routing table in {path}: line {line}: no RouteTable= of networkd.conf defines {name:?}"
            ));
        }
        for (path, file) in &layer.files {
            for (line, zone) in network_zones(path, &String::from_utf8_lossy(&file.content)) {
                if !has_zone(target, &zone) {
                    warn(format!(
                        "systemd-networkd ignores Timezone= in {path}: line {line}: the image does not have the time zone {zone}"
                    ));
                }
            }
        }
        let rules = layer.files.keys().find(|path| path.starts_with("/etc/sudoers.d/"));
        if let Some(path) = rules.filter(|_| target.tree.resolve(SUDO.as_bytes()).is_err()) {
            warn(format!("{path} has no effect: {SUDO} is not in the image; add \"sudo\" to `packages`"));
        }
    }
    Ok(warnings)
}

/// Routing tables in files of a layer that networkd.conf(5) does not define.
fn unnamed_route_tables<'l>(target: &Target, layer: &'l Layer) -> Vec<(&'l str, usize, String)> {
    let dirs = ["/etc", "/usr/lib", "/usr/local/lib"].iter();
    let paths = dirs.flat_map(|dir| {
        let mut paths = files_in(target, &format!("{dir}/systemd/networkd.conf.d"), &[".conf"]);
        paths.push(format!("{dir}/systemd/networkd.conf"));
        paths
    });
    let names: Vec<String> =
        paths.filter_map(|path| Some(named_route_tables(&path, &target.text(&path).ok()?))).flatten().collect();
    let tables = layer.files.iter().flat_map(|(path, file)| {
        let tables = route_tables(path, &String::from_utf8_lossy(&file.content)).into_iter();
        tables.map(move |(line, name)| (path.as_str(), line, name))
    });
    tables.filter(|(.., name)| !names.contains(name)).collect()
}

/// Whether systemd finds a time zone; it has UTC itself.
fn has_zone(target: &Target, zone: &str) -> bool {
    zone == "UTC" || target.bytes(&format!("{ZONES}/{zone}")).is_ok_and(|bytes| bytes.starts_with(b"TZif"))
}

/// Files that have no effect in the finished image, and why.
fn unread(target: &Target) -> Vec<(&'static str, &'static str)> {
    let exists = |path: &str| target.tree.resolve(path.as_bytes()).is_ok();
    let mut found = Vec::new();
    if exists("/usr/bin/cloud-init") && !host_keys::is_set(target, "preserve_hostname") {
        let what = "is replaced by cloud-init on the first boot; use the key `hostname`, which prevents this";
        found.push(("/etc/hostname", what));
    }
    // Debian 12 has this link to the file; systemd-sysctl itself reads only directories.
    if !exists("/etc/sysctl.d/99-sysctl.conf") {
        found.push(("/etc/sysctl.conf", "is not read at boot: systemd-sysctl reads /etc/sysctl.d/*.conf"));
    }
    found
}

/// Where a link of a layer leads, if nothing is there and nothing is known to come there on the machine.
fn dangling(target: &Target, layers: &[Layer], path: &str, to: &str) -> Option<String> {
    let id = target.tree.find(path.as_bytes()).ok()??;
    let Kind::Symlink(found) = &target.tree.inode(id).kind else { return None };
    // A later layer may have replaced it.
    if found != to.as_bytes() {
        return None;
    }
    let missing = match target.tree.arrive(path.as_bytes(), true) {
        Ok(Arrival::Missing { path, .. }) => String::from_utf8(path).ok()?,
        _ => return None,
    };
    // The first directory that is missing may be a mount point itself.
    (!is_made(layers, &missing) && hidden_by(&format!("{missing}/x")).is_none()).then_some(missing)
}

/// Whether the first boot of the layers makes a path.
pub(super) fn is_made(layers: &[Layer], missing: &str) -> bool {
    layers.iter().filter_map(|layer| layer.schema.first_boot.as_ref()).any(|plan| {
        let is_below = |dir: &str| is_at_or_below(missing, dir);
        plan.files.iter().any(|file| file.path == missing)
            || plan.directories.iter().any(|(dir, _)| is_below(dir))
            || plan.received.iter().any(|(_, place)| is_below(&place.directory))
            || plan.keys.iter().any(|(_, place)| is_below(&place.directory))
    })
}
