//! Profiles as layers: effects of script commands, and refusals.

use std::fs;

use serde_json::{Value, json};
use vmbake::cli::error_report;
use vmbake_profile::import::{ImportError, ImportRequest, ImportedProfile, Lock, Rules, StatementClass, import};
use vmbake_profile::{ControllerOptions, Deployment, Profile};

use super::Desk;

/// A profile whose machines run `script` as `/usr/local/sbin/setup`, with `files`, each a path with its content.
fn profile(script: &str, files: &[(&str, &str)]) -> String {
    let file = |(path, content): (&str, &str)| {
        let lines: String = content.lines().map(|line| format!("            {line}\n")).collect();
        format!(
            "    - path: {path}\n      permissions: 755\n      content:\n        inline:\n          data: |\n{lines}"
        )
    };
    let all = files.iter().copied().chain([("/usr/local/sbin/setup", script)]).map(file).collect::<String>();
    format!(
        "apiVersion: operatingsystemmanager.k8c.io/v1alpha1\nkind: OperatingSystemProfile\nmetadata: {{name: example-debian}}\nspec:\n  \
         osName: debian\n  osVersion: '13'\n  version: v1.0.0\n  supportedCloudProviders: [{{name: hetzner}}]\n  bootstrapConfig: {{}}\n  \
         provisioningConfig:\n    files:\n{all}    modules:\n      runcmd:\n        - /usr/local/sbin/setup\n"
    )
}

impl Desk {
    pub(super) fn request(&self, rules: &Value) -> ImportRequest {
        fs::write(self.path("p.yaml"), &self.profile).unwrap();
        fs::write(self.path("d.yaml"), &self.deployment).unwrap();
        fs::write(self.path("rules.json"), rules.to_string()).unwrap();
        ImportRequest {
            profile: Profile::open(&self.path("p.yaml")).unwrap(),
            deployment: Deployment::open(&self.path("d.yaml")).unwrap(),
            options: ControllerOptions::open(&self.options).unwrap(),
            system: None,
            rules: Rules::open(&[self.path("rules.json")]).unwrap(),
            extensions: Vec::new(),
            base: None,
            is_untested_fine: true,
        }
    }

    fn imported(&self, rules: &Value) -> Result<ImportedProfile, ImportError> {
        import(self.request(rules))
    }
}

pub(super) fn desk(script: &str, files: &[(&str, &str)]) -> Desk {
    let mut desk = Desk::new();
    desk.options.clear();
    desk.profile = profile(&format!("#!/bin/bash\nset -euo pipefail\n{script}\n"), files);
    desk
}

pub(super) fn run(script: &str, files: &[(&str, &str)], rules: &Value) -> Result<ImportedProfile, ImportError> {
    desk(script, files).imported(rules)
}

/// The layer that a profile with that script becomes.
pub(super) fn layer(script: &str, files: &[(&str, &str)], rules: &Value) -> Value {
    document(&run(script, files, rules).unwrap())
}

pub(super) fn import_of(desk: &Desk, rules: &Value) -> Result<ImportedProfile, ImportError> {
    desk.imported(rules)
}

pub(super) fn document(imported: &ImportedProfile) -> Value {
    let path = format!("{}-profile/layer.json", imported.kind);
    serde_json::from_slice(&imported.files[std::path::Path::new(&path)]).unwrap()
}

/// A file of that layer.
pub(super) fn content(imported: &ImportedProfile, path: &str) -> Option<String> {
    let path = format!("{}-profile/files{path}", imported.kind);
    Some(String::from_utf8(imported.files.get(std::path::Path::new(&path))?.clone()).unwrap())
}

#[test]
fn commands_become_keys_of_a_layer() {
    for (script, pointer, expected) in [
        ("apt-get update && apt-get install -y jq=1.7* socat", "/packages", json!(["jq=1.7*", "socat"])),
        ("apt-get install -y jq; apt install --no-install-recommends -y socat", "/recommends", json!(["jq"])),
        ("apt-get -qq install jq; apt-mark hold jq socat; apt-mark unhold socat", "/hold", json!(["jq"])),
        ("systemctl mask ufw", "/units/mask", json!(["ufw.service"])),
        ("systemctl enable --now ssh", "/units/enable", json!(["ssh.service"])),
        ("systemctl disable apt-daily.timer", "/units/disable", json!(["apt-daily.timer"])),
        ("modprobe br_netfilter", "/modules_load", json!(["br_netfilter"])),
        ("ln -s /a /opt/b", "/symlinks", json!({"/opt/b": "/a"})),
        ("install -m 0700 -d /opt/x", "/directories/~1opt~1x", json!({"mode": "0700"})),
        ("touch /opt/x; cp /opt/x /usr/local/lib", "/files/~1usr~1local~1lib~1x", json!({"mode": "0644"})),
        ("readlink -f /bin/sh > /opt/x; [ -L /bin/sh ] && touch /opt/y", "/files/~1opt~1y", json!({"mode": "0644"})),
        ("echo a > /opt/x; chmod 600 /opt/x", "/files/~1opt~1x", json!({"mode": "0600"})),
        ("update-ca-certificates", "/first_boot/commands", json!([["/usr/sbin/update-ca-certificates"]])),
        (
            "update-ca-certificates --fresh",
            "/first_boot/commands",
            json!([["/usr/sbin/update-ca-certificates", "--fresh"]]),
        ),
    ] {
        assert_eq!(layer(script, &[], &json!({})).pointer(pointer), Some(&expected), "{script}");
    }
}

#[test]
fn fetched_files_become_downloads_with_their_proofs() {
    let sum = "b".repeat(64);
    let by_sum = format!(
        "cd /opt; curl -fsSLo tool https://h.example/v1.2.3/tool; echo '{sum}  tool' | sha256sum -c -; chmod +x tool"
    );
    let found = layer(&by_sum, &[], &json!({}));
    let expected = json!({
        "url": "https://h.example/v1.2.3/tool", "version": "1.2.3", "sha256": sum,
        "install": {"type": "file", "path": "/opt/tool", "mode": "0755"},
    });
    assert_eq!(found["downloads"]["tool"], expected);
    let by_list = "arch=$(uname -m); curl -fLO https://h.example/x-$arch.tgz; s=$(curl -fL https://h.example/x-$arch.tgz.sha256)\n\
                   echo \"$s  x-$arch.tgz\" | sha256sum -c; tar -xzf x-$arch.tgz -C /opt --strip-components=1; rm x-$arch.tgz";
    let found = layer(by_list, &[], &json!({}));
    let left = found["files"].as_object().unwrap().keys().filter(|path| path.starts_with("/opt"));
    assert_eq!(left.count(), 0, "{found}");
    let expected = json!({
        "url": {"amd64": "https://h.example/x-x86_64.tgz", "arm64": "https://h.example/x-aarch64.tgz"}, "version": "1",
        "checksums": {"amd64": "https://h.example/x-x86_64.tgz.sha256", "arm64": "https://h.example/x-aarch64.tgz.sha256"},
        "install": {"type": "tar", "path": "/opt", "strip": 1, "extract": "same-owner"},
    });
    assert_eq!(found["downloads"]["x"], expected);
    // None is left out where too many are alike.
    let many = format!(
        "for i in $(seq 1001); do curl -fLo /opt/$i https://h.example/$i/x; echo '{sum}  /opt/'$i | sha256sum -c; done"
    );
    let error = run(&many, &[], &json!({})).unwrap_err().to_string();
    assert!(error.contains("more than 1000 downloads are named x"), "{error}");
    let pinned = json!({"downloads": {"https://h.example/tool": {"sha256": sum}}});
    let found = layer("curl -fLo /opt/tool https://h.example/tool", &[], &pinned);
    assert_eq!(found["downloads"]["tool"]["sha256"], sum);
}

#[test]
fn machines_know_their_names() {
    let rename = "if [ -s /etc/machine-name ]; then hostnamectl set-hostname \"$(cat /etc/machine-name)\"; touch /opt/a; else touch /opt/b; fi";
    let found = layer(rename, &[], &json!({}));
    assert!(found["files"].get("/opt/a").is_some() && found["files"].get("/opt/b").is_none(), "{found}");
    assert_eq!(found["first_boot"]["files"].as_array().unwrap().len(), 1, "{found}");
    for (script, expected) in [
        ("hostnamectl set-hostname web", "a name other than that in /etc/machine-name"),
        ("hostnamectl hostname \"$(cat /etc/machine-name).example\"", "a name other than that in /etc/machine-name"),
        ("cat /etc/machine-name > /opt/x", "the text {{ INSTANCE_ID }}"),
        ("wc -c /etc/machine-name > /opt/x", "{{ INSTANCE_ID }}"),
        ("stat -c %s /etc/machine-name > /opt/x", "the size of /etc/machine-name"),
        ("echo web > /etc/machine-name", "the file /etc/machine-name"),
        ("rm /etc/machine-name", "the file /etc/machine-name"),
    ] {
        let error = run(script, &[], &json!({})).expect_err(script).to_string();
        assert!(error.contains(expected), "{script}\n{error}");
    }
    let aws = desk(rename, &[])
        .profile("name: hetzner", "name: aws")
        .deployment("cloudProvider: hetzner", "cloudProvider: aws");
    let found = document(&import_of(&aws, &json!({})).unwrap());
    assert!(found["files"].get("/opt/b").is_some(), "{found}");
}

#[test]
fn files_that_scripts_write_in_place_are_listed() {
    let script = "echo a > /etc/issue; umask 077; echo b > /etc/b; echo c | tee /etc/c; chmod 640 /etc/c; touch /opt/d; install /opt/d /etc/d\n\
                  echo a > /opt/e; mkdir /opt/f; echo a | tee /opt/f/g; touch /tmp/h; mv /tmp/h /etc/h";
    let expected = json!({"/etc/issue": {"mode": "0644"}, "/etc/b": {"mode": "0600"}, "/etc/c": {}});
    let mut found = layer(script, &[], &json!({}))["in_place"].clone();
    // A file of the profile.
    found.as_object_mut().unwrap().remove("/etc/containerd/certs.d/docker.io/hosts.toml");
    assert_eq!(found, expected);
}

#[test]
fn what_is_created_before_packages_is_listed() {
    let early = |script: &str, rules: &Value| {
        let found = layer(script, &[], rules)["before_packages"].clone();
        let paths: Vec<String> = serde_json::from_value(found).unwrap_or_default();
        let is_of_script = |path: &String| !path.starts_with("/etc/containerd") && !path.starts_with("/usr/local/sbin");
        paths.into_iter().filter(is_of_script).collect::<Vec<_>>()
    };
    let script = "mkdir -p /etc/a; echo a > /etc/a/b; ln -sf /opt/x /etc/l; touch /opt/x; mv /opt/x /etc/m; echo a > /opt/n\n\
                  apt-get install -y jq; echo c > /etc/c; echo d >> /etc/a/b";
    assert_eq!(early(script, &json!({})), ["/etc/a", "/etc/a/b", "/etc/l", "/etc/m"]);
    let fetched = early(script, &json!({"archive": "kubernetes"}));
    assert_eq!(fetched, ["/etc/a", "/etc/a/b", "/etc/l", "/etc/m", "/opt/n"]);
    assert!(early("echo a > /etc/a", &json!({})).is_empty());
}

/// dpkg keeps a configuration file that exists only if it is told so.
#[test]
fn packages_that_keep_configuration_files_are_listed() {
    let confold = "-o Dpkg::Options::=--force-confold";
    for (script, expected) in [
        ("apt-get install -y jq".to_owned(), json!(null)),
        (format!("apt-get {confold} install -y jq socat"), json!(["jq", "socat"])),
        ("apt-get -oDpkg::Options::=--force-confdef install -y jq=1.7*".to_owned(), json!(["jq"])),
        (format!("apt-get install -y jq; apt-get install {confold} -y jq socat"), json!(["socat"])),
        (format!("apt-get install {confold} -y jq; apt-get install -y jq"), json!(["jq"])),
    ] {
        let found = layer(&format!("echo a > /etc/jq.conf; {script}"), &[], &json!({}));
        assert_eq!(found["keep_conffiles"], expected, "{script}");
    }
}

/// cloud-init sets it for `bootcmd`.
#[test]
fn the_variable_of_the_instance_is_not_known() {
    let error = run("echo \"${INSTANCE_ID:-none}\" > /opt/x", &[], &json!({})).unwrap_err().to_string();
    assert!(error.contains("INSTANCE_ID"), "{error}");
}

#[test]
fn values_of_machines_become_settings() {
    let script = "mkdir -p /etc/kubernetes\ncurl -s {{ .ServerURL }}/api/v1/namespaces/cloud-init-settings/secrets/\
                  {{ .BootstrapKubeconfigSecretName }} -H 'Authorization: Bearer {{ .Token }}' | jq -r '.data[\"kubeconfig\"]' |\
                  base64 -d > /etc/kubernetes/boot.conf";
    let unit = "[Service]\nExecStart=/k \\\n{{- if .InitialTaints }}\n  --taints={{ .InitialTaints }} \\\n{{- end }}\n  -v\n[Install]\nWantedBy=multi-user.target";
    let files = [("/etc/systemd/system/k.service", unit), ("/etc/kubernetes/ca.crt", "{{ .KubernetesCACert }}")];
    let imported = run(&format!("{script}\nsystemctl enable --now k"), &files, &json!({})).unwrap();
    let found = document(&imported);
    let texts: Vec<&str> = found["first_boot"]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["content"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts[0], "{{ BOOTSTRAP_KUBECONFIG|base64 }}");
    assert_eq!(texts[1], "{{ KUBERNETES_CA|base64 }}");
    assert_eq!(
        texts[2],
        "[Service]\nExecStart=/k \\\n{% if INITIAL_TAINTS %}\n  --taints={{ INITIAL_TAINTS }} \\\n{% endif %}\n  -v\n[Install]\nWantedBy=multi-user.target"
    );
    assert_eq!(found["first_boot"]["services"], json!([{"unit": "k.service"}]));
    let required: Vec<&String> = imported.instance.required.iter().collect();
    assert_eq!(required, ["BOOTSTRAP_KUBECONFIG", "INSTANCE_ID", "KUBERNETES_CA"]);
    assert_eq!(imported.instance.optional.iter().collect::<Vec<_>>(), ["INITIAL_TAINTS"]);
    let text = found.to_string();
    assert!(!text.contains("SERVER_URL") && !text.contains("TOKEN"), "{text}");
    assert_eq!(content(&imported, "/usr/local/sbin/setup"), None);
}

#[test]
fn scripts_that_ask_the_machine_are_left_to_it() {
    let files = [
        ("/opt/address", "#!/bin/sh\nip route get 1 > /run/address\n"),
        ("/opt/plain", "#!/bin/sh\necho a > /opt/a\n"),
    ];
    let imported = run("/opt/plain\n/opt/address now", &files, &json!({})).unwrap();
    assert_eq!(document(&imported)["first_boot"]["commands"], json!([["/opt/address", "now"]]));
    assert!(content(&imported, "/opt/address").is_some() && content(&imported, "/opt/plain").is_none());
    assert_eq!(content(&imported, "/opt/a").as_deref(), Some("a\n"));
    let class = |command: &str| {
        imported
            .report
            .statements
            .iter()
            .find(|statement| statement.place.command.starts_with(command))
            .map(|statement| statement.class)
    };
    assert_eq!(class("/opt/address"), Some(StatementClass::FirstBoot));
    assert_eq!(class("/opt/plain"), Some(StatementClass::Baked));
}

#[test]
fn rules_decide_what_is_not_known() {
    let rules = json!({
        "statements": [
            {"command": "frobnicate --all*", "drop": "no reason"},
            {"command": "mystery", "first_boot": ["/usr/bin/mystery", "now"]},
            {"command": "naming *", "user_data": "by its name"},
        ],
        "packages": {"lsb-release": null, "containerd.io": "containerd"},
        "recommends": false,
        "archive": "docker",
        "absent": ["/etc/odd"],
    });
    let script = "frobnicate --all of it\nmystery\nnaming x\napt-get install -y lsb-release containerd.io=2.2*\nif [ -e /etc/odd ]; then exit 1; fi";
    let found = layer(script, &[], &rules);
    assert_eq!(found["packages"], json!(["containerd"]));
    assert_eq!(found.get("recommends"), None);
    assert_eq!(found["archive"], json!("docker"));
    assert_eq!(found["first_boot"]["commands"], json!([["/usr/bin/mystery", "now"]]));
}

/// A script, and what is said of it; the rest is of the place.
const REFUSED: &[(&str, &str)] = &[
    ("frobnicate x", "setup:3: `frobnicate x`: the command is not known"),
    ("frobnicate || true", "the command is not known"),
    ("if frobnicate; then :; fi", "the command is not known"),
    ("curl -fsSL https://h.example/x | bash", "bash is a compiled program"),
    ("apt-get upgrade -y", "an image changes by being baked again"),
    ("apt-get remove -y jq", "remove is not supported"),
    ("apt-get install -y 'a b'", "the package a b is not supported"),
    ("reboot", "no machine runs during the import"),
    ("rm -f /etc/fstab", "the result depends on the file /etc/fstab, which is not known here"),
    ("sed -i s/a/b/ /etc/ssh/sshd_config", "the file /etc/ssh/sshd_config"),
    ("echo x >> /etc/hosts", "the file /etc/hosts"),
    ("[ -e /usr/bin/odd ] || true", "the file /usr/bin/odd"),
    ("command -v odd || true", "the program odd"),
    ("echo x >> /etc/passwd", "the file /etc/passwd"),
    ("echo 'deb x' > /etc/apt/sources.list.d/x.list", "adds a package repository whose key is not pinned"),
    ("curl -fLo /opt/x https://h.example/x", "nothing verifies the download of https://h.example/x to /opt/x"),
    ("curl -fLo /opt/x http://h.example/x", "a URL without https"),
    ("curl -fLo /opt/x {{ .ServerURL }}/x", "this URL of the API server is not supported"),
    ("false", "setup:3: `false`: fails with status 1"),
    ("until false; do sleep 1; done", "fails with status 1"),
    ("while :; do :; done", "more than 1000000"),
    ("sleep 1 &", "a command in the background is not supported"),
    ("if [ {{ .ServerURL }} = x ]; then :; fi", "the text"),
    ("echo {{ .InitialTaints }} | grep -q a || true", "the text"),
    ("{{ if .InitialTaints }}apt-get install -y jq{{ end }}", "tests whether .InitialTaints is set"),
    ("chown 1000 /opt", "the file /opt,"),
    ("touch /opt/x; chown 1000 /opt/x", "/opt/x: owned by a user other than root"),
    ("mkfifo /opt/x", "the command is not known"),
    (
        "touch -d @1700000000 /opt/x",
        "setup:3: `touch -d @1700000000 /opt/x`: is refused: layers do not store file times",
    ),
    ("touch /opt/x; touch -t 202601010000 /opt/x || true", "layers do not store file times"),
    ("cp -p /etc/environment /opt/x", "the time of /opt/x"),
    ("touch /opt/x; chmod 4755 /opt/x", "/opt/x: it has a set-user-ID, set-group-ID or sticky bit"),
    ("date > /opt/x", "the result depends on the time"),
    ("[ -n \"${SUDO_USER:-}\" ] || touch /opt/x", "the variable SUDO_USER"),
    ("sh -c 'echo $LANG > /opt/x'", "the variable LANG"),
    ("systemctl stop ufw && touch /opt/x", "the running machine"),
    ("if systemctl disable ufw; then touch /opt/x; fi", "the running machine"),
    ("modprobe overlay || touch /opt/x", "depends on the kernel"),
    (
        "ln -sf /lib/systemd/system/a.service /etc/systemd/system/b.service; systemctl enable b",
        "b.service, which is a link",
    ),
];

#[test]
fn what_is_not_known_stops_an_import() {
    for (script, expected) in REFUSED {
        let error = run(script, &[], &json!({})).map(|imported| document(&imported)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected), "{script}\n{text}");
    }
    let error = run("frobnicate 'x y'", &[], &json!({})).unwrap_err();
    assert!(
        error_report::hint(&error).is_some_and(|hint| hint.contains(r#"{"command": "frobnicate x y", "drop": "why"}"#))
    );
}

#[test]
fn files_of_a_profile_may_not_be_more_than_files() {
    for (files, expected) in [
        (("/opt/x", "{{ if eq .ServerURL \"a\" }}b{{ end }}"), "/opt/x: a template compares .ServerURL"),
        (
            ("/opt/x", "ca: {{ .KubernetesCACert }}"),
            "/opt/x: a multi-line value that only machines know is surrounded by other text",
        ),
        (("/opt/x", "a {{ if .InitialTaints }}b{{ end }} c\u{e000}"), "private-use characters"),
        (
            ("/opt/x", "{{ range .ClusterDNSIPs }}{{ . }},{{ end }}"),
            "/opt/x: .ClusterDNSIPs is not written in the same whole lines",
        ),
    ] {
        let error = run(":", &[files], &json!({})).unwrap_err().to_string();
        assert!(error.contains(expected), "{files:?}\n{error}");
    }
    // Scripts that query the machine install nothing there.
    let files = [("/opt/x", "#!/bin/sh\nip route\napt-get install -y jq\n")];
    let error = run("/opt/x", &files, &json!({})).unwrap_err().to_string();
    assert!(error.starts_with("/opt/x: it queries the machine") && error.contains("also runs apt-get"), "{error}");
    // A script that is sourced asks as part of another one, and cannot be left to the machine alone.
    let error = run(". /opt/x", &[("/opt/x", "ip route > /opt/route\n")], &json!({})).unwrap_err().to_string();
    assert!(error.contains("/opt/x") && error.contains("ip route"), "{error}");
    // Nor may their results decide anything.
    let files = [("/opt/x", "#!/bin/sh\nip route\n")];
    for script in ["/opt/x || true", "a=$(/opt/x)", "if /opt/x; then :; fi"] {
        let error = run(script, &files, &json!({})).unwrap_err().to_string();
        assert!(error.contains("whose result the profile uses"), "{script}\n{error}");
    }
}

#[test]
fn units_that_start_each_other_are_bounded() {
    let unit = |number: usize| {
        (
            format!("/etc/systemd/system/u{number}.service"),
            format!("[Service]\nType=oneshot\nExecStart=/bin/systemctl start u{}\n", number + 1),
        )
    };
    let units: Vec<(String, String)> = (0..12).map(unit).collect();
    let files: Vec<(&str, &str)> = units.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let error = run("systemctl start u0", &files, &json!({})).unwrap_err().to_string();
    assert!(error.contains("more than 8 units start each other"), "{error}");
    let own = [("/etc/systemd/system/a.service", "[Service]\nType=oneshot\nExecStart=/bin/systemctl start a\n")];
    assert!(run("systemctl start a", &own, &json!({})).is_ok());
}

#[test]
fn the_same_input_gives_the_same_layers_and_other_values_other_names() {
    let script = "apt-get install -y jq\necho {{ .KubeVersion }} > /opt/v";
    let (one, other) = (run(script, &[], &json!({})).unwrap(), run(script, &[], &json!({})).unwrap());
    assert_eq!((&one.kind, &one.files, &one.instance), (&other.kind, &other.files, &other.instance));
    let mut desk = desk(script, &[]);
    desk.deployment = desk.deployment.replace("1.34.2", "1.34.3");
    let newer = desk.imported(&json!({})).unwrap();
    assert_ne!(newer.kind, one.kind);
    let what: Vec<String> = one.instance.differences(&newer.instance).into_iter().map(|found| found.what).collect();
    assert_eq!(what, ["kubernetes", "value KubeVersion"]);
}

#[test]
fn a_version_stands_for_one_content() {
    let folder = tempfile::tempdir().unwrap();
    let imported = run("apt-get install -y jq", &[], &json!({})).unwrap();
    let mut lock = Lock::open(folder.path()).unwrap();
    lock.admit(&imported.instance).unwrap();
    lock.add(&imported.kind, imported.instance.clone());
    lock.write().unwrap();
    let lock = Lock::open(folder.path()).unwrap();
    assert_eq!(lock.instance(&imported.kind).unwrap(), &imported.instance);
    lock.admit(&imported.instance).unwrap();
    let changed = run("apt-get install -y jo", &[], &json!({})).unwrap();
    let error = lock.admit(&changed.instance).unwrap_err();
    assert!(error.to_string().contains("example-debian v1.0.0 was imported with different content"), "{error}");
    assert!(matches!(lock.instance("other"), Err(ImportError::NoInstance { .. })));
    fs::write(folder.path().join("profile.lock.json"), "{\"schema\": 2, \"profiles\": {}, \"instances\": {}}").unwrap();
    assert!(Lock::open(folder.path()).unwrap_err().to_string().contains("expected schema 1, found 2"));
}

#[test]
fn secrets_and_hostile_defaults_are_no_options_of_an_import() {
    let with = |option: &str, value: &str| {
        let mut desk = desk(":", &[]);
        fs::write(desk.path("secret"), "abc\n").unwrap();
        let value = if value.is_empty() { desk.text_path("secret") } else { value.to_owned() };
        desk = desk.set(option, &value);
        desk.imported(&json!({})).map(|imported| document(&imported))
    };
    for option in ["api-server-token", "bootstrap-kubeconfig"] {
        assert!(matches!(with(option, ""), Err(ImportError::Secret { .. })), "{option}");
    }
    for value in ["a b", "a'b", "a\"b", "a$b", "a%b"] {
        assert!(matches!(with("initial-taints", value), Err(ImportError::Hostile { .. })), "{value}");
    }
}

#[test]
fn systems_and_providers_are_those_of_the_table() {
    let mut desk = desk(":", &[]);
    desk.profile = desk.profile.replace("osVersion: '13'", "osVersion: '12'");
    assert!(matches!(desk.imported(&json!({})), Err(ImportError::System { .. })));
    let mut request = desk.request(&json!({}));
    request.system = Some("debian-13".to_owned());
    assert!(import(request).is_ok());
    let mut request = desk.request(&json!({}));
    (request.system, request.is_untested_fine) = (Some("debian-13".to_owned()), false);
    request.deployment = {
        fs::write(desk.path("d.yaml"), desk.deployment.replace("1.34.2", "1.20.0")).unwrap();
        Deployment::open(&desk.path("d.yaml")).unwrap()
    };
    let error = import(request).unwrap_err();
    assert!(matches!(error, ImportError::Untested { .. }), "{error}");
    assert!(
        error_report::hint(&error)
            .is_some_and(|hint| hint.contains("use the closest tested combination, debian-13 at")),
        "{error}"
    );
}

#[test]
fn rules_say_one_thing_each() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.json");
    for (text, expected) in [
        ("{", "EOF"),
        ("{\"statement\": []}", "unknown field `statement`"),
        (
            "{\"statements\": [{\"command\": \"x\"}]}",
            "x: expected one of `drop`, `user_data` and `first_boot`, found 0",
        ),
        ("{\"statements\": [{\"command\": \"x\", \"drop\": \"a\", \"user_data\": \"b\"}]}", "found 2"),
        ("{\"statements\": [{\"command\": \"x\", \"first_boot\": [\"x\"]}]}", "an absolute path"),
        ("{\"statements\": [{\"command\": \" * \", \"drop\": \"a\"}]}", "would match all commands"),
    ] {
        fs::write(&path, text).unwrap();
        let error = Rules::open(std::slice::from_ref(&path)).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn values_of_a_fetched_file_are_no_copies_of_it() {
    let fetch = format!("curl -fLo /opt/t https://h.example/t; echo '{}  /opt/t' | sha256sum -c; ", "b".repeat(64));
    for script in [
        r#"printf %s "$(cat /opt/t)" > /opt/u"#,
        r#"x=$(cat /opt/t); echo -n "$x" > /opt/u"#,
        r#"printf %b "$(cat /opt/t)" > /opt/u"#,
        r#"printf %s "`cat /opt/t`" > /opt/u"#,
    ] {
        let error = match run(&format!("{fetch}{script}"), &[], &json!({})) {
            Ok(imported) => panic!("{script}: {}", document(&imported)),
            Err(error) => error.to_string(),
        };
        assert!(error.starts_with("/opt/u: its contents come from downloaded files"), "{script}: {error}");
    }
    let found = layer(&format!("{fetch}cat /opt/t > /opt/u; rm /opt/t"), &[], &json!({}));
    assert_eq!(found["downloads"]["t"]["install"]["path"], "/opt/u", "{found}");
}
