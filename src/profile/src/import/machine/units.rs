//! `systemctl` in scripts. Units of type `oneshot` are run during the import when they are started; others are enabled, and started by the
//! machine.

use vmbake_shell::{Call, Files, Outcome};

use super::unit_file::{OneShot, UnitFile};
use super::{Machine, assignments, has_token, words};
use crate::import::left::mentions;
use crate::import::report::StatementClass;

/// Where profiles put units.
pub(in crate::import) const UNITS: &str = "/etc/systemd/system";
/// Other places of units.
const PLACES: [&str; 4] =
    ["/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
/// Largest unit, in bytes.
const LARGEST: usize = 64 << 10;
/// Largest script, in bytes.
const SCRIPT: usize = 1 << 20;
/// Most units that start each other.
const MAX_RUNNING: usize = 8;

/// Most starts of a unit: systemd refuses more in ten seconds.
const MAX_STARTS: u32 = 5;

/// A unit that was run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Done {
    /// Its file, as it was then.
    pub(in crate::import) text: String,
    is_active: bool,
    starts: u32,
}

/// A verb that starts units.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StartVerb {
    Start,
    Restart,
    ReloadOrRestart,
}

impl StartVerb {
    fn verb(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Restart => "restart",
            Self::ReloadOrRestart => "reload-or-restart",
        }
    }
}

/// Verbs that fail for units that a machine does not have, or that do not start.
const STATUS_OF_UNITS: [&str; 11] = [
    "condrestart",
    "disable",
    "force-reload",
    "reload",
    "reload-or-restart",
    "reset-failed",
    "restart",
    "start",
    "stop",
    "try-reload-or-restart",
    "try-restart",
];

/// Units of systemd that every boot starts, by links of the package that `systemctl disable` leaves alone.
const ALWAYS_STARTED: [&str; 6] = [
    "systemd-journald.service",
    "systemd-logind.service",
    "systemd-modules-load.service",
    "systemd-sysctl.service",
    "systemd-tmpfiles-setup.service",
    "systemd-udevd.service",
];

/// Targets of systemd that every machine has.
const TARGETS: [&str; 11] = [
    "basic.target",
    "local-fs.target",
    "network-online.target",
    "network.target",
    "paths.target",
    "remote-fs.target",
    "slices.target",
    "sockets.target",
    "swap.target",
    "sysinit.target",
    "timers.target",
];

/// Units whose end is the end of an installation: an image is one that was never started.
const CLOUD_INIT: [&str; 5] = ["cloud-init", "cloud-init-local", "cloud-init-main", "cloud-config", "cloud-final"];

impl Machine<'_> {
    pub(super) fn systemctl(&mut self, call: &mut Call<'_>) -> Outcome {
        let mut operands = Vec::new();
        let mut now = false;
        for word in call.args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()) {
            match word.as_str() {
                "--now" => now = true,
                "--no-block" | "--quiet" | "-q" | "--no-pager" => {}
                option if option.starts_with('-') => return Outcome::Unsupported(option.to_owned()),
                _ => operands.push(word),
            }
        }
        let Some((verb, units)) = operands.split_first() else { return Outcome::Unsupported("no command".to_owned()) };
        let Some(units) = units.iter().map(|name| unit_name(name)).collect::<Option<Vec<String>>>() else {
            return Outcome::Unsupported(words(b"a name of a unit in", call.args));
        };
        let link = |unit: &&String| call.files.known_link(format!("{UNITS}/{unit}").as_bytes()).is_some();
        if let Some(unit) = units.iter().find(link) {
            return Outcome::Unsupported(format!("{unit}, which is a link,"));
        }
        let depends = (STATUS_OF_UNITS.contains(&verb.as_str()) || now)
            && !units.iter().all(|unit| self.is_own(&*call.files, unit));
        if depends && call.is_observed && !call.is_tolerated {
            return Outcome::Deferred("its exit status depends on the units of the running machine".to_owned());
        }
        match self.systemctl_verb(call, verb, units, now) {
            Outcome::Status(0) if depends => Outcome::Assumed,
            other => other,
        }
    }

    fn systemctl_verb(&mut self, call: &mut Call<'_>, verb: &str, units: Vec<String>, now: bool) -> Outcome {
        match verb {
            "daemon-reload" | "daemon-reexec" | "reset-failed" => self.dropped("no unit runs during the import"),
            "is-active" | "is-enabled" | "is-failed" | "is-system-running" | "status" | "show" | "cat"
            | "list-units" | "list-unit-files" => Outcome::Deferred("it queries the running machine".to_owned()),
            "reload" => self.reload(&*call.files, &units),
            "stop" => self.stop(&*call.files, &units),
            "mask" => self.mask(&*call.files, units),
            "disable" => self.disable(&*call.files, units, now),
            "enable" => self.enable(call, &units, now),
            "start" => self.start(call, &units, StartVerb::Start),
            "restart" => self.start(call, &units, StartVerb::Restart),
            "reload-or-restart" => self.start(call, &units, StartVerb::ReloadOrRestart),
            "condrestart" | "force-reload" | "try-reload-or-restart" | "try-restart" => {
                let is_active = |unit: &&String| self.effects.done.get(*unit).is_some_and(|done| done.is_active);
                let active: Vec<String> = units.iter().filter(is_active).cloned().collect();
                match active.is_empty() {
                    true => self.dropped("no unit runs during the import"),
                    false => self.start(call, &active, StartVerb::Restart),
                }
            }
            other => Outcome::Unsupported(other.to_owned()),
        }
    }

    /// Whether a unit is one of the profile.
    fn is_own(&self, files: &dyn Files, unit: &str) -> bool {
        self.effects.done.contains_key(unit) || files.destination(format!("{UNITS}/{unit}").as_bytes()).is_ok()
    }

    fn enable(&mut self, call: &mut Call<'_>, units: &[String], now: bool) -> Outcome {
        if let Some(unit) = units.iter().find(|unit| self.effects.masked.contains(*unit)) {
            return Outcome::Refused(format!("{unit} is masked"));
        }
        for unit in units {
            self.effects.disabled.remove(unit);
            self.effects.enabled.insert(unit.clone());
        }
        match if now { self.start(call, units, StartVerb::Start) } else { Outcome::Status(0) } {
            Outcome::Status(0) => {
                self.note(StatementClass::Baked, if now { "enabled; each boot starts it" } else { "enabled" })
            }
            other => other,
        }
    }

    /// The first boot starts units that are not stopped before.
    fn stop(&mut self, files: &dyn Files, units: &[String]) -> Outcome {
        if let Some(unit) = units.iter().find(|unit| self.running.contains(unit)) {
            return Outcome::Unsupported(format!("stop of {unit} while it runs"));
        }
        for unit in units {
            self.effects.started.retain(|started| started != unit);
            if let Some(done) = self.effects.done.get_mut(unit) {
                done.is_active = false;
            }
            if !self.is_own(files, unit) {
                self.effects.foreign_started.remove(unit);
                self.effects.foreign_stopped.insert(unit.clone());
            }
        }
        self.dropped("no unit runs during the import")
    }

    /// Each boot reads the configuration that a running unit would read again. The status says whether the unit runs.
    fn reload(&mut self, files: &dyn Files, units: &[String]) -> Outcome {
        for unit in units {
            let is_own = self.is_own(files, unit);
            let what = if self.running.contains(unit) {
                "while it runs"
            } else if self.effects.done.contains_key(unit) {
                ", which has run"
            } else if (is_own && !self.effects.started.contains(unit)) || self.effects.foreign_stopped.contains(unit) {
                ", which is not active"
            } else if is_own && !has_reload(files, unit) {
                ", which has no ExecReload="
            } else if let (false, Some(path)) = (is_own, foreign(files, unit)) {
                return Outcome::Unsupported(format!("reload of {unit}, whose file is {path},"));
            } else {
                continue;
            };
            return Outcome::Unsupported(format!(
                "reload of {unit}{}{what}",
                if what.starts_with(',') { "" } else { " " }
            ));
        }
        self.dropped("each boot reads the configuration")
    }

    fn mask(&mut self, files: &dyn Files, units: Vec<String>) -> Outcome {
        if let Some(unit) = units.iter().find(|unit| self.is_own(files, unit)) {
            return Outcome::Refused(format!("{unit} has a file in {UNITS}, and systemctl does not mask such units"));
        }
        for unit in units {
            self.effects.enabled.remove(&unit);
            self.effects.disabled.remove(&unit);
            self.effects.masked.insert(unit);
        }
        self.note(StatementClass::Baked, "masked")
    }

    fn disable(&mut self, files: &dyn Files, units: Vec<String>, now: bool) -> Outcome {
        if units.iter().all(|unit| unit.rsplit_once('.').is_some_and(|(name, _)| CLOUD_INIT.contains(&name))) {
            return self.dropped("machines read their user data with cloud-init");
        }
        if now {
            let outcome = self.stop(files, &units);
            if outcome != Outcome::Status(0) {
                return outcome;
            }
        }
        let mut is_done = true;
        for unit in units {
            self.effects.enabled.remove(&unit);
            if !self.effects.done.contains_key(&unit) && !self.running.contains(&unit) {
                self.effects.disabled.insert(unit);
                is_done = false;
            }
        }
        match is_done {
            true => self.dropped("it ran during the import, and is not in the image"),
            false => self.note(StatementClass::Baked, "disabled"),
        }
    }

    fn start(&mut self, call: &mut Call<'_>, units: &[String], start: StartVerb) -> Outcome {
        for unit in units {
            let outcome = self.start_one(&mut *call.files, unit, units, start);
            if outcome != Outcome::Status(0) {
                return outcome;
            }
        }
        Outcome::Status(0)
    }

    fn start_one(&mut self, files: &mut dyn Files, unit: &str, together: &[String], start: StartVerb) -> Outcome {
        if self.effects.masked.contains(unit) {
            return Outcome::Refused(format!("{unit} is masked"));
        }
        if self.running.iter().any(|running| running == unit) {
            return match start {
                StartVerb::Start => self.dropped("it is already running"),
                _ => Outcome::Unsupported(format!("{} of {unit} while it runs", start.verb())),
            };
        }
        let path = format!("{UNITS}/{unit}");
        if files.destination(path.as_bytes()).is_err() {
            return match foreign(files, unit) {
                Some(path) if self.effects.done.contains_key(unit) => {
                    Outcome::Unsupported(format!("{unit}, which was removed after its start, or is also {path},"))
                }
                Some(path) => Outcome::Unsupported(format!("{unit}, whose file is {path} and not {UNITS}/{unit},")),
                // A unit of the base is started by it.
                None => {
                    self.effects.foreign_stopped.remove(unit);
                    if !ALWAYS_STARTED.contains(&unit) {
                        self.effects.foreign_started.entry(unit.to_owned()).or_insert(start.verb());
                    }
                    self.dropped("each boot starts it if it is enabled")
                }
            };
        }
        let content = files.read(path.as_bytes(), LARGEST).ok().and_then(|text| String::from_utf8(text).ok());
        let Some(text) = content else { return Outcome::Unsupported(format!("{unit}, which is not UTF-8,")) };
        if let Some(done) = self.effects.done.get(unit) {
            if done.text != text {
                return Outcome::Unsupported(format!("{unit}, which was changed after its start,"));
            }
            if done.is_active && start == StartVerb::Start {
                return self.dropped("it is already active");
            }
            if done.starts >= MAX_STARTS {
                return Outcome::Unsupported(format!("{unit} for the sixth time, which systemd may refuse,"));
            }
        }
        match self.one_shot(&*files, unit, &text, together) {
            Ok(Some(service)) => self.run_service(files, unit, text, &service),
            Ok(None) => {
                if !self.effects.started.iter().any(|started| started == unit) {
                    self.effects.started.push(unit.to_owned());
                }
                let scripts =
                    self.deferred.iter().filter(|script| mentions(text.as_bytes(), script)).cloned().collect();
                self.leave(files, scripts);
                self.note(StatementClass::FirstBoot, "the first boot starts it after applying the settings")
            }
            Err(what) => Outcome::Unsupported(format!("{unit}: {what}")),
        }
    }

    /// The service if it is run here, with nothing of the profile that changes what its start does.
    fn one_shot(
        &self,
        files: &dyn Files,
        unit: &str,
        text: &str,
        together: &[String],
    ) -> Result<Option<OneShot>, String> {
        let file = UnitFile::parse(text)?;
        let Some(service) =
            file.one_shot()?.filter(|service| !service.commands.iter().any(|step| self.is_deferred(step)))
        else {
            return Ok(None);
        };
        if let Some(path) = amendment(files, unit) {
            return Err(format!("a unit whose start {path} changes"));
        }
        let is_own = |name: &str| self.is_own(files, name) || foreign(files, name).is_some();
        if let Some(other) = file.names("Unit", &["Requires", "Wants"], &is_own) {
            return Err(format!("a unit whose start also starts {other}, a unit of the profile,"));
        }
        let is_doubtful = |name: &str| self.effects.masked.contains(name) || !is_known(files, name);
        if let Some(other) = file.names("Unit", &["Requires"], &is_doubtful) {
            return Err(format!("a unit that requires {other}, which a machine may not have,"));
        }
        let is_ordered = |name: &str| name != unit && together.iter().any(|other| other == name);
        if let Some(other) = file.names("Unit", &["After", "Before"], &is_ordered) {
            return Err(format!("a start together with {other}, which the unit is ordered after or before,"));
        }
        let wants = |other: &&String| {
            let text = files.destination(format!("{UNITS}/{other}").as_bytes()).is_ok();
            let text = text.then(|| files.read(format!("{UNITS}/{other}").as_bytes(), LARGEST).ok()).flatten();
            // A unit that cannot be read may say so.
            let Ok(other) = UnitFile::parse(&String::from_utf8_lossy(&text.unwrap_or_default())) else { return true };
            other.names("Install", &["RequiredBy", "UpheldBy", "WantedBy"], &|name| name == unit).is_some()
        };
        if let Some(other) = self.effects.enabled.iter().find(wants) {
            return Err(format!("a unit whose start also starts {other}, a unit of the profile,"));
        }
        if service.has_environment {
            plain_environment(files)?;
        }
        Ok(Some(service))
    }

    fn is_deferred(&self, step: &[String]) -> bool {
        step.iter().any(|word| self.deferred.contains(word))
    }

    fn run_service(&mut self, files: &mut dyn Files, unit: &str, text: String, service: &OneShot) -> Outcome {
        if self.running.len() >= MAX_RUNNING {
            return Outcome::Refused("more than 8 units start each other".to_owned());
        }
        self.running.push(unit.to_owned());
        let outer = self.is_limited;
        self.is_limited |= service.has_timeout;
        let outcome = self.run_steps(files, unit, service);
        self.is_limited = outer;
        self.running.pop();
        let starts = self.effects.done.get(unit).map_or(0, |done| done.starts).saturating_add(1);
        self.effects.done.insert(unit.to_owned(), Done { text, is_active: service.remains, starts });
        match outcome {
            Outcome::Status(0) => self.note(StatementClass::Baked, "its commands ran during the import"),
            other => other,
        }
    }

    fn run_steps(&mut self, files: &mut dyn Files, unit: &str, service: &OneShot) -> Outcome {
        for step in &service.commands {
            if let Some(program) = step.first().filter(|program| lacks_interpreter(&*files, program)) {
                let what = format!("{unit}: {program}, which lacks the interpreter line (#!) that systemd needs,");
                return Outcome::Unsupported(what);
            }
            self.entries.extend(step.iter().cloned());
            let quoted: Vec<String> = step.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            let variables = if service.has_environment { assignments(&*files) } else { Vec::new() };
            let ran = self.shell(files, (unit, &quoted.join(" ")), variables, false);
            match self.nested(unit, ran) {
                Outcome::Status(0) => {}
                other => return other,
            }
        }
        Outcome::Status(0)
    }
}

/// Whether a program of the profile is a text that only a shell would run: the kernel does not.
fn lacks_interpreter(files: &dyn Files, program: &str) -> bool {
    let is_own = files.is_made(program.as_bytes());
    is_own && files.read(program.as_bytes(), SCRIPT).is_ok_and(|text| !text.starts_with(b"#!") && !has_token(&text))
}

/// Whether a unit of the profile can be reloaded.
fn has_reload(files: &dyn Files, unit: &str) -> bool {
    let text = files.read(format!("{UNITS}/{unit}").as_bytes(), LARGEST).unwrap_or_default();
    UnitFile::parse(&String::from_utf8_lossy(&text)).is_ok_and(|unit| unit.has("Service", "ExecReload"))
}

/// A file of the profile that a unit is made of, other than one in `/etc/systemd/system` by its name.
fn foreign(files: &dyn Files, unit: &str) -> Option<String> {
    let template = unit.split_once('@').zip(unit.rsplit_once('.'));
    let template = template.map(|((name, _), (_, kind))| format!("{name}@.{kind}"));
    let names = [Some(unit.to_owned()), template];
    let mut paths = std::iter::once(UNITS)
        .chain(PLACES)
        .flat_map(|place| names.iter().flatten().map(move |name| format!("{place}/{name}")));
    paths.find(|path| files.is_made(path.as_bytes()))
}

/// Whether every machine has a unit of the system, or the base image does.
fn is_known(files: &dyn Files, unit: &str) -> bool {
    TARGETS.contains(&unit)
        || ALWAYS_STARTED.contains(&unit)
        || PLACES.iter().any(|place| files.destination(format!("{place}/{unit}").as_bytes()).is_ok())
}

/// A directory of the profile that adds settings or dependencies to a unit.
fn amendment(files: &dyn Files, unit: &str) -> Option<String> {
    let (stem, kind) = unit.rsplit_once('.')?;
    let prefixes = stem.match_indices('-').map(|(at, _)| format!("{}-.{kind}.d", &stem[..at]));
    let own = ["d", "requires", "upholds", "wants"].map(|ending| format!("{unit}.{ending}"));
    let names: Vec<String> = own.into_iter().chain([format!("{kind}.d")]).chain(prefixes).collect();
    let mut paths =
        std::iter::once(UNITS).chain(PLACES).flat_map(|place| names.iter().map(move |name| format!("{place}/{name}")));
    paths.find(|path| files.is_made(path.as_bytes()))
}

/// Refuses an `/etc/environment` that systemd does not read as lines of `NAME=value`.
fn plain_environment(files: &dyn Files) -> Result<(), String> {
    let text = files.read(b"/etc/environment", LARGEST).unwrap_or_default();
    let is_odd = |line: &[u8]| line.trim_ascii() != line || line.iter().any(|byte| b"\"'\\".contains(byte));
    match text.split(|byte| *byte == b'\n').any(is_odd) {
        true => Err("an /etc/environment with quotes, backslashes or blanks around a line".to_owned()),
        false => Ok(()),
    }
}

/// The full name of a unit.
pub(in crate::import) fn unit_name(name: &str) -> Option<String> {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b":_.@-".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_inside) {
        return None;
    }
    Some(if name.contains('.') { name.to_owned() } else { format!("{name}.service") })
}
