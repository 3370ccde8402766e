//! A unit with its drop-ins: the assignments that count.

use vmbake_layer::{UnitSetting, is_true, unit_settings};

pub(super) struct Loaded<'a> {
    pub(super) name: &'a str,
    settings: Vec<UnitSetting>,
}

impl<'a> Loaded<'a> {
    pub(super) fn new(name: &'a str, files: &[(String, Vec<u8>)]) -> Self {
        Self { name, settings: unit_settings(files) }
    }

    /// The type, such as `service`.
    pub(super) fn kind(&self) -> &str {
        self.name.rsplit_once('.').map_or("", |(_, kind)| kind)
    }

    /// The name without its type.
    pub(super) fn stem(&self) -> &str {
        self.name.rsplit_once('.').map_or(self.name, |(stem, _)| stem)
    }

    /// The section of the type.
    pub(super) fn section(&self) -> String {
        let mut kind = self.kind().to_owned();
        kind.get_mut(..1).map(str::make_ascii_uppercase);
        kind
    }

    pub(super) fn settings(&self, section: &str) -> impl Iterator<Item = &UnitSetting> {
        self.settings.iter().filter(move |setting| setting.section == section)
    }

    /// The assignments of a list; an empty one takes back the earlier ones.
    pub(super) fn list(&self, section: &str, key: &str) -> Vec<&UnitSetting> {
        let found: Vec<&UnitSetting> = self.settings(section).filter(|setting| setting.key == key).collect();
        let start = found.iter().rposition(|setting| setting.value.is_empty()).map_or(0, |at| at + 1);
        found[start..].to_vec()
    }

    /// The assignment that counts, unless it is empty.
    pub(super) fn last(&self, section: &str, key: &str) -> Option<&UnitSetting> {
        self.list(section, key).pop()
    }

    /// The same of a service.
    pub(super) fn of_service(&self, key: &str) -> Option<&UnitSetting> {
        self.last("Service", key).filter(|_| self.kind() == "service")
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        self.of_service(key).is_some_and(|setting| is_true(&setting.value))
    }

    /// Any assignment of the section of the type, for faults of what is not there.
    pub(super) fn first(&self) -> Option<&UnitSetting> {
        let section = self.section();
        self.settings(&section).next().or_else(|| self.settings.first())
    }

    /// Whether the service has another root directory than the image.
    pub(super) fn has_root(&self) -> bool {
        ["RootDirectory", "RootImage"]
            .iter()
            .any(|key| self.of_service(key).is_some_and(|setting| setting.value != "/"))
    }
}
