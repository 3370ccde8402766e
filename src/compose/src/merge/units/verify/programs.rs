//! Programs that a service runs.

use super::loaded::Loaded;
use super::{Fault, Image};
use vmbake_layer::{UnitSetting, unit_commands};

/// Where systemd looks for a program without a directory.
const PATH: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

/// Commands whose failure makes the start fail.
const STARTING: [&str; 3] = ["ExecStartPre", "ExecStart", "ExecStartPost"];

const HINT: &str = "correct the path, or install the program with a layer; with `-` before the path, systemd ignores that it is missing";

/// A program with a path, and the assignment that runs it.
pub(super) struct Program<'a> {
    pub(super) setting: &'a UnitSetting,
    pub(super) path: String,
    /// Whether it runs as root and outside the sandbox of the service.
    pub(super) is_privileged: bool,
    /// Whether it runs as root, but in the sandbox.
    pub(super) is_root: bool,
}

impl Loaded<'_> {
    /// Programs that must run for the service to start; those whose names only the machine knows are left out.
    pub(super) fn programs(&self) -> Vec<Program<'_>> {
        if self.kind() != "service" {
            return Vec::new();
        }
        let settings = STARTING.iter().flat_map(|key| self.list("Service", key));
        let programs = settings.flat_map(|setting| {
            let commands = unit_commands(&setting.value)
                .into_iter()
                .filter(|command| !command.prefixes.contains('-') && !command.program.contains(['%', '$', '\\']));
            commands.map(move |command| Program {
                setting,
                is_privileged: command.prefixes.contains('+'),
                is_root: command.prefixes.contains('!')
                    || self.is_true("PermissionsStartOnly") && setting.key != "ExecStart",
                path: command.program,
            })
        });
        programs.collect()
    }
}

impl Image<'_> {
    /// The path of a program that is in the image.
    pub(super) fn found(&self, program: &str) -> Option<String> {
        match program.starts_with('/') {
            true => self.exists(program).then(|| program.to_owned()),
            false => PATH.iter().map(|dir| format!("{dir}/{program}")).find(|path| self.exists(path)),
        }
    }

    pub(super) fn missing_programs(&self, unit: &Loaded) -> Vec<Fault> {
        let programs = if unit.has_root() { Vec::new() } else { unit.programs() };
        let is_missing = |program: &Program| {
            self.found(&program.path).is_none() && !(program.path.starts_with('/') && self.made.has(&program.path))
        };
        let missing = programs.into_iter().filter(is_missing);
        missing
            .map(|Program { setting, path, .. }| {
                let may_pass = self.made.is_mentioned(unit, setting, &path);
                Fault::of(setting, format!("it runs {path}, which is not in the image"), HINT).may_pass(may_pass)
            })
            .collect()
    }
}
