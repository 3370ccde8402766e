//! `[Install]` sections of units (systemd.unit(5)): the bytes of a unit and its drop-ins in, the links of `systemctl enable` of systemd 257
//! out.
//!
//! Lines that systemctl ignores with a warning are ignored, and listed in [`UnitInstall::ignored`]. Lines at which it fails are errors.

mod names;
mod syntax;

pub use names::{UnitForm, unit_form};
pub(crate) use syntax::{Statement, statements};

use std::fmt;

use vmbake_common::hint::Hint;

use names::{Kind, alias, specifiers};
use syntax::{assignments, plain_words, quoted_words};

/// The error in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct InstallFault {
    pub place: Location,
    pub message: String,
}

impl Hint for InstallFault {}

/// A line of a unit or of a drop-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub path: String,
    /// Counted from 1.
    pub line: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}

/// A link that enabling a unit makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallLink {
    /// Its path below the directory of the administrator's units.
    pub name: String,
    /// Whether it is another name of the unit, by `Alias`.
    pub is_alias: bool,
    pub place: Location,
}

#[derive(Debug)]
struct Word {
    text: String,
    place: Location,
}

/// The settings of the `[Install]` sections of one unit.
#[derive(Debug)]
pub struct UnitInstall {
    unit: String,
    aliases: Vec<Word>,
    /// By `WantedBy`, `RequiredBy` and `UpheldBy`.
    dependents: [Vec<Word>; 3],
    also: Vec<String>,
    default_instance: Option<String>,
    ignored: Vec<InstallFault>,
}

/// Settings that name units which have this one as a dependency, and the ends of directories for the links.
const DEPENDENTS: [(&str, &str); 3] = [("WantedBy", "wants"), ("RequiredBy", "requires"), ("UpheldBy", "upholds")];

impl UnitInstall {
    /// That of a unit without any file, which may be a template or an instance.
    pub fn new(unit: &str) -> Self {
        Self {
            unit: unit.to_owned(),
            aliases: Vec::new(),
            dependents: [const { Vec::new() }; 3],
            also: Vec::new(),
            default_instance: None,
            ignored: Vec::new(),
        }
    }

    /// Adds the settings of the unit's file or of a drop-in.
    pub fn read(&mut self, path: &str, bytes: &[u8]) -> Result<(), InstallFault> {
        let place = |line| Location { path: path.to_owned(), line };
        let (assignments, ignored) =
            assignments(bytes).map_err(|(line, message)| InstallFault { place: place(line), message })?;
        let ignored = ignored.into_iter().map(|(line, message)| InstallFault { place: place(line), message });
        self.ignored.extend(ignored);
        for (line, key, value) in assignments {
            self.assign(&key, &value, &place(line))?;
        }
        Ok(())
    }

    fn assign(&mut self, key: &str, value: &str, place: &Location) -> Result<(), InstallFault> {
        let fault = |message: String| InstallFault { place: place.clone(), message };
        if let Some(index) = DEPENDENTS.iter().position(|(name, _)| *name == key) {
            match quoted_words(value) {
                Some(words) => add(&mut self.dependents[index], words, place),
                None => self.ignored.push(fault(format!("{key}={value} has an unclosed quote"))),
            }
            return Ok(());
        }
        match key {
            "Alias" if !Kind::of(&self.unit).is_some_and(Kind::may_alias) => {
                self.ignored.push(fault("Alias= is not supported for units of this type".to_owned()));
            }
            "Alias" => match quoted_words(value) {
                Some(words) => add(&mut self.aliases, words, place),
                None => self.ignored.push(fault(format!("Alias={value} has an unclosed quote"))),
            },
            "Also" => {
                for word in plain_words(value) {
                    let name = self.expand(&word).filter(|name| unit_form(name).is_some());
                    self.also.push(name.ok_or_else(|| fault(invalid("Also", &word)))?);
                }
            }
            "DefaultInstance" => match unit_form(&self.unit) {
                Some(UnitForm::Template) => {
                    let instance = self.expand(value).filter(|name| name.is_empty() || names::is_instance(name));
                    let instance = instance.ok_or_else(|| fault(invalid("DefaultInstance", value)))?;
                    self.default_instance = (!instance.is_empty()).then_some(instance);
                }
                Some(UnitForm::Instance) => {}
                _ => self.ignored.push(fault("DefaultInstance= is only supported for templates".to_owned())),
            },
            _ => self.ignored.push(fault(format!("unknown setting {key}= in [Install]"))),
        }
        Ok(())
    }

    /// Lines that systemctl ignores.
    pub fn ignored(&self) -> &[InstallFault] {
        &self.ignored
    }

    /// The units that are enabled together with this one.
    pub fn also(&self) -> &[String] {
        &self.also
    }

    /// Whether the unit itself can be enabled.
    pub fn has_rules(&self) -> bool {
        !self.aliases.is_empty()
            || self.default_instance.is_some()
            || self.dependents.iter().any(|words| !words.is_empty())
    }

    /// The links of this unit alone, unless one of them is at fault.
    pub fn links(&self) -> Result<Vec<InstallLink>, InstallFault> {
        self.each_link().collect()
    }

    /// Each link: systemctl makes the good ones even if others are at fault.
    pub fn each_link(&self) -> impl Iterator<Item = Result<InstallLink, InstallFault>> {
        let aliases = self.aliases.iter().filter_map(|word| self.alias(word).transpose());
        let name = self.instance();
        let words =
            self.dependents.iter().zip(DEPENDENTS).flat_map(|(words, key)| words.iter().map(move |word| (word, key)));
        aliases.chain(words.map(move |(word, key)| self.dependent(word, key, &name)))
    }

    fn alias(&self, Word { text, place }: &Word) -> Result<Option<InstallLink>, InstallFault> {
        let name = self.expand(text).and_then(|name| alias(&self.unit, &name));
        let name = name.ok_or_else(|| InstallFault { place: place.clone(), message: invalid("Alias", text) })?;
        Ok(name.map(|name| InstallLink { name, is_alias: true, place: place.clone() }))
    }

    fn dependent(
        &self,
        Word { text, place }: &Word,
        (key, end): (&str, &str),
        name: &str,
    ) -> Result<InstallLink, InstallFault> {
        let dependent = self.expand(text).and_then(|name| unit_form(&name).map(|form| (name, form)));
        let message = match dependent {
            Some((dependent, form)) if form == UnitForm::Template || unit_form(name) != Some(UnitForm::Template) => {
                let name = format!("{dependent}.{end}/{name}");
                return Ok(InstallLink { name, is_alias: false, place: place.clone() });
            }
            Some(_) => format!("{key}={text} needs an instance, but the template has no DefaultInstance="),
            None => invalid(key, text),
        };
        Err(InstallFault { place: place.clone(), message })
    }

    /// The unit, with the default instance if it is a template that has one.
    fn instance(&self) -> String {
        match (unit_form(&self.unit), &self.default_instance, self.unit.split_once("@.")) {
            (Some(UnitForm::Template), Some(instance), Some((prefix, kind))) => format!("{prefix}@{instance}.{kind}"),
            _ => self.unit.clone(),
        }
    }

    /// A word with its specifiers replaced; `None` if it has one that is unknown or that only a machine knows.
    fn expand(&self, word: &str) -> Option<String> {
        specifiers(word, &self.unit, &self.instance())
    }
}

/// Adds words to a list. An empty assignment makes it empty.
fn add(list: &mut Vec<Word>, words: Vec<String>, place: &Location) {
    if words.is_empty() {
        list.clear();
    }
    list.extend(words.into_iter().map(|text| Word { text, place: place.clone() }));
}

fn invalid(key: &str, value: &str) -> String {
    format!("{key}={value} is not a valid name for the unit")
}
