//! Credentials are sent to their registry only.

use std::path::Path;
use std::time::Duration;

use vmbake_common::digest::Digest;
use vmbake_store::http::{Client, Limits, Mirrors, Payload, Retry};
use vmbake_store::registry::{Access, Credentials, RegistryError, Repository};

use super::stand_in::{Reply, Seen, StandIn, reply, serve};
use crate::tools::have;

/// `user:secret`, as `Authorization` has it.
const BASIC: &str = "Basic dXNlcjpzZWNyZXQ=";

pub fn client() -> Client {
    let retry = Retry { attempts: 4, first_pause: Duration::ZERO, max_pause: Duration::ZERO };
    Client::with_limits(Mirrors::default(), Limits { retry, ..Limits::default() })
}

/// Credentials for a registry, as docker keeps them.
fn credentials(dir: &Path, address: &str, entry: &str) -> Credentials {
    let path = dir.join("config.json");
    std::fs::write(&path, format!(r#"{{"auths": {{"{address}": {entry}}}}}"#)).unwrap();
    Credentials::in_files(vec![path])
}

const PASSWORD: &str = r#"{"auth": "dXNlcjpzZWNyZXQ="}"#;

fn repository(address: &str, credentials: &Credentials, access: Access) -> Repository {
    Repository::new(&client(), credentials, format!("{address}/a/b").parse().unwrap(), access)
}

fn authorizations(server: &StandIn) -> Vec<String> {
    let text = |seen: &Seen| seen.header("authorization").unwrap_or("none").to_owned();
    server.seen().iter().map(|seen| format!("{} {}", seen.line(), text(seen))).collect()
}

#[test]
fn a_real_registry_takes_name_and_password() {
    if !have(&["docker-registry"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let registry = super::start_with_password(dir.path());
    let digest = Digest::of(b"content");
    let put = |credentials: &Credentials| {
        repository(&registry.address, credentials, Access::Push).put_blob(&digest, Payload::Bytes(b"content"), None)
    };
    let known = credentials(dir.path(), &registry.address, PASSWORD);
    put(&known).unwrap();
    assert_eq!(repository(&registry.address, &known, Access::Pull).read_blob(&digest, 7).unwrap(), b"content");
    let error = put(&Credentials::none()).unwrap_err();
    assert!(matches!(error, RegistryError::NoCredentials { .. }), "{error}");
    // user:wrong
    let wrong = credentials(dir.path(), &registry.address, r#"{"auth": "dXNlcjp3cm9uZw=="}"#);
    let error = put(&wrong).unwrap_err();
    assert!(matches!(error, RegistryError::Denied { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("wrong"));
}

/// A registry whose tokens are good for one request each, and its token server.
fn token_registry(grant: impl Fn(&Seen) -> bool + Send + Sync + 'static) -> (StandIn, StandIn) {
    let server = serve(move |before, seen, _| match grant(seen) {
        true => reply(200, format!(r#"{{"token": "t{before}"}}"#)),
        false => reply(401, ""),
    });
    let realm = server.address.clone();
    let used = std::sync::Mutex::new(Vec::new());
    let registry = serve(move |_, seen, _| {
        let token = seen.header("authorization").unwrap_or_default().to_owned();
        let mut used = used.lock().unwrap();
        if !token.starts_with("Bearer t") || used.contains(&token) {
            let challenge = format!(r#"Bearer realm="http://{realm}/token",service="r",scope="repository:a/b:pull""#);
            return reply(401, "").header("www-authenticate", challenge);
        }
        used.push(token);
        reply(200, "content")
    });
    (registry, server)
}

#[test]
fn each_401_gets_a_new_token() {
    let (registry, server) = token_registry(|_| true);
    let repository = repository(&registry.address, &Credentials::none(), Access::Pull);
    for _ in 0..3 {
        assert_eq!(repository.read_blob(&Digest::of(b"content"), 7).unwrap(), b"content");
    }
    assert_eq!(authorizations(&server), ["GET /token?service=r&scope=repository:a/b:pull none"; 3]);
    assert_eq!(registry.seen().len(), 6);
}

#[test]
fn a_token_server_is_asked_as_the_credentials_say() {
    let dir = tempfile::tempdir().unwrap();
    let (registry, server) = token_registry(|seen| seen.header("authorization") == Some(BASIC));
    let known = credentials(dir.path(), &registry.address, PASSWORD);
    repository(&registry.address, &known, Access::Push).read_blob(&Digest::of(b"content"), 7).unwrap();
    assert_eq!(authorizations(&server), [format!("GET /token?service=r&scope=repository:a/b:pull%2Cpush {BASIC}")]);
    assert!(registry.seen().iter().all(|seen| seen.header("authorization") != Some(BASIC)), "only tokens go there");

    let (registry, server) = token_registry(|seen| seen.method == "POST");
    let known = credentials(dir.path(), &registry.address, r#"{"auth": "", "identitytoken": "i+d"}"#);
    repository(&registry.address, &known, Access::Pull).read_blob(&Digest::of(b"content"), 7).unwrap();
    let body = String::from_utf8(server.seen()[0].body.clone()).unwrap();
    assert_eq!(
        body,
        "grant_type=refresh_token&client_id=vmbake&service=r&scope=repository:a/b:pull&refresh_token=i%2Bd"
    );

    let (registry, server) = token_registry(|_| false);
    let known = credentials(dir.path(), &registry.address, PASSWORD);
    let error = repository(&registry.address, &known, Access::Pull).read_blob(&Digest::of(b"content"), 7).unwrap_err();
    assert!(matches!(error, RegistryError::Denied { .. }), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn tokens_that_are_never_taken_end_it() {
    let server = serve(|_, _, _| reply(200, r#"{"token": "t"}"#));
    let realm = server.address.clone();
    let registry = serve(move |_, _, _| {
        reply(401, "").header("www-authenticate", format!(r#"Bearer realm="http://{realm}/token""#))
    });
    let repository = repository(&registry.address, &Credentials::none(), Access::Pull);
    let error = repository.manifest("1").unwrap_err();
    assert!(matches!(error, RegistryError::NoCredentials { .. }), "{error}");
    assert_eq!((registry.seen().len(), server.seen().len()), (3, 2));
}

/// A registry that wants a password, and then answers as `answer` says.
fn closed(answer: impl Fn(&Seen, &str) -> Reply + Send + Sync + 'static) -> StandIn {
    serve(move |_, seen, own| match seen.header("authorization") {
        Some(BASIC) => answer(seen, own),
        _ => reply(401, "").header("www-authenticate", "Basic realm=\"r\""),
    })
}

#[test]
fn whoever_a_redirect_leads_to_gets_no_credentials() {
    // It asks for some, too.
    let other = serve(|_, _, own| {
        reply(401, "").header("www-authenticate", format!(r#"Bearer realm="http://{own}/token",service="r""#))
    });
    let target = other.address.clone();
    let registry = closed(move |_, _| reply(307, "").header("location", format!("http://{target}/blob")));
    let dir = tempfile::tempdir().unwrap();
    let known = credentials(dir.path(), &registry.address, PASSWORD);
    let error = repository(&registry.address, &known, Access::Pull).read_blob(&Digest::of(b"content"), 7).unwrap_err();
    assert!(error.to_string().contains("the server returned status 401"), "{error}");
    assert_eq!(authorizations(&other), ["GET /blob none"]);
}

#[test]
fn an_upload_elsewhere_gets_no_credentials() {
    let other = serve(|_, _, _| reply(201, ""));
    let target = other.address.clone();
    let registry = closed(move |seen, _| match seen.method.as_str() {
        "HEAD" => reply(404, ""),
        _ => reply(202, "").header("location", format!("http://{target}/upload?state=x")),
    });
    let dir = tempfile::tempdir().unwrap();
    let known = credentials(dir.path(), &registry.address, PASSWORD);
    let digest = Digest::of(b"content");
    repository(&registry.address, &known, Access::Push).put_blob(&digest, Payload::Bytes(b"content"), None).unwrap();
    let expected = format!("PUT /upload?state=x&digest=sha256:{} none", digest.hex());
    assert_eq!(authorizations(&other), [expected]);
    assert_eq!(other.seen()[0].body, b"content");
}

#[test]
fn an_identity_token_is_not_posted_elsewhere() {
    let thief = serve(|_, _, _| reply(200, r#"{"token": "t"}"#));
    let target = thief.address.clone();
    let server = serve(move |_, _, _| reply(307, "").header("location", format!("http://{target}/token")));
    let realm = server.address.clone();
    let registry = serve(move |_, _, _| {
        reply(401, "").header("www-authenticate", format!(r#"Bearer realm="http://{realm}/token""#))
    });
    let dir = tempfile::tempdir().unwrap();
    let known = credentials(dir.path(), &registry.address, r#"{"identitytoken": "identity"}"#);
    let error = repository(&registry.address, &known, Access::Pull).manifest("1").unwrap_err();
    assert!(error.to_string().contains("refusing to send a secret to redirect target"), "{error}");
    assert!(!format!("{error} {error:?}").contains("refresh_token=identity"));
    assert!(thief.seen().is_empty());
}
