//! dpkg-query(1): packages and their files.

mod format;
mod packages;
mod table;

use vmbake_shell::{Call, fnmatch};

use super::options::{self, Spec};
use super::{Command, Done, System, fails, status, unsupported};
use crate::merge::overrides::slot;
use crate::merge::owners::INFO;
use format::Format;
use packages::{Package, PackagePattern};

const PROGRAM: &str = "dpkg-query";

const OPTIONS: [Spec; 13] = [
    ("show", Some(b'W'), false),
    ("listfiles", Some(b'L'), false),
    ("search", Some(b'S'), false),
    ("status", Some(b's'), false),
    ("list", Some(b'l'), false),
    ("control-path", Some(b'c'), false),
    ("control-list", None, false),
    ("control-show", None, false),
    ("showformat", Some(b'f'), true),
    ("no-pager", None, false),
    ("load-avail", None, false),
    ("print-avail", Some(b'p'), false),
    ("version", None, false),
];

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Show,
    Files,
    Owners,
    Status,
    Table,
    Selections,
    ControlPath,
    ControlList,
    ControlShow,
}

const ACTIONS: [(&str, Action); 8] = [
    ("show", Action::Show),
    ("listfiles", Action::Files),
    ("search", Action::Owners),
    ("status", Action::Status),
    ("list", Action::Table),
    ("control-path", Action::ControlPath),
    ("control-list", Action::ControlList),
    ("control-show", Action::ControlShow),
];

pub(super) fn find(name: &str) -> Option<Command> {
    (name == PROGRAM).then_some(dpkg_query as Command)
}

fn dpkg_query(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(options) = options::parse(call, &OPTIONS) else { return unsupported(call) };
    let given: Vec<Action> = ACTIONS.iter().filter(|(name, _)| options.has(name)).map(|(_, action)| *action).collect();
    let [action] = given[..] else { return unsupported(call) };
    let operands: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    match (action, options.value("showformat")) {
        (Action::Show, Some(text)) => match Format::parse(text) {
            Some(format) => show(system, call, &format, &operands),
            None => unsupported(call),
        },
        _ => run(system, call, action, &operands),
    }
}

/// Answers, as dpkg and dpkg-query do.
pub(super) fn run(system: &mut System<'_, '_>, call: &mut Call<'_>, action: Action, operands: &[&str]) -> Done {
    let program = match action {
        Action::Selections => "dpkg",
        _ => PROGRAM,
    };
    match (action, operands) {
        (Action::Show, _) => show(system, call, &Format::plain(), operands),
        (Action::Table, _) => table::list(system, call, operands),
        (Action::Selections, _) => selections(system, call, operands),
        (Action::Files, [_, ..]) => files(system, call, operands),
        (Action::Owners, [_, ..]) => owners(system, call, operands),
        (Action::Status, [_, ..]) => stanzas(system, call, operands),
        (Action::ControlPath, [name]) => control(system, call, name, |path, _| Some(format!("{path}\n"))),
        (Action::ControlPath, [name, file]) => {
            control(system, call, name, |path, found| (found == *file).then(|| format!("{path}\n")))
        }
        (Action::ControlList, [name]) => control(system, call, name, |_, found| Some(format!("{found}\n"))),
        (Action::ControlShow, [name, file]) => control_show(system, call, name, file),
        _ => fails(call, program, "needs other arguments"),
    }
}

fn show(system: &System<'_, '_>, call: &mut Call<'_>, format: &Format, operands: &[&str]) -> Done {
    let (found, missing) = packages::select(system, operands);
    for package in &found {
        let text = format.of(system, package)?;
        call.stdout.extend(text.bytes());
    }
    status(none_found(call, PROGRAM, &missing))
}

/// Says which patterns fit no package; the status that dpkg-query ends with.
fn none_found(call: &mut Call<'_>, program: &str, missing: &[&str]) -> u8 {
    for name in missing {
        call.stderr.extend(format!("{program}: no packages found matching {name}\n").bytes());
    }
    u8::from(!missing.is_empty())
}

/// `--get-selections`: pattern by pattern.
fn selections(system: &System<'_, '_>, call: &mut Call<'_>, operands: &[&str]) -> Done {
    let everything = [operands];
    let each: Vec<&[&str]> = if operands.is_empty() { everything.to_vec() } else { operands.chunks(1).collect() };
    for operands in each {
        let (found, missing) = packages::select(system, operands);
        for package in found.iter().filter(|package| package.state() != "not-installed") {
            let name = package.shown(system);
            // Names end at the sixth tabulator.
            let tabs = "\t".repeat(6_usize.saturating_sub(name.len() / 8).max(1));
            call.stdout.extend(format!("{name}{tabs}{}\n", package.want()).bytes());
        }
        none_found(call, "dpkg", &missing);
    }
    status(0)
}

/// What a package has that is there, or the message and `None`.
fn installed<'a>(system: &'a System<'_, '_>, call: &mut Call<'_>, name: &str, hint: &str) -> Option<Package<'a>> {
    let found = PackagePattern::new(name).only(system).filter(Package::has_files);
    if found.is_none() {
        call.stderr.extend(format!("{PROGRAM}: package '{name}' is not installed{hint}\n").bytes());
    }
    found
}

/// `--listfiles`
fn files(system: &System<'_, '_>, call: &mut Call<'_>, names: &[&str]) -> Done {
    const HINT: &str = "\nUse dpkg --contents (= dpkg-deb --contents) to list archive files contents.";
    let mut failed = false;
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            call.stdout.push(b'\n');
        }
        let Some(package) = installed(system, call, name, HINT) else {
            failed = true;
            continue;
        };
        let list = system.target().text_or_empty(&format!("{INFO}/{}.list", package.stem()))?;
        let diversions = system.database.overrides.diversions();
        for line in list.lines() {
            call.stdout.extend(format!("{line}\n").bytes());
            let Some((_, found)) = diversions.iter().find(|(from, _)| *from == line) else { continue };
            let to = &found.to;
            let line = match &found.package {
                None => format!("locally diverted to: {to}\n"),
                Some(own) if own == package.name() => format!("package diverts others to: {to}\n"),
                Some(other) => format!("diverted by {other} to: {to}\n"),
            };
            call.stdout.extend(line.bytes());
        }
    }
    status(u8::from(failed))
}

/// `--search`
fn owners(system: &System<'_, '_>, call: &mut Call<'_>, names: &[&str]) -> Done {
    let mut failed = false;
    for name in names {
        let pattern = if name.starts_with(['*', '[', '?', '/']) { (*name).to_owned() } else { format!("*{name}*") };
        let pattern = if pattern.len() > 1 { pattern.trim_end_matches('/') } else { &pattern };
        let text = if pattern.contains(['*', '[', '?', '\\']) {
            let mut paths: Vec<&[u8]> = system.database.owners.all().map(|(path, _)| path).collect();
            let diversions = system.database.overrides.diversions();
            paths.extend(diversions.iter().flat_map(|(from, found)| [from.as_bytes(), found.to.as_bytes()]));
            paths.retain(|path| fnmatch(pattern.as_bytes(), path));
            // dpkg tells them in the order of its table.
            paths.sort_by_cached_key(|path| (slot(&String::from_utf8_lossy(path)), path.to_vec()));
            paths.dedup();
            paths.into_iter().map(|path| owners_of(system, &String::from_utf8_lossy(path))).collect()
        } else {
            owners_of(system, pattern)
        };
        if text.is_empty() {
            call.stderr.extend(format!("{PROGRAM}: no path found matching pattern {pattern}\n").bytes());
            failed = true;
        }
        call.stdout.extend(text.bytes());
    }
    status(u8::from(failed))
}

/// Who diverts a path, and the packages that list it.
fn owners_of(system: &System<'_, '_>, path: &str) -> String {
    let mut text = String::new();
    let diversions = system.database.overrides.diversions();
    for (from, found) in diversions.iter().filter(|(from, found)| *from == path || found.to == path) {
        let by =
            found.package.as_ref().map_or("local diversion".to_owned(), |package| format!("diversion by {package}"));
        text += &format!("{by} from: {from}\n{by} to: {}\n", found.to);
    }
    let target = system.target();
    let stems = system.database.owners.listing(&target.tree, path.as_bytes());
    let mut names: Vec<String> =
        stems.iter().filter_map(|stem| Some(Package::of_stem(system, stem)?.shown(system))).collect();
    names.sort();
    if !names.is_empty() {
        text += &format!("{}: {path}\n", names.join(", "));
    }
    text
}

/// `--status`
fn stanzas(system: &System<'_, '_>, call: &mut Call<'_>, names: &[&str]) -> Done {
    const HINT: &str = " and no information is available\n\
        Use dpkg --info (= dpkg-deb --info) to examine archive files.";
    let mut failed = false;
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            call.stdout.push(b'\n');
        }
        match PackagePattern::new(name).only(system).filter(|package| package.state() != "not-installed") {
            Some(package) => call.stdout.extend(package.stanza().bytes()),
            None => {
                call.stderr.extend(format!("{PROGRAM}: package '{name}' is not installed{HINT}\n").bytes());
                failed = true;
            }
        }
    }
    status(u8::from(failed))
}

/// The control files of a package, each as `line` says it of its path and name; fails where there is none to say.
fn control(
    system: &System<'_, '_>,
    call: &mut Call<'_>,
    name: &str,
    line: impl Fn(&str, &str) -> Option<String>,
) -> Done {
    let Some(package) = installed(system, call, name, "") else { return status(1) };
    let stem = package.stem();
    let names = call.files.list(INFO.as_bytes()).unwrap_or_default();
    for found in names {
        let own = std::str::from_utf8(&found).ok().and_then(|found| found.strip_prefix(&stem)?.strip_prefix('.'));
        // The list of files and those that are for dpkg itself are none of the package.
        if let Some(own) = own.filter(|own| !matches!(*own, "list" | "conffiles" | "symbols" | "shlibs" | "triggers")) {
            let path = format!("{INFO}/{stem}.{own}");
            call.stdout.extend(line(&path, own).unwrap_or_default().bytes());
        }
    }
    status(0)
}

fn control_show(system: &System<'_, '_>, call: &mut Call<'_>, name: &str, file: &str) -> Done {
    let Some(package) = installed(system, call, name, "") else { return status(1) };
    let path = format!("{INFO}/{}.{file}", package.stem());
    if file == "list" || file.contains('/') || system.target().tree.resolve(path.as_bytes()).is_err() {
        return fails(call, PROGRAM, &format!("control file '{file}' does not exist"));
    }
    let content = system.target().bytes(&path)?;
    call.stdout.extend(content);
    status(0)
}
