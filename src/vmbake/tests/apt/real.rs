//! A real `InRelease` of Debian with the keys pinned in `trust/`.

use jiff::Timestamp;
use vmbake_proof::apt::{AptError, Compression, Expect, Release};
use vmbake_proof::openpgp::{KeyState, Keyring};

const IN_RELEASE: &[u8] = include_bytes!("../data/apt/trixie-updates.InRelease");
const TRUST: &[u8] = include_bytes!("../../../../trust/debian-archive.asc");
/// The archive keys of Debian 13 and 12, which both signed it.
const SIGNERS: [&str; 2] = ["04B54C3CDCA79751B16BC6B5225629DF75B188BD", "B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8"];

fn verify(in_release: &[u8], suite: &str, now: &str) -> Result<Release, AptError> {
    let expect = Expect { suite, now: now.parse().unwrap(), previous: None };
    Release::verify(in_release, &Keyring::parse(TRUST).unwrap(), &expect)
}

#[test]
fn the_archive_of_debian_is_believed() {
    let release = verify(IN_RELEASE, "trixie-updates", "2026-11-21T00:00:00Z").unwrap();
    assert_eq!(release.signers(), SIGNERS);
    assert_eq!(release.date().to_string(), "2026-11-19T02:12:54Z");
    assert!(release.acquire_by_hash());
    for arch in ["amd64", "arm64"] {
        let indexes = release.indexes(Some("main"), arch).unwrap();
        assert!(indexes.iter().all(|index| index.by_hash.is_some() && index.content_size.is_some()));
        assert!(indexes.iter().any(|index| index.compression == Compression::Xz));
    }
    assert!(verify(IN_RELEASE, "stable-updates", "2026-11-21T00:00:00Z").is_ok());
}

#[test]
fn it_is_not_believed_under_another_name_or_at_another_time() {
    for (suite, now, message) in [
        (
            "trixie",
            "2026-11-21T00:00:00Z",
            "InRelease: is for suite stable-updates and codename trixie-updates, expected trixie",
        ),
        ("trixie-updates", "2026-11-26T02:12:55Z", "InRelease: expired: valid until 2026-11-26T02:12:54Z"),
        ("trixie-updates", "2026-11-18T00:00:00Z", "InRelease: signature verification failed"),
        ("trixie-updates", "2036-01-01T00:00:00Z", "InRelease: signature verification failed"),
    ] {
        let error = verify(IN_RELEASE, suite, now).unwrap_err().to_string();
        assert!(error.starts_with(message), "{suite} {now}: {error}");
    }
    let tampered =
        String::from_utf8(IN_RELEASE.to_vec()).unwrap().replacen("main/binary-amd64", "main/binary-arm64", 1);
    let error = verify(tampered.as_bytes(), "trixie-updates", "2026-11-21T00:00:00Z").unwrap_err();
    assert!(matches!(error, AptError::Signature { .. }), "{error}");
}

#[test]
fn the_pinned_keys_expire_when_debian_says() {
    let keyring = Keyring::parse(TRUST).unwrap();
    let live = |now: &str| {
        let now: Timestamp = now.parse().unwrap();
        keyring.keys(now).iter().filter(|key| key.state == KeyState::Live).count()
    };
    assert_eq!([live("2026-11-21T00:00:00Z"), live("2031-06-01T00:00:00Z"), live("2036-01-01T00:00:00Z")], [6, 3, 0]);
}
