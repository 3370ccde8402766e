//! The layer of a profile: the state after all scripts in, a `layer.json` with files out.

mod consumed;
mod downloads;
pub(super) mod settings;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::base::{self, Content, Found};
use super::boot_template::{Deferred, plain_template};
use super::error::ImportError;
use super::evaluate::Evaluated;
use super::machine::{Effects, Fetched, What, decides_packages, has_token, token_of, units};
use super::report::{FileNote, ImportReport, StatementClass};
use super::rules::Rules;
use super::runtime::{is_marked, legible, only_value};

/// Where apt looks for repositories and their keys.
const REPOSITORIES: [&str; 4] =
    ["/etc/apt/sources.list", "/etc/apt/sources.list.d/", "/etc/apt/keyrings/", "/etc/apt/trusted.gpg.d/"];
/// Its presence would keep cloud-init from bringing user data.
pub(super) const DISABLED: &str = "/etc/cloud/cloud-init.disabled";
/// The file that has the name of a machine, and the setting that names it.
pub(super) const NAME: (&str, &str) = (base::NAME, "INSTANCE_ID");

/// Mode of directories of a layer that states none, where the base does not have them.
const NEW_DIRECTORY: u16 = 0o755;

/// What a layer is made of.
pub(super) struct Parts<'a> {
    pub(super) rules: &'a Rules,
    /// Files of the profile that the first boot writes, by path.
    pub(super) templates: &'a BTreeMap<String, Deferred>,
    /// All files of the profile, with their texts.
    pub(super) own: &'a BTreeMap<&'a str, &'a str>,
    /// Whether machines are told their names.
    pub(super) has_name: bool,
    /// Values that machines have unless they are told others, by setting.
    pub(super) defaults: &'a BTreeMap<&'static str, String>,
    /// Settings that these machines cannot do without, though others can.
    pub(super) demanded: &'a [&'a str],
}

/// A layer, before it has a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Document {
    /// The keys of `layer.json`, without names and versions.
    pub(super) keys: Map<String, Value>,
    /// Contents of files below `files/`, by their paths in the image.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Settings that user data have to say, and those that it may.
    pub(super) required: BTreeSet<&'static str>,
    pub(super) optional: BTreeSet<&'static str>,
    /// Addresses of downloads: name, address, checksum file, both of one architecture.
    pub(super) downloads: BTreeMap<String, Value>,
}

/// Turns what is there in the end into a layer, and tells what is not in it.
pub(super) fn document(evaluated: &Evaluated, parts: &Parts<'_>) -> Result<(Document, ImportReport), ImportError> {
    let mut writer =
        Writer { parts, evaluated, document: Document::default(), report: ImportReport::default(), boot: Vec::new() };
    let changed = changed(evaluated)?;
    check_image(evaluated)?;
    let consumed = consumed::consumed(evaluated, parts, &changed)?;
    for found in &changed {
        match consumed.get(found.path.as_str()) {
            Some(reason) => writer.leave_out(&found.path, StatementClass::Baked, reason),
            None => writer.add(found)?,
        }
    }
    let is_early = |path: &&String| evaluated.early.contains(*path) && !consumed.contains_key(path.as_str());
    let early: Vec<&String> = changed.iter().map(|found| &found.path).filter(is_early).collect();
    if !early.is_empty() {
        writer.list("keep_conffiles", &evaluated.effects.keep_conffiles);
    }
    writer.list("before_packages", early);
    writer.archives()?;
    writer.list("remove", &evaluated.removed);
    writer.packages();
    writer.units(&changed, &consumed);
    writer.first_boot();
    writer.report.warnings = unit_warnings(&evaluated.effects);
    writer.report.statements.clone_from(&evaluated.effects.statements);
    Ok((writer.document, writer.report))
}

/// Starts and stops of units that the profile does not define: they have no effect in an image, where the unit is enabled or not.
fn unit_warnings(effects: &Effects) -> Vec<String> {
    let is_off = |unit: &&String| effects.disabled.contains(*unit) || effects.masked.contains(*unit);
    let stopped = effects.foreign_stopped.iter().filter(|unit| !is_off(unit)).map(|unit| {
        format!("systemctl stop {unit}: if the unit is enabled, machines start it at boot: disable or mask it to prevent that")
    });
    let started = effects.foreign_started.iter().filter(|(unit, _)| !effects.enabled.contains(*unit)).map(|(unit, verb)| {
        format!(
            "systemctl {verb} {unit}: machines start the unit at boot only if it is enabled: enable it to ensure that"
        )
    });
    stopped.chain(started).collect()
}

/// What is new or different; what is gone has no place in a layer.
fn changed(evaluated: &Evaluated) -> Result<Vec<&Found>, ImportError> {
    let before: BTreeMap<&str, &Found> = evaluated.before.iter().map(|found| (found.path.as_str(), found)).collect();
    let after: BTreeSet<&str> = evaluated.after.iter().map(|found| found.path.as_str()).collect();
    if let Some(path) = before.keys().find(|path| !after.contains(**path)) {
        let what = "a script removes this file of the base: list it in `remove` of a layer of --extend, and drop the command with a rule";
        return Err(ImportError::Tree { path: (*path).to_owned(), what: what.to_owned() });
    }
    // The file of the name is that of cloud-init, which no script changes.
    let is_changed = |found: &&Found| found.path != base::NAME && before.get(found.path.as_str()) != Some(found);
    let changed = evaluated.after.iter().filter(is_changed);
    let changed: Vec<&Found> = changed.collect();
    let is_part =
        |found: &&&Found| before.contains_key(found.path.as_str()) && !base::WHOLE.contains(&found.path.as_str());
    match changed.iter().find(is_part) {
        None => Ok(changed),
        Some(found) => {
            let what =
                "a script changes a file of the base whose contents are unknown: name the base image with --base"
                    .to_owned();
            Err(ImportError::Tree { path: found.path.clone(), what })
        }
    }
}

/// Refuses changes of a base image that a layer does not make as a script does.
fn check_image(evaluated: &Evaluated) -> Result<(), ImportError> {
    let refuse = |path: &str, what: &str| Err(ImportError::Tree { path: path.to_owned(), what: what.to_owned() });
    for found in &evaluated.after {
        let kind = match found.content {
            Content::Directory => "directory",
            Content::File(_) => "regular file",
            Content::Link(_) | Content::Other => "",
        };
        match evaluated.replaced.get(&found.path) {
            Some(_) if is_of_packages(&found.path) => {
                return refuse(
                    &found.path,
                    "a script changes a path of packages of the base image: use a path below /etc, /opt or /usr/local",
                );
            }
            Some(before) if *before != kind => {
                let what = format!("a script replaces a {before} of the base image: use another path");
                return refuse(&found.path, &what);
            }
            _ => {}
        }
    }
    match evaluated.removed.iter().find(|path| is_of_packages(path) || path.contains('*')) {
        Some(path) => refuse(
            path,
            "a script removes a path of packages of the base image: list it in `remove` of a layer of --extend, and drop the command with a rule",
        ),
        None if evaluated.effects.packages.is_empty() => Ok(()),
        None => match evaluated.removed.first() {
            Some(path) => refuse(
                path,
                "a script removes it and installs packages, which may contain it: list it in `remove` of a layer of --extend, and drop the command with a rule",
            ),
            None => Ok(()),
        },
    }
}

/// Whether packages own what is at a path: dpkg compares it with nothing that an administrator wrote.
fn is_of_packages(path: &str) -> bool {
    path.starts_with("/usr/") && !path.starts_with("/usr/local/")
}

struct Writer<'a> {
    parts: &'a Parts<'a>,
    evaluated: &'a Evaluated,
    document: Document,
    report: ImportReport,
    /// Files that the first boot writes.
    boot: Vec<Value>,
}

impl Writer<'_> {
    fn leave_out(&mut self, path: &str, class: StatementClass, reason: &str) {
        self.report.files.push(FileNote { path: path.to_owned(), class, reason: reason.to_owned() });
    }

    fn insert(&mut self, key: &str, name: &str, value: Value) {
        let object = self.document.keys.entry(key).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(object) = object {
            object.insert(name.to_owned(), value);
        }
    }

    fn list<'s>(&mut self, key: &str, values: impl IntoIterator<Item = &'s String>) {
        let values: Vec<&String> = values.into_iter().collect();
        if !values.is_empty() {
            self.document.keys.insert(key.to_owned(), json!(values));
        }
    }

    fn add(&mut self, found: &Found) -> Result<(), ImportError> {
        let Found { path, mode, owner, content } = found;
        let refuse = |what: &str| Err(ImportError::Tree { path: legible(path), what: what.to_owned() });
        if is_marked(path.as_bytes()) || has_token(path.as_bytes()) {
            return refuse("its name depends on a value that only machines know: use a fixed name");
        }
        if *owner != (0, 0) {
            return refuse("owned by a user other than root: create users and their files with a layer of --extend");
        }
        if mode & 0o7000 != 0 && *content != Content::Directory {
            return refuse(
                "it has a set-user-ID, set-group-ID or sticky bit: install the file with a layer of --extend",
            );
        }
        match content {
            Content::Directory if self.evaluated.kept.contains(path) && *mode != NEW_DIRECTORY => {
                return refuse(&format!(
                    "it has the mode {mode:04o} only if it does not exist before: set its mode with chmod"
                ));
            }
            Content::Directory if self.evaluated.kept.contains(path) => self.insert("directories", path, json!({})),
            Content::Directory => self.insert("directories", path, json!({"mode": format!("{mode:04o}")})),
            Content::Link(target) if is_marked(target.as_bytes()) || has_token(target.as_bytes()) => {
                return refuse("its target depends on a value that only machines know: use a fixed target");
            }
            Content::Link(target) => self.insert("symlinks", path, json!(target)),
            Content::Other => {
                return refuse(
                    "it is not a regular file, directory or symbolic link: create it on each boot with tmpfiles.d",
                );
            }
            Content::File(text) => {
                if self.evaluated.written.contains(path) {
                    let keeps_mode = self.evaluated.kept.contains(path);
                    let rule = if keeps_mode { json!({"mode": format!("{mode:04o}")}) } else { json!({}) };
                    self.insert("in_place", path, rule);
                }
                self.add_file(path, *mode, text)?;
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &str, mode: u16, text: &[u8]) -> Result<(), ImportError> {
        if path == DISABLED {
            self.leave_out(path, StatementClass::Dropped, "machines read their user data with cloud-init");
            return Ok(());
        }
        if REPOSITORIES.iter().any(|place| path == *place || (place.ends_with('/') && path.starts_with(place))) {
            return Err(ImportError::Repository { path: path.to_owned() });
        }
        let decides = decides_packages(path, text).filter(|_| !self.evaluated.effects.packages.is_empty());
        if let Some(line) = decides {
            let what =
                format!("manifests pin the packages, so remove this setting, which is not applied: {}", legible(&line));
            return Err(ImportError::Tree { path: path.to_owned(), what });
        }
        if let Some(fetched) = token_of(text).and_then(|at| self.evaluated.effects.fetched.get(at)) {
            return self.fetched_file(path, mode, fetched);
        }
        if has_token(text) {
            if !self.evaluated.effects.lists.contains(text) {
                let what = "its contents come from downloaded files and are unknown during the import: install the downloaded file unchanged".to_owned();
                return Err(ImportError::Tree { path: path.to_owned(), what });
            }
            self.leave_out(path, StatementClass::Dropped, "checksums, which the bake verifies");
            return Ok(());
        }
        // What scripts made of a file is in its text alone.
        let is_unchanged = self.parts.own.get(path).is_some_and(|own| own.as_bytes() == text);
        if let Some(Deferred { text: template, .. }) = self.parts.templates.get(path).filter(|_| is_unchanged) {
            self.boot_file(path, mode, template.clone());
            return Ok(());
        }
        if is_marked(text) {
            let what = || ImportError::Tree {
                path: path.to_owned(),
                what:
                    "it contains a value that only machines know, but is not UTF-8: write the value to a separate file"
                        .to_owned(),
            };
            let text = str::from_utf8(text).map_err(|_| what())?;
            self.boot_file(path, mode, plain_template(path, text)?);
            return Ok(());
        }
        self.insert("files", path, json!({"mode": format!("{mode:04o}")}));
        self.document.files.insert(path.to_owned(), text.to_vec());
        Ok(())
    }

    /// A file that the first boot writes. Units are there before, so that they can be enabled.
    fn boot_file(&mut self, path: &str, mode: u16, template: String) {
        let reason = match only_value(&template) {
            Some(value) => format!("its content is the value of {}", value.variable),
            None => "it contains values that only machines know".to_owned(),
        };
        self.leave_out(path, StatementClass::FirstBoot, &reason);
        let mut file = json!({"path": path, "mode": format!("{mode:04o}"), "content": {"text": template}});
        if path.starts_with(units::UNITS) {
            file["bake"] = json!(true);
        }
        self.boot.push(file);
    }

    fn fetched_file(&mut self, path: &str, mode: u16, fetched: &Fetched) -> Result<(), ImportError> {
        match &fetched.what {
            What::Url(_) => {
                let install = json!({"type": "file", "path": path, "mode": format!("{mode:04o}")});
                self.download(path, fetched, install)
            }
            _ => {
                self.leave_out(path, StatementClass::Dropped, "the image already contains its result");
                Ok(())
            }
        }
    }

    fn packages(&mut self) {
        let effects = &self.evaluated.effects;
        self.list("packages", &effects.packages);
        self.list("recommends", &effects.recommends);
        self.list("hold", &effects.held);
        if let Some(archive) = self.parts.rules.archive.as_ref().filter(|_| !effects.packages.is_empty()) {
            self.document.keys.insert("archive".to_owned(), json!(archive));
        }
        self.list("modules_load", &effects.modules);
    }

    fn units(&mut self, changed: &[&Found], consumed: &BTreeMap<&str, &str>) {
        let effects = &self.evaluated.effects;
        let path = |unit: &str| format!("{}/{unit}", units::UNITS);
        let is_own = |unit: &&String| {
            let path = path(unit);
            changed.iter().any(|found| found.path == path && !consumed.contains_key(path.as_str()))
        };
        let wanted: BTreeSet<&String> =
            effects.enabled.iter().filter(|unit| !effects.done.contains_key(*unit)).collect();
        let mut services: Vec<&String> = effects.started.iter().filter(is_own).collect();
        for unit in wanted.iter().copied().filter(is_own) {
            if !services.contains(&unit) {
                services.push(unit);
            }
        }
        let enable: Vec<&String> = match self.has_settings() {
            true => wanted.into_iter().filter(|unit| !is_own(unit)).collect(),
            false => wanted.into_iter().chain(services.iter().copied()).collect::<BTreeSet<_>>().into_iter().collect(),
        };
        if self.has_settings() && !services.is_empty() {
            let services = services.iter().map(|unit| json!({"unit": unit})).collect();
            self.insert("first_boot", "services", Value::Array(services));
        }
        for (key, list) in [
            ("enable", enable),
            ("disable", effects.disabled.iter().filter(|unit| !effects.done.contains_key(*unit)).collect()),
            ("mask", effects.masked.iter().collect()),
        ] {
            if !list.is_empty() {
                self.insert("units", key, json!(list));
            }
        }
    }

    /// Whether machines have settings.
    fn has_settings(&self) -> bool {
        self.parts.has_name || !self.boot.is_empty()
    }
}
