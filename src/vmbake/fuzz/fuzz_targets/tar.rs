//! Tar and zip archives: members lie within the archive, and they make a tree or an error.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use vmbake_compose::merge::unpack;
use vmbake_compose::stage::{MemberKind, ArchiveLimits, archive};
use vmbake_disk::source::FileSource;
use vmbake_disk::tree::Origin;

/// As for artifacts, but what a fuzzer can wait for.
const LIMITS: ArchiveLimits = ArchiveLimits { floor: 1 << 20, ratio: 20, ..ArchiveLimits::ARTIFACT };

fuzz_target!(|bytes: &[u8]| {
    let file = vmbake_fuzz::file(bytes);
    let opened = archive::open(&file, &LIMITS).or_else(|_| archive::open_zip(&file, &LIMITS));
    let Ok((plain, entries)) = opened else { return };
    let length = plain.metadata().unwrap().len();
    for entry in &entries {
        assert!(!entry.path.split(|byte| *byte == b'/').any(|name| name == b".."));
        if let MemberKind::File { offset, len } = entry.kind {
            assert!(offset + len <= length);
        }
    }
    let _ = unpack(&entries, Arc::new(FileSource::new(plain).unwrap()), Origin::default());
});
