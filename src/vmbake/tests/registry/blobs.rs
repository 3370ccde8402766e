//! Upload and download of blobs and manifests: single and repeated transfers, and refusals.

use std::io::Write;

use vmbake_common::digest::Digest;
use vmbake_store::http::Payload;
use vmbake_store::registry::{Access, Arrival, Credentials, RegistryError, Repository};

use super::auth::client;
use super::stand_in::{Reply, Seen, reply, serve};
use crate::tools::have;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const EMPTY: &[u8] = br#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;

fn repository(address: &str, name: &str) -> Repository {
    Repository::new(&client(), &Credentials::none(), format!("{address}/{name}").parse().unwrap(), Access::Push)
}

#[test]
fn a_real_registry_takes_and_gives_everything() {
    if !have(&["docker-registry"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let registry = super::start(dir.path());
    let (one, two) = (repository(&registry.address, "one"), repository(&registry.address, "two/deep"));
    let bytes = b"some content".as_slice();
    let digest = Digest::of(bytes);
    assert!(!one.has_blob(&digest).unwrap());
    assert_eq!(one.put_blob(&digest, Payload::Bytes(bytes), None).unwrap(), Arrival::Sent);
    assert_eq!(one.put_blob(&digest, Payload::Bytes(bytes), None).unwrap(), Arrival::There);
    assert_eq!(two.put_blob(&digest, Payload::Bytes(bytes), Some("one")).unwrap(), Arrival::Mounted);
    assert_eq!(two.read_blob(&digest, 12).unwrap(), bytes);
    assert!(matches!(two.read_blob(&digest, 11), Err(RegistryError::Download(_))), "longer than said");
    // A part of a file.
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"before, inside, after").unwrap();
    let inside = Payload::Range { file: &file, offset: 8, len: 6 };
    assert_eq!(one.put_blob(&Digest::of(b"inside"), inside, Some("absent")).unwrap(), Arrival::Sent);
    assert_eq!(one.read_blob(&Digest::of(b"inside"), 6).unwrap(), b"inside");
    // Bytes of another digest are refused by the registry, and a file that has become shorter by us.
    assert!(one.put_blob(&Digest::of(b"other"), Payload::Bytes(bytes), None).is_err());
    let beyond = Payload::Range { file: &file, offset: 20, len: 9 };
    assert!(one.put_blob(&Digest::of(b"beyond"), beyond, None).is_err());
    // Manifests.
    assert_eq!(one.tag("1").unwrap(), None);
    one.put_manifest("1", INDEX, EMPTY).unwrap();
    assert_eq!(one.tag("1").unwrap(), Some(Digest::of(EMPTY)));
    let found = one.manifest(&Digest::of(EMPTY).to_string()).unwrap();
    assert_eq!((found.bytes.as_slice(), found.media_type.as_str()), (EMPTY, INDEX));
    assert!(one.has_manifest(&Digest::of(EMPTY)).unwrap());
    assert!(one.manifest("2").unwrap_err().is_absent());
}

/// Takes an upload, if `refusal` has nothing to say of the request.
fn uploads(refusal: impl Fn(usize, &Seen) -> Option<Reply> + Send + Sync + 'static) -> super::stand_in::StandIn {
    serve(move |before, seen, _| match (refusal(before, seen), seen.method.as_str()) {
        (Some(refusal), _) => refusal,
        (None, "HEAD") => reply(404, ""),
        (None, "POST") => reply(202, "").header("location", format!("/elsewhere/{before}?s=1")),
        (None, _) => reply(201, ""),
    })
}

#[test]
fn a_failed_upload_starts_over() {
    const LIMIT: &str = "You have exceeded a secondary rate limit";
    for refusal in [
        || reply(429, "").header("retry-after", "0"),
        || reply(503, ""),
        || reply(403, "").header("retry-after", "0"),
        || reply(403, LIMIT),
    ] {
        let server = uploads(move |before, _| (before == 2).then(refusal));
        let digest = Digest::of(b"content");
        let sent = repository(&server.address, "a").put_blob(&digest, Payload::Bytes(b"content"), None).unwrap();
        assert_eq!(sent, Arrival::Sent);
        let put = |number: usize| format!("PUT /elsewhere/{number}?s=1&digest={digest}");
        let post = "POST /v2/a/blobs/uploads/".to_owned();
        let head = format!("HEAD /v2/a/blobs/{digest}");
        assert_eq!(server.lines(), [head, post.clone(), put(1), post, put(3)]);
        assert_eq!(server.seen()[4].body, b"content");
    }
}

#[test]
fn what_will_not_pass_is_not_asked_again() {
    let server = uploads(|_, seen| (seen.method == "POST").then(|| reply(403, "denied")));
    let error = repository(&server.address, "a").put_blob(&Digest::of(b""), Payload::Bytes(b""), None).unwrap_err();
    assert!(error.to_string().contains("the server returned status 403"), "{error}");
    assert_eq!(server.seen().len(), 2);
    let server = uploads(|_, seen| (seen.method == "POST").then(|| reply(202, "")));
    let error = repository(&server.address, "a").put_blob(&Digest::of(b""), Payload::Bytes(b""), None).unwrap_err();
    assert!(matches!(error, RegistryError::Answer { .. }), "{error}");
    // An unrequested mount is not an upload.
    let server = uploads(|_, seen| (seen.method == "POST").then(|| reply(201, "")));
    let error = repository(&server.address, "a").put_blob(&Digest::of(b""), Payload::Bytes(b""), None).unwrap_err();
    assert!(matches!(error, RegistryError::Answer { .. }), "{error}");
    let always = uploads(|_, seen| (seen.method == "POST").then(|| reply(503, "")));
    assert!(repository(&always.address, "a").put_blob(&Digest::of(b""), Payload::Bytes(b""), None).is_err());
    assert_eq!(always.seen().len(), 5, "one look and four attempts");
}

#[test]
fn other_bytes_than_asked_for_are_refused() {
    let wanted = Digest::of(b"content");
    for (body, is_long) in [("contend", false), ("conten", false), ("content and more", true)] {
        let server = serve(move |_, _, _| reply(200, body));
        let repository = repository(&server.address, "a");
        match repository.read_blob(&wanted, 7).unwrap_err() {
            RegistryError::Digest { expected, .. } if !is_long => assert_eq!(*expected, wanted),
            error => assert!(is_long && error.to_string().ends_with("larger than the limit of 7 bytes"), "{error}"),
        }
        let error = repository.manifest(&wanted.to_string()).unwrap_err();
        assert!(matches!(error, RegistryError::Digest { .. }), "{error}");
    }
    // A registry that says itself that it sends something else.
    let server = serve(|_, _, _| reply(200, "{}").header("docker-content-digest", Digest::of(b"x").to_string()));
    let error = repository(&server.address, "a").manifest("1").unwrap_err();
    assert!(matches!(error, RegistryError::Header { .. }), "{error}");
}
