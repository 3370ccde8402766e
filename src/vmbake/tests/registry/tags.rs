//! Paginated tag lists of registries.

use vmbake_store::registry::{Access, Credentials, RegistryError, Repository};

use super::auth::client;
use super::stand_in::{StandIn, reply, serve};

fn tags(server: &StandIn) -> Result<Vec<String>, RegistryError> {
    let name = format!("{}/a", server.address).parse().unwrap();
    Repository::new(&client(), &Credentials::none(), name, Access::Pull).tags()
}

#[test]
fn all_pages_are_read() {
    let server = serve(|_, seen, _| match seen.path.as_str() {
        "/v2/a/tags/list" => reply(200, r#"{"name": "a", "tags": ["1.0", "../x"]}"#)
            .header("link", "</v2/a/tags/list?last=1.0>; rel=\"next\""),
        _ => reply(200, r#"{"name": "a", "tags": ["1.1_b2"]}"#),
    });
    // An invalid tag does not resolve.
    assert_eq!(tags(&server).unwrap(), ["1.0", "1.1_b2"]);
    assert_eq!(server.lines(), ["GET /v2/a/tags/list", "GET /v2/a/tags/list?last=1.0"]);
    let server = serve(|_, _, _| reply(200, r#"{"name": "a", "tags": null}"#));
    assert_eq!(tags(&server).unwrap(), Vec::<String>::new());
}

#[test]
fn lists_that_lead_elsewhere_or_never_end_are_refused() {
    for (link, expected) in [
        (
            "<http://127.0.0.1:9/v2/a/tags/list>; rel=\"next\"",
            "http://127.0.0.1:9/v2/a/tags/list: the response has no valid next page of the list",
        ),
        ("</v2/a/tags/list>; rel=\"next\"", "the response has no valid end of the list"),
    ] {
        let server = serve(move |_, _, _| reply(200, r#"{"tags": []}"#).header("link", link));
        let error = tags(&server).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(server.lines().len() <= 32);
    }
    for body in ["", "[]", r#"{"tags": "1.0"}"#] {
        let server = serve(move |_, _, _| reply(200, body));
        let error = tags(&server).unwrap_err();
        assert!(error.to_string().ends_with("/v2/a/tags/list: the response has no valid list of tags"), "{error}");
    }
}
