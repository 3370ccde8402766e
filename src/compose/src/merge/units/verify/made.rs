//! What a machine may have in addition to the image: paths and units of the first boot, of tmpfiles.d(5) and of directory settings such as
//! `StateDirectory=`, and what programs of the layers may make.

use std::collections::BTreeSet;

use super::super::loaded::Names;
use super::loaded::Loaded;
use crate::merge::config::{Config, expand};
use crate::merge::finished::files_in;
use crate::merge::missing::is_made;
use crate::merge::place::Target;
use vmbake_common::glob::matches;
use vmbake_common::paths::is_at_or_below;
use vmbake_layer::{Layer, UnitSetting, hidden_by, unit_commands, unit_place, unit_words};

/// Settings that make directories, and where.
const DIRECTORIES: [(&str, &str); 5] = [
    ("RuntimeDirectory", "/run"),
    ("StateDirectory", "/var/lib"),
    ("CacheDirectory", "/var/cache"),
    ("LogsDirectory", "/var/log"),
    ("ConfigurationDirectory", "/etc"),
];

/// Words of texts that add accounts: commands, and keys of cloud-init.
const ADDING: [&str; 9] =
    ["useradd", "adduser", "groupadd", "addgroup", "usermod", "newusers", "homectl", "users:", "default_user:"];

/// Where cloud-init has its settings.
const CLOUD: [&str; 2] = ["/etc/cloud/cloud.cfg", "/etc/cloud/cloud.cfg.d"];

/// Directories that any program names.
const COMMON: [&str; 9] = [
    "/etc/systemd",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/var/cache",
    "/var/lib",
    "/var/log",
];

/// Types of tmpfiles.d(5) that make the path.
const MAKING: &str = "fFdDvqQpLcbC";

pub(super) struct Made<'a> {
    layers: &'a [Layer],
    /// Paths that exist on the machine.
    paths: BTreeSet<String>,
    /// Patterns of paths whose mode or owner changes on the machine, and whether what is below changes too.
    changed: Vec<(String, bool)>,
    /// Texts that may be those of programs, with the unit of which they are a command.
    texts: Vec<(String, Option<String>)>,
    /// Texts that may add accounts.
    accounts: Vec<String>,
}

impl<'a> Made<'a> {
    pub(super) fn find(target: &Target, layers: &'a [Layer], names: &Names) -> Self {
        let (paths, changed) = (BTreeSet::new(), Vec::new());
        let mut made = Self { layers, paths, changed, texts: Vec::new(), accounts: Vec::new() };
        made.read_tmpfiles(target);
        for unit in names.units().filter(|unit| unit.ends_with(".service")) {
            let loaded = Loaded::new(unit, &names.files(target, unit).unwrap_or_default());
            made.read_service(&loaded);
        }
        for plan in layers.iter().filter_map(|layer| layer.schema.first_boot.as_ref()) {
            let directories = plan.directories.keys().chain(plan.modes.keys()).chain(plan.optional_modes.keys());
            made.changed.extend(directories.map(|path| (path.clone(), false)));
            made.changed.extend(plan.files.iter().map(|file| (file.path.clone(), false)));
            let owned = plan.files.iter().filter(|file| file.directory.is_some());
            let owned = owned.filter_map(|file| file.path.rsplit_once('/'));
            made.changed.extend(owned.map(|(dir, _)| (dir.to_owned(), false)));
            made.texts.extend(plan.commands.iter().map(|command| (command.join(" "), None)));
        }
        for (path, file) in layers.iter().flat_map(|layer| &layer.files) {
            let text = String::from_utf8_lossy(&file.content).into_owned();
            if unit_place(path).is_none() {
                made.texts.push((text, None));
            }
        }
        made.texts.extend(deferred_scripts(target).into_iter().map(|text| (text, None)));
        let configs = files_in(target, CLOUD[1], &[".cfg"]);
        let configs = configs.iter().map(String::as_str).chain([CLOUD[0]]);
        made.accounts = configs.filter_map(|path| target.text(path).ok()).collect();
        made
    }

    fn read_tmpfiles(&mut self, target: &Target) {
        let configs = Config::all(target, "tmpfiles.d").unwrap_or_default();
        for (_, words) in configs.iter().flat_map(Config::lines).flatten() {
            let (Some(kind), Some(path)) = (words.first(), words.get(1).and_then(|path| expand(path))) else {
                continue;
            };
            if kind.starts_with(|kind| MAKING.contains(kind)) {
                self.paths.insert(path.trim_end_matches('/').to_owned());
            }
            let is_deep = kind.starts_with(['Z', 'A', 'R']);
            self.changed.push((path, is_deep));
        }
    }

    /// Directories that a service makes, and commands that may make something.
    fn read_service(&mut self, unit: &Loaded) {
        for (key, dir) in DIRECTORIES {
            for setting in unit.list("Service", key) {
                let names = unit_words(&setting.value).into_iter();
                let names = names.flat_map(|word| word.split(':').take(2).map(str::to_owned).collect::<Vec<_>>());
                self.paths.extend(names.map(|name| format!("{dir}/{}", name.trim_end_matches('/'))));
            }
        }
        let commands = unit.settings("Service").filter(|setting| setting.key.starts_with("Exec"));
        for setting in commands {
            // The programs themselves do not make what they are.
            let programs = unit_commands(&setting.value);
            let text =
                programs.iter().fold(setting.value.clone(), |text, command| text.replacen(&command.program, "", 1));
            self.texts.push((text, Some(format!("{} {}", unit.name, setting.key))));
        }
    }

    /// Whether a path is there on the machine, or is below what machines mount.
    pub(super) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let is_parent = |made: &String| is_at_or_below(made, path);
        let plans = self.layers.iter().filter_map(|layer| layer.schema.first_boot.as_ref());
        let beginning = |file: &str| file.split('{').next().filter(|begin| *begin != file).map(str::to_owned);
        let mut files = plans.flat_map(|plan| {
            plan.files.iter().map(|file| &file.path).chain(plan.blocks.iter().map(|block| &block.path))
        });
        is_made(self.layers, path)
            || hidden_by(&format!("{path}/x")).is_some()
            || self.paths.iter().any(is_parent)
            || files
                .any(|file| is_at_or_below(file, path) || beginning(file).is_some_and(|begin| path.starts_with(&begin)))
    }

    /// Whether the first boot writes a unit.
    pub(super) fn has_unit(&self, unit: &str) -> bool {
        let plans = self.layers.iter().filter_map(|layer| layer.schema.first_boot.as_ref());
        let mut names = plans.flat_map(|plan| {
            let files = plan.files.iter().filter_map(|file| file.path.rsplit_once('/').map(|(_, name)| name));
            files.chain(plan.received.keys().map(String::as_str))
        });
        names.any(|name| name == unit || name.contains('{'))
    }

    /// Whether the mode or owner of a path may be another one on the machine.
    pub(super) fn changes(&self, path: &str) -> bool {
        let is_changed = |(pattern, is_deep): &(String, bool)| {
            matches(pattern.as_bytes(), path.as_bytes())
                || *is_deep && is_at_or_below(path, pattern.trim_end_matches('/'))
        };
        self.changed.iter().any(is_changed)
    }

    /// Whether a program of the layers names a path, or a directory above it, and so may make it. `setting` is the assignment of the unit
    /// that needs it.
    pub(super) fn is_mentioned(&self, unit: &Loaded, setting: &UnitSetting, path: &str) -> bool {
        // systemd reads these before it runs any command of the unit.
        let is_early = ["EnvironmentFile", "LoadCredential"].contains(&setting.key.as_str());
        let is_other = |by: &Option<String>| {
            let by = by.as_deref().unwrap_or_default();
            by.split(' ').next() != Some(unit.name) || !is_early && by != format!("{} {}", unit.name, setting.key)
        };
        let mut texts = self.texts.iter().filter(|(_, by)| is_other(by)).map(|(text, _)| text);
        texts.any(|text| above(path).any(|name| has_word(text, name)))
    }

    /// Whether a program of the layers, or cloud-init, may add an account.
    pub(super) fn may_add_account(&self, name: &str) -> bool {
        let texts = self.texts.iter().map(|(text, _)| text).chain(&self.accounts);
        let mut adding = texts.filter(|text| ADDING.iter().any(|word| text.contains(word)));
        adding.any(|text| has_word(text, name))
    }
}

/// The scripts of packages that the first boot configures.
fn deferred_scripts(target: &Target) -> Vec<String> {
    let status = target.text("/var/lib/dpkg/status").unwrap_or_default();
    let unpacked = status.split("\n\n").filter(|stanza| stanza.contains("\nStatus: install ok unpacked\n"));
    let field = |stanza: &str, name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let paths = unpacked.flat_map(|stanza| {
        let package = field(stanza, "Package: ").unwrap_or_default();
        let arch = field(stanza, "Architecture: ").unwrap_or_default();
        [package.clone(), format!("{package}:{arch}")].map(|name| format!("/var/lib/dpkg/info/{name}.postinst"))
    });
    paths.filter_map(|path| target.text(&path).ok()).collect()
}

/// A path and the directories above it, without those of one name, such as `/opt`.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.skip(2).filter_map(|at| path.get(..at)).filter(|dir| !COMMON.contains(dir))
}

/// Whether a text has a name or path that is not a part of a longer name.
fn has_word(text: &str, word: &str) -> bool {
    let is_char = |next: char| next.is_alphanumeric() || "_-.".contains(next);
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(is_char) && !after.starts_with(is_char)
    })
}
