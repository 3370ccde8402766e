//! pam-auth-update(8): builds `/etc/pam.d/common-*` from the profiles of packages, with the answers of debconf.
//!
//! The program is written in Perl, and decides who may log in. It is implemented for the versions in [`VERSIONS`]; any other one runs on the
//! machine.

mod options;
mod profile;
mod managed;
mod stack;

use std::collections::BTreeSet;

use vmbake_common::digest::Digest;
use vmbake_shell::{Call, Files, Follow, Outcome};

use super::debconf::{Frontend, outcome};
use super::{Command, Done, System, status, words};
use crate::merge::debconf::DebconfFault;
use managed::Changes;
use options::Options;
use profile::Profiles;
use stack::{Kind, Writer};

const PROGRAM: &[u8] = b"/usr/sbin/pam-auth-update";
/// Directories of profiles, of the configuration, of its state, and of what it is made from.
const PROFILES: &str = "/usr/share/pam-configs";
const CONFIGURATION: &str = "/etc/pam.d";
const STATE: &str = "/var/lib/pam";
const PRISTINE: &str = "/usr/share/pam";
const TEMPLATES: &str = "/var/lib/dpkg/info/libpam-runtime.templates";

/// Questions of libpam-runtime.
const CHOSEN: &str = "libpam-runtime/profiles";
const CONFLICTS: &str = "libpam-runtime/conflicts";
const OVERRIDE: &str = "libpam-runtime/override";
const NONE_CHOSEN: &str = "libpam-runtime/no_profiles_chosen";
const TITLE: &str = "libpam-runtime/title";

/// Longest file that is read, in bytes: profiles have hundreds.
const MAX_FILE: usize = 1 << 20;

/// A version of the program.
struct Version {
    sha256: &'static str,
    /// Whether it knows the files of Debian 13, and takes `Session-Interactive-Only: no` as if it were not there.
    is_13: bool,
}

/// The versions of Debian 12 and 13.
const VERSIONS: [Version; 2] = [
    Version { sha256: "b46dcfcd89682917c2840e0b42ad6cfd0bd18ec4930e58ac840a63356e3cae61", is_13: false },
    Version { sha256: "861082578098d25ed7e02d7d7bab7287effc6a378d5e43a4631744f1665cf91e", is_13: true },
];

pub(super) fn find(name: &str, call: &Call<'_>) -> Option<Command> {
    let version = Some(name).filter(|name| *name == "pam-auth-update").and_then(|_| version(call.files))?;
    Some(if version.is_13 { update_13 } else { update_12 })
}

fn version(files: &dyn Files) -> Option<&'static Version> {
    let sha256 = Digest::of(&files.read(PROGRAM, MAX_FILE).ok()?).hex();
    VERSIONS.iter().find(|version| version.sha256 == sha256)
}

/// Why it cannot be done here: what the program would do then is not known or does not end, or debconf refuses.
enum Fault {
    Unknown(String),
    Debconf(DebconfFault),
}

impl From<String> for Fault {
    fn from(what: String) -> Self {
        Self::Unknown(what)
    }
}

impl From<DebconfFault> for Fault {
    fn from(fault: DebconfFault) -> Self {
        Self::Debconf(fault)
    }
}

fn update_12(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    update(system, call, false)
}

fn update_13(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    update(system, call, true)
}

fn update(system: &mut System<'_, '_>, call: &mut Call<'_>, is_13: bool) -> Done {
    let Some(options) = words(call).and_then(|words| Options::parse(&words)) else {
        return Ok(Outcome::Unsupported("its options".to_owned()));
    };
    let mut frontend = Frontend::of(system, call)?;
    let ran = run(&mut frontend, &options, is_13);
    let stderr = std::mem::take(&mut frontend.stderr);
    frontend.end();
    call.stderr.extend(stderr);
    match ran {
        Ok(()) => status(0),
        Err(Fault::Unknown(what)) => Ok(Outcome::Unsupported(what)),
        Err(Fault::Debconf(fault)) => Ok(outcome(fault)),
    }
}

fn run(frontend: &mut Frontend<'_, '_, '_>, options: &Options, is_13: bool) -> Result<(), Fault> {
    frontend.ask(&["VERSION", "2.0"])?;
    frontend.ask(&["CAPB", "backup", "escape"])?;
    let mut profiles = Profiles::read(frontend.files, is_13)?;
    frontend.ask(&["X_LOADTEMPLATEFILE", TEMPLATES, "libpam-runtime"])?;
    profiles.sorted.retain(|name| !options.removed.contains(name));
    frontend.ask(&["SUBST", CHOSEN, "profile_names", &profiles.sorted.join(", ")])?;
    frontend.ask(&["SUBST", CHOSEN, "profiles", &profiles.titles().join(", ")])?;
    let changes = managed::changes(frontend.files)?;
    let mut seen = seen(frontend.files)?;
    let mut force = options.force;
    let mut enabled = match &changes {
        Some(changes) => changes.profiles.iter().filter(|name| !options.removed.contains(*name)).cloned().collect(),
        None => split(&frontend.ask(&["GET", CHOSEN])?),
    };
    enabled.retain(|name| profiles.has(name));
    enabled.extend(profiles.sorted.iter().filter(|name| options.enabled.contains(*name)).cloned());
    enabled.retain(|name| !options.disabled.contains(name));
    seen.extend(options.disabled.iter().cloned());
    let mut priority = if options.is_package { "medium" } else { "high" };
    if enabled.is_empty() {
        seen.clear();
        priority = if force { priority } else { "high" };
    }
    enabled.extend(profiles.sorted.iter().filter(|name| profiles.is_default(name) && !seen.contains(*name)).cloned());
    profiles.sort(&mut enabled);
    enabled.dedup();
    let has_new = profiles.sorted.iter().any(|name| !seen.contains(name));
    frontend.ask(&["SETTITLE", TITLE])?;
    if changes.is_none() && !force {
        frontend.ask(&["INPUT", "high", OVERRIDE])?;
        frontend.ask(&["GO"])?;
        force = frontend.ask(&["GET", OVERRIDE])? == "true";
    }
    if changes.is_none() && !force {
        frontend.stderr.extend_from_slice(
            b"\npam-auth-update: Local modifications to /etc/pam.d/common-*, not updating.\n\
            pam-auth-update: Run pam-auth-update --force to override.\n\n",
        );
        return Ok(());
    }
    choose(frontend, &profiles, &mut enabled, (has_new || !options.is_package, priority))?;
    let text: String = profiles.sorted.iter().map(|name| format!("{name}\n")).collect();
    write(frontend.files, &format!("{STATE}/seen"), &text)?;
    let changes = changes.unwrap_or_default();
    if store(frontend.files, &Writer { profiles: &profiles, enabled: &enabled, is_13 }, changes, force)? {
        frontend.ask(&["FSET", OVERRIDE, "seen", "false"])?;
        frontend.ask(&["SET", OVERRIDE, "false"])?;
    }
    Ok(())
}

/// Has debconf confirm which profiles are enabled, without those that others exclude.
fn choose(
    frontend: &mut Frontend<'_, '_, '_>,
    profiles: &Profiles,
    enabled: &mut Vec<String>,
    (is_asked, priority): (bool, &str),
) -> Result<(), Fault> {
    loop {
        if is_asked {
            frontend.ask(&["FSET", CHOSEN, "seen", "false"])?;
        }
        frontend.ask(&["SET", CHOSEN, &enabled.join(", ")])?;
        frontend.ask(&["INPUT", priority, CHOSEN])?;
        frontend.ask(&["GO"])?;
        *enabled = split(&frontend.ask(&["GET", CHOSEN])?);
        let conflicts = profiles.exclude(enabled);
        if !conflicts.is_empty() {
            frontend.ask(&["SUBST", CONFLICTS, "conflicts", &conflicts.join("\\n")])?;
            frontend.ask(&["INPUT", "high", CONFLICTS])?;
        }
        frontend.ask(&["SET", CHOSEN, &enabled.join(", ")])?;
        match (enabled.is_empty(), conflicts.is_empty()) {
            // Nothing answers the question, so that the program asks for ever.
            (true, _) => return Err(format!("no profile, which is {NONE_CHOSEN}").into()),
            (false, true) => return Ok(()),
            (false, false) => {}
        }
    }
}

/// Writes the files of all kinds and their state. Where one cannot be made, the rest stays as it is, which gives `false`.
fn store(files: &mut dyn Files, writer: &Writer<'_>, mut changes: Changes, force: bool) -> Result<bool, Fault> {
    for kind in Kind::ALL {
        let (target, state) = (format!("{CONFIGURATION}/common-{}", kind.name()), format!("{STATE}/{}", kind.name()));
        let pristine = format!("{PRISTINE}/common-{}", kind.name());
        let current = read(files, &target)?;
        let is_pristine = current.as_ref().is_some_and(|text| writer.is_pristine(kind, text));
        let template = if is_pristine { read(files, &pristine)? } else { current.clone() };
        let of_kind = changes.of(kind.name());
        let mut made = template.map_or(Ok(None), |text| writer.file(kind, &text, of_kind))?;
        if made.is_none() {
            if !force {
                return Ok(false);
            }
            made = read(files, &pristine)?.map_or(Ok(None), |text| writer.file(kind, &text, of_kind))?;
        }
        let Some(made) = made else { return Ok(false) };
        if let Some(old) = current.filter(|_| force) {
            write(files, &format!("{target}.pam-old"), &old)?;
        }
        replace(files, &target, ".pam-new", &made)?;
        replace(files, &state, ".new", &writer.state(kind))?;
    }
    Ok(true)
}

/// Writes a new file, and gives it the name.
fn replace(files: &mut dyn Files, path: &str, end: &str, text: &str) -> Result<(), String> {
    let new = format!("{path}{end}");
    write(files, &new, text)?;
    files.rename(new.as_bytes(), path.as_bytes()).map_err(|error| format!("{path}: {error}"))
}

fn write(files: &mut dyn Files, path: &str, text: &str) -> Result<(), String> {
    files.write(path.as_bytes(), text.as_bytes().to_vec(), 0o644).map_err(|error| format!("{path}: {error}"))
}

/// The text of a file, if it is there.
fn read(files: &dyn Files, path: &str) -> Result<Option<String>, String> {
    if files.lookup(path.as_bytes(), Follow::Yes).is_err() {
        return Ok(None);
    }
    let bytes = files.read(path.as_bytes(), MAX_FILE).map_err(|error| format!("{path}: {error}"))?;
    String::from_utf8(bytes).map(Some).map_err(|_| format!("{path}, which is not UTF-8"))
}

/// Profiles that were there before.
fn seen(files: &dyn Files) -> Result<BTreeSet<String>, String> {
    let text = read(files, &format!("{STATE}/seen"))?.unwrap_or_default();
    Ok(text.lines().map(str::to_owned).collect())
}

/// The names of an answer.
fn split(answer: &str) -> Vec<String> {
    answer.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
