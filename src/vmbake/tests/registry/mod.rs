//! Images pulled from a real registry (Debian's docker-registry), and read back by skopeo from the store.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use vmbake_common::digest::Digest;
use vmbake_store::http::{Client, Mirrors};
use vmbake_store::registry::{blobs, pull_pinned, pull_tag};
use vmbake_store::store::Store;

use crate::tools::have;

mod auth;
mod blobs;
mod referrers;
mod shared;
pub mod stand_in;
mod tags;

const TOOLS: [&str; 2] = ["docker-registry", "skopeo"];
const LAYOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/oci/ok-index");

/// A registry that stops with the test.
pub struct Registry {
    process: Child,
    pub address: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

pub fn start(dir: &Path) -> Registry {
    start_with(dir, "")
}

/// The user `user` with the password `secret`, as htpasswd writes it.
const HTPASSWD: &str = "user:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";

/// A registry that asks for a name and a password.
pub fn start_with_password(dir: &Path) -> Registry {
    let file = dir.join("htpasswd");
    std::fs::write(&file, HTPASSWD).unwrap();
    start_with(dir, &format!("auth:\n  htpasswd:\n    realm: test\n    path: {}\n", file.display()))
}

fn start_with(dir: &Path, more: &str) -> Registry {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let config = dir.join("registry.yml");
    let storage = dir.join("registry");
    let text = format!(
        "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {address}\n{more}",
        storage.display()
    );
    std::fs::write(&config, text).unwrap();
    let process = Command::new("docker-registry")
        .arg("serve")
        .arg(&config)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let registry = Registry { process, address };
    for _ in 0..100 {
        if TcpStream::connect(&registry.address).is_ok() {
            return registry;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the registry does not answer");
}

/// A registry that holds the image of the layout.
fn start_with_image(dir: &Path) -> Registry {
    let registry = start(dir);
    let target = format!("docker://{}/pause:3.10", registry.address);
    run("skopeo", &["copy", "--quiet", "--all", "--dest-tls-verify=false", &format!("oci:{LAYOUT}"), &target]);
    registry
}

fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn client(registry: &Registry) -> Client {
    let mut mirrors = Mirrors::default();
    mirrors.insert(format!("https://registry.example=http://{}", registry.address).parse().unwrap());
    Client::new(mirrors)
}

#[test]
fn an_image_is_pulled_pinned_and_found_by_other_tools() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let registry = start_with_image(dir.path());

    let (client, store) = (client(&registry), Store::open(Some(dir.path().join("store"))).unwrap());
    let image = pull_tag(&client, &store, "registry.example/pause:3.10", "linux/arm64").unwrap();
    let index: Digest = "sha256:4461a5020135a94d0eb69ac0484ddb231038c1c4b5bc681c30594b89f2ac047a".parse().unwrap();
    assert_eq!((image.index, image.platform.as_str()), (index, "linux/arm64"));
    assert_eq!(blobs(&store, &image).len(), 4);

    let reference = format!("oci:{}:registry.example/pause:3.10", store.root().display());
    let seen = run("skopeo", &["--override-arch=arm64", "inspect", "--config", &reference]);
    assert!(seen.contains("\"architecture\": \"arm64\""), "{seen}");

    // A second store has it by its digests alone.
    let second = Store::open(Some(dir.path().join("second"))).unwrap();
    assert!(pull_pinned(&client, &second, &image).unwrap() > 0);
    let mut other = image.clone();
    other.platform = "linux/s390x".to_owned();
    let error = pull_pinned(&client, &second, &other).unwrap_err();
    assert!(error.to_string().contains("registry.example/pause:3.10"), "{error}");
    other = image.clone();
    other.digest = index;
    assert!(pull_pinned(&client, &second, &other).is_err(), "the platform's manifest is not the pinned one");
}

#[test]
fn what_the_registry_holds_is_not_believed() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let registry = start_with_image(dir.path());
    // A layer is exchanged behind the registry's back.
    let hex = "a25d85c37bab120b231959f7d7e3903e624009dccfeced50d7d3993b70b47e73";
    let blob = dir.path().join(format!("registry/docker/registry/v2/blobs/sha256/a2/{hex}/data"));
    let mut bytes = std::fs::read(&blob).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&blob, bytes).unwrap();
    let store = Store::open(Some(dir.path().join("store"))).unwrap();
    let error = pull_tag(&client(&registry), &store, "registry.example/pause:3.10", "linux/amd64").unwrap_err();
    assert!(error.to_string().contains(&format!("expected digest sha256:{hex}, found sha256:")), "{error}");
    assert!(store.blob(&format!("sha256:{hex}").parse().unwrap()).unwrap().is_none());
}
