//! Settings that override detected values, and settings that change on a running machine.

use std::fs;

use super::image::{Image, put};
use super::machine::{Machine, as_root, scratch};
use super::settings::Choice;

const MUTABLE: &str = "/opt/podplane/etc/mutable.env";

#[test]
fn user_data_wins_over_what_is_detected() {
    if !as_root("changes::user_data_wins_over_what_is_detected") {
        return;
    }
    let work = scratch();
    let mut user_data = Choice([0, 1, 1, 0, 0]).user_data();
    let said = [
        ("INSTANCE_PROVIDER_ID", "aws:///a/i-1"),
        ("INSTANCE_NETDEV", "eth7"),
        ("INSTANCE_IPV4", "192.0.2.1"),
        ("INSTANCE_IPV6", "2001:db8::1"),
        ("INSTANCE_HOSTNAME", "name"),
        ("INSTANCE_FQDN", "name.example"),
    ];
    user_data.extend(said.map(|(name, value)| (name.to_owned(), value.to_owned())));
    // The kind is always that of the image.
    user_data.insert("VMCONFIG_KIND".to_owned(), "knc".to_owned());
    let machine = Machine::new(work.path().join("0"), &Image::new("knd"), "amd64", &user_data);
    machine.succeed(&["configure"]);
    let lines = said.map(|(name, value)| format!("{name}='{value}'\n")).concat();
    let expected = format!("VMCONFIG_KIND='knd'\nVMCONFIG_BASE_KIND='node'\n{lines}");
    assert_eq!(read(&machine, "/opt/podplane/etc/detected.env"), expected);
}

#[test]
fn certificates_may_be_pem() {
    if !as_root("changes::certificates_may_be_pem") {
        return;
    }
    let work = scratch();
    let pem = "-----BEGIN CERTIFICATE-----\nNSTANCE\n-----END CERTIFICATE-----\n";
    let mut user_data = Choice([0, 0, 0, 0, 0]).user_data();
    for form in ["base64", "PEM"] {
        let machine = Machine::new(work.path().join(form), &Image::new("knd"), "amd64", &user_data);
        machine.succeed(&["configure"]);
        assert_eq!(read(&machine, "/opt/nstance-agent/identity/ca.crt"), pem, "{form}");
        user_data.insert("NSTANCE_CA_CERT".to_owned(), pem.to_owned());
    }
}

#[test]
fn a_cloud_that_says_nothing_is_made_up_for() {
    if !as_root("changes::a_cloud_that_says_nothing_is_made_up_for") {
        return;
    }
    let work = scratch();
    for (provider, expected) in [(1, "aws:///eu-west-1a/iid-1"), (2, "gce://demo-project/europe-west1-b/iid-1")] {
        let user_data = Choice([0, provider, 0, 0, 0]).user_data();
        let machine = Machine::new(work.path().join(provider.to_string()), &Image::new("knd"), "amd64", &user_data);
        machine.succeed(&["configure"]);
        let detected = read(&machine, "/opt/podplane/etc/detected.env");
        assert!(detected.contains(&format!("INSTANCE_PROVIDER_ID='{expected}'\n")), "{detected}");
    }
}

#[test]
fn what_is_no_longer_wanted_goes() {
    if !as_root("changes::what_is_no_longer_wanted_goes") {
        return;
    }
    let work = scratch();
    let mut user_data = Choice([1, 0, 0, 1, 1]).user_data();
    user_data.remove("IMMUTABLE_SSH_AUTHORIZED_KEYS");
    user_data.remove("SSH_AUTHORIZED_KEY");
    let machine = Machine::new(work.path().join("0"), &Image::new("knc"), "amd64", &user_data);
    machine.succeed(&["configure"]);
    let hosts = |name: &str| format!("/etc/containerd/certs.d/{name}/hosts.toml");
    let depending = [
        "/home/admin/.ssh/authorized_keys",
        "/etc/sudoers.d/admin",
        "/opt/crt/oidc-ca.pem",
        "/opt/env/fluent-bit.env",
        "/opt/fluent-bit/etc/fluent-bit.yml",
        "/opt/zot/etc/zot.yml",
        &hosts("registry.demo.example"),
        &hosts("other.example"),
    ];
    // Setting, and which of these files there are then.
    let steps = [
        ("KUBE_LOG_LEVEL=3", "...xxxx."),
        ("SSH_AUTHORIZED_KEYS=ssh-ed25519 AAAA one", "xx.xxxx."),
        ("SSH_AUTHORIZED_KEYS=", "...xxxx."),
        ("OIDC_CA_CERT=T0lEQyBDQQo=", "..xxxxx."),
        ("OIDC_CA_CERT=", "...xxxx."),
        ("REGISTRY_HOSTNAME=other.example", "...xxx.x"),
        ("TELEMETRY_ENABLED=false", ".....x.x"),
        ("REGISTRY_ENABLED=false", "........"),
        ("REGISTRY_ENABLED=true", ".....x.x"),
    ];
    for (setting, expected) in steps {
        put(&machine.root, "/opt/new.env", &format!("{setting}\n"));
        machine.succeed(&["update-mutable-env", "/opt/new.env", MUTABLE, "true"]);
        machine.succeed(&["configure"]);
        let there = |path: &str| machine.root.join(&path[1..]).exists();
        let found: String = depending.iter().map(|path| if there(path) { 'x' } else { '.' }).collect();
        assert_eq!(found, expected, "{setting}");
        assert!(!there("/opt/new.env"), "{setting}");
    }
}

fn read(machine: &Machine, path: &str) -> String {
    fs::read_to_string(machine.root.join(&path[1..])).unwrap()
}
