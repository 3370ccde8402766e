//! Keys of the sections of units, and the kinds of their values.

use vmbake_common::spelling;

use super::values;

/// Sections, each with its keys and the kinds of their values. `?` after a kind allows an empty value. Printed by `tools/unit_settings.py`.
#[derive(Clone, Copy)]
pub(super) struct Table(pub(super) &'static str);

/// The settings of units.
pub(super) const UNITS: Table = Table(include_str!("settings.txt"));

/// Settings that systemd knows but no longer applies.
const IGNORED: &str = "ignored";

/// What systemd does with an assignment.
pub(super) enum Verdict {
    Valid,
    /// systemd does not apply it any more.
    Obsolete(String),
    Ignored(String),
}

impl Table {
    /// Judges an assignment in a section that systemd knows, of a unit that may have an instance.
    pub(super) fn verdict(self, section: &str, key: &str, value: &str, has_instance: bool) -> Verdict {
        if key.starts_with("X-") {
            return Verdict::Valid;
        }
        match self.keys(section).find(|(known, _)| *known == key) {
            None => Verdict::Ignored(format!(
                "systemd ignores the unknown setting {key}= in [{section}]{}",
                self.hint(section, key)
            )),
            Some((_, IGNORED)) => Verdict::Obsolete(format!("systemd ignores {key}=, which is obsolete")),
            Some((_, kind)) => match values::fault(kind, value) {
                Some(expected) => Verdict::Ignored(format!("systemd ignores {key}={value}: expected {expected}")),
                None => match values::fault_without_instance(kind, value).filter(|_| !has_instance) {
                    Some(expected) => Verdict::Ignored(format!(
                        "systemd does not take {key}={value}: %i is empty in a unit without an instance: expected {expected}"
                    )),
                    None => Verdict::Valid,
                },
            },
        }
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
