//! Keys: interoperability with openssl and cosign, and no key material in messages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::lab::{Lab, NAME, edit, stderr, text, vmbake};
use crate::origin::bakery::can_bake;
use crate::tools::have;

fn openssl(args: &[&str]) {
    let output = Command::new("openssl").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/release").join(name)
}

#[test]
fn openssl_reads_what_is_generated() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/k");
    let made = vmbake(&["key", "generate", "--out", text(&out)], &[]);
    assert!(made.status.success(), "{}", stderr(&made));
    let (private, public) = (out.with_extension("key"), out.with_extension("pub"));
    assert_eq!(String::from_utf8(made.stdout).unwrap(), format!("{}\n{}\n", private.display(), public.display()));
    assert_eq!(private.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&private).unwrap();
    for there in [&private, &public] {
        let again = vmbake(&["key", "generate", "--out", text(&out)], &[]);
        assert_eq!(again.status.code(), Some(1));
        assert!(stderr(&again).contains(": already exists: keys are never replaced"), "{}", stderr(&again));
        assert_eq!(fs::read(&private).unwrap(), before);
        // The other half alone is in the way as well.
        if *there == private {
            fs::rename(&private, dir.path().join("aside")).unwrap();
            let half = vmbake(&["key", "generate", "--out", text(&out)], &[]);
            assert!(half.status.code() == Some(1) && !private.exists(), "{}", stderr(&half));
            fs::rename(dir.path().join("aside"), &private).unwrap();
        }
    }
    if have(&["openssl"]) {
        let derived = dir.path().join("derived");
        openssl(&["pkey", "-in", text(&private), "-check", "-pubout", "-out", text(&derived)]);
        let derived = fs::read_to_string(derived).unwrap();
        assert!(derived.contains(&fs::read_to_string(&public).unwrap()), "{derived}");
    }
}

#[test]
fn openssl_verifies_what_is_signed() {
    if !can_bake() || !have(&["openssl", "base64"]) {
        return;
    }
    let lab = Lab::new();
    let out = lab.path("signed");
    let field = |bundle: &str, pointer: &str, to: &str| {
        let bundle: serde_json::Value = serde_json::from_slice(&fs::read(out.join(bundle)).unwrap()).unwrap();
        let to = lab.path(to);
        fs::write(to.with_extension("b64"), bundle.pointer(pointer).unwrap().as_str().unwrap()).unwrap();
        let decoded = Command::new("base64").arg("-d").arg(to.with_extension("b64")).output().unwrap();
        fs::write(&to, decoded.stdout).unwrap();
        to
    };
    let verify = |signature: &Path, content: &Path| {
        let key = lab.path("one.pub");
        openssl(&["dgst", "-sha256", "-verify", text(&key), "-signature", text(signature), text(content)]);
    };
    for list in ["SHA256SUMS", "FSVERITYSUMS"] {
        verify(&field(&format!("{list}.sigstore.json"), "/messageSignature/signature", list), &out.join(list));
    }
    let bundle = format!("{NAME}.provenance.sigstore.json");
    let signature = field(&bundle, "/dsseEnvelope/signatures/0/sig", "dsse");
    let payload = field(&bundle, "/dsseEnvelope/payload", "payload");
    let statement = fs::read(out.join(format!("{NAME}.provenance.json"))).unwrap();
    assert_eq!(fs::read(payload).unwrap(), statement);
    let head = format!("DSSEv1 28 application/vnd.in-toto+json {} ", statement.len());
    fs::write(lab.path("pae"), [head.as_bytes(), &statement].concat()).unwrap();
    verify(&signature, &lab.path("pae"));

    // Signing again changes nothing; another key replaces all; nothing else is left behind.
    let files = || {
        let entries = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.map(|path| (path.clone(), fs::metadata(&path).unwrap().len())).collect();
        files.sort();
        files
    };
    let (before, text) = (files(), fs::read(out.join(&bundle)).unwrap());
    lab.sign(&out, "one", &[]);
    assert_eq!(fs::read(out.join(&bundle)).unwrap(), text);
    lab.sign(&out, "two", &[]);
    assert_ne!(fs::read(out.join(&bundle)).unwrap(), text);
    assert_eq!(files().len(), before.len());
}

#[test]
fn bad_keys_are_told_apart_and_never_shown() {
    if !have(&["openssl"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let made = |name: &str, args: &[&str]| {
        let file = path(name);
        openssl(&[args, &["-out", text(&file)]].concat());
        file
    };
    let generated = |name: &str, algorithm: &[&str]| made(name, &[&["genpkey"], algorithm].concat());
    let curve = |name: &str, curve: &str| {
        generated(name, &["-algorithm", "EC", "-pkeyopt", &format!("ec_paramgen_curve:{curve}")])
    };
    let good = curve("good", "P-256");
    let copy = |name: &str, change: &dyn Fn(String) -> String| {
        fs::copy(&good, path(name)).unwrap();
        edit(&path(name), change);
        path(name)
    };
    let cases = [
        (curve("p384", "P-384"), "unsupported key type ECDSA with P-384, expected ECDSA P-256"),
        (curve("k1", "secp256k1"), "unsupported key type ECDSA with secp256k1, expected"),
        (generated("ed", &["-algorithm", "ED25519"]), "unsupported key type Ed25519, expected"),
        (generated("rsa", &["-algorithm", "RSA"]), "unsupported key type RSA, expected"),
        (
            made("sec1", &["ec", "-in", text(&good)]),
            "unsupported private key format \"EC PRIVATE KEY\", expected PKCS#8",
        ),
        (
            made("sealed", &["pkcs8", "-topk8", "-in", text(&good), "-passout", "pass:x"]),
            "unsupported private key format \"ENCRYPTED PRIVATE KEY\", expected PKCS#8",
        ),
        (
            made("public", &["pkey", "-in", text(&good), "-pubout"]),
            "a public key cannot sign: a private key is required",
        ),
        (copy("cut", &|text| text[..text.len() / 2].to_owned()), "invalid PEM"),
        (copy("empty", &|_| String::new()), "invalid PEM"),
        (copy("short", &|text| text.replacen(text.lines().nth(1).unwrap(), "MIGHAgEAMBMGByqGSM49", 1)), "invalid PEM"),
        (copy("label", &|text| text.replace("PRIVATE KEY", "CERTIFICATE")), "not a private key"),
    ];
    for (key, expected) in &cases {
        let refused = vmbake(&["sign", text(dir.path()), "--key", text(key)], &[]);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{}: {said}", key.display());
        assert!(said.contains(expected) && said.contains("\nhint: "), "{}: {said}", key.display());
        assert!(!shows(&said, &fs::read_to_string(key).unwrap()), "{}: {said}", key.display());
    }
    // The good one fails for another reason.
    let text_of = fs::read_to_string(&good).unwrap();
    for (key, variables) in [(text(&good), vec![]), ("env://K", vec![("K", text_of.as_str())])] {
        let refused = vmbake(&["sign", text(dir.path()), "--key", key], &variables);
        assert!(
            stderr(&refused).contains("SHA256SUMS: not found, so there is nothing to sign"),
            "{}",
            stderr(&refused)
        );
        assert!(!shows(&stderr(&refused), &text_of));
    }
    for (key, expected) in [
        ("env://K", "environment variable \"K\" is not set to a key"),
        ("env://", "environment variable \"\" is not set to a key"),
        ("/nonexistent", "/nonexistent: cannot read the key"),
    ] {
        let refused = vmbake(&["sign", text(dir.path()), "--key", key], &[]);
        assert!(stderr(&refused).contains(expected), "{}", stderr(&refused));
    }
    let wrong = vmbake(&["sign", ".", "--key", "env://K"], &[("K", "private text")]);
    assert!(stderr(&wrong).contains("env://K: not usable as a private key"), "{}", stderr(&wrong));
    assert!(!stderr(&wrong).contains("private text"), "{}", stderr(&wrong));
}

/// Whether a message has a part of a key.
fn shows(said: &str, key: &str) -> bool {
    let lines = key.lines().filter(|line| !line.starts_with("-----") && line.len() >= 12);
    lines.flat_map(|line| line.as_bytes().windows(12)).any(|part| said.contains(str::from_utf8(part).unwrap()))
}

#[test]
fn keys_of_cosign_open_with_their_password() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    let (out, key) = (lab.path("signed"), fixture("cosign.key"));
    let sign = |key: &Path, variables: &[(&str, &str)]| {
        let signed = vmbake(&["sign", text(&out), "--key", text(key), "--label", "cosign", "--json"], variables);
        let said = stderr(&signed);
        assert!(!shows(&said, &fs::read_to_string(key).unwrap()), "{said}");
        (signed.status.code().unwrap(), said)
    };
    assert_eq!(sign(&key, &[("COSIGN_PASSWORD", "pw")]), (0, String::new()));
    let public = fixture("cosign.pub");
    assert_eq!(lab.verify(&out, &["--key", text(&public)]), (0, vec![]));
    let (code, said) = sign(&key, &[("COSIGN_PASSWORD", "secret")]);
    assert!(code == 1 && said.contains("cannot decrypt the key: wrong password in COSIGN_PASSWORD"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    let (code, said) = sign(&key, &[]);
    assert!(code == 1 && said.contains("the key is encrypted, but COSIGN_PASSWORD is not set"), "{said}");

    let sealed = |name: &str, change: &dyn Fn(String) -> String| {
        let whole = fs::read_to_string(&key).unwrap();
        let lines: Vec<_> = whole.lines().filter(|line| !line.starts_with("-----")).collect();
        let json = String::from_utf8(run("base64", &["-d"], lines.concat().as_bytes())).unwrap();
        let changed = change(json.clone());
        assert_ne!(json, changed, "{name}");
        let body = String::from_utf8(run("base64", &["-w", "64"], changed.as_bytes())).unwrap();
        let label = "ENCRYPTED SIGSTORE PRIVATE KEY";
        let path = lab.path(name);
        fs::write(&path, format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", body.trim_end())).unwrap();
        path
    };
    let replace = |from: &'static str, to: &'static str| move |json: String| json.replace(from, to);
    for (name, change, expected) in [
        ("greedy", &replace("65536", "68719476736") as &dyn Fn(String) -> String, "scrypt with N=68719476736"),
        ("odd", &replace("65536", "65537"), "scrypt with N=65537"),
        ("kdf", &replace("\"scrypt\"", "\"md5\""), "\"md5\" with \"nacl/secretbox\""),
        ("more", &replace("{\"kdf\"", "{\"x\":1,\"kdf\""), "unknown field"),
        ("twice", &replace("\"r\":8", "\"r\":8,\"r\":8"), "duplicate field"),
        ("nonce", &replace("\"nonce\":\"", "\"nonce\":\"AAAA"), "nonce length is not 24"),
    ] {
        let (code, said) = sign(&sealed(name, change), &[("COSIGN_PASSWORD", "pw")]);
        assert!(code == 1 && said.contains("unsupported encryption") && said.contains(expected), "{name}: {said}");
    }
}

fn run(program: &str, args: &[&str], input: &[u8]) -> Vec<u8> {
    use std::io::Write;
    use std::process::Stdio;
    let mut child = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}
