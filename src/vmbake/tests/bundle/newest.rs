//! Bundles by repository name only: a bake uses the locked version, and an upgrade looks for the newest one.

use std::fs;

use serde_json::json;

use super::clashes::probe;
use super::composing::{TRUST, changed, shop};
use super::shop::Shop;
use super::upgrading::{locked, refused, upgrade};
use crate::registry::{Registry, start};
use crate::tools::have;

/// A registry where versions of the bundle are.
fn published(shop: &Shop) -> (Registry, String) {
    let registry = start(&shop.path("."));
    let place = format!("{}/acme/agent", registry.address);
    for (version, port) in [("1.0.0+a1", "port = 1"), ("1.0.0+a2", "port = 2"), ("2.0.0-rc.1", "port = 3")] {
        changed(shop, "pushed.oci", ("1.0.0+a1", version), ("port = 1", port));
        let (ok, said) = shop.said(&["push", "pushed.oci", &place]);
        assert!(ok, "{said}");
        fs::remove_dir_all(shop.path("pushed.oci")).unwrap();
    }
    (registry, place)
}

#[test]
fn a_name_without_a_tag_is_what_is_locked() {
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(shop) = shop() else { return };
    let (_registry, place) = published(&shop);
    let args = ["bake", "box", "--os=o", "--manifests=m", "--layers=layers", "--base=base.raw", TRUST, "--out=dist"];
    let online = |more: &[&str]| shop.yard.run(&[&args[..], &["--format=raw", "--force"], more].concat());
    shop.yard.layer("box", &format!(r#", "bundles": ["{place}"]"#));
    let (ok, said) = online(&[]);
    assert!(
        !ok && said.contains(&format!("{place}: no tag given, and no bundle of that name in m/bundles.lock.json")),
        "{said}"
    );
    assert!(said.contains("hint: run `vmbake bundle upgrade KIND` to use the newest version"), "{said}");

    // Machines of before do not have what the first version requires.
    refused(&shop, &[], "newly required without a default: AGENT_SERVER of bundle acme.agent");
    let (ok, said) = upgrade(&shop, &["--user-data-is-ready"]);
    assert!(ok && said.contains("bundle    acme.agent 1.0.0+a2, new\n"), "{said}");
    assert_eq!(locked(&shop, "acme.agent")["repository"], json!(place));
    let (ok, said) = online(&[]);
    assert!(ok, "{said}");
    assert_eq!(shop.yard.ask("cat", "/etc/agent/agent.conf"), "port = 2\n");
    let keys = ["user-data", "keys", "--kind=box", "--os=o", "--manifests=m", "--layers=layers", "--no-builtin"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vmbake"));
    let output = command.args(keys).current_dir(shop.path(".")).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "AGENT_LEVEL: default info\nAGENT_SERVER: required\n",
        "{output:?}"
    );

    // A newer one exists, and is used only if requested.
    changed(&shop, "newer.oci", ("1.0.0+a1", "1.1.0"), ("port = 1", "port = 4"));
    assert!(shop.said(&["push", "newer.oci", &place]).0);
    assert!(online(&[]).1.contains("unchanged"));
    let (ok, said) = upgrade(&shop, &["acme.agent", "--dry-run"]);
    assert!(ok && said.contains("acme.agent 1.0.0+a2 -> 1.1.0") && said.contains("unchanged  m/"), "{said}");
    let (ok, said) = upgrade(&shop, &["acme.other"]);
    assert!(!ok && said.contains("bundle acme.other: not required by a layer of box"), "{said}");
    let (ok, said) = upgrade(&shop, &[]);
    assert!(ok && said.contains("acme.agent 1.0.0+a2 -> 1.1.0") && said.contains("wrote  m/"), "{said}");
    assert!(online(&[]).0);
    assert_eq!(shop.yard.ask("cat", "/etc/agent/agent.conf"), "port = 4\n");

    // By the lock alone, of a bundle that no layer names.
    shop.yard.layer("box", "");
    changed(&shop, "newest.oci", ("1.0.0+a1", "1.2.0"), ("port = 1", "port = 5"));
    assert!(shop.said(&["push", "newest.oci", &place]).0);
    let (ok, said) = upgrade(&shop, &["acme.agent"]);
    assert!(ok && said.contains("acme.agent 1.1.0 -> 1.2.0"), "{said}");
    assert!(online(&[&format!("--with={place}")]).0);
    assert_eq!(shop.yard.ask("cat", "/etc/agent/agent.conf"), "port = 5\n");

    // A tag that was moved after the lock is another bundle of the same version.
    changed(&shop, "moved.oci", ("1.0.0+a1", "1.2.0"), ("port = 1", "port = 6"));
    assert!(shop.said(&["push", "moved.oci", &place, "--force"]).0);
    let with = format!("--with={place}:1.2.0");
    refused(&shop, &[&with], "bundle acme.agent: version 1.2.0 has digest sha256:");
    let (ok, said) = online(&[&with]);
    assert!(!ok && said.contains("bundle acme.agent: version 1.2.0 has digest sha256:"), "{said}");
    // By digest it is still what was locked.
    let (ok, said) = online(&[&format!("--with={place}")]);
    assert!(ok && said.contains("unchanged"), "{said}");

    // Another bundle, which is signed and granted as well, by the next tag.
    shop.key("beta");
    probe(&shop, "", "", r#", "files": {"/etc/probe/conf": {"content": "x"}}"#);
    let (ok, said) = shop.said(&["push", "probe.oci", &format!("{place}:9.0.0")]);
    assert!(ok, "{said}");
    let other = "expected bundle acme.agent of bundles.lock.json, found beta.probe";
    refused(&shop, &["acme.agent"], other);
    let (ok, said) = online(&[&format!("--with={place}:9.0.0"), "--upgrade-bundles"]);
    assert!(!ok && said.contains(other), "{said}");
}
