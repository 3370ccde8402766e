//! A redirect chain: which requests get credentials, and which redirects a POST may follow.

use ureq::http::{self, Method, Response, StatusCode, Uri, header};

use super::{HttpError, Payload, Request};

/// Host of the API that accepts `GITHUB_TOKEN`; its rate limit for anonymous requests is 60 an hour.
const GITHUB_API: &str = "api.github.com";

/// A request and the redirects followed so far.
pub(super) struct RedirectChain<'a> {
    made: &'a Request<'a>,
    /// The token for requests to GitHub's API.
    github_token: Option<&'a str>,
    /// The URL of the original request.
    first: Uri,
    /// Whether a redirect has left the original server: later targets are chosen by another party.
    strayed: bool,
}

impl<'a> RedirectChain<'a> {
    pub(super) fn new(first: Uri, made: &'a Request<'a>, github_token: Option<&'a str>) -> Self {
        let github_token = github_token.filter(|_| !made.anonymous);
        Self { made, github_token, first, strayed: false }
    }

    /// The request for `uri`. `Authorization` and the token are sent only to the server of the original request.
    pub(super) fn request(&mut self, uri: &Uri) -> Result<http::Request<Payload<'a>>, HttpError> {
        self.strayed |= origin(uri) != origin(&self.first);
        if self.strayed && self.made.confined {
            return Err(HttpError::Elsewhere { url: self.first.to_string(), target: uri.to_string() });
        }
        let mut request = http::Request::builder().method(&self.made.method).uri(uri.clone());
        for (name, value) in self.made.headers.iter().filter(|(name, _)| !self.strayed || name != header::AUTHORIZATION)
        {
            request = request.header(name, value);
        }
        if let Some(token) = self.github_token.filter(|_| !self.strayed && is_github_api(uri)) {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        request.body(self.made.payload).map_err(|_| HttpError::Invalid { url: uri.to_string() })
    }

    /// The target of the next redirect; `None` for the final response.
    ///
    /// 307 and 308 repeat the request. 303 requires a GET, and 301 and 302 permit one (RFC 9110, sections 15.4.2 to
    /// 15.4.4): a POST or PUT is not turned into a GET, but refused.
    pub(super) fn next<B>(&self, from: &Uri, response: &Response<B>) -> Result<Option<String>, HttpError> {
        let Some(target) = redirect_target(from, response)? else { return Ok(None) };
        let repeats = matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        match matches!(self.made.method, Method::GET | Method::HEAD) || repeats {
            true => Ok(Some(target)),
            false => Err(HttpError::Method { url: from.to_string(), status: response.status().as_u16(), target }),
        }
    }
}

/// Scheme, host and port: equal for two URLs of the same server.
pub(super) fn origin(uri: &Uri) -> (Option<&str>, Option<String>, Option<u16>) {
    let scheme = uri.scheme_str();
    let usual = scheme.map(|scheme| if scheme == "https" { 443 } else { 80 });
    (scheme, uri.host().map(str::to_ascii_lowercase), uri.port_u16().or(usual))
}

fn is_github_api(uri: &Uri) -> bool {
    uri.scheme_str() == Some("https") && uri.host() == Some(GITHUB_API)
}

/// The target of a 3xx response (RFC 9110, section 15.4); `None` for any other response.
fn redirect_target<B>(from: &Uri, response: &Response<B>) -> Result<Option<String>, HttpError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(target) = response.headers().get(header::LOCATION).and_then(|target| target.to_str().ok()) else {
        return Ok(None);
    };
    reference_target(from, target).map(Some)
}

/// Resolves a `Location` header in a response from `from`; refuses a downgrade from TLS.
pub(super) fn reference_target(from: &Uri, target: &str) -> Result<String, HttpError> {
    let url = from.to_string();
    let (Some(own), Some(authority)) = (from.scheme_str(), from.authority()) else {
        return Err(HttpError::Invalid { url });
    };
    let scheme = super::scheme(target);
    if own == "https" && scheme.as_deref() == Some("http") {
        return Err(HttpError::Downgrade { url, target: target.to_owned() });
    }
    Ok(if let Some(rest) = target.strip_prefix("//") {
        format!("{own}://{rest}")
    } else if target.starts_with('/') {
        format!("{own}://{authority}{target}")
    } else if scheme.is_some() {
        target.to_owned()
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{own}://{authority}{folder}/{target}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect(status: u16, location: &str) -> Response<()> {
        Response::builder().status(status).header("location", location).body(()).unwrap()
    }

    #[test]
    fn redirects_are_resolved_against_the_address_they_come_from() {
        let from: Uri = "https://a.example/x/y?z".parse().unwrap();
        let target = |location: &str| redirect_target(&from, &redirect(302, location)).map(Option::unwrap);
        assert_eq!(target("https://b.example/q").unwrap(), "https://b.example/q");
        assert_eq!(target("/q").unwrap(), "https://a.example/q");
        assert_eq!(target("q").unwrap(), "https://a.example/x/q");
        assert_eq!(target("//b.example/q").unwrap(), "https://b.example/q");
        assert_eq!(target("q?next=http://b.example/").unwrap(), "https://a.example/x/q?next=http://b.example/");
        assert_eq!(target("HTTPS://b.example/q").unwrap(), "HTTPS://b.example/q");
        for plain in ["http://b.example/q", "HTTP://b.example/q", "hTTp://b.example/q"] {
            assert!(matches!(target(plain), Err(HttpError::Downgrade { .. })), "{plain}");
        }
    }

    /// The `Authorization` headers of consecutive requests to these URLs.
    fn credentials(token: Option<&str>, made: &Request<'_>, hops: &[&str]) -> Vec<String> {
        let hops: Vec<Uri> = hops.iter().map(|url| url.parse().unwrap()).collect();
        let mut made = RedirectChain::new(hops[0].clone(), made, token);
        let credential = |uri| {
            let request = made.request(uri).unwrap();
            request.headers().get("authorization").map_or("none", |value| value.to_str().unwrap()).to_owned()
        };
        hops.iter().map(credential).collect()
    }

    #[test]
    fn the_token_goes_only_with_requests_that_are_made_to_the_api() {
        const API: &str = "https://api.github.com/repos/o/n/releases/latest";
        let token = |hops: &[&str]| credentials(Some("t"), &Request::get(hops[0]), hops);
        assert_eq!(token(&[API, "https://api.github.com/repositories/1/releases/latest"]), ["Bearer t", "Bearer t"]);
        assert_eq!(token(&["https://evil.example/", API]), ["none", "none"]);
        assert_eq!(token(&["https://github.com/o/n", API]), ["none", "none"]);
        assert_eq!(token(&[API, "https://evil.example/", API]), ["Bearer t", "none", "none"]);
        assert_eq!(token(&["http://api.github.com/", API]), ["none", "none"]);
        assert_eq!(token(&[API, "https://api.github.com:444/"]), ["Bearer t", "none"]);
        assert_eq!(token(&["https://api.github.com.evil.example/"]), ["none"]);
        assert_eq!(credentials(Some("t"), &Request::get(API).anonymous(), &[API]), ["none"]);
    }

    #[test]
    fn authorization_stays_where_the_request_was_made_to() {
        let hops = ["https://r.example/a", "https://r.example/b", "https://cdn.example/", "https://r.example/c"];
        let made = Request::get(hops[0]).header(header::AUTHORIZATION, "Bearer r");
        assert_eq!(credentials(None, &made, &hops), ["Bearer r", "Bearer r", "none", "none"]);
        let hops = ["https://r.example/a", "https://R.example:443/b", "https://r.example:444/"];
        assert_eq!(credentials(None, &made, &hops), ["Bearer r", "Bearer r", "none"]);
    }

    #[test]
    fn a_secret_that_is_sent_stays_where_it_was_sent_to() {
        let made = Request::post("https://r.example/token", b"refresh_token=s").confined();
        let mut hops = RedirectChain::new(made.url.parse().unwrap(), &made, None);
        assert!(hops.request(&"https://r.example/other".parse().unwrap()).is_ok());
        let error = hops.request(&"https://evil.example/token".parse().unwrap()).unwrap_err();
        assert!(matches!(error, HttpError::Elsewhere { .. }), "{error}");
        assert!(!format!("{made:?}").contains("refresh_token"));
    }

    #[test]
    fn a_post_stays_a_post_or_is_refused() {
        let from: Uri = "https://a.example/".parse().unwrap();
        let (get, post) = (Request::get("https://a.example/"), Request::post("https://a.example/", b"{}"));
        let mut hops = RedirectChain::new(from.clone(), &post, None);
        for status in [307, 308] {
            let target = hops.next(&from, &redirect(status, "/b")).unwrap().unwrap();
            let request = hops.request(&target.parse().unwrap()).unwrap();
            assert_eq!(request.method(), Method::POST);
            assert!(matches!(request.body(), Payload::Bytes(b"{}")));
        }
        for status in [301, 302, 303] {
            let error = hops.next(&from, &redirect(status, "/b")).unwrap_err();
            assert!(matches!(error, HttpError::Method { .. }), "{error}");
            let get = RedirectChain::new(from.clone(), &get, None);
            assert!(get.next(&from, &redirect(status, "/b")).unwrap().is_some());
        }
        assert_eq!(hops.next(&from, &redirect(200, "/b")).unwrap(), None);
    }
}
