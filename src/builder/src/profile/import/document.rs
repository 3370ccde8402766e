//! The layer that a profile becomes: what its scripts left on a new machine in, a `layer.json` with files out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::base::{self, Content, Found};
use super::error::ImportError;
use super::evaluate::Evaluated;
use super::machine::{Fetched, What, has_token, token_of, units};
use super::report::{FileNote, ImportReport, StatementClass};
use super::rules::Rules;
use super::runtime::{self, Deferred, Form, RuntimeValue, is_marked, legible};

/// Where apt looks for repositories and their keys.
const REPOSITORIES: [&str; 4] =
    ["/etc/apt/sources.list", "/etc/apt/sources.list.d/", "/etc/apt/keyrings/", "/etc/apt/trusted.gpg.d/"];
/// Its presence would keep cloud-init from bringing user data.
const DISABLED: &str = "/etc/cloud/cloud-init.disabled";
/// The file that has the name of a machine, and the setting that names it.
pub(super) const NAME: (&str, &str) = ("/etc/machine-name", "INSTANCE_ID");

/// What a layer is made of.
pub(super) struct Parts<'a> {
    pub(super) rules: &'a Rules,
    /// Files of the profile that the first boot writes, by path.
    pub(super) templates: &'a BTreeMap<String, Deferred>,
    /// All files of the profile.
    pub(super) own: &'a BTreeSet<String>,
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
    let consumed = consumed(evaluated, parts, &changed);
    for found in &changed {
        match consumed.get(found.path.as_str()) {
            Some(reason) => writer.leave_out(&found.path, StatementClass::Baked, reason),
            None => writer.add(found)?,
        }
    }
    writer.archives()?;
    writer.packages();
    writer.units(&changed, &consumed);
    writer.first_boot();
    writer.report.statements.clone_from(&evaluated.effects.statements);
    Ok((writer.document, writer.report))
}

/// What is new or different; what is gone has no place in a layer.
fn changed(evaluated: &Evaluated) -> Result<Vec<&Found>, ImportError> {
    let before: BTreeMap<&str, &Found> = evaluated.before.iter().map(|found| (found.path.as_str(), found)).collect();
    let after: BTreeSet<&str> = evaluated.after.iter().map(|found| found.path.as_str()).collect();
    if let Some(path) = before.keys().find(|path| !after.contains(**path)) {
        let what = "a script removes it from the system: say so with `remove` in a layer of --extend, and drop the command by a rule";
        return Err(ImportError::Tree { path: (*path).to_owned(), what: what.to_owned() });
    }
    let changed = evaluated.after.iter().filter(|found| before.get(found.path.as_str()) != Some(found));
    let changed: Vec<&Found> = changed.collect();
    let is_part =
        |found: &&&Found| before.contains_key(found.path.as_str()) && !base::WHOLE.contains(&found.path.as_str());
    match changed.iter().find(is_part) {
        None => Ok(changed),
        Some(found) => {
            let what = "a script changes what the system has there, of which vmbake does not know all".to_owned();
            Err(ImportError::Tree { path: found.path.clone(), what })
        }
    }
}

/// Units and scripts that did their work when the image was made, and that nothing in it needs, with the reason.
fn consumed<'a>(evaluated: &'a Evaluated, parts: &Parts<'_>, changed: &[&'a Found]) -> BTreeMap<&'a str, &'static str> {
    let effects = &evaluated.effects;
    let mut consumed = BTreeMap::new();
    for found in changed.iter().filter(|found| parts.own.contains(&found.path)) {
        let unit = found.path.strip_prefix(units::UNITS).and_then(|name| name.strip_prefix('/'));
        if unit.is_some_and(|unit| effects.done.contains(unit)) {
            consumed.insert(found.path.as_str(), "what it starts is done");
        } else if effects.scripts.contains(&found.path) && !evaluated.deferred.contains(&found.path) {
            consumed.insert(found.path.as_str(), "its commands are done");
        }
    }
    // A script that something else calls stays, and what that one calls.
    loop {
        let kept = changed.iter().filter(|found| !consumed.contains_key(found.path.as_str()));
        let texts: Vec<&Vec<u8>> = kept
            .filter_map(|found| match &found.content {
                Content::File(text) => Some(text),
                _ => None,
            })
            .collect();
        let is_named = |path: &str| texts.iter().any(|text| mentions(text, path));
        let needed = consumed.keys().copied().find(|path| !path.starts_with(units::UNITS) && is_named(path));
        match needed {
            Some(path) => consumed.remove(path),
            None => return consumed,
        };
    }
}

/// Whether a text has a path in it, and not only one that begins so.
fn mentions(text: &[u8], path: &str) -> bool {
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-/".contains(byte);
    let mut at = text.windows(path.len()).enumerate().filter(|(_, window)| *window == path.as_bytes());
    at.any(|(at, _)| !text.get(at.saturating_add(path.len())).is_some_and(goes_on))
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
            return refuse("its name depends on what only machines know");
        }
        if *owner != (0, 0) {
            return refuse("it belongs to somebody else than root: make users and their files by a layer of --extend");
        }
        if mode & 0o7000 != 0 && *content != Content::Directory {
            return refuse("it has set-id bits");
        }
        match content {
            Content::Directory => self.insert("directories", path, json!({"mode": format!("{mode:04o}")})),
            Content::Link(target) if is_marked(target.as_bytes()) || has_token(target.as_bytes()) => {
                return refuse("it leads where only machines know");
            }
            Content::Link(target) => self.insert("symlinks", path, json!(target)),
            Content::Other => return refuse("it is neither a file, nor a directory, nor a link"),
            Content::File(text) => self.add_file(path, *mode, text)?,
        }
        Ok(())
    }

    fn add_file(&mut self, path: &str, mode: u16, text: &[u8]) -> Result<(), ImportError> {
        if path == DISABLED {
            self.leave_out(path, StatementClass::Dropped, "cloud-init brings the user data of a machine");
            return Ok(());
        }
        if REPOSITORIES.iter().any(|place| path == *place || (place.ends_with('/') && path.starts_with(place))) {
            return Err(ImportError::Repository { path: path.to_owned() });
        }
        if let Some(fetched) = token_of(text).and_then(|at| self.evaluated.effects.fetched.get(at)) {
            return self.fetched_file(path, mode, fetched);
        }
        if has_token(text) {
            self.leave_out(path, StatementClass::Dropped, "checksums, which the bake proves");
            return Ok(());
        }
        if let Some(Deferred { text: template, .. }) = self.parts.templates.get(path) {
            self.boot_file(path, mode, template.clone());
            return Ok(());
        }
        if is_marked(text) {
            let what = || ImportError::Tree { path: path.to_owned(), what: "it is not UTF-8".to_owned() };
            let text = str::from_utf8(text).map_err(|_| what())?;
            self.boot_file(path, mode, runtime::plain_template(path, text)?);
            return Ok(());
        }
        self.insert("files", path, json!({"mode": format!("{mode:04o}")}));
        self.document.files.insert(path.to_owned(), text.to_vec());
        Ok(())
    }

    /// A file that the first boot writes. Units are there before, so that they can be enabled.
    fn boot_file(&mut self, path: &str, mode: u16, template: String) {
        self.leave_out(path, StatementClass::FirstBoot, "it has values that only machines know");
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
                self.leave_out(path, StatementClass::Dropped, "the image has what it would set up");
                Ok(())
            }
        }
    }

    fn archives(&mut self) -> Result<(), ImportError> {
        let effects = &self.evaluated.effects;
        for unpacked in &effects.unpacked {
            let Some(fetched) = effects.fetched.get(unpacked.fetched) else { continue };
            let mut install = json!({"type": "tar", "path": unpacked.path});
            if unpacked.strip > 0 {
                install["strip"] = json!(unpacked.strip);
            }
            if !unpacked.members.is_empty() {
                install["members"] = json!(unpacked.members);
            }
            self.download(&unpacked.path, fetched, install)?;
        }
        Ok(())
    }

    /// A file or archive from an address, with what proves it.
    fn download(&mut self, path: &str, fetched: &Fetched, install: Value) -> Result<(), ImportError> {
        let What::Url(url) = &fetched.what else { return Ok(()) };
        let rule = self.parts.rules.downloads.get(url).map(|rule| rule.sha256.clone());
        let mut value = json!({"url": url, "version": version(url), "install": install});
        match (rule.or_else(|| fetched.sha256.clone()), &fetched.checksums) {
            (Some(sha256), _) => value["sha256"] = json!(sha256),
            (None, Some(list)) => value["checksums"] = json!(list),
            (None, None) => return Err(ImportError::Unproven { url: url.clone(), path: path.to_owned() }),
        }
        if url.contains(['{', '}']) {
            return Err(ImportError::Tree { path: path.to_owned(), what: format!("the address {url} has braces") });
        }
        let name = file_name(url);
        let taken = |name: &String| self.document.downloads.contains_key(name);
        let names = std::iter::once(name.clone()).chain((2_u32..).map(|number| format!("{name}-{number}")));
        if let Some(name) = names.take(1000).find(|name| !taken(name)) {
            self.document.downloads.insert(name, value);
        }
        Ok(())
    }

    fn packages(&mut self) {
        let effects = &self.evaluated.effects;
        self.list("packages", &effects.packages);
        self.list("recommends", &effects.recommends);
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
        let wanted: BTreeSet<&String> = effects.enabled.iter().filter(|unit| !effects.done.contains(*unit)).collect();
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
            ("disable", effects.disabled.iter().filter(|unit| !effects.done.contains(*unit)).collect()),
            ("mask", effects.masked.iter().collect()),
        ] {
            if !list.is_empty() {
                self.insert("units", key, json!(list));
            }
        }
    }

    /// Whether machines are told anything.
    fn has_settings(&self) -> bool {
        self.parts.has_name || !self.boot.is_empty()
    }

    fn first_boot(&mut self) {
        let mut boot = std::mem::take(&mut self.boot);
        let mut named = BTreeSet::new();
        for file in &boot {
            let text = file.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
            named.extend(
                runtime::RUNTIME.iter().filter(|value| names(text, value.variable)).map(|value| value.variable),
            );
        }
        let mut variables = Map::new();
        let mut checks = Vec::new();
        for value in named.iter().filter_map(|name| RuntimeValue::of(name)) {
            variables.insert(value.variable.to_owned(), self.variable(value));
            if value.form == Form::Word {
                checks.push(harmless(value.variable));
            }
        }
        if self.parts.has_name {
            let (path, setting) = NAME;
            variables.insert(setting.to_owned(), json!({"required": true, "format": "hostname"}));
            self.document.required.insert(setting);
            boot.push(json!({"path": path, "mode": "0600", "content": {"text": format!("{{{{ {setting} }}}}")}}));
        }
        if !variables.is_empty() {
            self.insert("first_boot", "variables", Value::Object(variables));
        }
        for (key, list) in [("files", boot), ("checks", checks)] {
            if !list.is_empty() {
                self.insert("first_boot", key, Value::Array(list));
            }
        }
        let commands = &self.evaluated.effects.commands;
        if !commands.is_empty() {
            self.insert("first_boot", "commands", json!(commands));
        }
    }

    fn variable(&mut self, value: &'static RuntimeValue) -> Value {
        let mut variable = Map::new();
        match self.parts.defaults.get(value.variable) {
            Some(default) => {
                variable.insert("default".to_owned(), json!(default));
            }
            None if !value.optional || self.parts.demanded.contains(&value.variable) => {
                variable.insert("required".to_owned(), json!(true));
            }
            None => {}
        }
        let is_required = variable.contains_key("required");
        let list = if is_required { &mut self.document.required } else { &mut self.document.optional };
        list.insert(value.variable);
        let format = match value.form {
            Form::Word => None,
            Form::Url => Some("url"),
            Form::Lines => Some("base64"),
            Form::Addresses => Some("addresses"),
        };
        variable.extend(format.map(|format| ("format".to_owned(), json!(format))));
        Value::Object(variable)
    }
}

/// Whether a template names a variable.
fn names(template: &str, variable: &str) -> bool {
    vmbake_firstboot::template::Text::parse(template).is_ok_and(|text| text.names().contains(variable))
}

/// Characters of a word that nothing reads as something else: not in a unit, a shell or YAML.
pub(super) const HARMFUL: [char; 16] =
    [' ', '"', '\'', '\\', '$', '%', '`', ';', '&', '|', '<', '>', '{', '}', '#', '*'];

/// A check that a word has none of them.
fn harmless(variable: &str) -> Value {
    let tests: Vec<String> = HARMFUL
        .iter()
        .map(|char| {
            let char = match char {
                '\'' | '\\' => format!("\\{char}"),
                other => other.to_string(),
            };
            format!("'{char}' not in {variable}")
        })
        .collect();
    json!({"that": tests.join(" and "), "otherwise": format!("{variable} has a character that means something to systemd, a shell or YAML")})
}

/// The name of a download: the last part of its address, without its version, its architecture, and what says how it is packed.
fn file_name(url: &str) -> String {
    let last = url.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let bare = [".tar.gz", ".tgz", ".tar"].iter().find_map(|ending| last.strip_suffix(ending)).unwrap_or(&last);
    let is_inside = |char: char| char.is_ascii_alphanumeric() || "-+._".contains(char);
    let mut name: String = bare.chars().map(|char| if is_inside(char) { char } else { '-' }).collect();
    for arch in ["x86_64", "x86-64", "amd64", "aarch64", "arm64"] {
        name = name.replace(arch, "");
    }
    let is_version = |rest: &str| rest.starts_with(|char: char| char.is_ascii_digit());
    let version = name.match_indices("-v").map(|(at, _)| at).find(|at| name.get(at + 2..).is_some_and(is_version));
    let cut = name.find("-linux").into_iter().chain(version).filter(|at| *at > 0).min();
    let name = cut.and_then(|at| name.get(..at)).unwrap_or(&name).trim_matches(['-', '_', '.', '+']);
    if name.is_empty() { "file".to_owned() } else { name.to_owned() }
}

/// The version that an address names, else its last part.
fn version(url: &str) -> String {
    let is_inside = |char: char| char.is_ascii_digit() || char == '.';
    let words = url.split(|char: char| !(char.is_ascii_alphanumeric() || ".+".contains(char)));
    let numbers = words.filter_map(|word| {
        let digits = word.strip_prefix('v').unwrap_or(word);
        let end = digits.find(|char| !is_inside(char)).unwrap_or(digits.len());
        let number = digits.get(..end)?.trim_end_matches('.');
        (number.matches('.').count() >= 1 && number.starts_with(|char: char| char.is_ascii_digit())).then_some(number)
    });
    numbers.max_by_key(|number| number.matches('.').count()).unwrap_or("1").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_what_they_have() {
        for (url, name, number) in [
            ("https://dl.k8s.io/v1.34.2/bin/linux/amd64/kubelet", "kubelet", "1.34.2"),
            ("https://h/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz", "cni-plugins", "1.9.1"),
            ("https://h/v1.36.0/crictl-v1.36.0-linux-arm64.tar.gz", "crictl", "1.36.0"),
            ("https://h/Tool", "tool", "1"),
            ("https://h/_x", "x", "1"),
            ("https://h/tool-x86_64.tgz", "tool", "1"),
            ("https://h/amd64", "file", "1"),
        ] {
            assert_eq!((file_name(url).as_str(), version(url).as_str()), (name, number), "{url}");
        }
    }
}
