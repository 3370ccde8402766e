//! A registry that serves an older or another signed release.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use vmbake_release::binding::ReleaseBinding;
use vmbake_release::pull::PullError;
use vmbake_release::push::PushReport;
use vmbake_store::registry::Repository;

use super::yard::{How, Yard};
use crate::release::lab::{text, vmbake};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

fn binding(name: &str, version: Option<&str>) -> ReleaseBinding {
    ReleaseBinding { name: name.to_owned(), version: version.map(|version| version.parse().unwrap()) }
}

/// A signed release with the tag `latest`.
fn push(yard: &Yard, version: Option<&str>, release: &str) -> PushReport {
    let binding = binding("images", version);
    yard.push_bound(&binding, ("images", &["latest"]), (release, &["qcow2"]), Some("one"), true).unwrap()
}

/// Moves the tag, as an attacker with write access to the registry can.
fn move_tag(repository: &Repository, digest: &str) {
    let bytes = repository.manifest(digest).unwrap().bytes;
    repository.put_manifest("latest", INDEX, &bytes).unwrap();
}

fn by_key<'a>() -> How<'a> {
    How { key: Some("one"), force: true, ..How::default() }
}

#[test]
fn an_older_release_is_refused_even_if_it_is_signed() {
    let Some(yard) = Yard::new() else { return };
    yard.other(96 << 20);
    let unversioned = push(&yard, None, "signed");
    assert_eq!(yard.pull(":latest", "out", &by_key()).unwrap().version, None);
    let first = push(&yard, Some("1.9"), "signed");
    let second = push(&yard, Some("1.10"), "other");
    assert_eq!(yard.pull(":latest", "out", &by_key()).unwrap().version.as_deref(), Some("1.10"));

    let repository = yard.repository();
    move_tag(&repository, &first.digest);
    let error = yard.pull(":latest", "none", &by_key()).unwrap_err();
    assert!(
        matches!(&error, PullError::Older { version, newest, .. } if version == "1.9" && newest == "1.10"),
        "{error}"
    );
    assert!(yard.visible("none").is_empty());
    // What is wanted is done once, and is refused again.
    let allowed = yard.pull(":latest", "out", &How { allow_downgrade: true, ..by_key() }).unwrap();
    assert_eq!(allowed.digest, first.digest);
    assert!(matches!(yard.pull(":latest", "none", &by_key()), Err(PullError::Older { .. })));
    // A digest names this release and no other.
    yard.pull(&format!("@{}", first.digest), "out", &by_key()).unwrap();
    yard.pull(&format!(":latest@{}", first.digest), "out", &by_key()).unwrap();

    move_tag(&repository, &unversioned.digest);
    assert!(matches!(yard.pull(":latest", "none", &by_key()), Err(PullError::Unversioned { .. })));
    let again = push(&yard, Some("1.10.0"), "signed");
    let error = yard.pull(":latest", "none", &by_key()).unwrap_err();
    assert!(error.to_string().contains(&again.digest), "{error}");
    assert!(matches!(error, PullError::SameVersion { .. }), "{error}");
    move_tag(&repository, &second.digest);
    yard.pull(":latest", "out", &by_key()).unwrap();

    // The version is a part of what is signed.
    let mut index: Value = serde_json::from_slice(&repository.manifest(&first.digest).unwrap().bytes).unwrap();
    index["annotations"]["vmbake.release.version"] = "9.9".into();
    repository.put_manifest("latest", INDEX, &serde_json::to_vec(&index).unwrap()).unwrap();
    assert!(matches!(yard.pull(":latest", "none", &by_key()), Err(PullError::Unsigned { .. })));
}

#[test]
fn a_release_of_another_name_is_refused() {
    let Some(yard) = Yard::new() else { return };
    let images = binding("images", Some("1.0"));
    // As oras copies it.
    yard.push_bound(&images, ("other/images", &["latest"]), ("signed", &["qcow2"]), Some("one"), false).unwrap();
    let there = How { repository: Some("other/images"), ..by_key() };
    let error = yard.pull(":latest", "none", &there).unwrap_err();
    assert!(
        matches!(&error, PullError::Name { asked, found, .. } if asked == "other/images" && found == "images"),
        "{error}"
    );
    assert!(yard.visible("none").is_empty());
    yard.pull(":latest", "out", &How { name: Some("images"), ..there }).unwrap();
}

#[test]
fn what_was_seen_stays_seen() {
    let Some(yard) = Yard::new() else { return };
    yard.other(96 << 20);
    let first = push(&yard, Some("1.0"), "signed");
    push(&yard, Some("2.0"), "other");
    let name = yard.name(":latest").to_string();
    let (key, state, store) = (yard.lab.path("one.pub"), yard.lab.path("xdg"), yard.lab.path("pulled-store"));
    let args = |out: &str| {
        let out = yard.lab.path(out);
        ["pull", &name, "--key", text(&key), "--store", text(&store), "--out", text(&out)].map(str::to_owned)
    };
    let running: Vec<_> = (0..4)
        .map(|number| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
            command.args(args(&format!("out{number}"))).env("XDG_STATE_HOME", &state);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for process in running {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    move_tag(&yard.repository(), &first.digest);
    let pull = |more: &[&str]| {
        let args = args("out");
        let args: Vec<&str> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let output = vmbake(&args, &[("XDG_STATE_HOME", text(&state))]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = pull(&[]);
    assert!(
        code == Some(1) && said.contains("version 1.0 is older than version 2.0, which was pulled before"),
        "{said}"
    );
    assert!(said.contains("--allow-downgrade"), "{said}");
    assert!(!yard.lab.path("out").exists());

    // What was remembered and cannot be read would let everything in.
    let folder = state.join("vmbake/releases");
    let file =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some());
    fs::write(file.as_ref().unwrap(), "{").unwrap();
    let (code, said) = pull(&[]);
    assert!(code == Some(1) && said.contains("cannot read or write the record of the newest version"), "{said}");
    // Without it any version is the first one.
    fs::remove_file(file.unwrap()).unwrap();
    let (code, said) = pull(&["--format", "qcow2"]);
    assert_eq!(code, Some(0), "{said}");

    // Without a home only a digest can be pulled.
    let run = |reference: &str| {
        let mut words = args("homeless").to_vec();
        words[1] = reference.to_owned();
        words.push("--force".to_owned());
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        let output = command.args(words).env_remove("HOME").env_remove("XDG_STATE_HOME").output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (done, said) = run(&name);
    assert!(!done && said.contains("neither HOME nor XDG_STATE_HOME is set") && said.contains("--state"), "{said}");
    let (done, said) = run(yard.name(&format!("@{}", first.digest)).to_string().as_str());
    assert!(done, "{said}");
}
