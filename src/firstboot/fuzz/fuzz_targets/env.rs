//! Environment files: a parsed file that is written and parsed again gives the same variables.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use vmbake_firstboot::env::{parse, render};

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("fuzz");
    if let Ok(variables) = parse(path, bytes) {
        let text = render(variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))).unwrap();
        assert_eq!(parse(path, text.as_bytes()).unwrap(), variables);
    }
});
