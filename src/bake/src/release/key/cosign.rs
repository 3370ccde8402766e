//! `cosign.key`: JSON in PEM with a PKCS#8 key, encrypted with a password by scrypt (RFC 7914) and NaCl secretbox. The
//! format is that of `encrypted` in go-securesystemslib; unknown fields are refused.

use base64ct::{Base64, Encoding};
use crypto_secretbox::aead::{Aead, KeyInit};
use crypto_secretbox::{Key, Nonce, XSalsa20Poly1305};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::KeyError;

/// Memory limit of scrypt: `N * r * 128` bytes. cosign uses 64 MiB.
const MAX_MEMORY: u64 = 1 << 30;
/// Maximum number of passes; cosign uses one.
const MAX_PASSES: u32 = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Encrypted {
    kdf: Kdf,
    cipher: Cipher,
    ciphertext: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kdf {
    name: String,
    params: Scrypt,
    salt: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scrypt {
    #[serde(rename = "N")]
    n: u64,
    r: u32,
    p: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cipher {
    name: String,
    nonce: String,
}

/// Decrypts the key in `text`.
pub(super) fn decrypt(text: &[u8], password: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let unsupported = |what: String| KeyError::Encryption { what };
    // The parser's message may quote the text, which is useless without the password.
    let sealed: Encrypted = serde_json::from_slice(text).map_err(|error| unsupported(error.to_string()))?;
    if sealed.kdf.name != "scrypt" || sealed.cipher.name != "nacl/secretbox" {
        return Err(unsupported(format!("{:?} with {:?}", sealed.kdf.name, sealed.cipher.name)));
    }
    let decode = |what: &str, text: &str| {
        Base64::decode_vec(text).map_err(|_| unsupported(format!("{what} is not valid Base64")))
    };
    let (salt, ciphertext) = (decode("salt", &sealed.kdf.salt)?, decode("ciphertext", &sealed.ciphertext)?);
    let nonce = decode("nonce", &sealed.cipher.nonce)?;
    let nonce: [u8; 24] = nonce.try_into().map_err(|_| unsupported("nonce length is not 24".to_owned()))?;
    let mut key = Zeroizing::new([0; 32]);
    let params = sealed.kdf.params.checked()?;
    scrypt::scrypt(password, &salt, &params, &mut *key).map_err(|error| unsupported(error.to_string()))?;
    let cipher = XSalsa20Poly1305::new(Key::from_slice(&*key));
    let opened = cipher.decrypt(Nonce::from_slice(&nonce), ciphertext.as_slice());
    opened.map(Zeroizing::new).map_err(|_| KeyError::Password)
}

impl Scrypt {
    fn checked(&self) -> Result<scrypt::Params, KeyError> {
        let Self { n, r, p } = *self;
        let refused = || KeyError::Encryption { what: format!("scrypt with N={n}, r={r}, p={p}") };
        let is_cheap = (2..=MAX_MEMORY).contains(&n)
            && n.is_power_of_two()
            && n.saturating_mul(r.into()).saturating_mul(128) <= MAX_MEMORY
            && p <= MAX_PASSES;
        if !is_cheap {
            return Err(refused());
        }
        let log = u8::try_from(n.ilog2()).map_err(|_| refused())?;
        scrypt::Params::new(log, r, p, scrypt::Params::RECOMMENDED_LEN).map_err(|_| refused())
    }
}
