//! systemd-tmpfiles(8) and systemd-sysusers(8).

use vmbake_shell::Call;

use super::{Command, Done, System, status, unsupported, words};
use crate::merge::MergeError;
use crate::merge::config::Config;
use crate::merge::place::Target;
use crate::merge::tmpfiles::Choice;
use crate::merge::{sysusers, tmpfiles};

pub(super) fn find(name: &str) -> Option<Command> {
    Some(match name {
        "systemd-tmpfiles" => create_files,
        "systemd-sysusers" => create_users,
        _ => return None,
    })
}

fn create_files(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let (mut choice, mut names, mut create) = (Choice::default(), Vec::new(), false);
    for word in &words {
        match word.as_str() {
            "--create" => create = true,
            "--boot" => choice.boot = true,
            "--graceful" => {}
            word => match word.strip_prefix("--prefix=") {
                Some(prefix) => choice.prefixes.push(prefix.to_owned()),
                None if word.starts_with('-') => return unsupported(call),
                None => names.push(word),
            },
        }
    }
    if !create {
        return unsupported(call);
    }
    let target = &mut system.target();
    let configs = configs(target, "tmpfiles.d", &names)?;
    let report = tmpfiles::create(target, &configs, &choice)?;
    call.stderr.extend_from_slice(report.messages.as_bytes());
    status(report.status)
}

fn create_users(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let path = format!("{}.{}", system.script.stem, system.script.script);
    let inline = |text: String| vec![Config { path, text }];
    let configs = match words.as_slice() {
        ["--inline", lines @ ..] => inline(lines.join("\n")),
        ["-"] => match String::from_utf8((call.stdin)()) {
            Ok(text) => inline(text),
            Err(_) => return unsupported(call),
        },
        words if words.iter().any(|word| word.starts_with('-')) => return unsupported(call),
        names => configs(&system.target(), "sysusers.d", names)?,
    };
    sysusers::create(&mut system.target(), &mut system.database.ids, &configs)?;
    status(0)
}

/// The files of those names, or all.
fn configs(target: &Target, folder: &str, names: &[&str]) -> Result<Vec<Config>, MergeError> {
    if names.is_empty() {
        return Config::all(target, folder);
    }
    names.iter().map(|name| Config::named(target, folder, name)).collect()
}
