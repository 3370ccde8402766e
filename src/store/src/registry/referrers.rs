//! What is attached to a manifest: lists of referrers, by the registry's own list or by a tag where it has none (distribution
//! specification 1.1, "Listing Referrers" and "Referrers Tag Schema").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_oci::Descriptor;

use super::error::RegistryError;
use super::repository::Repository;

/// Type of lists.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// How often a list is written again because others wrote it at the same time.
const MAX_ATTEMPTS: usize = 5;

/// A list of referrers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReferrerList {
    schema_version: u32,
    media_type: Option<String>,
    manifests: Vec<Descriptor>,
    /// What else others have put there stays.
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

impl Repository {
    /// The manifests that are attached to `subject`. Who attached them, nobody has checked.
    pub fn referrers(&self, subject: &Digest) -> Result<Vec<Descriptor>, RegistryError> {
        match self.listed(subject) {
            Err(error) if error.is_absent() => Ok(self.tagged(subject)?.manifests),
            result => result,
        }
    }

    /// Attaches a manifest whose `subject` is that one, and whose blobs are there. `entry` is its entry in lists, with type and
    /// annotations.
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
            "{}: others change it at the same time, and what was added does not stay",
            self.url(&format!("manifests/{}", fallback(subject)))
        )))
    }

    /// The registry's own list.
    fn listed(&self, subject: &Digest) -> Result<Vec<Descriptor>, RegistryError> {
        let url = self.url(&format!("referrers/{subject}"));
        let mut found = Vec::new();
        self.pages(url, |url, bytes| {
            found.extend(self.parse(bytes, url)?.manifests);
            Ok(())
        })?;
        Ok(found)
    }

    /// The list below a tag; an empty one where there is none.
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

/// The tag with the list of a registry that has none of its own.
fn fallback(subject: &Digest) -> String {
    format!("{}-{}", subject.algorithm(), subject.hex()).chars().take(128).collect()
}
