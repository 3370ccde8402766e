//! An instance: a profile for one deployment with one set of values; and the differences between two instances.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use vmbake_common::digest::Digest;

/// What is remembered of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Name of the profile.
    pub profile: String,
    pub version: String,
    /// Namespace and name of the deployment.
    pub deployment: String,
    /// Digest of the profile's `spec`, as JSON with sorted keys.
    pub spec: Digest,
    /// Who runs the machines.
    pub provider: String,
    /// Version of the kubelet.
    pub kubernetes: String,
    /// System of the images.
    pub os: String,
    /// Digest of everything that the instance depends on, apart from the profile.
    pub values_digest: Digest,
    /// The fields of templates, without those that only machines know; a digest in place of what is long.
    pub values: BTreeMap<String, String>,
    /// Base images that the scripts ran over, by architecture, with the digests of their files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bases: BTreeMap<String, Digest>,
    /// Its layers, with their digests.
    pub layers: BTreeMap<String, Digest>,
    /// The manifests that pin what they bring, by system and architecture, with their digests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub manifests: BTreeMap<String, Digest>,
    /// Settings that user data have to say.
    pub required: BTreeSet<String>,
    /// Settings that they may say.
    pub optional: BTreeSet<String>,
}

/// Something that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstanceDifference {
    /// What it is.
    pub what: String,
    /// Before; empty if it was not there.
    pub old: String,
    /// After; empty if it is gone.
    pub new: String,
    /// Whether machines have to be replaced for it.
    pub rotates: bool,
}

impl Instance {
    /// What differs from this one to another.
    pub fn differences(&self, other: &Self) -> Vec<InstanceDifference> {
        let mut found = Vec::new();
        let mut add = |what: String, old: Option<&str>, new: Option<&str>, rotates: bool| {
            if old != new {
                let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
                found.push(InstanceDifference { what, old: text(old), new: text(new), rotates });
            }
        };
        for (what, old, new) in [
            ("profile", &self.profile, &other.profile),
            ("version", &self.version, &other.version),
            ("deployment", &self.deployment, &other.deployment),
            ("provider", &self.provider, &other.provider),
            ("kubernetes", &self.kubernetes, &other.kubernetes),
            ("os", &self.os, &other.os),
        ] {
            add(what.to_owned(), Some(old), Some(new), false);
        }
        let names = |one: &BTreeMap<String, String>, two: &BTreeMap<String, String>| {
            one.keys().chain(two.keys()).cloned().collect::<BTreeSet<_>>()
        };
        for name in names(&self.values, &other.values) {
            let of = |instance: &'_ Self| instance.values.get(&name).cloned();
            add(format!("value {name}"), of(self).as_deref(), of(other).as_deref(), false);
        }
        for arch in self.bases.keys().chain(other.bases.keys()).collect::<BTreeSet<_>>() {
            let of = |instance: &Self| instance.bases.get(arch).map(ToString::to_string);
            add(format!("base {arch}"), of(self).as_deref(), of(other).as_deref(), false);
        }
        let digests = |of: &BTreeMap<String, Digest>| -> BTreeMap<String, String> {
            of.iter().map(|(name, digest)| (self.neutral(other, name), digest.to_string())).collect()
        };
        for (sort, old, new) in
            [("layer", &self.layers, &other.layers), ("manifest", &self.manifests, &other.manifests)]
        {
            let (old, new) = (digests(old), digests(new));
            for name in names(&old, &new) {
                add(
                    format!("{sort} {name}"),
                    old.get(&name).map(String::as_str),
                    new.get(&name).map(String::as_str),
                    true,
                );
            }
        }
        let settings = |instance: &Self| -> BTreeMap<String, String> {
            let all = instance.required.iter().map(|name| (name, "required"));
            let all = all.chain(instance.optional.iter().map(|name| (name, "optional")));
            all.map(|(name, sort)| (name.clone(), sort.to_owned())).collect()
        };
        let (old, new) = (settings(self), settings(other));
        for name in names(&old, &new) {
            add(
                format!("setting {name}"),
                old.get(&name).map(String::as_str),
                new.get(&name).map(String::as_str),
                false,
            );
        }
        found
    }

    /// The name of a layer without that of its instance, so that layers of two instances are compared.
    fn neutral(&self, other: &Self, name: &str) -> String {
        for instance in [self, other] {
            let kind = instance.layers.keys().find(|kind| instance.layers.contains_key(&format!("{kind}-profile")));
            if let Some(rest) = kind.and_then(|kind| name.strip_prefix(kind.as_str())) {
                return format!("KIND{rest}");
            }
        }
        name.to_owned()
    }
}
