//! Keys and signatures by real gpg, at chosen times.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use jiff::Timestamp;
use tempfile::TempDir;
use vmbake_proof::openpgp::Keyring;

/// The time of all checks, a week after [`SIGNED`].
pub const NOW: &str = "2026-11-21T00:00:00Z";
/// When everything is signed, as gpg writes times.
pub const SIGNED: &str = "20261114T080000";

/// Whether a tool is there.
pub fn have(tool: &str) -> bool {
    crate::tools::have(&[tool])
}

pub fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A home of gpg with keys.
pub struct Lab {
    home: TempDir,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = Command::new("gpgconf").arg("--homedir").arg(self.home.path()).args(["--kill", "all"]).status();
    }
}

impl Lab {
    /// Makes keys of 2026-01-01, or nothing where gpg is missing. What a key is follows from its name: `rsa`, `old` of 2012, or
    /// ed25519; `expired` expires on 2026-11-20; `parent` has two subkeys that sign, the second of which expires then.
    pub fn with_keys(names: &[&str]) -> Option<Self> {
        if !have("gpg") {
            return None;
        }
        let lab = Self { home: tempfile::Builder::new().prefix("gpg").tempdir().unwrap() };
        for name in names {
            let algorithm = if ["rsa", "old"].contains(name) { "rsa2048" } else { "ed25519" };
            let purpose = if *name == "parent" { "cert" } else { "sign" };
            let lifetime = if *name == "expired" { "2026-11-20" } else { "never" };
            let created = if *name == "old" { "20120101T000000" } else { "20260101T000000" };
            let id = id(name);
            lab.gpg(created, &["--passphrase", "", "--quick-gen-key", &id, algorithm, purpose, lifetime], b"");
            if *name == "parent" {
                let parent = lab.fingerprints(name).remove(0);
                for lifetime in ["never", "2026-11-20"] {
                    let args = ["--passphrase", "", "--quick-add-key", &parent, "ed25519", "sign", lifetime];
                    lab.gpg("20260102T000000", &args, b"");
                }
            }
        }
        Some(lab)
    }

    /// Revokes a key on 2026-11-15, the day after it signed, for a reason that leaves its older signatures good.
    pub fn supersede(&self, name: &str) {
        let answers = b"y\n2\n\ny\n";
        let revocation =
            self.gpg("20261115T000000", &["--no-batch", "--command-fd", "0", "--gen-revoke", &id(name)], answers);
        self.gpg("20261115T000000", &["--import"], &revocation);
    }

    /// Runs gpg at a time and returns what it prints; it must succeed.
    pub fn gpg(&self, time: &str, args: &[&str], input: &[u8]) -> Vec<u8> {
        let output = self.try_gpg(time, args, input);
        assert!(output.status.success(), "gpg {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Runs gpg at a time.
    pub fn try_gpg(&self, time: &str, args: &[&str], input: &[u8]) -> Output {
        let mut child = Command::new("gpg")
            .arg("--homedir")
            .arg(self.home.path())
            .args(["--batch", "--no-tty", "--pinentry-mode", "loopback", "--faked-system-time", &format!("{time}!")])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Fingerprints of a primary key and its subkeys.
    pub fn fingerprints(&self, name: &str) -> Vec<String> {
        let text = self.gpg(SIGNED, &["--with-colons", "--list-keys", &id(name)], b"");
        let text = String::from_utf8(text).unwrap();
        text.lines().filter_map(|line| Some(line.strip_prefix("fpr:")?.trim_matches(':').to_owned())).collect()
    }

    /// Public keys, armored.
    pub fn export(&self, names: &[&str]) -> Vec<u8> {
        let ids: Vec<String> = names.iter().map(|name| id(name)).collect();
        let mut args = vec!["--armor", "--export"];
        args.extend(ids.iter().map(String::as_str));
        self.gpg(SIGNED, &args, b"")
    }

    /// A keyring of these keys.
    pub fn keyring(&self, names: &[&str]) -> Keyring {
        Keyring::parse(&self.export(names)).unwrap()
    }

    /// Clearsigns a text with keys, given by name or fingerprint.
    pub fn sign(&self, text: &str, keys: &[&str]) -> Vec<u8> {
        self.sign_with(text, keys, "SHA256")
    }

    /// As [`Self::sign`], with another digest.
    pub fn sign_with(&self, text: &str, keys: &[&str], digest: &str) -> Vec<u8> {
        let ids: Vec<String> =
            keys.iter().map(|key| if key.ends_with('!') { (*key).to_owned() } else { id(key) }).collect();
        let mut args =
            vec!["--digest-algo", digest, "--personal-digest-preferences", digest, "--allow-weak-digest-algos"];
        ids.iter().for_each(|id| args.extend(["--local-user", id.as_str()]));
        args.push("--clearsign");
        self.gpg(SIGNED, &args, text.as_bytes())
    }
}

/// The user ID by which gpg finds exactly this key.
fn id(name: &str) -> String {
    format!("{name}@test.invalid")
}
