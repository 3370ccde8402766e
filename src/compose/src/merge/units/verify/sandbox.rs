//! Paths of the settings of a service (systemd.exec(5)) that are missing, or hidden from its programs.

use super::loaded::Loaded;
use super::{Fault, Image};
use vmbake_common::paths::is_at_or_below;
use vmbake_layer::{UnitSetting, is_true, unit_words};

/// Settings with paths that must exist unless `-` is before them.
const NEEDED: [&str; 5] = ["ReadWritePaths", "ReadOnlyPaths", "InaccessiblePaths", "ExecPaths", "NoExecPaths"];

/// Settings with `SOURCE:DESTINATION`.
const BINDS: [&str; 2] = ["BindPaths", "BindReadOnlyPaths"];

const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

const MISSING: &str = "create it with `directories` or `files` of a layer, with a file in /usr/lib/tmpfiles.d, or with StateDirectory= and its \
     like; with `-` before the path, systemd ignores that it is missing";
const CREDENTIAL: &str = "create it with `files` of a layer or in `first_boot`; SetCredential= sets a default";
const HIDDEN: &str =
    "use a path that the setting does not cover, such as one in /usr/local/bin or /opt, or change the setting";

impl Image<'_> {
    /// Paths without which the service does not start.
    pub(super) fn missing_paths(&self, unit: &Loaded) -> Vec<Fault> {
        if unit.kind() != "service" {
            return Vec::new();
        }
        let is_missing = |path: &str| {
            path.starts_with('/') && !path.contains(['%', '\\']) && !self.exists(path) && !self.made.has(path)
        };
        let mut found = Vec::new();
        let mut add = |setting: &UnitSetting, path: &str, hint| {
            if is_missing(path) {
                let message = format!("{}= needs {path}, which is not in the image", setting.key);
                let may_pass = self.made.is_mentioned(unit, setting, path);
                found.push(Fault::of(setting, message, hint).may_pass(may_pass));
            }
        };
        let root = unit.of_service("RootDirectory");
        root.into_iter().for_each(|setting| add(setting, &setting.value, MISSING));
        for setting in unit.list("Service", "EnvironmentFile") {
            if !setting.value.contains(['*', '?', '[']) {
                add(setting, &setting.value, MISSING);
            }
        }
        for setting in unit.list("Service", "LoadCredential") {
            let (name, source) = setting.value.split_once(':').unwrap_or_default();
            let mut defaults = unit.settings("Service").filter(|other| other.key.starts_with("SetCredential"));
            if !defaults.any(|other| other.value.split(':').next() == Some(name)) {
                add(setting, source, CREDENTIAL);
            }
        }
        if unit.has_root() {
            return found;
        }
        unit.of_service("WorkingDirectory").into_iter().for_each(|setting| add(setting, &setting.value, MISSING));
        for setting in NEEDED.iter().flat_map(|key| unit.list("Service", key)) {
            unit_words(&setting.value).iter().for_each(|word| add(setting, word.trim_start_matches('+'), MISSING));
        }
        for setting in BINDS.iter().flat_map(|key| unit.list("Service", key)) {
            for word in unit_words(&setting.value) {
                add(setting, word.split(':').next().unwrap_or_default(), MISSING);
            }
        }
        found
    }

    /// Programs and working directories that the sandbox of a service hides from it.
    pub(super) fn hidden_paths(&self, unit: &Loaded) -> Vec<Fault> {
        if unit.has_root() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for program in unit.programs().into_iter().filter(|program| !program.is_privileged) {
            let path = self.found(&program.path).unwrap_or_else(|| program.path.clone());
            let path = self.real(&path);
            let hidden = self.hides(unit, &path, true).map(|(setting, what)| (setting, what, path));
            if let Some((setting, what, path)) = hidden {
                let message = format!("it runs {path}, but {}={} {what}", setting.key, setting.value);
                found.push(Fault::of(self.own(program.setting, setting), message, HIDDEN));
            }
        }
        let directory = unit.of_service("WorkingDirectory").filter(|setting| setting.value.starts_with('/'));
        if let Some(setting) = directory
            && let Some((by, what)) = self.hides(unit, &self.real(&setting.value), false)
        {
            let message = format!("its working directory is {}, but {}={} {what}", setting.value, by.key, by.value);
            found.push(Fault::of(self.own(setting, by), message, HIDDEN));
        }
        found
    }

    /// Of two assignments that contradict each other, the one of a layer's own file.
    fn own<'a>(&self, first: &'a UnitSetting, second: &'a UnitSetting) -> &'a UnitSetting {
        let is_own = |setting: &UnitSetting| self.target.is_file_of_layer(&setting.place.path);
        if is_own(first) || !is_own(second) { first } else { second }
    }

    fn real(&self, path: &str) -> String {
        let real = self.target.tree.real_path(path.as_bytes(), true).ok().flatten();
        let real = real.and_then(|(real, _)| String::from_utf8(real).ok());
        // The root has an empty path.
        real.filter(|real| !real.is_empty()).unwrap_or_else(|| path.to_owned())
    }

    /// The setting that hides a path or forbids to execute it, and what it does.
    fn hides<'a>(&self, unit: &'a Loaded, path: &str, is_program: bool) -> Option<(&'a UnitSetting, String)> {
        let below = |dir: &str| is_at_or_below(path, dir.trim_end_matches('/')) && path != dir;
        let words = |key: &str| {
            let settings = unit.list("Service", key).into_iter();
            settings
                .flat_map(|setting| unit_words(&setting.value).into_iter().map(move |word| (setting, word)))
                .collect::<Vec<_>>()
        };
        let destination = |word: &str| {
            let mut parts = word.trim_start_matches('-').split(':');
            let source = parts.next().unwrap_or_default().to_owned();
            parts.next().filter(|part| part.starts_with('/')).map_or(source, str::to_owned)
        };
        let plain = |word: &str| self.real(word.trim_start_matches(['-', '+']));
        let mut binds = BINDS.iter().flat_map(|key| words(key)).map(|(_, word)| destination(&word));
        if binds.any(|dir| is_at_or_below(path, &dir)) {
            return None;
        }
        let home = unit.of_service("ProtectHome").filter(|setting| is_true(&setting.value) || setting.value == "tmpfs");
        if let Some((setting, dir)) = home.zip(HOMES.iter().find(|dir| below(dir))) {
            return Some((setting, format!("hides {dir}")));
        }
        let temporary =
            unit.of_service("PrivateTmp").filter(|setting| is_true(&setting.value) || setting.value == "disconnected");
        if let Some((setting, dir)) = temporary.zip(TEMPORARY.iter().find(|dir| below(dir))) {
            return Some((setting, format!("hides {dir}")));
        }
        let hidden = words("InaccessiblePaths").into_iter().map(|(setting, word)| (setting, plain(&word)));
        if let Some((setting, dir)) = hidden.into_iter().find(|(_, dir)| path == dir && is_program || below(dir)) {
            return Some((setting, format!("hides {dir}")));
        }
        let covered = words("TemporaryFileSystem")
            .into_iter()
            .map(|(setting, word)| (setting, destination(word.split(':').next().unwrap_or_default())));
        if let Some((setting, dir)) = covered.into_iter().find(|(_, dir)| below(dir)) {
            return Some((setting, format!("hides {dir}")));
        }
        let deepest = |key: &str| {
            let found = words(key).into_iter().map(|(setting, word)| (setting, plain(&word)));
            found.filter(|(_, dir)| path == dir || below(dir) || dir == "/").max_by_key(|(_, dir)| dir.len())
        };
        let (setting, dir) = deepest("NoExecPaths").filter(|_| is_program)?;
        let is_allowed = deepest("ExecPaths").is_some_and(|(_, allowed)| allowed.len() > dir.len());
        (!is_allowed).then(|| (setting, format!("forbids programs in {dir}")))
    }
}
