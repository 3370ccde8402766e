//! debconf(7): the effect of `. /usr/share/debconf/confmodule`, its functions, and the programs debconf-communicate(1), debconf-escape(1),
//! debconf-loadtemplate(1), debconf-set-selections(1) and debconf-show(1).

mod frontend;

use vmbake_shell::{Call, Errno, Files, Outcome};

pub(super) use frontend::Frontend;

use super::{Command, Done, System, status, unsupported, words};
use crate::merge::MergeError;
use crate::merge::debconf::{Conversation, DebconfFault, MAX_TEMPLATES, escape, unescape};
use crate::merge::maintainer::{self, Ran};
use crate::merge::owners::INFO;

/// The variable by which a program knows that a frontend runs.
pub(in crate::merge::maintainer) const HAS_FRONTEND: &str = "DEBIAN_HAS_FRONTEND";

/// What programs of debconf say that find the database in use.
const LOCKED: &[u8] =
    b"debconf: DbDriver \"config\": /var/cache/debconf/config.dat is locked by another process: Resource \
    temporarily unavailable\n";

/// The shell functions of confmodule, without `db_`.
const FUNCTIONS: [&str; 24] = [
    "beginblock",
    "capb",
    "clear",
    "data",
    "endblock",
    "fget",
    "fset",
    "get",
    "go",
    "info",
    "input",
    "metaget",
    "progress",
    "purge",
    "register",
    "reset",
    "set",
    "settitle",
    "stop",
    "subst",
    "text",
    "title",
    "unregister",
    "version",
];

pub(super) fn find(name: &str) -> Option<Command> {
    if is_function(name.as_bytes()) {
        return Some(talk);
    }
    Some(match name {
        "debconf-communicate" => communicate,
        "debconf-escape" => escape_input,
        "debconf-loadtemplate" => load_templates,
        "debconf-set-selections" => set_selections,
        "debconf-show" => show,
        _ => return None,
    })
}

/// Whether confmodule defines a function of that name.
pub(super) fn is_function(name: &[u8]) -> bool {
    let talks = |name: &[u8]| FUNCTIONS.iter().any(|known| known.as_bytes() == name) || name == b"x_loadtemplatefile";
    name == b"_db_cmd" || name.strip_prefix(b"db_").is_some_and(talks)
}

pub(super) fn find_sourced(path: &[u8]) -> Option<Command> {
    let name = path.strip_prefix(b"/usr/share/debconf/")?;
    matches!(name, b"confmodule" | b"confmodule.sh").then_some(start as Command)
}

/// Starts a frontend unless one runs. The real one starts the script anew, after the package's config; here the script goes on.
fn start(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if !has_frontend(call) || system.conversation.is_none() {
        open(system)?;
        // A program of the tree has no templates that debconf would find.
        let own = !PROGRAMS.iter().any(|folder| call.script.starts_with(folder));
        let ended = if own { prepare(system, call)? } else { None };
        if let Some(ended) = ended {
            return Ok(ended);
        }
    }
    for (name, value) in [(HAS_FRONTEND, "1"), ("DEBCONF_REDIR", "1"), ("DEBCONF_OLD_FD_BASE", "4")] {
        call.variables.export(name.as_bytes(), value.as_bytes());
    }
    status(0)
}

const PROGRAMS: [&str; 4] = ["/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/"];

/// Loads the templates of the package and runs its config. Gives an outcome if the script cannot go on.
fn prepare(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Result<Option<Outcome>, MergeError> {
    let script = *system.script;
    let found = |name: &str| control_file(&script, call.files, name);
    let (templates, config) = match (found("templates"), found("config")) {
        (Ok(templates), Ok(config)) => (templates, config),
        (Err(outcome), _) | (_, Err(outcome)) => return Ok(Some(outcome)),
    };
    let owner = if script.control.is_some() { script.package } else { script.stem };
    let conversation = system.conversation.insert(Conversation::new(owner.as_bytes()));
    if let Some(templates) = templates
        && let Err(fault) = conversation.load(&mut system.database.debconf, &templates)
    {
        return Ok(Some(outcome(fault)));
    }
    let Some(source) = config.filter(|_| matches!(script.script, "preinst" | "postinst")) else { return Ok(None) };
    let version = script.args.get(1).copied().unwrap_or_default();
    let config = maintainer::Call { script: "config", source: &source, args: &["configure", version], ..script };
    if let Ran::Waits(reason) = maintainer::on_system(system, &mut *call.files, &config)? {
        return Ok(Some(Outcome::Deferred(format!("its config script is deferred: {reason}"))));
    }
    if let Some(conversation) = &mut system.conversation {
        conversation.next_script();
    }
    Ok(None)
}

/// A control file of the package whose script runs, or why it is not read.
fn control_file(script: &maintainer::Call<'_>, files: &dyn Files, name: &str) -> Result<Option<Vec<u8>>, Outcome> {
    if let Some(control) = script.control {
        return Ok(control.get(name).cloned());
    }
    let path = format!("{INFO}/{}.{name}", script.stem);
    match files.read(path.as_bytes(), MAX_TEMPLATES) {
        Ok(content) => Ok(Some(content)),
        Err(Errno::Enoent) => Ok(None),
        Err(error) => Err(Outcome::Refused(format!("{path}: {error}"))),
    }
}

fn has_frontend(call: &Call<'_>) -> bool {
    call.variables.get(HAS_FRONTEND.as_bytes()).is_some_and(|value| !value.is_empty())
}

/// Opens the database anew: a frontend that ran before has ended.
fn open(system: &mut System<'_, '_>) -> Result<(), MergeError> {
    system.conversation = Some(Conversation::new(b""));
    system.database.debconf.end();
    system.database.debconf.begin(&system.target())
}

/// What a fault means to the script.
pub(super) fn outcome(fault: DebconfFault) -> Outcome {
    match fault {
        DebconfFault::Password { .. } => Outcome::Deferred(fault.to_string()),
        fault => Outcome::Refused(fault.to_string()),
    }
}

/// One of the shell functions: says a line, and puts the answer into `RET`.
fn talk(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(conversation) = &mut system.conversation else {
        return Ok(Outcome::Refused("debconf's confmodule was not sourced".to_owned()));
    };
    let command = match call.base_name().strip_prefix(b"db_") {
        Some(b"text") => b"INPUT".to_vec(),
        Some(name) => name.to_ascii_uppercase(),
        None => Vec::new(),
    };
    let request = [&[command][..], call.args].concat().join(&b' ');
    let request = request.strip_prefix(b" ").unwrap_or(&request);
    let (files, cwd) = (&*call.files, call.cwd);
    let mut read = |path: &[u8]| read(files, cwd, path);
    let reply = match conversation.ask(&mut system.database.debconf, request, &mut read) {
        Ok(Some(reply)) => reply,
        Ok(None) => return status(0),
        Err(fault) => return Ok(outcome(fault)),
    };
    // confmodule puts back the value of IFS; where it was not set, the value is empty from here on.
    if call.variables.get(b"IFS").is_none() {
        call.variables.set(b"IFS", b"");
    }
    // As confmodule parts it: only a status of one digit is taken off.
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let number = reply.split(blank).next().unwrap_or_default();
    let text = if number.len() == 1 && reply.len() > 1 { &reply[2..] } else { &reply };
    let code = String::from_utf8_lossy(number).parse().unwrap_or(100);
    if code == 1 {
        let mut text = unescape(text);
        while text.last() == Some(&b'\n') {
            text.pop();
        }
        call.variables.set(b"RET", &text);
        return status(0);
    }
    call.variables.set(b"RET", text);
    status(code)
}

fn read(files: &dyn Files, cwd: &[u8], path: &[u8]) -> Result<Vec<u8>, String> {
    if path.is_empty() {
        return Err("No such file or directory".to_owned());
    }
    let path = if path.starts_with(b"/") { path.to_vec() } else { [cwd, b"/", path].concat() };
    files.read(&path, MAX_TEMPLATES).map_err(|error| error.to_string())
}

/// Runs a program that has the database for itself.
fn alone(
    system: &mut System<'_, '_>,
    call: &mut Call<'_>,
    run: impl FnOnce(&mut System<'_, '_>, &mut Call<'_>) -> Result<u8, DebconfFault>,
) -> Done {
    if has_frontend(call) {
        call.stderr.extend_from_slice(LOCKED);
        return status(1);
    }
    open(system)?;
    let ran = run(system, call);
    system.database.debconf.end();
    system.conversation = None;
    ran.map_or_else(|fault| Ok(outcome(fault)), status)
}

fn communicate(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if call.args.len() > 1 || call.args.first().is_some_and(|owner| owner.starts_with(b"-")) {
        return unsupported(call);
    }
    alone(system, call, |system, call| {
        let mut conversation = Conversation::new(call.args.first().map_or(b"unknown", Vec::as_slice));
        let input = (call.stdin)();
        let (files, cwd) = (&*call.files, call.cwd);
        let mut code = 127;
        for line in
            input.strip_suffix(b"\n").unwrap_or(&input).split(|byte| *byte == b'\n').filter(|_| !input.is_empty())
        {
            let reply = conversation.say(&mut system.database.debconf, line, &mut |path| read(files, cwd, path))?;
            let reply = reply.unwrap_or_default();
            let number = reply.split(|byte| *byte == b' ').next().unwrap_or_default();
            code = String::from_utf8_lossy(number).parse().unwrap_or(0);
            call.stdout.extend([&reply[..], b"\n"].concat());
        }
        Ok(code)
    })
}

fn set_selections(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let (options, names): (Vec<&str>, Vec<&str>) =
        words.iter().map(String::as_str).partition(|word| word.len() > 1 && word.starts_with('-'));
    if options.iter().any(|option| !matches!(*option, "-u" | "--unseen" | "-v" | "--verbose")) {
        return unsupported(call);
    }
    let unseen = options.iter().any(|option| matches!(*option, "-u" | "--unseen"));
    let names = if names.is_empty() { vec!["-"] } else { names };
    alone(system, call, |system, call| {
        let mut failed = false;
        for name in names {
            let text = if name == "-" { Ok((call.stdin)()) } else { read(&*call.files, call.cwd, name.as_bytes()) };
            let faults = match text {
                Ok(text) => system.database.debconf.set_selections(&text, unseen)?,
                Err(error) => vec![format!("warning: {error}")],
            };
            failed |= faults.iter().any(|fault| fault.starts_with("error"));
            call.stderr.extend(faults.iter().flat_map(|fault| format!("{fault}\n").into_bytes()));
        }
        Ok(u8::from(failed))
    })
}

fn load_templates(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some((owner, paths)) =
        call.args.split_first().filter(|(owner, paths)| !owner.starts_with(b"-") && !paths.is_empty())
    else {
        return unsupported(call);
    };
    alone(system, call, |system, call| {
        for path in paths {
            match read(&*call.files, call.cwd, path) {
                Ok(text) => system.database.debconf.load(&text, owner)?,
                Err(error) => {
                    call.stderr.extend([&path[..], b": ", error.as_bytes(), b"\n"].concat());
                    return Ok(2);
                }
            }
        }
        Ok(0)
    })
}

fn show(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if call.args.is_empty() || call.args.iter().any(|word| word.starts_with(b"-")) {
        return unsupported(call);
    }
    if system.conversation.is_none() {
        system.database.debconf.begin(&system.target())?;
    }
    for (name, value, seen, kind) in call.args.iter().flat_map(|package| system.database.debconf.shown(package)) {
        let mark: &[u8] = if seen { b"* " } else { b"  " };
        let value = match kind.as_slice() {
            b"password" => b" (password omitted)".to_vec(),
            _ if value.is_empty() => value,
            _ => [b" ", &value[..]].concat(),
        };
        call.stdout.extend([mark, &name, b":", &value, b"\n"].concat());
    }
    status(0)
}

fn escape_input(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let change = match call.args {
        [option] if option == b"-e" || option == b"--escape" => escape,
        [option] if option == b"-u" || option == b"--unescape" => unescape,
        _ => return unsupported(call),
    };
    let text = change(&(call.stdin)());
    call.stdout.extend(text);
    status(0)
}
