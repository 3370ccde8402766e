//! Trusted publishers of bundles: keys and grants of the consumer.

use std::fs;

use serde_json::{Value, json};

use super::shop::Shop;
use crate::registry::start;
use crate::tools::have;

fn shop() -> Option<Shop> {
    let shop = Shop::new()?;
    shop.key("acme");
    shop.key("other");
    shop.packed("agent.oci", &["--key=acme.key"]);
    shop.packed("agent.tar", &["--key=acme.key"]);
    Some(shop)
}

#[test]
fn a_signature_is_of_the_key_that_the_consumer_names() {
    let Some(shop) = shop() else { return };
    for bundle in ["agent.oci", "agent.tar"] {
        let (ok, said) = shop.said(&["verify", bundle, "--key", "acme.pub"]);
        assert!(ok && said.starts_with("acme.agent 1.0.0+a1: signed by acme.pub\nsha256:"), "{said}");
        let (ok, said) = shop.said(&["verify", bundle, "--key", "other.pub"]);
        assert!(!ok && said.contains(&format!("{bundle}: not signed by other.pub: ")), "{said}");
        let (ok, said) = shop.said(&["verify", bundle, "--key", "acme.pub", "--key", "other.pub"]);
        assert!(!ok && said.contains("not signed by other.pub"), "{said}");
    }
    let (ok, said) = shop.said(&["verify", "agent.oci"]);
    assert!(
        !ok && said.contains("no key or publisher to verify the signature with") && said.contains("hint: use --key"),
        "{said}"
    );
    shop.packed("plain.oci", &[]);
    let (ok, said) = shop.said(&["verify", "plain.oci", "--key", "acme.pub"]);
    assert!(!ok && said.contains("no attached document is a valid signature"), "{said}");
}

#[test]
fn a_publisher_does_what_he_was_granted() {
    let Some(shop) = shop() else { return };
    let verify = || shop.said(&["verify", "agent.oci", "--publisher", "acme"]);
    let (ok, said) = verify();
    assert!(
        !ok && said.contains("trust/publishers/acme.json: not found") && said.contains("`vmbake bundle trust"),
        "{said}"
    );
    // Without a terminal.
    let (ok, said) = shop.said(&["trust", "agent.oci", "--key", "acme.pub"]);
    assert!(!ok && said.contains("asks      paths: ") && said.contains("stdin is not a terminal"), "{said}");
    let (ok, said) = shop.said(&["trust", "agent.oci", "--yes"]);
    assert!(!ok && said.contains("no key or publisher to verify the signature with"), "{said}");
    let (ok, said) = shop.said(&["trust", "agent.oci", "--key", "other.pub", "--yes"]);
    assert!(!ok && said.contains("not signed by other.pub"), "{said}");
    assert!(!shop.path("trust").exists());
    let (ok, said) = shop.said(&["trust", "agent.oci", "--key", "acme.pub", "--yes"]);
    assert!(ok && said.contains("wrote  trust/publishers/acme.json"), "{said}");
    let (ok, said) = verify();
    assert!(ok && said.contains("signed by publisher acme"), "{said}");

    let path = shop.path("trust/publishers/acme.json");
    let granted: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(granted["allows"]["paths"], json!(["/etc/agent", "/etc/systemd/system", "/opt/tool"]));
    let other = fs::read_to_string(shop.path("other.pub")).unwrap();
    for (key, value, expected) in [
        ("/allows/paths", json!(["/etc/agent", "/opt"]), "requests more than granted: paths /etc/systemd/system"),
        ("/names", json!("acme.agents"), "acme.agent does not start with \"acme.agents\""),
        ("/names", json!("beta."), "`names`: does not start with the publisher's name and a dot"),
        ("/publisher", json!("beta"), "`publisher`: does not match the name of the file"),
        ("/key", json!(other), "agent.oci: not signed by publisher acme: "),
        ("/key", json!("no key"), "trust/publishers/acme.json: `key`: "),
        ("/key", Value::Null, "expected either a key or an identity with its issuer"),
        ("/schema", json!(2), "`schema`: unsupported schema: expected 1"),
    ] {
        let mut changed = granted.clone();
        *changed.pointer_mut(key).unwrap() = value;
        fs::write(&path, changed.to_string()).unwrap();
        let (ok, said) = verify();
        assert!(!ok && said.contains(expected) && said.contains("hint: "), "{expected}: {said}");
    }
    // Another key does not get what was granted to the first.
    let mut changed = granted;
    changed["key"] = json!(other);
    fs::write(&path, changed.to_string()).unwrap();
    let (ok, said) = shop.said(&["trust", "agent.oci", "--key", "acme.pub", "--yes"]);
    assert!(!ok && said.contains("`key`: differs from that in the file"), "{said}");
}

#[test]
fn a_registry_keeps_bundles_and_signatures() {
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(shop) = shop() else { return };
    let registry = start(&shop.path("."));
    let place = format!("{}/acme/agent", registry.address);
    let (ok, said) = shop.said(&["push", "agent.oci", &format!("oci://{place}")]);
    assert!(
        ok && said.contains(&format!("{place}:1.0.0_a1@sha256:")) && said.contains("attached 1 signature"),
        "{said}"
    );
    // The same from a tar file is the same.
    let (ok, again) = shop.said(&["push", "agent.tar", &place]);
    assert!(ok && again.contains("sent 0 blobs") && again.lines().last() == said.lines().last(), "{again}");
    let name = format!("oci://{place}:1.0.0_a1");
    assert_eq!(shop.check(&name), (true, String::new()));
    let (ok, said) = shop.said(&["verify", &name, "--key", "acme.pub"]);
    assert!(ok, "{said}");
    let (ok, said) = shop.said(&["verify", &name, "--key", "other.pub"]);
    assert!(!ok && said.contains("not signed by other.pub"), "{said}");
    let local = shop.json(&["inspect", "agent.oci", "--json"]);
    assert_eq!(shop.json(&["inspect", &name, "--json"]), local);

    // What was granted for one repository is not granted for another.
    assert!(shop.said(&["trust", &name, "--key", "acme.pub", "--yes"]).0);
    assert!(shop.said(&["verify", &name, "--publisher", "acme"]).0);
    let elsewhere = format!("{}/acme/agents", registry.address);
    assert!(shop.said(&["push", "agent.oci", &elsewhere]).0);
    let (ok, said) = shop.said(&["verify", &format!("{elsewhere}:1.0.0_a1"), "--publisher", "acme"]);
    assert!(!ok && said.contains(&format!("{elsewhere} is not below {place}")), "{said}");

    // A tag is not moved without --force.
    shop.write("", r#", "directories": {"/etc/agent/more": {"mode": "0755"}}"#);
    shop.packed("changed.oci", &["--key=acme.key"]);
    let (ok, said) = shop.said(&["push", "changed.oci", &place]);
    assert!(
        !ok && said.contains(":1.0.0_a1: tag refers to sha256:") && said.contains("--force moves the tag"),
        "{said}"
    );
    assert!(shop.said(&["push", "changed.oci", &place, "--force"]).0);
    let digest = local["digest"].as_str().unwrap();
    let (ok, said) = shop.said(&["verify", &format!("{name}@{digest}"), "--key", "acme.pub"]);
    assert!(!ok && said.contains(&format!("expected {digest}")), "{said}");
    assert!(shop.said(&["verify", &format!("oci://{place}@{digest}"), "--key", "acme.pub"]).0);
    let (ok, said) = shop.said(&["inspect", &format!("oci://{place}")]);
    assert!(!ok && said.contains("neither tag nor digest given"), "{said}");
}
