//! `vmbake bundle upgrade`: locks newer versions that a bake would accept, and shows the changes.

use std::fs;

use serde_json::{Value, json};

use super::clashes::probe;
use super::composing::{TRUST, bake, changed, shop};
use super::forge::Forge;
use super::shop::{Shop, files};

const LOCK: &str = "m/bundles.lock.json";

pub fn upgrade(shop: &Shop, more: &[&str]) -> (bool, String) {
    let args = ["bundle", "upgrade", "box", "--os=o", "--manifests=m", "--layers=layers", TRUST];
    shop.yard.run(&[&args[..], more].concat())
}

pub fn locked(shop: &Shop, title: &str) -> Value {
    let lock: Value = serde_json::from_slice(&fs::read(shop.path(LOCK)).unwrap()).unwrap();
    lock["bundles"][title].clone()
}

/// An upgrade that must fail and write nothing.
pub fn refused(shop: &Shop, more: &[&str], expected: &str) {
    let before = files(&shop.path("."));
    let (ok, said) = upgrade(shop, more);
    assert!(!ok && said.contains(expected) && said.contains("hint: "), "{expected}: {said}");
    assert!(files(&shop.path(".")) == before, "{more:?}: something was written");
}

/// A workshop where the first version is locked.
fn locked_shop() -> Option<Shop> {
    let shop = shop()?;
    let (ok, said) = bake(&shop, &["--with=agent.oci"]);
    assert!(ok, "{said}");
    Some(shop)
}

/// The next version: another file, a unit, a variable with a default, and other state.
fn next(shop: &Shop) {
    let document = super::shop::document("").replace("1.0.0+a1", "1.1.0").replace("/var/lib/agent", "/var/lib/agents");
    let document = document.replace("\"asks\":", "\"upgrade\": {\"from\": \"<1.1\"}, \"asks\":");
    shop.put("agent/bundle.json", &document);
    let layer = super::shop::layer(r#", "symlinks": {"/etc/agent/latest": "agent.conf"}"#);
    let layer = layer.replace("port = 1", "port = 2").replace("{\"default\": \"info\"}", "{\"default\": \"warn\"}");
    let layer = layer.replace("\"AGENT_LEVEL\"]}", "\"AGENT_LEVEL\", \"AGENT_ZONE\"]}");
    let layer = layer.replace("\"variables\": {", "\"variables\": {\"AGENT_ZONE\": {\"default\": \"a\"}, ");
    let layer = layer.replace(
        "\"agent.service\": [\"[Service]\"",
        "\"probe.service\": [\"[Service]\", \"ExecStart=/bin/true\"], \"agent.service\": [\"[Service]\"",
    );
    shop.put("agent/layers/acme.agent/layer.json", &layer);
    shop.packed("next.oci", &["--key=acme.key", "--offline"]);
}

#[test]
fn an_upgrade_tells_what_changes_and_the_next_bake_takes_it() {
    let Some(shop) = locked_shop() else { return };
    next(&shop);
    let before = files(&shop.path("."));
    let (ok, said) = upgrade(&shop, &["--with=next.oci", "--dry-run"]);
    let digest = shop.json(&["inspect", "next.oci", "--json"])["digest"].as_str().unwrap().to_owned();
    let table = format!(
        "bundle    acme.agent 1.0.0+a1 -> 1.1.0\ndigest    {digest}\npath      added: /etc/agent/latest\npath      added: \
         /etc/systemd/system/probe.service\npath      changed: /etc/agent/agent.conf\npath      changed: /etc/agent/env\nunit      added: probe.service\nvariable  \
         added: AGENT_ZONE\nvariable  other default: AGENT_LEVEL\nstate     newly declared: /var/lib/agents\nstate     dropped: /var/lib/agent\n"
    );
    assert!(ok && said.contains(&table), "{said}\n{table}");
    assert!(said.contains("warning: bundle acme.agent 1.1.0 no longer keeps state in /var/lib/agent"), "{said}");
    assert!(files(&shop.path(".")) == before, "a dry run writes");

    let (ok, said) = upgrade(&shop, &["--with=next.oci"]);
    assert!(ok && said.contains(&table) && said.contains("    wrote  m/bundles.lock.json"), "{said}");
    let lock = locked(&shop, "acme.agent");
    assert_eq!((&lock["version"], &lock["digest"]), (&json!("1.1.0"), &json!(digest)));
    assert_eq!(lock["taken"].as_object().unwrap().len(), 2);
    // Nothing of the bundle but its entry in the lock was taken, and the second time nothing at all is done.
    let after = files(&shop.path("."));
    let changes = after.iter().filter(|file| !before.contains(file)).map(|(path, _)| path.to_str().unwrap());
    assert_eq!(changes.collect::<Vec<_>>(), [LOCK]);
    let (ok, said) = upgrade(&shop, &["--with=next.oci"]);
    assert!(
        ok && said.contains("acme.agent 1.1.0, unchanged") && said.contains("unchanged  m/bundles.lock.json"),
        "{said}"
    );
    assert!(files(&shop.path(".")) == after);

    fs::rename(shop.path("dist"), shop.path("before")).unwrap();
    let (ok, said) = bake(&shop, &["--with=next.oci"]);
    assert!(ok, "{said}");
    assert_eq!(shop.yard.ask("cat", "/etc/agent/agent.conf"), "port = 2\n");
    // The images say the same of each other.
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vmbake"));
    let images = ["before/box.o.amd64.raw", "dist/box.o.amd64.raw"];
    let output = command.arg("changelog").args(images).current_dir(shop.path(".")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let hex = &digest["sha256:".len()..][..12];
    assert!(
        said.contains("## Bundles\n\n- `acme.agent`: 1.0.0+a1 (") && said.contains(&format!(") → 1.1.0 ({hex})\n")),
        "{said}"
    );
    assert!(said.contains("- added `AGENT_ZONE`: optional, by default a\n"), "{said}");
    refused(&shop, &["--with=agent.oci"], "bundle acme.agent: version 1.0.0+a1 is lower than the locked version 1.1.0");
}

#[test]
fn json_says_the_same() {
    let Some(shop) = locked_shop() else { return };
    next(&shop);
    let args =
        ["bundle", "upgrade", "box", "--os=o", "--manifests=m", "--layers=layers", TRUST, "--json", "--no-builtin"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vmbake"));
    command.args(args).args(["--sources=sources.json", "--with=next.oci"]).current_dir(shop.path("."));
    let found: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(found["written"], true);
    let bundle = &found["bundles"][0];
    assert_eq!(
        (&bundle["name"], &bundle["from"], &bundle["to"]),
        (&json!("acme.agent"), &json!("1.0.0+a1"), &json!("1.1.0"))
    );
    assert_eq!(bundle["state"], json!({"kept": [], "declared": ["/var/lib/agents"], "dropped": ["/var/lib/agent"]}));
    assert_eq!(
        bundle["variables"],
        json!({"added": ["AGENT_ZONE"], "removed": [], "newly_required": [], "defaults": ["AGENT_LEVEL"]})
    );
    assert_eq!(bundle["paths"]["removed"], json!([]));
}

#[test]
fn a_newly_required_variable_waits_for_user_data() {
    let Some(shop) = locked_shop() else { return };
    let version = ("1.0.0+a1", "1.1.0");
    let expected = "newly required without a default: AGENT_LEVEL of bundle acme.agent; nothing was written";
    changed(&shop, "strict.oci", version, ("{\"default\": \"info\"}", "{\"required\": true}"));
    for more in [&["--with=strict.oci"][..], &["--with=strict.oci", "--dry-run"]] {
        refused(&shop, more, expected);
        assert!(upgrade(&shop, more).1.contains("variable  newly required: AGENT_LEVEL\n"));
    }
    refused(&shop, &["--with=strict.oci", "--json"], "\"written\": false");
    let (ok, said) = upgrade(&shop, &["--with=strict.oci", "--user-data-is-ready"]);
    assert!(ok && said.contains("wrote  m/bundles.lock.json"), "{said}");
    // What was required before is nothing new.
    changed(&shop, "later.oci", ("1.0.0+a1", "1.2.0"), ("{\"default\": \"info\"}", "{\"required\": true}"));
    let (ok, said) = upgrade(&shop, &["--with=later.oci"]);
    assert!(ok && !said.contains("newly required"), "{said}");
    // One that is no longer asked for is told, and stops nothing.
    shop.put("agent/bundle.json", &super::shop::document("").replace("1.0.0+a1", "1.3.0"));
    let layer = super::shop::layer("").replace("\"AGENT_LEVEL\": {\"default\": \"info\"}", "\"AGENT_ZONE\": {}");
    shop.put("agent/layers/acme.agent/layer.json", &layer.replace("\"AGENT_LEVEL\"]", "\"AGENT_ZONE\"]"));
    shop.packed("less.oci", &["--key=acme.key", "--offline"]);
    let (ok, said) = upgrade(&shop, &["--with=less.oci"]);
    assert!(ok && said.contains("variable  added: AGENT_ZONE\nvariable  removed: AGENT_LEVEL\n"), "{said}");
}

#[test]
fn what_a_bake_would_refuse_is_not_locked() {
    let Some(shop) = locked_shop() else { return };
    let version = ("1.0.0+a1", "1.1.0");
    let none = ("", "");
    changed(&shop, "next.oci", version, none);
    changed(&shop, "far.oci", ("1.0.0+a1\"", "3.0.0\", \"upgrade\": {\"from\": \">=2\"}"), none);
    let expected = "version 3.0.0 only replaces >=2, but the locked version is 1.0.0+a1";
    refused(&shop, &["--with=far.oci"], expected);
    changed(&shop, "same.oci", ("An agent.", "Another agent."), none);
    refused(&shop, &["--with=same.oci"], "version 1.0.0+a1 has digest sha256:");
    changed(&shop, "other.oci", ("1.0.0+a1\", ", "1.1.0\", \"kinds\": [\"node\"], "), none);
    refused(&shop, &["--with=other.oci"], "bundle acme.agent: does not support kind box: expected one of: node");

    // Who has signed, and what was granted.
    shop.key("other");
    shop.put("agent/bundle.json", &super::shop::document("").replace("1.0.0+a1", "1.1.0"));
    shop.packed("forged.oci", &["--key=other.key", "--offline"]);
    refused(&shop, &["--with=forged.oci"], "forged.oci: not signed by publisher acme");
    let more = super::shop::document(r#", "ports": ["80/tcp"]"#).replace("1.0.0+a1", "1.1.0");
    shop.put("agent/bundle.json", &more);
    shop.packed("port.oci", &["--key=acme.key", "--offline"]);
    refused(&shop, &["--with=port.oci"], "requests more than granted: ports 80/tcp");

    // A proof that does not hold, though the publisher has signed it.
    shop.put("agent/bundle.json", &super::shop::document("").replace("1.0.0+a1", "1.1.0"));
    shop.packed("unproven.oci", &["--key=acme.key", "--offline"]);
    let mut forge = Forge::new(&shop.path("unproven.oci"));
    let mut document = forge.document();
    let (digest, size) = forge.put(b"another tool");
    let old = document["artifacts"]["o.amd64"]["acme.tool"]["digest"].clone();
    let entry = &mut document["artifacts"]["o.amd64"]["acme.tool"];
    (entry["digest"], entry["size"]) = (digest.clone(), size.clone());
    forge.config = document.to_string().into_bytes();
    let layers = forge.manifests[0]["layers"].as_array_mut().unwrap();
    let blob = layers.iter_mut().find(|blob| blob["digest"] == old).unwrap();
    (blob["digest"], blob["size"]) = (digest, size);
    forge.write();
    forge.sign(&shop.path("acme.key"));
    refused(&shop, &["--with=unproven.oci"], "bundle acme.agent: artifact acme.tool cannot be verified");
}

#[test]
fn names_say_what_may_change() {
    let Some(shop) = locked_shop() else { return };
    changed(&shop, "next.oci", ("1.0.0+a1", "1.1.0"), ("", ""));
    let (ok, said) = upgrade(&shop, &[]);
    assert!(!ok && said.contains("no layer of box requires a bundle: add one with --with"), "{said}");
    refused(&shop, &["acme.agent"], "bundle acme.agent: added from a file, so the location");
    refused(&shop, &["acme.ghost"], "bundle acme.ghost: not required by a layer of box: expected one of: acme.agent");
    // What the layer fixes, the next bake would take.
    shop.yard.layer("box", r#", "bundles": ["agent.oci"]"#);
    refused(&shop, &["--with=next.oci"], "layer box: names agent.oci, but next.oci is a different bundle acme.agent");
    shop.yard.layer("box", r#", "bundles": ["next.oci"]"#);
    // One that is not named stays as it is locked.
    shop.key("beta");
    probe(&shop, "", "", r#", "files": {"/etc/probe/conf": {"content": "x"}}"#);
    refused(&shop, &["--with=probe.oci"], "bundle acme.agent: expected the locked version 1.0.0+a1, found 1.1.0");
    let (ok, said) = upgrade(&shop, &["acme.agent"]);
    assert!(ok && said.contains("acme.agent 1.0.0+a1 -> 1.1.0"), "{said}");
    assert!(bake(&shop, &[]).0);
}

#[test]
fn a_lock_that_does_not_say_what_a_version_brings_is_of_use() {
    let Some(shop) = locked_shop() else { return };
    let lock = fs::read_to_string(shop.path(LOCK)).unwrap();
    let mut short: Value = serde_json::from_str(&lock).unwrap();
    short["bundles"]["acme.agent"].as_object_mut().unwrap().remove("brings");
    fs::write(shop.path(LOCK), short.to_string()).unwrap();
    changed(&shop, "next.oci", ("1.0.0+a1", "1.1.0"), ("", ""));
    // Everything is new then, but for the version that is locked.
    refused(&shop, &["--with=next.oci"], "newly required without a default: AGENT_SERVER of bundle acme.agent");
    let (ok, said) = upgrade(&shop, &["--with=agent.oci"]);
    assert!(ok && said.contains("acme.agent 1.0.0+a1, unchanged"), "{said}");
    assert_eq!(fs::read_to_string(shop.path(LOCK)).unwrap(), lock);
    for (text, expected) in [
        (
            lock.replace("\"schema\": 1", "\"schema\": 2"),
            "m/bundles.lock.json: `schema`: unsupported schema: expected 1",
        ),
        (lock.replace("\"brings\"", "\"bring\""), "m/bundles.lock.json:"),
        (" ".repeat((32 << 20) + 1), "m/bundles.lock.json: cannot read"),
    ] {
        fs::write(shop.path(LOCK), text).unwrap();
        let (ok, said) = upgrade(&shop, &["--with=next.oci"]);
        assert!(!ok && said.contains(expected), "{said}");
    }
}

#[test]
fn all_architectures_must_be_able_to_have_it() {
    let Some(shop) = locked_shop() else { return };
    let (ok, said) = shop.yard.update_for("arm64", &[]);
    assert!(ok, "{said}");
    shop.put("agent/bundle.json", &super::shop::document("").replace("1.0.0+a1", "1.1.0").replace("\"amd64\", ", ""));
    shop.packed("arm64.oci", &["--key=acme.key", "--offline"]);
    let expected = "bundle acme.agent: does not support architecture amd64: expected one of: arm64";
    refused(&shop, &["--with=arm64.oci", "--arch=amd64,arm64"], expected);
    let (ok, said) = upgrade(&shop, &["--with=arm64.oci", "--arch=arm64"]);
    assert!(ok && said.contains("acme.agent 1.0.0+a1 -> 1.1.0"), "{said}");
}
