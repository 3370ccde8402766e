//! Signature Version 4: computes the headers that sign a request.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, SignableBody, SignableRequest, SigningSettings, sign as sign_request,
};
use aws_sigv4::sign::v4::SigningParams;

/// The data to sign.
pub(super) struct Signable<'a> {
    pub(super) method: &'a str,
    /// The complete URL, with escaped path and query.
    pub(super) url: &'a str,
    /// Headers with lower-case names.
    pub(super) headers: &'a [(&'static str, String)],
    /// The body; `None` if it is not signed, as stated in a header.
    pub(super) body: Option<&'a [u8]>,
}

/// The credential scope of a signature.
pub(super) struct Scope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) time: SystemTime,
}

/// The headers that sign a request: `authorization`, `x-amz-date` and related ones.
pub(super) fn sign(
    request: &Signable<'_>,
    credentials: &Credentials,
    scope: &Scope<'_>,
) -> Result<Vec<(&'static str, String)>, String> {
    let mut settings = SigningSettings::default();
    let body = match request.body {
        Some(body) => SignableBody::Bytes(body),
        None => {
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
            SignableBody::UnsignedPayload
        }
    };
    let identity = credentials.clone().into();
    let params = SigningParams::builder()
        .identity(&identity)
        .region(scope.region)
        .name(scope.service)
        .time(scope.time)
        .settings(settings)
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let headers = request.headers.iter().map(|(name, value)| (*name, value.as_str()));
    let signable =
        SignableRequest::new(request.method, request.url, headers, body).map_err(|error| error.to_string())?;
    let (instructions, _) = sign_request(signable, &params).map_err(|error| error.to_string())?.into_parts();
    let (headers, _) = instructions.into_parts();
    Ok(headers.into_iter().map(|header| (header.name(), header.value().to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The time, credentials and names of AWS's test suite for Signature Version 4.
    const SCOPE: Scope<'_> = Scope { region: "us-east-1", service: "service", time: SystemTime::UNIX_EPOCH };
    const TIME: Duration = Duration::from_secs(1_440_938_160);

    fn signed(request: &Signable<'_>, token: Option<&str>, scope: Scope<'_>) -> Vec<(&'static str, String)> {
        let key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let credentials = Credentials::new("AKIDEXAMPLE", key, token.map(str::to_owned), None, "tests");
        sign(request, &credentials, &Scope { time: SystemTime::UNIX_EPOCH + TIME, ..scope }).unwrap()
    }

    fn authorization<'a>(headers: &'a [(&'static str, String)]) -> &'a str {
        headers.iter().find(|(name, _)| *name == "authorization").map(|(_, value)| value.as_str()).unwrap()
    }

    #[test]
    fn signatures_are_those_of_the_test_suite() {
        let get = |url| Signable { method: "GET", url, headers: &[], body: Some(b"") };
        let scope = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
        let headers = signed(&get("https://example.amazonaws.com/"), None, SCOPE);
        let expected = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        assert_eq!(authorization(&headers), format!("{scope}, SignedHeaders=host;x-amz-date, Signature={expected}"));
        let token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
        let headers = signed(&get("https://example.amazonaws.com/"), Some(token), SCOPE);
        let expected = "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8";
        let names = "host;x-amz-date;x-amz-security-token";
        assert_eq!(authorization(&headers), format!("{scope}, SignedHeaders={names}, Signature={expected}"));
        assert!(headers.contains(&("x-amz-security-token", token.to_owned())));
        let url = "https://example.amazonaws.com/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1";
        let expected = "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac";
        assert!(authorization(&signed(&get(url), None, SCOPE)).ends_with(expected));
    }

    /// The signature by botocore 1.44 for the same request.
    #[test]
    fn a_block_is_signed_by_its_checksum() {
        let url = "https://ebs.us-east-1.amazonaws.com/snapshots/snap-0/blocks/7";
        let headers =
            [("x-amz-checksum", "abc="), ("x-amz-checksum-algorithm", "SHA256"), ("x-amz-data-length", "524288")]
                .map(|(name, value)| (name, value.to_owned()));
        let request = Signable { method: "PUT", url, headers: &headers, body: None };
        let headers = signed(&request, None, Scope { service: "ebs", ..SCOPE });
        let names = "host;x-amz-checksum;x-amz-checksum-algorithm;x-amz-content-sha256;x-amz-data-length;x-amz-date";
        let expected = "4953fc13d40726490b5a73720765660345c2557fe96145403f1ed47f1da0cc38";
        assert!(authorization(&headers).ends_with(&format!("SignedHeaders={names}, Signature={expected}")));
        assert!(headers.contains(&("x-amz-content-sha256", "UNSIGNED-PAYLOAD".to_owned())));
    }
}
