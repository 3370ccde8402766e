//! Trusted certificates: checks that update-ca-certificates(8) accepts a file.

use base64ct::{Base64, Encoding};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Why update-ca-certificates would leave a file out, or make a bundle of it that cannot be read, and what to do about it.
pub(super) fn fault(path: &str, content: &[u8]) -> Option<(String, &'static str)> {
    let wrong = |what: &str, hint: &'static str| Some((what.to_owned(), hint));
    let text = String::from_utf8_lossy(content);
    if !path.starts_with("/usr/local/share/") && !path.starts_with("/usr/share/") {
        return None;
    }
    if !path.ends_with(".crt") {
        return match text.contains(BEGIN) || is_sequence(content) {
            true => wrong("its name does not end with .crt, so it is not trusted", "rename the file to NAME.crt"),
            false => None,
        };
    }
    if text.contains("PRIVATE KEY-----") {
        return wrong("it contains a private key", "remove the private key from the file");
    }
    if is_sequence(content) {
        return wrong(
            "it is in DER format: expected PEM",
            "convert it with `openssl x509 -inform der -in FILE -out NAME.crt`",
        );
    }
    let pem = "use a certificate that starts with -----BEGIN CERTIFICATE-----";
    let blocks = certificates(&text);
    match blocks.iter().position(|block| !is_certificate(block)) {
        Some(index) => wrong(&format!("certificate number {} is corrupt", index + 1), pem),
        None if blocks.is_empty() => wrong("it contains no certificate", pem),
        None => None,
    }
}

/// The blocks of a text in PEM, from the first line of each to its last.
pub fn certificates(text: &str) -> Vec<&str> {
    let blocks = text.match_indices(BEGIN).filter_map(|(start, _)| text.get(start..));
    blocks.map(|rest| rest.split_inclusive(END).next().unwrap_or(rest)).collect()
}

fn is_certificate(block: &str) -> bool {
    let base64 = block.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)).unwrap_or_default();
    let base64: String = base64.split_whitespace().collect();
    Base64::decode_vec(&base64).is_ok_and(|der| is_sequence(&der))
}

/// Whether bytes are one SEQUENCE of DER with a length of two bytes, as a certificate is.
fn is_sequence(der: &[u8]) -> bool {
    let [0x30, 0x82, high, low, rest @ ..] = der else { return false };
    rest.len() == usize::from(u16::from_be_bytes([*high, *low]))
}
