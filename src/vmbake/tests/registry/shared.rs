//! A shared store in a registry: saved downloads, and harmless failures.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use vmbake_common::digest::Digest;
use vmbake_store::download::{DownloadError, DownloadRequest, ensure_blob};
use vmbake_store::http::Mirrors;
use vmbake_store::registry::Credentials;
use vmbake_store::shared::SharedStore;
use vmbake_store::store::Store;

use super::auth::client;
use super::stand_in::{Reply, Seen, StandIn, reply, serve};
use crate::tools::have;

const CONTENT: &[u8] = b"what an upstream has";
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// An upstream that counts how often it is asked.
fn upstream() -> (StandIn, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let site = serve(move |_, _, _| {
        count.fetch_add(1, Ordering::Relaxed);
        reply(200, CONTENT)
    });
    (site, asked)
}

/// The store of one machine, behind which there is the shared one at `address`. What goes wrong is told with the address in it.
fn machine(folder: &Path, name: &str, address: &str, writes: bool) -> Store {
    let store = Store::open(Some(folder.join(name))).unwrap();
    let shared = format!("oci://{address}/fleet").parse().unwrap();
    let warn = |warning| WARNINGS.lock().unwrap().push(warning);
    store.sharing(Arc::new(SharedStore::new(shared, Mirrors::default(), &Credentials::none(), writes, warn)))
}

fn warnings(address: &str) -> Vec<String> {
    WARNINGS.lock().unwrap().iter().filter(|warning| warning.contains(address)).cloned().collect()
}

fn get(store: &Store, site: &StandIn, digest: Digest) -> Result<u64, DownloadError> {
    let wanted = DownloadRequest {
        urls: vec![format!("http://{}/file", site.address)],
        digest: Some(digest),
        size: Some(CONTENT.len() as u64),
        limit: 1 << 20,
        ..DownloadRequest::default()
    };
    let told = AtomicUsize::new(0);
    let count = |bytes: u64| {
        told.fetch_add(usize::try_from(bytes).unwrap(), Ordering::Relaxed);
    };
    let found = ensure_blob(&client(), store, &wanted, &count)?;
    assert_eq!((found.digest, found.size), (digest, CONTENT.len() as u64));
    Ok(told.into_inner() as u64)
}

fn sha512() -> Digest {
    let mut hasher = Digest::Sha512([0; 64]).hasher();
    hasher.update(CONTENT);
    hasher.finish()
}

#[test]
fn two_machines_ask_an_upstream_once() {
    if !have(&["docker-registry"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let registry = super::start(dir.path());
    let (site, asked) = upstream();
    for digest in [Digest::of(CONTENT), sha512()] {
        let name = |machine: &str| format!("{machine}-{}", digest.algorithm());
        let reader = machine(dir.path(), &name("reader"), &registry.address, false);
        assert_eq!(get(&reader, &site, digest).unwrap(), CONTENT.len() as u64);
        let before = asked.load(Ordering::Relaxed);
        // Readers do not write.
        let writer = machine(dir.path(), &name("writer"), &registry.address, true);
        get(&writer, &site, digest).unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), before + 1, "{digest}");
        let other = machine(dir.path(), &name("other"), &registry.address, false);
        assert_eq!(get(&other, &site, digest).unwrap(), CONTENT.len() as u64, "all of it is told as progress");
        assert_eq!(asked.load(Ordering::Relaxed), before + 1, "{digest}");
        assert!(other.blob(&digest).unwrap().is_some());
        // What was there before the shared store was is offered too.
        get(&writer, &site, digest).unwrap();
    }
    assert!(warnings(&registry.address).is_empty(), "{:?}", warnings(&registry.address));

    // Other bytes under that digest cost a request, and no more.
    let hex = Digest::of(CONTENT).hex();
    let blob = dir.path().join(format!("registry/docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]));
    std::fs::write(blob, b"what an attacker has").unwrap();
    let before = asked.load(Ordering::Relaxed);
    let last = machine(dir.path(), "last", &registry.address, true);
    get(&last, &site, Digest::of(CONTENT)).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), before + 1);
    let said = warnings(&registry.address);
    assert!(said.len() == 1 && said[0].starts_with("the shared store returned a wrong blob: "), "{said:?}");
    assert!(
        said[0].contains(&format!(
            "http://{}/v2/fleet/blobs/sha256:{hex}: expected digest sha256:{hex}, found ",
            registry.address
        )),
        "{said:?}"
    );
}

#[test]
fn a_shared_store_that_fails_is_left_out() {
    type Answer = fn(usize, &Seen, &str) -> Reply;
    let nothing: Answer = |_, _, _| reply(404, "");
    let broken: Answer = |_, _, _| reply(503, "");
    let full: Answer = |_, seen, _| reply(if seen.method == "POST" { 507 } else { 404 }, "");
    let read_only: Answer = |_, seen, _| reply(if seen.method == "POST" { 405 } else { 404 }, "");
    let denied: Answer = |_, _, _| reply(401, "").header("www-authenticate", "Basic realm=\"x\"");
    let long: Answer = |_, _, _| reply(200, vec![b'x'; 1 << 16]);
    let empty: Answer = |_, _, _| reply(200, "");
    let (left_out, other, full_up) =
        ("the shared store is disabled: ", "returned a wrong blob: ", "is no longer written to: ");
    for (name, answer, expected) in [
        ("nothing is there", nothing, vec![full_up]),
        ("it is broken", broken, vec![left_out]),
        ("it is full", full, vec![full_up]),
        ("it is read-only", read_only, vec![full_up]),
        ("it wants a password", denied, vec![left_out]),
        ("it sends too much", long, vec![other]),
        ("it sends nothing", empty, vec![other]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (site, asked) = upstream();
        let shared = serve(answer);
        let store = machine(dir.path(), "store", &shared.address, true);
        get(&store, &site, Digest::of(CONTENT)).unwrap();
        // Another blob, which is not there either.
        assert!(get(&store, &site, Digest::of(b"absent")).is_err(), "{name}");
        assert!(asked.load(Ordering::Relaxed) >= 2, "{name}: the upstream is asked");
        let said = warnings(&shared.address);
        let is_told = |text: &&str| said.iter().filter(|line| line.contains(*text)).count();
        assert!(expected.iter().all(|text| is_told(text) >= 1), "{name}: {said:?}");
        assert!([left_out, full_up].iter().all(|text| is_told(text) <= 1), "{name}: told once: {said:?}");
        assert!(!said.iter().any(|line| line.contains(left_out)) || expected.contains(&left_out), "{name}: {said:?}");
    }
    // Nothing listens.
    let dir = tempfile::tempdir().unwrap();
    let (site, _) = upstream();
    let store = machine(dir.path(), "store", "127.0.0.1:9", true);
    get(&store, &site, Digest::of(CONTENT)).unwrap();
    let said = warnings("127.0.0.1:9/");
    assert!(said.len() == 1 && said[0].contains(left_out), "{said:?}");
}
