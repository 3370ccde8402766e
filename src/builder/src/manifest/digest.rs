//! Digests as manifests and OCI descriptors write them: `<algorithm>:<hex>`.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};

/// A digest of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Digest {
    /// SHA-256, 32 bytes.
    Sha256([u8; 32]),
    /// SHA-512, 64 bytes.
    Sha512([u8; 64]),
}

/// A text that is no digest.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not sha256:<64 hex digits> or sha512:<128 hex digits>, in lower case")]
pub struct InvalidDigest(String);

impl Digest {
    /// SHA-256 of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Self::Sha256(Sha256::digest(bytes).into())
    }

    /// Digest with the same algorithm as this one, and the length, of everything that `input` has to give.
    pub fn of_stream(self, input: impl Read) -> io::Result<(Self, u64)> {
        Ok(match self {
            Self::Sha256(_) => {
                let (digest, len) = stream::<Sha256>(input)?;
                (Self::Sha256(digest.into()), len)
            }
            Self::Sha512(_) => {
                let (digest, len) = stream::<Sha512>(input)?;
                (Self::Sha512(digest.into()), len)
            }
        })
    }

    /// Name of the algorithm, as in a store's `blobs/<algorithm>/`.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Sha256(_) => "sha256",
            Self::Sha512(_) => "sha512",
        }
    }

    /// The digest's bytes in lower-case hexadecimal.
    pub fn hex(&self) -> String {
        let bytes: &[u8] = match self {
            Self::Sha256(bytes) => bytes,
            Self::Sha512(bytes) => bytes,
        };
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn stream<D: sha2::Digest>(mut input: impl Read) -> io::Result<(sha2::digest::Output<D>, u64)> {
    let mut hasher = D::new();
    let mut buffer = vec![0; 256 << 10];
    let mut total = 0;
    loop {
        match input.read(&mut buffer)? {
            0 => return Ok((hasher.finalize(), total)),
            len => {
                hasher.update(&buffer[..len]);
                total += len as u64;
            }
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm(), self.hex())
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let invalid = || InvalidDigest(text.to_owned());
        let (algorithm, hex) = text.split_once(':').ok_or_else(invalid)?;
        match algorithm {
            "sha256" => decode(hex).map(Self::Sha256),
            "sha512" => decode(hex).map(Self::Sha512),
            _ => None,
        }
        .ok_or_else(invalid)
    }
}

/// Exactly `N` bytes from lower-case hexadecimal: one spelling only, so that equal digests are equal texts.
fn decode<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if hex.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

impl TryFrom<String> for Digest {
    type Error = InvalidDigest;

    fn try_from(text: String) -> Result<Self, InvalidDigest> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}
