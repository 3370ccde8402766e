//! Scripts of bash: its whole grammar, arrays, expansions.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| vmbake_shell_fuzz::check(&[b"#!/bin/bash\n", bytes].concat()));
