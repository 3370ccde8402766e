//! Container images of a layer: pinned by digest, and stored where `images` of any layer specifies.

use serde_json::{Value, json};

use super::yard::Yard;

const ASKED: &str = r#", "container_images": ["registry.example/pause:3.10", "registry.example/pause:3.11"]"#;

fn images(manifest: &Value) -> Vec<&str> {
    manifest["images"].as_array().unwrap().iter().map(|image| image["image"].as_str().unwrap()).collect()
}

#[test]
fn container_images_are_pinned_and_laid_out() {
    let Some(yard) = Yard::new() else { return };
    yard.layer("place", r#", "images": "/var/lib/images""#);
    yard.layer("box", &(r#", "requires": ["place"]"#.to_owned() + ASKED));
    let said = yard.updated();
    assert!(said.contains("registry.example/pause:3.11"), "{said}");
    let (manifest, text) = (yard.manifest(), yard.text());
    assert_eq!(images(&manifest), ["registry.example/pause:3.10", "registry.example/pause:3.11"]);
    assert_eq!(manifest["images"][0]["proof"], json!({"type": "first-use"}));
    let digest = manifest["images"][0]["digest"].as_str().unwrap().to_owned();
    yard.updated();
    assert_eq!(yard.text(), text, "nothing new changes no byte");
    let (ok, said) = yard.update(&["--check"]);
    assert!(ok && said.is_empty(), "{said}");
    let (ok, said) = yard.update(&["--only=registry.example/pause:3.11"]);
    assert!(ok && yard.text() == text, "{said}");
    let (ok, said) = yard.show();
    assert!(ok && said.contains("as first downloaded, not signed"), "{said}");

    std::fs::remove_dir_all(yard.path("store")).unwrap();
    let (ok, said) = yard.fetch();
    assert!(ok && said.contains("fetched  registry.example/pause:3.10, "), "{said}");
    let (ok, said) = yard.bake();
    assert!(ok, "{said}");
    let index: Value = serde_json::from_str(&yard.ask("cat", "/var/lib/images/index.json")).unwrap();
    let entries = index["manifests"].as_array().unwrap();
    let names: Vec<_> = entries.iter().map(|entry| &entry["annotations"]["io.containerd.image.name"]).collect();
    assert_eq!(names, ["registry.example/pause:3.10", "registry.example/pause:3.11"]);
    assert_eq!(entries[0]["digest"], Value::from(digest));
}

#[test]
fn a_manifest_has_the_images_that_its_layers_ask_for() {
    let Some(yard) = Yard::new() else { return };
    yard.layer("box", &(r#", "images": "/images""#.to_owned() + ASKED));
    yard.updated();
    let good = yard.manifest();
    let mut forged = good.clone();
    forged["images"].as_array_mut().unwrap().pop();
    yard.forge(&forged);
    let (ok, said) = yard.bake();
    let expected =
        "layer box requests the container image registry.example/pause:3.11, which the manifest does not pin";
    assert!(!ok && said.contains(expected) && said.contains("hint: run `vmbake update KIND`"), "{said}");
    let mut forged = good.clone();
    forged.as_object_mut().unwrap().remove("requests");
    yard.forge(&forged);
    let (ok, said) = yard.show();
    assert!(!ok && said.contains("no source defines the required proof"), "{said}");
    yard.forge(&good);

    let fewer = ASKED.replace(r#""registry.example/pause:3.10", "#, "");
    yard.layer("box", &(r#", "images": "/images""#.to_owned() + &fewer));
    let (ok, said) = yard.bake();
    assert!(!ok && said.contains("layer box requests other downloads or container images"), "{said}");
    yard.updated();
    assert_eq!(images(&yard.manifest()), ["registry.example/pause:3.11"]);
    assert!(yard.bake().0);
}
