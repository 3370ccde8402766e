//! Signed lists of indexes: nothing is believed without a key, and the fields are read without a signature too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmbake_proof::apt::{Expect, Release};
use vmbake_proof::openpgp::{Clearsigned, Keyring};

fuzz_target!(|bytes: &[u8]| {
    let expect = Expect { suite: "trixie-updates", now: "2026-01-01T00:00:00Z".parse().unwrap(), previous: None };
    let keys = Keyring::parse(include_bytes!("../../../../trust/fluentbit.asc")).unwrap();
    assert!(Clearsigned::verify(bytes, &keys, expect.now).is_err());
    let _ = Keyring::parse(bytes);
    let Ok(text) = str::from_utf8(bytes) else { return };
    for index in Release::unsigned_indexes(text, &expect).unwrap_or_default() {
        assert!(!index.path.starts_with('/') && !index.path.split('/').any(|name| name == ".."));
    }
});
