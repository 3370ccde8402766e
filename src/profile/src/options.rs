//! Options of OSM in a cluster: assignments in, validated values out.
//!
//! Names and defaults are those of OSM's options; three more are values that OSM reads from the cluster. Values that are files are given as
//! paths. Messages never contain values: some are secrets.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use super::error::ProfileError;
use super::names::is_object_name;
use vmbake_common::address;

/// Names that can be assigned, with what each takes.
const OPTIONS: [(&str, &str); 18] = [
    ("api-server-token", "a file with a token that can read the secrets of OSM"),
    ("bootstrap-kubeconfig", "a file with the bootstrap kubeconfig of the kubelet"),
    ("cluster-dns", "IP addresses, separated by commas"),
    ("container-runtime", "containerd"),
    ("device-ownership-from-security-context", "true or false"),
    ("external-cloud-provider", "true or false"),
    ("host-ca-bundle", "a file with certificates that the machine trusts, in PEM"),
    ("initial-taints", "taints in a single line"),
    ("kubernetes-ca-bundle", "a file with the certificates of the cluster, in PEM"),
    ("namespace", "the namespace of OSM"),
    ("node-containerd-registry-mirrors", "REGISTRY=URL; may be repeated"),
    ("node-http-proxy", "a URL in a single line"),
    ("node-insecure-registries", "registries, separated by commas"),
    ("node-kubelet-feature-gates", "NAME=true or NAME=false, separated by commas"),
    ("node-no-proxy", "hosts, separated by commas"),
    ("node-registry-mirrors", "[REGISTRY=]URL, separated by commas"),
    ("pause-image", "the name of a container image"),
    ("server-url", "a URL that starts with https://"),
];
/// The one that may be repeated.
const REPEATED: &str = "node-containerd-registry-mirrors";
/// OSM switches it on whatever it is told, unless it is told to switch it off.
const ROTATION: &str = "RotateKubeletServerCertificate";
/// Registries of images that say no other.
const DOCKER: &str = "docker.io";

/// What a cluster gives.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    /// Addresses of the cluster's DNS.
    pub cluster_dns: Vec<IpAddr>,
    /// The kubelet leaves the cloud to a controller.
    pub external_cloud_provider: bool,
    /// Taints of new nodes.
    pub initial_taints: String,
    /// Proxy of the machines.
    pub http_proxy: String,
    /// What is reached without it.
    pub no_proxy: String,
    /// Registries whose certificates are not verified.
    pub insecure_registries: Vec<String>,
    /// Mirrors by registry, each in its order.
    pub mirrors: BTreeMap<String, Vec<String>>,
    /// Image of the container that holds a pod together.
    pub pause_image: String,
    /// Devices belong to the user of a container.
    pub device_ownership: bool,
    /// Feature gates of the kubelet.
    pub feature_gates: BTreeMap<String, bool>,
    /// Certificates of the cluster.
    pub kubernetes_ca: Option<String>,
    /// Certificates that the machine trusts.
    pub host_ca: String,
    /// Namespace of OSM.
    pub namespace: String,
    /// Address of the API server.
    pub server_url: Option<String>,
    /// Token that reads the secrets of OSM.
    pub token: Option<String>,
    /// What the kubelet begins with.
    pub bootstrap_kubeconfig: Option<String>,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            cluster_dns: vec![IpAddr::from([10, 10, 10, 10])],
            external_cloud_provider: false,
            initial_taints: String::new(),
            http_proxy: String::new(),
            no_proxy: ".svc,.cluster.local,localhost,127.0.0.1".to_owned(),
            insecure_registries: Vec::new(),
            mirrors: BTreeMap::new(),
            pause_image: String::new(),
            device_ownership: false,
            feature_gates: BTreeMap::from([(ROTATION.to_owned(), true)]),
            kubernetes_ca: None,
            host_ca: String::new(),
            namespace: "kube-system".to_owned(),
            server_url: None,
            token: None,
            bootstrap_kubeconfig: None,
        }
    }
}

impl ControllerOptions {
    /// Reads assignments; `read` gives the text of a file.
    pub(super) fn parse(
        assignments: &[(String, String)],
        read: impl Fn(&Path) -> Result<String, ProfileError>,
    ) -> Result<Self, ProfileError> {
        let mut options = Self::default();
        for (at, (name, value)) in assignments.iter().enumerate() {
            let Some((name, takes)) = OPTIONS.iter().find(|(known, _)| known == name) else {
                let known = OPTIONS.iter().map(|(known, _)| *known).collect();
                return Err(ProfileError::UnknownOption { option: name.clone(), known });
            };
            if *name != REPEATED && assignments.iter().take(at).any(|(before, _)| before == name) {
                return Err(ProfileError::Option { option: (*name).to_owned(), expected: "a single value".to_owned() });
            }
            let wrong = || ProfileError::Option { option: (*name).to_owned(), expected: (*takes).to_owned() };
            if address::value_has_userinfo(name, value) || address::argument_has_userinfo(value) {
                let expected = format!("a different value: {}", address::MESSAGE);
                return Err(ProfileError::Option { option: (*name).to_owned(), expected });
            }
            match options.assign(name, value) {
                Some(()) => {}
                None if is_file(name) => {
                    let text = read(Path::new(value))?;
                    options.assign_file(name, &text).ok_or_else(wrong)?;
                }
                None => return Err(wrong()),
            }
        }
        Ok(options)
    }

    /// Sets an option that is not a file; none if the value does not fit.
    fn assign(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "cluster-dns" => self.cluster_dns = items(value).map(address).collect::<Option<_>>()?,
            "container-runtime" => return (value == "containerd").then_some(()),
            "device-ownership-from-security-context" => self.device_ownership = truth(value)?,
            "external-cloud-provider" => self.external_cloud_provider = truth(value)?,
            "initial-taints" => self.initial_taints = line(value)?,
            "namespace" => self.namespace = is_object_name(value).then(|| value.to_owned())?,
            REPEATED => {
                let (registry, url) = value.split_once('=')?;
                self.mirror(registry, url)?;
            }
            "node-http-proxy" => self.http_proxy = line(value)?,
            "node-insecure-registries" => {
                self.insecure_registries = items(value).map(registry).collect::<Option<_>>()?
            }
            "node-kubelet-feature-gates" => {
                self.feature_gates = items(value).map(gate).collect::<Option<_>>()?;
                self.feature_gates.entry(ROTATION.to_owned()).or_insert(true);
            }
            "node-no-proxy" => self.no_proxy = line(value)?,
            "node-registry-mirrors" => {
                for item in items(value) {
                    let is_name =
                        |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
                    let named = item.split_once('=').filter(|(name, _)| !name.is_empty() && is_name(name));
                    let (registry, url) = named.unwrap_or((DOCKER, item));
                    let scheme = if url.starts_with("http") { "" } else { "https://" };
                    self.mirror(registry, &format!("{scheme}{url}"))?;
                }
            }
            "pause-image" => self.pause_image = reference(value)?,
            "server-url" => self.server_url = Some(reference(value).filter(|url| url.starts_with("https://"))?),
            _ => return None,
        }
        Some(())
    }

    fn assign_file(&mut self, name: &str, text: &str) -> Option<()> {
        match name {
            "api-server-token" => self.token = Some(line(text.trim()).filter(|token| !token.is_empty())?),
            "bootstrap-kubeconfig" => self.bootstrap_kubeconfig = Some(block(text)?),
            "host-ca-bundle" => self.host_ca = certificates(text)?,
            _ => self.kubernetes_ca = Some(certificates(text)?),
        }
        Some(())
    }

    fn mirror(&mut self, name: &str, url: &str) -> Option<()> {
        self.mirrors.entry(registry(name)?).or_default().push(reference(url)?);
        Some(())
    }
}

fn is_file(name: &str) -> bool {
    matches!(name, "api-server-token" | "bootstrap-kubeconfig" | "host-ca-bundle" | "kubernetes-ca-bundle")
}

/// The parts between commas.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn address(text: &str) -> Option<IpAddr> {
    Some(text.parse::<IpAddr>().ok()?.to_canonical())
}

fn truth(text: &str) -> Option<bool> {
    text.parse().ok()
}

fn gate(text: &str) -> Option<(String, bool)> {
    let (name, value) = text.split_once('=')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then_some((name.to_owned(), truth(value)?))
}

/// A name of a registry: a host, perhaps a port and a path; `*` are all.
fn registry(text: &str) -> Option<String> {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b".:/_-".contains(&byte);
    let is_name = text == "*" || (text.bytes().all(is_inside) && text.bytes().next()?.is_ascii_alphanumeric());
    (is_name && !text.contains("..")).then(|| text.to_owned())
}

/// An address or the name of an image: it gets into quotes of TOML and into commands.
fn reference(text: &str) -> Option<String> {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!&()*+,;=%".contains(&byte);
    text.bytes().all(is_inside).then(|| text.to_owned())
}

/// A text in one line.
fn line(text: &str) -> Option<String> {
    (!text.contains(char::is_control) && !text.contains("{{")).then(|| text.to_owned())
}

/// A text of several lines.
fn block(text: &str) -> Option<String> {
    text.lines().all(|text| line(text).is_some()).then(|| text.to_owned())
}

fn certificates(text: &str) -> Option<String> {
    block(text).filter(|text| text.contains("-----BEGIN CERTIFICATE-----") && !text.contains("PRIVATE KEY"))
}
