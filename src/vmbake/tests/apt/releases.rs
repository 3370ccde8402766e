//! Contents of a correctly signed `InRelease`.

use jiff::Timestamp;
use vmbake_proof::apt::{AptError, Compression, Expect, IndexFile, Release};

use super::lab::{Lab, now};

const DIGEST: &str = "f776a448aef3f03b033f072eae85980480e01387f9c84da4cbc75b457afd7356";
const GOOD: &str = "Suite: stable\nCodename: trixie\nDate: Sat, 14 Nov 2026 08:00:00 UTC\n\
    Valid-Until: Sat, 28 Nov 2026 08:00:00 UTC\nAcquire-By-Hash: yes\nMD5Sum:\n d41d8cd98f00b204e9800998ecf8427e 5 x\nSHA256:\n";

/// A good text with one index in three forms.
fn good() -> String {
    let mut text = GOOD.to_owned();
    for (suffix, size) in [("", 240), (".gz", 208), (".xz", 268)] {
        text += &format!(" {DIGEST} {size} main/binary-amd64/Packages{suffix}\n");
    }
    text
}

fn expect(suite: &str) -> Expect<'_> {
    Expect { suite, now: now(), previous: None }
}

#[test]
fn a_good_release_names_its_indexes() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let keyring = lab.keyring(&["good"]);
    let release = Release::verify(&lab.sign(&good(), &["good"]), &keyring, &expect("trixie")).unwrap();
    assert_eq!(release.suite(), "trixie");
    assert_eq!(release.date().to_string(), "2026-11-14T08:00:00Z");
    assert_eq!(release.valid_until().unwrap().to_string(), "2026-11-28T08:00:00Z");
    assert_eq!(release.signers(), lab.fingerprints("good"));
    assert!(release.acquire_by_hash());
    let indexes = release.indexes(Some("main"), "amd64").unwrap();
    let forms: Vec<_> = indexes.iter().map(|index| (index.compression, index.size)).collect();
    assert_eq!(forms, [(Compression::Gz, 208), (Compression::Xz, 268), (Compression::None, 240)]);
    assert_eq!(
        indexes[0],
        IndexFile {
            path: "main/binary-amd64/Packages.gz".to_owned(),
            by_hash: Some(format!("main/binary-amd64/by-hash/SHA256/{DIGEST}")),
            size: 208,
            digest: format!("sha256:{DIGEST}").parse().unwrap(),
            compression: Compression::Gz,
            arch: "amd64".to_owned(),
            content_size: Some(240),
        }
    );
    for (component, arch) in [("main", "arm64"), ("contrib", "amd64")] {
        assert!(matches!(release.indexes(Some(component), arch), Err(AptError::NoIndex { .. })), "{component} {arch}");
    }
    for (component, arch) in [("..", "amd64"), ("/main", "amd64"), ("main", "../x"), ("./main", "amd64")] {
        assert!(matches!(release.indexes(Some(component), arch), Err(AptError::Path { .. })), "{component} {arch}");
    }
}

#[test]
fn variants_of_a_good_release_pass() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let keyring = lab.keyring(&["good"]);
    let until = "Valid-Until: Sat, 28 Nov 2026 08:00:00 UTC\n";
    let sha512 = format!("SHA512:\n {DIGEST}{DIGEST} 5 main/binary-amd64/Packages\n");
    let (head, _) = GOOD.split_once("SHA256").unwrap();
    let cases = [
        ("asked for by its suite", good(), "stable"),
        ("no codename", good().replace("Codename: trixie\n", ""), "stable"),
        ("no limit of validity", good().replace(until, ""), "trixie"),
        ("GMT", good().replace("UTC", "GMT"), "trixie"),
        ("another name of the day", good().replace("Sat", "Fri"), "trixie"),
        ("one digit for the hour", good().replace(" 08:00", " 8:00"), "trixie"),
        ("a few minutes ahead", good().replace("Sat, 14 Nov 2026 08:00", "Sat, 21 Nov 2026 00:09"), "trixie"),
        ("field names in capitals", good().replace("Codename:", "CODENAME:"), "trixie"),
        ("SHA-512 only", head.to_owned() + &sha512, "trixie"),
        ("the same file twice", good() + &format!(" {DIGEST} 240 main/binary-amd64/Packages\n"), "trixie"),
    ];
    for (name, text, suite) in cases {
        let release = Release::verify(&lab.sign(&text, &["good"]), &keyring, &expect(suite));
        release.unwrap_or_else(|error| panic!("{name}: {error}")).indexes(Some("main"), "amd64").unwrap();
    }
}

#[test]
fn bad_releases_are_refused() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let keyring = lab.keyring(&["good"]);
    let (head, _) = GOOD.split_once("SHA256").unwrap();
    let date = "Date: Sat, 14 Nov 2026 08:00:00 UTC\n";
    let line = |line: &str| good() + line;
    let cases: Vec<(&str, String, &str)> = vec![
        (
            "another suite",
            good().replace("trixie", "bookworm"),
            "InRelease: is for suite stable and codename bookworm, expected trixie",
        ),
        ("no suite", good().replace("Suite: stable\nCodename: trixie\n", ""), "InRelease: is for suite (none)"),
        (
            "a week ahead",
            good().replace("Date: Sat, 14", "Date: Sat, 28"),
            "InRelease: Date 2026-11-28T08:00:00Z is in the future",
        ),
        (
            "eleven minutes ahead",
            good().replace("Sat, 14 Nov 2026 08:00", "Sat, 21 Nov 2026 00:11"),
            "InRelease: Date 2026-11-21T00:11:00Z is in the future",
        ),
        (
            "not valid any more",
            good().replace("28 Nov 2026 08:00:00", "20 Nov 2026 23:59:59"),
            "InRelease: expired: valid until 2026-11-20T23:59:59Z",
        ),
        ("no date", good().replace(date, ""), "InRelease: missing field Date"),
        ("a date in another zone", good().replace("08:00:00 UTC", "08:00:00 +0200"), "InRelease: corrupt: Date \"Sat"),
        ("no such day", good().replace("14 Nov", "31 Nov"), "InRelease: corrupt: Date"),
        ("a second date", date.to_owned() + &good(), "InRelease: duplicate field date"),
        ("a second date in capitals", good().replace("SHA256", "DATE: x\nSHA256"), "InRelease: duplicate field date"),
        ("two stanzas", good() + "\nSuite: x\n", "InRelease: corrupt: 2 stanzas"),
        ("nothing strong", head.to_owned(), "InRelease: neither SHA256 nor SHA512"),
        (
            "MD5 called SHA-256",
            line(" d41d8cd98f00b204e9800998ecf8427e 1 x\n"),
            "InRelease: corrupt: invalid line \"d41d",
        ),
        ("no length", line(&format!(" {DIGEST} x\n")), "InRelease: corrupt"),
        ("a negative length", line(&format!(" {DIGEST} -1 x\n")), "InRelease: corrupt"),
        ("a length of 2^64", line(&format!(" {DIGEST} 18446744073709551616 x\n")), "InRelease: corrupt"),
        ("a fourth word", line(&format!(" {DIGEST} 1 x y\n")), "InRelease: corrupt"),
        (
            "twice, differently",
            line(&format!(" {DIGEST} 241 main/binary-amd64/Packages\n")),
            "InRelease: corrupt: main/binary-amd64/Packages is listed twice",
        ),
        (
            "a value of two lines",
            good().replace("Codename: trixie", "Codename: trixie\n more"),
            "InRelease: corrupt: field Codename",
        ),
        ("no fields", "\n".to_owned(), "InRelease: corrupt: no fields"),
    ];
    for (name, text, message) in cases {
        let error = Release::verify(&lab.sign(&text, &["good"]), &keyring, &expect("trixie")).expect_err(name);
        assert!(error.to_string().starts_with(message), "{name}: {error}");
    }
    let other = lab.sign(&good(), &["good"]);
    let tampered = String::from_utf8(other).unwrap().replace(" 240 ", " 241 ");
    let error = Release::verify(tampered.as_bytes(), &keyring, &expect("trixie")).unwrap_err();
    assert!(matches!(error, AptError::Signature { .. }), "{error}");
}

#[test]
fn an_older_release_than_the_one_seen_before_is_a_replay() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let (keyring, message) = (lab.keyring(&["good"]), lab.sign(&good(), &["good"]));
    for (previous, fresh) in
        [("2026-11-13T00:00:00Z", true), ("2026-11-14T08:00:00Z", true), ("2026-11-14T08:00:01Z", false)]
    {
        let previous: Option<Timestamp> = Some(previous.parse().unwrap());
        match Release::verify(&message, &keyring, &Expect { previous, ..expect("trixie") }) {
            Ok(_) => assert!(fresh, "{previous:?}"),
            Err(AptError::Older { .. }) => assert!(!fresh, "{previous:?}"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn what_is_too_old_is_told_with_its_age() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let release = Release::verify(&lab.sign(&good(), &["good"]), &lab.keyring(&["good"]), &expect("trixie")).unwrap();
    // It is a week old.
    for (days, ok) in [(None, true), (Some(8), true), (Some(6), false), (Some(0), false), (Some(u16::MAX), true)] {
        let result = release.check_age(days, now());
        assert_eq!(result.is_ok(), ok, "{days:?}");
        assert!(ok || matches!(result, Err(AptError::Aged { .. })), "{days:?}");
    }
}
