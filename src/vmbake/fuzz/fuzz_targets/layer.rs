//! Descriptions of layers: faults have a place in the file, and what has none becomes a plan.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use vmbake_common::catalog::Catalog;
use vmbake_layer::first_boot::compile;
use vmbake_layer::{Layers, check};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::create_dir(folder.path().join("fuzz")).unwrap();
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let folder = FOLDER.path();
    std::fs::write(folder.join("fuzz/layer.json"), bytes).unwrap();
    for fault in check(folder, &Catalog::built_in()).unwrap_or_default() {
        assert!(fault.position.is_none_or(|(line, column)| line > 0 && column > 0), "{fault:?}");
    }
    let Ok(layers) = Layers::load(&Catalog::only(folder)) else { return };
    if let Ok(layers) = layers.resolve("fuzz", "debian-13") {
        let _ = compile(&layers, "x86_64-linux-gnu");
    }
});
