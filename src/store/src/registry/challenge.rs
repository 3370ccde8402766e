//! Authentication challenges and token responses: `WWW-Authenticate: Bearer …` or `Basic …` (distribution project,
//! token specification; RFC 7617).

use serde::Deserialize;

/// Maximum length of a token response.
pub(super) const MAX_TOKEN: u64 = 1 << 20;

/// An authentication challenge.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Name and password with each request.
    Basic,
    Bearer(TokenServer),
}

/// A token server and the parameters of the request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TokenServer {
    pub(super) realm: String,
    pub(super) service: Option<String>,
    pub(super) scope: Option<String>,
}

impl Challenge {
    /// Parses the header (RFC 9110, section 11.6.1); `None` for an unsupported scheme.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, mut rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
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
        Some(Self::Bearer(TokenServer { realm: realm?, service, scope }))
    }
}

impl TokenServer {
    /// The URL for a token with `scopes`, or with the scope of the challenge if there are none.
    pub(super) fn url(&self, scopes: &[String]) -> String {
        let separator = if self.realm.contains('?') { '&' } else { '?' };
        format!("{}{separator}{}", self.realm, self.query(scopes).join("&"))
    }

    /// The form to post for exchanging an identity token for an access token (distribution project, "OAuth2").
    pub(super) fn form(&self, scopes: &[String], identity: &str) -> String {
        // The form has one parameter for all scopes.
        let scopes = if scopes.is_empty() { Vec::new() } else { vec![scopes.join(" ")] };
        let mut fields = vec!["grant_type=refresh_token".to_owned(), "client_id=vmbake".to_owned()];
        fields.extend(self.query(&scopes));
        fields.push(format!("refresh_token={}", escaped(identity)));
        fields.join("&")
    }

    fn query(&self, scopes: &[String]) -> Vec<String> {
        let scopes = if scopes.is_empty() { self.scope.as_slice() } else { scopes };
        let service = self.service.iter().map(|service| ("service", service));
        let all = service.chain(scopes.iter().map(|scope| ("scope", scope)));
        all.map(|(name, value)| format!("{name}={}", escaped(value))).collect()
    }
}

/// Percent-encoding of a query (RFC 3986, section 2.1).
pub(super) fn escaped(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}

/// The token in a token response. It is used in a header, so it must be visible ASCII.
pub(super) fn parse_token(answer: &[u8]) -> Option<String> {
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
        let Some(Challenge::Bearer(server)) = Challenge::parse(header) else { panic!("{header}") };
        let url = "https://a.example/token?service=r.example&scope=repository:a/b:pull%2Cpush";
        assert_eq!(server.url(&[]), url);
        let scopes = ["repository:a:pull", "repository:b:pull"].map(str::to_owned);
        let url = "https://a.example/token?service=r.example&scope=repository:a:pull&scope=repository:b:pull";
        assert_eq!(server.url(&scopes), url);
        let form = "grant_type=refresh_token&client_id=vmbake&service=r.example&scope=repository:a:pull%20repository:b:pull&refresh_token=s%2B%26";
        assert_eq!(server.form(&scopes, "s+&"), form);
        assert_eq!(Challenge::parse("basic realm=\"x\""), Some(Challenge::Basic));
        for wrong in ["", "Digest realm=\"x\"", "Bearer", "Bearer service=\"x\"", "Bearer realm=\"x"] {
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
