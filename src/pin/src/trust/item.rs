//! The keys and authorities of an anchor, each described in one line.

use std::fmt;

use jiff::Timestamp;
use sigstore_trust_root::{TimeRange, TrustedRoot};

use vmbake_common::digest::Digest;
use vmbake_proof::openpgp::{KeyState, Keyring, KeyringError};

/// A key or authority.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// Its type, such as `transparency log`.
    pub kind: &'static str,
    /// A fingerprint in hexadecimal: of an OpenPGP key its own, of a certificate or a log's key its SHA-256.
    pub id: String,
    pub owner: String,
    pub from: Option<Timestamp>,
    /// Its end of validity, if known.
    pub until: Option<Timestamp>,
    /// Why it is unusable now: expired, revoked, invalid. Ended entries of a trusted root still prove the past.
    pub fault: Option<String>,
    /// Digest of all of it, in hexadecimal, to detect other differences.
    pub content: String,
}

impl Item {
    /// Whether two items are the same key or authority, perhaps with another validity.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.id) == (other.kind, &other.id)
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, id, owner, .. } = self;
        write!(f, "{kind} {id} {owner}, valid from {}", day(self.from).unwrap_or_else(|| "the beginning".to_owned()))?;
        match day(self.until) {
            Some(until) => write!(f, " until {until}"),
            None => write!(f, " without end"),
        }
    }
}

/// A day in UTC.
pub(super) fn day(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.strftime("%Y-%m-%d").to_string())
}

pub(super) fn of_keyring(keyring: &Keyring, now: Timestamp) -> Result<Vec<Item>, KeyringError> {
    let keys = keyring.keys(now).into_iter().zip(keyring.armored()?);
    let item = |(key, armored): (vmbake_proof::openpgp::Key, Vec<u8>)| Item {
        kind: "OpenPGP key",
        id: key.fingerprint,
        owner: key.user_id,
        from: Some(key.created),
        until: key.expires,
        fault: Some(key.state).filter(|state| *state != KeyState::Live).map(|state| state.to_string()),
        content: Digest::of(&armored).hex(),
    };
    Ok(keys.map(item).collect())
}

pub(super) fn of_root(root: &TrustedRoot) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |kind, owner: &str, der: &[u8], extra: &str, range: Option<&TimeRange>| {
        let id = Digest::of(der).hex();
        let content = Digest::of(format!("{id} {extra}").as_bytes()).hex();
        let (from, until) = (range.map(|range| range.start), range.and_then(|range| range.end));
        items.push(Item { kind, id, owner: owner.to_owned(), from, until, fault: None, content });
    };
    for authority in &root.certificate_authorities {
        for certificate in &authority.cert_chain.certificates {
            let range = authority.valid_for.as_ref();
            add("certificate authority", &authority.uri, certificate.raw_bytes.as_bytes(), "", range);
        }
    }
    for log in &root.ctlogs {
        let (key, id) = (&log.public_key, format!("{:?} {:?}", log.log_id, log.hash_algorithm));
        add("certificate log", &log.base_url, key.raw_bytes.as_bytes(), &id, key.valid_for.as_ref());
    }
    for log in &root.tlogs {
        let (key, id) = (&log.public_key, format!("{:?} {:?}", log.log_id, log.hash_algorithm));
        add("transparency log", &log.base_url, key.raw_bytes.as_bytes(), &id, key.valid_for.as_ref());
    }
    for authority in &root.timestamp_authorities {
        let owner = authority.uri.as_deref().unwrap_or_default();
        for certificate in &authority.cert_chain.certificates {
            add("timestamp authority", owner, certificate.raw_bytes.as_bytes(), "", authority.valid_for.as_ref());
        }
    }
    items.sort();
    items
}
