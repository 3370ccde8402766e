//! Packing a directory into a layout: artifacts are pinned and verified, and the result is reproducible.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use vmbake_common::digest::Digest;

use super::shop::{Shop, files};
use crate::requested::yard::{archive, next_site, sha256};
use crate::tools::have;

#[test]
fn a_skeleton_is_sound_with_and_without_slashes() {
    let Some(shop) = Shop::new() else { return };
    let (ok, said) = shop.said(&["init", "new", "--publisher", "acme"]);
    assert!(ok && said.contains("vmbake bundle pack new -o new.oci"), "{said}");
    assert_eq!(shop.said(&["check", "new"]), (true, String::new()));
    let (ok, said) = shop.said(&["init", "new", "--publisher", "acme"]);
    assert!(!ok && said.contains("new/bundle.json: already exists"), "{said}");
    let (ok, said) = shop.said(&["init", "New"]);
    assert!(!ok && said.contains("`name`: \"New\" is invalid: expected at most"), "{said}");

    // Examples are those that look like a member, or like its rest.
    let is_member = |line: &str| line.starts_with(['"', '}']) || line.starts_with("  \"");
    for (name, fixes) in [
        (
            "new/bundle.json",
            &[(
                "\"/usr/local/bin/new\", \"/etc/systemd/system\"]\n",
                "\"/usr/local/bin\", \"/etc/systemd/system\"],\n",
            )][..],
        ),
        ("new/layers/acme.new/layer.json", &[("\"sha", "\"sha")]),
    ] {
        let text = fs::read_to_string(shop.path(name)).unwrap();
        let lines = text.lines().map(|line| match line.trim_start().strip_prefix("// ") {
            Some(member) if is_member(member) => format!("{member}\n"),
            _ => format!("{line}\n"),
        });
        let text = fixes.iter().fold(lines.collect::<String>(), |text, (from, to)| text.replace(from, to));
        fs::write(shop.path(name), text).unwrap();
    }
    // Setuid, scripts and ports that nothing has may be asked for.
    assert_eq!(shop.said(&["check", "new"]), (true, String::new()));
}

#[test]
fn the_same_folder_gives_the_same_bytes_online_and_offline() {
    let Some(shop) = Shop::new() else { return };
    shop.key("acme");
    let key = "--key=acme.key";
    let (ok, said) = shop.pack("one.oci", &[key]);
    assert!(ok && said.contains("   pinned  acme.agent acme.tool 1.0, "), "{said}");
    let pins = fs::read(shop.path("agent/pins.json")).unwrap();
    let offline = shop.packed("two.oci", &[key, "--offline"]);
    assert_eq!(files(&shop.path("one.oci")), files(&offline));
    assert_eq!(fs::read(shop.path("agent/pins.json")).unwrap(), pins);
    let refreshed = shop.packed("three.oci", &[key, "--refresh"]);
    assert_eq!(files(&refreshed), files(&offline));
    let [first, second] = ["a.tar", "b.tar"].map(|name| fs::read(shop.packed(name, &[key, "--offline"])).unwrap());
    assert_eq!(first, second);

    let (ok, said) = shop.pack("one.oci", &[]);
    assert!(!ok && said.contains("one.oci: already exists") && said.contains("--force"), "{said}");
    shop.packed("one.oci", &["--force", key, "--offline"]);
    assert_eq!(files(&shop.path("one.oci")), files(&offline));
    fs::create_dir(shop.path("precious")).unwrap();
    let (ok, said) = shop.pack("precious", &["--force"]);
    assert!(!ok && said.contains("precious: already exists"), "{said}");

    fs::remove_dir_all(shop.path("store")).unwrap();
    let (ok, said) = shop.pack("four.oci", &["--offline"]);
    assert!(!ok && said.contains("acme.tool") && !shop.path("four.oci").exists(), "{said}");
    fs::remove_file(shop.path("agent/pins.json")).unwrap();
    let (ok, said) = shop.pack("four.oci", &["--offline"]);
    assert!(
        !ok && said.contains("acme.tool: not pinned") && said.contains("hint: run the command once without"),
        "{said}"
    );
}

/// Has the layer take the newest version of the tool that its site names, proven by a list of checksums.
fn follow_the_newest(shop: &Shop) {
    let path = "agent/layers/acme.agent/layer.json";
    let mut layer: Value = serde_json::from_str(&fs::read_to_string(shop.path(path)).unwrap()).unwrap();
    let tool = &mut layer["downloads"]["acme.tool"];
    tool.as_object_mut().unwrap().remove("sha256");
    tool["checksums"] = json!("https://up.example/v{version}/sums.txt");
    tool["version"] = json!({"text": {"url": "https://up.example/latest", "after": "v"}});
    shop.put(path, &layer.to_string());
}

#[test]
fn pins_are_fetched_by_their_digests_whatever_is_new() {
    let Some(shop) = Shop::new() else { return };
    follow_the_newest(&shop);
    let first = shop.packed("one.oci", &[]);
    let pins = fs::read_to_string(shop.path("agent/pins.json")).unwrap();
    assert!(pins.contains(r#""version": "1.0""#), "{pins}");
    let site = next_site();
    let pack = |out: &str, more: &[&str]| {
        fs::remove_dir_all(shop.path("store")).unwrap();
        shop.yard.online_at(&site, &["bundle", "pack", "agent", "-o", out], more)
    };
    let (ok, said) = pack("two.oci", &[]);
    assert!(ok && !said.contains("pinned"), "{said}");
    assert_eq!(files(&shop.path("two.oci")), files(&first));
    assert_eq!(fs::read_to_string(shop.path("agent/pins.json")).unwrap(), pins);

    // Neither an artifact nor a document with another digest is taken for what is pinned, and nothing newer in its place.
    let sums = Digest::of(&site.body("/v1.0/sums.txt")).hex();
    for digest in [sha256("amd64"), sums] {
        let wrong = pins.replace(&digest, &"0".repeat(64));
        fs::write(shop.path("agent/pins.json"), &wrong).unwrap();
        let (ok, said) = pack("three.oci", &[]);
        assert!(!ok && said.contains("acme.tool: the pin in pins.json cannot be verified"), "{said}");
        assert!(
            said.contains("hint: use --mirror or --store with a location that still has it, or --refresh"),
            "{said}"
        );
        assert!(!shop.path("three.oci").exists());
        assert_eq!(fs::read_to_string(shop.path("agent/pins.json")).unwrap(), wrong);
    }
    let (ok, said) = pack("three.oci", &["--refresh"]);
    assert!(ok && said.contains("   pinned  acme.agent acme.tool 2.0, "), "{said}");
}

#[test]
fn layers_that_ask_for_something_else_are_resolved_again() {
    let Some(shop) = Shop::new() else { return };
    shop.packed("one.oci", &[]);
    // By a list of checksums instead of a stated digest.
    follow_the_newest(&shop);
    let (ok, said) = shop.pack("two.oci", &[]);
    assert!(ok && said.contains("   pinned  acme.agent acme.tool 1.0, "), "{said}");
}

#[test]
fn a_layout_has_artifacts_under_the_digests_of_their_upstreams() {
    let Some(shop) = Shop::new() else { return };
    let layout = shop.packed("agent.oci", &[]);
    for arch in ["amd64", "arm64"] {
        assert_eq!(fs::read(layout.join("blobs/sha256").join(sha256(arch))).unwrap(), archive(arch));
    }
    let summary = shop.json(&["inspect", "agent.oci", "--json"]);
    assert_eq!(summary["artifacts"]["o.amd64"]["acme.tool"]["digest"], json!(format!("sha256:{}", sha256("amd64"))));
    assert_eq!(summary["version"], json!("1.0.0+a1"));
    assert_eq!(summary["signatures"], json!(0));
    assert_eq!(summary["variables"][1]["name"], json!("AGENT_SERVER"));
    assert_eq!(summary["variables"][1]["required"], json!(true));
    let (ok, text) = shop.said(&["inspect", "agent.oci"]);
    for line in [
        "bundle    acme.agent 1.0.0+a1: An agent.\n",
        "for       o, amd64, arm64\n",
        "keeps     /var/lib/agent\n",
        "asks      paths: /etc/agent, /etc/systemd/system, /opt/tool\n",
        "variable  AGENT_LEVEL, default \"info\"\n",
        "variable  AGENT_SERVER, required\n",
        "signed    no\n",
    ] {
        assert!(ok && text.contains(line), "{line}: {text}");
    }

    if !have(&["skopeo"]) {
        return;
    }
    // Another reader of layouts finds the same index by its tag.
    let found = Command::new("skopeo")
        .args(["inspect", "--raw", "oci:agent.oci:1.0.0_a1"])
        .current_dir(shop.path("."))
        .output();
    let found = found.unwrap();
    assert!(found.status.success(), "{found:?}");
    assert_eq!(json!(Digest::of(&found.stdout).to_string()), summary["digest"]);
    let index: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(index["manifests"].as_array().unwrap().len(), 2);
    assert_eq!(index["artifactType"], json!("application/vnd.vmbake.bundle.v1"));
}
