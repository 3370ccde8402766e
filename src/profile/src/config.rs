//! The `OperatingSystemConfig`: profile, deployment and options in; the object that OSM stores in the cluster out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::cloud_config::{self, Message, RenderedFile};
use super::deployment::Deployment;
use super::error::ProfileError;
use super::options::ControllerOptions;
use super::registries;
use super::schema::{Modules, PhasePart, Profile, SystemdUnit, TemplateFile};
use super::size::UserDataSize;
use super::template::Checked;
use super::values::{CONTAINERD, Values};
use super::yaml;
use vmbake_common::message;

/// Which profile a deployment takes; OSM writes `osp-SYSTEM` where there is none.
const PROFILE: &str = "k8c.io/operating-system-profile";
/// How often a deployment was changed.
const REVISION: &str = "machinedeployment.clusters.k8s.io/revision";

/// Which of the two cloud-configs of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachinePhase {
    /// What the provider gives to the machine: it fetches the other one.
    Bootstrap,
    /// What sets the machine up.
    Provisioning,
}

impl MachinePhase {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::Bootstrap, Self::Provisioning];
    /// Their names.
    pub const NAMES: [&str; 2] = ["bootstrap", "provisioning"];

    /// The phase of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Bootstrap => "bootstrap",
            Self::Provisioning => "provisioning",
        }
    }
}

/// What OSM makes of a profile.
#[derive(Clone, Debug)]
pub struct OperatingSystemConfig {
    profile: Profile,
    deployment: Deployment,
    namespace: String,
    annotations: BTreeMap<String, String>,
    bootstrap: PhaseConfig,
    provisioning: PhaseConfig,
}

/// One phase, with nothing left to render.
#[derive(Clone, Debug)]
pub(super) struct PhaseConfig {
    pub(super) files: Vec<RenderedFile>,
    pub(super) units: Vec<SystemdUnit>,
    pub(super) modules: Option<Modules>,
}

impl OperatingSystemConfig {
    /// Renders a profile for the machines of a deployment.
    pub fn render(profile: Profile, deployment: Deployment, options: &ControllerOptions) -> Result<Self, ProfileError> {
        let annotations = annotations(&profile, &deployment)?;
        let values = Values::new(&deployment, options)?;
        let bootstrap = phase(&profile.bootstrap, &values, BTreeMap::new())?;
        let provisioning = phase(&profile.provisioning, &values, registries::hosts(options)?)?;
        let namespace = options.namespace.clone();
        Ok(Self { profile, deployment, namespace, annotations, bootstrap, provisioning })
    }

    /// The object as YAML, its keys sorted.
    pub fn to_yaml(&self) -> String {
        let Deployment { name, namespace, provider, provider_spec, .. } = &self.deployment;
        yaml::document(&json!({
            "apiVersion": "operatingsystemmanager.k8c.io/v1alpha1",
            "kind": "OperatingSystemConfig",
            "metadata": {
                "annotations": self.annotations,
                "name": format!("{name}-{namespace}-config"),
                "namespace": self.namespace,
            },
            "spec": {
                "osName": self.profile.system,
                "osVersion": self.profile.system_version,
                "cloudProvider": {"name": provider, "spec": provider_spec},
                "bootstrapConfig": self.phase(&self.bootstrap),
                "provisioningConfig": self.phase(&self.provisioning),
                "provisioningUtility": "cloud-init",
            },
        }))
    }

    /// The cloud-config of a phase, byte for byte as OSM sends it.
    pub fn user_data(&self, phase: MachinePhase) -> Result<String, ProfileError> {
        let config = match phase {
            MachinePhase::Bootstrap => &self.bootstrap,
            MachinePhase::Provisioning => &self.provisioning,
        };
        if let Some(unit) = config.units.first() {
            return Err(ProfileError::Unit { unit: unit.name.clone() });
        }
        let provider = self.deployment.provider.as_str();
        cloud_config::render(&Message {
            // On AWS a machine must have the name that its network has for it.
            has_name: phase == MachinePhase::Bootstrap && provider != "aws",
            // Others put the name of each machine there when they make it.
            name: (provider == "edge").then_some(self.deployment.name.as_str()),
            ssh_keys: &self.deployment.ssh_keys,
            files: &config.files,
            modules: config.modules.as_ref(),
        })
    }

    /// Size of the cloud-config of a phase, and the limit of the provider.
    pub fn size(&self, phase: MachinePhase) -> Result<UserDataSize, ProfileError> {
        Ok(UserDataSize::new(phase.name(), self.user_data(phase)?.len(), &self.deployment.provider))
    }

    fn phase(&self, phase: &PhaseConfig) -> Value {
        let mut fields = Map::new();
        if !phase.files.is_empty() {
            fields.insert("files".to_owned(), phase.files.iter().map(file_object).collect());
        }
        if !phase.units.is_empty() {
            fields.insert("units".to_owned(), phase.units.iter().map(unit_object).collect());
        }
        if !self.deployment.ssh_keys.is_empty() {
            fields.insert("userSSHKeys".to_owned(), json!(self.deployment.ssh_keys));
        }
        if let Some(Modules { bootcmd, runcmd }) = &phase.modules {
            let lists = [("bootcmd", bootcmd), ("runcmd", runcmd)].into_iter().filter(|(_, list)| !list.is_empty());
            let modules = lists.map(|(name, list)| (name.to_owned(), json!(list))).collect();
            fields.insert("modules".to_owned(), Value::Object(modules));
        }
        Value::Object(fields)
    }
}

/// Refuses a deployment that the profile is not for, and says what OSM notes about both.
pub(super) fn annotations(
    profile: &Profile,
    deployment: &Deployment,
) -> Result<BTreeMap<String, String>, ProfileError> {
    let mut all: BTreeMap<&str, String> =
        deployment.annotations.iter().map(|(name, words)| (name.as_str(), words.text.clone())).collect();
    let wanted = all.entry(PROFILE).or_insert_with(|| format!("osp-{}", deployment.system)).clone();
    let mismatch = |expected: &str, found: &str| {
        ProfileError::Message(message!(
            "profile {} does not match the deployment: expected {expected}, found {found}",
            profile.name
        ))
    };
    if wanted != profile.name {
        return Err(mismatch(&format!("deployments with {PROFILE}: {}", profile.name), &wanted));
    }
    if deployment.system != profile.system {
        return Err(mismatch(&profile.system, &deployment.system));
    }
    if !profile.providers.contains(&deployment.provider) {
        return Err(mismatch(&profile.providers.join(", "), &deployment.provider));
    }
    let revision = all.get(REVISION).cloned().unwrap_or_default();
    let hash = Sha256::digest(go_json(&all)).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Ok(BTreeMap::from([
        ("k8c.io/machine-deployment-revision".to_owned(), revision),
        ("k8c.io/mdannotations-hash".to_owned(), hash),
        ("k8c.io/osp-version".to_owned(), profile.version.clone()),
    ]))
}

/// JSON as Go's encoding/json writes it: what HTML has a meaning for is escaped.
fn go_json(annotations: &BTreeMap<&str, String>) -> String {
    let text = json!(annotations).to_string();
    let escapes =
        [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];
    escapes.into_iter().fold(text, |text, (char, escape)| text.replace(char, escape))
}

/// Renders a phase, and adds files that are not templates.
pub(super) fn phase(
    part: &PhasePart,
    values: &Values,
    added: BTreeMap<String, String>,
) -> Result<PhaseConfig, ProfileError> {
    let runtime = part.runtimes.iter().find(|runtime| runtime.name == CONTAINERD);
    let mut templates = BTreeMap::new();
    templates.extend(runtime.iter().flat_map(|runtime| &runtime.templates));
    templates.extend(&part.templates);
    let mut named = Vec::new();
    let (mut all_fields, mut all_compared) = (BTreeSet::new(), BTreeSet::new());
    for (name, words) in &templates {
        let checked = Checked::new(words, &[].into())?;
        all_fields.extend(checked.fields.iter().cloned());
        all_compared.extend(checked.compared.iter().cloned());
        let text = checked.render(&[], &values.of(&checked.fields)?)?;
        if text.contains("{{") {
            return Err(ProfileError::Template {
                spot: words.spot.clone(),
                message: "the result contains {{, which would be parsed as a template again".to_owned(),
            });
        }
        named.push((name.as_str(), text));
    }
    let names = named.iter().map(|(name, _)| *name).collect();
    let mut files: Vec<RenderedFile> = Vec::new();
    for file in part.files.iter().chain(runtime.iter().flat_map(|runtime| &runtime.files)) {
        let TemplateFile { path, permissions, is_base64, content } = file;
        if added.contains_key(path) || files.iter().any(|other| other.path == *path) {
            return Err(ProfileError::Message(message!("{}: duplicate file {path}", content.spot)));
        }
        let checked = Checked::new(content, &names)?;
        let data = checked.render(&named, &values.of(&checked.fields)?)?;
        let (mut fields, mut compared) = (checked.fields, checked.compared);
        if content.text.contains("template") {
            fields.extend(all_fields.iter().cloned());
            compared.extend(all_compared.iter().cloned());
        }
        let (path, permissions, is_base64) = (path.clone(), *permissions, *is_base64);
        files.push(RenderedFile { path, permissions, is_base64, data, fields, compared });
    }
    files.extend(added.into_iter().map(|(path, data)| RenderedFile {
        path,
        permissions: registries::PERMISSIONS,
        is_base64: false,
        data,
        fields: BTreeSet::new(),
        compared: BTreeSet::new(),
    }));
    Ok(PhaseConfig { files, units: part.units.clone(), modules: part.modules.clone() })
}

fn file_object(file: &RenderedFile) -> Value {
    let RenderedFile { path, permissions, is_base64, data, .. } = file;
    let inline = match is_base64 {
        true => json!({"data": data, "encoding": "b64"}),
        false => json!({"data": data}),
    };
    json!({"path": path, "permissions": permissions, "content": {"inline": inline}})
}

fn unit_object(unit: &SystemdUnit) -> Value {
    let mut fields = Map::from_iter([("name".to_owned(), json!(unit.name))]);
    for (name, value) in [
        ("enable", unit.enable.map(Value::Bool)),
        ("mask", unit.mask.map(Value::Bool)),
        ("content", unit.content.clone().map(Value::String)),
    ] {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    }
    if !unit.drop_ins.is_empty() {
        let drop_ins = unit.drop_ins.iter().map(|(name, content)| json!({"name": name, "content": content}));
        fields.insert("dropIns".to_owned(), drop_ins.collect());
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_hashed_as_go_writes_them() {
        let annotations = BTreeMap::from([("b", "a<b>&c\u{2028}\n\"é".to_owned()), ("a", String::new())]);
        assert_eq!(go_json(&annotations), r#"{"a":"","b":"a\u003cb\u003e\u0026c\u2028\n\"é"}"#);
    }
}
