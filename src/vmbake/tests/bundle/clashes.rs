//! Conflicts of bundles with an image or with each other: reported with both sides before anything is fetched.

use std::fs;

use vmbake_bundle::conflicts::conflicts;
use vmbake_bundle::contents::BundleContents;
use vmbake_common::catalog::Catalog;
use vmbake_manifest::Target;

use super::composing::{TRUST, bake, changed, refused, shop};
use super::shop::{SETTINGS, Shop, document, layer};

fn plan(shop: &Shop, more: &[&str]) -> (bool, String) {
    let args = ["bundle", "plan", "box", "--os=o", "--manifests=m", "--layers=layers", TRUST];
    shop.yard.run(&[&args[..], more].concat())
}

/// What else the layer `box` does, another word of the bundle's layer or document, and what is said.
const CLASHES: &[(&str, (&str, &str), &str)] = &[
    (
        "",
        (r#", "requires": ["settings"]"#, ""),
        "bundle acme.agent has settings (AGENT_LEVEL, AGENT_SERVER), but no layer of the image has `inputs` of the first boot, such",
    ),
    (
        r#", "files": {"/etc/agent/agent.conf": {"content": "x"}}"#,
        ("", ""),
        "the image box (layer box, `files`) and bundle acme.agent (layer acme.agent, `files`): both write /etc/agent/agent.conf",
    ),
    (
        r#", "files": {"/etc/agent/AGENT.conf": {"content": "x"}}"#,
        ("", ""),
        "/etc/agent/AGENT.conf and /etc/agent/agent.conf differ only in case",
    ),
    (
        r#", "files": {"/usr/lib/systemd/system/agent.service": {"content": "[Service]\n"}}"#,
        ("", ""),
        "the image box and bundle acme.agent: both have unit agent.service",
    ),
    (r#", "files": {"/opt/tool": {"content": "x"}}"#, ("", ""), "/opt/tool is below the file /opt/tool"),
    (r#", "symlinks": {"/opt/tool": "/usr"}"#, ("", ""), "/opt/tool is below the file /opt/tool"),
    (
        r#", "directories": {"/etc/agent/agent.conf": {"mode": "0755"}}"#,
        ("", ""),
        "/etc/agent/agent.conf is a file and a directory",
    ),
    (
        r#", "remove": ["/etc/agent/*"]"#,
        ("", ""),
        "/etc/agent is changed, but /etc/agent/agent.conf belongs to the other",
    ),
    (
        r#", "first_boot": {"variables": {"PROVIDER": {}}}"#,
        ("\"services\":", "\"values\": [{\"name\": \"PROVIDER\", \"value\": \"x\"}], \"services\":"),
        "bundle acme.agent sets variable PROVIDER in `first_boot`, which the image box declares or reads",
    ),
    (
        r#", "first_boot": {"variables": {"PROVIDER": {}}}"#,
        ("\"services\":", "\"detect\": [{\"name\": \"PROVIDER\", \"value\": \"x\"}], \"services\":"),
        "bundle acme.agent sets variable PROVIDER in `first_boot`, which the image box declares or reads",
    ),
    (
        r#", "first_boot": {"values": [{"name": "PROVIDER", "value": "own"}]}"#,
        ("\"services\":", "\"values\": [{\"name\": \"PROVIDER\", \"value\": \"x\"}], \"services\":"),
        "bundle acme.agent sets variable PROVIDER in `first_boot`, which the image box declares or reads",
    ),
    (
        r#", "files": {"/etc/agent/mine": {"content": "x"}}"#,
        ("\"units\":", "\"empty\": [\"/etc/agent/mine\"], \"units\":"),
        "/etc/agent/mine is changed, but /etc/agent/mine belongs to the other",
    ),
    (
        r#", "files": {"/etc/agent/mine": {"content": "x"}}"#,
        ("\"units\":", "\"remove\": [\"/etc/agent/mine\"], \"units\":"),
        "(layer acme.agent, `remove`): /etc/agent/mine is changed",
    ),
    (
        r#", "directories": {"/etc/agent": {"mode": "0700"}}"#,
        ("\"units\":", "\"directories\": {\"/etc/agent\": {\"mode\": \"0755\"}}, \"units\":"),
        "both have a different mode or owner of directory /etc/agent",
    ),
    (
        r#", "first_boot": {"variables": {"AGENT_LEVEL": {}}}"#,
        ("", ""),
        "the image box and bundle acme.agent: both have variable AGENT_LEVEL",
    ),
    (
        r#", "files": {"/etc/agent/mine": {"content": "x"}}"#,
        ("\"units\":", "\"modes\": {\"/etc/agent/mine\": {\"mode\": \"0600\"}}, \"units\":"),
        "(layer acme.agent, `modes`): /etc/agent/mine is changed, but /etc/agent/mine belongs to the other",
    ),
    (
        r#", "empty": ["/etc/agent/seen"]"#,
        ("\"units\":", "\"empty\": [\"/etc/agent/seen\"], \"units\":"),
        "the image box (layer box, `empty`) and bundle acme.agent (layer acme.agent, `empty`): both change /etc/agent/seen",
    ),
    (
        "",
        ("\"description\"", "\"kinds\": [\"node\"], \"description\""),
        "bundle acme.agent: does not support kind box: expected one of: node",
    ),
    (
        "",
        ("\"description\"", "\"vmbake\": \">=99\", \"description\""),
        "bundle acme.agent: requires vmbake >=99, found ",
    ),
    (
        "",
        ("\"description\"", "\"requires\": [{\"layer\": \"box\", \"version\": \">=2\"}], \"description\""),
        "bundle acme.agent: requires layer box >=2, found 1",
    ),
    (
        "",
        ("\"description\"", "\"requires\": [{\"layer\": \"vm\"}], \"description\""),
        "bundle acme.agent: requires layer vm, which is missing",
    ),
];

#[test]
fn conflicts_name_both_sides_before_anything_is_fetched() {
    let Some(shop) = shop() else { return };
    let (ok, said) = plan(&shop, &["--with=agent.oci"]);
    assert!(
        ok && said.contains("layers    settings, acme.agent, box, hygiene\nbundle    acme.agent 1.0.0+a1: An agent.\n"),
        "{said}"
    );
    for (keys, words, expected) in CLASHES {
        shop.yard.layer("box", keys);
        let in_document = words.0 == "\"description\"";
        let (of_document, of_layer) = if in_document { (*words, ("", "")) } else { (("", ""), *words) };
        changed(&shop, "clash.tar", of_document, of_layer);
        let (ok, said) = plan(&shop, &["--with=clash.tar"]);
        assert!(
            !ok && said.lines().any(|line| line.starts_with("conflict  ") && line.contains(expected)),
            "{expected}: {said}"
        );
        let said = refused(&shop, &["--with=clash.tar"]);
        assert!(
            said.contains(expected) && said.contains("hint: remove one of the two; run `vmbake bundle plan` to show"),
            "{expected}: {said}"
        );
        fs::remove_file(shop.path("clash.tar")).unwrap();
    }
    assert!(!shop.path("m/bundles.lock.json").exists());
    shop.yard.layer("box", "");
    let (ok, said) = bake(&shop, &["--with=agent.oci", "--with=agent.oci"]);
    assert!(!ok && said.contains("duplicate bundle acme.agent"), "{said}");
}

/// Words of the bundle's layer, those instead of them, and where they read `TOKEN`.
const READS: &[(&str, &str, &str)] = &[
    (
        r#""AGENT_LEVEL"]"#,
        r#"{"name": "AGENT_LEVEL", "value": "{{ TOKEN }}"}]"#,
        "first_boot/files/0/content/environment/1/value`",
    ),
    (
        r#"[{"unit": "agent.service"}]"#,
        r#"[{"unit": "agent.service", "when": "AGENT_LEVEL and TOKEN"}]"#,
        "first_boot/services/0/when`",
    ),
    (
        r#"{"environment": ["AGENT_SERVER", "AGENT_LEVEL"]}"#,
        r#"{"template": {"file": "/etc/agent/agent.conf", "format": "text"}}"#,
        "first_boot/files/0/content/template/file`, /etc/agent/agent.conf)",
    ),
    (
        r#""services":"#,
        r#""values": [{"name": "AGENT_TOKEN", "value": "{{ TOKEN }}"}], "services":"#,
        "first_boot/values/0/value`",
    ),
    (
        r#""services":"#,
        r#""exec": {"agent": {"environment_file": "/etc/settings.env", "program": "/opt/tool/bin/tool", "arguments": ["{{ TOKEN }}"]}},
        "services":"#,
        "first_boot/exec/agent/arguments/0",
    ),
];

#[test]
fn variables_of_others_are_read_only_with_their_layer_in_requires() {
    let Some(shop) = shop() else { return };
    let declared = r#""first_boot": {"variables": {"TOKEN": {}},
        "files": [{"path": "/etc/settings.env", "mode": "0600", "content": {"environment": ["TOKEN"]}}], "#;
    shop.yard.layer("settings", &SETTINGS.replacen("\"first_boot\": {", declared, 1));
    let packed = |document_words: (&str, &str), from: &str, to: &str| {
        let (name, requires) = document_words;
        shop.put("agent/bundle.json", &document("").replacen(name, requires, 1));
        let text = layer("").replacen(from, to, 1).replace("port = 1", "port = {{ TOKEN }}{# TOKEN #}");
        let text = match to.contains("\"exec\"") {
            true => text.replace("ExecStart=/opt/tool/bin/tool", "ExecStart=/opt/podplane/bin/firstboot exec agent"),
            false => text,
        };
        shop.put("agent/layers/acme.agent/layer.json", &text);
        shop.packed("reads.oci", &["--key=acme.key", "--offline", "--force"]);
        plan(&shop, &["--with=reads.oci"])
    };
    for (from, to, place) in READS {
        assert!(layer("").contains(from), "{from}");
        let (ok, said) = packed(("", ""), from, to);
        let reads =
            "reads variable TOKEN, which the image box (layer settings) declares: expected the layer in `requires`";
        assert!(!ok && said.contains("bundle acme.agent (layer acme.agent, `") && said.contains(place), "{said}");
        assert!(said.contains(reads), "{said}");
        let requires = "\"requires\": [{\"layer\": \"settings\"}], \"asks\"";
        let (ok, said) = packed(("\"asks\"", requires), from, to);
        assert!(ok, "{to}: {said}");
    }
    // Own variables, facts of the machine, and words in texts.
    for (from, to) in [
        (
            r#""AGENT_LEVEL"]"#,
            r#"{"name": "AGENT_LEVEL", "value": "{{ AGENT_SERVER }} TOKEN {# TOKEN #}{{ 'TOKEN' }}"}]"#,
        ),
        (r#""services":"#, r#""detect": [{"name": "AGENT_HOST", "value": "{{ hostname }}"}], "services":"#),
        (
            r#""services":"#,
            r#""blocks": [{"path": "/etc/agent/b", "name": "b", "text": "{% for TOKEN in ['x'] %}{{ TOKEN }}{% endfor %}"}], "services":"#,
        ),
    ] {
        let (ok, said) = packed(("", ""), from, to);
        assert!(ok, "{to}: {said}");
    }
}

/// What two bundles that do not go together are like.
struct Pair {
    /// Other requests of the first one, and its keys.
    first: (&'static str, &'static str),
    /// The same of the second.
    second: (&'static str, &'static str),
    expected: &'static str,
}

const fn pair(
    first: (&'static str, &'static str),
    second: (&'static str, &'static str),
    expected: &'static str,
) -> Pair {
    Pair { first, second, expected }
}

const PAIRS: &[Pair] = &[
    pair(
        ("", ""),
        ("", r#", "symlinks": {"/etc/agent/agent.conf": "x"}"#),
        "bundle acme.agent (layer acme.agent, `files`) and bundle beta.probe (layer beta.probe, `symlinks`): both write /etc/agent/agent.conf",
    ),
    pair(
        ("", ""),
        ("", r#", "remove": ["/etc/agent/agent.conf"]"#),
        "(layer beta.probe, `remove`): /etc/agent/agent.conf is changed, but /etc/agent/agent.conf belongs to the other",
    ),
    pair(
        ("", ""),
        ("", r#", "symlinks": {"/etc/agent/Agent.conf": "x"}"#),
        "bundle beta.probe (layer beta.probe, `symlinks`): /etc/agent/agent.conf and /etc/agent/Agent.conf differ only in case",
    ),
    pair(
        ("", r#", "symlinks": {"/etc/agent/link": "/etc"}"#),
        ("", r#", "symlinks": {"/etc/agent/link/shadow": "x"}"#),
        "bundle beta.probe (layer beta.probe, `symlinks`): /etc/agent/link/shadow is below the file /etc/agent/link",
    ),
    pair(
        ("", r#", "directories": {"/etc/agent/d": {"mode": "0755"}}"#),
        ("", r#", "directories": {"/etc/agent/d": {"mode": "0700"}}"#),
        "bundle acme.agent and bundle beta.probe: both have a different mode or owner of directory /etc/agent/d",
    ),
    pair(
        ("", r#", "sysctl": {"vm.swappiness": 1}"#),
        ("", r#", "sysctl": {"vm.swappiness": 2}"#),
        "bundle acme.agent and bundle beta.probe: both have different values of sysctl vm.swappiness",
    ),
    pair(
        (r#", "users": ["u"]"#, r#", "users": {"u": {"id": 990, "home": "/etc/agent/u"}}"#),
        (r#", "users": ["u"]"#, r#", "users": {"u": {"id": 990, "home": "/etc/probe/u"}}"#),
        "bundle acme.agent (layer acme.agent, `users`) and bundle beta.probe (layer beta.probe, `users`): both create u",
    ),
    pair(
        (r#", "users": ["u"]"#, r#", "users": {"u": {"id": 990, "home": "/etc/agent/u"}}"#),
        (r#", "users": ["g"]"#, r#", "groups": {"g": 990}"#),
        "bundle acme.agent and bundle beta.probe: both have id 990",
    ),
    pair(
        (r#", "ports": ["80/tcp"]"#, ""),
        (r#", "ports": ["80/tcp"]"#, ""),
        "bundle acme.agent and bundle beta.probe: both have port 80/tcp",
    ),
    pair(
        ("", ""),
        ("", r#", "files": {"/usr/lib/systemd/system/agent.service": {"content": "[Service]\n"}}"#),
        "bundle acme.agent and bundle beta.probe: both have unit agent.service",
    ),
    pair(
        ("", ""),
        ("", r#", "requires": ["settings"], "first_boot": {"variables": {"AGENT_SERVER": {}}}"#),
        "bundle acme.agent and bundle beta.probe: both have variable AGENT_SERVER",
    ),
];

/// Packs `beta.probe`, signed and trusted with a separate key.
pub fn probe(shop: &Shop, asks: &str, more: &str, keys: &str) {
    let text = format!(
        r#"{{"schema": 1, "publisher": "beta", "name": "probe", "version": "1", "description": "d", "os": ["o"], "arch": ["amd64"],
        "asks": {{"paths": ["/etc/probe", "/etc/agent", "/etc/sysctl.d", "/usr/lib/systemd/system"]{asks}}}{more}}}"#
    );
    shop.put("probe/bundle.json", &text);
    let text = format!(r#"{{"name": "beta.probe", "version": "1", "description": "d", "os": ["o"]{keys}}}"#);
    shop.put("probe/layers/beta.probe/layer.json", &text);
    let args = ["bundle", "pack", "probe", "--out=probe.oci", "--key=beta.key", "--offline", "--force"];
    let (ok, said) = shop.yard.run(&args);
    assert!(ok, "{said}");
    trusted(shop, "probe.oci", "beta.pub");
}

fn trusted(shop: &Shop, bundle: &str, key: &str) {
    let (ok, said) = shop.said(&["trust", bundle, "--key", key, "--yes"]);
    assert!(ok, "{said}");
}

#[test]
fn each_clash_of_two_publishers_stops_the_bake() {
    let Some(shop) = shop() else { return };
    shop.key("beta");
    for Pair { first: (asks, keys), second, expected } in PAIRS {
        shop.write(asks, keys);
        let text = document(asks).replace("\"/opt/tool\"", "\"/opt/tool\", \"/etc/sysctl.d\"");
        shop.put("agent/bundle.json", &text);
        shop.packed("first.oci", &["--key=acme.key", "--offline", "--force"]);
        trusted(&shop, "first.oci", "acme.pub");
        probe(&shop, second.0, "", second.1);
        let said = refused(&shop, &["--with=first.oci", "--with=probe.oci"]);
        assert!(
            said.contains(expected) && said.contains("hint: remove one of the two; run `vmbake bundle plan` to show"),
            "{expected}: {said}"
        );
        // The second clashes with nothing but the first.
        let (ok, said) = plan(&shop, &["--with=probe.oci"]);
        assert!(ok, "{expected}: {said}");
    }
}

#[test]
fn what_arrives_on_machines_has_one_place() {
    let Some(shop) = shop() else { return };
    shop.key("beta");
    let received =
        |directory: &str| format!(r#""received": {{"ca.crt": {{"directory": "{directory}", "group": "root"}}}}"#);
    let text = layer("").replace("\"first_boot\": {", &format!("\"first_boot\": {{{}, ", received("/etc/agent")));
    shop.put("agent/layers/acme.agent/layer.json", &text);
    shop.packed("first.oci", &["--key=acme.key", "--offline"]);
    probe(&shop, "", "", &format!(r#", "first_boot": {{{}}}"#, received("/etc/probe")));
    let said = refused(&shop, &["--with=first.oci", "--with=probe.oci"]);
    let expected = "bundle acme.agent and bundle beta.probe: both have received file ca.crt";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn programs_that_units_call_by_name_have_one_meaning() {
    let Some(shop) = shop() else { return };
    shop.key("beta");
    let call = "ExecStart=/opt/podplane/bin/firstboot exec probe";
    let exec =
        |env: &str| format!(r#""exec": {{"probe": {{"environment_file": "{env}", "program": "/opt/tool/bin/tool"}}}}"#);
    let text = layer("").replace("ExecStart=/opt/tool/bin/tool", call);
    let text = text.replace("\"first_boot\": {", &format!("\"first_boot\": {{{}, ", exec("/etc/agent/env")));
    shop.put("agent/layers/acme.agent/layer.json", &text);
    shop.packed("first.oci", &["--key=acme.key", "--offline"]);
    let unit =
        format!(r#", "files": {{"/usr/lib/systemd/system/probe.service": {{"content": "[Service]\n{call}\n"}}}}"#);
    let file = r#""files": [{"path": "/etc/probe/env", "mode": "0600", "content": {"environment": []}}]"#;
    probe(&shop, "", "", &format!(r#"{unit}, "first_boot": {{{}, {file}}}"#, exec("/etc/probe/env")));
    let said = refused(&shop, &["--with=first.oci", "--with=probe.oci"]);
    assert!(said.contains("bundle acme.agent and bundle beta.probe: both have program of `exec` probe"), "{said}");
}

#[test]
fn a_bundle_says_which_systems_it_is_for() {
    let Some(shop) = Shop::new() else { return };
    shop.put("agent/bundle.json", &document("").replace("\"amd64\", ", ""));
    let contents = BundleContents::of_folder(&shop.path("agent"), &Catalog::only(shop.path("layers"))).unwrap();
    for (os, arch, expected) in [
        ("o", "arm64", None),
        ("p", "arm64", Some("bundle acme.agent: does not support os p: expected one of: o")),
        ("o", "amd64", Some("bundle acme.agent: does not support architecture amd64: expected one of: arm64")),
    ] {
        let [kind, os, arch] = ["box", os, arch].map(str::to_owned);
        let found = conflicts(&Target { kind, os, arch }, &[], &[&contents]);
        let said = found.iter().find(|line| line.contains("does not support"));
        assert_eq!(said.map(String::as_str), expected, "{found:?}");
    }
}

#[test]
fn bundles_of_two_publishers_go_together_or_say_why_not() {
    let Some(shop) = shop() else { return };
    shop.key("beta");
    let file = r#", "files": {"/etc/probe/conf": {"content": "x"}}"#;
    probe(&shop, "", r#", "conflicts": ["agent-api"], "provides": {"probe-api": "1"}"#, file);
    let (ok, said) = bake(&shop, &["--with=agent.oci", "--with=probe.oci"]);
    assert!(ok && said.contains("layers  settings, acme.agent, beta.probe, box, hygiene"), "{said}");
    fs::remove_file(shop.path("m/bundles.lock.json")).unwrap();
    for (words, expected) in [
        (
            r#""provides": {"agent-api": "1"}"#,
            "bundle beta.probe conflicts with agent-api, which bundle acme.agent provides",
        ),
        (
            r#""conflicts": ["probe-api"]"#,
            "bundle acme.agent conflicts with probe-api, which bundle beta.probe provides",
        ),
    ] {
        changed(&shop, "api.tar", ("\"state\"", &format!("{words}, \"state\"")), ("", ""));
        let said = refused(&shop, &["--with=api.tar", "--with=probe.oci"]);
        assert!(said.contains(expected), "{said}");
        fs::remove_file(shop.path("api.tar")).unwrap();
    }
}
