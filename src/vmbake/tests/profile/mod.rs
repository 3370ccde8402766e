//! Profiles: YAML in; the operating-system-manager's rendering out, or all errors.

mod base;
mod damaged;
mod fetches;
mod golden;
mod import;
mod import_refusals;
mod paths;
mod phases;
mod refusals;
mod templates;
mod units;
mod unknown;
mod user_data;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vmbake::cli::error_report;
use vmbake_profile::{ControllerOptions, Deployment, MachinePhase, OperatingSystemConfig, Profile, ProfileError};

/// A profile and a deployment that fit each other, in a folder.
pub struct Desk {
    dir: TempDir,
    profile: String,
    deployment: String,
    options: Vec<(String, String)>,
}

impl Desk {
    /// With those of the examples.
    fn new() -> Self {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/profiles");
        let read = |name| fs::read_to_string(examples.join(name)).unwrap();
        let desk = Self {
            dir: tempfile::tempdir().unwrap(),
            profile: read("debian.yaml"),
            deployment: read("deployment.yaml"),
            options: Vec::new(),
        };
        fs::write(desk.path("token"), "secret\n").unwrap();
        fs::write(desk.path("ca"), include_str!("../data/sigstore/certificates/plain.pem")).unwrap();
        let (token, ca) = (desk.text_path("token"), desk.text_path("ca"));
        desk.set("api-server-token", &token)
            .set("kubernetes-ca-bundle", &ca)
            .set("server-url", "https://api.example.org:6443")
    }

    /// With a profile that has one file of this content.
    fn with_file(content: &str) -> Self {
        let mut desk = Self::new();
        let indented: String = content.lines().map(|line| format!("            {line}\n")).collect();
        desk.profile = format!(
            "apiVersion: operatingsystemmanager.k8c.io/v1alpha1\nkind: OperatingSystemProfile\nmetadata: {{name: example-debian}}\n\
             spec:\n  osName: debian\n  osVersion: '13'\n  version: v1.0.0\n  supportedCloudProviders: [{{name: hetzner}}]\n  \
             provisioningConfig: {{}}\n  bootstrapConfig:\n    templates: {{greeting: hello}}\n    files:\n    - path: /f\n      content:\n        \
             inline:\n          data: |\n{indented}"
        );
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text_path(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.options.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Changes the profile: what is replaced must be there.
    fn profile(mut self, from: &str, to: &str) -> Self {
        assert!(self.profile.contains(from), "{from}");
        self.profile = self.profile.replacen(from, to, 1);
        self
    }

    fn deployment(mut self, from: &str, to: &str) -> Self {
        assert!(self.deployment.contains(from), "{from}");
        self.deployment = self.deployment.replacen(from, to, 1);
        self
    }

    fn render(&self) -> Result<OperatingSystemConfig, ProfileError> {
        fs::write(self.path("p.yaml"), &self.profile).unwrap();
        fs::write(self.path("m.yaml"), &self.deployment).unwrap();
        let options = ControllerOptions::open(&self.options)?;
        let profile = Profile::open(&self.path("p.yaml"))?;
        OperatingSystemConfig::render(profile, Deployment::open(&self.path("m.yaml"))?, &options)
    }

    /// The content of the one file of [`Desk::with_file`], as the machine gets it.
    fn content(&self) -> Result<String, ProfileError> {
        let yaml = self.render()?.to_yaml();
        let document = &yaml_rust2::YamlLoader::load_from_str(&yaml).unwrap()[0];
        let file = &document["spec"]["bootstrapConfig"]["files"][0];
        Ok(file["content"]["inline"]["data"].as_str().unwrap().to_owned())
    }

    /// What is said against it, and what to do then; paths begin in its folder.
    fn refusal(&self) -> (String, String) {
        let result = self.render().and_then(|config| config.user_data(MachinePhase::Bootstrap).map(drop));
        let error = result.expect_err("nothing is said against it");
        let folder = format!("{}/", self.dir.path().display());
        (error.to_string().replace(&folder, ""), error_report::hint(&error).unwrap_or_default())
    }
}

#[test]
fn the_example_is_rendered_the_same_each_time() {
    let desk = Desk::new();
    let config = desk.render().unwrap();
    assert_eq!(config.to_yaml(), desk.render().unwrap().to_yaml());
    let bootstrap = config.user_data(MachinePhase::Bootstrap).unwrap();
    assert!(bootstrap.starts_with("#cloud-config\nhostname: <MACHINE_NAME>\n\nssh_pwauth: false\n"), "{bootstrap}");
    let size = config.size(MachinePhase::Bootstrap).unwrap();
    assert_eq!((size.total, size.limit, size.is_too_large()), (bootstrap.len(), Some(32 << 10), false));
    assert_eq!(MachinePhase::named("provisioning"), Some(MachinePhase::Provisioning));
    assert_eq!(MachinePhase::named("both"), None);
}

#[test]
fn machines_get_the_name_that_their_provider_has_for_them() {
    let on = |provider: &str| {
        let to = |field: &str| format!("{field}: {provider}");
        let desk = Desk::new()
            .profile("name: hetzner", &to("name"))
            .deployment("cloudProvider: hetzner", &to("cloudProvider"));
        desk.profile("    - name: aws\n", "").profile("version: v1", "version: v2").render().unwrap()
    };
    for (provider, head) in [
        ("aws", "#cloud-config\n\nssh_pwauth: false\n\nssh_authorized_keys:\n- 'ssh-ed25519 "),
        ("edge", "#cloud-config\nhostname: workers\n\nssh_pwauth: false\n"),
        ("azure", "#cloud-config\nhostname: <MACHINE_NAME>\n\nssh_pwauth: false\n"),
    ] {
        let text = on(provider).user_data(MachinePhase::Bootstrap).unwrap();
        assert!(text.starts_with(head), "{text}");
        assert_eq!(text.contains("path: /etc/machine-name\n"), provider != "aws", "{text}");
        let provisioning = on(provider).user_data(MachinePhase::Provisioning).unwrap();
        assert!(provisioning.starts_with("#cloud-config\n\nssh_pwauth") && !provisioning.contains("machine-name"));
    }
}

#[test]
fn lists_without_items_are_left_out_and_keys_are_there_once() {
    let key =
        "            - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleEx me@example\n";
    let twice = Desk::new().deployment(key, &key.repeat(2)).profile("runcmd:", "bootcmd: [sync, ls]\n      runcmd:");
    let text = twice.render().unwrap().user_data(MachinePhase::Bootstrap).unwrap();
    assert_eq!(text.matches("me@example").count(), 1, "{text}");
    assert!(text.ends_with("\nbootcmd:\n- sync\n- ls\n\nruncmd:\n- /usr/local/sbin/fetch-provisioning\n"), "{text}");
    let none = Desk::with_file("a").deployment(&format!("          sshPublicKeys:\n{key}"), "");
    let config = none.render().unwrap();
    let text = config.user_data(MachinePhase::Provisioning).unwrap();
    assert!(!text.contains("ssh_authorized_keys"), "{text}");
    assert!(config.to_yaml().contains("provisioningConfig:\n    files:\n"), "{}", config.to_yaml());
}
