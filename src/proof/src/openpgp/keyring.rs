//! Keyrings: armored (any number of blocks; text between them is ignored) or binary, with any number of certificates.

use std::fmt;
use std::io::Read as _;
use std::path::Path;

use jiff::Timestamp;
use sequoia_openpgp::cert::{Cert, CertParser};
use sequoia_openpgp::parse::Parse as _;
use sequoia_openpgp::serialize::SerializeInto as _;
use sequoia_openpgp::types::RevocationStatus;
use sequoia_openpgp::{Fingerprint, KeyHandle};

use super::{seconds, self_signed, system_time};
use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::{FileError, Message};

use vmbake_common::input;

/// Maximum size of a keyring in bytes: Debian's with all certifications has 100 KB.
const MAX_LEN: u64 = 16 << 20;
const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";

/// Why a keyring cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    #[error("larger than the limit of {MAX_LEN} bytes")]
    TooLarge,
    #[error("key block {block}, certificate {certificate}: corrupt or of an unsupported type")]
    Certificate {
        /// The number of the armored block, from 1.
        block: usize,
        /// The number of the certificate in the block, from 1.
        certificate: usize,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for KeyringError {
    vmbake_common::causes!(File, Message);
}

/// Trusted certificates: pinning the file makes them trusted.
#[derive(Clone, Debug)]
pub struct Keyring {
    certs: Vec<Cert>,
}

/// The state of a certificate at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It can verify signatures.
    Live,
    Expired,
    /// Revoked by its owner or a designated revoker.
    Revoked,
    /// Unusable for another reason, such as self-signatures with weak digests only.
    Unusable(String),
}

/// A description of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Fingerprint of the primary key, upper-case hexadecimal.
    pub fingerprint: String,
    /// The primary user ID, or the first one.
    pub user_id: String,
    pub created: Timestamp,
    pub expires: Option<Timestamp>,
    pub state: KeyState,
    /// Fingerprints of its signing keys; empty unless it is live.
    pub signing: Vec<String>,
}

impl Keyring {
    pub fn load(path: &Path) -> Result<Self, KeyringError> {
        let read = |source| KeyringError::File(FileError::new(path, "read the keyring", source));
        let mut bytes = Vec::new();
        let file = input::open(path).map_err(read)?;
        file.take(MAX_LEN + 1).read_to_end(&mut bytes).map_err(read)?;
        Self::parse(&bytes)
            .map_err(|source| KeyringError::Message(message!("{}: cannot use the keyring", path.display()).by(source)))
    }

    /// Parses a keyring. Duplicate certificates are merged; the order is by fingerprint.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyringError> {
        if bytes.len() as u64 > MAX_LEN {
            return Err(KeyringError::TooLarge);
        }
        let mut keyring = Self { certs: Vec::new() };
        for (index, block) in blocks(bytes)?.into_iter().enumerate() {
            keyring.add(index + 1, block)?;
        }
        if keyring.certs.is_empty() { Err(KeyringError::Message(Message::new("no public key"))) } else { Ok(keyring) }
    }

    /// All certificates of all keyrings.
    pub fn union(keyrings: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self { certs: Vec::new() };
        keyrings.into_iter().flat_map(|keyring| keyring.certs).for_each(|cert| all.insert(cert));
        all
    }

    /// The certificates as of `now`, sorted by fingerprint.
    pub fn keys(&self, now: Timestamp) -> Vec<Key> {
        self.certs.iter().map(|cert| describe(cert, now)).collect()
    }

    /// Each certificate as an armored block, sorted by fingerprint: equal keyrings give equal bytes.
    pub fn armored(&self) -> Result<Vec<Vec<u8>>, KeyringError> {
        let armor = |(index, cert): (usize, &Cert)| {
            cert.armored().to_vec().map_err(|source| KeyringError::Certificate {
                block: index + 1,
                certificate: 1,
                source: source.into(),
            })
        };
        self.certs.iter().enumerate().map(armor).collect()
    }

    /// The certificates that contain any of these keys.
    pub(super) fn with_keys(&self, ids: &[KeyHandle]) -> Vec<Cert> {
        let holds = |cert: &&Cert| cert.keys().any(|key| ids.iter().any(|id| id.aliases(key.key().key_handle())));
        self.certs.iter().filter(holds).cloned().collect()
    }

    fn add(&mut self, block: usize, bytes: &[u8]) -> Result<(), KeyringError> {
        let error = |certificate, source: sequoia_openpgp::anyhow::Error| KeyringError::Certificate {
            block,
            certificate,
            source: source.into(),
        };
        for (index, cert) in CertParser::from_bytes(bytes).map_err(|source| error(1, source))?.enumerate() {
            self.insert(cert.map_err(|source| error(index + 1, source))?.strip_secret_key_material());
        }
        Ok(())
    }

    fn insert(&mut self, cert: Cert) {
        let at = self.certs.binary_search_by_key(&cert.fingerprint(), Cert::fingerprint);
        match at {
            Ok(at) => {
                let known = self.certs.remove(at);
                // Merging fails only for different fingerprints.
                let merged = known.clone().merge_public(cert).unwrap_or(known);
                self.certs.insert(at, merged);
            }
            Err(at) => self.certs.insert(at, cert),
        }
    }
}

impl fmt::Display for KeyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live => f.write_str("live"),
            Self::Expired => f.write_str("expired"),
            Self::Revoked => f.write_str("revoked"),
            Self::Unusable(reason) => write!(f, "unusable: {reason}"),
        }
    }
}

/// Seconds of 2100-01-01, later than any revocation: a revocation applies to signatures of all times.
const EVER: i64 = 4_102_444_800;

/// Whether a certificate or one of its keys has ever been revoked, according to the certificate.
pub(super) fn is_withdrawn(cert: &Cert, key: &Fingerprint, now: Timestamp) -> bool {
    let (policy, ever) = (self_signed(now), seconds(EVER));
    let mut same = cert.keys().subkeys().filter(|found| found.key().fingerprint() == *key);
    matches!(cert.revocation_status(&policy, ever), RevocationStatus::Revoked(_))
        || same.any(|key| matches!(key.bundle().revocation_status(&policy, ever), RevocationStatus::Revoked(_)))
}

/// The state of `cert` at `now`.
pub(super) fn state(cert: &Cert, now: Timestamp) -> KeyState {
    let policy = self_signed(now);
    if matches!(cert.revocation_status(&policy, system_time(now)), RevocationStatus::Revoked(_)) {
        return KeyState::Revoked;
    }
    match cert.with_policy(&policy, system_time(now)) {
        Ok(valid) if valid.alive().is_ok() => KeyState::Live,
        Ok(valid) if expiry(&valid).is_some_and(|expiry| expiry <= now) => KeyState::Expired,
        Ok(_) => KeyState::Unusable("not valid yet".to_owned()),
        Err(error) => KeyState::Unusable(innermost(&error)),
    }
}

/// Whether a key of `cert` can sign data at `now`.
pub(super) fn can_sign(cert: &Cert, key: &Fingerprint, now: Timestamp) -> bool {
    signing(cert, now).contains(key)
}

fn signing(cert: &Cert, now: Timestamp) -> Vec<Fingerprint> {
    let policy = self_signed(now);
    let keys = cert.keys().with_policy(&policy, system_time(now)).supported().alive().revoked(false).for_signing();
    keys.map(|key| key.key().fingerprint()).collect()
}

fn describe(cert: &Cert, now: Timestamp) -> Key {
    let policy = self_signed(now);
    let valid = cert.with_policy(&policy, system_time(now)).ok();
    let primary = valid.as_ref().and_then(|valid| valid.primary_userid().ok()).map(|id| id.userid().clone());
    let user_id = primary.or_else(|| cert.userids().next().map(|id| id.userid().clone()));
    let state = state(cert, now);
    let signing = if state == KeyState::Live { signing(cert, now) } else { Vec::new() };
    Key {
        fingerprint: cert.fingerprint().to_hex(),
        user_id: user_id.map(|id| String::from_utf8_lossy(id.value()).into_owned()).unwrap_or_default(),
        created: Timestamp::try_from(cert.primary_key().key().creation_time()).unwrap_or(Timestamp::UNIX_EPOCH),
        expires: valid.as_ref().and_then(expiry),
        state,
        signing: signing.iter().map(Fingerprint::to_hex).collect(),
    }
}

fn expiry(cert: &sequoia_openpgp::cert::ValidCert<'_>) -> Option<Timestamp> {
    Timestamp::try_from(cert.primary_key().key_expiration_time()?).ok()
}

/// The root cause, which names the algorithm.
fn innermost(error: &sequoia_openpgp::anyhow::Error) -> String {
    error.root_cause().to_string()
}

/// The armored blocks of a keyring, or the whole binary keyring.
fn blocks(bytes: &[u8]) -> Result<Vec<&[u8]>, KeyringError> {
    let mut blocks = Vec::new();
    let mut rest = bytes;
    while let Some(start) = find(rest, BEGIN) {
        let block = &rest[start..];
        let end = find(block, END)
            .ok_or(KeyringError::Message(message!("key block {} is not terminated", blocks.len() + 1)))?
            + END.len();
        blocks.push(&block[..end]);
        rest = &block[end..];
    }
    // Bit 7 is set in the first octet of every packet (RFC 9580, section 4.2), and never in armor.
    if blocks.is_empty() && bytes.first().is_some_and(|first| first & 0x80 != 0) {
        blocks.push(bytes);
    }
    Ok(blocks)
}

fn find(bytes: &[u8], text: &str) -> Option<usize> {
    bytes.windows(text.len()).position(|window| window == text.as_bytes())
}
