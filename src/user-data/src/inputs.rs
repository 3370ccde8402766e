//! Files for user data: certificates, public keys, a token. Each is checked strictly, since a file
//! given by mistake can be a private key; contents are never shown.

use std::io::Read;
use std::path::Path;

use sigstore_verify::types::{DerCertificate, PemContent};
use vmbake_common::message;
use vmbake_firstboot::plan::{Format, Plan};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::UserDataError;
use super::names::variable;
use vmbake_common::input;

/// Maximum length of these files; no provider accepts as much.
const MAX_INPUT: u64 = 1 << 20;

/// Key types of sshd(8).
const KEY_TYPES: [&str; 4] = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"];

/// Reads a file of limited length.
pub(super) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, UserDataError> {
    let failed = |source| UserDataError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    input::open(path).and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes)).map_err(failed)?;
    match bytes.len() as u64 > limit {
        true => Err(wrong(path, "at most 1 MiB", "more")),
        false => Ok(bytes),
    }
}

/// The value of setting `name` from a file: its bytes as base64 if the setting has that format, else its text without the last line
/// break. A server does not find placeholders in base64, so templates refuse such text files; binary files can contain braces by chance.
pub fn setting(plan: &Plan, name: &str, path: &Path, is_template: bool) -> Result<String, UserDataError> {
    let is_base64 = variable(plan, name).is_some_and(|variable| variable.format == Some(Format::Base64));
    if is_base64 {
        let bytes = read(path, MAX_INPUT)?;
        let has_placeholder = || str::from_utf8(&bytes).is_ok_and(|text| text.contains("{{"));
        if is_template && has_placeholder() {
            return Err(UserDataError::EncodedPlaceholder { name: name.to_owned(), path: path.to_owned() });
        }
        return Ok(PemContent::from_bytes(&bytes).to_base64());
    }
    let text = text(path, "a text")?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// The certificates of a file, as base64 of PEM, without text around them, such as openssl(1) writes.
pub(super) fn certificates(path: &Path) -> Result<String, UserDataError> {
    let expected = "certificates (PEM)";
    let mut pem = String::new();
    let mut inside: Option<String> = None;
    for line in text(path, expected)?.lines() {
        let line = line.trim_end();
        let label = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----"));
        match (label, &mut inside) {
            (Some("CERTIFICATE"), None) => inside = Some(format!("{line}\n")),
            (Some(_), None) => return Err(wrong(path, expected, "something else in PEM, perhaps a private key")),
            (Some(_), Some(_)) => return Err(wrong(path, expected, "an unterminated one")),
            (None, Some(block)) => {
                block.push_str(&format!("{line}\n"));
                if line == "-----END CERTIFICATE-----" {
                    let damaged = || wrong(path, expected, "a malformed one");
                    let der = DerCertificate::from_pem(block).map_err(|_| damaged())?;
                    Certificate::from_der(der.as_bytes()).map_err(|_| damaged())?;
                    pem.push_str(block);
                    inside = None;
                }
            }
            (None, None) => {}
        }
    }
    match inside {
        Some(_) => Err(wrong(path, expected, "an unterminated one")),
        None if pem.is_empty() => Err(wrong(path, expected, "none")),
        None => Ok(PemContent::from_bytes(pem.as_bytes()).to_base64()),
    }
}

/// The lines of a file with public keys, as sshd(8) reads `authorized_keys`, without comments and blank lines.
pub(super) fn public_keys(path: &Path) -> Result<Vec<String>, UserDataError> {
    let expected = "SSH public keys, one per line";
    let text = text(path, expected)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let keys: Vec<String> = lines.map(str::to_owned).collect();
    if keys.is_empty() {
        return Err(wrong(path, expected, "none"));
    }
    match keys.iter().all(|line| is_public_key(line)) {
        true => Ok(keys),
        false => Err(wrong(path, expected, "another line, perhaps of a private key")),
    }
}

/// Optional options, then a type and base64.
fn is_public_key(line: &str) -> bool {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    !line.contains(char::is_control)
        && words.windows(2).any(|pair| {
            let [kind, key] = pair else { return false };
            KEY_TYPES.iter().any(|known| kind.starts_with(known)) && PemContent::from_base64(key).is_ok()
        })
}

/// The token of a file: one word, with an optional line break.
pub(super) fn token(path: &Path) -> Result<String, UserDataError> {
    let expected = "a token in a single line";
    let text = text(path, expected)?;
    let word = text.strip_suffix('\n').unwrap_or(&text);
    match !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text),
        false => Err(wrong(path, expected, "something else")),
    }
}

fn text(path: &Path, expected: &'static str) -> Result<String, UserDataError> {
    String::from_utf8(read(path, MAX_INPUT)?).map_err(|_| wrong(path, expected, "no UTF-8"))
}

fn wrong(path: &Path, expected: &'static str, found: &str) -> UserDataError {
    UserDataError::Message(message!("{}: expected {expected}, found {found}", path.display()))
}
