//! `bundle.json`, schema 1: text in, a [`BundleDocument`] with valid names, versions and paths out.
//!
//! Unknown and duplicate keys are refused, as is everything above the limits defined here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::error::BundleError;
use super::validate;
use vmbake_common::address;
use vmbake_common::digest::Digest;
use vmbake_layer::real_path::is_below;
use vmbake_manifest::{Dependency, Document};
use vmbake_proof::sigstore::json;
use vmbake_release::version::{Version, VersionDemand};

/// The format version.
pub const SCHEMA: u32 = 1;
/// Maximum size of a document in bytes: a thousand artifacts take half of it.
pub const MAX_DOCUMENT: u64 = 1 << 20;
/// Maximum number of entries in a list or object.
const MAX_ENTRIES: usize = 1024;

/// A bundle: its publisher, supported images, layers, artifacts and requested permissions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "bundle.json")]
pub struct BundleDocument {
    /// Format version: 1.
    pub schema: u32,
    /// Name of the publisher: lower-case letters, digits and `-`. The names of its layers and artifacts start with this name and a dot.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), length(max = 63))]
    pub publisher: String,
    /// Name: lower-case letters, digits and `-`.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), length(max = 63))]
    pub name: String,
    /// Version, such as `1.35.5+rke2r1`.
    pub version: Version,
    /// Purpose of the bundle, in one sentence.
    pub description: String,
    /// Supported operating systems, such as `debian-13`.
    #[schemars(length(min = 1))]
    pub os: BTreeSet<String>,
    /// Supported architectures, by Debian's names.
    #[schemars(length(min = 1))]
    pub arch: BTreeSet<String>,
    /// Supported kinds of images; all if empty.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub kinds: BTreeSet<String>,
    /// Supported versions of vmbake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmbake: Option<VersionDemand>,
    /// Digests of the layers, by name. `vmbake bundle pack` writes them.
    #[serde(default)]
    pub layers: BTreeMap<String, Digest>,
    /// Requirements for the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Need>,
    /// Versions of the features that the bundle provides, by name, such as `kubernetes`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provides: BTreeMap<String, Version>,
    /// Features that no other bundle of the image may provide.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub conflicts: BTreeSet<String>,
    /// Upgrades from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// Absolute paths that a machine keeps when its image is replaced by one with another version of the bundle.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub state: BTreeSet<String>,
    /// Permissions that the layers need.
    pub asks: Permissions,
    /// Artifacts as in manifests, by `OS.ARCH` and name. `vmbake bundle pack` writes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "artifacts_form")]
    pub artifacts: BTreeMap<String, BTreeMap<String, Dependency>>,
    /// Documents of the artifacts' proofs, by digest. `vmbake bundle pack` writes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "evidence_form")]
    pub evidence: BTreeMap<Digest, Document>,
}

impl BundleDocument {
    /// The layers that the bundle requires, by name.
    pub fn required_layers(&self) -> impl Iterator<Item = &str> {
        self.requires.iter().filter_map(|need| need.layer.as_deref())
    }
}

/// A requirement for an image: exactly one of `layer`, `program`, `library` and `module`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// A built-in layer, or a layer of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// Accepted versions of the layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionDemand>,
    /// A program, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// A shared library, such as `libseccomp.so.2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// A kernel module, such as `br_netfilter`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
}

/// Upgrades from earlier versions of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// Versions that the bundle can replace.
    pub from: VersionDemand,
}

/// Permissions that a bundle requests, or that a publisher is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Absolute paths, including everything below them.
    pub paths: BTreeSet<String>,
    /// Absolute paths of files with set-uid, set-gid or sticky bits, or file capabilities.
    pub setuid: BTreeSet<String>,
    /// Names of users and groups to create.
    pub users: BTreeSet<String>,
    /// Packages whose maintainer scripts the layers replace.
    pub scripts: BTreeSet<String>,
    /// Commands of the first boot, each an absolute path with its exact arguments. Words with blanks are in single quotes.
    pub commands: BTreeSet<String>,
    /// Ports that services listen on, such as `6443/tcp`.
    pub ports: BTreeSet<String>,
}

impl Permissions {
    /// All lists with their keys.
    pub fn lists(&self) -> [(&'static str, &BTreeSet<String>); 6] {
        let Self { paths, setuid, users, scripts, commands, ports } = self;
        [
            ("paths", paths),
            ("setuid", setuid),
            ("users", users),
            ("scripts", scripts),
            ("commands", commands),
            ("ports", ports),
        ]
    }

    /// Requests beyond `granted`, as pairs of a key and a value. A granted path includes everything below it.
    pub fn beyond<'a>(&'a self, granted: &Self) -> Vec<(&'static str, &'a str)> {
        let lists = self.lists().into_iter().zip(granted.lists());
        let beyond = lists.flat_map(|((key, asked), (_, granted))| {
            let is_granted = |value: &str| match key {
                "paths" => granted.iter().any(|path| is_below(value, path)),
                _ => granted.contains(value),
            };
            asked
                .iter()
                .filter(move |value| !is_granted(value))
                .map(move |value| (key, value.as_str()))
                .collect::<Vec<_>>()
        });
        beyond.collect()
    }
}

impl Need {
    /// The requirement as text for messages.
    pub fn describe(&self) -> String {
        let version = self.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        let named =
            [("layer", &self.layer), ("program", &self.program), ("library", &self.library), ("module", &self.module)];
        let named = named.iter().find_map(|(what, name)| Some(format!("{what} {}{version}", name.as_ref()?)));
        named.unwrap_or_default()
    }
}

impl BundleDocument {
    /// Reads a document; `path` is for messages.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, BundleError> {
        let syntax = |error: serde_json::Error| BundleError::syntax(path, &error);
        if u64::try_from(text.len()).is_ok_and(|len| len > MAX_DOCUMENT) {
            return Err(BundleError::Limit { path: path.to_owned(), what: format!("more than {MAX_DOCUMENT} bytes") });
        }
        if let Some(key) = address::in_document(text) {
            return Err(BundleError::Document { path: path.to_owned(), key, what: address::MESSAGE.to_owned() });
        }
        // By itself first, since its messages have places.
        let document: Self = serde_json::from_slice(text).map_err(syntax)?;
        json::parse(text).map_err(syntax)?;
        match document.fault() {
            Some((key, what)) => Err(BundleError::Document { path: path.to_owned(), key, what }),
            None => Ok(document),
        }
    }

    /// Serializes the document for a registry.
    pub fn to_text(&self) -> Result<Vec<u8>, BundleError> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// `PUBLISHER.NAME`.
    pub fn title(&self) -> String {
        format!("{}.{}", self.publisher, self.name)
    }

    /// Whether the name of a layer or artifact belongs to the publisher.
    pub fn owns(&self, name: &str) -> bool {
        let own = name.strip_prefix(&self.publisher).and_then(|rest| rest.strip_prefix('.'));
        own.is_some_and(|rest| validate::plain(rest).is_none())
    }

    /// The first error, with its key.
    fn fault(&self) -> Option<(String, String)> {
        if self.schema != SCHEMA {
            return Some(("schema".to_owned(), format!("unsupported schema {}: expected {SCHEMA}", self.schema)));
        }
        self.names().or_else(|| self.needs()).or_else(|| self.asked()).or_else(|| self.packed())
    }

    fn names(&self) -> Option<(String, String)> {
        let named = |key: &str, fault: Option<String>| Some((key.to_owned(), fault?));
        let description = validate::line(&self.description);
        let lists = [("os", &self.os), ("arch", &self.arch), ("kinds", &self.kinds), ("conflicts", &self.conflicts)];
        named("publisher", validate::label(&self.publisher))
            .or_else(|| named("name", validate::label(&self.name)))
            .or_else(|| named("description", description))
            .or_else(|| lists.iter().find_map(|(key, list)| named(key, validate::list(list, validate::plain))))
            .or_else(|| {
                lists[..2].iter().find_map(|(key, list)| named(key, list.is_empty().then(|| "is empty".to_owned())))
            })
            .or_else(|| named("arch", self.arch.iter().find_map(|arch| validate::arch(arch))))
            .or_else(|| named("provides", self.provides.keys().find_map(|name| validate::plain(name))))
            .or_else(|| named("state", validate::list(&self.state, validate::path)))
    }

    fn needs(&self) -> Option<(String, String)> {
        let counts = [
            ("requires", self.requires.len()),
            ("layers", self.layers.len()),
            ("provides", self.provides.len()),
            ("artifacts", self.artifacts.values().map(BTreeMap::len).sum()),
            ("evidence", self.evidence.len()),
        ];
        if let Some((key, _)) = counts.iter().find(|(_, count)| *count > MAX_ENTRIES) {
            return Some(((*key).to_owned(), format!("has more than {MAX_ENTRIES} entries")));
        }
        self.requires.iter().enumerate().find_map(|(index, need)| {
            let Need { layer, version, program, library, module } = need;
            let names: Vec<&String> = [layer, program, library, module].into_iter().flatten().collect();
            let what = match &names[..] {
                [name] if version.is_some() && layer.is_none() => {
                    Some(format!("{name:?} is not a layer: `version` only applies to layers"))
                }
                [name] => validate::plain_or_mixed(name),
                _ => Some("expected exactly one of `layer`, `program`, `library` and `module`".to_owned()),
            };
            Some((format!("requires/{index}"), what?))
        })
    }

    fn asked(&self) -> Option<(String, String)> {
        self.asks.lists().into_iter().find_map(|(key, list)| {
            let what = validate::list(list, |value| match key {
                "paths" if value == "/" => None,
                "paths" | "setuid" => validate::path(value),
                "commands" => validate::command(value),
                "ports" => validate::port(value),
                _ => validate::plain_or_mixed(value),
            });
            Some((format!("asks/{key}"), what?))
        })
    }

    /// Errors in the keys that `pack` writes.
    fn packed(&self) -> Option<(String, String)> {
        let foreign = |name: &String| {
            (!self.owns(name)).then(|| format!("{name:?} does not start with {:?}", format!("{}.", self.publisher)))
        };
        let place = |place: &String| {
            let known =
                place.rsplit_once('.').is_some_and(|(os, arch)| self.os.contains(os) && self.arch.contains(arch));
            (!known).then(|| format!("{place:?} does not match `os` and `arch`: expected OS.ARCH"))
        };
        let own = |key: &str, what: Option<String>| Some((key.to_owned(), what?));
        own("layers", self.layers.keys().find_map(foreign))
            .or_else(|| own("artifacts", self.artifacts.keys().find_map(place)))
            .or_else(|| own("artifacts", self.artifacts.values().flat_map(BTreeMap::keys).find_map(foreign)))
    }
}

/// JSON Schema of artifacts; manifests define the keys.
fn artifacts_form(_: &mut SchemaGenerator) -> Schema {
    let entry = json_schema!({"type": "object", "required": ["version", "url", "type", "digest", "size"]});
    let entries = json_schema!({"type": "object", "additionalProperties": entry});
    json_schema!({"type": "object", "additionalProperties": entries})
}

/// JSON Schema of evidence.
fn evidence_form(_: &mut SchemaGenerator) -> Schema {
    let entry = json_schema!({"type": "object", "required": ["url", "size"]});
    json_schema!({"type": "object", "additionalProperties": entry})
}
