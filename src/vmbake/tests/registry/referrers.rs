//! Referrers of a manifest, in registries with and without the referrers API.

use std::sync::Mutex;

use vmbake_common::digest::Digest;
use vmbake_oci::Descriptor;
use vmbake_store::http::Payload;
use vmbake_store::registry::{Access, Credentials, RegistryError, Repository};

use super::auth::client;
use super::stand_in::{reply, serve};
use crate::tools::have;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const SUBJECT: &[u8] = br#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;

fn repository(address: &str) -> Repository {
    Repository::new(&client(), &Credentials::none(), format!("{address}/a").parse().unwrap(), Access::Push)
}

/// A manifest that is attached to the subject, and its entry.
fn attachment(number: u32) -> (Vec<u8>, Descriptor) {
    let empty = Digest::of(b"{}");
    let text = format!(
        r#"{{"schemaVersion":2,"mediaType":"{MANIFEST}","artifactType":"application/x","config":{{"mediaType":
        "application/vnd.oci.empty.v1+json","digest":"{empty}","size":2}},"layers":[{{"mediaType":
        "application/vnd.oci.empty.v1+json","digest":"{empty}","size":2}}],"annotations":{{"n":"{number}"}},
        "subject":{{"mediaType":"{INDEX}","digest":"{}","size":{}}}}}"#,
        Digest::of(SUBJECT),
        SUBJECT.len()
    );
    let mut entry = Descriptor::new(MANIFEST, Digest::of(text.as_bytes()), text.len() as u64);
    entry.artifact_type = Some("application/x".to_owned());
    entry.annotations.insert("n".to_owned(), number.to_string());
    (text.into_bytes(), entry)
}

#[test]
fn a_registry_without_a_list_gets_a_tag() {
    if !have(&["docker-registry"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let registry = super::start(dir.path());
    let repository = repository(&registry.address);
    repository.put_blob(&Digest::of(b"{}"), Payload::Bytes(b"{}"), None).unwrap();
    repository.put_manifest("1", INDEX, SUBJECT).unwrap();
    let subject = Digest::of(SUBJECT);
    assert_eq!(repository.referrers(&subject).unwrap(), []);
    let mut expected = Vec::new();
    for number in [1, 2, 1] {
        let (text, entry) = attachment(number);
        repository.attach(&subject, &entry, MANIFEST, &text).unwrap();
        if !expected.contains(&entry) {
            expected.push(entry);
        }
        assert_eq!(repository.referrers(&subject).unwrap(), expected);
    }
    assert!(repository.tag(&format!("sha256-{}", subject.hex())).unwrap().is_some());
}

#[test]
fn a_registry_with_a_list_is_believed_that_it_lists() {
    let server = serve(|_, _, _| reply(201, "").header("oci-subject", Digest::of(SUBJECT).to_string()));
    let (text, entry) = attachment(1);
    repository(&server.address).attach(&Digest::of(SUBJECT), &entry, MANIFEST, &text).unwrap();
    assert_eq!(server.lines(), [format!("PUT /v2/a/manifests/{}", entry.digest)]);
}

fn list(entries: &[Descriptor]) -> String {
    let entries = serde_json::to_string(entries).unwrap();
    format!(r#"{{"schemaVersion":2,"mediaType":"{INDEX}","manifests":{entries}}}"#)
}

#[test]
fn a_list_is_read_to_its_end_and_not_elsewhere() {
    let server = serve(|_, seen, own| {
        let page = |number: u32, next: String| {
            reply(200, list(&[attachment(number).1])).header("link", format!("<{next}>; rel=\"next\""))
        };
        match seen.path.rsplit_once('?').map(|(_, query)| query) {
            None => page(1, format!("http://{own}{}?two", seen.path)),
            Some("two") => page(2, "/v2/a/referrers/x?three".to_owned()),
            _ => reply(200, list(&[attachment(3).1])),
        }
    });
    let found = repository(&server.address).referrers(&Digest::of(SUBJECT)).unwrap();
    assert_eq!(found, [1, 2, 3].map(|number| attachment(number).1));

    let other = serve(|_, _, _| reply(200, list(&[])));
    let target = other.address.clone();
    let server =
        serve(move |_, _, _| reply(200, list(&[])).header("link", format!("<http://{target}/>; rel=\"next\"")));
    let error = repository(&server.address).referrers(&Digest::of(SUBJECT)).unwrap_err();
    assert!(matches!(error, RegistryError::Answer { .. }), "{error}");
    assert!(other.seen().is_empty());

    for endless in ["{}", "[]", "x", r#"{"schemaVersion":2,"mediaType":"other","manifests":[]}"#] {
        let server = serve(move |_, _, _| reply(200, endless));
        assert!(repository(&server.address).referrers(&Digest::of(SUBJECT)).is_err(), "{endless}");
    }
    let server = serve(|_, seen, _| reply(200, list(&[])).header("link", format!("<{}>; rel=\"next\"", seen.path)));
    assert!(repository(&server.address).referrers(&Digest::of(SUBJECT)).is_err());
}

#[test]
fn what_others_add_at_the_same_time_stays() {
    // The first written list loses an update race.
    let tagged = Mutex::new((0, String::new()));
    let server = serve(move |_, seen, _| {
        let mut tagged = tagged.lock().unwrap();
        match (seen.method.as_str(), seen.path.contains("/manifests/sha256-")) {
            ("PUT", true) => {
                tagged.0 += 1;
                let ours = String::from_utf8(seen.body.clone()).unwrap();
                tagged.1 = if tagged.0 == 1 { list(&[attachment(7).1]) } else { ours };
                reply(201, "")
            }
            ("GET", true) if tagged.0 > 0 => reply(200, tagged.1.clone()),
            ("GET", _) => reply(404, ""),
            _ => reply(201, ""),
        }
    });
    let repository = repository(&server.address);
    let (text, entry) = attachment(1);
    repository.attach(&Digest::of(SUBJECT), &entry, MANIFEST, &text).unwrap();
    assert_eq!(repository.referrers(&Digest::of(SUBJECT)).unwrap(), [attachment(7).1, entry]);
}
