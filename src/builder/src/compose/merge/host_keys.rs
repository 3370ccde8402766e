//! Host keys of sshd(8) on machines without cloud-init, which makes them elsewhere.
//!
//! An image has none, and `sshd-keygen.service` of Debian waits for a first boot as systemd means it, which a machine with an empty
//! `/etc/machine-id` never has. The tree after all layers enters; it leaves with a unit that makes missing keys where nothing else would.

use vmbake_disk::tree::Kind;

use super::MergeError;
use super::place::Target;

const ETC: &str = "/etc/systemd/system";
const LIB: &str = "/usr/lib/systemd/system";
const UNIT: &str = "vmbake-ssh-host-keys.service";

/// Units of the server.
const SERVERS: [&str; 3] = ["ssh.service", "ssh.socket", "sshd.service"];

/// The units of cloud-init of which one makes the keys, by releases, and those that it needs.
const CLOUD_INIT: [&str; 4] =
    ["cloud-init.service", "cloud-init-main.service", "cloud-init-network.service", "cloud-init.target"];

/// As `sshd-keygen.service`, but for its condition.
const TEXT: &str = "\
[Unit]
Description=Generate missing SSH host keys
ConditionPathExistsGlob=!/etc/ssh/ssh_host_*_key
Before=ssh.service sshd.service sshd@.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/ssh-keygen -A
";

/// Brings the unit if the server starts and cloud-init does not.
pub(super) fn apply(target: &mut Target) -> Result<(), MergeError> {
    let exists = |path: &str| target.tree.resolve(path.as_bytes()).is_ok();
    let can_make = exists("/usr/sbin/sshd") && exists("/usr/bin/ssh-keygen");
    // A layer that masks it has its own way.
    if !can_make || is_masked(target, UNIT) || has_cloud_init(target) {
        return Ok(());
    }
    let started: Vec<&str> =
        SERVERS.into_iter().filter(|unit| is_wanted(target, unit) && !is_masked(target, unit)).collect();
    if started.is_empty() {
        return Ok(());
    }
    let file = format!("{LIB}/{UNIT}");
    let meta = target.meta(0o644);
    target.file(&file, meta, TEXT.as_bytes().to_vec())?;
    started.into_iter().try_for_each(|unit| target.symlink(&format!("{ETC}/{unit}.wants/{UNIT}"), &file))
}

/// Whether cloud-init runs where it finds a cloud (`cloud-init-generator`).
fn has_cloud_init(target: &Target) -> bool {
    let exists = |path: &str| target.tree.resolve(path.as_bytes()).is_ok();
    if !exists("/usr/bin/cloud-init") || exists("/etc/cloud/cloud-init.disabled") {
        return false;
    }
    let menu = target.text_or_empty("/boot/grub/grub.cfg").unwrap_or_default();
    if menu.contains("cloud-init=disabled") {
        return false;
    }
    let there = CLOUD_INIT.into_iter().filter(|unit| exists(&format!("{LIB}/{unit}")) || is_masked(target, unit));
    // The generator starts the target, which nothing has to enable.
    let mut off =
        there.filter(|unit| is_masked(target, unit) || (unit.ends_with(".service") && !is_wanted(target, unit)));
    off.next().is_none()
}

/// Whether a unit is linked to `/dev/null`.
fn is_masked(target: &Target, unit: &str) -> bool {
    let found = target.tree.find(format!("{ETC}/{unit}").as_bytes()).ok().flatten();
    found.is_some_and(|id| matches!(&target.tree.inode(id).kind, Kind::Symlink(to) if to == b"/dev/null"))
}

/// Whether a target or another unit starts it.
fn is_wanted(target: &Target, unit: &str) -> bool {
    let Ok(id) = target.tree.resolve(ETC.as_bytes()) else { return false };
    let Kind::Directory(entries) = &target.tree.inode(id).kind else { return false };
    let mut links = entries.keys().filter(|name| name.ends_with(b".wants") || name.ends_with(b".requires"));
    let path = |dir: &Vec<u8>| [ETC.as_bytes(), b"/", dir, b"/", unit.as_bytes()].concat();
    links.any(|dir| target.tree.find(&path(dir)).ok().flatten().is_some())
}
