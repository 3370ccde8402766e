//! Adds a unit that generates missing SSH host keys on machines where cloud-init does not: the tree after all layers in, the tree with the
//! unit out.
//!
//! An image has no keys, and Debian's `sshd-keygen.service` waits for a first boot in systemd's sense, which a machine with an empty
//! `/etc/machine-id` never has.

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

/// Where a file takes the place of the generator that starts cloud-init, and where the generator is (systemd.generator(7)).
const OVERRIDES: [&str; 2] = ["/etc/systemd/system-generators", "/usr/local/lib/systemd/system-generators"];
const GENERATOR: &str = "/usr/lib/systemd/system-generators/cloud-init-generator";

/// Configuration of cloud-init: the main file, and a directory with others, whose values win.
const CONFIG: &str = "/etc/cloud/cloud.cfg";
const CONFIGS: &str = "/etc/cloud/cloud.cfg.d";

/// The generator makes this file at each boot on which cloud-init is off, such as on machines without a data source.
const OFF: &str = "ConditionPathExists=/run/cloud-init/disabled\n";

/// As `sshd-keygen.service`, but for its condition. Where cloud-init makes keys after all, there is nothing left to do.
const TEXT: &str = "\
[Unit]
Description=Generate missing SSH host keys
ConditionPathExistsGlob=!/etc/ssh/ssh_host_*_key
After=cloud-init.service cloud-init-network.service
Before=ssh.service sshd.service sshd@.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/ssh-keygen -A
";

/// Adds the unit if the server starts. Where cloud-init makes keys in clouds, it is for machines without one.
pub(super) fn apply(target: &mut Target) -> Result<(), MergeError> {
    let exists = |path: &str| target.tree.resolve(path.as_bytes()).is_ok();
    let can_make = exists("/usr/sbin/sshd") && exists("/usr/bin/ssh-keygen");
    // A layer that masks it has its own way.
    if !can_make || is_masked(target, UNIT) {
        return Ok(());
    }
    let started: Vec<&str> =
        SERVERS.into_iter().filter(|unit| is_wanted(target, unit) && !is_masked(target, unit)).collect();
    if started.is_empty() {
        return Ok(());
    }
    let file = format!("{LIB}/{UNIT}");
    let text = match has_cloud_init(target) {
        true => TEXT.replacen("ConditionPath", &format!("{OFF}ConditionPath"), 1),
        false => TEXT.to_owned(),
    };
    let meta = target.meta(0o644);
    target.file(&file, meta, text.into_bytes())?;
    started.into_iter().try_for_each(|unit| target.symlink(&format!("{ETC}/{unit}.wants/{UNIT}"), &file))
}

/// Whether cloud-init runs where it finds a cloud (`cloud-init-generator`).
fn has_cloud_init(target: &Target) -> bool {
    let exists = |path: &str| target.tree.resolve(path.as_bytes()).is_ok();
    if !exists("/usr/bin/cloud-init") || exists("/etc/cloud/cloud-init.disabled") {
        return false;
    }
    let menu = target.text_or_empty("/boot/grub/grub.cfg").unwrap_or_default();
    let is_off = ["cloud-init=disabled", "ci.di.policy="].iter().any(|word| menu.contains(word));
    if is_off || !is_looked_for(target) || !has_module(target) {
        return false;
    }
    let there = CLOUD_INIT.into_iter().filter(|unit| exists(&format!("{LIB}/{unit}")) || is_masked(target, unit));
    // The generator starts the target, which nothing has to enable.
    let mut off =
        there.filter(|unit| is_masked(target, unit) || (unit.ends_with(".service") && !is_wanted(target, unit)));
    off.next().is_none()
}

/// Whether something starts cloud-init on a machine for which it finds a cloud.
fn is_looked_for(target: &Target) -> bool {
    let is_there = |path: &str| target.tree.find(path.as_bytes()).ok().flatten().is_some();
    let is_replaced = OVERRIDES.iter().any(|dir| is_there(&format!("{dir}/cloud-init-generator")));
    let policies = target.text_or_empty("/etc/cloud/ds-identify.cfg").unwrap_or_default();
    let mut policies = policies.lines().filter_map(|line| line.trim().strip_prefix("policy:")).map(str::trim);
    // Others, such as `disabled` and `report`, leave it off.
    let is_on = policies.all(|policy| policy.starts_with("search") || policy.starts_with("enabled"));
    is_on && (is_wanted(target, "cloud-init.target") || is_there(GENERATOR) && !is_replaced)
}

/// Whether cloud-init is sure to make keys early: `ssh` is among the modules of the main file, and nothing else says which modules there are, or
/// which keys.
fn has_module(target: &Target) -> bool {
    let text = |path: &str| target.text_or_empty(path).unwrap_or_default();
    let main = text(CONFIG);
    let mut inside = false;
    let is_listed = |line: &str| {
        let starts = line.starts_with([' ', '\t', '-', '#']) || line.is_empty();
        inside = if starts { inside } else { line.trim_end() == "cloud_init_modules:" };
        let module = line.trim().strip_prefix('-').map(|rest| rest.trim().trim_matches(['"', '\'']));
        inside && module == Some("ssh")
    };
    let is_module = main.lines().filter(|line| !line.trim_start().starts_with('#')).any(is_listed);
    let mut more = configs(target).map(|path| text(&path));
    let says = |text: &str, word: &str| {
        text.lines().filter(|line| !line.trim_start().starts_with('#')).filter(|line| line.contains(word)).count()
    };
    let is_changed = |text: &str| says(text, "cloud_init_modules") + says(text, "ssh_genkeytypes") > 0;
    let is_plain = says(&main, "cloud_init_modules") == 1 && says(&main, "ssh_genkeytypes") == 0;
    is_module && is_plain && !more.any(|text| is_changed(&text))
}

/// Whether the configuration of cloud-init sets a value to true.
pub(super) fn is_set(target: &Target, key: &str) -> bool {
    let text = |path: &str| target.text_or_empty(path).unwrap_or_default();
    let sets = |line: &str| !line.trim_start().starts_with('#') && line.contains(key) && line.contains("true");
    let has = |text: &str| text.lines().any(sets);
    has(&text(CONFIG)) || configs(target).any(|path| has(&text(&path)))
}

/// The files whose values win over those of the main file.
fn configs(target: &Target) -> impl Iterator<Item = String> {
    let names: Vec<String> = match target.tree.resolve(CONFIGS.as_bytes()).ok().map(|id| &target.tree.inode(id).kind) {
        Some(Kind::Directory(names)) => names.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
        _ => Vec::new(),
    };
    names.into_iter().filter(|name| name.ends_with(".cfg")).map(|name| format!("{CONFIGS}/{name}"))
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
