//! Accepted clearsigned messages, compared with gpg.

use vmbake_proof::openpgp::{Clearsigned, Keyring, OpenPgpError};

use super::lab::{Lab, NOW, now};

const TEXT: &str = "Suite: stable\nDate: Sat, 14 Nov 2026 08:00:00 UTC\n";

/// Expected signers, or a part of the error.
enum Expect<'a> {
    Signed(&'a [&'a str]),
    Refused(&'a str),
}

/// gpg's result for the same message and keys.
#[derive(PartialEq)]
enum Gpg {
    /// As we do.
    Same,
    /// Accepted only by gpg, for this reason.
    Lenient(&'static str),
    /// Refused only by gpg, for this reason.
    Strict(&'static str),
}

use Expect::{Refused, Signed};
use Gpg::{Lenient, Same, Strict};

#[test]
fn only_what_a_live_trusted_key_signed_is_believed() {
    let names = ["good", "rsa", "expired", "superseded", "unknown", "parent"];
    let Some(lab) = Lab::with_keys(&names) else { return };
    let superseded = lab.sign(TEXT, &["superseded"]);
    lab.supersede("superseded");
    let trusted = lab.export(&["good", "rsa", "expired", "superseded", "parent"]);
    let parent = lab.fingerprints("parent");
    let (live, lapsed) = (format!("{}!", parent[1]), format!("{}!", parent[2]));
    let good = lab.sign(TEXT, &["good"]);
    let other = lab.sign("Suite: other\n", &["rsa"]);
    let unsigned = lab.sign(TEXT, &["unknown"]);
    let cases: Vec<(&str, Vec<u8>, Expect<'_>, Gpg)> = vec![
        ("one key", good.clone(), Signed(&["good"]), Same),
        ("two keys", lab.sign(TEXT, &["rsa", "good"]), Signed(&["good", "rsa"]), Same),
        ("SHA-512", lab.sign_with(TEXT, &["good"], "SHA512"), Signed(&["good"]), Same),
        ("a subkey", lab.sign(TEXT, &[&live]), Signed(&["parent"]), Same),
        ("escaped dashes", lab.sign("- x\n-----BEGIN PGP SIGNATURE-----\n", &["good"]), Signed(&["good"]), Same),
        (
            "a known and an unknown key",
            lab.sign(TEXT, &["good", "unknown"]),
            Signed(&["good"]),
            Strict("an unknown key is an error"),
        ),
        ("a live and an expired key", lab.sign(TEXT, &["good", "expired"]), Signed(&["good"]), Same),
        (
            "white space at the ends of lines is not signed",
            edit(&good, "stable\n", "stable \t\n"),
            Signed(&["good"]),
            Same,
        ),
        ("an unknown key only", unsigned, Refused("no valid signature of a trusted key: unknown key"), Same),
        (
            "an expired key",
            lab.sign(TEXT, &["expired"]),
            Refused("no valid signature of a trusted key: key"),
            Lenient("only says that the key expired"),
        ),
        (
            "an expired subkey",
            lab.sign(TEXT, &[&lapsed]),
            Refused("no valid signature of a trusted key: key"),
            Lenient("only says that the key expired"),
        ),
        (
            "a revoked key",
            superseded,
            Refused("no valid signature of a trusted key: key"),
            Lenient("only says that the key is revoked"),
        ),
        (
            "SHA-1",
            lab.sign_with(TEXT, &["rsa"], "SHA1"),
            Refused("bad signature: key"),
            Lenient("SHA-1 is not weak to gpg 2.2"),
        ),
        ("another text", edit(&good, "stable", "stabbe"), Refused("bad signature: key"), Same),
        ("a good and a bad one", spliced(&lab, &good, &other), Refused("bad signature: key"), Same),
        ("text before", [b"Suite: evil\n", &*good].concat(), Refused("line 1: not the start"), Lenient("skips it")),
        ("text after", [&*good, b"Suite: evil\n"].concat(), Refused(": text after the signature"), Lenient("skips it")),
        ("another message after", [&*good, &*other].concat(), Refused(": text after the signature"), Same),
        (
            "a header other than Hash",
            edit(&good, "Hash: SHA256\n", "Hash: SHA256\nComment: x\n"),
            Refused("line 3: a header"),
            Same,
        ),
        (
            "carriage returns",
            edit(&good, "\n", "\r\n"),
            Refused("line 1: NUL or carriage return"),
            Lenient("takes any line ends"),
        ),
        ("not signed at all", TEXT.into(), Refused("line 1: not the start"), Same),
        ("cut off", good[..good.len() - 30].to_vec(), Refused(": truncated before the end of the signature"), Same),
        ("no signature", edit(&good, &signature(&good), ""), Refused(""), Same),
        ("nothing", Vec::new(), Refused("line 1: not the start"), Same),
    ];
    let keyring = Keyring::parse(&trusted).unwrap();
    for (name, message, expected, gpg) in &cases {
        let result = Clearsigned::verify(message, &keyring, now());
        match (&result, expected) {
            (Ok(signed), Signed(by)) => {
                let mut signers: Vec<String> = by.iter().map(|name| lab.fingerprints(name).remove(0)).collect();
                signers.sort();
                assert_eq!(signed.signers, signers, "{name}");
            }
            (Err(error), Refused(message)) => assert!(error.to_string().contains(message), "{name}: {error}"),
            _ => panic!("{name}: {result:?}"),
        }
        judge(&trusted, name, message, result.is_ok(), gpg);
    }
}

/// Runs gpg with a home that has only the trusted keys.
fn judge(trusted: &[u8], name: &str, message: &[u8], ours: bool, expected: &Gpg) {
    let Some(judge) = Lab::with_keys(&[]) else { return };
    let time = NOW.replace(['-', ':', 'Z'], "");
    judge.gpg(&time, &["--import"], trusted);
    let verdict = judge.try_gpg(&time, &["--verify"], message).status.success();
    let same = match expected {
        Same => verdict == ours,
        Lenient(_) => verdict && !ours,
        Strict(_) => !verdict && ours,
    };
    assert!(same, "{name}: gpg says {verdict}, we say {ours}");
}

#[test]
fn the_text_is_what_was_signed() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let text = "a: b\n- dash\n-----BEGIN PGP SIGNATURE-----\n";
    let signed = Clearsigned::verify(&lab.sign(text, &["good"]), &lab.keyring(&["good"]), now()).unwrap();
    assert_eq!(signed.text.trim_end(), text.trim_end());
}

#[test]
fn a_clock_that_is_behind_is_tolerated_for_minutes_only() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let (message, keyring) = (lab.sign(TEXT, &["good"]), lab.keyring(&["good"]));
    for (time, good) in
        [("2026-11-14T07:55:00Z", true), ("2026-11-14T07:00:00Z", false), ("1969-01-01T00:00:00Z", false)]
    {
        let result = Clearsigned::verify(&message, &keyring, time.parse().unwrap());
        assert_eq!(result.is_ok(), good, "{time}: {result:?}");
    }
}

#[test]
fn an_old_clock_brings_no_weak_digest_back() {
    let Some(lab) = Lab::with_keys(&["old"]) else { return };
    let sign = |digest| {
        let args = ["--digest-algo", digest, "--local-user", "old@test.invalid", "--clearsign"];
        let message = lab.gpg("20120601T000000", &args, TEXT.as_bytes());
        Clearsigned::verify(&message, &lab.keyring(&["old"]), "2012-06-02T00:00:00Z".parse().unwrap())
    };
    assert!(sign("SHA256").is_ok());
    let weak = sign("SHA1");
    assert!(matches!(weak, Err(OpenPgpError::BadSignature { .. })), "{weak:?}");
}

#[test]
fn keyrings_are_armored_or_binary_with_any_number_of_blocks() {
    let Some(lab) = Lab::with_keys(&["good", "unknown"]) else { return };
    let (one, two) = (lab.export(&["good"]), lab.export(&["unknown"]));
    let both = lab.export(&["good", "unknown"]);
    let binary = lab.gpg(super::lab::SIGNED, &["--export"], b"");
    let message = lab.sign(TEXT, &["unknown"]);
    let keyrings = [both, binary, [&*one, b"\nThe other one:\n", &*two].concat(), [&*one, &*two, &*one].concat()];
    let parsed = keyrings.map(|bytes| Keyring::parse(&bytes).unwrap());
    for keyring in &parsed {
        assert_eq!(keyring.keys(now()), parsed[0].keys(now()));
        assert_eq!(keyring.armored().unwrap(), parsed[0].armored().unwrap());
        assert!(Clearsigned::verify(&message, keyring, now()).is_ok());
    }
    assert_eq!(parsed[0].keys(now()).len(), 2);
    assert_eq!(Keyring::parse(&parsed[0].armored().unwrap().concat()).unwrap().keys(now()), parsed[0].keys(now()));
    let cut = &one[..one.len() - 20];
    for (bytes, message) in
        [(&b""[..], "no public key"), (b"text", "no public key"), (cut, "key block 1 is not terminated")]
    {
        assert_eq!(Keyring::parse(bytes).unwrap_err().to_string(), message);
    }
}

#[test]
fn no_flipped_or_missing_byte_changes_what_is_believed() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let (message, keyring) = (lab.sign(TEXT, &["good"]), lab.export(&["good"]));
    let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    let believed = |message: &[u8], keyring: &[u8]| {
        let keyring = Keyring::parse(keyring).ok()?;
        Some(lines(&Clearsigned::verify(message, &keyring, now()).ok()?.text))
    };
    let original = believed(&message, &keyring).unwrap();
    let mut held = 0;
    for (message, keyring) in variants(&message)
        .map(|message| (message, keyring.clone()))
        .chain(variants(&keyring).map(|keyring| (message.clone(), keyring)))
    {
        if let Some(text) = believed(&message, &keyring) {
            assert_eq!(text, original);
            held += 1;
        }
    }
    // Case in headers that say nothing, bits of unhashed data: most variants must fall.
    assert!(held * 4 < message.len() + keyring.len(), "{held}");
}

/// The bytes with each byte flipped in turn, in three ways, and cut off before each.
fn variants(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len()).flat_map(|at| {
        let flipped = [1, 0x20, 0x80].map(|mask| {
            let mut copy = bytes.to_vec();
            copy[at] ^= mask;
            copy
        });
        flipped.into_iter().chain([bytes[..at].to_vec()])
    })
}

/// Replaces every occurrence of a text in a message.
fn edit(message: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = std::str::from_utf8(message).unwrap();
    assert!(text.contains(from));
    text.replace(from, to).into_bytes()
}

/// The lines of the signature's armor.
fn signature(message: &[u8]) -> String {
    let text = std::str::from_utf8(message).unwrap();
    let (_, rest) = text.split_once("-----BEGIN PGP SIGNATURE-----\n\n").unwrap();
    rest.split_once("-----END").unwrap().0.to_owned()
}

/// The first message, with the signatures of both.
fn spliced(lab: &Lab, first: &[u8], second: &[u8]) -> Vec<u8> {
    let armor =
        |message| format!("-----BEGIN PGP SIGNATURE-----\n\n{}-----END PGP SIGNATURE-----\n", signature(message));
    let packets = |message| lab.gpg(super::lab::SIGNED, &["--dearmor"], armor(message).as_bytes());
    let both = [packets(first), packets(second)].concat();
    let armored = String::from_utf8(lab.gpg(super::lab::SIGNED, &["--enarmor"], &both)).unwrap();
    let (_, body) = armored.split_once("\n\n").unwrap();
    edit(first, &signature(first), body.split_once("-----END").unwrap().0)
}
