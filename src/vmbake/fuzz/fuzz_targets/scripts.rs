//! Maintainer scripts: whatever is understood is so for every way in which dpkg calls it, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| vmbake_compose::merge::run_script(bytes));
