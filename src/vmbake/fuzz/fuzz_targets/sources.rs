//! Files that say where upstreams are.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use vmbake_pin::sources::Sources;

fuzz_target!(|bytes: &[u8]| {
    let Ok(sources) = Sources::parse(Path::new("fuzz"), bytes) else { return };
    for target in sources.targets() {
        assert!(sources.system(&target).is_ok());
        let _ = sources.dependencies(&target).count() + sources.images(&target).count();
    }
});
