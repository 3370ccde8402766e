//! dpkg's status file, `/var/lib/dpkg/status` (deb822(5)), in the order and format in which dpkg writes it.

use std::collections::BTreeMap;

use vmbake_common::message;
use vmbake_disk::tree::Kind;

use super::place::Target;
use super::{DatabaseFault, MergeError};
use crate::stage::{Control, Deb};

pub(super) const STATUS: &str = "/var/lib/dpkg/status";
const STATUS_OLD: &str = "/var/lib/dpkg/status-old";
/// Directory of changes that dpkg has not written to the status file yet: files whose names are numbers.
const UPDATES: &str = "/var/lib/dpkg/updates";

/// The order in which dpkg writes the fields that it knows; all others follow in the order of the control file.
const FIELDS: [&str; 28] = [
    "Package",
    "Essential",
    "Protected",
    "Status",
    "Priority",
    "Section",
    "Installed-Size",
    "Origin",
    "Maintainer",
    "Bugs",
    "Architecture",
    "Multi-Arch",
    "Source",
    "Version",
    "Config-Version",
    "Replaces",
    "Provides",
    "Depends",
    "Pre-Depends",
    "Recommends",
    "Suggests",
    "Breaks",
    "Conflicts",
    "Enhances",
    "Conffiles",
    "Description",
    "Triggers-Pending",
    "Triggers-Awaited",
];

/// The packages of a status file, by name and architecture, in the file's text.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    stanzas: BTreeMap<(String, String), (Control, String)>,
    /// Whether the file does not say all of it yet.
    changed: bool,
}

impl Status {
    /// Reads the status file of the tree.
    pub(super) fn read(target: &Target) -> Result<Self, MergeError> {
        check_finished(target)?;
        let mut stanzas = BTreeMap::new();
        let text = target.text_or_empty(STATUS)?;
        if !text.is_empty() && !text.ends_with('\n') {
            return Err(MergeError::Message(message!("{STATUS}: ends inside a line, as dpkg never writes it")));
        }
        for text in text.split("\n\n").filter(|text| !text.trim().is_empty()) {
            let control = Control::parse(text).map_err(|fault| damaged(DatabaseFault::Control(fault)))?;
            let key = key(&control);
            if key.0.is_empty() {
                return Err(damaged(DatabaseFault::Stanza));
            }
            stanzas.insert(key, (control, text.trim_end().to_owned()));
        }
        Ok(Self { stanzas, changed: false })
    }

    /// All stanzas, by name and architecture: fields and text.
    pub(super) fn stanzas(&self) -> impl Iterator<Item = (&Control, &str)> {
        self.stanzas.values().map(|(control, text)| (control, text.as_str()))
    }

    /// The control fields of every package whose programs can be used.
    pub(super) fn installed(&self) -> impl Iterator<Item = &Control> {
        let stanzas = self.stanzas.values().map(|(control, _)| control);
        stanzas.filter(|control| matches!(state(control), "installed" | "triggers-pending"))
    }

    /// The control fields of every package of which files are there, whether it can be used or not.
    pub(super) fn unpacked(&self) -> impl Iterator<Item = &Control> {
        let stanzas = self.stanzas.values().map(|(control, _)| control);
        stanzas.filter(|control| !matches!(state(control), "not-installed" | "config-files"))
    }

    /// The packages of that name that are there, or were and left something, whatever their architectures.
    pub(super) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Control> {
        let stanzas = self.stanzas.iter().filter(move |((found, _), _)| found == name).map(|(_, (control, _))| control);
        stanzas.filter(|control| state(control) != "not-installed")
    }

    /// The error about a package that is neither installed nor gone: dpkg would not take it for a new one.
    pub(super) fn unfinished(control: &Control) -> MergeError {
        let package = control.get("Package").unwrap_or_default().to_owned();
        let state = state(control).to_owned();
        damaged(DatabaseFault::Unfinished { package, removed: state == "installed", state })
    }

    /// A package by the name that dpkg gives its files below `info`: with or without architecture.
    pub(super) fn package(&self, stem: &str) -> Option<&Control> {
        let (name, arch) = stem.split_once(':').map_or((stem, None), |(name, arch)| (name, Some(arch)));
        let mut found = self.stanzas.iter().filter(|((found, _), _)| found == name);
        found.find(|((_, found), _)| arch.is_none_or(|arch| arch == found)).map(|(_, (control, _))| control)
    }

    /// Adds a package in the place of `old`: its files are there, its postinst has still to run.
    pub(super) fn add(&mut self, deb: &Deb, conffiles: String, old: Option<&Control>) -> Result<(), MergeError> {
        let mut fields: Vec<(String, String)> = deb.control.fields().to_vec();
        fields.push(("Status".to_owned(), "install ok unpacked".to_owned()));
        if !conffiles.is_empty() {
            fields.push(("Conffiles".to_owned(), conffiles));
        }
        if let Some(old) = old {
            // A version that says nothing about these has what the one before had.
            for name in ["Section", "Priority"] {
                let is_set = fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
                if let Some(value) = old.get(name).filter(|_| !is_set) {
                    fields.push((name.to_owned(), value.to_owned()));
                }
            }
            self.stanzas.remove(&key(old));
            // What its postinst gets to know.
            fields.push(("Config-Version".to_owned(), old.get("Version").unwrap_or_default().to_owned()));
        }
        self.set(fields)
    }

    /// Puts a package on hold (dpkg(1)), if it is there.
    pub(super) fn hold(&mut self, name: &str) -> Result<bool, MergeError> {
        let is_there = |control: &Control| !matches!(state(control), "not-installed" | "config-files");
        let stanzas = self.stanzas.iter().filter(|((found, _), (control, _))| found == name && is_there(control));
        let found: Vec<_> = stanzas.map(|(_, (control, _))| control.fields().to_vec()).collect();
        for mut fields in found.iter().cloned() {
            if let Some((_, value)) = fields.iter_mut().find(|(name, _)| name == "Status") {
                let rest = value.split_once(' ').map_or("ok installed", |(_, rest)| rest).to_owned();
                *value = format!("hold {rest}");
            }
            self.set(fields)?;
        }
        Ok(!found.is_empty())
    }

    /// Sets the whole field `Status` of a package.
    pub(super) fn set_status(&mut self, stem: &str, status: &str) -> Result<(), MergeError> {
        let Some(control) = self.package(stem) else { return Ok(()) };
        let mut fields = control.fields().to_vec();
        for (_, value) in fields.iter_mut().filter(|(name, _)| name == "Status") {
            status.clone_into(value);
        }
        self.set(fields)
    }

    /// Forgets a package.
    pub(super) fn remove(&mut self, control: &Control) {
        self.changed |= self.stanzas.remove(&key(control)).is_some();
    }

    /// The postinst of a package has run.
    pub(super) fn configured(&mut self, stem: &str) -> Result<(), MergeError> {
        let Some(control) = self.package(stem) else { return Ok(()) };
        let mut fields = control.fields().to_vec();
        fields.retain(|(name, _)| name != "Config-Version");
        set_state(&mut fields, "installed");
        self.set(fields)
    }

    /// Leaves a trigger to a package of the base: dpkg runs its postinst when it configures what is pending.
    pub(super) fn pend(&mut self, stem: &str, trigger: &str) -> Result<(), MergeError> {
        let Some(control) = self.package(stem) else { return Ok(()) };
        let mut fields = control.fields().to_vec();
        let pending = fields.iter().position(|(name, _)| name == "Triggers-Pending");
        let mut words = pending.map(|at| fields.remove(at).1).unwrap_or_default();
        if !words.split_whitespace().any(|word| word == trigger) {
            words = format!("{words} {trigger}").trim().to_owned();
        }
        fields.push(("Triggers-Pending".to_owned(), words));
        set_state(&mut fields, "triggers-pending");
        self.set(fields)
    }

    fn set(&mut self, mut fields: Vec<(String, String)>) -> Result<(), MergeError> {
        let rank =
            |name: &str| FIELDS.iter().position(|field| field.eq_ignore_ascii_case(name)).unwrap_or(FIELDS.len());
        fields.sort_by_key(|(name, _)| rank(name));
        let line = |(name, value): &(String, String)| {
            let separator = if value.starts_with('\n') || value.is_empty() { ":" } else { ": " };
            format!("{name}{separator}{value}")
        };
        let text = fields.iter().map(line).collect::<Vec<_>>().join("\n");
        let control = Control::parse(&text).map_err(|fault| damaged(DatabaseFault::Control(fault)))?;
        self.stanzas.insert(key(&control), (control, text));
        self.changed = true;
        Ok(())
    }

    /// Writes the file, and keeps what it said as dpkg does, if there is something new.
    pub(super) fn write(&mut self, target: &mut Target) -> Result<(), MergeError> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        let old = target.text_or_empty(STATUS)?;
        target.set_text(STATUS_OLD, &old)?;
        let text: String = self.stanzas.values().map(|(_, text)| format!("{text}\n\n")).collect();
        target.set_text(STATUS, &text)
    }
}

/// Sets the last word of `Status`. The selection in its first word, such as `hold`, stays.
fn set_state(fields: &mut [(String, String)], state: &str) {
    for (name, value) in fields {
        if name == "Status" {
            let selection = value.split_whitespace().next().unwrap_or("install");
            *value = format!("{selection} ok {state}");
        }
    }
}

/// The last word of a package's `Status`.
pub(super) fn state(control: &Control) -> &str {
    control.get("Status").and_then(|status| status.split_whitespace().next_back()).unwrap_or_default()
}

/// The stem of a package's files below `info`.
pub(super) fn stem(control: &Control) -> String {
    let field = |name| control.get(name).unwrap_or_default();
    match control.get("Multi-Arch") {
        Some("same") => format!("{}:{}", field("Package"), field("Architecture")),
        _ => field("Package").to_owned(),
    }
}

fn key(control: &Control) -> (String, String) {
    let field = |name| control.get(name).unwrap_or_default().to_owned();
    (field("Package"), field("Architecture"))
}

/// Fails where dpkg was interrupted: its next call would take packages from files that nothing else reads.
fn check_finished(target: &Target) -> Result<(), MergeError> {
    let found = target.wrap(target.tree.find(UPDATES.as_bytes()))?;
    let Some(Kind::Directory(entries)) = found.map(|id| &target.tree.inode(id).kind) else { return Ok(()) };
    match entries.keys().find(|name| !name.is_empty() && name.iter().all(u8::is_ascii_digit)) {
        Some(name) => Err(MergeError::Message(message!(
            "{UPDATES}/{}: dpkg was interrupted before it changed {STATUS}: run `dpkg --configure --pending` in the base",
            String::from_utf8_lossy(name)
        ))),
        None => Ok(()),
    }
}

fn damaged(fault: DatabaseFault) -> MergeError {
    MergeError::content(STATUS, fault)
}

#[cfg(test)]
mod tests {
    use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

    use super::*;

    #[test]
    fn what_dpkg_did_not_finish_is_refused() {
        let cut = "Package: a\nStatus: install ok installed\nVersion: 1";
        let whole = format!("{cut}\n");
        let number = "/var/lib/dpkg/updates/0001";
        for (files, expected) in [
            (vec![(STATUS, whole.as_str()), ("/var/lib/dpkg/updates/tmp.i", "")], None),
            (vec![(STATUS, "")], None),
            (vec![(STATUS, cut)], Some("/var/lib/dpkg/status: ends inside a line, as dpkg never writes it")),
            (
                vec![(STATUS, whole.as_str()), (number, "")],
                Some(
                    "/var/lib/dpkg/updates/0001: dpkg was interrupted before it changed /var/lib/dpkg/status: run \
                     `dpkg --configure --pending` in the base",
                ),
            ),
        ] {
            let root = Metadata::root(0o755, Timestamp::default());
            let mut target = Target::new(Tree::new(root, Origin::default()), Timestamp::default());
            files.iter().for_each(|(path, text)| target.set_text(path, text).unwrap());
            let error = Status::read(&target).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected, "{files:?}");
        }
    }
}
