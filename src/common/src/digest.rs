//! Digests as manifests and OCI descriptors write them: `<algorithm>:<hex>`.

use crate::hint::Hint;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};

/// A digest of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Digest {
    Sha256([u8; 32]),
    Sha512([u8; 64]),
}

/// An invalid digest.
#[derive(Debug, thiserror::Error)]
#[error("invalid digest {0:?}: expected sha256:<64 hex digits> or sha512:<128 hex digits>, in lower case")]
pub struct InvalidDigest(String);

impl Hint for InvalidDigest {}

impl Digest {
    /// SHA-256 of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Self::Sha256(Sha256::digest(bytes).into())
    }

    /// The digest with the same algorithm as this one, and the length, of all bytes of `input`.
    pub fn of_stream(self, mut input: impl Read) -> io::Result<(Self, u64)> {
        let mut hasher = self.hasher();
        let mut buffer = vec![0; 256 << 10];
        let mut total = 0;
        loop {
            match input.read(&mut buffer)? {
                0 => return Ok((hasher.finish(), total)),
                len => {
                    hasher.update(&buffer[..len]);
                    total += len as u64;
                }
            }
        }
    }

    /// A hasher with the same algorithm as this digest.
    pub fn hasher(&self) -> Hasher {
        match self {
            Self::Sha256(_) => Hasher::Sha256(Sha256::new()),
            Self::Sha512(_) => Hasher::Sha512(Sha512::new()),
        }
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

/// A digest that is being computed.
#[derive(Clone, Debug)]
pub enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    /// SHA-256, for content without an expected digest.
    pub fn sha256() -> Self {
        Self::Sha256(Sha256::new())
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    pub fn finish(self) -> Digest {
        match self {
            Self::Sha256(hasher) => Digest::Sha256(hasher.finalize().into()),
            Self::Sha512(hasher) => Digest::Sha512(hasher.finalize().into()),
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

/// Exactly `N` bytes from lower-case hexadecimal. Only one spelling is accepted, so that equal digests are equal texts.
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

impl JsonSchema for Digest {
    fn schema_name() -> Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$"})
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}
