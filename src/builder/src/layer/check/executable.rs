//! Files of a layer that are run but not executable: cron and update-motd skip them silently, and a service fails.

use crate::layer::findings::{Findings, Found};
use crate::layer::position::child;
use crate::layer::{Layer, rules};

/// Directories whose entries run-parts(8) runs if they are executable.
const RUN_PARTS: [&str; 5] =
    ["/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly", "/etc/update-motd.d"];

/// Directories of units (systemd.unit(5)).
pub(super) const UNIT_DIRECTORIES: [&str; 4] =
    ["/etc/systemd/system", "/usr/lib/systemd/system", "/usr/local/lib/systemd/system", "/lib/systemd/system"];

/// Commands of a unit (systemd.service(5)).
const COMMANDS: [&str; 6] = ["ExecStart", "ExecStartPre", "ExecStartPost", "ExecReload", "ExecStop", "ExecStopPost"];

/// Prefixes of a command, which are not part of the path.
const PREFIXES: [char; 6] = ['@', '-', ':', '+', '!', '|'];

/// Finds files that the layer runs and whose mode does not allow it.
pub(super) fn check(found: &mut Findings, layer: &Layer) {
    for path in layer.files.keys() {
        let Some((dir, name)) = path.rsplit_once('/') else { continue };
        if RUN_PARTS.contains(&dir) && is_run_by_parts(name.as_bytes()) && is_without_bit(layer, path) {
            add(found, layer, path, &format!("{dir} runs only executable files"));
        }
    }
    for (path, file) in &layer.files {
        let text = String::from_utf8_lossy(&file.content);
        let commands = match path.rsplit_once('/') {
            // cron skips other names, too.
            Some(("/etc/cron.d", name)) if is_run_by_parts(name.as_bytes()) => {
                text.lines().filter_map(of_cron).collect()
            }
            Some((dir, unit)) if UNIT_DIRECTORIES.contains(&dir) && is_enabled(layer, unit) => unit_commands(&text),
            _ => Vec::new(),
        };
        for command in commands.into_iter().filter(|command| is_without_bit(layer, command)) {
            add(found, layer, command, &format!("{path} runs it"));
        }
    }
}

fn add(found: &mut Findings, layer: &Layer, path: &str, reason: &str) {
    let pointer = if layer.schema.files.contains_key(path) { child("/files", path) } else { "/name".to_owned() };
    let message =
        format!("{path:?} is not executable, but {reason}: add \"files\": {{{path:?}: {{\"mode\": \"0755\"}}}}");
    let one = Found { pointer, key: true, warning: false, message };
    if !found.0.contains(&one) {
        found.0.push(one);
    }
}

/// Whether it is a file of the layer whose owner may not run it.
fn is_without_bit(layer: &Layer, path: &str) -> bool {
    let schema = &layer.schema;
    let mode = schema.files.get(path).map_or_else(|| rules::default_mode(path), |file| file.ownership(path).mode);
    let mode = schema.modes.get(path).map_or(mode, |later| later.mode);
    layer.files.contains_key(path) && mode & 0o111 == 0
}

/// Whether run-parts takes the name: letters, digits, `-` and `_`. It skips others, such as `README.txt`.
pub(crate) fn is_run_by_parts(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte))
}

/// Whether the layer enables the unit, or the timer, socket or path that starts it.
fn is_enabled(layer: &Layer, unit: &str) -> bool {
    let Some(stem) = unit.strip_suffix(".service") else { return false };
    let kinds = ["service", "timer", "socket", "path"];
    kinds.iter().any(|kind| layer.schema.units.enable.contains(&format!("{stem}.{kind}")))
}

/// The programs that a unit runs.
fn unit_commands(text: &str) -> Vec<&str> {
    let settings = text.lines().filter_map(|line| line.trim().split_once('='));
    let mut commands: Vec<(&str, &str)> = Vec::new();
    for (key, value) in settings.map(|(key, value)| (key.trim_end(), value.trim())) {
        match value.trim_start_matches(PREFIXES).split_whitespace().next() {
            _ if !COMMANDS.contains(&key) => {}
            Some(command) => commands.push((key, command)),
            // An empty value takes back the earlier ones.
            None => commands.retain(|(earlier, _)| *earlier != key),
        }
    }
    commands.into_iter().map(|(_, command)| command).collect()
}

/// The program of a line of `/etc/cron.d` (crontab(5)): five fields or one such as `@daily`, a user, and the command.
fn of_cron(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let before = match line.as_bytes().first()? {
        b'#' => return None,
        b'@' => 2,
        byte if byte.is_ascii_digit() || *byte == b'*' => 6,
        _ => return None,
    };
    line.split_whitespace().nth(before)
}
