//! Reasons why systemd would not start an enabled service: the checks of systemd-analyze(1) `verify` on commands and users, for files of
//! the tree.

use vmbake_disk::tree::Kind;

use super::super::missing::is_made;
use super::super::place::Target;
use super::Scope;
use super::lookup::{ConfigLinks, Lookup, lookup};
use vmbake_layer::{Layer, hidden_by};

/// Where systemd looks for a program without a directory.
const PATH: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

/// Prefixes of a command (systemd.service(5)); with `-`, a failure is ignored.
const PREFIXES: [char; 6] = ['@', '-', ':', '+', '!', '|'];

/// What is wrong with an enabled service, as far as its own file shows it.
pub(super) fn fault(target: &Target, layers: &[Layer], unit: &str) -> Option<String> {
    if !unit.ends_with(".service") {
        return None;
    }
    let Ok(Lookup::Unit(found)) = lookup(target, Scope::System, unit, ConfigLinks::Follow) else { return None };
    let text = target.text(&found.file).ok()?;
    let settings = settings(&text);
    let values = |key: &str| settings.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str()).collect();
    let start: Vec<&str> = values("ExecStart");
    let others: [Vec<&str>; 2] = [values("ExecStop"), values("SuccessAction")];
    if start.iter().chain(others.iter().flatten()).all(|value| value.is_empty()) && !has_drop_ins(target, unit) {
        return Some(format!("unit {unit} has no ExecStart=, so systemd does not start it"));
    }
    if let Some(program) = start.into_iter().find_map(|command| missing_program(target, layers, command)) {
        return Some(format!("unit {unit} runs {program}, which is not in the image"));
    }
    let is_dynamic =
        values("DynamicUser").last().is_some_and(|value: &&str| matches!(*value, "yes" | "true" | "1" | "on"));
    let user = *values("User").last()?;
    let is_known =
        is_dynamic || user.is_empty() || user.contains('%') || user.bytes().all(|byte| byte.is_ascii_digit());
    (!is_known && !has_user(target, user)).then(|| format!("unit {unit} runs as the unknown user {user}"))
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

fn has_drop_ins(target: &Target, unit: &str) -> bool {
    ["/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"]
        .iter()
        .any(|dir| target.tree.resolve(format!("{dir}/{unit}.d").as_bytes()).is_ok())
}

/// Whether the image has a user, or systemd-sysusers makes it on the machine.
pub(in crate::merge) fn has_user(target: &Target, user: &str) -> bool {
    let begins = |text: &str| text.lines().any(|line| line.split(':').next() == Some(user));
    if target.text("/etc/passwd").is_ok_and(|text| begins(&text)) {
        return true;
    }
    ["/etc/sysusers.d", "/usr/local/lib/sysusers.d", "/usr/lib/sysusers.d"].iter().any(|dir| {
        let found = target.tree.resolve(dir.as_bytes()).ok().map(|id| &target.tree.inode(id).kind);
        let Some(Kind::Directory(names)) = found else { return false };
        names.keys().any(|name| {
            let text = target.text(&format!("{dir}/{}", String::from_utf8_lossy(name))).unwrap_or_default();
            text.lines().any(|line| line.split_ascii_whitespace().nth(1) == Some(user))
        })
    })
}
