//! Profiles of packages below `/usr/share/pam-configs`: fields with lines of modules.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use vmbake_shell::Files;

use super::{PROFILES, read};

/// A module whose profiles no longer count.
const GONE: &str = "pam_tally";

#[derive(Debug, Default)]
struct Profile {
    fields: BTreeMap<String, String>,
    conflicts: BTreeSet<String>,
    priority: i64,
}

/// All profiles, and their names in the order in which they apply.
pub(super) struct Profiles {
    all: BTreeMap<String, Profile>,
    pub(super) sorted: Vec<String>,
}

impl Profiles {
    pub(super) fn read(files: &dyn Files, is_13: bool) -> Result<Self, String> {
        let names = files.list(PROFILES.as_bytes()).map_err(|error| format!("{PROFILES}: {error}"))?;
        let mut all = BTreeMap::new();
        for name in names {
            let name = String::from_utf8(name).map_err(|_| format!("{PROFILES}: a name that is not UTF-8"))?;
            let is_copy = name.ends_with('~') || (name.len() > 2 && name.starts_with('#') && name.ends_with('#'));
            if is_copy {
                continue;
            }
            let path = format!("{PROFILES}/{name}");
            let text = read(files, &path)?.unwrap_or_default();
            let profile = parse(&text, is_13).ok_or_else(|| format!("{path}, which is not a profile"))?;
            all.extend(profile.map(|profile| (name, profile)));
        }
        let mut profiles = Self { sorted: all.keys().cloned().collect(), all };
        let mut sorted = std::mem::take(&mut profiles.sorted);
        profiles.sort(&mut sorted);
        profiles.sorted = sorted;
        Ok(profiles)
    }

    /// Sorts names: the highest priority first, then the last name.
    pub(super) fn sort(&self, names: &mut [String]) {
        names.sort_by_cached_key(|name| Reverse((self.all.get(name).map_or(0, |found| found.priority), name.clone())));
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    pub(super) fn is_default(&self, name: &str) -> bool {
        self.field(name, "Default") == "yes"
    }

    /// A field, or nothing.
    pub(super) fn field(&self, name: &str, field: &str) -> &str {
        self.all.get(name).and_then(|profile| profile.fields.get(field)).map_or("", String::as_str)
    }

    /// What people know the profiles by, in their order.
    pub(super) fn titles(&self) -> Vec<&str> {
        self.sorted.iter().map(|name| self.field(name, "Name")).collect()
    }

    /// Takes profiles out that another one excludes, and names both.
    pub(super) fn exclude(&self, enabled: &mut Vec<String>) -> Vec<String> {
        let mut pairs = Vec::new();
        let mut at = 0;
        while let Some(name) = enabled.get(at).cloned() {
            let excluded = self.all.get(&name).map(|profile| &profile.conflicts);
            for other in (0..enabled.len()).rev() {
                if excluded.is_some_and(|excluded| excluded.contains(&enabled[other])) {
                    let other = enabled.remove(other);
                    pairs.push(format!("{}, {}", self.field(&name, "Name"), self.field(&other, "Name")));
                }
            }
            at += 1;
        }
        pairs
    }
}

/// Reads a profile. `Some(None)` for one that does not count, `None` for a text that is none.
fn parse(text: &str, is_13: bool) -> Option<Option<Profile>> {
    let (mut profile, mut current, mut counts) = (Profile::default(), None, true);
    for line in text.split_inclusive('\n') {
        if let Some((name, value)) = header(line) {
            let name = name.strip_suffix("-Final").unwrap_or(name).to_owned();
            if name == "Conflicts" {
                profile.conflicts.extend(value.split(", ").map(str::to_owned));
            } else {
                profile.fields.insert(name.clone(), value.to_owned());
            }
            current = Some(name);
            continue;
        }
        let line = line.trim_matches(|char: char| char.is_ascii_whitespace());
        let field = current.as_ref().filter(|name| *name != "Conflicts")?;
        let field = profile.fields.get_mut(field)?;
        if !line.is_empty() && line != "0" {
            *field = format!("{field}\n{line}");
        }
        counts &= !field.contains(GONE);
        *field = field.trim_start_matches(|char: char| char.is_ascii_whitespace()).to_owned();
    }
    let only = profile.fields.get("Session-Interactive-Only");
    if only.is_none_or(|value| is_13 && value != "yes") {
        for end in ["-Type", "", "-Initial"] {
            if let Some(value) = profile.fields.get(&format!("Session{end}")).cloned() {
                profile.fields.insert(format!("Session-noninteractive{end}"), value);
            }
        }
    }
    profile.priority = match profile.fields.get("Priority") {
        Some(value) => value.trim().parse().ok()?,
        None => 0,
    };
    Some(counts.then_some(profile))
}

/// `NAME: VALUE`
fn header(line: &str) -> Option<(&str, &str)> {
    let end = line.find(|char: char| char.is_ascii_whitespace())?;
    let (word, rest) = line.split_at(end);
    let name = word.strip_suffix(':').filter(|name| !name.is_empty())?;
    let value = rest.trim_start_matches(|char: char| char.is_ascii_whitespace());
    Some((name, value.strip_suffix('\n').unwrap_or(value)))
}
