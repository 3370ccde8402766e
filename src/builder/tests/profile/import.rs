//! Profiles as layers: what commands of scripts come to, and what stops an import.

use std::fs;

use serde_json::{Value, json};
use vmbake::cli::advice;
use vmbake::profile::import::{ImportError, ImportRequest, ImportedProfile, Lock, Rules, StatementClass, import};
use vmbake::profile::{ControllerOptions, Deployment, Profile};

use super::Desk;

/// A profile whose machines run `script` as `/usr/local/sbin/setup`, beside `files`, each a path with its content.
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
    fn request(&self, rules: &Value) -> ImportRequest {
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
            is_untested_fine: true,
        }
    }

    fn imported(&self, rules: &Value) -> Result<ImportedProfile, ImportError> {
        import(self.request(rules))
    }
}

fn desk(script: &str, files: &[(&str, &str)]) -> Desk {
    let mut desk = Desk::new();
    desk.options.clear();
    desk.profile = profile(&format!("#!/bin/bash\nset -euo pipefail\n{script}\n"), files);
    desk
}

fn run(script: &str, files: &[(&str, &str)], rules: &Value) -> Result<ImportedProfile, ImportError> {
    desk(script, files).imported(rules)
}

/// The layer that a profile with that script becomes.
fn layer(script: &str, files: &[(&str, &str)], rules: &Value) -> Value {
    document(&run(script, files, rules).unwrap())
}

fn document(imported: &ImportedProfile) -> Value {
    let path = format!("{}-profile/layer.json", imported.kind);
    serde_json::from_slice(&imported.files[std::path::Path::new(&path)]).unwrap()
}

/// A file of that layer.
fn content(imported: &ImportedProfile, path: &str) -> Option<String> {
    let path = format!("{}-profile/files{path}", imported.kind);
    Some(String::from_utf8(imported.files.get(std::path::Path::new(&path))?.clone()).unwrap())
}

#[test]
fn commands_become_keys_of_a_layer() {
    for (script, pointer, expected) in [
        ("apt-get update && apt-get install -y jq=1.7* socat", "/packages", json!(["jq=1.7*", "socat"])),
        ("apt-get install -y jq; apt install --no-install-recommends -y socat", "/recommends", json!(["jq"])),
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
        "install": {"type": "tar", "path": "/opt", "strip": 1},
    });
    assert_eq!(found["downloads"]["x"], expected);
    // None is left out where too many are alike.
    let many = format!(
        "for i in $(seq 1001); do curl -fLo /opt/$i https://h.example/$i/x; echo '{sum}  /opt/'$i | sha256sum -c; done"
    );
    let error = run(&many, &[], &json!({})).unwrap_err().to_string();
    assert!(error.contains("more than 1000 files that are fetched are called x"), "{error}");
    let pinned = json!({"downloads": {"https://h.example/tool": {"sha256": sum}}});
    let found = layer("curl -fLo /opt/tool https://h.example/tool", &[], &pinned);
    assert_eq!(found["downloads"]["tool"]["sha256"], sum);
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
        "[Service]\nExecStart=/k \\\n{% if INITIAL_TAINTS %}\n  --taints={{ INITIAL_TAINTS }} \\\n{% endif %}\n  -v\n[Install]\nWantedBy=multi-user.target\n"
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
    ("reboot", "an image has no machine to stop"),
    ("rm -f /etc/fstab", "the result depends on the file /etc/fstab, which is not known here"),
    ("sed -i s/a/b/ /etc/ssh/sshd_config", "the file /etc/ssh/sshd_config"),
    ("echo x >> /etc/hosts", "the file /etc/hosts"),
    ("[ -e /usr/bin/odd ] || true", "the file /usr/bin/odd"),
    ("command -v odd || true", "the program odd"),
    ("echo x >> /etc/passwd", "the file /etc/passwd"),
    ("echo 'deb x' > /etc/apt/sources.list.d/x.list", "adds a repository of packages"),
    ("curl -fLo /opt/x https://h.example/x", "https://h.example/x is put to /opt/x, and nothing"),
    ("curl -fLo /opt/x http://h.example/x", "an address without https"),
    ("curl -fLo /opt/x {{ .ServerURL }}/x", "this address of the API server is not supported"),
    ("false", "setup:3: `false`: fails with status 1"),
    ("until false; do sleep 1; done", "fails with status 1"),
    ("while :; do :; done", "more than 1000000"),
    ("sleep 1 &", "a command in the background is not supported"),
    ("if [ {{ .ServerURL }} = x ]; then :; fi", "the text"),
    ("echo {{ .InitialTaints }} | grep -q a || true", "the text"),
    ("{{ if .InitialTaints }}apt-get install -y jq{{ end }}", "with and without .InitialTaints"),
    ("chown 1000 /opt", "the file /opt,"),
    ("touch /opt/x; chown 1000 /opt/x", "/opt/x: it belongs to"),
    ("mkfifo /opt/x", "the command is not known"),
    ("touch /opt/x; chmod 4755 /opt/x", "/opt/x: it has set-id bits"),
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

/// Scripts whose result depends on what a machine has, and what of it.
const DEPENDS: &[(&str, &str)] = &[
    // Listings.
    ("find /etc/sudoers.d -type f -delete", "the file /etc/sudoers.d"),
    ("find /etc/apt -type f -delete", "the entries of /etc/apt"),
    ("find /etc/apt -name '*.list' | xargs rm -f", "the entries of /etc/apt"),
    ("ls /opt | while read f; do rm -rf /opt/$f; done", "the entries of /opt"),
    ("cd /opt; ls | while read f; do :; done", "the entries of /opt"),
    ("if [ -z \"$(ls -A /opt)\" ]; then echo a > /opt/x; fi", "the entries of /opt"),
    ("for f in /etc/*.conf; do echo $f; done", "the entries of /etc"),
    ("for f in /opt/*; do echo $f; done", "the entries of /opt"),
    ("touch /opt/a; for f in /opt/*; do echo $f; done", "the entries of /opt"),
    ("echo x > /etc/apt/apt.conf.d/9x; cat /etc/apt/apt.conf.d/* > /opt/all", "the entries of /etc/apt/apt.conf.d"),
    ("cd /etc; cat *.conf > /opt/x || true", "the entries of /etc"),
    ("d=/etc/apt; rm -f \"$d\"/*", "the entries of /etc/apt"),
    ("rm -rf /etc/apt", "the entries of /etc/apt"),
    ("mkdir -p /etc/kubernetes; rm -rf /etc/kubernetes", "the entries of /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; ls /etc/kubernetes > /opt/x", "the entries of /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; rmdir /etc/kubernetes || true", "the entries of /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; mv /etc/kubernetes /opt/k", "the entries of /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; chmod -R 700 /etc/kubernetes", "the entries of /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; cp -r /etc/kubernetes /opt/k", "the entries of /etc/kubernetes"),
    ("ln -s /etc /opt/e; ls /opt/e > /opt/x", "the entries of /etc"),
    ("ln -s /etc /opt/e; cd /opt/e; ls > /opt/x", "the entries of /etc"),
    ("cd /opt/../etc; ls > /opt/x", "the entries of /etc"),
    ("du=$(echo ~/*)", "the entries of /root"),
    // Names.
    ("[ -e /opt/../etc/hostname ] && touch /opt/x || true", "the file /etc/hostname"),
    ("cd /opt; [ -e ../etc/hostname ] && touch /opt/x || true", "the file /etc/hostname"),
    ("ln -s /etc /opt/e; [ -f /opt/e/hostname ] || true", "the file /etc/hostname"),
    ("ln -s /etc/hostname /opt/e; test -f /opt/e || true", "the file /etc/hostname"),
    ("[[ -f /etc/hostname ]] || true", "the file /etc/hostname"),
    ("[ ! -d /etc/kubernetes ] || true", "the file /etc/kubernetes"),
    ("[ -e /etc/kubernetes/admin.conf ] || touch /opt/x", "the file /etc/kubernetes"),
    ("mkdir -p /etc/kubernetes; [ -e /etc/kubernetes/admin.conf ] || touch /opt/x", "/etc/kubernetes/admin.conf"),
    ("[ /etc/a -ef /opt/a ] || true", "the file /etc/a"),
    ("[ -x /usr/sbin/ufw ] || true", "the file /usr/sbin/ufw"),
    ("[ -e /bin/odd ] || true", "the file /usr/bin/odd"),
    ("[ -e /lib64/x ] || true", "the file /lib64"),
    ("[ -e ~/.bashrc ] || true", "the file /root/.bashrc"),
    ("[ -d /home/debian ] || true", "the file /home/debian"),
    ("[ -d /run/systemd/system ] || true", "the file /run/systemd"),
    ("[ -d /etc/sysctl.d ] || true", "the file /etc/sysctl.d"),
    ("readlink -f /etc/localtime > /opt/x", "the file /etc/localtime"),
    ("realpath /etc/alternatives/editor > /opt/x", "the file /etc/alternatives"),
    ("readlink /etc/localtime > /opt/x || true", "the file /etc/localtime"),
    ("(rm -f /etc/motd)", "the file /etc/motd"),
    ("unlink /etc/motd || true", "the file /etc/motd"),
    ("find /etc/motd -delete || true", "the file /etc/motd"),
    ("mkdir /etc/kubernetes", "the file /etc/kubernetes"),
    ("mkdir /srv/x || true", "the file /srv/x"),
    ("ln -s /opt/a /etc/localtime || true", "the file /etc/localtime"),
    ("touch /opt/a; ln /opt/a /etc/b || true", "the file /etc/b"),
    ("mv /etc/hosts /opt/hosts || true", "the file /etc/hosts"),
    ("cp /etc/hosts /opt/hosts || true", "the file /etc/hosts"),
    ("install /etc/hosts /opt/hosts || true", "the file /etc/hosts"),
    ("touch /opt/a; cp -n /opt/a /etc/a", "the file /etc/a"),
    ("touch /opt/a; cp -u /opt/a /etc/a", "the file /etc/a"),
    ("touch /opt/a; mv -n /opt/a /etc/a", "the file /etc/a"),
    ("mkdir /opt/a; cp -r /opt/a /etc/a", "the file /etc/a"),
    ("mkdir /opt/a; mv /opt/a /etc/a", "the file /etc/a"),
    ("touch /opt/a; install -C /opt/a /etc/a", "-C is not supported"),
    ("set -C; echo a > /etc/a", "the file /etc/a"),
    ("mkdir -p /etc/ssl/private", "the directory /etc/ssl/private"),
    ("mkdir -p /var/spool/cron/crontabs", "the directory /var/spool/cron"),
    ("mkdir -p /var/lock/x", "the directory /var/lock"),
    ("echo a > /etc/localtime", "the file /etc/localtime"),
    ("echo a > /etc/security/opasswd", "the file /etc/security/opasswd"),
    ("touch /etc/a", "the file /etc/a"),
    ("chmod 644 /etc/a || true", "the file /etc/a"),
    ("chmod 644 /etc/sudoers.d || true", "the file /etc/sudoers.d"),
    ("ln -s /etc/shadow /opt/s; chmod 644 /opt/s", "the file /etc/shadow"),
    ("ln -s /etc/shadow /opt/s; cp /opt/s /opt/t", "the file /etc/shadow"),
    ("ln -s /etc/shadow /opt/s; echo x > /opt/s", "the file /etc/shadow"),
    ("echo x > /etc/shadow", "the file /etc/shadow"),
    ("echo x > /etc/kubernetes/x", "the file /etc/kubernetes"),
    ("echo a > /etc/a; rm /etc/a", "the file of the system at /etc/a"),
    ("echo a > /etc/a; mv /etc/a /opt/a", "the file of the system at /etc/a"),
    ("echo a > /etc/a; sed -i.orig s/a/b/ /etc/a", "the file of the system at /etc/a"),
    // Sizes.
    ("stat -c %s /usr/bin/apt > /opt/x", "the size of /usr/bin/apt"),
    ("stat -Lc %s /etc/os-release > /opt/x", "the size of /usr/lib/os-release"),
    ("stat -c %F /usr/bin/apt > /opt/x", "the size of /usr/bin/apt"),
    ("[ -s /usr/bin/apt ] || touch /opt/x", "the size of /usr/bin/apt"),
    ("[[ -s /usr/bin/apt ]] || touch /opt/x", "the size of /usr/bin/apt"),
    ("find /usr/bin/apt -empty > /opt/x", "the size of /usr/bin/apt"),
    ("find /usr/bin/apt -size -1k > /opt/x", "the size of /usr/bin/apt"),
    ("find /usr/bin/apt -printf %s > /opt/x", "the size of /usr/bin/apt"),
    ("curl -fLo /opt/t https://h.example/t; stat -c %s /opt/t > /opt/x", "the size of /opt/t"),
    ("curl -fLo /opt/t https://h.example/t; [ -s /opt/t ] || exit 1", "the size of /opt/t"),
    // Times.
    ("stat -c %Y /usr/bin/apt > /opt/x", "the time of /usr/bin/apt"),
    ("touch /opt/a; stat -c %Y /opt/a > /opt/x", "the time of /opt/a"),
    ("touch /opt/a; [ /opt/a -nt /usr/bin/apt ] || touch /opt/x", "the time of /opt/a"),
    ("touch /opt/a; [[ /opt/a -ot /usr/bin/apt ]] || touch /opt/x", "the time of /opt/a"),
    ("touch /opt/a; find /usr/bin/apt -newer /opt/a > /opt/x", "the time of /usr/bin/apt"),
    ("touch /opt/a /opt/b; cp -u /opt/a /opt/b", "the time of /opt/a"),
    ("touch /opt/a /opt/b; mv -u /opt/a /opt/b", "the time of /opt/a"),
    // Types and modes of what may have been there.
    ("mkdir -p /etc/kubernetes; [ -L /etc/kubernetes ] || touch /opt/x", "the type of /etc/kubernetes"),
    ("echo a > /etc/a; [ -h /etc/a ] || touch /opt/x", "the type of /etc/a"),
    ("echo a > /etc/a; readlink /etc/a || touch /opt/x", "the type of /etc/a"),
    ("echo a > /etc/a; find /etc/a -type f > /opt/x", "the type of /etc/a"),
    ("echo a > /etc/a; [ -x /etc/a ] || touch /opt/x", "the mode of /etc/a"),
    ("echo a > /etc/a; chmod u+x /etc/a", "the mode of /etc/a"),
    ("echo a > /etc/a; stat -c %a /etc/a > /opt/x", "the mode of /etc/a"),
    ("echo a > /etc/a; cp /etc/a /opt/a", "the mode of /etc/a"),
    ("echo '#!/bin/sh' > /etc/a; /etc/a || touch /opt/x", "the mode of /etc/a"),
    ("mkdir -p /etc/kubernetes; stat -c %a /etc/kubernetes > /opt/x", "the mode of /etc/kubernetes"),
    ("ln -s /etc/a /opt/l; touch /opt/b; cp /opt/b /opt/l || true", "the file /etc/a"),
    // Contents.
    ("cp /usr/bin/sudo /opt/x", "the content of /usr/bin/sudo"),
    ("cat /usr/bin/sudo > /opt/x", "the content of /usr/bin/sudo"),
    ("grep -q ^nobody: /etc/passwd && touch /opt/x || true", "the file /etc/passwd"),
    ("echo x >> /opt/../etc/hosts", "the file /etc/hosts"),
    ("ln -s /etc/hosts /opt/h; echo x >> /opt/h", "the file /etc/hosts"),
    ("ln -s /etc /opt/e; echo x >> /opt/e/hosts", "the file /etc/hosts"),
    ("ln -s ../etc/hosts /opt/h; echo x | tee -a /opt/h", "the file /etc/hosts"),
    ("cd /etc; cat >> hosts <<END\nx\nEND", "the file /etc/hosts"),
    ("f=/etc/hosts; { echo a; echo b; } >> $f", "the file /etc/hosts"),
    ("echo x | tee -a /etc/hosts", "the file /etc/hosts"),
    ("cat < /etc/hosts > /opt/x || true", "the file /etc/hosts"),
    ("while read -r l; do echo $l; done < /etc/passwd > /opt/x", "the file /etc/passwd"),
    ("x=$(cat /etc/hostname 2> /dev/null || true)", "the file /etc/hostname"),
    ("x=$(< /etc/hostname)", "/etc/hostname"),
    (". /etc/default/keyboard || true", "the file /etc/default/keyboard"),
    ("source /etc/default/keyboard || true", "the file /etc/default/keyboard"),
    ("awk '{print $1}' /etc/fstab > /opt/x || true", "the file /etc/fstab"),
    ("grep -c . /etc/debian_version > /opt/x", "the file /etc/debian_version"),
    ("sed -i s/a/b/ /etc/hosts", "the file /etc/hosts"),
    ("sed s/a/b/ /etc/hosts > /opt/x", "the file /etc/hosts"),
    ("touch /opt/a; cmp -s /opt/a /etc/hosts || true", "the file /etc/hosts"),
    ("touch /opt/a; diff -q /opt/a /etc/hosts || true", "the file /etc/hosts"),
    ("head -n 1 /etc/hosts | tail -n 1 > /opt/x", "the file /etc/hosts"),
    ("sort /etc/hosts > /opt/x || true", "the file /etc/hosts"),
    ("sha256sum /etc/hosts > /opt/x || true", "the file /etc/hosts"),
    ("cat /usr/bin/apt > /opt/x", "the content of /usr/bin/apt"),
    ("[ \"$(stat -c %U /etc/hosts)\" = root ] || true", "the file /etc/hosts"),
    (". /etc/os-release; [ $DEBIAN_VERSION_FULL = 13.1 ] || true", "the text"),
    ("chown nobody /opt || true", "the file /etc/passwd"),
    ("touch /opt/a; chown nobody /opt/a || true", "the file /etc/passwd"),
    ("touch /opt/a; chgrp adm /opt/a || true", "the file /etc/group"),
    ("id nobody > /dev/null || true", "the file /etc/passwd"),
    // State.
    ("systemctl is-active ssh || true", "it asks the running machine"),
    ("if systemctl is-enabled -q ssh; then touch /opt/x; fi", "it asks the running machine"),
    ("systemctl status ssh > /opt/x || true", "it asks the running machine"),
    ("systemctl list-unit-files > /opt/x", "it asks the running machine"),
    ("getent passwd nobody || true", "the command is not known"),
    ("dpkg -s curl || true", "dpkg is a compiled program"),
    ("dpkg-query -W curl || true", "the command is not known"),
    ("command -v curl || true", "the program curl"),
    ("type curl || true", "the program curl"),
    ("which curl || true", "the program curl"),
    ("if which curl > /dev/null; then touch /opt/x; fi", "the program curl"),
    ("mount | grep -q /opt || true", "it asks or changes the running machine"),
    ("lsmod || true", "it asks or changes the running machine"),
    ("uname -r > /opt/x", "the kernel"),
    ("/etc/init.d/ssh stop || true", "the file /etc/init.d"),
    // What was unpacked, and what only a machine makes.
    ("mkdir /opt/d; ARCHIVE; [ -e /opt/d/x ] || true", "the file /opt/d/x"),
    ("mkdir /opt/d; ARCHIVE; chmod +x /opt/d/*", "the entries of /opt/d"),
    ("mkdir /opt/d; ARCHIVE; mv /opt/d/x /usr/local/bin/x", "the file /opt/d/x"),
    ("mkdir /opt/d; ARCHIVE; mv /opt/d /opt/e", "the entries of /opt/d"),
    ("mkdir /opt/d; ARCHIVE; rm -rf /opt/d", "the entries of /opt/d"),
    ("mkdir /opt/d; ARCHIVE; chown -R 1000 /opt/d", "the entries of /opt/d"),
    ("mkdir /opt/d; ln -s d /opt/l; D=/opt/l; ARCHIVE", "a path through links"),
    ("ARCHIVE", "a path through links, or one that is not a directory: /opt/d"),
    ("/opt/asks; [ -e /opt/address ] || true", "the file /opt/address"),
    // What is fetched stays as it is.
    ("FETCH; echo more >> /opt/t", "/opt/t: it is made of files that are fetched"),
    ("FETCH; cat /opt/t /opt/t > /opt/u", "/opt/u: it is made of files that are fetched"),
    ("FETCH; echo \"$(cat /opt/t)\" > /opt/u", "/opt/u: it is made of files that are fetched"),
    ("FETCH; { echo '#!/bin/sh'; cat /opt/t; } > /opt/u", "/opt/u: it is made of files that are fetched"),
    ("FETCH; sed -i s/a/b/ /opt/t", "the text"),
    ("FETCH; truncate -s 0 /opt/t", "the command is not known"),
    ("FETCH; while read -r x; do printf %s \"$x\"; done < /opt/t > /opt/u", "the text"),
    ("FETCH; mapfile x < /opt/t; printf %s \"${x[@]}\" > /opt/u", "the text"),
    ("FETCH; cat -A /opt/t > /opt/u", "the text"),
    ("cat /bin/sh > /opt/x", "the content of /usr/bin/dash"),
    ("FETCH; [ -s /opt/t ] && touch /opt/n", "the size of /opt/t"),
    ("FETCH; wc -c /opt/t > /opt/n", "the text"),
];

#[test]
fn nothing_is_guessed_about_the_base() {
    let sum = "b".repeat(64);
    let fetch = |name: &str| {
        format!("curl -fsSLo /opt/{name} https://h.example/v1.0/{name}; echo '{sum}  /opt/{name}' | sha256sum -c -")
    };
    let archive = format!("{}; tar -xzf /opt/a.tgz -C ${{D:-/opt/d}}", fetch("a.tgz"));
    let files = [("/opt/asks", "#!/bin/sh\nip route > /opt/address\n")];
    let mut wrong = Vec::new();
    for (script, expected) in DEPENDS {
        let script = script.replace("ARCHIVE", &archive).replace("FETCH", &fetch("t"));
        match run(&script, &files, &json!({})) {
            Ok(imported) => wrong.push(format!("{script}\n    {}", document(&imported))),
            Err(error) => {
                let text = error.to_string();
                let has_place = text.starts_with("/usr/local/sbin/setup:") && advice::hint(&error).is_some();
                if !text.contains(expected) || !(has_place || text.contains("made of files")) {
                    wrong.push(format!("{script}\n    {text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_does_not_depend_on_the_base_is_done() {
    let script = "mkdir -p /etc/kubernetes/pki /opt/cni/bin\n\
        echo a > /etc/kubernetes/a.conf; echo b >> /etc/kubernetes/a.conf; chmod 600 /etc/kubernetes/a.conf\n\
        sed -i s/a/c/ /etc/kubernetes/a.conf; cp /etc/kubernetes/a.conf /etc/b.conf; install -m 644 /etc/b.conf /etc/c.conf\n\
        echo d | tee /etc/sysctl.d/9-d.conf > /dev/null; touch /opt/t; mv /opt/t /etc/t; ln -sf /opt/x /usr/local/bin/x\n\
        ln -sfn /opt/x /etc/l; ls -A /opt/cni/bin > /opt/list; for f in /opt/cni/*; do echo $f >> /opt/list; done\n\
        [ -e /opt/missing ] || echo none >> /opt/list; rm -rf /opt/missing /opt/cni/bin; [ ! -d /opt/cni/bin ]\n\
        . /etc/os-release; echo $ID-$VERSION_CODENAME >> /opt/list; [ -d /etc/apt ]; cd /tmp; echo z > z; cat z >> /opt/list; rm z\n\
        mkdir /opt/m; find /opt/m -type f -delete; rmdir /opt/m; cat >> /etc/environment <<END\nA=b\nEND\n\
        install -m 755 -d /etc/apt/keyrings; chown root:root /opt/list /opt; command -v systemctl >> /opt/list; cd /opt/cni; echo q > ../../etc/q; id -u >> /opt/list";
    let imported = run(script, &[], &json!({})).unwrap();
    for (path, expected) in [
        ("/etc/kubernetes/a.conf", Some("c\nb\n")),
        ("/etc/b.conf", Some("c\nb\n")),
        ("/etc/c.conf", Some("c\nb\n")),
        ("/etc/sysctl.d/9-d.conf", Some("d\n")),
        ("/etc/t", Some("")),
        ("/opt/list", Some("/opt/cni/bin\nnone\ndebian-trixie\nz\n/usr/bin/systemctl\n0\n")),
        ("/etc/environment", Some("A=b\n")),
        ("/etc/q", Some("q\n")),
        ("/opt/cni/bin", None),
    ] {
        assert_eq!(content(&imported, path).as_deref(), expected, "{path}");
    }
    let found = document(&imported);
    assert_eq!(found["symlinks"], json!({"/etc/l": "/opt/x", "/usr/local/bin/x": "/opt/x"}));
    assert_eq!(found["files"]["/etc/kubernetes/a.conf"], json!({"mode": "0600"}));
    // The point release is of the image.
    let error = run("cp /etc/os-release /opt/x", &[], &json!({})).unwrap_err().to_string();
    assert!(error.starts_with("/opt/x: "), "{error}");
}

#[test]
fn what_is_not_known_stops_an_import() {
    for (script, expected) in REFUSED {
        let error = run(script, &[], &json!({})).map(|imported| document(&imported)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(expected), "{script}\n{text}");
    }
    let error = run("frobnicate 'x y'", &[], &json!({})).unwrap_err();
    assert!(advice::hint(&error).is_some_and(|hint| hint.contains(r#"{"command": "frobnicate x y", "drop": "why"}"#)));
}

#[test]
fn files_of_a_profile_may_not_be_more_than_files() {
    for (files, expected) in [
        (("/opt/x", "{{ if eq .ServerURL \"a\" }}b{{ end }}"), "/opt/x: a template compares .ServerURL"),
        (("/opt/x", "ca: {{ .KubernetesCACert }}"), "/opt/x: a value of several lines"),
        (("/opt/x", "a {{ if .InitialTaints }}b{{ end }} c\u{e000}"), "characters of private use"),
        (
            ("/opt/x", "{{ range .ClusterDNSIPs }}{{ . }},{{ end }}"),
            "/opt/x: .ClusterDNSIPs is not written in the same lines",
        ),
    ] {
        let error = run(":", &[files], &json!({})).unwrap_err().to_string();
        assert!(error.contains(expected), "{files:?}\n{error}");
    }
    // Scripts that ask the machine install nothing there.
    let files = [("/opt/x", "#!/bin/sh\nip route\napt-get install -y jq\n")];
    let error = run("/opt/x", &files, &json!({})).unwrap_err().to_string();
    assert!(error.starts_with("/opt/x: it asks the machine") && error.contains("installs by apt-get"), "{error}");
    // Nor may their results decide anything.
    let files = [("/opt/x", "#!/bin/sh\nip route\n")];
    for script in ["/opt/x || true", "a=$(/opt/x)", "if /opt/x; then :; fi"] {
        let error = run(script, &files, &json!({})).unwrap_err().to_string();
        assert!(error.contains("whose result decides"), "{script}\n{error}");
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
    assert!(error.to_string().contains("example-debian v1.0.0 was imported with other content"), "{error}");
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
    assert!(advice::hint(&error).is_some_and(|hint| hint.contains("the nearest that is: debian-13 at")), "{error}");
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
        ("{\"statements\": [{\"command\": \" * \", \"drop\": \"a\"}]}", "would stand for all"),
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
        assert!(error.starts_with("/opt/u: it is made of files that are fetched"), "{script}: {error}");
    }
    let found = layer(&format!("{fetch}cat /opt/t > /opt/u; rm /opt/t"), &[], &json!({}));
    assert_eq!(found["downloads"]["t"]["install"]["path"], "/opt/u", "{found}");
}

#[test]
fn packages_of_other_archives_may_fill_local_directories() {
    let rules = json!({"archive": "kubernetes"});
    for (script, expected) in [
        ("[ -e /opt/cni/bin/bridge ] || touch /opt/x", "the file /opt/cni"),
        ("[ -e /usr/local/bin/tool ] || touch /opt/x", "the file /usr/local/bin/tool"),
    ] {
        let error = run(&format!("apt-get install -y kubeadm\n{script}"), &[], &rules).unwrap_err().to_string();
        assert!(error.contains(expected), "{script}: {error}");
    }
}

#[test]
fn statuses_that_change_nothing_are_not_looked_at() {
    for script in [
        "systemctl stop ufw || true",
        "systemctl disable ufw || :",
        "modprobe overlay || true",
        "systemctl stop ufw 2> /dev/null || true",
        "echo '[Service]' > /etc/systemd/system/a.service; if systemctl stop a; then touch /opt/x; fi",
        "echo '#!/bin/sh' > /etc/a; chmod 755 /etc/a; [ -x /etc/a ]; /etc/a",
        "touch /opt/a; chmod u+x /opt/a; [ -x /opt/a ]; [ ! -s /opt/a ]; cp -u /opt/a /opt/b",
        "[ -z \"${FLAVOUR:-}\" ]; sudo touch /opt/x",
    ] {
        let imported = run(script, &[], &json!({}));
        assert!(imported.is_ok(), "{script}: {}", imported.unwrap_err());
    }
}

#[test]
fn directories_that_may_exist_keep_their_mode() {
    let script = "mkdir -p /etc/kubernetes/manifests /opt/cni; mkdir -p /etc/crio; chmod 700 /etc/crio";
    let found = layer(script, &[], &json!({}));
    for (path, expected) in [
        ("/etc/crio", json!({"mode": "0700"})),
        ("/etc/kubernetes", json!({})),
        ("/etc/kubernetes/manifests", json!({})),
        ("/opt/cni", json!({"mode": "0755"})),
    ] {
        assert_eq!(found["directories"][path], expected, "{path}");
    }
}
