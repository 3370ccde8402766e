//! Profiles as layers: effects of script commands.

use std::fs;

use serde_json::{Value, json};
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
fn values_of_machines_are_words_where_they_cannot_be_anything_else() {
    let script = "u={{ .ServerURL }}; v={{ .InitialTaints }}; set -- $u \"$v\" --taints=$v; echo $# $u > /opt/x";
    let found = layer(script, &[], &json!({}));
    assert_eq!(found["first_boot"]["files"][0]["content"]["text"], "3 {{ SERVER_URL }}\n");
    assert_eq!(layer("env -i A=b > /opt/x", &[], &json!({}))["files"]["/opt/x"], json!({"mode": "0644"}));
}

#[test]
fn changes_of_files_with_values_of_machines_are_kept() {
    let files = [("/opt/x", "server: {{ .ServerURL }}")];
    for (script, expected) in
        [(":", "server: {{ SERVER_URL }}"), ("echo \"maxPods: 5\" >> /opt/x", "server: {{ SERVER_URL }}maxPods: 5\n")]
    {
        let found = layer(script, &files, &json!({}));
        assert_eq!(found["first_boot"]["files"][0]["content"]["text"], expected, "{script}");
    }
    let imported = run("echo \"maxPods: 5\" > /opt/x", &files, &json!({})).unwrap();
    assert_eq!(content(&imported, "/opt/x").as_deref(), Some("maxPods: 5\n"));
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
