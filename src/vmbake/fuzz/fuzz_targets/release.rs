//! Documents of a release: the first byte selects a policy, a checksum list, a key without a password, or the statement of a delta.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use vmbake_release::delta::statement::{DeltaStatement, statement_path};
use vmbake_bake::release::key::PrivateKey;
use vmbake_bake::release::policy::ReleasePolicy;
use vmbake_bake::release::sums::{SumsKind, read_sums};

fuzz_target!(|bytes: &[u8]| {
    let Some((form, text)) = bytes.split_first() else { return };
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    match form % 4 {
        0 => drop(ReleasePolicy::parse(Path::new("fuzz"), text)),
        1 => {
            let kind = SumsKind::ALL[usize::from(form / 4) % SumsKind::ALL.len()];
            std::fs::write(dir.path().join(kind.file_name()), text).unwrap();
            let Ok(Some(sums)) = read_sums(dir.path(), kind) else { return };
            assert_eq!(sums.text, text);
            assert!(sums.checksums.keys().all(|name| !name.contains('/')));
        }
        2 => {
            let Ok(key) = PrivateKey::from_pem(text, || None) else { return };
            let again = PrivateKey::from_pem(key.to_pem().unwrap().as_bytes(), || None).unwrap();
            assert_eq!(again.public_pem().unwrap(), key.public_pem().unwrap());
        }
        _ => {
            let delta = dir.path().join("d");
            std::fs::write(statement_path(&delta), text).unwrap();
            let Ok((statement, _)) = DeltaStatement::read(&delta) else { return };
            std::fs::write(statement_path(&delta), statement.text().unwrap()).unwrap();
            assert_eq!(DeltaStatement::read(&delta).unwrap().0, statement);
        }
    }
});
