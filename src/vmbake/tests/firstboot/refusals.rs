//! Failures of the first boot: with a clear message, and before any service is started.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::image::Image;
use super::machine::{Machine, USER_DATA, as_root, scratch};
use super::settings::Choice;

const LOCAL: Choice = Choice([1, 0, 0, 1, 1]);
const AWS: Choice = Choice([1, 1, 0, 1, 1]);
const GOOGLE: Choice = Choice([1, 2, 0, 1, 1]);

/// Choice, what user data says instead, and a part of the message.
type Instead = (Choice, &'static [(&'static str, &'static str)], &'static str);
const SETTINGS: &[Instead] = &[
    (LOCAL, &[("PROVIDER_KIND", "azure")], "PROVIDER_KIND"),
    (LOCAL, &[("PROVIDER_KIND", "")], "PROVIDER_KIND"),
    (LOCAL, &[("PROVIDER_KIND", "aws\n")], "PROVIDER_KIND"),
    (AWS, &[("AWS_ACCOUNT_ID", "")], "AWS_ACCOUNT_ID"),
    (AWS, &[("CLUSTER_ID", "")], "CLUSTER_ID"),
    (GOOGLE, &[("GOOGLE_PROJECT_ID", "")], "GOOGLE_PROJECT_ID"),
    (LOCAL, &[("TELEMETRY_ENABLED", "yes")], "TELEMETRY_ENABLED"),
    (LOCAL, &[("TELEMETRY_LOG_CLOUDINIT", "TRUE")], "TELEMETRY_LOG_CLOUDINIT"),
    (LOCAL, &[("REGISTRY_ENABLED", "1")], "REGISTRY_ENABLED"),
    (LOCAL, &[("NSTANCE_CA_CERT", "no base64")], "NSTANCE_CA_CERT"),
    (LOCAL, &[("NSTANCE_SERVER_AGENT_ADDR", "")], "NSTANCE_SERVER_AGENT_ADDR is empty"),
    (LOCAL, &[("NSTANCE_SERVER_REGISTRATION_ADDR", "127.0.0.1")], "127.0.0.1"),
    (LOCAL, &[("NSTANCE_SERVER_REGISTRATION_ADDR", "[::1]:0")], "[::1]:0"),
    (LOCAL, &[("TELEMETRY_LOG_SERVICES", " , "), ("TELEMETRY_LOG_CLOUDINIT", "false")], "TELEMETRY_LOG_SERVICES"),
    (LOCAL, &[("TELEMETRY_OTLP_ENDPOINT", "otel.example:4317")], "TELEMETRY_OTLP_ENDPOINT"),
    (LOCAL, &[("TELEMETRY_OTLP_ENDPOINT", "grpc://otel.example")], "TELEMETRY_OTLP_ENDPOINT"),
    (LOCAL, &[("TELEMETRY_OTLP_ENDPOINT", "https:///v1/logs")], "TELEMETRY_OTLP_ENDPOINT"),
    (LOCAL, &[("REGISTRY_HOSTNAME", "../../etc")], "REGISTRY_HOSTNAME"),
    (LOCAL, &[("REGISTRY_HOSTNAME", "..")], "REGISTRY_HOSTNAME"),
    (LOCAL, &[("REGISTRY_HOSTNAME", "registry.example\nx")], "REGISTRY_HOSTNAME"),
    (LOCAL, &[("CLUSTER_ID", "")], "CLUSTER_ID"),
    (LOCAL, &[("INSTANCE_ID", "")], "INSTANCE_ID"),
    (LOCAL, &[("KUBE_API_PORT", "65536")], "KUBE_API_PORT"),
    (LOCAL, &[("KUBE_API_PORT", "6443\n")], "KUBE_API_PORT"),
    (LOCAL, &[("KUBE_LOG_LEVEL", "-1")], "KUBE_LOG_LEVEL"),
    (LOCAL, &[("KUBE_API_INTERNAL_LB_HOSTNAME", "--help")], "KUBE_API_INTERNAL_LB_HOSTNAME"),
    (LOCAL, &[("KUBE_API_INTERNAL_LB_HOSTNAME", "fe80::1%eth0")], "KUBE_API_INTERNAL_LB_HOSTNAME"),
    (LOCAL, &[("KUBE_CLUSTER_DNS", "198.19.255.254 fdc6::ffff")], "KUBE_CLUSTER_DNS"),
    (LOCAL, &[("KUBE_CLUSTER_DNS", "198.19.255.254,")], "KUBE_CLUSTER_DNS"),
    (LOCAL, &[("KUBE_CLUSTER_DNS", "dns.example")], "KUBE_CLUSTER_DNS"),
    (LOCAL, &[("KUBE_SERVICE_ACCOUNT_ISSUER", "api.demo.example")], "KUBE_SERVICE_ACCOUNT_ISSUER"),
    (LOCAL, &[("TELEMETRY_LOG_SERVICES", ""), ("TELEMETRY_LOG_CLOUDINIT", "false")], "TELEMETRY_LOG_SERVICES"),
    (LOCAL, &[("SSH_AUTHORIZED_KEYS", "ssh-ed25519 A\u{1b}[2J")], "authorized_keys"),
];

/// The machine is not as it has to be: what is done to it, the exit code and a part of the message.
type Damage = (fn(&Path), i32, &'static str);
const MACHINES: &[Damage] = &[
    (|root| remove(root, USER_DATA), 3, USER_DATA),
    (|root| remove(root, "/opt/podplane/share/vmconfig-installed.json"), 1, "vmconfig-installed.json"),
    (|root| remove(root, "/proc/net/route"), 1, "default route"),
    (|root| remove(root, "/proc/net/fib_trie"), 1, "eth0 has no IPv4 address"),
    (|root| fs::write(root.join("opt/podplane/bootstrap.done"), "").unwrap(), 1, "detected.env"),
    (|root| symlink("/tmp", emptied(root, "opt/nstance-agent/recv")).unwrap(), 1, "recv"),
    (|root| fs::write(emptied(root, "opt/nstance-agent/recv"), "").unwrap(), 1, "recv"),
];

/// What is looked at when all files are written.
const AFTER: &[Damage] = &[(|root| remove(root, "/opt/nstance-agent/identity/nonce.jwt"), 1, "nonce.jwt")];

#[test]
fn settings_that_cannot_work() {
    if !as_root("refusals::settings_that_cannot_work") {
        return;
    }
    let image = Image::new("knc");
    let work = scratch();
    for (index, (choice, instead, message)) in SETTINGS.iter().enumerate() {
        let mut user_data = choice.user_data();
        user_data.extend(instead.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let machine = Machine::new(work.path().join(index.to_string()), &image, "amd64", &user_data);
        refused(&machine, 1, message, true);
    }
}

#[test]
fn a_server_that_is_not_there() {
    if !as_root("refusals::a_server_that_is_not_there") {
        return;
    }
    let work = scratch();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut user_data = LOCAL.user_data();
    user_data.insert("NSTANCE_SERVER_AGENT_ADDR".to_owned(), closed.clone());
    let machine = Machine::new(work.path().join("0"), &Image::new("knd"), "amd64", &user_data);
    refused(&machine, 1, &closed, true);
}

#[test]
fn machines_that_are_not_ready() {
    if !as_root("refusals::machines_that_are_not_ready") {
        return;
    }
    let image = Image::new("knd");
    let work = scratch();
    let cases = MACHINES.iter().map(|case| (case, true)).chain(AFTER.iter().map(|case| (case, false)));
    for (index, ((damage, code, message), before)) in cases.enumerate() {
        let machine = Machine::new(work.path().join(index.to_string()), &image, "amd64", &LOCAL.user_data());
        damage(&machine.root);
        refused(&machine, *code, message, before);
    }
    let mut user_data = LOCAL.user_data();
    user_data.remove("NSTANCE_CA_CERT");
    let machine = Machine::new(work.path().join("no-ca"), &image, "amd64", &user_data);
    refused(&machine, 1, "ca.crt", false);
    // It can be delivered in another way.
    fs::write(machine.root.join("opt/nstance-agent/identity/ca.crt"), "CA").unwrap();
    machine.succeed(&["configure"]);
}

fn refused(machine: &Machine, code: i32, message: &str, nothing_written: bool) {
    let output = machine.run(&["configure"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}: {said}");
    assert!(said.contains(message), "{message}: {said}");
    let written = fs::read_dir(machine.root.join("opt/env")).map(Iterator::count).unwrap_or_default();
    assert_eq!(written == 0, nothing_written, "{message}: {written} files in /opt/env");
}

fn remove(root: &Path, path: &str) {
    fs::remove_file(root.join(&path[1..])).unwrap();
}

/// The path of a directory that is no longer there.
fn emptied(root: &Path, path: &str) -> PathBuf {
    fs::remove_dir(root.join(path)).unwrap();
    root.join(path)
}
