//! The dependencies of a manifest, without the one that is not there yet.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};

use super::Dependency;

/// Name of the entry that stands for the configuration itself; it has no address or digest until it is released.
const STUB: &str = "vmconfig";

/// The dependencies without that stub, of which nothing can be fetched or checked.
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
                        Entry::Stub { .. } => return Err(de::Error::custom("vmconfig is neither pinned nor empty")),
                    }
                };
                if found.insert(name.clone(), dependency).is_some() {
                    return Err(de::Error::custom(format!("dependency {name} is listed twice")));
                }
            }
            Ok(found)
        }
    }
    deserializer.deserialize_map(Entries)
}
