//! Signature Version 4: a request and credentials enter, the headers that sign it leave.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, SignableBody, SignableRequest, SigningSettings, sign as sign_request,
};
use aws_sigv4::sign::v4::SigningParams;

/// What is signed.
pub(super) struct Signable<'a> {
    pub(super) method: &'a str,
    /// The whole address, with escaped path and query.
    pub(super) url: &'a str,
    /// Headers, whose names are in lower case.
    pub(super) headers: &'a [(&'static str, String)],
    /// The body; `None` if it is not signed, as a header says then.
    pub(super) body: Option<&'a [u8]>,
}

/// What a signature is good for.
pub(super) struct Scope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) time: SystemTime,
}

/// The headers that sign a request: `authorization`, `x-amz-date`, and what belongs to them.
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
