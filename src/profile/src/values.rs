//! The values for templates: a deployment and the options of a cluster in, the fields of OSM out.
//!
//! A field that OSM leaves empty is empty; for an unset field, a template gets an empty string, where OSM writes `<nil>`. A template that
//! uses a value of the cluster that is not set is refused. Values cannot contain template syntax, since the results of named templates are
//! parsed as templates again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gotmpl::Value;

use super::constraint;
use super::deployment::Deployment;
use super::error::ProfileError;
use super::fields::{Words, shown};
use super::options::ControllerOptions;
use super::registries;
use super::schema::refused;

/// All fields that a template may name.
pub(super) const FIELDS: [&str; 37] = [
    "BootstrapKubeconfig",
    "BootstrapKubeconfigSecretName",
    "CNIVersion",
    "CloudConfig",
    "CloudProviderName",
    "ClusterDNSIPs",
    "ContainerLogMaxFiles",
    "ContainerLogMaxSize",
    "ContainerRuntime",
    "ContainerRuntimeAuthConfig",
    "ContainerRuntimeConfig",
    "EvictionHard",
    "ExternalCloudProvider",
    "HTTPProxy",
    "HostCACert",
    "ImageGCHighThresholdPercent",
    "ImageGCLowThresholdPercent",
    "ImageMaximumGCAge",
    "ImageMinimumGCAge",
    "InTreeCCMAvailable",
    "InitialTaints",
    "KubeReserved",
    "KubeVersion",
    "KubeletConfiguration",
    "KubeletFeatureGates",
    "KubeletSystemdUnit",
    "KubernetesCACert",
    "MaxPods",
    "NetworkIPFamily",
    "NoProxy",
    "PauseImage",
    "SecretName",
    "ServerAddress",
    "ServerURL",
    "SystemReserved",
    "Token",
    "UbuntuConfig",
];
/// Fields that come from the cluster alone, with the options that give them.
const FROM_CLUSTER: [(&str, &str); 4] = [
    ("BootstrapKubeconfig", "bootstrap-kubeconfig"),
    ("KubernetesCACert", "kubernetes-ca-bundle"),
    ("ServerURL", "server-url"),
    ("Token", "api-server-token"),
];
/// Annotations of a deployment that configure its kubelets begin so.
const KUBELET: &str = "v1.kubelet-config.machine-controller.kubermatic.io/";
/// What they can say.
const KUBELET_KEYS: [&str; 10] = [
    "ContainerLogMaxFiles",
    "ContainerLogMaxSize",
    "EvictionHard",
    "ImageGCHighThresholdPercent",
    "ImageGCLowThresholdPercent",
    "ImageMaximumGCAge",
    "ImageMinimumGCAge",
    "KubeReserved",
    "MaxPods",
    "SystemReserved",
];
/// Providers with a controller in Kubernetes up to 1.28.
const IN_TREE: [&str; 4] = ["aws", "azure", "gce", "vsphere"];
/// Providers that need a file for it.
const CONFIGURED: [&str; 6] = ["aws", "azure", "gce", "kubevirt", "openstack", "vsphere"];

/// The fields that have values.
pub(super) struct Values(BTreeMap<Arc<str>, Value>);

impl Values {
    pub(super) fn new(deployment: &Deployment, options: &ControllerOptions) -> Result<Self, ProfileError> {
        let mut values = Self(FIELDS.iter().map(|field| (Arc::from(*field), Value::from(""))).collect());
        let is_in_tree = IN_TREE.contains(&deployment.provider.as_str()) && !options.external_cloud_provider;
        let (name, namespace) = (&deployment.name, &deployment.namespace);
        for (field, text) in [
            ("KubeVersion", deployment.kubelet.clone()),
            ("ContainerRuntime", CONTAINERD.to_owned()),
            ("CloudProviderName", deployment.provider.clone()),
            ("NetworkIPFamily", deployment.ip_family.clone()),
            ("CloudConfig", cloud_config(deployment, options)?),
            ("ContainerRuntimeConfig", registries::containerd(options)),
            ("HostCACert", options.host_ca.clone()),
            ("HTTPProxy", options.http_proxy.clone()),
            ("InitialTaints", options.initial_taints.clone()),
            ("NoProxy", options.no_proxy.clone()),
            ("PauseImage", options.pause_image.clone()),
            ("SecretName", format!("{name}-{namespace}-provisioning-config")),
            ("BootstrapKubeconfigSecretName", format!("{}-kubelet-bootstrap-config", machines(name, namespace))),
        ] {
            values.set(field, Value::from(text));
        }
        for (field, text) in [
            ("BootstrapKubeconfig", &options.bootstrap_kubeconfig),
            ("KubernetesCACert", &options.kubernetes_ca),
            ("ServerURL", &options.server_url),
            ("Token", &options.token),
        ] {
            match text {
                Some(text) => values.set(field, Value::from(text.clone())),
                None => drop(values.0.remove(field)),
            }
        }
        values.set("InTreeCCMAvailable", Value::Bool(is_in_tree));
        values.set("ExternalCloudProvider", Value::Bool(options.external_cloud_provider));
        values.set(
            "ClusterDNSIPs",
            options.cluster_dns.iter().map(|ip| Value::from(ip.to_string())).collect::<Vec<_>>().into(),
        );
        values.set("KubeletFeatureGates", map(options.feature_gates.iter().map(|(name, on)| (name, Value::Bool(*on)))));
        values.set("UbuntuConfig", map([(&"DistUpgradeOnBoot".to_owned(), Value::Bool(false))].into_iter()));
        values.kubelet(&deployment.annotations)?;
        Ok(values)
    }

    /// The values for templates that name `fields`, all of which must be there.
    pub(super) fn of(&self, fields: &BTreeSet<String>) -> Result<Value, ProfileError> {
        for (field, option) in FROM_CLUSTER {
            if fields.contains(field) && !self.0.contains_key(field) {
                return Err(ProfileError::NotGiven { field, option });
            }
        }
        Ok(Value::Map(Arc::new(self.0.clone())))
    }

    /// The same with other values for these fields.
    pub(super) fn with(&self, fields: impl Iterator<Item = (&'static str, Value)>) -> Self {
        let mut values = Self(self.0.clone());
        fields.for_each(|(field, value)| values.set(field, value));
        values
    }

    /// All of them as texts, in the order of their names.
    pub(super) fn texts(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(field, value)| (field.to_string(), value.to_string())).collect()
    }

    fn set(&mut self, field: &str, value: Value) {
        self.0.insert(Arc::from(field), value);
    }

    /// Takes over what annotations say. Numbers stay texts: one that is there counts as true, even 0.
    fn kubelet(&mut self, annotations: &BTreeMap<String, Words>) -> Result<(), ProfileError> {
        for (name, words) in annotations {
            let Some(key) = name.strip_prefix(KUBELET) else { continue };
            let wrong = |expected: &str| {
                ProfileError::value(words.spot.clone(), format!("{key}: {expected}"), shown(&words.text))
            };
            let value = match key {
                "KubeReserved" | "SystemReserved" => pairs(&words.text, '=').ok_or_else(|| wrong("NAME=AMOUNT, …"))?,
                "EvictionHard" => pairs(&words.text, '<').ok_or_else(|| wrong("SIGNAL<AMOUNT, …"))?,
                "MaxPods" | "ImageGCHighThresholdPercent" | "ImageGCLowThresholdPercent" => {
                    let number = words.text.parse::<i32>().map_err(|_| wrong("a whole number"))?;
                    Value::from(number.to_string())
                }
                "ImageMinimumGCAge" | "ImageMaximumGCAge" => {
                    Value::from(duration(&words.text).ok_or_else(|| wrong("a time such as 1h30m, 2m or 90s"))?)
                }
                known if KUBELET_KEYS.contains(&known) => {
                    let is_plain =
                        !words.text.is_empty() && words.text.bytes().all(|byte| byte.is_ascii_alphanumeric());
                    Value::from(
                        is_plain
                            .then(|| words.text.clone())
                            .ok_or_else(|| wrong("a number, optionally with a unit"))?,
                    )
                }
                other => {
                    return Err(ProfileError::UnknownField {
                        spot: words.spot.clone(),
                        field: other.to_owned(),
                        known: KUBELET_KEYS.to_vec(),
                    });
                }
            };
            self.set(key, value);
        }
        Ok(())
    }
}

/// The one container runtime that OSM has.
pub(super) const CONTAINERD: &str = "containerd";

/// By which name OSM keeps a token; as a label of Kubernetes it has fewer than 63 bytes.
fn machines(name: &str, namespace: &str) -> String {
    let whole = format!("{namespace}-{name}");
    if whole.len() < 63 { whole } else { name.to_owned() }
}

fn cloud_config(deployment: &Deployment, options: &ControllerOptions) -> Result<String, ProfileError> {
    if let Some(words) = &deployment.cloud_config {
        return match words.text.contains("{{") {
            true => Err(refused(&words.spot, "{{", "a value that contains {{ would be parsed as a template")),
            false => Ok(words.text.clone()),
        };
    }
    let is_old = constraint::fits(">= 1.29", &deployment.kubelet) == Some(false);
    match is_old && !options.external_cloud_provider && CONFIGURED.contains(&deployment.provider.as_str()) {
        true => Err(ProfileError::CloudConfig {
            kubelet: deployment.kubelet.clone(),
            provider: deployment.provider.clone(),
        }),
        false => Ok(String::new()),
    }
}

fn map<'a>(entries: impl Iterator<Item = (&'a String, Value)>) -> Value {
    Value::Map(Arc::new(entries.map(|(name, value)| (Arc::from(name.as_str()), value)).collect()))
}

/// Names and amounts, of which there is at least one.
fn pairs(text: &str, delimiter: char) -> Option<Value> {
    let is_plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-./%".contains(&byte))
    };
    let pairs = text
        .split(',')
        .map(|pair| pair.split_once(delimiter).filter(|(name, value)| is_plain(name) && is_plain(value)));
    let pairs: BTreeMap<Arc<str>, Value> =
        pairs.map(|pair| pair.map(|(name, value)| (Arc::from(name), Value::from(value)))).collect::<Option<_>>()?;
    Some(Value::Map(Arc::new(pairs)))
}

/// A duration of whole hours, minutes and seconds, as Go writes it.
fn duration(text: &str) -> Option<String> {
    let (mut rest, mut seconds) = (text, 0_u64);
    for (unit, length) in [('h', 3600), ('m', 60), ('s', 1)] {
        if let Some((number, after)) = rest.split_once(unit) {
            seconds = seconds.checked_add(number.parse::<u32>().ok().map(u64::from)?.checked_mul(length)?)?;
            rest = after;
        }
    }
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    (rest.is_empty() && !text.is_empty()).then(|| match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_does() {
        for (text, expected) in [
            ("2m", Some("2m0s")),
            ("90s", Some("1m30s")),
            ("24h", Some("24h0m0s")),
            ("1h30m5s", Some("1h30m5s")),
            ("0s", Some("0s")),
            ("", None),
            ("5", None),
            ("1d", None),
            ("5m1h", None),
            ("-1s", None),
            ("99999999999h", None),
        ] {
            assert_eq!(duration(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_label_of_kubernetes_is_short() {
        assert_eq!(machines("workers", "kube-system"), "kube-system-workers");
        let (name, namespace) = ("w".repeat(40), "n".repeat(22));
        assert_eq!(machines(&name, &namespace), name);
        assert_eq!(machines(&name, &namespace[1..]).len(), 62);
    }
}
