//! The proof of an entry as it is written: in full, or as the name of one that several entries have.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Proof;

/// What an entry records of its proof.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Recorded {
    /// One of `indexes`.
    Index(String),
    /// One of its own.
    Own(Box<Proof>),
}

impl<'de> Deserialize<'de> for Recorded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Recorded;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a proof, or the name of one of `indexes`")
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
