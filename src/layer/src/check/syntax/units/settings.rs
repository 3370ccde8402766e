//! Keys of the sections of units, and the kinds of their values.

use vmbake_common::spelling;

use super::super::MOST;
use super::{notes, values};

/// Sections, each with its keys and the kinds of their values. `?` after a kind allows an empty value. Printed by `tools/unit_settings.py`.
#[derive(Clone, Copy)]
pub(super) struct Table(pub(super) &'static str);

/// The settings of units.
pub(super) const UNITS: Table = Table(include_str!("settings.txt"));

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
    /// Judges an assignment in a section that systemd knows.
    pub(super) fn verdict(self, section: &str, key: &str, value: &str, specifiers: Specifiers) -> Verdict {
        if key.starts_with("X-") {
            return Verdict::Valid;
        }
        match self.keys(section).find(|(known, _)| *known == key) {
            None => Verdict::Unknown,
            Some((_, IGNORED)) => Verdict::Obsolete(format!("systemd ignores {key}=, which is obsolete")),
            Some((_, UNSUPPORTED)) => {
                Verdict::Ignored(format!("systemd ignores {key}= in [{section}]: units of this type do not support it"))
            }
            Some((_, kind)) => match values::fault(kind, value, specifiers != Specifiers::No) {
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
    pub(super) fn unknown(self, section: &str, key: &str, faults: usize) -> String {
        let hint = if faults < MOST { self.hint(section, key) } else { String::new() };
        format!("systemd ignores the unknown setting {key}= in [{section}]{hint}")
    }

    /// Another section with the key, or a similar key.
    fn hint(self, section: &str, key: &str) -> String {
        let mut others = self.sections().filter(|other| *other != section);
        match others.find(|other| self.keys(other).any(|(known, _)| known == key)) {
            Some(other) => format!("; it is a setting of [{other}]"),
            None => {
                let near = spelling::near(key, self.keys(section).map(|(known, _)| known));
                near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
            }
        }
    }

    pub(super) fn sections(self) -> impl Iterator<Item = &'static str> {
        self.0.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'))
    }

    /// The keys of a section with their kinds.
    fn keys(self, section: &str) -> impl Iterator<Item = (&'static str, &'static str)> + use<'_> {
        let is_header =
            move |line: &&str| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) != Some(section);
        let lines = self.0.lines().skip_while(is_header).skip(1).take_while(|line| !line.starts_with('['));
        lines.filter_map(|line| line.split_once(' '))
    }
}
