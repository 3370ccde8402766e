//! Unit files as systemd parses them, and the services of `Type=oneshot` that an import can run exactly.

use crate::import::runtime::is_marked;

/// A unit file: its settings in order, each with its section.
pub(super) struct UnitFile {
    settings: Vec<(String, String, String)>,
}

/// A service that runs its commands once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OneShot {
    /// Commands in the order in which systemd runs them.
    pub(super) commands: Vec<Vec<String>>,
    /// Whether the unit stays active afterwards, so that starting it again does nothing.
    pub(super) remains: bool,
    /// Whether it reads `/etc/environment`.
    pub(super) has_environment: bool,
    /// Whether systemd ends its commands after some time.
    pub(super) has_timeout: bool,
}

/// Keys of `[Unit]` that change neither whether the commands run nor what they do.
const UNIT_KEYS: [&str; 7] =
    ["After", "Before", "DefaultDependencies", "Description", "Documentation", "Requires", "Wants"];
/// Keys of `[Service]` that do not change what its commands do, or that are looked at.
const SERVICE_KEYS: [&str; 8] = [
    "ExecStart",
    "ExecStartPre",
    "RemainAfterExit",
    "Restart",
    "RestartSec",
    "SyslogIdentifier",
    "TimeoutStartSec",
    "Type",
];
/// Values of `TimeoutStartSec=` for no limit.
const UNLIMITED: [&str; 3] = ["", "0", "infinity"];
/// Values of `Restart=` that do not matter to commands that succeed.
const RESTARTS: [&str; 5] = ["no", "on-abnormal", "on-abort", "on-failure", "on-watchdog"];
/// Values of `StandardOutput=` and `StandardError=` that write no file. Those of syslog are older names.
const OUTPUTS: [&str; 9] =
    ["inherit", "journal", "journal+console", "kmsg", "kmsg+console", "null", "syslog", "syslog+console", "tty"];

impl UnitFile {
    /// Reads a text. Comments are left out first, also between continued lines; a backslash at the end of a line continues it.
    /// A carriage return and a NUL also end a line of systemd, and are refused unless the line ends in CRLF.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.replace("\r\n", "\n").contains(['\r', '\0']) {
            return Err("a carriage return or a NUL in a unit".to_owned());
        }
        let (mut section, mut settings) = (String::new(), Vec::new());
        for line in logical_lines(text) {
            let line = line.trim();
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']).to_owned();
            } else if let Some((key, value)) = line.split_once('=') {
                settings.push((section.clone(), key.trim().to_owned(), value.trim().to_owned()));
            }
        }
        Ok(Self { settings })
    }

    fn section<'a>(&'a self, section: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let is_there = move |(of, ..): &&(String, String, String)| of == section;
        self.settings.iter().filter(is_there).map(|(_, key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether one of these keys of a section names a unit.
    pub(super) fn names(&self, section: &str, keys: &[&str], is_meant: &dyn Fn(&str) -> bool) -> Option<String> {
        let values = self.section(section).filter(|(key, _)| keys.contains(key)).map(|(_, value)| value);
        values.flat_map(str::split_ascii_whitespace).find(|name| is_meant(name)).map(str::to_owned)
    }

    /// Whether a key of a section has a value.
    pub(super) fn has(&self, section: &str, key: &str) -> bool {
        self.section(section).filter(|(name, _)| *name == key).last().is_some_and(|(_, value)| !value.is_empty())
    }

    /// The service that runs once; none for other units.
    pub(super) fn one_shot(&self) -> Result<Option<OneShot>, String> {
        if self.section("Service").filter(|(key, _)| *key == "Type").last() != Some(("Type", "oneshot")) {
            return Ok(None);
        }
        let other = |(key, value): (&str, &str)| Err(format!("{key}={value} in a unit that scripts start"));
        if let Some(setting) = self.section("Unit").find(|(key, _)| !UNIT_KEYS.contains(key)) {
            return other(setting);
        }
        let is_environment = |(key, value): &(&str, &str)| {
            *key == "EnvironmentFile" && value.trim_start_matches('-') == "/etc/environment"
        };
        let is_plain = |setting: &(&str, &str)| match setting {
            ("StandardError" | "StandardOutput", value) => OUTPUTS.contains(value),
            ("Restart", value) => RESTARTS.contains(value),
            ("RemainAfterExit", value) => boolean(value).is_some(),
            setting => SERVICE_KEYS.contains(&setting.0) || is_environment(setting),
        };
        if let Some(setting) = self.section("Service").find(|setting| !is_plain(setting)) {
            return other(setting);
        }
        let remains = self.section("Service").filter(|(key, _)| *key == "RemainAfterExit").last();
        let timeout = self.section("Service").filter(|(key, _)| *key == "TimeoutStartSec").last();
        let mut commands = self.commands("ExecStartPre")?;
        commands.extend(self.commands("ExecStart")?);
        Ok(Some(OneShot {
            commands,
            remains: remains.and_then(|(_, value)| boolean(value)).unwrap_or_default(),
            has_environment: self.section("Service").any(|setting| is_environment(&setting)),
            has_timeout: timeout.is_some_and(|(_, value)| !UNLIMITED.contains(&value)),
        }))
    }

    /// The commands of a key, of which an empty value takes back those before it.
    fn commands(&self, key: &str) -> Result<Vec<Vec<String>>, String> {
        let mut commands = Vec::new();
        for (_, command) in self.section("Service").filter(|(name, _)| *name == key) {
            if command.is_empty() {
                commands.clear();
                continue;
            }
            let is_plain = command.starts_with('/')
                && !command.contains(['"', '\'', '\\', '$', '%', ';'])
                && !is_marked(command.as_bytes());
            if !is_plain {
                return Err(format!("the command {}", vmbake_common::escape::line(command)));
            }
            commands.push(command.split_ascii_whitespace().map(str::to_owned).collect());
        }
        Ok(commands)
    }
}

/// Lines with those that continue them.
fn logical_lines(text: &str) -> Vec<String> {
    let (mut lines, mut continued) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        let joined = std::mem::take(&mut continued) + line;
        if joined.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1 {
            continued = joined[..joined.len().saturating_sub(1)].to_owned() + " ";
        } else {
            lines.push(joined);
        }
    }
    lines.push(continued);
    lines
}

/// A boolean of systemd.
fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(service: &str) -> Result<Option<Vec<Vec<String>>>, String> {
        let unit = format!("[Unit]\nAfter=a\n[Service]\n{service}[Install]\nWantedBy=multi-user.target\n");
        UnitFile::parse(&unit).and_then(|unit| unit.one_shot()).map(|unit| unit.map(|unit| unit.commands))
    }

    #[test]
    fn only_units_that_end_are_run() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (service, expected) in [
            ("Type=oneshot\nExecStart=/a b\n", Some(vec![words("/a b")])),
            ("Type = oneshot\nExecStart=/c\nExecStartPre=/a \\\n  b\n", Some(vec![words("/a b"), words("/c")])),
            ("Type=oneshot\r\nExecStart=/a \\\r\n b\r\n", Some(vec![words("/a b")])),
            ("Type=oneshot\nExecStart=/a\nExecStart=\nExecStart=/b\n", Some(vec![words("/b")])),
            (
                "Type=oneshot\n# note \\\nExecStart=/a\nExecStart=/b \\\n# note\n c\n",
                Some(vec![words("/a"), words("/b c")]),
            ),
            (
                "Type=oneshot\nStandardOutput=journal+console\nStandardError=inherit\nExecStart=/a\n",
                Some(vec![words("/a")]),
            ),
            ("# Type=oneshot\nExecStart=/a b\n", None),
            ("Type=oneshot\nType=simple\nExecStart=/a b\n", None),
            ("ExecStart=/a\n", None),
        ] {
            assert_eq!(steps(service), Ok(expected), "{service}");
        }
    }

    #[test]
    fn settings_that_change_what_runs_are_refused() {
        for service in [
            "User=a\n",
            "ExecStart=-/a\n",
            "ExecStart=/a $B\n",
            "ExecStart=/a '%n'\n",
            "Environment=A=b\n",
            "Restart=always\n",
            "RemainAfterExit=perhaps\n",
            "# a\rUser=a\n",
            "# a\0User=a\n",
            "ExecStart=/a\r\r\n",
            "StandardOutput=file:/a\n",
            "StandardOutput=append:/a\n",
            "StandardError=truncate:/a\n",
            "StandardError=fd:a\n",
            "StandardOutput=socket\n",
            "[Unit]\nConditionPathExists=/a\n",
            "[Unit]\nAssertPathExists=/a\n",
            "[Unit]\nOnSuccess=b.service\n",
            "[Unit]\nBindsTo=basic.target\n",
        ] {
            assert!(steps(&format!("Type=oneshot\n{service}")).is_err(), "{service}");
        }
    }
}
