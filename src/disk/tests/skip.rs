//! Reports skipped tests, which `make test` lists at its end. Shared by the tests of all crates.

use std::fs::OpenOptions;
use std::io::Write;

/// Notes that the running test is left out, and why; in CI that is a failure.
pub fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "skipped in CI: {reason}");
    leave_out(reason);
}

/// Records that a test is skipped, as it needs an optional tool.
pub fn leave_out(reason: &str) {
    println!("skipped: {reason}");
    if let Some(list) = std::env::var_os("VMBAKE_SKIPPED") {
        let thread = std::thread::current();
        let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
        let file = OpenOptions::new().create(true).append(true).open(list);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("VMBAKE_SKIPPED names a file");
    }
}
