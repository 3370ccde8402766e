//! Forged releases: each invalid part of their documents is refused, and no output is written.

use serde_json::{Value, json};
use vmbake_common::digest::Digest;
use vmbake_release::pull::PullError;
use vmbake_store::http::Payload;
use vmbake_store::registry::Repository;

use super::yard::{How, Yard};
use crate::release::lab::NAME;

/// The documents of a release with one raw image.
#[derive(Clone)]
struct Release {
    index: Value,
    manifest: Value,
    config: Value,
}

fn bytes(document: &Value) -> Vec<u8> {
    serde_json::to_vec(document).unwrap()
}

fn describe(descriptor: &mut Value, bytes: &[u8]) {
    descriptor["digest"] = json!(Digest::of(bytes).to_string());
    descriptor["size"] = json!(bytes.len());
}

impl Release {
    fn read(yard: &Yard, digest: &str) -> Self {
        let index = yard.document(digest);
        let manifest = yard.document(index["manifests"][0]["digest"].as_str().unwrap());
        let config = &manifest["config"];
        let digest: Digest = config["digest"].as_str().unwrap().parse().unwrap();
        let config = yard.repository().read_blob(&digest, config["size"].as_u64().unwrap()).unwrap();
        Self { config: serde_json::from_slice(&config).unwrap(), index, manifest }
    }

    /// Puts it where the digests lead to; tells the digest of the index.
    fn put(mut self, repository: &Repository) -> String {
        let blob = |bytes: &[u8]| repository.put_blob(&Digest::of(bytes), Payload::Bytes(bytes), None).unwrap();
        let config = bytes(&self.config);
        blob(&config);
        describe(&mut self.manifest["config"], &config);
        let put = |document: &Value| {
            let (bytes, media_type) = (bytes(document), document["mediaType"].as_str().unwrap());
            repository.put_manifest(&Digest::of(&bytes).to_string(), media_type, &bytes).unwrap();
            bytes
        };
        let manifest = put(&self.manifest);
        for entry in self.index["manifests"].as_array_mut().unwrap() {
            describe(entry, &manifest);
        }
        Digest::of(&put(&self.index)).to_string()
    }

    /// Puts a blob and makes it the first layer.
    fn first_layer(&mut self, repository: &Repository, content: &[u8]) {
        repository.put_blob(&Digest::of(content), Payload::Bytes(content), None).unwrap();
        describe(&mut self.manifest["layers"][0], content);
    }
}

/// A change, what it is called, whether the error is the right one, and words of it.
type Forgery<'a> = (&'a str, &'a dyn Fn(&mut Release), fn(&PullError) -> bool, &'a str);

#[test]
fn no_part_of_a_release_is_believed() {
    let Some(yard) = Yard::new() else { return };
    let pushed = yard.push("signed", &["raw"], &["1"], None, false).unwrap();
    let whole = Release::read(&yard, &pushed.digest);
    // What follows fails by its change alone.
    let unchanged = whole.clone().put(&yard.repository());
    yard.pull(&format!("@{unchanged}"), "unchanged", &How::default()).unwrap();
    let repository = yard.repository();
    let frame = |content: &[u8]| zstd::bulk::compress(content, 3).unwrap();
    let chunk = 4 << 20;
    let bomb = {
        // Says nothing of its length.
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        std::io::copy(&mut std::io::Read::take(std::io::repeat(0), 1 << 30), &mut encoder).unwrap();
        encoder.finish().unwrap()
    };
    let invalid: fn(&PullError) -> bool = |error| matches!(error, PullError::Invalid { .. });
    let wrong_chunk: fn(&PullError) -> bool = |error| matches!(error, PullError::Chunk { .. });
    let first = |release: &Release| release.manifest["layers"][0].clone();
    let files = |release: &mut Release, name: &str| {
        release.config["files"][name] = json!(Digest::of(b"{}").to_string());
    };
    let forgeries: &[Forgery<'_>] = &[
        (
            "another sort of index",
            &|release| release.index["artifactType"] = json!("application/x"),
            |error| matches!(error, PullError::NoRelease { .. }),
            "application/x",
        ),
        (
            "another sort of layer",
            &|release| release.manifest["layers"][1]["mediaType"] = json!("application/x"),
            |error| matches!(error, PullError::Layer { layer: 1, .. }),
            "layer 1 has media type \"application/x\"",
        ),
        (
            "a layer less",
            &|release| drop(release.manifest["layers"].as_array_mut().unwrap().pop()),
            invalid,
            "do not match a disk of",
        ),
        (
            "a layer more",
            &|release| {
                let layer = first(release);
                release.manifest["layers"].as_array_mut().unwrap().push(layer);
            },
            invalid,
            "do not match a disk of",
        ),
        ("a longer disk", &|release| release.config["size"] = json!(u64::MAX), invalid, "do not match a disk of"),
        ("an empty disk", &|release| release.config["size"] = json!(0), invalid, "do not match a disk of"),
        ("larger chunks", &|release| release.config["chunk_size"] = json!(u64::MAX), invalid, "do not match a disk of"),
        ("no chunks", &|release| release.config["chunk_size"] = json!(0), invalid, "do not match a disk of"),
        (
            "a compressed chunk that is too long",
            &|release| release.manifest["layers"][0]["size"] = json!(chunk * 2),
            invalid,
            "too many for a chunk",
        ),
        ("a way out", &|release| release.config["name"] = json!("../x"), invalid, "\"../x\" is not a valid image name"),
        ("a hidden name", &|release| release.config["name"] = json!(".x"), invalid, "\".x\" is not a valid image name"),
        ("a file outside", &|release| files(release, "../x"), invalid, "\"../x\" is not the name of a file"),
        ("a file of others", &|release| files(release, "other.json"), invalid, "\"other.json\" is not the name"),
        ("a hidden file", &|release| files(release, ".bashrc"), invalid, "\".bashrc\" is not the name"),
        ("the image as a file", &|release| files(release, &format!("{NAME}.raw")), invalid, "is not the name"),
        (
            "another architecture",
            &|release| release.config["architecture"] = json!("arm64"),
            invalid,
            "which differs from the index",
        ),
        (
            "another format",
            &|release| release.config["format"] = json!("qcow2"),
            invalid,
            "which differs from the index",
        ),
        (
            "two images of a sort",
            &|release| {
                let entry = release.index["manifests"][0].clone();
                release.index["manifests"].as_array_mut().unwrap().push(entry);
            },
            |error| matches!(error, PullError::Image { found: "several images", .. }),
            "several images of amd64 as raw",
        ),
        (
            "no images",
            &|release| release.index["manifests"][0]["artifactType"] = json!("x"),
            |error| matches!(error, PullError::Image { found: "no image", .. }),
            "available: none",
        ),
        (
            "another checksum",
            &|release| release.config["checksum"] = json!({"fsverity": Digest::of(b"").to_string()}),
            invalid,
            "provenance does not cover tools.o.amd64.raw with fsverity:",
        ),
        (
            "a checksum of another sort",
            &|release| release.config["checksum"] = json!({"digest": Digest::of(b"").to_string()}),
            invalid,
            "is not a checksum of a raw image",
        ),
        (
            "no provenance",
            &|release| {
                let name = format!("{NAME}.provenance.json");
                release.config["files"].as_object_mut().unwrap().remove(&name);
            },
            invalid,
            "no tools.o.amd64.provenance.json in the release",
        ),
        (
            "provenance that is none",
            &|release| {
                let name = format!("{NAME}.provenance.json");
                release.config["files"][name] = json!(Digest::of(b"{}").to_string());
            },
            invalid,
            "provenance has an unexpected type",
        ),
        (
            "a file that is not there",
            &|release| release.config["files"]["SHA256SUMS"] = json!(Digest::of(b"absent").to_string()),
            |error| matches!(error, PullError::Registry(error) if error.is_absent()),
            "404",
        ),
        (
            "a chunk of more content",
            &|release| release.first_layer(&repository, &frame(&vec![0; chunk + 1])),
            wrong_chunk,
            "chunk 0",
        ),
        (
            "a chunk of less content",
            &|release| release.first_layer(&repository, &frame(&vec![0; chunk - 1])),
            wrong_chunk,
            "chunk 0",
        ),
        ("a bomb", &|release| release.first_layer(&repository, &bomb), wrong_chunk, "chunk 0"),
        (
            "a truncated frame",
            &|release| {
                let frame = frame(&vec![0; chunk]);
                release.first_layer(&repository, &frame[..frame.len() - 1]);
            },
            wrong_chunk,
            "chunk 0",
        ),
        ("no frame", &|release| release.first_layer(&repository, b"no frame"), wrong_chunk, "chunk 0"),
        (
            "another content",
            &|release| release.first_layer(&repository, &frame(&vec![1; chunk])),
            wrong_chunk,
            "chunk 0",
        ),
        (
            "chunks in another order",
            &|release| {
                let last = release.config["chunks"].as_array().unwrap().len() - 2;
                release.manifest["layers"].as_array_mut().unwrap().swap(0, last);
                release.config["chunks"].as_array_mut().unwrap().swap(0, last);
            },
            |error| matches!(error, PullError::Checksum { .. }),
            ", found fsverity:",
        ),
    ];
    for (number, (what, change, is_right, words)) in forgeries.iter().enumerate() {
        let mut release = whole.clone();
        change(&mut release);
        let digest = release.put(&repository);
        assert_ne!(digest, pushed.digest, "{what}");
        let out = format!("forged-{number}");
        let error = yard.pull(&format!("@{digest}"), &out, &How::default()).unwrap_err();
        assert!(is_right(&error), "{what}: {error:?}");
        let said = vmbake_common::escape::chain(&error);
        assert!(said.contains(words), "{what}: {said}");
        assert!(yard.visible(&out).is_empty(), "{what}");
    }
}
