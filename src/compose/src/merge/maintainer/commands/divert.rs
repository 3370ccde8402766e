//! dpkg-divert(1).

use vmbake_shell::{Call, Follow, fnmatch};

use super::options::{self, Options, Spec};
use super::{Command, Done, System, fails, status, unsupported};
use crate::merge::overrides::Diversion;

const PROGRAM: &str = "dpkg-divert";

const ACTIONS: [&str; 5] = ["add", "remove", "list", "listpackage", "truename"];

const OPTIONS: [Spec; 13] = [
    ("add", None, false),
    ("remove", None, false),
    ("list", None, false),
    ("listpackage", None, false),
    ("truename", None, false),
    ("divert", None, true),
    ("package", None, true),
    ("local", None, false),
    ("rename", None, false),
    ("no-rename", None, false),
    ("quiet", None, false),
    ("test", None, false),
    ("no-act", None, false),
];

pub(super) fn find(name: &str) -> Option<Command> {
    (name == PROGRAM).then_some(divert as Command)
}

/// Whose diversion is meant.
enum Whose {
    Any,
    Package(Option<String>),
}

/// What `--add` and `--remove` are asked for.
struct Request {
    path: String,
    to: Option<String>,
    whose: Whose,
    rename: bool,
    test: bool,
    quiet: bool,
}

fn divert(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(options) = options::parse(call, &OPTIONS) else { return unsupported(call) };
    let action = match options.among(&ACTIONS)[..] {
        [] => "add",
        [action] => action,
        _ => return unsupported(call),
    };
    if action == "list" {
        return list(system, call, &options.operands);
    }
    let [path] = &options.operands[..] else {
        return fails(call, PROGRAM, &format!("--{action} needs a single argument"));
    };
    let path = path.trim_end_matches('/').to_owned();
    for name in [Some(path.as_str()), options.value("divert")].into_iter().flatten() {
        if !name.starts_with('/') {
            return fails(call, PROGRAM, &format!("filename \"{name}\" is not absolute"));
        }
        if name.contains('\n') {
            return fails(call, PROGRAM, "file may not contain newlines");
        }
    }
    let found = diversion(system, &path);
    match action {
        "truename" => call.stdout.extend(format!("{}\n", found.map_or(path, |found| found.to)).bytes()),
        "listpackage" => {
            let package = found.map(|found| found.package.unwrap_or_else(|| "LOCAL".to_owned()));
            call.stdout.extend(package.map(|package| format!("{package}\n")).unwrap_or_default().bytes());
        }
        "remove" => return remove(system, call, &request(call, &options, path), found),
        _ => return add(system, call, &request(call, &options, path), found),
    }
    status(0)
}

fn request(call: &Call<'_>, options: &Options, path: String) -> Request {
    let environment = call.variables.exported().remove(&b"DPKG_MAINTSCRIPT_PACKAGE"[..]);
    let environment = environment.and_then(|package| String::from_utf8(package).ok());
    let package = options.value("package").map(str::to_owned).or(environment);
    let whose = match package {
        _ if options.has("local") => Whose::Package(None),
        Some(package) => Whose::Package(Some(package).filter(|package| package != "LOCAL")),
        None => Whose::Any,
    };
    Request {
        path,
        to: options.value("divert").map(str::to_owned),
        whose,
        rename: options.has("rename") && !options.has("no-rename"),
        test: options.has("test") || options.has("no-act"),
        quiet: options.has("quiet"),
    }
}

fn diversion(system: &System<'_, '_>, path: &str) -> Option<Diversion> {
    let all = system.database.overrides.diversions();
    all.into_iter().find(|(from, _)| *from == path).map(|(_, found)| found.clone())
}

fn add(system: &mut System<'_, '_>, call: &mut Call<'_>, request: &Request, found: Option<Diversion>) -> Done {
    let path = &request.path;
    if call.files.lookup(path.as_bytes(), Follow::No).is_ok_and(|node| node.is_dir()) {
        return fails(call, PROGRAM, "cannot divert directories");
    }
    let package = match &request.whose {
        Whose::Package(package) => package.clone(),
        Whose::Any => None,
    };
    let new = Diversion { to: request.to.clone().unwrap_or_else(|| format!("{path}.distrib")), package };
    let text = described(path, &new);
    if found.as_ref() == Some(&new) {
        report(call, request, &format!("Leaving '{text}'"));
        return status(0);
    }
    let names = [path.as_str(), new.to.as_str()];
    let all = system.database.overrides.diversions();
    let clash = all.into_iter().find(|(from, other)| names.contains(from) || names.contains(&other.to.as_str()));
    if let Some((from, other)) = clash {
        let message = format!("'{text}' clashes with '{}'", described(from, other));
        return fails(call, PROGRAM, &message);
    }
    report(call, request, &format!("Adding '{text}'"));
    let names = [path.clone(), new.to.clone()];
    change(system, call, request, Some(new), &names)
}

fn remove(system: &mut System<'_, '_>, call: &mut Call<'_>, request: &Request, found: Option<Diversion>) -> Done {
    let wanted = request.text();
    let Some(found) = found else {
        report(call, request, &format!("No diversion '{wanted}', none removed."));
        return status(0);
    };
    let text = described(&request.path, &found);
    let mismatch = match &request.whose {
        _ if request.to.as_ref().is_some_and(|to| *to != found.to) => Some("divert-to"),
        Whose::Package(package) if *package != found.package => Some("package"),
        _ => None,
    };
    if let Some(what) = mismatch {
        let message = format!("mismatch on {what}\n  when removing '{wanted}'\n  found '{text}'");
        return fails(call, PROGRAM, &message);
    }
    report(call, request, &format!("Removing '{text}'"));
    change(system, call, request, None, &[found.to, request.path.clone()])
}

/// Writes what is diverted now, and moves the file with `--rename`.
fn change(
    system: &mut System<'_, '_>,
    call: &mut Call<'_>,
    request: &Request,
    new: Option<Diversion>,
    names: &[String; 2],
) -> Done {
    let mut rename = request.rename;
    if rename && let Whose::Package(Some(package)) = &request.whose {
        let owners = system.database.owners.listing(&system.target().tree, request.path.as_bytes());
        if owners.iter().any(|stem| stem.split(':').next() == Some(package)) {
            let path = &request.path;
            report(
                call,
                request,
                &format!("Ignoring request to rename file '{path}' owned by diverting package '{package}'"),
            );
            rename = false;
        }
    }
    let [from, to] = names.each_ref().map(String::as_bytes);
    let [source, standing] = [from, to].map(|name| call.files.lookup(name, Follow::No).ok());
    if let (true, Some(source), Some(standing)) = (rename, source, standing)
        && source.id != standing.id
    {
        let [from, to] = names;
        let message = format!("rename involves overwriting '{to}' with\n  different file '{from}', not allowed");
        return fails(call, PROGRAM, &message);
    }
    if request.test {
        return status(0);
    }
    system.database.overrides.divert(&mut system.target(), &request.path, new)?;
    if rename && source.is_some() {
        // Of two names of one file, rename(2) keeps both.
        let moved = if standing.is_some() { call.files.remove(from) } else { call.files.rename(from, to) };
        if let Err(error) = moved {
            let [from, to] = names;
            return fails(call, PROGRAM, &format!("rename: rename '{from}' to '{to}': {error}"));
        }
    }
    status(0)
}

/// `--list`: each pattern may fit the path, where it goes, or the package.
fn list(system: &System<'_, '_>, call: &mut Call<'_>, patterns: &[String]) -> Done {
    for (from, found) in system.database.overrides.diversions() {
        let names = [from, &found.to, found.package.as_deref().unwrap_or(":")];
        let fits = |pattern: &String| names.iter().any(|name| fnmatch(pattern.as_bytes(), name.as_bytes()));
        if patterns.is_empty() || patterns.iter().any(fits) {
            call.stdout.extend(format!("{}\n", described(from, found)).bytes());
        }
    }
    status(0)
}

impl Request {
    /// How dpkg names what is looked for.
    fn text(&self) -> String {
        let to = self.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        let path = &self.path;
        match &self.whose {
            Whose::Any => format!("any diversion of {path}{to}"),
            Whose::Package(None) => format!("local diversion of {path}{to}"),
            Whose::Package(Some(package)) => format!("diversion of {path}{to} by {package}"),
        }
    }
}

fn described(path: &str, Diversion { to, package }: &Diversion) -> String {
    match package {
        Some(package) => format!("diversion of {path} to {to} by {package}"),
        None => format!("local diversion of {path} to {to}"),
    }
}

fn report(call: &mut Call<'_>, request: &Request, message: &str) {
    if !request.quiet {
        call.stdout.extend(format!("{message}\n").bytes());
    }
}
