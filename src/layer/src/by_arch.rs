//! Values of a layer that may differ by architecture.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value for all architectures, or one for each.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(untagged)]
pub enum ByArch<T> {
    /// For all architectures.
    Every(T),
    /// By Debian's name of the architecture.
    Each(BTreeMap<String, T>),
}

impl<T> ByArch<T> {
    /// The value for an architecture.
    pub fn of(&self, arch: &str) -> Option<&T> {
        match self {
            Self::Every(value) => Some(value),
            Self::Each(arches) => arches.get(arch),
        }
    }

    /// All values, each with its key where it has one.
    pub(super) fn values(&self) -> Vec<(Option<&String>, &T)> {
        match self {
            Self::Every(value) => vec![(None, value)],
            Self::Each(arches) => arches.iter().map(|(arch, value)| (Some(arch), value)).collect(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByArch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = ByArch<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or an object with one string for each architecture")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ByArch<T>, E> {
                Ok(ByArch::Every(T::deserialize(StrDeserializer::new(text))?))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ByArch<T>, A::Error> {
                Ok(ByArch::Each(BTreeMap::deserialize(MapAccessDeserializer::new(map))?))
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}
