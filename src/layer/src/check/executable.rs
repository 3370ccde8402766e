//! Files of a layer that are run but cannot be: cron, systemd's generators and run-parts(8) skip what is not executable silently, and a
//! service fails. The kernel refuses a text without `#!`, and does not find an interpreter whose name ends with a carriage return.

mod commands;
mod started;

use super::ignored::is_left_out;
use super::{access, pointer};
use crate::Layer;
use crate::findings::{Findings, Found};

pub(super) use started::UNIT_DIRECTORIES;

/// Directories whose entries run-parts(8) runs if they are executable.
const RUN_PARTS: [&str; 16] = [
    "/etc/ca-certificates/update.d",
    "/etc/cron.daily",
    "/etc/cron.hourly",
    "/etc/cron.monthly",
    "/etc/cron.weekly",
    "/etc/kernel/postinst.d",
    "/etc/kernel/postrm.d",
    "/etc/kernel/preinst.d",
    "/etc/kernel/prerm.d",
    "/etc/network/if-down.d",
    "/etc/network/if-post-down.d",
    "/etc/network/if-pre-up.d",
    "/etc/network/if-up.d",
    "/etc/ppp/ip-down.d",
    "/etc/ppp/ip-up.d",
    "/etc/update-motd.d",
];

/// Directories of which every executable file is run, whatever its name: those of systemd, cloud-init and dispatchers of networks.
const RUN_ALL: [&str; 24] = [
    "/etc/NetworkManager/dispatcher.d",
    "/etc/NetworkManager/dispatcher.d/pre-down.d",
    "/etc/NetworkManager/dispatcher.d/pre-up.d",
    "/etc/init.d",
    "/etc/networkd-dispatcher/carrier.d",
    "/etc/networkd-dispatcher/configured.d",
    "/etc/networkd-dispatcher/configuring.d",
    "/etc/networkd-dispatcher/degraded.d",
    "/etc/networkd-dispatcher/dormant.d",
    "/etc/networkd-dispatcher/no-carrier.d",
    "/etc/networkd-dispatcher/off.d",
    "/etc/networkd-dispatcher/routable.d",
    "/etc/systemd/system-generators",
    "/etc/systemd/user-generators",
    "/usr/lib/systemd/system-generators",
    "/usr/lib/systemd/system-shutdown",
    "/usr/lib/systemd/system-sleep",
    "/usr/lib/systemd/user-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/local/lib/systemd/user-generators",
    "/var/lib/cloud/scripts/per-boot",
    "/var/lib/cloud/scripts/per-instance",
    "/var/lib/cloud/scripts/per-once",
    "/var/lib/cloud/scripts/vendor",
];

/// Those of which a text without `#!` runs as a script of sh, as glib does it.
const RUN_BY_SHELL: &str = "/etc/NetworkManager/dispatcher.d";

/// How much of a first line a message has, in bytes.
const MAX_SHOWN: usize = 60;

/// What programs and scripts begin with.
const MAGIC: [&[u8]; 2] = [b"\x7fELF", b"#!"];

/// Interpreters that do not accept a carriage return at the end of an argument.
const SHELLS: [&str; 4] = ["bash", "dash", "env", "sh"];

/// What systemd runs at the end of the boot, if it is executable (systemd-rc-local-generator(8)).
const RC_LOCAL: &str = "/etc/rc.local";

/// Directory of crontab(5) files of packages and layers.
const CRON: &str = "/etc/cron.d";

/// Suffixes of scripts that are meant to be run.
const SCRIPTS: [&str; 4] = [".bash", ".pl", ".py", ".sh"];

/// Most symbolic links of a layer that are followed from a command to a file.
const MAX_LINKS: usize = 8;

/// Finds files that the layer runs and whose mode does not allow it.
pub fn check(found: &mut Findings, layer: &Layer) {
    for path in layer.files.keys() {
        let Some((dir, name)) = path.rsplit_once('/') else { continue };
        let by_parts = RUN_PARTS.contains(&dir);
        if by_parts && !is_run_by_parts(name.as_bytes()) && SCRIPTS.iter().any(|end| name.ends_with(end)) {
            skipped(found, layer, path, dir);
        }
        if dir == CRON && !is_left_out(name) {
            check_cron(found, layer, path, name);
        }
        let is_run = by_parts && is_run_by_parts(name.as_bytes()) || RUN_ALL.contains(&dir) || path == RC_LOCAL;
        if is_run && name != "README" {
            match is_without_bit(layer, path) {
                true => add(found, layer, path, &format!("{dir} runs only executable files")),
                false => check_start(found, layer, path, dir.starts_with(RUN_BY_SHELL)),
            }
        }
    }
    for (_, command) in started::commands(layer, commands::started_by_unit) {
        check_start(found, layer, &followed(layer, &command), false);
    }
    let of_units = started::commands(layer, commands::of_unit);
    let of_cron = layer.files.iter().flat_map(|(path, file)| {
        let text = String::from_utf8_lossy(&file.content);
        let fields = match path.rsplit_once('/') {
            // cron skips other names, too.
            Some((CRON, name)) if is_run_by_parts(name.as_bytes()) => 6,
            Some(("/etc", "crontab")) => 6,
            Some(("/var/spool/cron/crontabs", _)) => 5,
            _ => return Vec::new(),
        };
        let commands = text.lines().flat_map(|line| commands::of_cron(line, fields));
        commands.map(|command| (path.clone(), command)).collect()
    });
    for (by, command) in of_units.into_iter().chain(of_cron) {
        let file = followed(layer, &command);
        if is_without_bit(layer, &file) {
            add(found, layer, &file, &format!("{by} runs it"));
        }
    }
}

/// Finds what keeps the kernel from running an executable file; `by_shell` is for a text that would run without `#!`.
fn check_start(found: &mut Findings, layer: &Layer, path: &str, by_shell: bool) {
    // Other beginnings may have an interpreter there.
    let has_formats = layer.files.keys().any(|path| path.contains("/binfmt.d/"));
    let Some(file) = layer.files.get(path).filter(|_| !has_formats && !is_without_bit(layer, path)) else { return };
    let first = file.content.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let shown = String::from_utf8_lossy(first.get(..MAX_SHOWN).unwrap_or(first));
    let is_known = MAGIC.iter().any(|magic| first.starts_with(magic));
    if !is_known && !by_shell {
        let message = format!(
            "{path:?} cannot be run: expected `#!` and an interpreter in its first line, such as `#!/bin/sh`, found {shown:?}"
        );
        push(found, layer, path, message);
    }
    let Some(line) = first.strip_prefix(b"#!").and_then(|line| line.strip_suffix(b"\r")) else { return };
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let name = words.next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    if words.next().is_none() || SHELLS.contains(&name) {
        let message = format!(
            "{path:?} cannot be run: expected a newline after its first line, found a carriage return in {shown:?}"
        );
        push(found, layer, path, message);
    }
}

/// Finds what makes cron(8) skip a file with jobs.
fn check_cron(found: &mut Findings, layer: &Layer, path: &str, name: &str) {
    if !is_run_by_parts(name.as_bytes()) {
        push(
            found,
            layer,
            path,
            format!("{path:?} is skipped by cron: only names of letters, digits, `-` and `_` count"),
        );
    }
    let mode = access(layer, path).mode;
    if mode & 0o022 != 0 {
        push(
            found,
            layer,
            path,
            format!("{path:?} is skipped by cron: its group or others can write it, mode {mode:04o}"),
        );
    }
}

/// Whether run-parts takes the name: letters, digits, `-` and `_`. It skips others, such as `README.txt`.
pub fn is_run_by_parts(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte))
}

fn add(found: &mut Findings, layer: &Layer, path: &str, reason: &str) {
    let message =
        format!("{path:?} is not executable, but {reason}: add \"files\": {{{path:?}: {{\"mode\": \"0755\"}}}}");
    push(found, layer, path, message);
}

fn skipped(found: &mut Findings, layer: &Layer, path: &str, dir: &str) {
    let message = format!(
        "{path:?} never runs: in {dir}, only names of letters, digits, `-` and `_` count, so leave out its extension"
    );
    push(found, layer, path, message);
}

fn push(found: &mut Findings, layer: &Layer, path: &str, message: String) {
    let one = Found { pointer: pointer(layer, path), key: true, warning: false, message };
    if !found.0.contains(&one) {
        found.0.push(one);
    }
}

/// Whether it is a file of the layer that no one may run.
fn is_without_bit(layer: &Layer, path: &str) -> bool {
    layer.files.contains_key(path) && access(layer, path).mode & 0o111 == 0
}

/// Where a command leads to by the links of the layer.
fn followed(layer: &Layer, command: &str) -> String {
    let mut path = command.to_owned();
    for _ in 0..MAX_LINKS {
        match layer.schema.symlinks.get(&path) {
            Some(target) if target.starts_with('/') => path = target.clone(),
            Some(target) => path = [path.rsplit_once('/').map_or("", |(dir, _)| dir), "/", target].concat(),
            None => break,
        }
    }
    path
}
