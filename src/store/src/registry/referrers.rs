//! Attachments of a manifest: from the registry's referrers API, or from the referrers tag if it has none (distribution
//! specification 1.1, "Listing Referrers" and "Referrers Tag Schema").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_oci::Descriptor;

use super::error::RegistryError;
use super::repository::Repository;

/// Media type of lists.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Maximum number of attempts to update a list that others update concurrently.
const MAX_ATTEMPTS: usize = 5;

/// A list of referrers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReferrerList {
    schema_version: u32,
    media_type: Option<String>,
    manifests: Vec<Descriptor>,
    /// Other fields are preserved.
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

impl Repository {
    /// The manifests attached to `subject`. Nothing verifies their origin.
    pub fn referrers(&self, subject: &Digest) -> Result<Vec<Descriptor>, RegistryError> {
        match self.listed(subject) {
            Err(error) if error.is_absent() => Ok(self.tagged(subject)?.manifests),
            result => result,
        }
    }

    /// Attaches a manifest to its `subject`. Its blobs must have been pushed. `entry` is its descriptor in lists, with
    /// type and annotations.
    pub fn attach(
        &self,
        subject: &Digest,
        entry: &Descriptor,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<(), RegistryError> {
        if self.put(&entry.digest.to_string(), media_type, bytes)? {
            return Ok(());
        }
        for _ in 0..MAX_ATTEMPTS {
            let mut list = self.tagged(subject)?;
            if list.manifests.iter().any(|listed| listed.digest == entry.digest) {
                return Ok(());
            }
            list.manifests.push(entry.clone());
            let text = serde_json::to_vec(&list).map_err(|_| self.unusable(&fallback(subject)))?;
            self.put_manifest(&fallback(subject), INDEX, &text)?;
        }
        Err(RegistryError::Message(message!(
            "{}: lost an update race with other writers of the referrers list",
            self.url(&format!("manifests/{}", fallback(subject)))
        )))
    }

    /// The list of the referrers API.
    fn listed(&self, subject: &Digest) -> Result<Vec<Descriptor>, RegistryError> {
        let url = self.url(&format!("referrers/{subject}"));
        let mut found = Vec::new();
        self.pages(url, |url, bytes| {
            found.extend(self.parse(bytes, url)?.manifests);
            Ok(())
        })?;
        Ok(found)
    }

    /// The list at the referrers tag; empty if the tag does not exist.
    fn tagged(&self, subject: &Digest) -> Result<ReferrerList, RegistryError> {
        match self.manifest(&fallback(subject)) {
            Ok(found) => self.parse(&found.bytes, &fallback(subject)),
            Err(error) if error.is_absent() => {
                let media_type = Some(INDEX.to_owned());
                Ok(ReferrerList { schema_version: 2, media_type, manifests: Vec::new(), rest: BTreeMap::new() })
            }
            Err(error) => Err(error),
        }
    }

    fn parse(&self, bytes: &[u8], place: &str) -> Result<ReferrerList, RegistryError> {
        let list: Option<ReferrerList> = serde_json::from_slice(bytes).ok();
        let is_index = |list: &ReferrerList| list.media_type.as_ref().is_none_or(|media_type| media_type == INDEX);
        list.filter(is_index).ok_or_else(|| self.unusable(place))
    }

    fn unusable(&self, place: &str) -> RegistryError {
        RegistryError::Answer { url: format!("{}: {place}", self.name()), what: "list of referrers" }
    }
}

/// The referrers tag of a manifest, for registries without the referrers API.
fn fallback(subject: &Digest) -> String {
    format!("{}-{}", subject.algorithm(), subject.hex()).chars().take(128).collect()
}
