//! Registries with wrong lengths and tokens, and concurrent processes on the same files.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vmbake_common::digest::Digest;
use vmbake_store::http::{Client, Mirrors};
use vmbake_store::registry::{RegistryError, pull_tag};
use vmbake_store::store::Store;

/// Serves these files, each after a pause; `?` and what follows is ignored. What has no length here, never ends.
pub(crate) struct Site {
    pub(crate) url: String,
    files: BTreeMap<String, File>,
    asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
pub(crate) struct File {
    status: &'static str,
    headers: String,
    body: Vec<u8>,
}

pub(crate) fn file(body: impl Into<Vec<u8>>) -> File {
    let body = body.into();
    File { status: "200 OK", headers: format!("content-length: {}\r\n", body.len()), body }
}

/// Says that it is at another address.
pub(crate) fn redirect(location: &str) -> File {
    let headers = format!("location: {location}\r\ncontent-length: 0\r\n");
    File { status: "301 Moved Permanently", headers, body: Vec::new() }
}

pub(crate) fn serve(pause: Duration, files: BTreeMap<String, File>) -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, served) = (asked.clone(), files.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (files, log) = (files.clone(), log.clone());
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let Some(first) = lines.next() else { return };
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let path = first.split([' ', '?']).nth(1).unwrap().to_owned();
                log.lock().unwrap().push(path.clone());
                std::thread::sleep(pause);
                let absent = || File { status: "404 Not Found", ..file("") };
                let found = files.get(&path).cloned().unwrap_or_else(absent);
                let status = found.status;
                let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{}\r\n", found.headers);
                // A client that disconnects early is not an error.
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&found.body));
            });
        }
    });
    Site { url, files: served, asked }
}

impl Site {
    /// What it serves at a path.
    pub(crate) fn body(&self, path: &str) -> Vec<u8> {
        self.files[path].body.clone()
    }

    fn client(&self, prefix: &str) -> Client {
        let mut mirrors = Mirrors::default();
        mirrors.insert(format!("{prefix}={}", self.url).parse().unwrap());
        Client::new(mirrors)
    }
}

fn store(dir: &Path) -> Store {
    Store::open(Some(dir.join("store"))).unwrap()
}

#[test]
fn a_layer_may_not_be_as_long_as_a_registry_likes() {
    let content = Digest::of(b"content");
    let config = format!(
        r#"{{"os": "linux", "architecture": "amd64", "rootfs": {{"type": "layers", "diff_ids": ["{content}"]}}}}"#
    );
    let layer = Digest::of(b"never seen");
    let manifest = format!(
        r#"{{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": "{}", "size": {}}},
        "layers": [{{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": "{layer}", "size": {}}}]}}"#,
        Digest::of(config.as_bytes()),
        config.len(),
        u64::MAX / 2
    );
    let files = BTreeMap::from([
        ("/v2/a/manifests/1".to_owned(), file(manifest.clone())),
        (format!("/v2/a/manifests/{}", Digest::of(manifest.as_bytes())), file(manifest)),
        (format!("/v2/a/blobs/{}", Digest::of(config.as_bytes())), file(config)),
    ]);
    let site = serve(Duration::ZERO, files);
    let dir = tempfile::tempdir().unwrap();
    let client = site.client("https://registry.example");
    let error = pull_tag(&client, &store(dir.path()), "registry.example/a:1", "linux/amd64").unwrap_err();
    let RegistryError::TooLarge { digest, size, limit, .. } = error else { panic!("{error}") };
    assert_eq!((*digest, size, limit), (layer, u64::MAX / 2, 16 << 30));
    assert!(!site.asked.lock().unwrap().contains(&format!("/v2/a/blobs/{layer}")), "it is not even asked for");
}

const SOURCES: &str = r#"{"archives": {}, "systems": {"debian-13": {"codename": "trixie", "kinds": ["k"], "arches": ["amd64"],
  "image": {"type": "qcow2", "version": {"pinned": "1"}, "url": "https://up.example/image", "proof": "first-use"}}},
  "dependencies": [
    {"name": "a", "kinds": ["k"], "upstream": {"type": "binary", "version": {"pinned": "1"}, "url": "https://up.example/a", "proof": "first-use"}},
    {"name": "b", "kinds": ["k"], "upstream": {"type": "binary", "version": {"pinned": "1"}, "url": "https://up.example/b", "proof": "first-use"}}
  ], "images": [], "trust": {}}"#;

#[test]
fn two_updates_of_the_same_manifests_lose_nothing() {
    let files = [("/a", "content of a"), ("/b", "content of b")];
    let files = files.map(|(path, body)| (path.to_owned(), file(body))).into();
    let site = serve(Duration::from_millis(400), files);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sources.json"), SOURCES).unwrap();
    let update = |name: &str, folder: &str| {
        Command::new(env!("CARGO_BIN_EXE_vmbake"))
            .args([
                "update",
                "k",
                "--only",
                name,
                "--sources",
                "sources.json",
                "--no-builtin",
                "--store",
                "store",
                "--manifests",
                folder,
            ])
            .args(["--mirror", &format!("https://up.example={}", site.url)])
            .current_dir(dir.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    for process in [update("a", "manifests"), update("b", "./store/../manifests")] {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let text = std::fs::read_to_string(dir.path().join("manifests/k.debian-13.amd64.json")).unwrap();
    for name in ["a", "b"] {
        assert!(
            text.contains(&Digest::of(format!("content of {name}").as_bytes()).to_string()),
            "{name} is lost: {text}"
        );
    }
    assert_eq!(std::fs::read_dir(dir.path().join("store/partial")).unwrap().count(), 0, "nothing is left");
    assert_eq!(std::fs::read_dir(dir.path().join("manifests")).unwrap().count(), 1);
}
