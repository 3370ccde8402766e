//! Templates that a server renders: placeholders, checks and maximum lengths. Go's
//! text/template renders them in `tests/harness/fleet.py`.

use super::*;
use vmbake_common::hint::Hint;
use vmbake_user_data::{UserDataTemplate, setting};

/// A request for a template for `knc` with these settings.
fn template(settings: &[(&str, &str)]) -> UserDataRequest {
    let all = [("PROVIDER_KIND", "aws"), ("AWS_ACCOUNT_ID", "123456789012")];
    let mut all = map(all);
    all.extend(map(settings.iter().copied()));
    UserDataRequest { template: Some(UserDataTemplate::Nstance), ..request(all) }
}

#[test]
fn what_the_server_fills_is_a_placeholder_by_default() {
    let files = Files::new();
    let mut request = template(&[("REGISTRY_HOSTNAME", "registry.{{ .Cluster.ID }}.example")]);
    request.ssh_keys = Some(files.put("keys", format!("{KEY} it's {{{{ .Nonce }}}}")));
    let rendered = try_render(&request).unwrap();
    let (definition, document) = rendered.user_data.split_once("hostname: ").unwrap();
    assert!(definition.starts_with("#cloud-config\n{{- define \"value\" }}"), "{definition}");
    let expected = format!(
        r#"{{{{ printf "%+q" .Instance.ID }}}}
write_files:
- path: "/opt/nstance-agent/identity/nonce.jwt"
  permissions: "0600"
  content: {{{{ printf "%+q" .Nonce }}}}
- path: "/opt/podplane/etc/user-data.env"
  permissions: "0600"
  content: "\
    AWS_ACCOUNT_ID='123456789012'\n\
    CLUSTER_ID='{{{{ template "value" .Cluster.ID }}}}'\n\
    IMMUTABLE_SSH_AUTHORIZED_KEYS='{KEY} it'\"'\"'s {{\u007b .Nonce }}}}'\n\
    INSTANCE_ID='{{{{ template "value" .Instance.ID }}}}'\n\
    NSTANCE_CA_CERT='{{{{ template "value" .Cluster.CACert }}}}'\n\
    NSTANCE_SERVER_AGENT_ADDR='{{{{ template "value" .Server.AgentAddr }}}}'\n\
    NSTANCE_SERVER_REGISTRATION_ADDR='{{{{ template "value" .Server.RegistrationAddr }}}}'\n\
    PROVIDER_INSTANCE_TYPE='{{{{ template "value" .Instance.Type }}}}'\n\
    PROVIDER_KIND='aws'\n\
    PROVIDER_REGION='{{{{ template "value" .Provider.Region }}}}'\n\
    PROVIDER_ZONE='{{{{ template "value" .Provider.Zone }}}}'\n\
    REGISTRY_HOSTNAME='registry.{{{{ template "value" .Cluster.ID }}}}.example'\n\
    "
"#
    );
    assert_eq!(document, expected);
    assert_eq!(rendered.warnings, [""; 0]);
}

#[test]
fn settings_and_files_that_are_given_take_the_place_of_placeholders() {
    let files = Files::new();
    let mut request = template(&[("INSTANCE_ID", "knc-{{ INSTANCE_ID }}"), ("PROVIDER_ZONE", "{{.Vars.ZONE}}")]);
    request.authority = Some(files.put("ca.pem", CERTIFICATE));
    let text = try_render(&request).unwrap().user_data;
    for part in [
        "hostname: {{ printf \"%+q\" (print \"knc-\" .Instance.ID) }}\n",
        "    INSTANCE_ID='knc-{{ template \"value\" .Instance.ID }}'\\n\\\n",
        "    PROVIDER_ZONE='{{ template \"value\" .Vars.ZONE }}'\\n\\\n",
    ] {
        assert!(text.contains(part), "{part}{text}");
    }
    assert!(!text.contains(".CACert"), "{text}");
    // A token is of one machine.
    request.nonce = Some(files.put("nonce", TOKEN));
    assert_eq!(refusal(&request), "a template cannot have a nonce: the server sets one for each machine");
}

#[test]
fn host_and_port_can_be_variables() {
    let settings = [
        ("NSTANCE_SERVER_AGENT_ADDR", "{{ .Vars.HOST }}:{{ .Vars.PORT }}"),
        ("NSTANCE_SERVER_REGISTRATION_ADDR", "[fd00::{{ .Vars.HOST }}]:8992"),
        ("KUBE_API_INTERNAL_LB_HOSTNAME", "{{ .Vars.LB }}"),
        ("KUBE_API_PORT", "{{ .Vars.PORT }}"),
    ];
    try_render(&template(&settings)).unwrap();
    for (name, value) in
        [("NSTANCE_SERVER_AGENT_ADDR", "{{ .Vars.HOST }}.example"), ("KUBE_API_PORT", "0443"), ("KUBE_API_PORT", "0")]
    {
        assert!(refusal(&template(&[(name, value)])).contains(": expected "), "{name}");
    }
}

#[test]
fn a_template_without_settings_writes_the_same_file_as_a_document() {
    let (plan, layers) = &KINDS["knd"];
    let plan = Plan { inputs: plan.inputs.clone(), ..Plan::default() };
    let request = |template| UserDataRequest { kind: "knd".to_owned(), template, ..UserDataRequest::default() };
    let contents = [None, Some(UserDataTemplate::Nstance)].map(|template| {
        let text = render(&request(template), &plan, layers).unwrap().user_data;
        // Without placeholders the template is YAML, but for its definition.
        let text = text.split_once("write_files:").map(|(_, files)| format!("write_files:{files}")).unwrap();
        let read = yaml_rust2::YamlLoader::load_from_str(&text).unwrap();
        read[0]["write_files"][0]["content"].as_str().unwrap().to_owned()
    });
    assert_eq!(contents, ["\n", "\n"]);
}

#[test]
fn files_in_base64_have_no_placeholders() {
    let files = Files::new();
    let (plan, _) = &KINDS["knc"];
    let path = files.put("ca", "{{ .Vars.CA }}\n");
    for name in ["OIDC_CA_CERT", "OIDC_CUSTOM_CA"] {
        let error = setting(plan, name, &path, true).unwrap_err();
        let expected = format!(
            "{}: {name}: expected a file without placeholders, as it is encoded in base64, found \"{{{{\"",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().unwrap().contains(&format!("--set '{name}={{{{ .Vars.NAME }}}}'")));
        // No server fills what is not a template, and what is not a text has none.
        assert_eq!(setting(plan, name, &path, false).unwrap(), "e3sgLlZhcnMuQ0EgfX0K");
        assert_eq!(setting(plan, name, &files.put("binary", b"{{ \xff"), true).unwrap(), "e3sg/w==");
    }
    assert_eq!(setting(plan, "OIDC_ISSUER", &path, true).unwrap(), "{{ .Vars.CA }}");
}

#[test]
fn a_template_is_refused_where_no_machine_would_read_it() {
    let of_option = UserDataRequest { provider: Some(Provider::Google), ..template(&[]) };
    let google = [("PROVIDER_KIND", "google"), ("GOOGLE_PROJECT_ID", "p")];
    let filled =
        UserDataRequest { provider: Some(Provider::Google), ..template(&[("PROVIDER_KIND", "{{ .Provider.Kind }}")]) };
    for request in [of_option, template(&google), filled] {
        let error = try_render(&request).unwrap_err();
        assert_eq!(error.to_string(), "provider google: a template of Nstance does not reach cloud-init");
        assert!(error.hint().unwrap().contains("startup-script"));
    }
}

#[test]
fn other_settings_are_checked_as_without_a_template() {
    for (name, value, expected) in [
        ("PROVIDER_KIND", "azure", "PROVIDER_KIND: expected local, aws, google, proxmox, found \"azure\""),
        (
            "PROVIDER_KIND",
            "{{ .Provider.Kind }}",
            "PROVIDER_KIND: --provider is required, which determines the size limit and the checks",
        ),
        (
            "PROVIDER_KIND",
            "{{ .Vars.X }}",
            "PROVIDER_KIND: --provider is required, which determines the size limit and the checks",
        ),
        ("CLUSTER_ID", "{{ .Cluster.Id }}", "CLUSTER_ID: unknown placeholder; did you mean .Cluster.ID?"),
        ("CLUSTER_ID", "s3cret{{ html .Nonce }}", "CLUSTER_ID: unknown placeholder"),
        ("CLUSTER_ID", "s3cret{{", "CLUSTER_ID: unknown placeholder"),
        ("KUBE_APIPORT", "1", "KUBE_APIPORT: unknown setting of this kind; did you mean KUBE_API_PORT?"),
        (
            "KUBE_API_PORT",
            "{{ .Cluster.ID }}",
            "KUBE_API_PORT: expected a port from 1 to 65535 without leading zeros, found \"cluster\"",
        ),
        (
            "KUBE_SERVICE_ACCOUNT_ISSUER",
            "https://{{ .Vars.HOST }}/",
            "KUBE_SERVICE_ACCOUNT_ISSUER: expected only {{ .Vars.HOST }}, because the value has a required format; found other text or \
             placeholders next to it",
        ),
        (
            "NSTANCE_SERVER_AGENT_ADDR",
            "{{ .Vars.HOST }}:{{ .Vars.PORT }}0",
            "NSTANCE_SERVER_AGENT_ADDR: expected {{ .Vars.PORT }} as the whole port; found other text or placeholders next \
             to it",
        ),
        (
            "OIDC_CUSTOM_CA",
            "QUJD{{ .Cluster.ID }}x",
            "OIDC_CUSTOM_CA: expected only {{ .Cluster.ID }}, because the value has a required format; found other text or placeholders \
             next to it",
        ),
        (
            "INSTANCE_ID",
            "{{ .Vars.NAME }}",
            "INSTANCE_ID: expected text with at most one placeholder, {{ .Instance.ID }}, as it becomes the host name, found .Vars.NAME",
        ),
        (
            "INSTANCE_ID",
            "{{ .Cluster.ID }}-{{ .Instance.ID }}",
            "INSTANCE_ID: expected text with at most one placeholder, {{ .Instance.ID }}, as it becomes the host name, \
             found .Cluster.ID and .Instance.ID",
        ),
        ("CLUSTER_ID", "{{ .Cluster.ID }}\t", "CLUSTER_ID: expected one line without control characters"),
        ("NSTANCE_SERVER_AGENT_ADDR", "", "NSTANCE_SERVER_AGENT_ADDR is empty"),
    ] {
        let said = refusal(&template(&[(name, value)]));
        assert_eq!(said, format!("invalid settings for kind knc:\n  {expected}"), "{name}");
    }
    // Variables of the server take a form that fits.
    let names =
        ["KUBE_API_PORT", "KUBE_CLUSTER_DNS", "KUBE_SERVICE_ACCOUNT_ISSUER", "OIDC_CUSTOM_CA", "TELEMETRY_ENABLED"];
    try_render(&template(&names.map(|name| (name, "{{ .Vars.ANY }}")))).unwrap();
    let mut request = template(&[("PROVIDER_KIND", "{{ .Provider.Kind }}")]);
    request.provider = Some(Provider::Aws);
    assert_eq!(try_render(&request).unwrap().sizes.provider, Some(Provider::Aws));
    // Machines of this kind wait for no settings.
    request.kind = "node".to_owned();
    assert_eq!(
        refusal(&UserDataRequest { settings: Vec::new(), ..request }),
        "--template is not supported by kind node"
    );
}

#[test]
fn the_longest_values_count() {
    let sizes = try_render(&template(&[])).unwrap().sizes;
    // Each line end of the certificates takes two bytes.
    let authority = 4096 + 4096 / 65 + "    NSTANCE_CA_CERT=''\\n\\\n".len();
    assert_eq!((sizes.authority, sizes.nonce, sizes.is_longest), (authority, 1024 + 2, true));
    assert_eq!(sizes.settings + sizes.nonce + sizes.authority + sizes.frame, sizes.total);
    let names = ["NETSY_BUCKET", "NETSY_REGION", "OIDC_ISSUER"];
    let large = try_render(&template(&names.map(|name| (name, "{{ .Vars.ANY }}")))).unwrap();
    // The limits of the first boot hold for the longest values, too.
    let almost = "x".repeat((128 << 10) - 4095) + "{{ .Vars.ANY }}";
    let expected =
        "NETSY_BUCKET: expected a value of at most 128 KiB, found one of up to 131073 bytes with filled placeholders";
    assert!(refusal(&template(&[("NETSY_BUCKET", &almost)])).ends_with(expected));
    try_render(&template(&[("NETSY_BUCKET", &almost[1..])])).unwrap();
    let total = sizes.total + names.iter().map(|name| 4096 + name.len() + "    =''\\n\\\n".len()).sum::<usize>();
    let expected = format!("the user data has up to {total} bytes, more than the limit of 16384 of aws");
    assert_eq!(large.check_size().unwrap_err().to_string(), expected);
}
