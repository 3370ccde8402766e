//! Finds the certificate in a file as OpenSSL's `PEM_X509_INFO_read_bio` does: text in, the DER of its only certificate out.

use base64ct::{Base64, Encoding};

/// What a file has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing that has a subject, or something damaged.
    Nothing,
    Certificate(Vec<u8>),
    /// More than one.
    Several,
    /// Something else that OpenSSL would take into account, by its label.
    Other(String),
}

/// Looks for certificates. Text around them is left out.
pub(super) fn find(content: &[u8]) -> Found {
    let text = String::from_utf8_lossy(content);
    let mut found = Vec::new();
    let mut lines = text.lines().map(str::trim_end);
    while let Some(line) = lines.next() {
        let Some(label) = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----")) else {
            continue;
        };
        let end = format!("-----END {label}-----");
        let mut base64 = String::new();
        loop {
            match lines.next() {
                Some(line) if line == end => break,
                Some(line) => base64.push_str(line.trim()),
                None => return Found::Nothing,
            }
        }
        match label {
            "CERTIFICATE" | "X509 CERTIFICATE" => match Base64::decode_vec(&base64) {
                Ok(der) => found.push(der),
                Err(_) => return Found::Nothing,
            },
            "TRUSTED CERTIFICATE" | "X509 CRL" => return Found::Other(label.to_owned()),
            _ if label.ends_with("PRIVATE KEY") => return Found::Other(label.to_owned()),
            _ => {}
        }
    }
    match found.len() {
        0 => Found::Nothing,
        1 => Found::Certificate(found.swap_remove(0)),
        _ => Found::Several,
    }
}
