//! Trusted publishers of bundles and their grants: `trust/publishers/NAME.json`.
//!
//! The user who adds bundles to images owns this file. Keys never come from a bundle, and requests beyond the grant are refused before any
//! artifact of the bundle is downloaded.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contents::read;
use super::document::{BundleDocument, Permissions};
use super::error::BundleError;
use super::place::BundlePlace;
use super::validate;
use vmbake_bake::release::verify::NamedSigner;
use vmbake_common::address;
use vmbake_common::digest::Digest;
use vmbake_common::paths::is_at_or_below;
use vmbake_proof::sigstore::{PublicKey, Signer, json};

/// The format version.
const SCHEMA: u32 = 1;
/// Default directory of these files.
pub const FOLDER: &str = "trust/publishers";

/// A trusted publisher of bundles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Publisher {
    /// Format version: 1.
    pub schema: u32,
    /// Name of the publisher and of this file.
    pub publisher: String,
    /// Public key that signs the bundles, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Subject alternative name of the certificate that signs the bundles, instead of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// OIDC issuer of that certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Repository of the bundles in a registry, including everything below it; any location if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Required prefix of bundle names; must start with `PUBLISHER.`.
    pub names: String,
    /// Permissions granted to the bundles.
    pub allows: Permissions,
}

impl Publisher {
    /// Reads the file of a publisher in a directory.
    pub fn load(folder: &Path, name: &str) -> Result<Self, BundleError> {
        let path = Self::path(folder, name);
        if validate::label(name).is_some() || path.symlink_metadata().is_err() {
            return Err(BundleError::NoPublisher { name: name.to_owned(), path });
        }
        let syntax = |error| BundleError::syntax(&path, &error);
        let text = read(&path)?;
        if let Some(key) = address::in_document(&text) {
            return Err(BundleError::Publisher { path, key, what: address::MESSAGE.to_owned() });
        }
        let publisher: Self = serde_json::from_slice(&text).map_err(syntax)?;
        json::parse(&text).map_err(syntax)?;
        let fault = |key: &str, what: &str| {
            let (path, key, what) = (path.clone(), key.to_owned(), what.to_owned());
            Err(BundleError::Publisher { path, key, what })
        };
        match &publisher {
            one if one.schema != SCHEMA => fault("schema", "unsupported schema: expected 1"),
            one if one.publisher != name => fault("publisher", "does not match the name of the file"),
            one if !one.names.starts_with(&format!("{name}.")) => {
                fault("names", "does not start with the publisher's name and a dot")
            }
            _ => match publisher.signer(&path) {
                Ok(_) => Ok(publisher),
                Err(error) => Err(error),
            },
        }
    }

    /// The file of a publisher.
    pub fn path(folder: &Path, name: &str) -> PathBuf {
        folder.join(format!("{name}.json"))
    }

    /// Grants what `document` requests to the signer with `key`, or with identity and issuer.
    pub fn granting(
        document: &BundleDocument,
        key: Option<String>,
        certificate: Option<(String, String)>,
        registry: Option<String>,
    ) -> Self {
        let (identity, issuer) = certificate.unzip();
        Self {
            schema: SCHEMA,
            publisher: document.publisher.clone(),
            key,
            identity,
            issuer,
            registry,
            names: format!("{}.", document.publisher),
            allows: document.asks.clone(),
        }
    }

    /// Adds earlier grants to the same signer; `path` is for messages.
    pub fn widen(&mut self, known: &Self, path: &Path) -> Result<(), BundleError> {
        if (&known.key, &known.identity, &known.issuer) != (&self.key, &self.identity, &self.issuer) {
            let what = "differs from that in the file: remove the file only if the publisher has announced the change"
                .to_owned();
            return Err(BundleError::Publisher { path: path.to_owned(), key: "key".to_owned(), what });
        }
        let Permissions { paths, setuid, users, scripts, commands, ports } = known.allows.clone();
        let allows = &mut self.allows;
        let lists = [
            (&mut allows.paths, paths),
            (&mut allows.setuid, setuid),
            (&mut allows.users, users),
            (&mut allows.scripts, scripts),
            (&mut allows.commands, commands),
            (&mut allows.ports, ports),
        ];
        lists.into_iter().for_each(|(list, known)| list.extend(known));
        self.names.clone_from(&known.names);
        // A place that was edited stays.
        self.registry.clone_from(&known.registry);
        Ok(())
    }

    /// Serializes the file.
    pub fn to_text(&self) -> Result<Vec<u8>, BundleError> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// The required signer of the bundles; `path` is for messages.
    pub fn signer(&self, path: &Path) -> Result<NamedSigner, BundleError> {
        let fault =
            |key: &str, what: String| BundleError::Publisher { path: path.to_owned(), key: key.to_owned(), what };
        let signer = match (&self.key, &self.identity, &self.issuer) {
            (Some(pem), None, None) => {
                let key = PublicKey::from_pem(pem.as_bytes()).and_then(PublicKey::require_p256);
                Signer::KeyWithoutLog(key.map_err(|error| fault("key", error.to_string()))?)
            }
            (None, Some(identity), Some(issuer)) if !identity.is_empty() && !issuer.is_empty() => {
                Signer::Certificate { identity: identity.clone(), issuer: issuer.clone() }
            }
            _ => return Err(fault("key", "expected either a key or an identity with its issuer".to_owned())),
        };
        Ok(NamedSigner { name: format!("publisher {}", self.publisher), signer })
    }

    /// The signer in records: the digest of the key, or identity and issuer.
    pub fn signed_by(&self, path: &Path) -> Result<String, BundleError> {
        Ok(match self.signer(path)?.signer {
            Signer::Key(key) | Signer::KeyWithoutLog(key) => format!("key {}", Digest::of(key.der())),
            Signer::Certificate { identity, issuer } => format!("{identity} ({issuer})"),
        })
    }

    /// Verifies name and location of a bundle from `place`, and that its requests are granted.
    pub fn check_grant(&self, place: &BundlePlace, document: &BundleDocument) -> Result<(), BundleError> {
        let path = place.path();
        let refused =
            |what: String| Err(BundleError::NotGranted { path: path.clone(), publisher: self.publisher.clone(), what });
        if document.publisher != self.publisher || !document.title().starts_with(&self.names) {
            return refused(format!("{} does not start with {:?}", document.title(), self.names));
        }
        if let (BundlePlace::Registry { name, .. }, Some(registry)) = (place, &self.registry) {
            let found = name.repository.to_string();
            if !is_at_or_below(&found, registry) {
                return refused(format!("{found} is not below {registry}"));
            }
        }
        let beyond = document.asks.beyond(&self.allows);
        let beyond: Vec<String> = beyond.iter().map(|(key, value)| format!("{key} {value}")).collect();
        match beyond.is_empty() {
            true => Ok(()),
            false => refused(format!("requests more than granted: {}", beyond.join(", "))),
        }
    }
}
