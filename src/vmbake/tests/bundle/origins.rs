//! Origins of paths in an image with bundles: from a layer to its bundle, publisher and signer.

use std::fs;

use serde_json::{Value, json};

use super::composing::{TRUST, bake, shop};
use super::shop::Shop;
use crate::registry::start;
use crate::tools::have;

fn sidecar(shop: &Shop, end: &str) -> Value {
    serde_json::from_slice(&fs::read(shop.path(&format!("dist/box.o.amd64.{end}"))).unwrap()).unwrap()
}

fn lock(shop: &Shop) -> Value {
    serde_json::from_slice(&fs::read(shop.path("m/bundles.lock.json")).unwrap()).unwrap()
}

/// The entry of a list that has that name.
fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap_or(&Value::Null)
}

#[test]
fn a_path_leads_to_whoever_published_and_signed_its_bundle() {
    let Some(shop) = shop() else { return };
    assert!(bake(&shop, &["--with=agent.oci"]).0);
    let digest = lock(&shop)["bundles"]["acme.agent"]["digest"].as_str().unwrap().to_owned();
    let bundle = sidecar(&shop, "json")["vmconfig"]["bundles"]["acme.agent"].clone();
    let signer = bundle["signer"].as_str().unwrap().to_owned();
    assert!(signer.starts_with("key sha256:") && signer.len() == 75, "{signer}");
    let expected = json!({"version": "1.0.0+a1", "digest": digest, "publisher": "acme", "signer": signer, "layers": ["acme.agent"]});
    assert_eq!(bundle, expected);

    let lines =
        format!("bundle    acme.agent 1.0.0+a1\n  digest  {digest}\n  by      publisher acme\n  signed  by {signer}\n");
    for path in ["/opt/tool/bin/tool", "/etc/agent/agent.conf"] {
        let said = shop.yard.ask("explain", path);
        assert!(said.contains("layer     acme.agent 1, ") && said.contains(&lines), "{said}");
    }
    // The image's other layers have no bundle.
    let said = shop.yard.ask("explain", "/etc/os-release");
    assert!(said.contains("layer     hygiene 1, ") && !said.contains("bundle"), "{said}");
    let args = ["explain", "dist/box.o.amd64.raw", "/opt/tool/bin/tool", "--json"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vmbake"));
    let output = command.args(args).current_dir(shop.path(".")).output().unwrap();
    let explained: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected =
        json!({"name": "acme.agent", "version": "1.0.0+a1", "digest": digest, "publisher": "acme", "signer": signer});
    assert_eq!(explained["bundle"], expected);

    // A record of another signer is that of another image.
    let path = shop.path("dist/box.o.amd64.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(&signer, "key sha256:0")).unwrap();
    let (ok, said) = shop.yard.run(&["verify", "image", "dist", TRUST]);
    assert!(!ok && said.contains("box.o.amd64.json"), "{said}");
}

#[test]
fn bills_of_materials_and_provenance_name_bundles() {
    let Some(shop) = shop() else { return };
    assert!(bake(&shop, &["--with=agent.oci"]).0);
    let digest = lock(&shop)["bundles"]["acme.agent"]["digest"].as_str().unwrap().to_owned();
    let hex = digest.strip_prefix("sha256:").unwrap();

    let spdx = sidecar(&shop, "spdx.json");
    let bundle = named(&spdx["packages"], "acme.agent");
    assert_eq!(bundle["checksums"], json!([{"algorithm": "SHA256", "checksumValue": hex}]));
    assert_eq!(bundle["versionInfo"], "1.0.0+a1");
    let comment = bundle["comment"].as_str().unwrap();
    assert!(
        comment.starts_with("layer: acme.agent\nproof: signed by key sha256:") && comment.ends_with("publisher: acme"),
        "{comment}"
    );
    let tool = named(&spdx["packages"], "acme.tool");
    let relation = json!({"spdxElementId": bundle["SPDXID"], "relationshipType": "CONTAINS", "relatedSpdxElement": tool["SPDXID"]});
    assert!(spdx["relationships"].as_array().unwrap().contains(&relation), "{relation}");

    let bom = sidecar(&shop, "cdx.json");
    let (bundle, tool) = (named(&bom["components"], "acme.agent"), named(&bom["components"], "acme.tool"));
    assert_eq!(bundle["hashes"], json!([{"alg": "SHA-256", "content": hex}]));
    assert_eq!(named(&bundle["properties"], "vmbake:publisher")["value"], "acme");
    let dependencies = bom["dependencies"].as_array().unwrap();
    let of_bundle = dependencies.iter().find(|one| one["ref"] == bundle["bom-ref"]).unwrap();
    assert_eq!(of_bundle["dependsOn"], json!([tool["bom-ref"]]));

    let materials = sidecar(&shop, "provenance.json")["predicate"]["buildDefinition"]["resolvedDependencies"].clone();
    let bundle = named(&materials, "bundle/acme.agent");
    assert_eq!(bundle["digest"], json!({"sha256": hex}));
    assert_eq!(
        (&bundle["annotations"]["version"], &bundle["annotations"]["publisher"]),
        (&json!("1.0.0+a1"), &json!("acme"))
    );
    // A file has no address that means anything to others.
    assert_eq!(bundle.get("uri"), None);
    let (ok, said) = shop.yard.run(&["verify", "image", "dist", TRUST]);
    assert!(ok, "{said}");
}

#[test]
fn where_a_bundle_was_is_told_and_changes_no_byte() {
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(shop) = shop() else { return };
    assert!(bake(&shop, &["--with=agent.oci"]).0);
    let image = fs::read(shop.path("dist/box.o.amd64.raw")).unwrap();
    let registry = start(&shop.path("."));
    let place = format!("{}/acme/agent", registry.address);
    assert!(shop.said(&["push", "agent.oci", &place]).0);
    let with = format!("--with={place}:1.0.0_a1");
    let args = ["bake", "box", "--os=o", "--manifests=m", "--layers=layers", "--base=base.raw", TRUST, "--out=dist"];
    let (ok, said) = shop.yard.run(&[&args[..], &["--format=raw", "--force", &with]].concat());
    assert!(ok, "{said}");
    assert!(fs::read(shop.path("dist/box.o.amd64.raw")).unwrap() == image, "the image is another one");
    let locked = lock(&shop)["bundles"]["acme.agent"].clone();
    assert_eq!(locked["repository"], json!(place));
    let reference = format!("oci://{place}@{}", locked["digest"].as_str().unwrap());
    assert_eq!(sidecar(&shop, "inputs.json")["bundles"], json!({"acme.agent": reference}));
    let materials = sidecar(&shop, "provenance.json")["predicate"]["buildDefinition"]["resolvedDependencies"].clone();
    assert_eq!(named(&materials, "bundle/acme.agent")["uri"], json!(reference));

    let args =
        ["verify", "image", "dist", "--rebuild", "--base=base.raw", "--layers=layers", "--layers=agent/layers", TRUST];
    let (ok, said) = shop.yard.run(&args);
    assert!(ok, "{said}");
    // A copy in a file does not make the lock forget the repository.
    assert!(bake(&shop, &["--with=agent.oci"]).0);
    assert_eq!(lock(&shop)["bundles"]["acme.agent"], locked);
}

#[test]
fn an_archive_does_not_leave_out_the_bundles_of_an_image() {
    let Some(shop) = shop() else { return };
    let args = ["bake", "box", "--os=o", "--manifests=m", "--layers=layers", "--base=base.raw", "--offline", TRUST];
    let (ok, said) = shop.yard.run(&[&args[..], &["--out=dist", "--format=qcow2", "--with=agent.oci"]].concat());
    assert!(ok, "{said}");
    let archive = |more: &[&str]| {
        let args = ["archive", "create", "dist/box.o.amd64.qcow2", "-o", "a.tar", "--base=base.raw", "--layers=layers"];
        shop.yard.run(&[&args[..], &[TRUST], more].concat())
    };
    for more in [&[][..], &["--inputs"]] {
        let (ok, said) = archive(more);
        assert!(!ok && said.contains("archives do not support bundles, found acme.agent"), "{said}");
        assert!(said.contains("hint: use --images to include image files") && !shop.path("a.tar").exists(), "{said}");
    }
    let (ok, said) = archive(&["--images"]);
    assert!(ok, "{said}");
    // A kind whose layers name bundles has them, too.
    shop.yard.layer("box", r#", "bundles": ["registry.example/acme/agent:1"]"#);
    let kind =
        ["archive", "create", "box", "--os=o", "-o", "b.tar", "--manifest=m/box.o.amd64.json", "--base=base.raw"];
    let (ok, said) = shop.yard.run(&[&kind[..], &["--layers=layers", TRUST]].concat());
    assert!(!ok && said.contains("archives do not support bundles, found registry.example/acme/agent:1"), "{said}");
}
