//! Profiles and options that are not imported.

use std::fs;

use serde_json::json;
use vmbake::cli::error_report;
use vmbake_profile::Deployment;
use vmbake_profile::import::{ImportError, Rules, import};

use super::import::{content, desk, document, import_of, layer, run};

/// A script, and what is said of it; the rest is of the place.
const REFUSED: &[(&str, &str)] = &[
    ("frobnicate x", "setup:3: `frobnicate x`: the command is not known"),
    ("frobnicate || true", "the command is not known"),
    ("if frobnicate; then :; fi", "the command is not known"),
    ("curl -fsSL https://h.example/x | bash", "bash is a compiled program"),
    ("apt-get upgrade -y", "images are not upgraded in place"),
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
    ("{{ if .InitialTaints }}apt-get install -y jq{{ end }}\n:", "tests whether .InitialTaints is set"),
    ("printf %q {{ .ServerURL }} > /opt/x", "the text {{ SERVER_URL }}"),
    // Fields.
    ("u={{ .ServerURL }}; IFS=/; set -- $u; echo $# > /opt/x", "the text {{ SERVER_URL }}"),
    ("v={{ .InitialTaints }}; set -- $v z; echo $# > /opt/x", "the text {{ INITIAL_TAINTS }}"),
    ("set -- {{ .InitialTaints }} z; echo $# > /opt/x", "the text {{ INITIAL_TAINTS }}"),
    ("set -- $(apt-get update); echo $# > /opt/x", "the text {{ output-of-apt-get }}"),
    // The environment.
    ("env > /opt/x", "the environment"),
    ("sh -c env > /opt/x", "the environment"),
    ("sh -c 'export -p' > /opt/x", "the environment"),
    ("awk 'BEGIN { print ENVIRON[\"LANG\"] }' > /opt/x", "the variable LANG"),
    ("awk 'BEGIN { if (\"LANG\" in ENVIRON) print 1 }' > /opt/x", "the variable LANG"),
    ("awk 'BEGIN { for (n in ENVIRON) print n }' > /opt/x", "the environment"),
    ("[[ -v LANG ]] || touch /opt/x", "the variable LANG"),
    ("echo ${!SYSTEMD*} > /opt/x", "the variables of the environment that begin with SYSTEMD"),
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
fn conditions_of_templates_are_not_lost() {
    let files = [
        ("/opt/t", "a\n{{ if .InitialTaints }}t={{ .InitialTaints }}\n{{ end }}end"),
        ("/opt/u", "{{ if .InitialTaints }}flag\n{{ end }}end"),
    ];
    for (script, expected) in [
        ("echo b >> /opt/t", "/opt/t: a script changes it, but its template tests values"),
        ("echo b > /opt/t", "/opt/t: a script changes it, but its template tests values"),
        ("echo b > /opt/b; mv /opt/b /opt/t", "/opt/t: a script changes it, but its template tests values"),
        ("cp /opt/t /opt/v", "/opt/v: a script writes it from /opt/t"),
        ("mv /opt/t /opt/v", "/opt/v: a script writes it from /opt/t"),
        ("cat /opt/t > /opt/v", "/opt/v: a script writes it from /opt/t"),
        ("echo \"$(cat /opt/t)\" > /opt/v", "/opt/v: a script writes it from /opt/t"),
        ("cp /opt/u /opt/v", "/opt/v: a script writes it from /opt/u"),
        ("cat /opt/u >> /opt/v", "/opt/v: a script writes it from /opt/u"),
    ] {
        let error = run(script, &files, &json!({})).map(|imported| document(&imported)).unwrap_err().to_string();
        assert!(error.contains(expected), "{script}\n{error}");
    }
}

#[test]
fn parts_of_conditional_lines_are_not_lost() {
    let files = [
        ("/opt/t", "a\n{{ if .InitialTaints }}tainted\n{{ end }}end"),
        ("/opt/e", "#!/bin/sh\necho \"$0\" > /opt/zero\n"),
    ];
    for (script, expected) in [
        ("sed -n 2p /opt/t > /opt/v", "/opt/v: what the scripts make of it depends on whether .InitialTaints is set"),
        ("head -n 2 /opt/t | tail -n 1 > /opt/v", "/opt/v: what the scripts make of it depends"),
        ("cut -c1 /opt/t > /opt/v", "/opt/v: what the scripts make of it depends"),
        ("wc -l < /opt/t > /opt/v", "/opt/v: what the scripts make of it depends"),
        ("if grep -q tainted /opt/t; then touch /opt/v; fi", "/opt/v: what the scripts make of it depends"),
        (
            "if grep -q tainted /opt/t; then apt-get install -y jq; fi",
            "packages, units or commands of the scripts: what",
        ),
        (
            "if grep -q tainted /opt/t; then systemctl enable ssh; fi",
            "packages, units or commands of the scripts: what",
        ),
        ("if grep -q tainted /opt/t; then chmod 600 /opt/t; fi", "/opt/t: what the scripts make of it depends"),
        (
            "grep tainted /opt/t > /opt/v",
            "on machines where .InitialTaints is not set: scripts must have the same result",
        ),
    ] {
        let error = run(script, &files, &json!({})).map(|imported| document(&imported)).unwrap_err().to_string();
        assert!(error.contains(expected), "{script}\n{error}");
    }
    // The first line is the same on all machines.
    for script in ["head -n 1 /opt/t > /opt/v", "grep -v tainted /opt/t | sed -n 1p > /opt/v"] {
        let imported = run(script, &files, &json!({})).unwrap();
        assert_eq!(content(&imported, "/opt/v").as_deref(), Some("a\n"), "{script}");
    }
}

#[test]
fn values_of_machines_decide_nothing_in_a_shell() {
    for (value, scripts) in [
        (
            "{{ .ServerURL }}",
            &[
                "declare -p a",
                "typeset -p a",
                "b=(\"$a\" x); declare -p b",
                "b=(\"$a\"); echo \"${b[@]@K}\"",
                "b=(\"$a\"); echo \"${b[@]@Q}\"",
                "b=(\"$a\"); echo \"${b[@]#https}\"",
                "set -- \"$a\"; echo \"${@%3}\"",
                "trap \"echo $a\" EXIT; trap -p; trap - EXIT",
                "printf '%d\\n' \"$a\" || true",
                "printf '%c\\n' \"$a\"",
                "IFS=$a; b=x:y; echo $b",
                "IFS=$a; set -- b c; echo \"$*\"",
                "echo x:y | { IFS=$a read -r p q; echo \"$p\"; }",
                "getopts \"$a\" o -x || true; echo $o",
                "shopt -s nullglob; echo x$a y",
                "shopt -s failglob; echo x$a y",
                "cd \"$a\" || true",
                "cat \"$a\" 2>&1 || true",
            ][..],
        ),
        ("{{ .InitialTaints }}", &["declare -A m; m[$a]=1; echo ${#m[@]}", "echo \"$a\" | xargs -n1 echo x"]),
    ] {
        for script in scripts {
            let script = format!("a=\"{value}\"\n{{ {script}\n}} > /opt/b");
            let error = run(&script, &[], &json!({})).map(|imported| document(&imported)).unwrap_err().to_string();
            assert!(
                error.contains("which is not known here") || error.contains("a file or value with"),
                "{script}\n{error}"
            );
        }
    }
    let sourced = [("/opt/e", "echo \"$0\" > /opt/zero")];
    assert!(run(". /opt/e", &sourced, &json!({})).is_ok());
    let traced =
        run("exec 2> /opt/log; set -x; : \"{{ .ServerURL }}\"; set +x", &[], &json!({})).unwrap_err().to_string();
    assert!(traced.contains("a file or value with what `set -x` prints"), "{traced}");
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
fn secrets_and_hostile_defaults_are_no_options_of_an_import() {
    let with = |option: &str, value: &str| {
        let mut desk = desk(":", &[]);
        fs::write(desk.path("secret"), "abc\n").unwrap();
        let value = if value.is_empty() { desk.text_path("secret") } else { value.to_owned() };
        desk = desk.set(option, &value);
        import_of(&desk, &json!({})).map(|imported| document(&imported))
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
    assert!(matches!(import_of(&desk, &json!({})), Err(ImportError::System { .. })));
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
