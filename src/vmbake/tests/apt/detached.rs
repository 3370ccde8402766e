//! Detached signatures by real gpg, compared with gpg's verification.

use vmbake_proof::openpgp::{Clearsigned, FileSignature, KeyState, Keyring};

use super::lab::{Lab, NOW, SIGNED, now};

const FILE: &[u8] = b"\x7fELF\r\n\0 a file\n";

/// A signature over a file, and who signed it or why it is refused.
type Case<'a> = (&'a str, Vec<u8>, &'a [u8], Result<&'a [&'a str], &'a str>);

/// Signs bytes, as `--detach-sign` and more options say.
fn sign(lab: &Lab, file: &[u8], key: &str, more: &[&str]) -> Vec<u8> {
    let mut args = vec!["--allow-weak-digest-algos", "--local-user", key];
    args.extend_from_slice(more);
    args.push("--detach-sign");
    lab.gpg(SIGNED, &args, file)
}

#[test]
fn signatures_over_files_are_what_gpg_makes() {
    let names = ["ed", "rsa", "second", "expired", "stranger", "revoked"];
    let Some(lab) = Lab::with_keys(&names) else { return };
    let key = |name: &str| lab.fingerprints(name).remove(0);
    let plain = |name: &str| sign(&lab, FILE, &key(name), &["--digest-algo", "SHA256"]);
    let (good, revoked) = (plain("rsa"), plain("revoked"));
    lab.supersede("revoked");
    let trusted = lab.keyring(&["ed", "rsa", "second", "expired", "revoked"]);
    let mut flipped = good.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    let cases: [Case<'_>; 14] = [
        ("binary", good.clone(), FILE, Ok(&["rsa"])),
        ("armored", sign(&lab, FILE, &key("ed"), &["--armor"]), FILE, Ok(&["ed"])),
        ("two signers", [good.clone(), plain("second")].concat(), FILE, Ok(&["rsa", "second"])),
        ("a trusted one and a stranger", [good.clone(), plain("stranger")].concat(), FILE, Ok(&["rsa"])),
        ("another file", good.clone(), b"another", Err("bad signature: key")),
        ("a longer file", good.clone(), b"\x7fELF\r\n\0 a file\n\n", Err("bad signature: key")),
        ("an empty file", good.clone(), b"", Err("bad signature: key")),
        ("a flipped bit", flipped, FILE, Err("")),
        ("a stranger", plain("stranger"), FILE, Err("no valid signature of a trusted key: unknown key")),
        ("an expired key", plain("expired"), FILE, Err("no valid signature of a trusted key: key")),
        ("a revoked key", revoked, FILE, Err("no valid signature of a trusted key: key")),
        ("SHA-1", sign(&lab, FILE, &key("rsa"), &["--digest-algo", "SHA1"]), FILE, Err("bad signature: key")),
        ("over a text", sign(&lab, FILE, &key("rsa"), &["--textmode"]), FILE, Err("not over the bytes of a file")),
        ("no signature", FILE.to_vec(), FILE, Err("corrupt message")),
    ];
    for (name, signature, file, expected) in &cases {
        let result = FileSignature::verify(signature, *file, &trusted, now());
        match (&result, expected) {
            (Ok(found), Ok(by)) => {
                let mut signers: Vec<String> = by.iter().map(|name| key(name)).collect();
                signers.sort();
                assert_eq!(found.signers, signers, "{name}");
                assert_eq!(found.signed, "2026-11-14T08:00:00Z".parse().unwrap(), "{name}");
            }
            (Err(error), Err(message)) => assert!(error.to_string().contains(message), "{name}: {error}"),
            _ => panic!("{name}: {result:?}"),
        }
        // What we take, gpg takes, too.
        if result.is_ok() {
            let folder = tempfile::tempdir().unwrap();
            let paths = ["signature", "file"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
            std::fs::write(&paths[0], signature).unwrap();
            std::fs::write(&paths[1], file).unwrap();
            let time = NOW.replace(['-', ':', 'Z'], "");
            lab.gpg(&time, &["--verify", &paths[0], &paths[1]], b"");
        }
    }
}

/// The owner's statements about a pinned key may have signatures with SHA-1; a message, such as the index of an archive, needs more.
#[test]
fn a_key_with_sha1_self_signatures_signs_files_only() {
    let Some(lab) = Lab::with_keys(&[]) else { return };
    let options = ["--cert-digest-algo", "SHA1", "--allow-weak-digest-algos", "--passphrase", "", "--quick-gen-key"];
    lab.gpg("20260101T000000", &[&options[..], &["aged <aged@example.org>", "rsa2048", "sign", "never"]].concat(), b"");
    let fingerprint = lab.gpg(SIGNED, &["--with-colons", "--list-keys", "aged"], b"");
    let fingerprint = String::from_utf8(fingerprint).unwrap();
    let fingerprint = fingerprint.lines().find_map(|line| line.strip_prefix("fpr:")).unwrap().trim_matches(':');
    let keyring = Keyring::parse(&lab.gpg(SIGNED, &["--export", "aged"], b"")).unwrap();
    let signature = sign(&lab, FILE, fingerprint, &["--digest-algo", "SHA256"]);
    let found = FileSignature::verify(&signature, FILE, &keyring, now()).unwrap();
    assert_eq!(found.signers, [fingerprint]);
    let message = lab.gpg(SIGNED, &["--digest-algo", "SHA256", "--local-user", fingerprint, "--clearsign"], b"text\n");
    let error = Clearsigned::verify(&message, &keyring, now()).unwrap_err().to_string();
    assert!(error.contains("SHA1"), "{error}");
}

#[test]
fn the_keys_of_amazon_ssm_agent_are_those_that_aws_publishes() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../trust/amazon-ssm-agent.asc");
    let keys = Keyring::load(file.as_ref()).unwrap().keys(now());
    let found: Vec<(&str, &KeyState)> = keys.iter().map(|key| (key.fingerprint.as_str(), &key.state)).collect();
    let expected = [
        ("1C5B395CBE5E74E2F1CA21592784DBF388D19D46", &KeyState::Live),
        ("2BC7C7C267BBD505EAA491E6DD81A61756BAA549", &KeyState::Expired),
        ("4855A9E6833216D6A77D8FE451A8E050D0052E5D", &KeyState::Expired),
        ("DE92C7DA3E56E92331D62A36BC1F495C97DD04ED", &KeyState::Expired),
    ];
    assert_eq!(found, expected);
}
