//! Trust anchors: changes by a new version, confirmation, and trust/README.md.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::apt::lab::{Lab, SIGNED, have, now};
use vmbake_pin::trust::{Anchor, Item, Proposal, ProposalError, TrustError};

const ROOT: &str = include_str!("../../../trust/sigstore-root.json");

fn trust() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../trust")
}

fn vmbake() -> Command {
    Command::new(env!("CARGO_BIN_EXE_vmbake"))
}

/// What `documents` would make of the file `name` in `dir`.
fn propose(dir: &Path, name: &str, documents: &[&[u8]]) -> Result<Proposal, ProposalError<std::io::Error>> {
    let urls: Vec<String> = (0..documents.len()).map(|at| at.to_string()).collect();
    let fetch = |url: &str| Ok(documents[url.parse::<usize>().unwrap()].to_vec());
    Proposal::fetch(dir, name, &urls, &fetch, now())
}

fn ids(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.id.as_str()).collect()
}

#[test]
fn the_readme_is_what_show_prints() {
    let shown = vmbake().args(["trust", "show", "--trust"]).arg(trust()).output().unwrap();
    let built_in = vmbake().args(["trust", "show"]).output().unwrap();
    let readme = fs::read_to_string(trust().join("README.md")).unwrap();
    let (_, generated) = readme.split_once("<!-- Below: vmbake trust show -->\n\n").unwrap();
    assert_eq!(generated, String::from_utf8(shown.stdout).unwrap(), "`vmbake trust update` renews it");
    assert_eq!(generated, String::from_utf8(built_in.stdout).unwrap());
}

#[test]
fn keys_that_come_go_and_change_are_told_apart() {
    let Some(lab) = Lab::with_keys(&["good", "rsa", "unknown"]) else { return };
    let dir = tempfile::tempdir().unwrap();
    let fingerprint = |name| lab.fingerprints(name).remove(0);
    let old = lab.export(&["good", "unknown"]);
    let first = propose(dir.path(), "k.asc", &[&old]).unwrap();
    assert!(first.is_new());
    assert_eq!(first.change().added.len(), 2);
    assert!(!dir.path().join("k.asc").exists());
    first.accept().unwrap();

    let (good, unknown) = (lab.export(&["good"]), lab.export(&["unknown"]));
    let same = propose(dir.path(), "k.asc", &[&unknown, &good]).unwrap();
    assert!(!same.is_new());
    fs::write(dir.path().join("k.asc"), [&b"Our keys\n"[..], &unknown, &good].concat()).unwrap();
    assert!(!propose(dir.path(), "k.asc", &[&old]).unwrap().is_new());

    lab.gpg(SIGNED, &["--quick-set-expire", &fingerprint("good"), "2030-01-01"], b"");
    let changed = propose(dir.path(), "k.asc", &[&lab.export(&["good", "rsa"])]).unwrap();
    assert!(changed.is_new());
    assert_eq!(ids(&changed.change().added), [fingerprint("rsa")]);
    assert_eq!(ids(&changed.change().removed), [fingerprint("unknown")]);
    assert_eq!(ids(&changed.change().changed), [fingerprint("good")]);
    let line = changed.change().changed[0].to_string();
    assert!(line.ends_with("good@test.invalid, valid from 2026-01-01 until 2030-01-01"), "{line}");
    changed.accept().unwrap();
    assert!(!propose(dir.path(), "k.asc", &[&lab.export(&["rsa", "good"])]).unwrap().is_new());
}

#[test]
fn expired_and_revoked_keys_are_named() {
    let Some(lab) = Lab::with_keys(&["good", "expired", "superseded"]) else { return };
    lab.supersede("superseded");
    let dir = tempfile::tempdir().unwrap();
    let proposal = propose(dir.path(), "k.asc", &[&lab.export(&["good", "expired", "superseded"])]).unwrap();
    let mut faults: Vec<_> =
        proposal.faults().iter().map(|item| (item.owner.as_str(), item.fault.as_deref())).collect();
    faults.sort_unstable();
    assert_eq!(faults, [("expired@test.invalid", Some("expired")), ("superseded@test.invalid", Some("revoked"))]);
}

#[test]
fn authorities_and_logs_are_compared_by_their_keys() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("r.json"), ROOT).unwrap();
    let propose = |text: &str| propose(dir.path(), "r.json", &[text.as_bytes()]).unwrap();
    assert!(!propose(ROOT).is_new());
    let kinds = |items: &[Item]| items.iter().map(|item| item.kind).collect::<Vec<_>>();

    let mut root: serde_json::Value = serde_json::from_str(ROOT).unwrap();
    // The key of a log is swapped, but not the name that bundles call it by.
    root["tlogs"][0]["publicKey"]["rawBytes"] = root["ctlogs"][0]["publicKey"]["rawBytes"].clone();
    root["certificateAuthorities"].as_array_mut().unwrap().remove(0);
    root["ctlogs"][1]["publicKey"]["validFor"]["end"] = "2027-01-01T00:00:00Z".into();
    let proposal = propose(&root.to_string());
    assert_eq!(kinds(&proposal.change().added), ["transparency log"]);
    assert_eq!(kinds(&proposal.change().removed), ["certificate authority", "transparency log"]);
    assert_eq!(kinds(&proposal.change().changed), ["certificate log"]);

    let spaced = format!("{ROOT}\n\n");
    let proposal = propose(&spaced);
    assert!(proposal.is_new() && proposal.change().added.is_empty() && proposal.change().changed.is_empty());
}

#[test]
fn what_is_no_anchor_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let without = |list: &str| {
        let mut root: serde_json::Value = serde_json::from_str(ROOT).unwrap();
        root[list] = serde_json::json!([]);
        root.to_string()
    };
    let (no_authority, no_log) = (without("certificateAuthorities"), without("tlogs"));
    let other = ROOT.replace("sigstore.trustedroot", "sigstore.bundle");
    let cases: [(&str, &[&[u8]], &str); 8] = [
        ("k.asc", &[b"<html>not found</html>"], "k.asc: cannot use the keyring"),
        ("k.asc", &[b""], "k.asc: cannot use the keyring"),
        ("r.json", &[b"<html>"], "r.json: not a valid sigstore trusted root"),
        ("r.json", &[no_authority.as_bytes()], "r.json: no certificate authority listed"),
        ("r.json", &[no_log.as_bytes()], "r.json: no transparency log listed"),
        ("r.json", &[other.as_bytes()], "r.json: media type is \"application/vnd.dev.sigstore.bundle"),
        ("r.json", &[ROOT.as_bytes(), ROOT.as_bytes()], "r.json: expected a single URL, found 2"),
        ("r.txt", &[b"x"], "r.txt: "),
    ];
    for (name, documents, message) in cases {
        let error = propose(dir.path(), name, documents).unwrap_err().to_string();
        assert!(error.starts_with(message), "{name}: {error}");
    }
    fs::write(dir.path().join("r.json"), "damaged").unwrap();
    let error = propose(dir.path(), "r.json", &[ROOT.as_bytes()]).unwrap_err();
    assert!(matches!(error, ProposalError::Trust(TrustError::Root { .. })), "{error}");
    assert!(Anchor::parse("r.json", ROOT.into()).is_ok());
}

/// A site that serves files, and a folder of anchors that come from it.
struct Site {
    dir: tempfile::TempDir,
    address: String,
}

impl Site {
    fn start(files: BTreeMap<String, Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let mut lines = BufReader::new(connection.try_clone().unwrap()).lines().map_while(Result::ok);
                let request = lines.next().unwrap_or_default();
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let (status, body) = match files.get(request.split(' ').nth(1).unwrap_or_default()) {
                    Some(body) => ("200 OK", body.as_slice()),
                    None => ("404 Not Found", &[][..]),
                };
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(body));
            }
        });
        Self { dir: tempfile::tempdir().unwrap(), address }
    }

    /// A command that asks this site in place of those in `sources.json`.
    fn update(&self, more: &[&str]) -> Vec<String> {
        let mut words: Vec<String> = vec!["trust".to_owned(), "update".to_owned(), "--trust".to_owned()];
        words.push(self.dir.path().to_str().unwrap().to_owned());
        for host in ["ftp-master.debian.org", "packages.fluentbit.io", "raw.githubusercontent.com"] {
            words.push("--mirror".to_owned());
            words.push(format!("https://{host}={}", self.address));
        }
        words.extend(more.iter().map(|word| (*word).to_owned()));
        words
    }

    fn run(&self, more: &[&str]) -> Output {
        vmbake().args(self.update(more)).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs with a terminal and typed input.
    fn run_on_terminal(&self, more: &[&str], typed: &str) -> Output {
        let words = self.update(more).join(" ");
        let command = format!("{} {words}", env!("CARGO_BIN_EXE_vmbake"));
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

const FLUENTBIT: &str = "fluentbit.asc";

#[test]
fn nothing_is_replaced_before_somebody_agrees() {
    let Some(lab) = Lab::with_keys(&["good", "unknown"]) else { return };
    let site = Site::start([("/fluentbit.key".to_owned(), lab.export(&["unknown"]))].into());
    let old = lab.export(&["good"]);
    fs::write(site.file(FLUENTBIT), &old).unwrap();
    fs::write(site.file("README.md"), "Ours.\n<!-- Below: vmbake trust show -->\nold\n").unwrap();
    let only = ["--only", FLUENTBIT];
    let content = || fs::read(site.file(FLUENTBIT)).unwrap();

    let output = site.run(&only);
    let (shown, error) = (String::from_utf8(output.stdout.clone()).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(code(&output), Some(1), "{error}");
    assert!(error.contains("stdin is not a terminal"), "{error}");
    for (what, name) in [("added", "unknown"), ("removed", "good")] {
        let line = format!("{FLUENTBIT}: {what}: OpenPGP key {} {name}@test.invalid", lab.fingerprints(name)[0]);
        assert!(shown.contains(&line), "{shown}");
    }
    assert_eq!(content(), old);

    if have("script") {
        for (typed, replaced) in [("n\n", false), ("\n", false), ("maybe\n", false), ("y\n", true)] {
            let output = site.run_on_terminal(&only, typed);
            assert_eq!(code(&output), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
            assert_eq!(content() != old, replaced, "{typed:?}");
        }
        fs::write(site.file(FLUENTBIT), &old).unwrap();
    }

    assert_eq!(code(&site.run(&["--only", FLUENTBIT, "--yes"])), Some(0));
    let new = content();
    assert_ne!(new, old);
    let readme = fs::read_to_string(site.file("README.md")).unwrap();
    assert!(readme.starts_with("Ours.\n") && readme.contains(&lab.fingerprints("unknown")[0]), "{readme}");
    let output = site.run(&only);
    assert_eq!((code(&output), &*output.stdout), (Some(0), &b"fluentbit.asc: unchanged\n"[..]));
    assert_eq!(content(), new);
}

#[test]
fn nothing_is_replaced_where_one_anchor_cannot_be_fetched() {
    let fluentbit = fs::read(trust().join(FLUENTBIT)).unwrap();
    let site = Site::start([("/fluentbit.key".to_owned(), fluentbit)].into());
    let output = site.run(&["--yes"]);
    assert_eq!(code(&output), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("amazon-ssm-agent.asc: cannot fetch"));
    assert!(!site.file(FLUENTBIT).exists());
    assert_eq!(code(&site.run(&["--only", "unheard-of.asc"])), Some(1));
    assert_eq!(code(&site.run(&["--only", FLUENTBIT, "--yes"])), Some(0));
    assert!(site.file(FLUENTBIT).exists());
}
