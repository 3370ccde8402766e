//! User data: settings and files in; a document that every reader of YAML reads alike out, or every reason why not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests stop at the first surprise"
)]

#[path = "firstboot/settings.rs"]
#[allow(dead_code, reason = "names of choices are for other tests")]
mod settings;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use vmbake::first_boot::compile;
use vmbake::layer::{Layer, Layers};
use vmbake::user_data::{Origin, Provider, Rendered, Request, UserDataError, render};
use vmbake_firstboot::env;
use vmbake_firstboot::plan::Plan;

const TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJrbmMifQ.c2ln";
const CERTIFICATE: &str = include_str!("data/sigstore/certificates/plain.pem");
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0e me@example";

/// The least that a node of the control plane needs.
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
fn request(settings: BTreeMap<String, String>) -> Request {
    Request { kind: "knc".to_owned(), settings: vec![(Origin::Option("--set"), settings)], ..Request::default() }
}

/// The plan of each kind, with its layers.
static KINDS: LazyLock<BTreeMap<&str, (Plan, Vec<Layer>)>> = LazyLock::new(|| {
    let all = Layers::load(None).unwrap();
    let planned = |kind| {
        let layers = all.resolve(kind, "debian-13").unwrap();
        (kind, (compile(&layers, "x86_64-linux-gnu").unwrap().plan, layers))
    };
    ["node", "knd", "knc"].map(planned).into()
});

fn try_render(request: &Request) -> Result<Rendered, UserDataError> {
    let (plan, layers) = &KINDS[request.kind.as_str()];
    render(request, plan, layers)
}

fn refusal(request: &Request) -> String {
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
    NETSY_SECRET_ACCESS_KEY='it'\\''s $HOME'
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
    let mut request = Request { kind: "node".to_owned(), ..Request::default() };
    assert_eq!(try_render(&request).unwrap().user_data, "#cloud-config\n{}\n");
    request.ssh_keys = Some(files.put("keys", KEY));
    assert_eq!(try_render(&request).unwrap().user_data, format!("#cloud-config\nssh_authorized_keys:\n- \"{KEY}\"\n"));
    request.nonce = Some(files.put("nonce", TOKEN));
    assert_eq!(refusal(&request), "--nonce means nothing to kind node");
    request.nonce = None;
    request.authority = Some(files.put("ca.pem", CERTIFICATE));
    assert_eq!(refusal(&request), "--ca means nothing to kind node");
    request.authority = None;
    request.settings = vec![(Origin::Option("--set"), with(&[]))];
    assert!(refusal(&request).contains("\n  CLUSTER_ID means nothing to this kind\n"));
}

#[test]
fn all_that_is_missing_is_named_at_once() {
    let expected = "these settings cannot configure a machine of kind knc:
  PROVIDER_KIND: expected a value, found \"\"
  TELEMETRY_ENABLED is true, but neither TELEMETRY_S3_BUCKET nor TELEMETRY_OTLP_ENDPOINT says where to
  REGISTRY_ENABLED is true, but REGISTRY_HOSTNAME or REGISTRY_BUCKET is empty
  NSTANCE_SERVER_REGISTRATION_ADDR is empty
  NSTANCE_SERVER_AGENT_ADDR is empty
  netsy needs CLUSTER_ID
  netsy needs NETSY_BUCKET
  netsy needs INSTANCE_ID";
    assert_eq!(refusal(&request(BTreeMap::new())), expected);
    let google = refusal(&request(with(&[("PROVIDER_KIND", "google")])));
    assert!(google.ends_with(":\n  PROVIDER_KIND google needs GOOGLE_PROJECT_ID"), "{google}");
}

#[test]
fn what_a_machine_would_refuse_is_refused_here() {
    for (name, value, expected) in [
        ("PROVIDER_KIND", "azure", "PROVIDER_KIND: expected local, aws, google, proxmox, found \"azure\""),
        ("TELEMETRY_ENABLED", "yes", "TELEMETRY_ENABLED: expected true or false, found \"yes\""),
        ("KUBE_API_PORT", "65536", "KUBE_API_PORT: expected a port from 1 to 65535, found \"65536\""),
        ("OIDC_CUSTOM_CA", "secret!", "OIDC_CA_CERT: expected a text in base64, found something else"),
        (
            "NSTANCE_SERVER_AGENT_ADDR",
            "10.0.2.2",
            "{{ NSTANCE_SERVER_AGENT_ADDR }}: expected host:port or [address]:port",
        ),
        ("NSTANCE_SERVER_AGENT_ADDR", "a b:1", "{{ NSTANCE_SERVER_AGENT_ADDR }}: expected host:port or [address]:port"),
        ("KUBE_APIPORT", "1", "KUBE_APIPORT means nothing to this kind; there is KUBE_API_PORT"),
        ("netsy_bucket", "1", "netsy_bucket means nothing to this kind; there is NETSY_BUCKET, REGISTRY_BUCKET"),
        ("HOME", "1", "HOME means nothing to this kind"),
    ] {
        let said = refusal(&request(with(&[(name, value)])));
        assert_eq!(said, format!("these settings cannot configure a machine of kind knc:\n  {expected}"), "{name}");
    }
    // One wrong setting hides no other.
    let said = refusal(&request(with(&[("KUBE_API_PORT", "0"), ("NETSY_BUCKET", ""), ("HOME", "")])));
    assert_eq!(said.lines().count(), 4, "{said}");
}

#[test]
fn values_that_could_break_out_are_refused_by_name_alone() {
    let long = "s3cret".repeat(22_000);
    for value in
        ["s3cret\nX=1", "s3cret\r", "s3cret\0", "s3cret\t", "s3cret\u{1b}[2J", "s3cret\u{7f}", "s3cret\u{85}", &long]
    {
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

#[test]
fn what_nobody_brings_is_a_warning() {
    let warnings = try_render(&request(with(&[]))).unwrap().warnings;
    assert!(
        matches!(warnings.as_slice(), [ca, nonce] if ca.contains("ca.crt is missing") && nonce.contains("nonce.jwt"))
    );
}

#[test]
fn every_choice_of_settings_that_configures_a_machine_is_taken() {
    for choice in settings::Choice::all() {
        let mut settings = with(&[]);
        settings.retain(|name, _| name.starts_with("NSTANCE_SERVER"));
        settings.extend(choice.user_data());
        let kind = choice.kind().to_owned();
        let rendered =
            try_render(&Request { kind, ..request(settings) }).unwrap_or_else(|error| panic!("{choice}: {error}"));
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
        (&cut, "certificates (PEM), found a damaged one"),
        (&endless, "certificates (PEM), found one that does not end"),
        (&format!("{endless}{CERTIFICATE}"), "certificates (PEM), found one that does not end"),
    ] {
        let authority = Some(files.put("ca.pem", content));
        refused(&Request { authority, ..request(with(&[])) }, expected);
    }
    for content in ["", "\n", "two words", "two\nlines\n", "s3cret\r\n", "\u{e9}"] {
        let nonce = Some(files.put("nonce", content));
        refused(&Request { nonce, ..request(with(&[])) }, "a token in one line and nothing else");
    }
    for content in ["", "# none", private, "ssh-ed25519", "ssh-ed25519 !", "s3cret AAAA", "ssh-rsa AAAA \u{1b}"] {
        let ssh_keys = Some(files.put("keys", content));
        refused(&Request { ssh_keys, ..request(with(&[])) }, "public keys of SSH, one a line");
    }
    let nonce = Some(files.put("nonce", [0xff, 0xfe]));
    refused(&Request { nonce, ..request(with(&[])) }, "found no UTF-8");
    let nonce = Some(files.put("nonce", vec![b'a'; (1 << 20) + 1]));
    refused(&Request { nonce, ..request(with(&[])) }, "expected at most 1 MiB, found more");
}

fn refused(request: &Request, expected: &str) {
    let said = refusal(request);
    assert!(said.contains(expected) && !said.contains("s3cret"), "{said}");
}

#[test]
fn certificates_are_taken_as_they_are_without_the_text_around_them() {
    let files = Files::new();
    let two = format!("Subject: one\n{CERTIFICATE}\nSubject: two\n{}", CERTIFICATE.replace('\n', "\r\n"));
    let authority = Some(files.put("ca.pem", two));
    let rendered = try_render(&Request { authority, ..request(with(&[])) }).unwrap();
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
            Request { provider: Some(provider), ..request(settings) }
        };
        let Some(limit) = provider.limit() else { continue };
        let empty = try_render(&request("")).unwrap().sizes.total;
        let full = try_render(&request(&"x".repeat(limit - empty))).unwrap();
        assert_eq!(full.user_data.len(), limit);
        full.check_size().unwrap();
        let over = try_render(&request(&"x".repeat(limit - empty + 1))).unwrap().check_size().unwrap_err().to_string();
        let expected = format!(
            "the user data has {} bytes, which is more than the {limit} that {} takes",
            limit + 1,
            provider.name()
        );
        assert_eq!(over, expected);
    }
}

/// What a program of Python prints about documents; none where it cannot be asked.
fn ask_python(program: &str, documents: &[String]) -> Option<serde_json::Value> {
    let python = "/usr/bin/python3";
    let found = Command::new(python)
        .args(["-c", "import yaml"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|code| code.success());
    if !found {
        assert!(std::env::var_os("CI").is_none(), "python3-yaml is needed in CI");
        println!("skipped: python3-yaml is not installed");
        return None;
    }
    let files = Files::new();
    let input = files.put("documents", serde_json::to_vec(documents).unwrap());
    let output = Command::new(python).args(["-c", program]).arg(input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Both readers of YAML 1.1 that PyYAML has; cloud-init uses its safe loader, which is the first.
const READ: &str = r#"
import json, sys, yaml
loaders = [yaml.SafeLoader] + ([yaml.CSafeLoader] if yaml.__with_libyaml__ else [])
read = [[yaml.load(document, loader) for loader in loaders] for document in json.load(open(sys.argv[1]))]
assert all(one == other for one, *others in read for other in others), "the loaders differ"
json.dump([one for one, *_ in read], sys.stdout)
"#;

#[test]
fn hostile_values_arrive_as_they_were_sent() {
    let names =
        ["AWS_S3_USE_PATH_STYLE", "CLUSTER_ID", "NETSY_SECRET_ACCESS_KEY", "SSH_AUTHORIZED_KEYS", "PROVIDER_ZONE"];
    let part = prop_oneof![
        Just("'"),
        Just("\""),
        Just("\\"),
        Just("$(id)"),
        Just("`id`"),
        Just("${HOME}"),
        Just("{{ ds }}"),
        Just("\n"),
        Just("# "),
        Just(": "),
        Just("- "),
        Just("---"),
        Just("\n...\n"),
        Just("%YAML 1.2\n"),
        Just("!!python/name:os.system"),
        Just("&a *a"),
        Just("|"),
        Just(">"),
        Just("yes"),
        Just("0600"),
        Just("~"),
        Just(" "),
        Just("\u{2028}"),
        Just("\u{2029}"),
        Just("\u{feff}"),
        Just("\u{a0}"),
        Just("é"),
        Just("🦀"),
        Just("\u{fffe}"),
        Just("## template: jinja\n"),
        Just("a"),
    ];
    let value = prop_oneof![
        3 => prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat()),
        1 => any::<String>(),
    ];
    let strategy = prop::collection::vec(value, names.len());
    let mut runner = TestRunner::deterministic();
    let (mut documents, mut sent, mut refusals) = (Vec::new(), Vec::new(), 0);
    while documents.len() < 300 {
        let values = strategy.new_tree(&mut runner).unwrap().current();
        let settings: Vec<(&str, &str)> = names.into_iter().zip(values.iter().map(String::as_str)).collect();
        let settings = with(&settings);
        // Half of them would be refused for their line ends alone.
        let lines = |name: &str| name.starts_with("SSH");
        let settings: BTreeMap<_, _> = settings
            .into_iter()
            .map(|(name, value)| if lines(&name) { (name, value) } else { (name, value.replace('\n', "")) })
            .collect();
        match try_render(&request(settings.clone())) {
            Ok(rendered) => {
                assert!(rendered.user_data.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
                documents.push(rendered.user_data);
                sent.push(settings);
            }
            Err(error) => {
                let control =
                    |name: &str, value: &str| value.chars().any(|c| c.is_control() && !(lines(name) && c == '\n'));
                let reason = settings.iter().any(|(name, value)| control(name, value));
                assert!(reason || settings["CLUSTER_ID"].is_empty(), "{error}: {settings:?}");
                refusals += 1;
            }
        }
    }
    assert!(refusals < documents.len(), "{refusals}");
    for (document, settings) in documents.iter().zip(&sent) {
        let read = yaml_rust2::YamlLoader::load_from_str(document).unwrap();
        let content = read[0]["write_files"][0]["content"].as_str().unwrap();
        assert_eq!(&env::parse(Path::new("env"), content.as_bytes()).unwrap(), settings, "{document}");
    }
    let Some(read) = ask_python(READ, &documents) else { return };
    for ((document, settings), read) in documents.iter().zip(&sent).zip(read.as_array().unwrap()) {
        let file = &read["write_files"][0];
        assert_eq!(
            (file["permissions"].as_str(), read["write_files"][1].is_null()),
            (Some("0600"), true),
            "{document}"
        );
        let content = file["content"].as_str().unwrap();
        assert_eq!(&env::parse(Path::new("env"), content.as_bytes()).unwrap(), settings, "{document}");
        let pairs = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        assert_eq!(content, env::render(pairs), "{document}");
    }
}

fn vmbake(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vmbake")).args(["user-data", "render"]).args(arguments).output().unwrap()
}

#[test]
fn the_document_goes_to_stdout_and_the_table_to_stderr() {
    let files = Files::new();
    let lines = LEAST.map(|(name, value)| format!("{name}={value}\n")).concat();
    let path = files.put("env", lines + "INSTANCE_ID=other # what an option says counts more\n");
    let arguments =
        ["--kind", "knc", "--env", path.to_str().unwrap(), "--set", "INSTANCE_ID=knc-7", "--provider", "aws"];
    let output = vmbake(&arguments);
    let expected = try_render(&request(with(&[("INSTANCE_ID", "knc-7")]))).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected.user_data);
    let table = String::from_utf8(output.stderr).unwrap();
    assert!(
        table.contains(&format!("total    {:>8}  ", expected.sizes.total)) && table.contains(" % of 16384 (aws)"),
        "{table}"
    );
    assert_eq!(output.status.code(), Some(0));

    let output = vmbake(&[&arguments[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["user_data"], expected.user_data);
    assert_eq!(
        (json["limit"].as_u64(), json["parts"]["total"].as_u64()),
        (Some(16384), Some(expected.sizes.total as u64))
    );
    assert_eq!(json["parts"]["provider"], "aws");

    // What is too large is not printed, the table is.
    let long = format!("OIDC_ISSUER={}", "s3cret".repeat(3000));
    for (json, table) in [(None, true), (Some("--json"), false)] {
        let output = vmbake(&[&arguments[..], &["--set", &long], json.as_slice()].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.stdout.len(), output.status.code()), (0, Some(1)));
        assert!(said.contains("which is more than the 16384 that aws takes") && said.contains("\nhint: "), "{said}");
        assert_eq!(said.contains("\nframe "), table, "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[test]
fn wrong_arguments_are_not_repeated() {
    use std::os::unix::ffi::OsStrExt;
    for (argument, expected) in [
        (&b"s3cret"[..], "--set, the 1. one: expected NAME=VALUE"),
        (b"s3 cret=1", "--set, the 1. one: expected NAME=VALUE"),
        (b"=s3cret", "--set, the 1. one: expected NAME=VALUE"),
        (b"CLUSTER_ID=s3cret\xff", "--set: CLUSTER_ID: expected UTF-8"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        command.args(["user-data", "render", "--kind", "knd", "--set"]).arg(std::ffi::OsStr::from_bytes(argument));
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected) && !said.contains("s3"), "{said}");
        assert_eq!((output.stdout.len(), output.status.code()), (0, Some(1)));
    }
    let output = vmbake(&["--kind", "knd", "--set", "CLUSTER_ID=a", "--set", "CLUSTER_ID=b"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("CLUSTER_ID is given twice: by --set and by --set"), "{said}");
    let output = vmbake(&["--kind", "knd", "--set", "KUBE_APIPORT=1"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("hint: `vmbake user-data keys --kind knd` lists the settings that there are"), "{said}");
    let output =
        Command::new(env!("CARGO_BIN_EXE_vmbake")).args(["user-data", "keys", "--kind", "knd"]).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains("PROVIDER_KIND: required; one of local, aws, google, proxmox\n"), "{listed}");
    assert!(listed.contains("KUBE_API_PORT: may change on a running machine; port; default 6443\n"), "{listed}");
}

#[test]
fn user_data_is_smaller_than_a_script_that_downloads() {
    let script = include_str!("../../../qemu-tests/cases/reference-download.sh");
    let files = Files::new();
    let settings = with(&[]);
    let pairs = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let script = script.replace("@env@\n", &env::render(pairs)).replace("@nonce@", TOKEN);
    let nonce = Some(files.put("nonce", TOKEN));
    let ours = try_render(&Request { nonce, ..request(settings.clone()) }).unwrap().sizes;
    let own = |total: usize| total - ours.settings - ours.nonce;
    println!("user data {} bytes, script {} bytes", ours.total, script.len());
    println!("beside settings and nonce: user data {} bytes, script {} bytes", own(ours.total), own(script.len()));
    assert!(own(ours.total) * 10 < own(script.len()));
}
