//! Documents of container images: an index, a manifest and a config, each behind a NUL. `@d` and `@s` stand for digest and size of the
//! next one, without which none would be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmbake_common::digest::Digest;
use vmbake_oci::{Image, OciError};

fuzz_target!(|text: &str| {
    let mut documents: Vec<Vec<u8>> = Vec::new();
    for text in text.split('\0').take(3).collect::<Vec<_>>().into_iter().rev() {
        let below = documents.last().map(Vec::as_slice).unwrap_or_default();
        let text = text.replace("@d", &Digest::of(below).to_string()).replace("@s", &below.len().to_string());
        documents.push(text.into_bytes());
    }
    let root = Digest::of(documents.last().unwrap());
    let image = Image::find(root, &"linux/amd64".parse().unwrap(), &|blob| {
        let found = documents.iter().find(|document| Digest::of(document) == blob.digest);
        found.cloned().ok_or_else(|| OciError::Blob {
            digest: Box::new(blob.digest),
            source: std::io::Error::from(std::io::ErrorKind::NotFound).into(),
        })
    });
    if let Ok(image) = image {
        assert!(image.blobs().count() >= 2);
    }
});
