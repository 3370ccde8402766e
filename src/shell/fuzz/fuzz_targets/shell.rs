//! Scripts of dash.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| vmbake_shell_fuzz::check(bytes));
