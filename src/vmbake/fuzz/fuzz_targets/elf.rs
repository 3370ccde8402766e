//! Programs and libraries.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use vmbake_image::elf::Elf;
use vmbake_disk::source::{Map, Sources};

fuzz_target!(|bytes: &[u8]| {
    let mut sources = Sources::default();
    let source = sources.add(Arc::new(bytes.to_vec()));
    let map = Map::whole(source, 0, bytes.len() as u64);
    let Ok(Some(elf)) = Elf::read(&map, &sources) else { return };
    let _ = elf.isa_level(&map, &sources);
});
