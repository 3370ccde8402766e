//! Checks that a signing certificate identifies a single signer.
//!
//! X.509 (RFC 5280) allows several names, and Fulcio's certificates state the OIDC issuer twice, in an old and a new
//! extension (`oid-info.md` of sigstore/fulcio). Readers could disagree on which one applies, so exactly one name, no
//! duplicate extensions and one issuer are required.

use sigstore_verify::types::DerCertificate;
use x509_cert::Certificate;
use x509_cert::der::asn1::Utf8StringRef;
use x509_cert::der::{Decode, oid::ObjectIdentifier};
use x509_cert::ext::pkix::SubjectAltName;

use super::SigstoreError;

/// The issuer as plain bytes.
const ISSUER_V1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.1");
/// The issuer as a DER `UTF8String`.
const ISSUER_V2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.8");

/// Maximum length of a certificate; those of Fulcio have 1 KB.
const MAX_LEN: usize = 64 << 10;

/// Refuses a certificate with an ambiguous signer.
pub(in super::super) fn check(der: &DerCertificate) -> Result<(), SigstoreError> {
    let invalid = |reason: String| SigstoreError::Certificate { reason };
    if der.len() > MAX_LEN {
        return Err(invalid(format!("certificate of {} bytes is too long", der.len())));
    }
    let certificate = Certificate::from_der(der.as_bytes()).map_err(|error| invalid(error.to_string()))?;
    let extensions = certificate.tbs_certificate.extensions.as_deref().unwrap_or_default();
    for (index, extension) in extensions.iter().enumerate() {
        if extensions[..index].iter().any(|earlier| earlier.extn_id == extension.extn_id) {
            return Err(invalid(format!("duplicate extension {}", extension.extn_id)));
        }
    }
    let names = certificate.tbs_certificate.get::<SubjectAltName>().map_err(|error| invalid(error.to_string()))?;
    let count = names.map_or(0, |(_, names)| names.0.len());
    if count != 1 {
        return Err(invalid(format!("{count} subject alternative names, expected exactly one")));
    }
    let value =
        |oid| extensions.iter().find(|extension| extension.extn_id == oid).map(|found| found.extn_value.as_bytes());
    if let (Some(old), Some(new)) = (value(ISSUER_V1), value(ISSUER_V2)) {
        let text = Utf8StringRef::from_der(new).map_err(|error| invalid(format!("issuer: {error}")))?;
        if old != text.as_bytes() && old != new {
            return Err(invalid("two different issuers".to_owned()));
        }
    }
    Ok(())
}
