//! update-alternatives(1): arguments and actions.

mod shown;

use std::collections::BTreeMap;

use vmbake_shell::Call;

use super::{Command, Done, System, fails, status, unsupported, words};
use crate::merge::alternatives::{Change, Message, Stop, change};
use vmbake_layer::Alternative;

const PROGRAM: &str = "update-alternatives";

/// The actions, and the arguments of each.
const ACTIONS: [(&str, &[&str]); 9] = [
    ("--install", &["link", "name", "path", "priority"]),
    ("--remove", &["name", "path"]),
    ("--set", &["name", "path"]),
    ("--remove-all", &["name"]),
    ("--auto", &["name"]),
    ("--display", &["name"]),
    ("--query", &["name"]),
    ("--list", &["name"]),
    ("--get-selections", &[]),
];

pub(super) fn find(name: &str) -> Option<Command> {
    (name == PROGRAM).then_some(update_alternatives as Command)
}

/// A parsed call.
#[derive(Default)]
struct Request {
    action: &'static str,
    args: Vec<String>,
    slaves: BTreeMap<String, (String, String)>,
    force: bool,
    quiet: bool,
    verbose: bool,
}

/// Why the arguments are none.
enum Wrong {
    Usage(String),
    Failed(String),
    Unsupported,
}

fn update_alternatives(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let read = request(&words).and_then(|request| Ok((installed(&request)?, request)));
    let (alternative, request) = match read {
        Ok(read) => read,
        Err(Wrong::Usage(message)) => {
            let help = format!("Use '{PROGRAM} --help' for program usage information.");
            call.stderr.extend(format!("{PROGRAM}: {message}\n\n{help}\n").bytes());
            return status(2);
        }
        Err(Wrong::Failed(message)) => return fails(call, PROGRAM, &message),
        Err(Wrong::Unsupported) => return unsupported(call),
    };
    let target = &mut system.target();
    let arg = |at: usize| request.args.get(at).map(String::as_str).unwrap_or_default();
    let mut messages = Vec::new();
    let done = match (request.action, &alternative) {
        ("--install", Some(new)) => change(target, &new.name, &Change::Install(new), request.force, &mut messages),
        ("--remove", _) => change(target, arg(0), &Change::Remove(arg(1)), request.force, &mut messages),
        ("--set", _) => change(target, arg(0), &Change::Set(arg(1)), request.force, &mut messages),
        ("--remove-all", _) => change(target, arg(0), &Change::RemoveAll, request.force, &mut messages),
        ("--auto", _) => change(target, arg(0), &Change::Auto, request.force, &mut messages),
        ("--get-selections", _) => shown::selections(target, call.stdout).map_err(Stop::from),
        (action, _) => shown::show(target, action, arg(0), call.stdout, &mut messages),
    };
    for message in messages {
        match message {
            Message::Detail(text) if request.verbose => call.stdout.extend(format!("{PROGRAM}: {text}\n").bytes()),
            Message::Info(text) if !request.quiet => call.stdout.extend(format!("{PROGRAM}: {text}\n").bytes()),
            Message::Warning(text) if !request.quiet => {
                call.stderr.extend(format!("{PROGRAM}: warning: {text}\n").bytes());
            }
            _ => {}
        }
    }
    match done {
        Ok(()) => status(0),
        Err(Stop::Failed(message)) => fails(call, PROGRAM, &message),
        Err(Stop::Refused(error)) => Err(error),
    }
}

/// Reads the arguments.
fn request(words: &[String]) -> Result<Request, Wrong> {
    let mut request = Request::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--force" => request.force = true,
            "--quiet" => (request.quiet, request.verbose) = (true, false),
            "--verbose" => (request.quiet, request.verbose) = (false, true),
            // What it skips is a question of --config.
            "--skip-auto" => {}
            "--slave" => {
                let (Some(link), Some(name), Some(path)) = (rest.next(), rest.next(), rest.next()) else {
                    return Err(Wrong::Usage("--slave needs <link> <name> <path>".to_owned()));
                };
                add_slave(&mut request, link, name, path)?;
            }
            "--config" | "--all" | "--set-selections" | "--help" | "--version" | "--debug" | "--log" | "--altdir"
            | "--admindir" | "--instdir" | "--root" => return Err(Wrong::Unsupported),
            word => {
                let Some((action, names)) = ACTIONS.iter().find(|(action, _)| *action == word) else {
                    return Err(match word.starts_with("--") {
                        true => Wrong::Usage(format!("unknown option '{word}'")),
                        false => Wrong::Failed(format!("unknown argument '{word}'")),
                    });
                };
                if !request.action.is_empty() {
                    let first = request.action;
                    return Err(Wrong::Usage(format!("two commands specified: {first} and {action}")));
                }
                let args: Vec<String> = rest.by_ref().take(names.len()).cloned().collect();
                if args.len() < names.len() {
                    let names: String = names.iter().map(|name| format!(" <{name}>")).collect();
                    return Err(Wrong::Usage(format!("{action} needs{names}")));
                }
                (request.action, request.args) = (action, args);
            }
        }
    }
    match request.action {
        "" => Err(Wrong::Usage(
            "need --display, --query, --list, --get-selections, --config, --set, --set-selections, --install, \
             --remove, --all, --remove-all or --auto"
                .to_owned(),
        )),
        // The first argument is the name, that of --install is checked with the choice.
        action if action != "--install" => {
            request.args.first().map_or(Ok(()), |name| check_name(name)).map(|()| request)
        }
        _ => Ok(request),
    }
}

fn add_slave(request: &mut Request, link: &str, name: &str, path: &str) -> Result<(), Wrong> {
    let [primary_link, primary, ..] = request.args.as_slice() else {
        return Err(Wrong::Usage("--slave only allowed with --install".to_owned()));
    };
    if request.action != "--install" {
        return Err(Wrong::Usage("--slave only allowed with --install".to_owned()));
    }
    let wrong = if link == path {
        format!("<link> '{link}' is the same as <path>")
    } else if name == primary {
        format!("<name> '{name}' is both primary and slave")
    } else if link == primary_link {
        format!("<link> '{link}' is both primary and slave")
    } else if request.slaves.contains_key(name) {
        format!("duplicate slave <name> '{name}'")
    } else if request.slaves.values().any(|(known, _)| known == link) {
        format!("duplicate slave <link> '{link}'")
    } else {
        check_names(link, name, path)?;
        request.slaves.insert(name.to_owned(), (link.to_owned(), path.to_owned()));
        return Ok(());
    };
    Err(Wrong::Usage(wrong))
}

/// The choice that `--install` adds.
fn installed(request: &Request) -> Result<Option<Alternative>, Wrong> {
    let ("--install", [link, name, path, priority]) = (request.action, request.args.as_slice()) else {
        return Ok(None);
    };
    if link == path {
        return Err(Wrong::Usage(format!("<link> '{link}' is the same as <path>")));
    }
    let digits = priority.strip_prefix(['-', '+']).unwrap_or(priority);
    let number = priority.parse().map_err(|_| {
        let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        Wrong::Usage(format!("priority '{priority}' {}", if whole { "is out of range" } else { "must be an integer" }))
    })?;
    check_names(link, name, path)?;
    let [link, name, path] = [link, name, path].map(String::clone);
    Ok(Some(Alternative { link, name, path, priority: number, slaves: request.slaves.clone() }))
}

fn check_names(link: &str, name: &str, path: &str) -> Result<(), Wrong> {
    check_name(name)?;
    for (what, path) in [("link", link), ("path", path)] {
        if !path.starts_with('/') {
            return Err(Wrong::Failed(format!("alternative {what} is not absolute as it should be: {path}")));
        }
    }
    Ok(())
}

/// A name becomes the name of a file.
fn check_name(name: &str) -> Result<(), Wrong> {
    match name.contains(['/', ' ', '\t', '\n']) {
        true => Err(Wrong::Failed(format!("alternative name ({name}) must not contain '/' and spaces"))),
        false if matches!(name, "" | "." | "..") => Err(Wrong::Unsupported),
        false => Ok(()),
    }
}
