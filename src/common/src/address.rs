//! Finds URLs with credentials in texts and JSON documents. URLs are recorded in manifests, layers, locks and reports, and published with images,
//! so they must not contain a user name or password. Messages never repeat either.

use crate::hint::Hint;
use serde_json::Value;

pub const MESSAGE: &str = "URL contains a user name or password (`//USER:PASSWORD@HOST`)";

pub const HINT: &str = "URLs are recorded and published: use `docker login` or `podman login` for registries, GITHUB_TOKEN for GitHub, https_proxy \
    for proxies; for other servers, pass a mirror that authenticates to them with --mirror";

/// A URL with credentials, which the message does not repeat.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", MESSAGE)]
pub struct UrlCredentials;

impl Hint for UrlCredentials {}

const SCHEME_END: &str = "://";

/// Characters that end the authority of a URL. Passwords may contain commas, apostrophes and the braces of templates.
const ENDS: [char; 8] = ['/', '?', '#', '\\', '"', '<', '>', '|'];

/// Whether a URL in `text` has a user name before its host. In container references, a digest follows the `@`.
pub fn has_userinfo(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once(SCHEME_END) {
        if authority_has_userinfo(behind.trim_start_matches('/')) {
            return true;
        }
        rest = behind;
    }
    false
}

/// As [`has_userinfo`], for the value of a proxy setting, which may have no scheme.
pub(crate) fn proxy_has_userinfo(value: &str) -> bool {
    has_userinfo(value) || value.split([',', ' ']).any(authority_has_userinfo)
}

/// As [`has_userinfo`], for a command-line argument, which may be a registry reference: `USER:PASSWORD@HOST/NAME`.
pub fn argument_has_userinfo(text: &str) -> bool {
    let is_reference = |text: &str| {
        let found = userinfo(text).filter(|found| found.contains(':') && !found.contains('='));
        found.is_some_and(|found| text.get(found.len()..).is_some_and(|rest| rest.contains('/')))
    };
    has_userinfo(text) || is_reference(text)
}

/// Whether a key names a proxy, as `https_proxy` and `node-http-proxy` do.
pub(crate) fn is_proxy(key: &str) -> bool {
    key.to_ascii_lowercase().contains("proxy")
}

pub fn value_has_userinfo(key: &str, value: &str) -> bool {
    if is_proxy(key) { proxy_has_userinfo(value) } else { has_userinfo(value) }
}

fn authority_has_userinfo(text: &str) -> bool {
    userinfo(text).is_some()
}

/// The user name and password at the start of a text, without the trailing `@`.
fn userinfo(text: &str) -> Option<&str> {
    let is_end = |char: char| ENDS.contains(&char) || char.is_whitespace() || char.is_control();
    let authority = text.split(is_end).next().unwrap_or(text);
    // The host follows the last `@`.
    let (userinfo, host) = authority.rsplit_once('@')?;
    (!["sha256:", "sha512:"].iter().any(|digest| host.starts_with(digest))).then_some(userinfo)
}

/// The text for use in messages, with URL credentials replaced by `***`.
pub fn redacted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(SCHEME_END) {
        shown.push_str(before);
        shown.push_str(SCHEME_END);
        rest = behind;
        if let Some(found) = userinfo(behind) {
            shown.push_str("***");
            rest = behind.get(found.len()..).unwrap_or_default();
        }
    }
    shown + rest
}

/// The JSON pointer (RFC 6901) of the first value or key with such a URL in a document, without the entries that `exempt` names.
pub fn in_json(value: &Value, exempt: &dyn Fn(&str) -> bool) -> Option<String> {
    let mut todo = vec![(String::new(), String::new(), value)];
    while let Some((pointer, key, value)) = todo.pop() {
        if exempt(&pointer) {
            continue;
        }
        match value {
            Value::String(text) if value_has_userinfo(&key, text) => return Some(pointer),
            Value::Array(all) => {
                let all = all.iter().enumerate().rev();
                todo.extend(all.map(|(at, value)| (format!("{pointer}/{at}"), key.clone(), value)));
            }
            Value::Object(all) => {
                if all.keys().any(|key| has_userinfo(key)) {
                    return Some(pointer);
                }
                let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
                let all = all.iter().rev();
                // Values below a proxy key belong to the proxy.
                let named = |name: &String| if is_proxy(&key) { key.clone() } else { name.clone() };
                todo.extend(all.map(|(name, value)| (format!("{pointer}/{}", escaped(name)), named(name), value)));
            }
            _ => {}
        }
    }
    None
}

/// As [`in_json`], for the text of a document. Invalid JSON is left to the reader of the document, which reports it
/// better.
pub fn in_document(text: &[u8]) -> Option<String> {
    in_json(&serde_json::from_slice(text).ok()?, &|_| false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_precede_the_host() {
        for text in [
            "https://user:pass@host/x",
            "https://token@host",
            "HTTP://u:p@h",
            "a=https://u:p@h/",
            "https://a.example/ https://u:p@h/",
            "oci://u:p@h/name:1",
            "https://u:p@ss@host/",
            "https:////u:p@host/x",
            "https://u%40x:p@host/x",
            "https://:p@host",
            "https://@host",
            "https://u:p,p@host",
            "https://u:p'p@host",
            "https://u:{version}@host",
            "https://host,https://u:p@host",
        ] {
            assert!(has_userinfo(text), "{text}");
        }
        for text in [
            "https://host/@scope/name",
            "https://host/?mail=a@b.example",
            "https://host/#a@b",
            "oci://host/name@sha256:00",
            "oci://name@sha256:00",
            "host/name@sha256:00",
            "mailto:a@b.example",
            "vmbake@1.0",
            "https://host:8080/",
            "// a comment, a@b.example",
            "folder//user@host/file",
        ] {
            assert!(!has_userinfo(text), "{text}");
        }
        for (key, value) in [("HTTPS_PROXY", "u:p@proxy:3128"), ("node-http-proxy", "a:1,u@b:2"), ("url", "http://u@h")]
        {
            assert!(value_has_userinfo(key, value), "{value}");
        }
        assert!(argument_has_userinfo("u:p@host.example/a:1") && argument_has_userinfo("--mirror=https://u:p@h"));
        for text in ["host/a:1@sha256:00", "a:1@sha256:00/x", "mailto:a@b.example", "host.example/@scope/a:1", "a@b/c"]
        {
            assert!(!argument_has_userinfo(text), "{text}");
        }
        assert!(!value_has_userinfo("mail", "u@h") && !value_has_userinfo("NO_PROXY", ".svc,10.0.0.0/8"));
    }

    #[test]
    fn messages_do_not_repeat_credentials() {
        let shown = redacted("a https://u:p@h/x: no, x://t@i; https://j/@k oci://n@sha256:00 ://");
        assert_eq!(shown, "a https://***@h/x: no, x://***@i; https://j/@k oci://n@sha256:00 ://");
    }

    #[test]
    fn escapes_in_documents_are_decoded() {
        let found = |text: &str| in_document(text.as_bytes());
        assert_eq!(found(r#"{"a": [{"b/c": "https:\/\/u:p\u0040h/"}]}"#).as_deref(), Some("/a/0/b~1c"));
        assert_eq!(found(r#"{"m": {"https://u:p@h/": 1}}"#).as_deref(), Some("/m"));
        assert_eq!(found(r#"{"proxy": ["u:p@h:1"]}"#).as_deref(), Some("/proxy/0"));
        assert_eq!(found(r#"{"HTTP_PROXY": {"default": "u:p@h:1"}}"#).as_deref(), Some("/HTTP_PROXY/default"));
        assert_eq!(found(r#"{"a": "https://h/", "b": "u:p@h"}"#), None);
        assert_eq!(found("not JSON https://u:p@h"), None);
    }
}
