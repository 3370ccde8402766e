//! Units that a layer starts, and what they run: a layer in, commands with the files that have them out.

use std::collections::BTreeSet;

use crate::Layer;

/// Directories of units (systemd.unit(5)).
pub(in crate::check) const UNIT_DIRECTORIES: [&str; 4] =
    ["/etc/systemd/system", "/usr/lib/systemd/system", "/usr/local/lib/systemd/system", "/lib/systemd/system"];

/// Those of users' managers.
const USER_DIRECTORIES: [&str; 3] = ["/etc/systemd/user", "/usr/lib/systemd/user", "/usr/local/lib/systemd/user"];

/// Commands of a unit (systemd.service(5)).
const COMMANDS: [&str; 7] =
    ["ExecCondition", "ExecStart", "ExecStartPre", "ExecStartPost", "ExecReload", "ExecStop", "ExecStopPost"];

/// Settings that name units which are started with this one, or by it (systemd.unit(5), systemd.timer(5), systemd.socket(5)).
const STARTS: [&str; 10] =
    ["Also", "BindsTo", "OnFailure", "OnSuccess", "Requires", "Requisite", "Service", "Unit", "Upholds", "Wants"];

/// Kinds of units that start the service of their name.
const TRIGGERS: [&str; 3] = [".path", ".socket", ".timer"];

/// Each command that is run, and the file that has it; `read` finds the commands of a value.
pub(super) fn commands(layer: &Layer, read: fn(&str) -> Vec<String>) -> Vec<(String, String)> {
    let started = started(layer);
    let mut found = Vec::new();
    for (path, text) in unit_files(layer) {
        let unit = unit(path);
        let is_dropin = path.ends_with(".conf");
        // A unit of a package may be started by it.
        let foreign =
            is_dropin && !unit_files(layer).any(|(other, _)| other != path && other.ends_with(&format!("/{unit}")));
        if foreign || started.contains(unit) || started.contains(&template(unit)) {
            let all = run(&text).into_iter().flat_map(|value| read(&value)).collect::<Vec<_>>();
            found.extend(all.into_iter().map(|command| (path.to_owned(), command)));
        }
    }
    found
}

/// Files of units and their drop-ins, with their text.
fn unit_files(layer: &Layer) -> impl Iterator<Item = (&str, String)> {
    let is_unit = |path: &str| {
        let Some((dir, name)) = path.rsplit_once('/') else { return false };
        let is_directory = |dir: &str| UNIT_DIRECTORIES.contains(&dir) || USER_DIRECTORIES.contains(&dir);
        let parent = dir.rsplit_once('/').filter(|(_, last)| last.ends_with(".d")).map(|(parent, _)| parent);
        is_directory(dir) || (name.ends_with(".conf") && parent.is_some_and(is_directory))
    };
    let units = layer.files.iter().filter(move |(path, _)| is_unit(path));
    units.map(|(path, file)| (path.as_str(), joined(&String::from_utf8_lossy(&file.content))))
}

/// A text in which lines that end with a backslash are joined with the next one.
fn joined(text: &str) -> String {
    text.replace("\\\n", " ")
}

/// The unit that a file is, or is a drop-in of.
fn unit(path: &str) -> &str {
    let mut names = path.rsplit('/');
    let (name, dir) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    dir.strip_suffix(".d").filter(|_| name.ends_with(".conf")).unwrap_or(name)
}

/// The template of an instance, such as `a@.service` of `a@b.service`; other names as they are.
fn template(unit: &str) -> String {
    match (unit.split_once('@'), unit.rsplit_once('.')) {
        (Some((name, _)), Some((_, kind))) => format!("{name}@.{kind}"),
        _ => unit.to_owned(),
    }
}

/// The units that the layer starts, directly or by others.
fn started(layer: &Layer) -> BTreeSet<String> {
    let schema = &layer.schema;
    let linked = schema.symlinks.keys().filter_map(|path| {
        let (dir, name) = path.rsplit_once('/')?;
        let by = [".wants", ".requires", ".upholds"].iter().any(|end| dir.ends_with(end));
        by.then(|| name.to_owned())
    });
    let services = schema.first_boot.iter().flat_map(|plan| &plan.services).map(|service| service.unit.clone());
    let mut todo: Vec<String> = schema.units.enable.iter().cloned().chain(linked).chain(services).collect();
    let mut started = BTreeSet::new();
    while let Some(name) = todo.pop() {
        if !started.insert(name.clone()) {
            continue;
        }
        let template = template(&name);
        if template != name {
            todo.push(template);
        }
        for end in TRIGGERS {
            todo.extend(name.strip_suffix(end).map(|stem| format!("{stem}.service")));
        }
        for (_, text) in unit_files(layer).filter(|(path, _)| unit(path) == name) {
            let values = settings(&text).filter(|(key, _)| STARTS.contains(key));
            todo.extend(values.flat_map(|(_, value)| value.split_whitespace()).map(str::to_owned));
        }
    }
    started
}

fn settings(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim_end(), value.trim_start()))
}

/// The values of commands. An empty one takes back the earlier ones.
fn run(text: &str) -> Vec<String> {
    let mut all: Vec<(&str, String)> = Vec::new();
    for (key, value) in settings(text).filter(|(key, _)| COMMANDS.contains(key)) {
        match value.is_empty() {
            true => all.retain(|(earlier, _)| *earlier != key),
            false => all.push((key, value.to_owned())),
        }
    }
    all.into_iter().map(|(_, value)| value).collect()
}
