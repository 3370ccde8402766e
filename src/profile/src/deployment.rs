//! The machines of a profile: a `MachineDeployment` of `cluster.k8s.io/v1alpha1` in, the values that OSM uses out.
//!
//! Only the name, the annotations, the version of the kubelet and the provider configuration are used; other fields must be known to the
//! API. OSM parses the provider configuration strictly, too.

use std::collections::BTreeMap;

use serde_json::Value;

use super::constraint::SemanticVersion;
use super::error::ProfileError;
use super::fields::{Fields, Words, shown, words};
use super::names::is_name;
use super::node::{Document, Node};
use super::schema::{METADATA, kind, object_name, refused, system};

const API: (&str, &str) = ("cluster.k8s.io/v1alpha1", "MachineDeployment");
/// Which addresses a machine has; OSM takes none of them for IPv4.
const FAMILIES: [&str; 5] = ["", "IPv4", "IPv6", "IPv4+IPv6", "IPv6+IPv4"];

/// Machines of one sort.
#[derive(Clone, Debug)]
pub struct Deployment {
    pub name: String,
    pub namespace: String,
    /// Version of the kubelet, with `v`.
    pub kubelet: String,
    /// Who runs the machines.
    pub provider: String,
    /// `debian` or `ubuntu`.
    pub system: String,
    pub(super) annotations: BTreeMap<String, Words>,
    pub(super) provider_spec: Option<Value>,
    pub(super) ssh_keys: Vec<String>,
    pub(super) ip_family: String,
    pub(super) cloud_config: Option<Words>,
}

impl Deployment {
    pub(super) fn read(document: &Document) -> Result<Self, ProfileError> {
        let mut top = Fields::new(document, &document.root)?;
        kind(&mut top, API)?;
        let mut metadata = top.inside("metadata")?;
        let name = object_name(&mut metadata, "name")?;
        let namespace = object_name(&mut metadata, "namespace")?;
        let annotations = metadata.texts("annotations")?.into_iter().collect();
        metadata.pass_over(&METADATA);
        metadata.finish()?;
        let mut spec = top.inside("spec")?;
        top.pass_over(&["status"]);
        top.finish()?;
        let mut template = spec.inside("template")?;
        spec.pass_over(&["replicas", "selector", "strategy", "minReadySeconds", "revisionHistoryLimit", "paused"]);
        spec.pass_over(&["progressDeadlineSeconds"]);
        spec.finish()?;
        let mut machine = template.inside("spec")?;
        template.pass_over(&["metadata"]);
        template.finish()?;
        machine.pass_over(&["metadata", "taints", "configSource", "providerID"]);
        let kubelet = kubelet(&mut machine)?;
        let mut provider_spec = machine.inside("providerSpec")?;
        machine.finish()?;
        let value = provider_spec.inside("value")?;
        if provider_spec.take("valueFrom").is_some() {
            let why = "the machine class is only known in the cluster: specify the value itself";
            return Err(refused(&provider_spec.spot(), "valueFrom", why));
        }
        provider_spec.finish()?;
        configured(
            value,
            Self {
                name,
                namespace,
                kubelet,
                provider: String::new(),
                system: String::new(),
                annotations,
                provider_spec: None,
                ssh_keys: Vec::new(),
                ip_family: String::new(),
                cloud_config: None,
            },
        )
    }
}

fn kubelet(machine: &mut Fields<'_>) -> Result<String, ProfileError> {
    let mut versions = machine.inside("versions")?;
    let kubelet = versions.text("kubelet")?;
    versions.pass_over(&["controlPlane"]);
    versions.finish()?;
    match SemanticVersion::loose(&kubelet.text) {
        Some(version) => Ok(format!("v{version}")),
        None => Err(ProfileError::value(kubelet.spot, "a version such as 1.35.2", shown(&kubelet.text))),
    }
}

/// Adds what the configuration for the provider says.
fn configured(mut value: Fields<'_>, deployment: Deployment) -> Result<Deployment, ProfileError> {
    let provider = value.text("cloudProvider")?;
    if !is_name(&provider.text) {
        return Err(ProfileError::value(provider.spot, "the name of a cloud provider", shown(&provider.text)));
    }
    let system = system(&value.text("operatingSystem")?)?;
    let ssh_keys = value.list("sshPublicKeys", ssh_key)?;
    let provider_spec = value.json("cloudProviderSpec")?;
    let ip_family = network(&mut value)?;
    let cloud_config = value.text_or_none("overwriteCloudConfig")?;
    upgrades(&mut value)?;
    value.pass_over(&["caPublicKey"]);
    value.finish()?;
    Ok(Deployment { provider: provider.text, system, provider_spec, ssh_keys, ip_family, cloud_config, ..deployment })
}

/// A key as a line of `authorized_keys`.
fn ssh_key(document: &Document, node: &Node) -> Result<String, ProfileError> {
    let key = words(document, node)?;
    let text = key.text.trim();
    match !text.is_empty() && text.chars().all(|char| !char.is_control() && char != '\'') {
        true => Ok(text.to_owned()),
        false => Err(ProfileError::value(key.spot, "a public key in a single line, without '", shown(&key.text))),
    }
}

fn network(value: &mut Fields<'_>) -> Result<String, ProfileError> {
    let Some(mut network) = value.inside_or_none("network")? else { return Ok(String::new()) };
    let why = "OSM supports static IP addresses only for Flatcar: use DHCP";
    for field in ["cidr", "gateway"] {
        if network.text_or_none(field)?.is_some_and(|words| !words.text.is_empty()) {
            return Err(refused(&network.spot(), field, why));
        }
    }
    if let Some(mut dns) = network.inside_or_none("dns")? {
        if !dns.list("servers", words)?.is_empty() {
            return Err(refused(&dns.spot(), "dns.servers", why));
        }
        dns.finish()?;
    }
    let family = network.text_or_none("ipFamily")?;
    network.finish()?;
    match family {
        None => Ok(String::new()),
        Some(family) if FAMILIES.contains(&family.text.as_str()) => Ok(family.text),
        Some(family) => {
            Err(ProfileError::value(family.spot, "IPv4, IPv6, IPv4+IPv6 or IPv6+IPv4", shown(&family.text)))
        }
    }
}

/// Refuses machines that change themselves.
fn upgrades(value: &mut Fields<'_>) -> Result<(), ProfileError> {
    let Some(mut system) = value.inside_or_none("operatingSystemSpec")? else { return Ok(()) };
    if system.is_true("distUpgradeOnBoot")? {
        let why = "images are not upgraded in place: run `vmbake update` and bake again";
        return Err(refused(&system.spot(), "distUpgradeOnBoot", why));
    }
    system.finish()
}
