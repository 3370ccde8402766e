//! The command: output streams, and secrets that are not printed.

use super::*;

fn vmbake(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vmbake")).args(["user-data", "render"]).args(arguments).output().unwrap()
}

#[test]
fn the_document_goes_to_stdout_and_the_table_to_stderr() {
    let files = Files::new();
    let lines = LEAST.map(|(name, value)| format!("{name}={value}\n")).concat();
    let path = files.put("env", lines + "# What an option says counts more.\nINSTANCE_ID=other\n");
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
        assert!(said.contains("more than the limit of 16384 of aws") && said.contains("\nhint: "), "{said}");
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
    assert!(said.contains("CLUSTER_ID is set by both --set and --set"), "{said}");
    let output = vmbake(&["--kind", "knd", "--set", "KUBE_APIPORT=1"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("hint: list the settings with `vmbake user-data keys --kind knd`"), "{said}");
    let output =
        Command::new(env!("CARGO_BIN_EXE_vmbake")).args(["user-data", "keys", "--kind", "knd"]).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains("PROVIDER_KIND: required; one of local, aws, google, proxmox\n"), "{listed}");
    for line in [
        "INSTANCE_IPV6: may be empty; default auto",
        "KUBE_API_INTERNAL_LB_HOSTNAME: may change on a running machine; host",
        "KUBE_API_PORT: may change on a running machine; port; default 6443",
        "KUBE_CLUSTER_CIDR: may change on a running machine; default 100.64.0.0/10,fd64::/48",
        "KUBE_CLUSTER_DNS: may change on a running machine; addresses; default 198.19.255.254,fdc6::ffff",
        "KUBE_NODE_CIDR_MASK_SIZE_IPV4: may change on a running machine; number; default 24",
        "KUBE_NODE_CIDR_MASK_SIZE_IPV6: may change on a running machine; number; default 64",
        "KUBE_SERVICE_ACCOUNT_ISSUER: may change on a running machine; url",
        "KUBE_SERVICE_CLUSTER_IP_RANGE: may change on a running machine; default 198.18.0.0/15,fdc6::/108",
        "OIDC_SIGNING_ALGS: may change on a running machine; default RS256",
        "NSTANCE_HEALTH_ADDR",
        "NSTANCE_REPORT_INTERVAL: default 60s",
        "NSTANCE_SERVER_AGENT_ADDR: may change on a running machine; host-port",
        "TELEMETRY_ENABLED: may change on a running machine; may be empty; boolean; default true",
    ] {
        assert!(listed.contains(&format!("{line}\n")), "{line}: {listed}");
    }
}
