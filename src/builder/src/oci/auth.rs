//! What a registry asks for and what a token server answers: `WWW-Authenticate: Bearer …` (distribution project, token specification).

use serde::Deserialize;

/// Largest answer of a token server that is read.
pub(crate) const MAX_TOKEN: u64 = 1 << 20;

/// What a registry asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Challenge {
    realm: String,
    service: Option<String>,
    scope: Option<String>,
}

impl Challenge {
    /// Reads the header (RFC 9110, section 11.6.1); `None` where it asks for something else than a bearer token.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let (scheme, mut rest) = header.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut scope) = (None, None, None);
        while let Some((name, after)) = rest.split_once('=') {
            let (value, behind) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => after.split_at(after.find(',').unwrap_or(after.len())),
            };
            match name.trim().to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value.to_owned()),
                "service" => service = Some(value.to_owned()),
                "scope" => scope = Some(value.to_owned()),
                _ => {}
            }
            rest = behind.trim_start().trim_start_matches(',');
        }
        Some(Self { realm: realm?, service, scope })
    }

    /// The server that gives tokens.
    pub(crate) fn realm(&self) -> &str {
        &self.realm
    }

    /// Where the token is to be had.
    pub(crate) fn url(&self) -> String {
        let parameters = [("service", &self.service), ("scope", &self.scope)];
        let query: Vec<String> = parameters
            .iter()
            .filter_map(|(name, value)| value.as_ref().map(|value| format!("{name}={}", escaped(value))))
            .collect();
        let separator = if self.realm.contains('?') { '&' } else { '?' };
        format!("{}{separator}{}", self.realm, query.join("&"))
    }
}

/// Percent-encoding of a query (RFC 3986, section 2.1).
fn escaped(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}

/// The token in the answer of a token server. It becomes a header, so it must be visible ASCII.
pub(crate) fn parse_token(answer: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        token: Option<String>,
        access_token: Option<String>,
    }
    let answer: Answer = serde_json::from_slice(answer).ok()?;
    answer.token.or(answer.access_token).filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_become_addresses() {
        let header = r#"Bearer realm="https://a.example/token",service="r.example",scope="repository:a/b:pull,push""#;
        let url = Challenge::parse(header).unwrap().url();
        assert_eq!(url, "https://a.example/token?service=r.example&scope=repository:a/b:pull%2Cpush");
        for wrong in ["", "Basic realm=\"x\"", "Bearer", "Bearer service=\"x\"", "Bearer realm=\"x"] {
            assert_eq!(Challenge::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn tokens_have_two_names() {
        assert_eq!(parse_token(br#"{"token": "a"}"#).as_deref(), Some("a"));
        assert_eq!(parse_token(br#"{"access_token": "b", "expires_in": 60}"#).as_deref(), Some("b"));
        for wrong in ["{}", "x", r#"{"token": "a\r\nb"}"#] {
            assert_eq!(parse_token(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
