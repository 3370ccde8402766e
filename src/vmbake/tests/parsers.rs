//! Parsers of upstream and user files, with malformed and random input: they return errors, and never panic.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use vmbake_common::digest::Digest;
use vmbake_compose::origin::Record;
use vmbake_manifest::Manifest;
use vmbake_oci::{Image, OciError, Platform, check_layer};
use vmbake_pin::sources::Template;
use vmbake_proof::checksum;
use vmbake_proof::sigstore::rekor;
use vmbake_store::http::Mirror;

const SUMS: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.tgz\n\
    84e99cf689978963f9acdd7476ab03dbd122cf29396998b30d05d2bcf799b775 *b.tgz\nSHA256 (c) = \
    84e99cf689978963f9acdd7476ab03dbd122cf29396998b30d05d2bcf799b775\n";
const INDEX: &str = "sha256:4461a5020135a94d0eb69ac0484ddb231038c1c4b5bc681c30594b89f2ac047a";

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

const RECORD: &str = "{\"format\":1,\"manifest\":\
    \"sha256:4461a5020135a94d0eb69ac0484ddb231038c1c4b5bc681c30594b89f2ac047a\",\"layers\":{\"l\":{\"version\":\"1\",\"digest\":\
    \"sha256:84e99cf689978963f9acdd7476ab03dbd122cf29396998b30d05d2bcf799b775\"}},\"artifacts\":{\"a\":{\"layer\":\"l\",\"digest\":\
    \"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}},\
    \"paths\":{\"/p\":{\"layer\":\"l\",\"artifact\":\"a\"}},\"removed\":{\"/q\":null}}\n";

/// A text with some of its bytes replaced, removed or doubled.
pub fn damaged(text: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<prop::sample::Index>(), any::<u8>(), 0..4u8);
    prop::collection::vec(edit, 1..6).prop_map(move |edits| {
        let mut bytes = text.to_vec();
        for (at, byte, kind) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.truncate(at),
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_checksum_files(text in damaged(SUMS.as_bytes()), name in "[a-c](\\.tgz)?") {
        // Whatever was damaged, a digest that is found stands in the text.
        if let Ok(digest) = checksum::find(&text, &name, None) {
            prop_assert!(String::from_utf8(text).unwrap().to_lowercase().contains(&digest.hex()));
        }
    }

    #[test]
    fn random_texts(text in "\\PC{0,200}") {
        let _ = checksum::find(text.as_bytes(), "a", None);
        let _ = text.parse::<Mirror>();
        let _ = text.parse::<Digest>();
        let _ = text.parse::<Platform>();
        let _ = Template::try_from(text.clone());
        let _ = rekor::uuids(text.as_bytes());
        let _ = rekor::LoggedEntry::parse(text.as_bytes());
        let _ = Record::parse("r", text.as_bytes());
        let _ = Manifest::parse(Path::new("m"), text.into_bytes());
    }

    #[test]
    fn damaged_manifests(text in damaged(include_bytes!("../../../manifests/node.debian-13.amd64.json"))) {
        if let Ok(manifest) = Manifest::parse(Path::new("m"), text) {
            let again = manifest.content().to_text().unwrap();
            let again = Manifest::parse(Path::new("m"), again.into_bytes()).unwrap();
            prop_assert_eq!(again.content(), manifest.content());
        }
    }

    #[test]
    fn damaged_records(text in damaged(RECORD.as_bytes())) {
        prop_assert!(Record::parse("r", RECORD.as_bytes()).is_ok());
        if let Ok(record) = Record::parse("r", &text) {
            prop_assert_eq!(record.to_text().unwrap(), text);
        }
    }

    #[test]
    fn damaged_layers(bytes in damaged(include_bytes!("data/oci/ok-index/blobs/sha256/a25d85c37bab120b231959f7d7e3903e624009dccfeced50d7d3993b70b47e73"))) {
        let image = image().unwrap();
        let (layer, diff_id) = &image.layers[0];
        let same = Digest::of(&bytes) == layer.digest;
        prop_assert_eq!(check_layer(layer, diff_id, std::io::Cursor::new(&bytes)).is_ok(), same);
    }
}

fn image() -> Result<Image, OciError> {
    Image::find(INDEX.parse().unwrap(), &"linux/amd64".parse().unwrap(), &|blob| {
        Ok(std::fs::read(data("oci/ok-index/blobs/sha256").join(blob.digest.hex())).unwrap())
    })
}

/// Each document of an image with each of its bytes changed: the digest tells, whatever the parser would.
#[test]
fn damaged_documents_of_images() {
    let good = image().unwrap();
    for damaged in good.indexes.iter().chain([&good.manifest, &good.config]) {
        for at in 0..usize::try_from(damaged.size).unwrap() {
            let result = Image::find(INDEX.parse().unwrap(), &"linux/amd64".parse().unwrap(), &|blob| {
                let mut bytes = std::fs::read(data("oci/ok-index/blobs/sha256").join(blob.digest.hex())).unwrap();
                if blob.digest == damaged.digest {
                    bytes[at] ^= 1;
                }
                Ok(bytes)
            });
            assert!(matches!(result, Err(OciError::Digest { .. })), "{at}");
        }
    }
}
