//! Reads the dependencies of a manifest without the placeholder for the unreleased configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};

use super::Dependency;

/// Name of the placeholder; it has no URL or digest before the release.
const STUB: &str = "vmconfig";

/// Deserializes the dependencies and drops the placeholder, which cannot be fetched or verified.
pub(super) fn without_stub<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Dependency>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Entry {
        Pinned(Box<Dependency>),
        Stub { url: String, digest: String },
    }
    struct Entries;
    impl<'de> de::Visitor<'de> for Entries {
        type Value = BTreeMap<String, Dependency>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object of dependencies")
        }

        fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = BTreeMap::new();
            while let Some(name) = map.next_key::<String>()? {
                let dependency = if name != STUB {
                    map.next_value()?
                } else {
                    match map.next_value()? {
                        Entry::Pinned(dependency) => *dependency,
                        Entry::Stub { url, digest } if url.is_empty() && digest.is_empty() => continue,
                        Entry::Stub { .. } => return Err(de::Error::custom("vmconfig must be either pinned or empty")),
                    }
                };
                if found.insert(name.clone(), dependency).is_some() {
                    return Err(de::Error::custom(format!("duplicate dependency {name}")));
                }
            }
            Ok(found)
        }
    }
    deserializer.deserialize_map(Entries)
}
