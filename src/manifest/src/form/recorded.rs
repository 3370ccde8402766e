//! The proof of an entry: in full, or as the name of a shared one.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Proof;

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Recorded {
    /// The name of one of `indexes`.
    Index(String),
    /// A proof in full.
    Own(Box<Proof>),
}

impl<'de> Deserialize<'de> for Recorded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Recorded;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a proof, or a name from `indexes`")
            }

            fn visit_str<E: de::Error>(self, index: &str) -> Result<Recorded, E> {
                Ok(Recorded::Index(index.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Recorded, A::Error> {
                Ok(Recorded::Own(Box::new(Proof::deserialize(MapAccessDeserializer::new(map))?)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
