//! Invalid profiles and deployments, and ones that cannot become a Debian image: refused with position and hint.

use std::fs;

use vmbake_profile::{MachinePhase, Profile};

use super::Desk;

/// What of the profile is replaced by what, and what is said then.
const PROFILES: &[(&str, &str, &str, &str)] = &[
    ("osVersion:", "osVersoin:", "p.yaml:7:3: missing field osVersion", ""),
    ("osVersion:", "osFlavor: a\n  osVersion:", "p.yaml:8:3: unknown field osFlavor", ""),
    ("  version: v1.2.0", "  version: 1.0.0", "p.yaml:9:12: expected a version such as v1.2.3, found 1.0.0", ""),
    ("osVersion: \"13\"", "osVersion: 13", "p.yaml:8:14: expected a string: put the value in quotes, found 13", ""),
    ("osVersion: \"13\"", "osVersion: 1.30", "p.yaml:8:14: expected a string: put the value in quotes, found 1.30", ""),
    (
        "osVersion: \"13\"",
        "osVersion: \"13\"\n  osVersion: \"12\"",
        "p.yaml:9:3: expected unique keys, found duplicate osVersion",
        "",
    ),
    ("osVersion: \"13\"", "osVersion: &a \"13\"", "p.yaml:8:14: anchors are not supported", ""),
    ("osVersion: \"13\"", "osVersion: *a", "p.yaml:8:14: ", ""),
    ("osVersion: \"13\"", "osVersion: !!str 13", "p.yaml:8:", ""),
    ("osVersion: \"13\"", "<<: {}", "p.yaml:8:3: merge keys are not supported", ""),
    ("osVersion: \"13\"", "osVersion: \"13", "p.yaml:", ""),
    ("osVersion: \"13\"", "? [a]\n  : b", "p.yaml:8:5: expected a name as the key, found a list or mapping", ""),
    ("osName: debian", "osName: rhel", "p.yaml:7:11: rhel is refused: it installs packages with yum", ""),
    ("osName: debian", "osName: rockylinux", "p.yaml:7:11: rockylinux is refused: it installs packages with yum", ""),
    ("osName: debian", "osName: amzn2", "p.yaml:7:11: amzn2 is refused: it installs packages with yum", ""),
    ("osName: debian", "osName: flatcar", "p.yaml:7:11: flatcar is refused: it is configured by Ignition", ""),
    ("osName: debian", "osName: plan9", "p.yaml:7:11: expected debian or ubuntu, found plan9", ""),
    ("Utility: cloud-init", "Utility: ignition", "p.yaml:10:24: provisioningUtility: ignition is refused", ""),
    ("Utility: cloud-init", "Utility: puppet", "p.yaml:10:24: expected cloud-init, found puppet", ""),
    (
        "kind: Operating",
        "kind: Cluster",
        "p.yaml:3:7: expected kind OperatingSystemProfile, found ClusterSystemProfile",
        "",
    ),
    ("v1alpha1", "v1beta1", "p.yaml:2:13: expected apiVersion operatingsystemmanager.k8c.io/v1alpha1", ""),
    ("name: example-debian", "name: Example", "p.yaml:5:9: expected a name of at most 253 lowercase letters", ""),
    (
        "    modules:\n",
        "    modules:\n      rh_subscription: {org: a}\n",
        "rh_subscription is refused: Debian images have no subscription",
        "",
    ),
    (
        "    modules:\n",
        "    modules:\n      yum_repos: {a: {b: c}}\n",
        "yum_repos is refused: Debian images have no yum",
        "",
    ),
    (
        "    modules:\n",
        "    modules:\n      yum_repo_dir: /etc\n",
        "yum_repo_dir is refused: Debian images have no yum",
        "",
    ),
    ("    modules:\n", "    modules:\n      runcmds: []\n", "unknown field runcmds", "did you mean `runcmd`?"),
    (
        "- /usr/local/sbin/fetch-provisioning",
        "- |\n          a\n          b",
        "expected a command in a single line",
        "",
    ),
    (
        "- /usr/local/sbin/fetch-provisioning",
        "- 'echo a: b'",
        "cloud-init would read the runcmd command `echo a: b` differently",
        "move the command to a script in `files`",
    ),
    (
        "- /usr/local/sbin/fetch-provisioning",
        "- 'echo a #b'",
        "cloud-init would read the runcmd command `echo a #b` differently",
        "move the command to a script in `files`",
    ),
    ("path: /etc/kubernetes/ca.crt", "path: etc/ca.crt", "expected an absolute path of visible ASCII", ""),
    ("path: /etc/kubernetes/ca.crt", "path: /etc/../ca.crt", "expected an absolute path of visible ASCII", ""),
    ("path: /etc/kubernetes/ca.crt", "path: /etc//ca.crt", "expected an absolute path of visible ASCII", ""),
    ("path: /etc/kubernetes/ca.crt", "path: /etc/ca.crt/", "expected an absolute path of visible ASCII", ""),
    ("path: /etc/kubernetes/ca.crt", "path: \"/etc/a'b\"", "expected an absolute path of visible ASCII", ""),
    ("path: /etc/kubernetes/ca.crt", "path: \"/etc/a\\nb\"", "expected an absolute path of visible ASCII", ""),
    (
        "path: /etc/kubernetes/ca.crt",
        "path: /usr/local/sbin/fetch-provisioning",
        "duplicate file /usr/local/sbin/fetch-provisioning",
        "",
    ),
    (
        "path: /etc/crictl.yaml",
        "path: /etc/containerd/certs.d/docker.io/hosts.toml",
        "duplicate file /etc/containerd/certs.d/docker.io/hosts.toml",
        "",
    ),
    (
        "permissions: 755",
        "permissions: 0755",
        "expected permissions such as 644: octal digits without leading zeros, found 0755",
        "",
    ),
    ("permissions: 755", "permissions: 789", "expected permissions such as 644", ""),
    ("permissions: 755", "permissions: 0", "expected permissions such as 644", ""),
    ("permissions: 755", "permissions: \"755\"", "expected permissions such as 644", ""),
    ("permissions: 755", "permissions: 10000", "expected permissions such as 644", ""),
    ("permissions: 755", "permission: 755", "unknown field permission", "did you mean `permissions`?"),
    ("encoding: b64", "encoding: gzip", "expected `b64` or no encoding, found gzip", ""),
    (
        "- /usr/local/sbin/fetch-provisioning",
        "- \"echo a\\tb\"",
        "cloud-init would read the runcmd command `echo a\\x09b` differently",
        "",
    ),
    ("- /usr/local/sbin/fetch-provisioning", "- \"`date`\"", "the runcmd command ``date`` differently", ""),
    ("- /usr/local/sbin/fetch-provisioning", "- '@x'", "the runcmd command `@x` differently", ""),
    ("- /usr/local/sbin/fetch-provisioning", "- '%x'", "the runcmd command `%x` differently", ""),
    ("- /usr/local/sbin/fetch-provisioning", "- '='", "the runcmd command `=` differently", ""),
    ("- /usr/local/sbin/fetch-provisioning", "- \".inf\"", "the runcmd command `.inf` differently", ""),
    (
        "- /usr/local/sbin/fetch-provisioning",
        "- \"a\\u2028b\"",
        "cloud-init would read the runcmd command `a\\xe2\\x80\\xa8b` differently",
        "",
    ),
    (
        "- /usr/local/sbin/fetch-provisioning",
        "- \"a\\x7fb\"",
        "cloud-init would read the runcmd command `a\\x7fb` differently",
        "",
    ),
    (
        "            encoding: b64\n            data: |\n              #!/bin/sh",
        "            data: |2\n                #!/bin/sh",
        "cloud-init would read /usr/local/sbin/fetch-provisioning differently",
        "`encoding: b64`",
    ),
    ("      kernelSettings: |-", "      kernel\" . }}: |-", "expected a template name of letters, digits, - and _", ""),
    (
        "  bootstrapConfig:\n",
        "  bootstrapConfig:\n    units: [{name: a.service, enable: true}]\n",
        "cloud-init does not install units: a.service",
        "add the unit to `files`",
    ),
    (
        "  bootstrapConfig:\n",
        "  bootstrapConfig:\n    units: [{name: a.service, enable: yes}]\n",
        "expected true or false, found yes",
        "",
    ),
    ("    - name: hetzner\n", "", "expected aws, openstack, found hetzner", ""),
    (
        "name: example-debian",
        "name: other",
        "expected deployments with k8c.io/operating-system-profile: other, found example-debian",
        "",
    ),
    ("osName: debian", "osName: ubuntu", "expected ubuntu, found debian", ""),
];

/// The same of the deployment.
const DEPLOYMENTS: &[(&str, &str, &str, &str)] = &[
    ("kubelet: 1.34.2", "kubelet: latest", "m.yaml:20:18: expected a version such as 1.35.2, found latest", ""),
    ("kubelet: 1.34.2", "kubelet: 1.34", "m.yaml:20:18: expected a string: put the value in quotes, found 1.34", ""),
    ("kubelet: 1.34.2", "kubelet: 1.34.x", "m.yaml:20:18: expected a version such as 1.35.2, found 1.34.x", ""),
    ("  namespace: kube-system\n", "", "m.yaml:5:3: missing field namespace", ""),
    ("cloudProvider: hetzner", "cloudProvider: a'b", "expected the name of a cloud provider, found a'b", ""),
    ("operatingSystem: debian", "operatingSystem: flatcar", "flatcar is refused: it is configured by Ignition", ""),
    (
        "operatingSystem: debian",
        "operatingSystem: debian\n          operatingSystemSpec: {distUpgradeOnBoot: true}",
        "distUpgradeOnBoot is refused: images are not upgraded in place",
        "",
    ),
    (
        "operatingSystem: debian",
        "operatingSystem: debian\n          operatingSystemSpec: {rhelSubscription: a}",
        "unknown field rhelSubscription",
        "",
    ),
    (
        "operatingSystem: debian",
        "operatingSystem: debian\n          network: {cidr: 10.0.0.0/8}",
        "cidr is refused: OSM supports static IP addresses only for Flatcar",
        "",
    ),
    (
        "operatingSystem: debian",
        "operatingSystem: debian\n          network: {dns: {servers: [10.0.0.1]}}",
        "dns.servers is refused",
        "",
    ),
    (
        "operatingSystem: debian",
        "operatingSystem: debian\n          network: {ipFamily: IPv5}",
        "expected IPv4, IPv6, IPv4+IPv6 or IPv6+IPv4, found IPv5",
        "",
    ),
    (
        "operatingSystem: debian",
        "operatingSystem: debian\n          overwriteCloudConfig: '{{ .Token }}'",
        "{{ is refused: a value that contains {{",
        "",
    ),
    (
        "location: nbg1",
        "location: no",
        "expected a value with the same meaning in YAML 1.1 and 1.2: put it in quotes, found no",
        "",
    ),
    (
        "        value:\n",
        "        valueFrom: {machineClass: {}}\n        value:\n",
        "valueFrom is refused: the machine class is only known in the cluster",
        "",
    ),
    ("me@example", "o'me", "expected a public key in a single line, without '", ""),
    ("          cloudProvider: hetzner", "          cloudProvidr: hetzner", "missing field cloudProvider", ""),
    ("spec:\n  replicas", "spec:\n  replica", "m.yaml:10:3: unknown field replica", "did you mean `replicas`?"),
];

#[test]
fn what_is_no_profile_for_debian_is_refused_where_it_stands() {
    for (from, to, expected, advice) in PROFILES {
        let (said, hint) = Desk::new().profile(from, to).refusal();
        assert!(said.contains(expected), "{to}: {said}");
        assert!(hint.contains(advice), "{to}: {hint}");
    }
}

/// PyYAML, by which cloud-init reads user data, refuses these characters or takes them for line ends.
#[test]
fn files_without_encoding_have_characters_that_cloud_init_reads() {
    for content in ["a\u{85}b", "a\u{2028}b", "a\u{2029}b", "a\u{7f}b", "a\u{1b}b", "a\u{feff}b"] {
        let quoted = format!(
            "          data: \"{}\"\n",
            content.chars().map(|char| format!("\\u{:04x}", u32::from(char))).collect::<String>()
        );
        let (said, _) = Desk::with_file("PLACE").profile("          data: |\n            PLACE\n", &quoted).refusal();
        assert_eq!(said, "cloud-init would read /f differently", "{content:?}");
    }
    let config = Desk::with_file("a\tb é 🦀").render().unwrap();
    assert!(config.user_data(MachinePhase::Bootstrap).unwrap().contains("    a\tb é 🦀\n"));
}

#[test]
fn what_is_no_deployment_is_refused_where_it_stands() {
    for (from, to, expected, advice) in DEPLOYMENTS {
        let (said, hint) = Desk::new().deployment(from, to).refusal();
        assert!(said.contains(expected), "{to}: {said}");
        assert!(hint.contains(advice), "{to}: {hint}");
    }
}

#[test]
fn annotations_that_configure_the_kubelet_are_read_strictly() {
    let annotated = |key: &str, value: &str| {
        let line = format!("annotations:\n    v1.kubelet-config.machine-controller.kubermatic.io/{key}: {value}");
        Desk::with_file(&format!("{{{{ .{key} }}}}")).deployment("annotations:", &line)
    };
    for (key, value, expected) in [
        ("MaxPods", "\"110\"", "110\n"),
        ("MaxPods", "\"0\"", "0\n"),
        ("ImageMinimumGCAge", "1h30m", "1h30m0s\n"),
        ("ImageMaximumGCAge", "90s", "1m30s\n"),
        ("EvictionHard", "memory.available<5%", "map[memory.available:5%]\n"),
    ] {
        assert_eq!(annotated(key, value).content().unwrap(), expected, "{key}");
    }
    for (key, value, expected) in [
        ("MaxPods", "110", "expected a string: put the value in quotes"),
        ("MaxPods", "many", "MaxPods: a whole number, found many"),
        ("KubeReserved", "cpu", "KubeReserved: NAME=AMOUNT, …, found cpu"),
        ("SystemReserved", "'{{ .Token }}=1'", "SystemReserved: NAME=AMOUNT"),
        ("EvictionHard", "a=b", "EvictionHard: SIGNAL<AMOUNT"),
        ("ContainerLogMaxSize", "\"\"", "a number, optionally with a unit, found nothing"),
        ("ContainerLogMaxFiles", "'5; reboot'", "a number, optionally with a unit"),
        ("ImageMinimumGCAge", "5 days", "a time such as 1h30m, 2m or 90s"),
        ("MaxPod", "\"1\"", "unknown field MaxPod"),
    ] {
        let (said, _) = annotated(key, value).refusal();
        assert!(said.contains(expected), "{key}: {said}");
    }
}

#[test]
fn options_are_those_of_the_operating_system_manager() {
    let key = Desk::new();
    fs::write(key.path("pem"), "-----BEGIN PRIVATE KEY-----\n").unwrap();
    let pem = key.text_path("pem");
    for (name, value, expected) in [
        ("cluster-dn", "10.0.0.1", "--set cluster-dn: unknown option of OSM"),
        ("cluster-dns", "10.0.0", "--set cluster-dns: expected IP addresses"),
        ("container-runtime", "docker", "--set container-runtime: expected containerd"),
        ("external-cloud-provider", "yes", "expected true or false"),
        ("initial-taints", "{{ .Token }}", "expected taints in a single line"),
        ("node-http-proxy", "a\nb", "expected a URL in a single line"),
        ("node-kubelet-feature-gates", "A=maybe", "expected NAME=true or NAME=false"),
        ("node-kubelet-feature-gates", "A b=true", "expected NAME=true or NAME=false"),
        ("node-registry-mirrors", "https://a\"b", "[REGISTRY=]URL"),
        ("node-registry-mirrors", "https://a?kubermatic=x", "?kubermatic=override_path%3Dtrue at the end"),
        ("node-containerd-registry-mirrors", "quay.io", "REGISTRY=URL"),
        ("node-insecure-registries", "../../etc", "expected registries"),
        ("pause-image", "a\"\nb = 1", "expected the name of a container image"),
        ("namespace", "Kube", "the namespace of OSM"),
        ("host-ca-bundle", pem.as_str(), "--set host-ca-bundle: expected a file with certificates"),
        ("host-ca-bundle", "/none", "/none: cannot read"),
        ("server-url", "https://b", "--set server-url: expected a single value"),
        ("bootstrap-kubeconfig", "/", "/: cannot read"),
    ] {
        let (said, _) = Desk::new().set(name, value).refusal();
        assert!(said.contains(expected), "{name}: {said}");
        assert!(!said.contains("PRIVATE"), "{said}");
    }
    let (_, hint) = Desk::new().set("cluster-dn", "10.0.0.1").refusal();
    assert_eq!(hint, "did you mean `cluster-dns`?");
    let mut desk = Desk::new();
    desk.options.retain(|(name, _)| name != "api-server-token");
    let said = desk.refusal();
    assert_eq!(said.0, "undefined profile field .Token");
    assert_eq!(said.1, "set it with --set api-server-token=…");
}

#[test]
fn registries_get_files_of_their_own() {
    let config = Desk::new()
        .set("node-registry-mirrors", "quay.io=mirror.example.org,registry.example.org")
        .set("node-containerd-registry-mirrors", "ghcr.io=https://m/v2/x?kubermatic=override_path%3Dtrue")
        .set("node-insecure-registries", "10.0.0.1:5000,quay.io");
    let yaml = config.render().unwrap().to_yaml();
    for expected in [
        "[host.\"https://mirror.example.org\"]\n              capabilities = [\"pull\", \"resolve\"]\n              skip_verify = true\n",
        "server = \"10.0.0.1:5000\"\n\n              [host.\"10.0.0.1:5000\"]\n",
        "server = \"ghcr.io\"\n\n              [host.\"https://m/v2/x\"]\n              capabilities = [\"pull\", \"resolve\"]\n              override_path = true\n",
        "server = \"https://registry-1.docker.io\"\n\n              [host.\"https://registry.example.org\"]\n",
        "path: \"/etc/containerd/certs.d/10.0.0.1:5000/hosts.toml\"\n",
    ] {
        assert!(yaml.contains(expected), "{expected}: {yaml}");
    }
}

#[test]
fn what_a_provider_would_refuse_is_told() {
    let long = format!("runcmd:\n        - {}", "a".repeat(33_000));
    let config = Desk::new().profile("runcmd:", &long).render().unwrap();
    let size = config.size(MachinePhase::Bootstrap).unwrap();
    let said = size.check().unwrap_err().to_string();
    assert!(size.is_too_large() && said.ends_with("bytes of user data: hetzner accepts at most 32768"), "{said}");
    assert!(size.to_string().contains(" % of 32768 (hetzner)"), "{size}");
    let old =
        Desk::new().deployment("cloudProvider: hetzner", "cloudProvider: openstack").deployment("1.34.2", "1.28.9");
    let (said, hint) = old.refusal();
    assert_eq!(said, "kubelet v1.28.9 requires a cloud-config for openstack, which vmbake does not support");
    assert!(hint.starts_with("use --set external-cloud-provider=true, or overwriteCloudConfig"), "{hint}");
    assert!(old.set("external-cloud-provider", "true").render().is_ok());
}

#[test]
fn documents_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.yaml");
    let flow = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    let deep: String = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let many = "- a\n".repeat(100_000);
    let texts: [(&[u8], &str); 9] = [
        (b"", "expected a mapping, found an empty document"),
        (b"- a\n", "expected a mapping, found a list"),
        (b"\xff\xfe", "expected UTF-8"),
        (b"a: 1\n---\nb: 1\n", "expected a single document, found a second one"),
        (flow.as_bytes(), "not valid YAML: recursion limit exceeded"),
        (deep.as_bytes(), "nested more than 40 levels deep"),
        (many.as_bytes(), "more than 50000 values"),
        (&[b'#'; (1 << 20) + 1], "expected at most 1048576 bytes, found more"),
        (b"a: &x [1]\nb: [*x, *x]\n", "anchors are not supported"),
    ];
    for (text, expected) in texts {
        fs::write(&path, text).unwrap();
        let said = Profile::open(&path).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}
