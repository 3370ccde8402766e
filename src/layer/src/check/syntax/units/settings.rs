//! Keys of the sections of units, and the kinds of their values.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use vmbake_common::spelling;

use super::super::MOST;
use super::{notes, values};

/// Sections, each with its keys and the kinds of their values. `?` after a kind allows an empty value.
pub(super) struct Table(Vec<(&'static str, BTreeMap<&'static str, &'static str>)>);

/// The settings of units. Printed by `tools/unit_settings.py`.
pub(super) static UNITS: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("settings.txt")));

/// Settings that systemd knows but no longer applies.
const IGNORED: &str = "ignored";

/// Settings that systemd applies to other kinds of units only.
const UNSUPPORTED: &str = "unsupported";

/// What `%` stands for in values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Specifiers {
    /// Itself.
    No,
    /// Specifiers, of which those of an instance are empty.
    Plain,
    /// Specifiers of a unit that may have an instance.
    Instance,
}

/// What systemd does with an assignment.
pub(super) enum Verdict {
    Valid,
    /// systemd no longer applies it, or warns about it.
    Obsolete(String),
    Ignored(String),
    /// systemd does not know the setting.
    Unknown,
}

impl Table {
    /// Reads lines `[SECTION]`, each followed by lines `KEY KIND`.
    pub(super) fn read(text: &'static str) -> Self {
        let mut sections = Vec::<(&str, BTreeMap<&str, &str>)>::new();
        for line in text.lines() {
            match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                Some(section) => sections.push((section, BTreeMap::new())),
                None => {
                    let keys = sections.last_mut().map(|(_, keys)| keys);
                    keys.zip(line.split_once(' ')).into_iter().for_each(|(keys, (key, kind))| {
                        keys.entry(key).or_insert(kind);
                    });
                }
            }
        }
        Self(sections)
    }

    /// Judges an assignment in a section that systemd knows.
    pub(super) fn verdict(&self, section: &str, key: &str, value: &str, specifiers: Specifiers) -> Verdict {
        if key.starts_with("X-") {
            return Verdict::Valid;
        }
        match self.keys(section).and_then(|keys| keys.get(key).copied()) {
            None => Verdict::Unknown,
            Some(IGNORED) => Verdict::Obsolete(format!("systemd ignores {key}=, which is obsolete")),
            Some(UNSUPPORTED) => {
                Verdict::Ignored(format!("systemd ignores {key}= in [{section}]: units of this type do not support it"))
            }
            Some(kind) => match values::fault(kind, value, specifiers != Specifiers::No) {
                Some(expected) => {
                    let reason = notes::failure(section, key, value);
                    let reason = reason.unwrap_or_else(|| format!("systemd ignores {key}={value}"));
                    Verdict::Ignored(format!("{reason}: expected {expected}"))
                }
                None => match values::fault_without_instance(kind, value).filter(|_| specifiers == Specifiers::Plain) {
                    Some(expected) => Verdict::Ignored(format!(
                        "systemd does not take {key}={value}: %i is empty in a unit without an instance: expected {expected}"
                    )),
                    None => notes::warning(section, key, value).map_or(Verdict::Valid, Verdict::Obsolete),
                },
            },
        }
    }

    /// What systemd does with an unknown setting, and what may be meant unless there are many faults, as that takes long.
    pub(super) fn unknown(&self, section: &str, key: &str, faults: usize) -> String {
        let hint = if faults < MOST { self.hint(section, key) } else { String::new() };
        format!("systemd ignores the unknown setting {key}= in [{section}]{hint}")
    }

    /// Another section with the key, or a similar key.
    fn hint(&self, section: &str, key: &str) -> String {
        let mut others = self.sections().filter(|other| *other != section);
        match others.find(|other| self.keys(other).is_some_and(|keys| keys.contains_key(key))) {
            Some(other) => format!("; it is a setting of [{other}]"),
            None => {
                let near = spelling::near(key, self.keys(section).into_iter().flatten().map(|(known, _)| *known));
                near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
            }
        }
    }

    pub(super) fn sections(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// The keys of a section with their kinds.
    fn keys(&self, section: &str) -> Option<&BTreeMap<&'static str, &'static str>> {
        self.0.iter().find(|(name, _)| *name == section).map(|(_, keys)| keys)
    }
}
