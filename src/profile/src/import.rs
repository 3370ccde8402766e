//! `vmbake profile import`: performs the work of OSM's machine setup when the image is made.
//!
//! Profile, deployment, options and rules in; layers, a lock file and a report out. `vmbake_shell` runs the scripts of both phases over the
//! tree of a new machine: packages become packages of a layer, downloaded files its downloads, units its units. Values that only a cluster
//! or a machine knows become settings of user data.
//!
//! Guarantees: a command with an unknown effect stops the import, with the rule that would resolve it. No download becomes part of an image
//! without a proof. The first boot writes the results of OSM's templates for every set of values. The same input gives the same layers on
//! any machine.

mod base;
mod base_image;
mod base_tree;
mod boot_template;
mod cases;
mod document;
mod error;
mod evaluate;
mod instance;
mod known;
mod left;
mod lock;
mod machine;
mod phases;
mod program;
mod report;
mod rules;
mod runtime;
mod support;

pub use base_image::ImportBase;
pub use error::{CommandLocation, ImportError};
pub use instance::{Instance, InstanceDifference};
pub use lock::Lock;
pub use report::{FileNote, ImportReport, Statement, StatementClass};
pub use rules::{DownloadRule, Rules, StatementRule};
pub use support::{SUPPORT, Support};

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::deployment::Deployment;
use super::options::ControllerOptions;
use super::schema::Profile;
use cases::Lacking;
use document::{Document, Parts};
use evaluate::{Evaluated, evaluate};
use phases::Phases;
use program::{Phase, Program};
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::message;
use vmbake_layer::Layer;

/// Architectures of images, with what `uname -m` prints there.
const ARCHES: [(&str, &str); 2] = [("amd64", "x86_64"), ("arm64", "aarch64")];
/// Systems of images, with the name and version that a profile for one of them has.
const SYSTEMS: [(&str, &str, &str); 1] = [("debian-13", "debian", "13")];

/// What is asked for.
pub struct ImportRequest {
    pub profile: Profile,
    /// Its machines.
    pub deployment: Deployment,
    /// What the cluster gives.
    pub options: ControllerOptions,
    /// The system of the images, where the profile is for another one.
    pub system: Option<String>,
    /// What is said of commands.
    pub rules: Rules,
    /// Layers that go with it.
    pub extensions: Vec<Layer>,
    /// The base image that the scripts run over, where one is named. Then the layers are for its architecture, and for no other image.
    pub base: Option<ImportBase>,
    /// Whether untested combinations are accepted.
    pub is_untested_fine: bool,
}

impl ImportRequest {
    /// The system of the images.
    pub fn os(&self) -> Result<&'static str, ImportError> {
        system(self)
    }
}

/// What it becomes.
#[derive(Debug)]
pub struct ImportedProfile {
    /// Name of the kind.
    pub kind: String,
    /// Files of its layers, by paths below the directory of layers.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// What there is to remember.
    pub instance: Instance,
    /// What every command came to.
    pub report: ImportReport,
}

pub fn import(request: ImportRequest) -> Result<ImportedProfile, ImportError> {
    let system = system(&request)?;
    if !request.is_untested_fine {
        SUPPORT.check(system, &request.deployment.provider, &request.deployment.kubelet)?;
    }
    let phases = Phases::new(&request.profile, &request.deployment, &request.options)?;
    let own: BTreeMap<&str, &str> = phases.texts();
    let defaults = phases.defaults(&request.options)?;
    let parts = Parts {
        rules: &request.rules,
        templates: &phases.templates,
        own: &own,
        has_name: has_name(&request),
        defaults: &defaults,
        // What a deployment says for its cloud is often a secret.
        demanded: if request.deployment.cloud_config.is_some() { &["CLOUD_CONFIG"] } else { &[] },
    };
    let mut all: Option<(Document, ImportReport)> = None;
    let is_wanted = |arch: &str| request.base.as_ref().is_none_or(|base| base.arch == arch);
    for (arch, machine) in ARCHES.into_iter().filter(|(arch, _)| is_wanted(arch)) {
        let evaluated = run(&request, &phases, &phases.phases, machine)?;
        phases.check_scripts(&evaluated)?;
        phases.check_copies(&evaluated)?;
        let tested = phases.templates.iter().filter(|(_, template)| template.tests);
        let tested = tested.map(|(path, _)| path.as_str()).collect();
        for lacking in &phases.lacking {
            let other = run(&request, &phases, &lacking.phases, machine).map_err(|error| without(lacking, &error))?;
            lacking.compare(&evaluated, &other, &tested, &own)?;
        }
        let (document, report) = document::document(&evaluated, &parts)?;
        all = Some(match all {
            None => (document, report),
            Some((first, report)) => (joined(first, document, arch)?, report),
        });
    }
    let (document, mut report) = all.unwrap_or_default();
    report.files.extend(phases.notes());
    report.files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(finish(&request, system, &phases, document, report))
}

/// The system that images are of.
fn system(request: &ImportRequest) -> Result<&'static str, ImportError> {
    let (name, version) = (&request.profile.system, &request.profile.system_version);
    let fits = |(system, known, number): &(&str, &str, &str)| match &request.system {
        Some(wanted) => wanted == system,
        None => name == known && version == number,
    };
    let found = SYSTEMS.iter().find(|system| fits(system));
    found.map(|(system, ..)| *system).ok_or_else(|| ImportError::System {
        found: request.system.clone().unwrap_or_else(|| format!("{name} {version}")),
        known: SYSTEMS.map(|(system, ..)| system).join(", "),
    })
}

/// Whether machines have a file with their name: AWS names its machines itself.
fn has_name(request: &ImportRequest) -> bool {
    request.deployment.provider != "aws"
}

/// An error of the scripts on a machine that lacks values.
fn without(lacking: &Lacking, error: &ImportError) -> ImportError {
    ImportError::Message(message!(
        "{error}, on machines where .{} is not set: scripts must have the same result with and without it",
        lacking.fields()
    ))
}

fn run(
    request: &ImportRequest,
    phases: &Phases,
    texts: &[Phase; 2],
    machine: &'static str,
) -> Result<Evaluated, ImportError> {
    evaluate(&Program {
        phases: texts,
        units: &phases.units,
        rules: &request.rules,
        secrets: phases.secrets.clone(),
        has_name: has_name(request),
        machine,
        image: request.base.as_ref().map(|base| &base.tree),
    })
}

/// One layer for both architectures: only addresses and digests of downloads may differ.
fn joined(mut first: Document, second: Document, arch: &str) -> Result<Document, ImportError> {
    let differs = |path: &str| ImportError::Tree {
        path: path.to_owned(),
        what: format!("it differs on {arch}, but a layer has one version for all architectures"),
    };
    if first.keys != second.keys || first.required != second.required || first.optional != second.optional {
        return Err(differs("effects of the scripts"));
    }
    if first.files != second.files {
        let different = first.files.iter().find(|(path, text)| second.files.get(*path) != Some(*text));
        return Err(differs(different.map_or("a file", |(path, _)| path)));
    }
    if !first.downloads.keys().eq(second.downloads.keys()) {
        return Err(differs("list of downloads"));
    }
    for (name, one) in &mut first.downloads {
        let Some(other) = second.downloads.get(name) else { continue };
        for key in ["url", "checksums", "sha256"] {
            let (Some(mine), Some(theirs)) = (one.get(key).cloned(), other.get(key)) else { continue };
            if mine != *theirs {
                one[key] = json!({"amd64": mine, "arm64": theirs});
            }
        }
        if one.get("install") != other.get("install") || one.get("version") != other.get("version") {
            return Err(differs(name));
        }
    }
    Ok(first)
}

/// Names everything and writes it down.
fn finish(
    request: &ImportRequest,
    system: &str,
    phases: &Phases,
    document: Document,
    report: ImportReport,
) -> ImportedProfile {
    let ImportRequest { profile, deployment, .. } = request;
    let extensions: BTreeMap<String, Digest> =
        request.extensions.iter().map(|layer| (layer.schema.name.clone(), layer.digest)).collect();
    let bases: BTreeMap<String, Digest> = request.base.iter().map(|base| (base.arch.clone(), base.digest)).collect();
    let mut given = json!({
        "profile": profile.name,
        "version": profile.version,
        "deployment": [deployment.namespace, deployment.name],
        "provider": deployment.provider,
        "system": system,
        "values": phases.values,
        "defaults": document.keys.get("first_boot").and_then(|boot| boot.get("variables")),
        "rules": request.rules,
        "extensions": extensions,
    });
    if !bases.is_empty() {
        given["bases"] = json!(bases);
    }
    let values = Digest::of(given.to_string().as_bytes());
    let short: String = values.hex().chars().take(8).collect();
    let kind = format!("{}-{}-{short}", profile.name, deployment.name).replace('.', "-");
    let own = format!("{kind}-profile");
    let mut files = BTreeMap::new();
    let description =
        format!("What the profile {} {} does to a machine of {}.", profile.name, profile.version, deployment.name);
    let mut keys = document.keys;
    let mut requires = vec!["vm"];
    if keys.get("first_boot").is_some_and(|boot| boot.get("variables").is_some()) {
        requires.push("settings");
    }
    keys.insert("requires".to_owned(), json!(requires));
    if !bases.is_empty() {
        keys.insert("bases".to_owned(), json!(bases));
    }
    if !document.downloads.is_empty() {
        keys.insert("downloads".to_owned(), json!(document.downloads));
    }
    write_layer(&mut files, &own, &profile.version, system, &description, keys);
    for (path, content) in document.files {
        files.insert(PathBuf::from(format!("{own}/files{path}")), content);
    }
    let required: Vec<&String> = std::iter::once(&own).chain(extensions.keys()).collect();
    let top = Map::from_iter([("requires".to_owned(), json!(required))]);
    let description = format!("Machines of {} by the profile {} {}.", deployment.name, profile.name, profile.version);
    write_layer(&mut files, &kind, &profile.version, system, &description, top);
    let instance = Instance {
        profile: profile.name.clone(),
        version: profile.version.clone(),
        deployment: format!("{}/{}", deployment.namespace, deployment.name),
        spec: profile.spec_digest,
        provider: deployment.provider.clone(),
        kubernetes: deployment.kubelet.clone(),
        os: system.to_owned(),
        values_digest: values,
        values: phases.values.clone(),
        bases,
        layers: BTreeMap::new(),
        manifests: BTreeMap::new(),
        required: document.required.iter().map(|name| (*name).to_owned()).collect(),
        optional: document.optional.iter().map(|name| (*name).to_owned()).collect(),
    };
    ImportedProfile { kind, files, instance, report }
}

fn write_layer(
    files: &mut BTreeMap<PathBuf, Vec<u8>>,
    name: &str,
    version: &str,
    system: &str,
    description: &str,
    mut keys: Map<String, Value>,
) {
    for (key, value) in [
        ("name", json!(name)),
        ("version", json!(version)),
        ("description", json!(description)),
        ("os", json!([system])),
    ] {
        keys.insert(key.to_owned(), value);
    }
    // A value of JSON always has a text.
    let text = escape::json(&Value::Object(keys)).unwrap_or_default();
    files.insert(PathBuf::from(format!("{name}/layer.json")), text.into_bytes());
}
