//! URLs with credentials are refused at every input and never shown.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::requested::yard::{Yard, stated};

/// The password of all tests, which no message may have.
const PASSWORD: &str = "hunter2";
const MESSAGE: &str = "URL contains a user name or password";

fn vmbake(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
    command
        .args(args)
        .current_dir(dir)
        .env("XDG_CONFIG_HOME", dir.join("config"))
        .env("XDG_CACHE_HOME", dir.join("cache"));
    let output = command.envs(variables.iter().copied()).output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap())
}

/// Fails unless it was refused without the password being shown.
fn refused(what: &str, (ok, said): (bool, String)) {
    assert!(!ok && said.contains(MESSAGE) && !said.contains(PASSWORD) && !said.contains("alice"), "{what}: {said}");
}

#[test]
fn no_option_takes_credentials() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("https://alice:{PASSWORD}@host.example/x");
    for args in [
        &["fetch", "node", "--mirror", &format!("https://a.example={url}")][..],
        &["fetch", "node", &format!("--mirror={url}=https://b.example")],
        &["bake", "node", "--builder-id", &url],
        &["bake", "node", "--shared", &format!("oci://alice:{PASSWORD}@host.example/x")],
        &["pull", &format!("oci://alice:{PASSWORD}@host.example/x:1")],
        &["user-data", "render", "--kind", "node", "--set", &format!("HTTPS_PROXY={url}")],
        &["profile", "render", "a.yaml", "--set", &format!("node-http-proxy={url}")],
        &["trust", &url],
        &["no-such-command", &url],
    ] {
        let (ok, said) = vmbake(dir.path(), args, &[]);
        assert!(said.contains("hint: URLs are recorded and published"), "{said}");
        refused(&args.join(" "), (ok, said));
    }
    refused(
        "VMBAKE_MIRRORS",
        vmbake(
            dir.path(),
            &["bundle", "inspect", "registry.example/a:1"],
            &[("VMBAKE_MIRRORS", &format!("https://a.example={url}"))],
        ),
    );
    // References of containers have no scheme.
    refused("reference", vmbake(dir.path(), &["pull", &format!("alice:{PASSWORD}@host.example/x:1")], &[]));
    // What has an at sign elsewhere is fine.
    let args = ["fetch", "node", "--mirror", "https://a.example=https://b.example/@scope", "--offline"];
    assert!(!vmbake(dir.path(), &args, &[]).1.contains(MESSAGE));
}

#[test]
fn no_document_takes_credentials() {
    let Some(yard) = Yard::new() else { return };
    let dir = yard.path(".");
    yard.layer("box", &stated().replace("https://up.example", &format!("https://alice:{PASSWORD}@up.example")));
    let layer = yard.update(&[]);
    assert!(layer.1.contains("layers/box/layer.json:1:"), "{}", layer.1);
    refused("layer", layer);
    for keys in [
        format!(r#", "bundles": ["oci://alice:{PASSWORD}@host.example/x:1"]"#),
        format!(r#", "first_boot": {{"variables": {{"HTTP_PROXY": {{"default": "alice:{PASSWORD}@proxy:3128"}}}}}}"#),
    ] {
        yard.layer("box", &keys);
        refused(&keys, yard.update(&[]));
    }
    // File contents and first-boot templates are not URLs for vmbake.
    yard.layer("box", r#", "files": {"/etc/x": {"content": "see https://a@b.example\n"}}"#);
    yard.updated();

    let text = fs::read_to_string(yard.path("m/box.o.amd64.json")).unwrap();
    // JSON escapes do not hide credentials.
    let changed = text.replacen('{', &format!(r#"{{"x": "https:\/\/alice:{PASSWORD}\u0040h/x", "#), 1);
    fs::write(yard.path("manifest.json"), changed).unwrap();
    refused("manifest", vmbake(&dir, &["manifest", "show", "manifest.json"], &[]));

    let sources = fs::read_to_string(yard.path("sources.json")).unwrap();
    fs::write(yard.path("secret.json"), sources.replacen("https://", &format!("https://alice:{PASSWORD}@"), 1))
        .unwrap();
    refused("sources", vmbake(&dir, &["update", "box", "--sources", "secret.json"], &[]));

    fs::create_dir_all(yard.path("config/vmbake")).unwrap();
    let config = format!(r#"{{"mirrors": {{"https://a.example": "http://alice:{PASSWORD}@b.example"}}}}"#);
    fs::write(yard.path("config/vmbake/config.json"), config).unwrap();
    refused("config", vmbake(&dir, &["bundle", "inspect", "registry.example/a:1"], &[]));
    fs::remove_dir_all(yard.path("config")).unwrap();

    let bundle = format!(
        r#"{{"schema": 1, "publisher": "acme", "name": "agent", "version": "1", "description": "https://alice:{PASSWORD}@h/",
        "os": ["o"], "arch": ["amd64"], "asks": {{}}}}"#
    );
    fs::create_dir_all(yard.path("bundle/layers")).unwrap();
    fs::write(yard.path("bundle/bundle.json"), bundle).unwrap();
    refused("bundle", vmbake(&dir, &["bundle", "check", "bundle"], &[]));
}
