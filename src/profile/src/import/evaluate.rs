//! Runs the scripts of a profile over the tree of a new machine: rendered phases in, the final state out.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_common::address;
use vmbake_shell::{ErrorKind, Files, ShellError};

use super::base::{self, Content, Found};
use super::document::DISABLED;
use super::error::{CommandLocation, ImportError};
use super::known::KnownFiles;
use super::left;
use super::machine::{Effects, Machine};
use super::program::{Commands, File, Program, place};
use super::runtime::{legible, own_path};

/// Most scripts that are left to the machine.
const MAX_DEFERRED: usize = 20;

/// What came of it.
#[derive(Debug)]
pub(super) struct Evaluated {
    /// Everything that is there before and in the end, sorted by path; of a base image, what commands wrote.
    pub(super) before: Vec<Found>,
    pub(super) after: Vec<Found>,
    /// Of a base image: types of what was there before at the paths of `after`, and what is gone.
    pub(super) replaced: BTreeMap<String, &'static str>,
    pub(super) removed: Vec<String>,
    /// Directories and files that the base may have, and then with their mode.
    pub(super) kept: BTreeSet<String>,
    /// Files that scripts wrote in place, where the base may have something.
    pub(super) written: BTreeSet<String>,
    /// What commands had made where packages may have files, before packages were installed.
    pub(super) early: BTreeSet<String>,
    pub(super) effects: Effects,
    /// Scripts that only a machine can run.
    pub(super) deferred: BTreeSet<String>,
}

/// Runs everything. A script that queries the machine, and that another script calls, is left to it: then all is run again.
pub(super) fn evaluate(program: &Program<'_>) -> Result<Evaluated, ImportError> {
    let mut deferred = BTreeSet::new();
    loop {
        match once(program, &deferred)? {
            Ended::Done(evaluated) => return Ok(*evaluated),
            Ended::Asks(script) if deferred.len() < MAX_DEFERRED => drop(deferred.insert(script)),
            Ended::Asks(script) => {
                let place = CommandLocation { script, line: 1, command: String::new() };
                return Err(ImportError::Limit { place, what: "more than 20 scripts query the machine".to_owned() });
            }
        }
    }
}

enum Ended {
    Done(Box<Evaluated>),
    /// This script queries the machine.
    Asks(String),
}

fn once(program: &Program<'_>, deferred: &BTreeSet<String>) -> Result<Ended, ImportError> {
    let mut tree = match program.image {
        Some(image) => image.clone(),
        None => base::tree().map_err(broken("/"))?,
    };
    let absent = &program.rules.absent;
    let mut files = match program.image {
        Some(_) => KnownFiles::over(&mut tree, absent).map_err(broken("/"))?,
        None => KnownFiles::new(&mut tree, absent),
    };
    let before = files.all().map_err(broken("/"))?.into_iter().map(|(_, found)| found).collect();
    let mut machine = Machine::new(program, deferred);
    machine.has_all_programs = program.image.is_none();
    match steps(program, &mut machine, &mut files) {
        Ok(()) => {}
        Err(Stop::Error(error)) => return Err(error),
        Err(Stop::Shell(error)) => return asks(program, &machine, *error),
    }
    if let Some(path) = files.removed() {
        let what = "a script removes this file of the base: list it in `remove` of a layer of --extend, and drop the command with a rule";
        let path = vmbake_common::escape::line(String::from_utf8_lossy(path));
        return Err(ImportError::Tree { path, what: what.to_owned() });
    }
    let all = files.all().map_err(broken("/"))?;
    if let Some([first, path]) = base::hard_links(&all) {
        let what = format!(
            "it is a hard link to {first}, which layers do not support: copy the file, or create a symbolic link"
        );
        return Err(ImportError::Tree { path, what });
    }
    let after: Vec<Found> = all.into_iter().map(|(_, found)| found).collect();
    left::check(&machine.left, files.left(), &after)?;
    check_credentials(&after)?;
    let paths = || after.iter().map(|found| found.path.clone());
    let kept = paths().filter(|path| files.keeps_mode(path)).collect();
    let written = paths().filter(|path| files.was_written(path)).collect();
    let early = paths().filter(|path| files.was_made_early(path)).collect();
    let had = |path: &&[u8]| program.image.is_some_and(|image| image.lookup(path).is_some());
    let removed = files.taken_away().into_iter().filter(had).map(|path| String::from_utf8(path.to_vec()));
    let removed = removed.collect::<Result<_, _>>().map_err(|_| broken("/")(vmbake_shell::Errno::Einval))?;
    let kind_before = |found: &Found| {
        let image = program.image?;
        let id = image.lookup(found.path.as_bytes())?;
        Some((found.path.clone(), image.inode(id).kind.name()))
    };
    let replaced = after.iter().filter_map(kind_before).collect();
    let effects = machine.effects.clone();
    check_boots(program, &mut machine, &mut files, &after)?;
    let deferred = deferred.clone();
    Ok(Ended::Done(Box::new(Evaluated { before, after, replaced, removed, kept, written, early, effects, deferred })))
}

/// Refuses files with a URL that contains a user name or password: layers are published.
fn check_credentials(files: &[Found]) -> Result<(), ImportError> {
    let has = |found: &&Found| match &found.content {
        Content::File(text) => address::has_userinfo(&String::from_utf8_lossy(text)),
        _ => false,
    };
    match files.iter().find(has) {
        Some(found) => Err(ImportError::Tree { path: found.path.clone(), what: address::MESSAGE.to_owned() }),
        None => Ok(()),
    }
}

/// Refuses a `bootcmd` that changes something on another boot: machines run it on each one, and an import once.
fn check_boots(
    program: &Program<'_>,
    machine: &mut Machine<'_>,
    files: &mut KnownFiles<'_>,
    after: &[Found],
) -> Result<(), ImportError> {
    // What user data say counts more than a file of cloud.cfg.d.
    let bootcmd = program.phases.iter().map(|phase| &phase.bootcmd).find(|commands| !commands.lines.is_empty());
    let is_off = after.iter().any(|found| found.path == DISABLED);
    let Some(bootcmd) = bootcmd.filter(|_| !is_off) else { return Ok(()) };
    let refuse = |what: &str| {
        let what = format!(
            "machines run it on each boot, and {what}: write commands that change nothing the second time, or move them to runcmd"
        );
        Err(ImportError::Tree { path: bootcmd.name.to_owned(), what })
    };
    let effects = machine.effects.lasting();
    if let Err(error) = machine.boot_again(files, bootcmd) {
        let command = legible(&error.command.join(" "));
        return refuse(&format!(
            "the result of `{command}` on another boot is unknown ({})",
            legible(&error.kind.to_string())
        ));
    }
    let now: Vec<Found> = files.all().map_err(broken("/"))?.into_iter().map(|(_, found)| found).collect();
    let changed =
        now.iter().find(|found| !after.contains(found)).or_else(|| after.iter().find(|found| !now.contains(found)));
    match changed {
        Some(found) => refuse(&format!("another boot changes {}", legible(&found.path))),
        None if machine.effects.lasting() != effects => refuse("another boot has other effects"),
        None => Ok(()),
    }
}

/// Why a run ends early.
enum Stop {
    Error(ImportError),
    Shell(Box<ShellError>),
}

/// Does both phases, one after the other.
fn steps(program: &Program<'_>, machine: &mut Machine<'_>, files: &mut KnownFiles<'_>) -> Result<(), Stop> {
    let [bootstrap, provisioning] = program.phases;
    commands(&bootstrap.bootcmd, machine, files)?;
    if program.has_name {
        files.name_machine().map_err(broken(base::NAME)).map_err(Stop::Error)?;
    }
    write(&bootstrap.files, files)?;
    commands(&bootstrap.runcmd, machine, files)?;
    // Unless a script of the bootstrap has begun it.
    if let Some(phase) = machine.next.take() {
        commands(&phase.bootcmd, machine, files)?;
        write(&phase.files, files)?;
    }
    commands(&provisioning.runcmd, machine, files)?;
    program.units.iter().try_for_each(|units| commands(units, machine, files))
}

/// Writes the files of a phase, as cloud-init does between `bootcmd` and `runcmd`.
fn write(all: &[File], files: &mut KnownFiles<'_>) -> Result<(), Stop> {
    for file in all {
        let placed = place(files, file);
        if let Some(what) = files.unknown() {
            let what = format!("it depends on {what}, which is unknown during the import");
            return Err(Stop::Error(ImportError::Tree { path: file.path.clone(), what }));
        }
        placed.map_err(broken(&file.path)).map_err(Stop::Error)?;
    }
    Ok(())
}

/// Runs commands as one script, as cloud-init does.
fn commands(commands: &Commands, machine: &mut Machine<'_>, files: &mut KnownFiles<'_>) -> Result<(), Stop> {
    match machine.commands(files, commands).map_err(Stop::Error)? {
        Ok((0, _)) => Ok(()),
        Ok((_, stderr)) => Err(Stop::Error(failed(machine, &stderr, commands.name))),
        Err(error) => Err(Stop::Shell(Box::new(machine.failure.take().unwrap_or(*error)))),
    }
}

/// Whether a run was given up because a script queries the machine.
fn asks(program: &Program<'_>, machine: &Machine<'_>, error: ShellError) -> Result<Ended, ImportError> {
    let script = error.script.clone();
    let mut files = program.phases.iter().rev().flat_map(|phase| &phase.files);
    let file = files.find(|file| file.path == script);
    // A script that is sourced goes on to ask, although it is left to the machine.
    let is_new = !machine.entries.contains(&script) && !machine.deferred.contains(&script);
    let Some(file) = file.filter(|_| is_new && asks_machine(&error.kind)) else {
        return Err(given_up(machine, error));
    };
    match installs(file) {
        None => Ok(Ended::Asks(script)),
        Some(command) => {
            let what = format!(
                "it queries the machine ({}), but also runs {command}: move the installation to another script",
                error.kind
            );
            Err(ImportError::Tree { path: script, what })
        }
    }
}

/// The command by which a script may install something.
fn installs(file: &File) -> Option<&'static str> {
    const INSTALLS: [&str; 9] = ["apt", "apt-get", "dpkg", "curl", "wget", "pip", "pip3", "snap", "tar"];
    let is_word = |char: char| char.is_ascii_alphanumeric() || "_-./".contains(char);
    let lines = file.text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut words = lines.flat_map(|line| line.split(|char| !is_word(char)));
    words.find_map(|word| INSTALLS.into_iter().find(|command| word.rsplit('/').next() == Some(*command)))
}

/// What the tree says of a path.
fn broken(path: &str) -> impl FnOnce(vmbake_shell::Errno) -> ImportError {
    move |error| ImportError::Tree { path: path.to_owned(), what: error.to_string() }
}

fn asks_machine(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Deferred { .. }
            | ErrorKind::Machine { .. }
            | ErrorKind::Clock { .. }
            | ErrorKind::Random { .. }
            | ErrorKind::Foreign { .. }
    )
}

/// A command failed, and so did everything around it.
fn failed(machine: &Machine<'_>, stderr: &[u8], name: &str) -> ImportError {
    let (place, status) = machine
        .failed
        .clone()
        .unwrap_or_else(|| (CommandLocation { script: name.to_owned(), line: 1, command: String::new() }, 1));
    let stderr = if stderr.is_empty() { machine.stderr.as_slice() } else { stderr };
    let text = String::from_utf8_lossy(stderr).replace(&own_path(), name);
    let line = text.lines().rev().find(|line| !line.starts_with('+')).unwrap_or_default();
    ImportError::Failed { place, status, stderr: vmbake_common::escape::line(legible(line)) }
}

fn given_up(machine: &Machine<'_>, error: ShellError) -> ImportError {
    if machine.is_broken {
        return failed(machine, b"", &error.script);
    }
    let command = legible(&error.command.join(" "));
    let place = CommandLocation { script: error.script, line: error.line, command };
    match error.kind {
        ErrorKind::Limit { .. } => ImportError::Limit { place, what: error.kind.to_string() },
        kind => ImportError::Statement { place, reason: legible(&kind.to_string()) },
    }
}
