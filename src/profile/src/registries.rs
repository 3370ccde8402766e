//! The configuration of containerd: its main file, and a `hosts.toml` for each registry with mirrors or without TLS verification, as OSM
//! writes them (containerd 2, configuration version 3).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::error::ProfileError;
use super::options::ControllerOptions;

/// How OSM marks mirrors that have a path; containerd does not see it.
const OVERRIDE: &str = "?kubermatic=override_path%3Dtrue";
const DOCKER: &str = "docker.io";
const DOCKER_SERVER: &str = "https://registry-1.docker.io";
/// Permissions of the files.
pub(super) const PERMISSIONS: u16 = 600;

/// `config.toml` of containerd.
pub(super) fn containerd(options: &ControllerOptions) -> String {
    let pinned = match options.pause_image.as_str() {
        "" => String::new(),
        image => format!("[plugins.\"io.containerd.cri.v1.images\".pinned_images]\nsandbox = \"{image}\"\n"),
    };
    let device_ownership = options.device_ownership;
    format!(
        r#"version = 3

[metrics]
address = "127.0.0.1:1338"

[plugins]
[plugins."io.containerd.cri.v1.images"]
discard_unpacked_layers = false
{pinned}[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
device_ownership_from_security_context = {device_ownership}
[plugins."io.containerd.cri.v1.runtime".containerd]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/opt/cni/bin"]
conf_dir = "/etc/cni/net.d"
"#
    )
}

/// The same for containerd 1.7, which reads version 2 of the configuration and none after it.
pub(super) fn containerd_1(options: &ControllerOptions) -> String {
    let pinned = match options.pause_image.as_str() {
        "" => String::new(),
        image => format!("sandbox_image = \"{image}\"\n"),
    };
    let device_ownership = options.device_ownership;
    format!(
        r#"version = 2

[metrics]
address = "127.0.0.1:1338"

[plugins]
[plugins."io.containerd.grpc.v1.cri"]
device_ownership_from_security_context = {device_ownership}
{pinned}[plugins."io.containerd.grpc.v1.cri".containerd]
discard_unpacked_layers = false
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes]
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "/etc/containerd/certs.d"
"#
    )
}

/// Contents by path.
pub(super) fn hosts(options: &ControllerOptions) -> Result<BTreeMap<String, String>, ProfileError> {
    let mut registries: BTreeMap<&str, (Vec<&str>, bool)> = BTreeMap::from([(DOCKER, (vec![DOCKER_SERVER], false))]);
    for (registry, mirrors) in &options.mirrors {
        registries.insert(registry, (mirrors.iter().map(String::as_str).collect(), false));
    }
    for registry in &options.insecure_registries {
        registries.entry(registry).or_default().1 = true;
    }
    let mut files = BTreeMap::new();
    for (registry, (mirrors, is_insecure)) in registries {
        let host = registry.split('/').next().unwrap_or_default();
        let (folder, server) = match host {
            "*" => ("_default", None),
            DOCKER => (DOCKER, Some(DOCKER_SERVER)),
            _ => (host, Some(registry)),
        };
        let mirrors = match (mirrors.is_empty(), server) {
            (true, Some(server)) => vec![server],
            _ => mirrors,
        };
        let text = host_file(server, &mirrors, is_insecure)?;
        files.insert(format!("/etc/containerd/certs.d/{folder}/hosts.toml"), text);
    }
    Ok(files)
}

fn host_file(server: Option<&str>, mirrors: &[&str], is_insecure: bool) -> Result<String, ProfileError> {
    let mut text = server.map(|server| format!("server = \"{server}\"\n\n")).unwrap_or_default();
    let mut hosts = BTreeMap::new();
    for mirror in mirrors {
        let (url, has_path) = mirror.strip_suffix(OVERRIDE).map_or((*mirror, false), |url| (url, true));
        if url.contains("kubermatic=") {
            let expected = format!("{OVERRIDE} at the end of a mirror, or no `kubermatic`");
            return Err(ProfileError::Option { option: "node-registry-mirrors".to_owned(), expected });
        }
        hosts.insert(url, has_path);
    }
    for (url, has_path) in hosts {
        let verified = if is_insecure { "skip_verify = true\n" } else { "" };
        let path = if has_path { "override_path = true\n" } else { "" };
        // A text takes whatever is written.
        let _ = write!(text, "[host.\"{url}\"]\ncapabilities = [\"pull\", \"resolve\"]\n{verified}{path}");
    }
    Ok(text)
}
