//! Indexes of packages, plain and compressed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmbake_common::digest::Digest;
use vmbake_proof::apt::{Compression, IndexFile, Packages};

fuzz_target!(|bytes: &[u8]| {
    let Some((form, bytes)) = bytes.split_first() else { return };
    let compression = match form % 3 {
        0 => Compression::None,
        1 => Compression::Gz,
        _ => Compression::Xz,
    };
    let index = IndexFile {
        path: "main/binary-amd64/Packages".to_owned(),
        by_hash: None,
        size: bytes.len() as u64,
        digest: Digest::of(bytes),
        compression,
        arch: "amd64".to_owned(),
        content_size: None,
    };
    let Ok(packages) = Packages::read(&index, bytes, &["a", "runc"]) else { return };
    for name in ["a", "runc"] {
        let Ok(newest) = packages.newest(name) else { continue };
        assert!(packages.version(name, &newest.version.to_string()).is_ok());
    }
});
