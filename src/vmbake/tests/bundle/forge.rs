//! Forged layouts: modified parts of a valid one, with recomputed digests.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vmbake_bake::release::key::PrivateKey;
use vmbake_common::digest::Digest;
use vmbake_release::attachments::Attachment;
use vmbake_release::signature::sign_index;

/// The parts of a layout with one architecture after the other.
pub struct Forge {
    folder: PathBuf,
    pub index: Value,
    pub manifests: Vec<Value>,
    pub config: Vec<u8>,
    pub layers: Vec<u8>,
}

fn blob(folder: &Path, digest: &Value) -> Vec<u8> {
    fs::read(folder.join("blobs").join(digest.as_str().unwrap().replace(':', "/"))).unwrap()
}

impl Forge {
    /// Takes a layout in a folder apart.
    pub fn new(folder: &Path) -> Self {
        let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let listing = read(&fs::read(folder.join("index.json")).unwrap());
        let index = read(&blob(folder, &listing["manifests"][0]["digest"]));
        let entries = index["manifests"].as_array().unwrap();
        let manifests: Vec<Value> = entries.iter().map(|entry| read(&blob(folder, &entry["digest"]))).collect();
        let config = blob(folder, &manifests[0]["config"]["digest"]);
        let layers = blob(folder, &manifests[0]["layers"][0]["digest"]);
        Self { folder: folder.to_owned(), index, manifests, config, layers }
    }

    pub fn document(&self) -> Value {
        serde_json::from_slice(&self.config).unwrap()
    }

    /// Puts a blob there; returns its digest and length.
    pub fn put(&self, bytes: &[u8]) -> (Value, Value) {
        let digest = Digest::of(bytes);
        fs::write(self.folder.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        (json!(digest.to_string()), json!(bytes.len()))
    }

    /// Puts everything together again.
    pub fn write(&mut self) {
        let (config, layers) = (self.put(&self.config), self.put(&self.layers));
        let entries = self.index["manifests"].as_array().unwrap().len();
        for number in 0..self.manifests.len().min(entries) {
            let manifest = &mut self.manifests[number];
            (manifest["config"]["digest"], manifest["config"]["size"]) = config.clone();
            (manifest["layers"][0]["digest"], manifest["layers"][0]["size"]) = layers.clone();
            let manifest = manifest.to_string();
            let manifest = self.put(manifest.as_bytes());
            let entry = &mut self.index["manifests"][number];
            (entry["digest"], entry["size"]) = manifest;
        }
        let (digest, size) = self.put(self.index.to_string().as_bytes());
        let path = self.folder.join("index.json");
        let mut listing: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let entry = &mut listing["manifests"][0];
        (entry["digest"], entry["size"]) = (digest, size);
        fs::write(path, listing.to_string()).unwrap();
    }

    /// Signs the forged layout with the key; earlier signatures do not match.
    pub fn sign(&self, key: &Path) {
        let key = PrivateKey::from_pem(&fs::read(key).unwrap(), || None).unwrap();
        let path = self.folder.join("index.json");
        let mut listing: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let index = serde_json::from_value(listing["manifests"][0].clone()).unwrap();
        let Attachment { content, manifest, entry, .. } = sign_index(&index, &key).unwrap();
        for bytes in [&content.bytes[..], &manifest.bytes, b"{}"] {
            self.put(bytes);
        }
        listing["manifests"] = json!([listing["manifests"][0], entry]);
        fs::write(path, listing.to_string()).unwrap();
    }
}
