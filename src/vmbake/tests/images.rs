//! Container images of a manifest pass through fetch and verification like every artifact.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use vmbake_common::catalog::Catalog;
use vmbake_common::digest::Digest;
use vmbake_common::progress::{Progress, human_bytes};
use vmbake_fetch::images::ImagesError;
use vmbake_fetch::verify::{Verified, VerifyError, check};
use vmbake_fetch::{FetchError, Fetched, Supply, fetch};
use vmbake_manifest::Manifest;
use vmbake_oci::Image;
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;
use vmbake_store::store::Store;

use crate::hostile::{Site, file, serve};

const BLOBS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/oci/ok-index/blobs/sha256");
const INDEX: &str = "sha256:4461a5020135a94d0eb69ac0484ddb231038c1c4b5bc681c30594b89f2ac047a";

fn blob(digest: &Digest) -> Vec<u8> {
    fs::read(Path::new(BLOBS).join(digest.hex())).unwrap()
}

fn image() -> Image {
    Image::find(INDEX.parse().unwrap(), &"linux/amd64".parse().unwrap(), &|wanted| Ok(blob(&wanted.digest))).unwrap()
}

/// A manifest with an artifact and an image, both pinned manually.
fn manifest(dir: &Path) -> PathBuf {
    let (path, artifact, image) = (dir.join("m.json"), Digest::of(b"content"), image());
    let text = format!(
        r#"{{"vmconfig": {{"version": "dev", "kind": "k", "os": {{"name": "o", "arch": "amd64"}},
        "dependencies": {{"a": {{"version": "1", "url": "https://up.example/a", "type": "binary", "digest": "{artifact}", "size": 7}}}},
        "images": [{{"image": "registry.example/pause:3.10", "digest": "{}", "size": {}, "platform": "linux/amd64", "index": "{INDEX}"}}]}}}}"#,
        image.manifest.digest, image.manifest.size
    );
    fs::write(&path, text).unwrap();
    path
}

/// The site of the artifact, and a registry with the image.
fn site() -> Site {
    let mut files = BTreeMap::from([("/a".to_owned(), file("content"))]);
    for blob in image().blobs() {
        for part in ["manifests", "blobs"] {
            files.insert(format!("/v2/pause/{part}/{}", blob.digest), file(self::blob(&blob.digest)));
        }
    }
    serve(Duration::ZERO, files)
}

fn fetched(dir: &Path, site: &Site, more: &[&str]) -> Output {
    let mirrors = ["registry.example", "up.example"].map(|host| format!("--mirror=https://{host}/={}/", site.url));
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
    command.args(["fetch", "k", "--os", "o", "--jobs", "1", "--store", "store"]).args(mirrors).args(more);
    command.arg("--manifest").arg(manifest(dir));
    command.current_dir(dir).env("XDG_CONFIG_HOME", dir).env_remove("VMBAKE_MIRRORS").output().unwrap()
}

fn offline(dir: &Path) -> Result<Fetched, FetchError> {
    let (store, sources) = (store(dir), Sources::load(&Catalog::built_in()).unwrap());
    let (anchors, threads) = (Anchors::default(), NonZeroUsize::MIN);
    let supply = Supply { store: &store, sources: &sources, anchors: &anchors, client: None, threads };
    fetch(&Manifest::load(&manifest(dir)).unwrap(), &supply, &Progress::new(true))
}

fn checked(dir: &Path) -> Result<Verified, VerifyError> {
    check(offline(dir).unwrap(), None, &store(dir), NonZeroUsize::MIN)
}

fn store(dir: &Path) -> Store {
    Store::open(Some(dir.join("store"))).unwrap()
}

#[test]
fn an_image_is_fetched_proven_and_counted_among_the_artifacts() {
    let dir = tempfile::tempdir().unwrap();
    let output = fetched(dir.path(), &site(), &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    let bytes = human_bytes(image().blobs().map(|blob| blob.size).sum());
    assert_eq!(
        said,
        format!(
            "  fetched  a 1, 7 B\n  fetched  registry.example/pause:3.10, {bytes}\n verified  2 artifacts: 2 pinned manually\n"
        )
    );
    let again = String::from_utf8(fetched(dir.path(), &site(), &[]).stderr).unwrap();
    assert_eq!(again, " verified  2 artifacts: 2 pinned manually\n", "nothing is fetched twice");
    fs::remove_dir_all(dir.path().join("store")).unwrap();
    let output = fetched(dir.path(), &site(), &["--progress", "json"]);
    let told: Vec<Value> = output
        .stderr
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let bytes: u64 = image().blobs().map(|blob| blob.size).sum();
    let proofs = json!([{"count": 2, "by": "pinned manually", "signed": false}]);
    let expected = [
        json!({"event": "fetched", "name": "a", "version": "1", "bytes": 7}),
        json!({"event": "fetched", "name": "registry.example/pause:3.10", "bytes": bytes}),
        json!({"event": "verified", "artifacts": 2, "proofs": proofs}),
    ];
    assert_eq!(told, expected);
    let Verified { artifacts, images, .. } = checked(dir.path()).unwrap();
    assert_eq!((artifacts.len(), images.len()), (1, 1));
}

#[test]
fn an_image_that_is_not_complete_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let without = offline(dir.path());
    assert!(matches!(without, Err(FetchError::Missing { .. })), "{without:?}");
    assert!(fetched(dir.path(), &site(), &[]).status.success());

    let layer = store(dir.path()).path(&image().layers[0].0.digest);
    let mut damaged = fs::read(&layer).unwrap();
    damaged[100] ^= 1;
    fs::remove_file(&layer).unwrap();
    let missing = checked(dir.path()).err().unwrap();
    assert!(matches!(&missing, VerifyError::Container(ImagesError::Unusable { .. })), "{missing:?}");
    fs::write(&layer, damaged).unwrap();
    let refused = checked(dir.path()).err().unwrap();
    assert!(matches!(&refused, VerifyError::Container(ImagesError::Unusable { .. })), "{refused:?}");

    // Without its documents the parts of the release are unknown.
    store(dir.path()).discard(&INDEX.parse().unwrap()).unwrap();
    let unproven = offline(dir.path()).unwrap_err();
    assert!(
        matches!(&unproven, FetchError::Prove(error) if error.name == "registry.example/pause:3.10"),
        "{unproven:?}"
    );
}
