//! Layouts written by programs that copy bundles, which list the same documents differently.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use vmbake_common::digest::Digest;

use super::shop::Shop;
use crate::registry::start;
use crate::tools::have;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A copied layout, whose list can be written anew.
struct Copy<'a> {
    shop: &'a Shop,
    index: Value,
    signature: Value,
    manifests: Vec<Value>,
}

impl<'a> Copy<'a> {
    fn new(shop: &'a Shop) -> Self {
        let folder = shop.path("agent.oci");
        let parse = |path: &Path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
        let listing = parse(&folder.join("index.json"));
        let [index, signature] = &listing["manifests"].as_array().unwrap()[..] else { panic!("{listing}") };
        let blob = folder.join("blobs").join(index["digest"].as_str().unwrap().replace(':', "/"));
        let manifests = parse(&blob)["manifests"].as_array().unwrap().clone();
        Self { shop, index: index.clone(), signature: signature.clone(), manifests }
    }

    /// The index as others list it, below a tag.
    fn untyped(&self, tag: &str) -> Value {
        let mut index = self.index.clone();
        index.as_object_mut().unwrap().remove("artifactType");
        index["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
        index
    }

    /// An index that lists `manifests`, as a blob of the layout.
    fn list(&self, manifests: &Value, tag: &str) -> Value {
        let text = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}).to_string();
        self.blob(text.as_bytes(), INDEX, tag)
    }

    fn blob(&self, bytes: &[u8], kind: &str, tag: &str) -> Value {
        let digest = Digest::of(bytes);
        fs::write(self.shop.path("agent.oci/blobs/sha256").join(digest.hex()), bytes).unwrap();
        let annotations = json!({"org.opencontainers.image.ref.name": tag});
        json!({"mediaType": kind, "digest": digest.to_string(), "size": bytes.len(), "annotations": annotations})
    }

    /// The tag below which a registry without a list of referrers keeps one.
    fn tag(&self) -> String {
        self.index["digest"].as_str().unwrap().replace(':', "-")
    }

    /// Lists these; returns what the bundle is then, and whether it is signed by `acme.pub`.
    fn judged(&self, manifests: &[Value]) -> (String, (bool, String)) {
        let text = json!({"schemaVersion": 2, "manifests": manifests}).to_string();
        fs::write(self.shop.path("agent.oci/index.json"), text).unwrap();
        let (_, inspected) = self.shop.said(&["inspect", "agent.oci", "--json"]);
        (inspected, self.shop.said(&["verify", "agent.oci", "--key", "acme.pub"]))
    }
}

fn shop() -> Option<Shop> {
    let shop = Shop::new()?;
    shop.key("acme");
    shop.packed("agent.oci", &["--key=acme.key"]);
    Some(shop)
}

#[test]
fn a_copy_is_read_however_its_documents_are_listed() {
    let Some(shop) = shop() else { return };
    let copy = Copy::new(&shop);
    let (index, signature) = (copy.untyped("1.0.0_a1"), copy.signature.clone());
    let mut bare = signature.clone();
    bare.as_object_mut().unwrap().remove("artifactType");
    let fallback = copy.list(&json!([signature]), &copy.tag());
    let many = vec![index.clone(); 64];
    let lists = [
        vec![copy.index.clone(), signature.clone()],
        // As `oras cp -r` lists them, in whatever order; a second tag lists the index once more.
        vec![copy.manifests[0].clone(), signature.clone(), index.clone()],
        vec![index.clone(), copy.untyped("latest"), copy.manifests[1].clone(), signature.clone()],
        vec![index.clone(), bare],
        // As skopeo does.
        vec![index.clone(), fallback],
        [&many[..], &[signature]].concat(),
    ];
    let (expected, _) = copy.judged(&lists[0]);
    assert!(expected.contains("\"signatures\": 1"), "{expected}");
    for list in &lists {
        let (inspected, (ok, said)) = copy.judged(list);
        assert_eq!(inspected, expected, "{list:?}");
        assert!(ok && said.contains("signed by acme.pub"), "{list:?}: {said}");
    }

    if !have(&["docker-registry"]) {
        return;
    }
    let registry = start(&shop.path("."));
    let place = format!("{}/acme/agent", registry.address);
    let (ok, said) = shop.said(&["push", "agent.oci", &place]);
    assert!(ok && said.contains("attached 1 signature"), "{said}");
    let (ok, said) = shop.said(&["verify", &format!("{place}:1.0.0_a1"), "--key", "acme.pub"]);
    assert!(ok, "{said}");
}

#[test]
fn a_list_leads_to_one_bundle_and_to_its_signatures_only() {
    let Some(shop) = shop() else { return };
    let copy = Copy::new(&shop);
    let (index, signature) = (copy.untyped("1.0.0_a1"), copy.signature.clone());
    let none = "index.json: expected exactly one bundle";
    let digest = copy.index["digest"].as_str().unwrap();
    let text = fs::read_to_string(shop.path("agent.oci/blobs").join(digest.replace(':', "/"))).unwrap();
    let second = copy.blob(text.replace("1.0.0+a1", "1.0.0+a2").as_bytes(), INDEX, "other");
    let mut typed = second.clone();
    typed["artifactType"] = copy.index["artifactType"].clone();
    for (list, expected) in [
        (vec![signature.clone()], none),
        (vec![copy.manifests[0].clone(), signature.clone()], none),
        (vec![copy.list(&json!([signature]), "1.0.0_a1")], none),
        (vec![copy.blob(b"[", INDEX, "1.0.0_a1")], none),
        (vec![index.clone(), second], none),
        (vec![index.clone(), typed], none),
        (vec![index.clone(); 65], "agent.oci: contains 65 indexes in index.json, more than the limit of 64"),
    ] {
        let (said, _) = copy.judged(&list);
        assert!(said.contains(expected), "{list:?}: {said}");
    }

    let unsigned = "no attached document is a valid signature";
    let path = shop.path("agent.oci/blobs").join(signature["digest"].as_str().unwrap().replace(':', "/"));
    let text = fs::read_to_string(path).unwrap();
    let other = copy.manifests[0]["digest"].as_str().unwrap();
    let of_other = copy.blob(text.replace(digest, other).as_bytes(), "application/vnd.oci.image.manifest.v1+json", "s");
    let typed = text.replace("application/vnd.dev.sigstore.bundle.v0.3+json\",\"size\"", "text/plain\",\"size\"");
    let no_bundle = copy.blob(typed.as_bytes(), "application/vnd.oci.image.manifest.v1+json", "s");
    assert_ne!(typed, text);
    for list in [
        vec![index.clone()],
        vec![index.clone(), of_other],
        vec![index.clone(), no_bundle],
        // The tag of another index, and a list that is none.
        vec![index.clone(), copy.list(&json!([signature]), &copy.tag().replace('0', "1"))],
        vec![index, copy.blob(b"[", INDEX, &copy.tag())],
    ] {
        let (_, (ok, said)) = copy.judged(&list);
        assert!(!ok && said.contains(unsigned), "{list:?}: {said}");
    }
}
