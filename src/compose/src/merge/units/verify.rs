//! Reasons why systemd would not start an enabled service: the checks of systemd-analyze(1) `verify` on commands and users, for files of
//! the tree.

use super::super::missing::is_made;
use super::super::named_accounts::has_account;
use super::super::place::Target;
use super::loaded::Names;
use vmbake_layer::{Layer, hidden_by};

/// Where systemd looks for a program without a directory.
const PATH: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

/// Prefixes of a command (systemd.service(5)); with `-`, a failure is ignored.
const PREFIXES: [char; 6] = ['@', '-', ':', '+', '!', '|'];

/// What is wrong with an enabled service, by its file and its drop-ins.
pub(in crate::merge) fn fault(target: &Target, layers: &[Layer], names: &Names, unit: &str) -> Option<String> {
    if !unit.ends_with(".service") {
        return None;
    }
    let files = names.files(target, unit)?;
    let settings: Vec<_> = files.iter().flat_map(|(_, bytes)| settings(&String::from_utf8_lossy(bytes))).collect();
    // An empty value takes back the earlier ones.
    let values = |key: &str| -> Vec<&str> {
        let found: Vec<&str> =
            settings.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str()).collect();
        let start = found.iter().rposition(|value| value.is_empty()).map_or(0, |at| at + 1);
        found[start..].to_vec()
    };
    let start = values("ExecStart");
    if start.is_empty() && values("ExecStop").is_empty() && values("SuccessAction").is_empty() {
        return Some(format!("unit {unit} has no ExecStart=, so systemd does not start it"));
    }
    if let Some(program) = start.into_iter().find_map(|command| missing_program(target, layers, command)) {
        return Some(format!("unit {unit} runs {program}, which is not in the image"));
    }
    let is_dynamic =
        values("DynamicUser").last().is_some_and(|value: &&str| matches!(*value, "yes" | "true" | "1" | "on"));
    let user = *values("User").last()?;
    let is_known = is_dynamic || user.contains('%') || user.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = is_known || has_account(target, layers, "user", user);
    (!is_known).then(|| format!("unit {unit} runs as the unknown user {user}"))
}

/// The settings of the section `[Service]`, and those of `[Unit]`, whose names are others.
fn settings(text: &str) -> Vec<(String, String)> {
    let joined = text.replace("\\\n", " ");
    let (mut section, mut found) = (String::new(), Vec::new());
    for line in joined.lines().map(str::trim) {
        match line.split_once('=') {
            _ if line.starts_with(['#', ';']) => {}
            _ if line.starts_with('[') => section = line.to_owned(),
            Some((key, value)) if matches!(section.as_str(), "[Service]" | "[Unit]") => {
                found.push((key.trim().to_owned(), value.trim().to_owned()));
            }
            _ => {}
        }
    }
    found
}

/// The program of a command whose absence makes the service fail.
fn missing_program(target: &Target, layers: &[Layer], command: &str) -> Option<String> {
    let rest = command.trim_start_matches(PREFIXES);
    let prefixes = command.strip_suffix(rest).unwrap_or_default();
    let program = rest.split_ascii_whitespace().next()?;
    if prefixes.contains(['-', '|']) || program.contains(['%', '$', '"', '\'', '\\']) {
        return None;
    }
    let is_there = |path: &str| target.tree.resolve(path.as_bytes()).is_ok();
    let is_found = match program.starts_with('/') {
        true => is_there(program) || is_made(layers, program) || hidden_by(program).is_some(),
        false => PATH.iter().any(|dir| is_there(&format!("{dir}/{program}"))),
    };
    (!is_found).then(|| program.to_owned())
}
