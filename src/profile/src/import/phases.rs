//! The phases of a profile, rendered with markers for machine-specific values: files, commands, and templates of the first boot.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::base::Content;
use super::boot_template::{Deferred, deferred};
use super::cases::Lacking;
use super::document::settings::HARMFUL;
use super::error::ImportError;
use super::evaluate::Evaluated;
use super::machine::units::{UNITS, unit_name};
use super::program::{Commands, File, Phase};
use super::report::{FileNote, StatementClass};
use super::runtime::{self, Case, RUNTIME, RuntimeValue};
use crate::cloud_config::{self, RenderedFile};
use crate::config::{PhaseConfig, annotations, phase};
use crate::deployment::Deployment;
use crate::options::ControllerOptions;
use crate::registries;
use crate::schema::{Profile, SystemdUnit};
use crate::values::Values;
use vmbake_common::message;

/// Longest value that is kept as a text in a lock; of longer ones a digest is.
const MAX_VALUE: usize = 200;

/// Both phases.
pub(super) struct Phases {
    pub(super) phases: [Phase; 2],
    /// What is done with units.
    pub(super) units: Vec<Commands>,
    /// Of files with values of machines: what the first boot makes of them.
    pub(super) templates: BTreeMap<String, Deferred>,
    /// Of machines without values that templates test.
    pub(super) lacking: Vec<Lacking>,
    /// Names of the secrets that machines fetch.
    pub(super) secrets: [String; 2],
    /// What else went into templates.
    pub(super) values: BTreeMap<String, String>,
    /// How containerd is configured.
    runtime: String,
    /// Fields that each file names.
    fields: BTreeMap<String, BTreeSet<String>>,
}

impl Phases {
    pub(super) fn new(
        profile: &Profile,
        deployment: &Deployment,
        options: &ControllerOptions,
    ) -> Result<Self, ImportError> {
        annotations(profile, deployment)?;
        // containerd 2 reads the earlier form as well, so that it does not matter where the profile takes it from.
        let runtime = registries::containerd_1(options);
        let values = Values::new(deployment, options)?
            .with(std::iter::once(("ContainerRuntimeConfig", gotmpl::Value::from(runtime.clone()))));
        let secrets = ["SecretName", "BootstrapKubeconfigSecretName"]
            .map(|field| values.texts().remove(field).unwrap_or_default());
        let renderer = Renderer { profile, options, values: &values, done: RefCell::default() };
        for config in renderer.phases(&Case::bare())? {
            if let Some(file) = config.files.iter().find(|file| runtime::has_private_use(&file.data)) {
                return Err(ImportError::PrivateUse { path: file.path.clone() });
            }
        }
        let [bootstrap, provisioning] = renderer.phases(&Case::whole())?;
        let mut phases = Self {
            phases: [
                empty(&bootstrap, ["bootstrapConfig.bootcmd", "bootstrapConfig.runcmd"]),
                empty(&provisioning, ["provisioningConfig.bootcmd", "provisioningConfig.runcmd"]),
            ],
            units: Vec::new(),
            templates: BTreeMap::new(),
            lacking: Vec::new(),
            secrets,
            values: kept(&values),
            fields: BTreeMap::new(),
            runtime,
        };
        phases.commands_are_plain()?;
        for (at, config) in [&bootstrap, &provisioning].into_iter().enumerate() {
            for file in &config.files {
                phases.add(file, &renderer, at)?;
            }
            for unit in &config.units {
                phases.add_unit(unit, at)?;
            }
        }
        phases.lacking = phases.cases(&renderer)?;
        Ok(phases)
    }

    /// The phases in each case in which machines lack some of the values that templates test.
    fn cases(&self, renderer: &Renderer<'_>) -> Result<Vec<Lacking>, ImportError> {
        let is_tested = |value: &RuntimeValue| self.templates.values().any(|template| tests(template, value));
        let tested: Vec<&'static RuntimeValue> =
            RUNTIME.iter().filter(|value| value.optional && is_tested(value)).collect();
        let mut cases = Vec::new();
        for bits in 1..1_usize << tested.len() {
            let absent = tested.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
            let absent: Vec<&'static RuntimeValue> = absent.map(|(_, value)| *value).collect();
            let case = Case { absent: absent.iter().map(|value| value.field).collect(), ..Case::whole() };
            let mut phases = self.phases.clone();
            for (phase, config) in phases.iter_mut().zip(renderer.phases(&case)?) {
                for file in &mut phase.files {
                    let found = config.files.iter().rev().find(|other| other.path == file.path);
                    file.text = found.map_or_else(|| file.text.clone(), |found| found.on_machine().to_owned());
                }
            }
            cases.push(Lacking { absent, phases });
        }
        Ok(cases)
    }

    fn commands_are_plain(&self) -> Result<(), ImportError> {
        let mut lists = self.phases.iter().flat_map(|phase| [&phase.bootcmd, &phase.runcmd]);
        let odd = |commands: &&Commands| commands.lines.iter().any(|line| runtime::has_private_use(line));
        match lists.find(odd) {
            Some(commands) => Err(ImportError::PrivateUse { path: commands.name.to_owned() }),
            None => Ok(()),
        }
    }

    fn add(&mut self, file: &RenderedFile, renderer: &Renderer<'_>, at: usize) -> Result<(), ImportError> {
        let path = &file.path;
        let runtime: BTreeSet<&str> =
            RUNTIME.iter().map(|value| value.field).filter(|field| file.fields.contains(*field)).collect();
        let compared: Vec<&str> =
            file.compared.iter().map(String::as_str).filter(|field| runtime.contains(field)).collect();
        if !compared.is_empty() || (!runtime.is_empty() && file.compared.contains(".")) {
            let fields = if compared.is_empty() { runtime.into_iter().collect() } else { compared };
            return Err(ImportError::Message(message!(
                "{path}: a template compares .{}, whose value only machines know: test only whether it is set",
                fields.join(", .")
            )));
        }
        let rendering = |case: &Case| {
            let rendered = renderer.phases(case)?;
            let found = rendered.get(at).and_then(|phase| phase.files.iter().find(|other| other.path == *path));
            Ok(found.map(|file| file.on_machine().to_owned()).unwrap_or_default())
        };
        let earlier = self.files().find(|other| other.path == *path);
        if self.templates.contains_key(path) && earlier.is_some_and(|other| other.text != file.on_machine()) {
            let what =
                "both phases write it, the first one with a value that only machines know: use two paths".to_owned();
            return Err(ImportError::Tree { path: path.clone(), what });
        }
        self.templates.remove(path);
        if let Some(template) = deferred(path, &file.fields, &rendering)? {
            self.templates.insert(path.clone(), template);
        }
        self.fields.insert(path.clone(), file.fields.clone());
        self.put(at, path.clone(), octal(file.permissions), file.on_machine().to_owned());
        Ok(())
    }

    /// Units as OSM has them for machines that are set up by Ignition: files, and what is enabled.
    fn add_unit(&mut self, unit: &SystemdUnit, at: usize) -> Result<(), ImportError> {
        let is_name = |name: &str| unit_name(name).is_some_and(|full| full == name && !name.starts_with('.'));
        if let Some(name) =
            std::iter::once(&unit.name).chain(unit.drop_ins.iter().map(|(name, _)| name)).find(|name| !is_name(name))
        {
            let what =
                "not a valid name of a unit or drop-in: use plain characters and a suffix such as .service or .conf"
                    .to_owned();
            return Err(ImportError::Tree { path: vmbake_common::escape::line(name), what });
        }
        let path = format!("{UNITS}/{}", unit.name);
        let texts = unit.content.iter().map(|text| (path.clone(), text));
        let drop_ins = unit.drop_ins.iter().map(|(name, text)| (format!("{path}.d/{name}"), text));
        for (path, text) in texts.chain(drop_ins) {
            if text.contains("{{") || runtime::has_private_use(text) {
                let what = "templates are not supported in `units`: write the unit as one of `files`".to_owned();
                return Err(ImportError::Tree { path, what });
            }
            self.put(at, path, 0o644, text.clone());
        }
        for (is_wanted, verb) in [(unit.enable, "enable"), (unit.mask, "mask")] {
            if is_wanted == Some(true) {
                self.units.push(Commands { name: "units", lines: vec![format!("systemctl {verb} {}", unit.name)] });
            }
        }
        Ok(())
    }

    fn put(&mut self, at: usize, path: String, mode: u16, text: String) {
        if let Some(phase) = self.phases.get_mut(at) {
            phase.files.retain(|other| other.path != path);
            phase.files.push(File { path, mode, text });
        }
    }

    /// Files of both phases.
    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.phases.iter().flat_map(|phase| &phase.files)
    }

    /// Texts of the files by path: those of the second phase, where both write one.
    pub(super) fn texts(&self) -> BTreeMap<&str, &str> {
        self.files().map(|file| (file.path.as_str(), file.text.as_str())).collect()
    }

    /// Values that machines have unless user data say others, by setting: what the options of the import give.
    pub(super) fn defaults(&self, options: &ControllerOptions) -> Result<BTreeMap<&'static str, String>, ImportError> {
        for (option, given) in
            [("api-server-token", &options.token), ("bootstrap-kubeconfig", &options.bootstrap_kubeconfig)]
        {
            if given.is_some() {
                return Err(ImportError::Secret { option });
            }
        }
        let taints = &options.initial_taints;
        if taints.contains(|char: char| HARMFUL.contains(&char) || char.is_control()) || taints.starts_with('-') {
            return Err(ImportError::Hostile { option: "initial-taints", value: taints.clone() });
        }
        let dns: Vec<String> = options.cluster_dns.iter().map(ToString::to_string).collect();
        let ca = options
            .kubernetes_ca
            .as_ref()
            .map(|pem| <base64ct::Base64 as base64ct::Encoding>::encode_string(pem.as_bytes()));
        let all = [
            ("CLUSTER_DNS", Some(dns.join(","))),
            ("INITIAL_TAINTS", Some(taints.clone())),
            ("KUBERNETES_CA", ca),
            ("SERVER_URL", options.server_url.clone()),
        ];
        Ok(all.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?))).collect())
    }

    /// Files that differ from what OSM would make of them.
    pub(super) fn notes(&self) -> Vec<FileNote> {
        let differs = self.files().filter(|file| file.text.contains(self.runtime.trim_end()));
        differs
            .map(|file| FileNote {
                path: file.path.clone(),
                class: StatementClass::Baked,
                reason:
                    "version 2 of containerd's configuration, since containerd 1.7 of Debian 13 does not read version 3"
                        .to_owned(),
            })
            .collect()
    }

    /// Refuses scripts that were run, and that do different things with and without a value that only machines have.
    pub(super) fn check_scripts(&self, evaluated: &Evaluated) -> Result<(), ImportError> {
        let was_run = |path: &String| evaluated.effects.scripts.contains(path) && !evaluated.deferred.contains(path);
        match self.templates.iter().find(|(path, template)| template.tests && was_run(path)) {
            None => Ok(()),
            Some((path, _)) => {
                let named = self.fields.get(path).into_iter().flatten().map(String::as_str);
                let fields: Vec<&str> =
                    named.filter(|field| RUNTIME.iter().any(|value| value.field == *field)).collect();
                Err(ImportError::Message(message!(
                    "{path} tests whether .{} is set, and the import runs it: move the test to a file that the first boot writes",
                    fields.join(", .")
                )))
            }
        }
    }

    /// Refuses what scripts made of files whose templates test values that only machines have: the text has one of the cases.
    pub(super) fn check_copies(&self, evaluated: &Evaluated) -> Result<(), ImportError> {
        let texts = self.texts();
        for found in &evaluated.after {
            let Content::File(text) = &found.content else { continue };
            let path = found.path.as_str();
            let Some(text) = str::from_utf8(text).ok().filter(|text| texts.get(path) != Some(text)) else { continue };
            let source = self.templates.iter().filter(|(_, template)| template.tests).find(|(source, template)| {
                source.as_str() == path
                    || texts.get(source.as_str()).is_some_and(|whole| depends(text, template, whole))
            });
            if let Some((source, _)) = source {
                let what = match source == path {
                    true => "a script changes it, but its template tests values that only machines know: write the lines in the template".to_owned(),
                    false => format!(
                        "a script writes it from {source}, whose template tests values that only machines know: write it as one of `files`"
                    ),
                };
                return Err(ImportError::Tree { path: runtime::legible(path), what });
            }
        }
        Ok(())
    }
}

/// Whether a text that scripts wrote depends on the conditions of a template, whose text is `whole`.
fn depends(text: &str, template: &Deferred, whole: &str) -> bool {
    let is_whole = match whole.trim() {
        "" => text.trim().is_empty(),
        whole => text.contains(whole),
    };
    is_whole || RUNTIME.iter().any(|value| tests(template, value) && text.contains(&value.mark()))
}

/// Whether a template tests if a value is set.
fn tests(template: &Deferred, value: &RuntimeValue) -> bool {
    ["if", "if not"].iter().any(|test| template.text.contains(&format!("{{% {test} {} %}}", value.variable)))
}

/// Renders phases, each case once.
struct Renderer<'a> {
    profile: &'a Profile,
    options: &'a ControllerOptions,
    values: &'a Values,
    done: RefCell<BTreeMap<Case, [PhaseConfig; 2]>>,
}

impl Renderer<'_> {
    fn phases(&self, case: &Case) -> Result<[PhaseConfig; 2], ImportError> {
        if let Some(done) = self.done.borrow().get(case) {
            return Ok(done.clone());
        }
        let values = self.values.with(case.values());
        let rendered = [
            phase(&self.profile.bootstrap, &values, BTreeMap::new())?,
            phase(&self.profile.provisioning, &values, registries::hosts(self.options)?)?,
        ];
        // Other cases are only compared with these.
        if case.may_occur() {
            rendered.iter().try_for_each(|phase| cloud_config::check(&phase.files, phase.modules.as_ref()))?;
        }
        self.done.borrow_mut().insert(case.clone(), rendered.clone());
        Ok(rendered)
    }
}

/// A phase without files.
fn empty(phase: &PhaseConfig, [boot, run]: [&'static str; 2]) -> Phase {
    let modules = phase.modules.clone();
    let (bootcmd, runcmd) = modules.map(|modules| (modules.bootcmd, modules.runcmd)).unwrap_or_default();
    Phase {
        bootcmd: Commands { name: boot, lines: bootcmd },
        files: Vec::new(),
        runcmd: Commands { name: run, lines: runcmd },
    }
}

/// Permissions as OSM has them, decimal digits that are read as octal.
fn octal(permissions: u16) -> u16 {
    u16::from_str_radix(&permissions.to_string(), 8).unwrap_or(0o644)
}

/// Values that a lock keeps: those that are not empty and not of machines.
fn kept(values: &Values) -> BTreeMap<String, String> {
    let is_runtime = |field: &String| RUNTIME.iter().any(|value| value.field == field);
    let short = |text: String| match text.len() > MAX_VALUE {
        true => vmbake_common::digest::Digest::of(text.as_bytes()).to_string(),
        false => text,
    };
    let all = values.texts().into_iter().filter(|(field, text)| !text.is_empty() && !is_runtime(field));
    all.map(|(field, text)| (field, short(text))).collect()
}
