//! User data: settings and files in; a document that all YAML parsers read alike out, or all errors.

mod command;
mod readers;
mod template;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use vmbake_common::catalog::Catalog;
use vmbake_firstboot::env;
use vmbake_firstboot::plan::Plan;
use vmbake_layer::first_boot::compile;
use vmbake_layer::{Layer, Layers};
use vmbake_user_data::{Origin, Provider, Rendered, UserDataError, UserDataRequest, render};

use crate::firstboot::settings::Choice;

const TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJrbmMifQ.c2ln";
const CERTIFICATE: &str = include_str!("../data/sigstore/certificates/plain.pem");
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0e me@example";

/// The least that a node of the control plane needs, with what keeps it from waiting for more.
const LEAST: [(&str, &str); 8] = [
    ("PROVIDER_KIND", "local"),
    ("CLUSTER_ID", "demo"),
    ("INSTANCE_ID", "knc-1"),
    ("NETSY_BUCKET", "demo-netsy"),
    ("NSTANCE_SERVER_AGENT_ADDR", "10.0.2.2:8993"),
    ("NSTANCE_SERVER_REGISTRATION_ADDR", "[fd00::2]:8992"),
    ("REGISTRY_ENABLED", "false"),
    ("TELEMETRY_ENABLED", "false"),
];

fn map<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The least, and these.
fn with(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut all = map(LEAST);
    all.extend(map(settings.iter().copied()));
    all
}

/// A request for `knc` with these settings.
fn request(settings: BTreeMap<String, String>) -> UserDataRequest {
    UserDataRequest {
        kind: "knc".to_owned(),
        settings: vec![(Origin::Option("--set"), settings)],
        ..UserDataRequest::default()
    }
}

/// The plan of each kind, with its layers.
static KINDS: LazyLock<BTreeMap<&str, (Plan, Vec<Layer>)>> = LazyLock::new(|| {
    let all = Layers::load(&Catalog::built_in()).unwrap();
    let planned = |kind| {
        let layers = all.resolve(kind, "debian-13").unwrap();
        (kind, (compile(&layers, "x86_64-linux-gnu").unwrap().plan, layers))
    };
    ["node", "knd", "knc"].map(planned).into()
});

fn try_render(request: &UserDataRequest) -> Result<Rendered, UserDataError> {
    let (plan, layers) = &KINDS[request.kind.as_str()];
    render(request, plan, layers)
}

fn refusal(request: &UserDataRequest) -> String {
    try_render(request).unwrap_err().to_string()
}

/// A folder with files.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

#[test]
fn a_document_has_what_a_machine_needs_and_nothing_else() {
    let files = Files::new();
    let mut request = request(with(&[("NETSY_SECRET_ACCESS_KEY", "it's $HOME")]));
    request.nonce = Some(files.put("nonce", TOKEN));
    request.authority = Some(files.put("ca.pem", CERTIFICATE));
    request.ssh_keys = Some(files.put("keys", format!("# mine\n\n{KEY}\n  {KEY} two \n")));
    let rendered = try_render(&request).unwrap();
    let authority = rendered.user_data.lines().find_map(|line| line.trim_start().strip_prefix("NSTANCE_CA_CERT='"));
    let expected = format!(
        "#cloud-config
hostname: \"knc-1\"
write_files:
- path: \"/opt/nstance-agent/identity/nonce.jwt\"
  permissions: \"0600\"
  content: |-
    {TOKEN}
- path: \"/opt/podplane/etc/user-data.env\"
  permissions: \"0600\"
  content: |
    CLUSTER_ID='demo'
    IMMUTABLE_SSH_AUTHORIZED_KEYS='{KEY}
    {KEY} two'
    INSTANCE_ID='knc-1'
    NETSY_BUCKET='demo-netsy'
    NETSY_SECRET_ACCESS_KEY='it'\"'\"'s $HOME'
    NSTANCE_CA_CERT='{}
    NSTANCE_SERVER_AGENT_ADDR='10.0.2.2:8993'
    NSTANCE_SERVER_REGISTRATION_ADDR='[fd00::2]:8992'
    PROVIDER_KIND='local'
    REGISTRY_ENABLED='false'
    TELEMETRY_ENABLED='false'
",
        authority.unwrap()
    );
    assert_eq!(rendered.user_data, expected);
    assert_eq!(rendered.warnings, [""; 0]);
    assert_eq!(try_render(&request).unwrap().user_data, expected);
    let sizes = &rendered.sizes;
    assert_eq!(sizes.settings + sizes.nonce + sizes.authority + sizes.frame, sizes.total);
    assert_eq!((sizes.total, sizes.limit), (expected.len(), None));
    assert_eq!(sizes.nonce, TOKEN.len() + "    \n".len());
    assert_eq!(sizes.authority, authority.unwrap().len() + "    NSTANCE_CA_CERT='\n".len());
}

#[test]
fn a_machine_without_settings_takes_keys_for_its_default_user_alone() {
    let files = Files::new();
    let mut request = UserDataRequest { kind: "node".to_owned(), ..UserDataRequest::default() };
    assert_eq!(try_render(&request).unwrap().user_data, "#cloud-config\n{}\n");
    request.ssh_keys = Some(files.put("keys", KEY));
    assert_eq!(try_render(&request).unwrap().user_data, format!("#cloud-config\nssh_authorized_keys:\n- \"{KEY}\"\n"));
    request.nonce = Some(files.put("nonce", TOKEN));
    assert_eq!(refusal(&request), "--nonce is not supported by kind node");
    request.nonce = None;
    request.authority = Some(files.put("ca.pem", CERTIFICATE));
    assert_eq!(refusal(&request), "--ca is not supported by kind node");
    request.authority = None;
    request.settings = vec![(Origin::Option("--set"), with(&[]))];
    assert!(refusal(&request).contains("\n  CLUSTER_ID: unknown setting of this kind\n"));

    // A machine that waits for settings goes on without any, if none is required.
    let (plan, layers) = &KINDS["knd"];
    let (deaf, optional) =
        (Plan { inputs: None, ..plan.clone() }, Plan { inputs: plan.inputs.clone(), ..Plan::default() });
    let request = UserDataRequest { settings: Vec::new(), ..request };
    let file = "#cloud-config\nwrite_files:\n- path: \"/opt/podplane/etc/user-data.env\"\n  permissions: \"0600\"\n  content: \"\\n\"\n";
    assert!(render(&request, &optional, layers).unwrap().user_data.starts_with(file));

    // Nothing would read them there.
    let mut request = UserDataRequest { settings: vec![(Origin::Option("--set"), with(&[]))], ..request };
    request.kind = "knd".to_owned();
    let error = render(&request, &deaf, layers).unwrap_err().to_string();
    assert_eq!(error, "kind knd has no settings: none of its layers has `inputs` of the first boot");
}

#[test]
fn all_that_is_missing_is_named_at_once() {
    let expected = "invalid settings for kind knc:
  PROVIDER_KIND: expected a value, found \"\"
  NSTANCE_SERVER_REGISTRATION_ADDR is empty
  NSTANCE_SERVER_AGENT_ADDR is empty
  netsy needs CLUSTER_ID
  netsy needs INSTANCE_ID";
    assert_eq!(refusal(&request(map([("NETSY_BUCKET", "demo-netsy")]))), expected);
    let google = refusal(&request(with(&[("PROVIDER_KIND", "google")])));
    assert!(google.ends_with(":\n  PROVIDER_KIND google needs GOOGLE_PROJECT_ID"), "{google}");
}

#[test]
fn what_a_machine_would_refuse_is_refused_here() {
    for (name, value, expected) in [
        ("PROVIDER_KIND", "azure", "PROVIDER_KIND: expected local, aws, google, proxmox, found \"azure\""),
        ("TELEMETRY_ENABLED", "yes", "TELEMETRY_ENABLED: expected true or false, found \"yes\""),
        (
            "KUBE_API_PORT",
            "65536",
            "KUBE_API_PORT: expected a port from 1 to 65535 without leading zeros, found \"65536\"",
        ),
        (
            "KUBE_CLUSTER_DNS",
            "198.19.255.254,,fdc6::ffff",
            "KUBE_CLUSTER_DNS: expected IP addresses, separated by commas, found \"198.19.255.254,,fdc6::ffff\"",
        ),
        (
            "KUBE_API_INTERNAL_LB_HOSTNAME",
            "[fd00::1]",
            "KUBE_API_INTERNAL_LB_HOSTNAME: expected a host name of letters, digits, dots, dashes and underscores, or an IP address \
             without brackets, found \"[fd00::1]\"",
        ),
        (
            "KUBE_API_PORT",
            "0443",
            "KUBE_API_PORT: expected a port from 1 to 65535 without leading zeros, found \"0443\"",
        ),
        (
            "REGISTRY_HOSTNAME",
            "registry.example.",
            "REGISTRY_HOSTNAME: expected a host name of letters, digits, dots and dashes, found \"registry.example.\"",
        ),
        (
            "NSTANCE_SERVER_AGENT_ADDR",
            "a..b:1",
            "NSTANCE_SERVER_AGENT_ADDR: expected host:port or [address]:port, found \"a..b:1\"",
        ),
        (
            "NSTANCE_SERVER_AGENT_ADDR",
            "[::1]:0",
            "NSTANCE_SERVER_AGENT_ADDR: expected host:port or [address]:port, found \"[::1]:0\"",
        ),
        (
            "KUBE_NODE_CIDR_MASK_SIZE_IPV4",
            "33",
            "KUBE_NODE_CIDR_MASK_SIZE_IPV4: expected a number from 0 to 32, found \"33\"",
        ),
        (
            "KUBE_NODE_CIDR_MASK_SIZE_IPV6",
            "129",
            "KUBE_NODE_CIDR_MASK_SIZE_IPV6: expected a number from 0 to 128, found \"129\"",
        ),
        (
            "OIDC_CUSTOM_CA",
            "secret!",
            "OIDC_CA_CERT: expected a certificate in PEM or text in base64, found another value",
        ),
        (
            "NSTANCE_SERVER_AGENT_ADDR",
            "10.0.2.2",
            "NSTANCE_SERVER_AGENT_ADDR: expected host:port or [address]:port, found \"10.0.2.2\"",
        ),
        (
            "NSTANCE_SERVER_AGENT_ADDR",
            "a b:1",
            "NSTANCE_SERVER_AGENT_ADDR: expected host:port or [address]:port, found \"a b:1\"",
        ),
        ("KUBE_APIPORT", "1", "KUBE_APIPORT: unknown setting of this kind; did you mean KUBE_API_PORT?"),
        (
            "netsy_bucket",
            "1",
            "netsy_bucket: unknown setting of this kind; did you mean NETSY_BUCKET, REGISTRY_BUCKET?",
        ),
        ("HOME", "1", "HOME: unknown setting of this kind"),
    ] {
        let said = refusal(&request(with(&[(name, value)])));
        assert_eq!(said, format!("invalid settings for kind knc:\n  {expected}"), "{name}");
    }
    // One wrong setting hides no other.
    let said = refusal(&request(with(&[("KUBE_API_PORT", "0"), ("CLUSTER_ID", ""), ("HOME", "")])));
    assert_eq!(said.lines().count(), 4, "{said}");
}

#[test]
fn what_a_machine_accepts_is_accepted_here() {
    let label = "x".repeat(63);
    for (name, value) in [
        ("KUBE_API_PORT", "01"),
        ("KUBE_API_INTERNAL_LB_HOSTNAME", "my_lb.example."),
        ("KUBE_API_INTERNAL_LB_HOSTNAME", "fd00::1"),
        ("KUBE_API_INTERNAL_LB_HOSTNAME", &label),
        ("NSTANCE_SERVER_AGENT_ADDR", "[fd00::1]:8994"),
        ("NSTANCE_SERVER_AGENT_ADDR", "my_server.:8994"),
    ] {
        try_render(&request(with(&[(name, value)]))).unwrap();
    }
    let long = format!("{label}x");
    for value in [long.as_str(), &format!("{long}.example")] {
        let said = refusal(&request(with(&[("KUBE_API_INTERNAL_LB_HOSTNAME", value)])));
        assert!(said.contains("KUBE_API_INTERNAL_LB_HOSTNAME: expected "), "{said}");
        let said = refusal(&request(with(&[("NSTANCE_SERVER_AGENT_ADDR", &format!("{value}:8994"))])));
        assert!(said.contains("expected host:port"), "{said}");
    }
}

#[test]
fn values_that_could_break_out_are_refused_by_name_alone() {
    let long = "s3cret".repeat(22_000);
    for value in [
        "s3cret\nX=1",
        "s3cret\r",
        "s3cret\0",
        "s3cret\t",
        "s3cret\u{1b}[2J",
        "s3cret\u{7f}",
        "s3cret\u{85}",
        "s3cret\u{fffe}",
        &long,
    ] {
        let said = refusal(&request(with(&[("NETSY_SECRET_ACCESS_KEY", value)])));
        assert!(said.contains("\n  NETSY_SECRET_ACCESS_KEY: expected "), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
    // Where several lines have a meaning they are lines, with nothing else in them.
    for name in ["IMMUTABLE_SSH_AUTHORIZED_KEYS", "SSH_AUTHORIZED_KEYS", "SSH_AUTHORIZED_KEY"] {
        try_render(&request(with(&[(name, "a\n\nb\n")]))).unwrap();
        assert!(refusal(&request(with(&[(name, "a\r\nb")]))).contains("expected lines without control characters"));
    }
    try_render(&request(with(&[("OIDC_CA_CERT", "T0lE\nQyBDQQo=\n")]))).unwrap();
}

/// User data as the command line of the cluster writes them: everything else is delivered later.
const BARE: [(&str, &str); 9] = [
    ("IMMUTABLE_SSH_AUTHORIZED_KEYS", ""),
    ("INSTANCE_ID", "knc-1"),
    ("CLUSTER_ID", "demo"),
    ("PROVIDER_KIND", "local"),
    ("PROVIDER_REGION", ""),
    ("PROVIDER_ZONE", ""),
    ("PROVIDER_INSTANCE_TYPE", ""),
    ("NSTANCE_SERVER_AGENT_ADDR", "10.0.2.2:8993"),
    ("NSTANCE_SERVER_REGISTRATION_ADDR", "10.0.2.2:8992"),
];

#[test]
fn bare_user_data_configure_a_machine_of_both_kinds_and_each_provider() {
    for kind in ["knd", "knc"] {
        for (provider, account) in
            [("local", None), ("aws", Some("AWS_ACCOUNT_ID")), ("google", Some("GOOGLE_PROJECT_ID")), ("proxmox", None)]
        {
            let mut settings = map(BARE);
            settings.insert("PROVIDER_KIND".to_owned(), provider.to_owned());
            settings.extend(account.map(|name| (name.to_owned(), "123456789012".to_owned())));
            let rendered = try_render(&UserDataRequest { kind: kind.to_owned(), ..request(settings) }).unwrap();
            assert!(rendered.user_data.starts_with("#cloud-config\nhostname: \"knc-1\"\nwrite_files:\n"));
        }
    }
}

#[test]
fn the_host_name_is_that_of_the_instance_where_it_can_be_one() {
    for (id, expected) in [
        ("knc-1", "hostname: \"knc-1\"\nwrite_files:\n"),
        ("knc-1.demo.example", "hostname: \"knc-1.demo.example\"\nprefer_fqdn_over_hostname: true\nwrite_files:\n"),
        ("true", "hostname: \"true\"\nwrite_files:\n"),
        ("knc_1", "write_files:\n"),
        (&"k".repeat(65), "write_files:\n"),
    ] {
        let rendered = try_render(&request(with(&[("INSTANCE_ID", id)]))).unwrap();
        let document = rendered.user_data.strip_prefix("#cloud-config\n").unwrap();
        assert!(document.starts_with(expected), "{document}");
        let told = rendered.warnings.iter().any(|warning| warning.starts_with("INSTANCE_ID: not a host name"));
        assert_eq!(told, expected.starts_with("write_files"), "{id}");
    }
}

#[test]
fn what_nobody_brings_is_a_warning() {
    let warnings = try_render(&request(with(&[]))).unwrap().warnings;
    assert!(
        matches!(warnings.as_slice(), [ca, nonce] if ca.contains("ca.crt is missing") && nonce.contains("nonce.jwt"))
    );
}

#[test]
fn every_choice_of_settings_that_configures_a_machine_is_taken() {
    for choice in Choice::all() {
        let mut settings = with(&[]);
        settings.retain(|name, _| name.starts_with("NSTANCE_SERVER"));
        settings.extend(choice.user_data());
        let kind = choice.kind().to_owned();
        let rendered = try_render(&UserDataRequest { kind, ..request(settings) })
            .unwrap_or_else(|error| panic!("{choice}: {error}"));
        rendered.check_size().unwrap();
        assert_eq!(rendered.sizes.provider.map(Provider::name), Some(choice.provider()));
    }
}

#[test]
fn files_that_are_something_else_are_refused_and_not_shown() {
    let files = Files::new();
    let private = "-----BEGIN PRIVATE KEY-----\ns3cret\n-----END PRIVATE KEY-----\n";
    let cut = CERTIFICATE.replacen("MII", "MIJ", 1);
    let endless = CERTIFICATE.replace("-----END", "END");
    for (content, expected) in [
        ("", "certificates (PEM), found none"),
        ("s3cret", "certificates (PEM), found none"),
        (private, "certificates (PEM), found something else in PEM, perhaps a private key"),
        (&format!("{CERTIFICATE}{private}"), "certificates (PEM), found something else in PEM, perhaps a private key"),
        (&cut, "certificates (PEM), found a malformed one"),
        (&endless, "certificates (PEM), found an unterminated one"),
        (&format!("{endless}{CERTIFICATE}"), "certificates (PEM), found an unterminated one"),
    ] {
        let authority = Some(files.put("ca.pem", content));
        refused(&UserDataRequest { authority, ..request(with(&[])) }, expected);
    }
    for content in ["", "\n", "two words", "two\nlines\n", "s3cret\r\n", "\u{e9}"] {
        let nonce = Some(files.put("nonce", content));
        refused(&UserDataRequest { nonce, ..request(with(&[])) }, "a token in a single line");
    }
    for content in ["", "# none", private, "ssh-ed25519", "ssh-ed25519 !", "s3cret AAAA", "ssh-rsa AAAA \u{1b}"] {
        let ssh_keys = Some(files.put("keys", content));
        refused(&UserDataRequest { ssh_keys, ..request(with(&[])) }, "SSH public keys, one per line");
    }
    let nonce = Some(files.put("nonce", [0xff, 0xfe]));
    refused(&UserDataRequest { nonce, ..request(with(&[])) }, "found no UTF-8");
    let nonce = Some(files.put("nonce", vec![b'a'; (1 << 20) + 1]));
    refused(&UserDataRequest { nonce, ..request(with(&[])) }, "expected at most 1 MiB, found more");
}

fn refused(request: &UserDataRequest, expected: &str) {
    let said = refusal(request);
    assert!(said.contains(expected) && !said.contains("s3cret"), "{said}");
}

#[test]
fn certificates_are_taken_as_they_are_without_the_text_around_them() {
    let files = Files::new();
    let two = format!("Subject: one\n{CERTIFICATE}\nSubject: two\n{}", CERTIFICATE.replace('\n', "\r\n"));
    let authority = Some(files.put("ca.pem", two));
    let rendered = try_render(&UserDataRequest { authority, ..request(with(&[])) }).unwrap();
    let value = rendered.user_data.split("NSTANCE_CA_CERT='").nth(1).unwrap().split('\'').next().unwrap();
    let mut decoder = Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    decoder.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    let decoded = decoder.wait_with_output().unwrap().stdout;
    assert_eq!(String::from_utf8(decoded).unwrap(), CERTIFICATE.repeat(2));
}

#[test]
fn a_provider_takes_what_it_takes_and_not_a_byte_more() {
    for provider in Provider::NAMES.into_iter().filter_map(Provider::named) {
        let request = |value: &str| {
            // One setting has at most 128 KiB.
            let names = [
                "NETSY_ACCESS_KEY_ID",
                "NETSY_ENDPOINT",
                "NETSY_KEY_PREFIX",
                "NETSY_REGION",
                "NETSY_SECRET_ACCESS_KEY",
            ];
            let more =
                ["OIDC_ISSUER", "REGISTRY_BUCKET", "REGISTRY_REGION", "REGISTRY_ENDPOINT", "REGISTRY_ACCESS_KEY_ID"];
            let mut settings = with(&names.iter().chain(&more).map(|name| (*name, "")).collect::<Vec<_>>());
            for (name, part) in names.iter().chain(&more).zip(value.as_bytes().chunks(120 << 10)) {
                settings.insert((*name).to_owned(), String::from_utf8(part.to_vec()).unwrap());
            }
            UserDataRequest { provider: Some(provider), ..request(settings) }
        };
        let Some(limit) = provider.limit() else { continue };
        let empty = try_render(&request("")).unwrap().sizes.total;
        let full = try_render(&request(&"x".repeat(limit - empty))).unwrap();
        assert_eq!(full.user_data.len(), limit);
        full.check_size().unwrap();
        let over = try_render(&request(&"x".repeat(limit - empty + 1))).unwrap().check_size().unwrap_err().to_string();
        let expected =
            format!("the user data has {} bytes, more than the limit of {limit} of {}", limit + 1, provider.name());
        assert_eq!(over, expected);
    }
}

#[test]
fn a_machine_reads_no_larger_file() {
    let names =
        ["NETSY_ACCESS_KEY_ID", "NETSY_ENDPOINT", "NETSY_KEY_PREFIX", "NETSY_REGION", "NETSY_SECRET_ACCESS_KEY"];
    let more = ["OIDC_ISSUER", "REGISTRY_BUCKET", "REGISTRY_REGION", "REGISTRY_ENDPOINT", "REGISTRY_ACCESS_KEY_ID"];
    let long = "x".repeat(120 << 10);
    // Mutable variables are also kept in a separate file: the first of these stays below its limit.
    let mut all: Vec<_> = names.iter().chain(&more).take(8).map(|name| (*name, long.as_str())).collect();
    all.push(("IMMUTABLE_SSH_AUTHORIZED_KEYS", &long));
    let said = refusal(&request(with(&all)));
    assert!(said.starts_with("the settings have 11") && said.ends_with("more than the limit of 1048576"), "{said}");
    // Samples would fit, the longest values do not.
    all.pop();
    let rest = "x".repeat(60 << 10) + "{{ .Vars.A }}";
    all.push(("REGISTRY_ENDPOINT", &rest));
    let settings = UserDataRequest { provider: Some(Provider::Local), ..request(with(&all)) };
    try_render(&settings).unwrap();
    let template = Some(vmbake_user_data::UserDataTemplate::Nstance);
    let said = refusal(&UserDataRequest { template, ..settings });
    assert!(said.starts_with("the settings have up to 10"), "{said}");
}

#[test]
fn user_data_is_smaller_than_a_script_that_downloads() {
    let script = include_str!("../../../../qemu-tests/cases/download-user-data.sh");
    let files = Files::new();
    let settings = with(&[]);
    let pairs = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let script = script.replace("@env@\n", &env::render(pairs).unwrap()).replace("@nonce@", TOKEN);
    let nonce = Some(files.put("nonce", TOKEN));
    let ours = try_render(&UserDataRequest { nonce, ..request(settings.clone()) }).unwrap().sizes;
    let own = |total: usize| total - ours.settings - ours.nonce;
    println!("user data {} bytes, script {} bytes", ours.total, script.len());
    println!("without settings and nonce: user data {} bytes, script {} bytes", own(ours.total), own(script.len()));
    assert!(own(ours.total) * 5 < own(script.len()));
}
