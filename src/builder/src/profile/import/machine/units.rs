//! `systemctl` of a script. Units that only run scripts once are run here, when they are started; others are enabled, and started by the
//! machine.

use vmbake_shell::{Call, Files, Outcome};

use super::{Machine, words};
use crate::profile::import::report::StatementClass;
use crate::profile::import::runtime::is_marked;

/// Where profiles put units.
pub(in crate::profile::import) const UNITS: &str = "/etc/systemd/system";
/// Largest unit, in bytes.
const LARGEST: usize = 64 << 10;
/// Most units that start each other.
const MAX_RUNNING: usize = 8;

/// Verbs that fail for units that a machine does not have, or that do not start.
const STATUS_OF_UNITS: [&str; 8] =
    ["disable", "kill", "reload", "reset-failed", "restart", "start", "stop", "try-restart"];

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
            "daemon-reload" | "daemon-reexec" | "reset-failed" => self.dropped("nothing runs yet"),
            "is-active" | "is-enabled" | "is-failed" | "is-system-running" | "status" | "show" | "cat"
            | "list-units" | "list-unit-files" => Outcome::Deferred("it asks the running machine".to_owned()),
            "stop" | "kill" | "reload" | "try-restart" => self.dropped("nothing runs yet"),
            "mask" => {
                self.effects.masked.extend(units);
                self.note(StatementClass::Baked, "masked")
            }
            "disable" => self.disable(units),
            "enable" => {
                self.effects.enabled.extend(units.iter().cloned());
                match if now { self.start(call, &units) } else { Outcome::Status(0) } {
                    Outcome::Status(0) => {
                        self.note(StatementClass::Baked, if now { "enabled; each boot starts it" } else { "enabled" })
                    }
                    other => other,
                }
            }
            "start" | "restart" => self.start(call, &units),
            other => Outcome::Unsupported(other.to_owned()),
        }
    }

    /// Whether a unit is one of the profile.
    fn is_own(&self, files: &dyn Files, unit: &str) -> bool {
        self.effects.done.contains(unit) || files.destination(format!("{UNITS}/{unit}").as_bytes()).is_ok()
    }

    fn disable(&mut self, units: Vec<String>) -> Outcome {
        if units.iter().all(|unit| unit.rsplit_once('.').is_some_and(|(name, _)| CLOUD_INIT.contains(&name))) {
            return self.dropped("cloud-init brings the user data of a machine");
        }
        if units.iter().all(|unit| self.effects.done.contains(unit) || self.running.contains(unit)) {
            return self.dropped("it is done, and not part of the image");
        }
        self.effects.disabled.extend(units);
        self.note(StatementClass::Baked, "disabled")
    }

    fn start(&mut self, call: &mut Call<'_>, units: &[String]) -> Outcome {
        for unit in units {
            let outcome = self.start_one(&mut *call.files, unit);
            if outcome != Outcome::Status(0) {
                return outcome;
            }
        }
        Outcome::Status(0)
    }

    fn start_one(&mut self, files: &mut dyn Files, unit: &str) -> Outcome {
        if self.running.iter().any(|running| running == unit) || self.effects.done.contains(unit) {
            return self.dropped("it runs, or did");
        }
        let path = format!("{UNITS}/{unit}");
        // A unit of the base is started by it.
        let is_own = files.destination(path.as_bytes()).is_ok();
        let content = is_own.then(|| files.read(path.as_bytes(), LARGEST).ok()).flatten();
        let Some(text) = content.and_then(|text| String::from_utf8(text).ok()) else {
            return self.dropped("each boot starts it");
        };
        let steps = match steps(&text) {
            Ok(Some(steps)) if !steps.iter().any(|step| self.is_deferred(step)) => steps,
            Ok(_) => {
                if !self.effects.started.iter().any(|started| started == unit) {
                    self.effects.started.push(unit.to_owned());
                }
                return self.note(StatementClass::FirstBoot, "it is started when the machine has its settings");
            }
            Err(what) => return Outcome::Unsupported(format!("{unit}: {what}")),
        };
        if self.running.len() >= MAX_RUNNING {
            return Outcome::Refused("more than 8 units start each other".to_owned());
        }
        self.running.push(unit.to_owned());
        let outcome = self.run_steps(files, unit, &steps);
        self.running.pop();
        self.effects.done.insert(unit.to_owned());
        match outcome {
            Outcome::Status(0) => self.note(StatementClass::Baked, "done here, line by line"),
            other => other,
        }
    }

    fn is_deferred(&self, step: &[String]) -> bool {
        step.iter().any(|word| self.deferred.contains(word))
    }

    fn run_steps(&mut self, files: &mut dyn Files, unit: &str, steps: &[Vec<String>]) -> Outcome {
        for step in steps {
            self.entries.extend(step.iter().cloned());
            let quoted: Vec<String> = step.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            match self.shell(files, unit, &quoted.join(" ")) {
                Ok((0, _)) => {}
                Ok((status, stderr)) => {
                    self.stderr = stderr;
                    self.is_broken = true;
                    return Outcome::Refused(format!("{unit} fails with status {status}"));
                }
                Err(error) => {
                    // The first one knows best.
                    self.failure.get_or_insert(*error);
                    return Outcome::Refused(format!("{unit} is given up"));
                }
            }
        }
        Outcome::Status(0)
    }
}

/// The full name of a unit.
pub(in crate::profile::import) fn unit_name(name: &str) -> Option<String> {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b":_.@-".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_inside) {
        return None;
    }
    Some(if name.contains('.') { name.to_owned() } else { format!("{name}.service") })
}

/// Keys of a service that do not change what its commands do, or that are looked at.
const PLAIN_KEYS: [&str; 10] = [
    "ExecStart",
    "ExecStartPre",
    "RemainAfterExit",
    "Restart",
    "RestartSec",
    "StandardError",
    "StandardOutput",
    "SyslogIdentifier",
    "TimeoutStartSec",
    "Type",
];

/// The commands of a unit that runs once and ends; none for other units.
pub(in crate::profile::import) fn steps(unit: &str) -> Result<Option<Vec<Vec<String>>>, String> {
    let text = unit.replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let (mut section, mut keys) = ("", Vec::new());
    for line in lines {
        if line.starts_with('[') {
            section = line;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| section == "[Service]") {
            keys.push((key.trim(), value.trim()));
        }
    }
    if !keys.contains(&("Type", "oneshot")) {
        return Ok(None);
    }
    let is_plain = |(key, value): &&(&str, &str)| {
        PLAIN_KEYS.contains(key) || (*key == "EnvironmentFile" && value.trim_start_matches('-') == "/etc/environment")
    };
    if let Some((key, value)) = keys.iter().find(|key| !is_plain(key)) {
        return Err(format!("{key}={value} of a unit that is started"));
    }
    let commands = keys.iter().filter(|(key, value)| key.starts_with("Exec") && !value.is_empty());
    let plain = |(_, command): &(&str, &str)| {
        let is_plain = command.starts_with('/')
            && !command.contains(['"', '\'', '\\', '$', '%', ';'])
            && !is_marked(command.as_bytes());
        let words = command.split_ascii_whitespace().map(str::to_owned).collect();
        is_plain.then_some(words).ok_or_else(|| format!("the command {}", crate::escape::line(command)))
    };
    commands.map(plain).collect::<Result<Vec<_>, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_units_that_end_are_run() {
        let unit =
            |service: &str| format!("[Unit]\nAfter=a\n[Service]\n{service}[Install]\nWantedBy=multi-user.target\n");
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (service, expected) in [
            ("Type=oneshot\nExecStart=/a b\n", Ok(Some(vec![words("/a b")]))),
            ("Type = oneshot\nExecStartPre=/a \\\n  b\nExecStart=/c\n", Ok(Some(vec![words("/a b"), words("/c")]))),
            ("# Type=oneshot\nExecStart=/a b\n", Ok(None)),
            ("ExecStart=/a\n", Ok(None)),
        ] {
            assert_eq!(steps(&unit(service)), expected, "{service}");
        }
        for service in ["User=a\n", "ExecStart=-/a\n", "ExecStart=/a $B\n", "ExecStart=/a '%n'\n", "Environment=A=b\n"]
        {
            assert!(steps(&unit(&format!("Type=oneshot\n{service}"))).is_err(), "{service}");
        }
    }
}
