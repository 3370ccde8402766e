//! `bundle.json`, in schema 1: its text enters, a [`BundleDocument`] leaves whose names, versions and paths have the right form.
//!
//! Keys that are unknown or there twice are refused, and so is more of anything than the limits here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::error::BundleError;
use super::validate;
use crate::version::{Version, VersionDemand};
use vmbake_common::address;
use vmbake_common::digest::Digest;
use vmbake_manifest::{Dependency, Document};
use vmbake_proof::sigstore::json;

/// The form that is read and written.
pub const SCHEMA: u32 = 1;
/// Longest document that is read, in bytes: a thousand artifacts take half of it.
pub const MAX_DOCUMENT: u64 = 1 << 20;
/// Most entries of a list or an object.
const MAX_ENTRIES: usize = 1024;

/// What a bundle is: who publishes it, for which images, with which layers and artifacts, and what it asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "bundle.json")]
pub struct BundleDocument {
    /// Form of this document: 1.
    pub schema: u32,
    /// Who publishes it: small letters, digits and `-`. The names of its layers and artifacts begin with this and a dot.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), length(max = 63))]
    pub publisher: String,
    /// Its name: small letters, digits and `-`.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), length(max = 63))]
    pub name: String,
    /// Its version, such as `1.35.5+rke2r1`.
    pub version: Version,
    /// What it is for, in one sentence.
    pub description: String,
    /// Operating systems of the images that it is for, such as `debian-13`.
    #[schemars(length(min = 1))]
    pub os: BTreeSet<String>,
    /// Architectures, as Debian names them.
    #[schemars(length(min = 1))]
    pub arch: BTreeSet<String>,
    /// Kinds of images that it is for; all without any.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub kinds: BTreeSet<String>,
    /// Versions of vmbake that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmbake: Option<VersionDemand>,
    /// Its layers with their digests, as `vmbake layer list` knows them. `vmbake bundle pack` writes them.
    #[serde(default)]
    pub layers: BTreeMap<String, Digest>,
    /// What an image must have before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Need>,
    /// What it brings that others may conflict with or ask for, with versions, such as `kubernetes`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provides: BTreeMap<String, Version>,
    /// What no other bundle of the image may provide.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub conflicts: BTreeSet<String>,
    /// How it takes the place of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// Absolute paths of what a machine keeps when its image is replaced by one with another version.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub state: BTreeSet<String>,
    /// What its layers may do.
    pub asks: Permissions,
    /// Artifacts by `OS.ARCH`, then by name, as manifests have them. `vmbake bundle pack` writes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "artifacts_form")]
    pub artifacts: BTreeMap<String, BTreeMap<String, Dependency>>,
    /// The documents that proofs of the artifacts rest on. `vmbake bundle pack` writes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "evidence_form")]
    pub evidence: BTreeMap<Digest, Document>,
}

/// Something that an image must have; exactly one of `layer`, `program`, `library` and `module`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// A layer of vmbake or of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// Versions of that layer.
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

/// How a bundle takes the place of earlier versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// Versions that it can take the place of.
    pub from: VersionDemand,
}

/// What the layers of a bundle do, or what a publisher may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Absolute paths; everything below each is meant as well.
    pub paths: BTreeSet<String>,
    /// Absolute paths of files that have set-uid, set-gid or sticky bits, or file capabilities.
    pub setuid: BTreeSet<String>,
    /// Users and groups that are made, by name.
    pub users: BTreeSet<String>,
    /// Packages whose maintainer scripts the layers answer for.
    pub scripts: BTreeSet<String>,
    /// Absolute paths of programs that run on the first boot.
    pub commands: BTreeSet<String>,
    /// Ports that its services listen on, such as `6443/tcp`.
    pub ports: BTreeSet<String>,
}

impl Permissions {
    /// Its lists, each with its key.
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

    /// What these ask for beyond `granted`, as pairs of a key and a value. Paths are granted by a path that they are below.
    pub fn beyond<'a>(&'a self, granted: &Self) -> Vec<(&'static str, &'a str)> {
        let lists = self.lists().into_iter().zip(granted.lists());
        let beyond = lists.flat_map(|((key, asked), (_, granted))| {
            let is_granted = |value: &str| match key {
                "paths" => granted.iter().any(|path| validate::is_below(value, path)),
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
    /// What is needed, in words.
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

    /// The text that stands in a registry.
    pub fn to_text(&self) -> Result<Vec<u8>, BundleError> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// `PUBLISHER.NAME`.
    pub fn title(&self) -> String {
        format!("{}.{}", self.publisher, self.name)
    }

    /// Whether a name of a layer or an artifact is one of the publisher's.
    pub fn owns(&self, name: &str) -> bool {
        let own = name.strip_prefix(&self.publisher).and_then(|rest| rest.strip_prefix('.'));
        own.is_some_and(|rest| validate::plain(rest).is_none())
    }

    /// The first thing that is wrong, with its key.
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
                "paths" | "setuid" | "commands" => validate::path(value),
                "ports" => validate::port(value),
                _ => validate::plain_or_mixed(value),
            });
            Some((format!("asks/{key}"), what?))
        })
    }

    /// What `pack` writes.
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

/// The form of artifacts, for editors: manifests say what each key means.
fn artifacts_form(_: &mut SchemaGenerator) -> Schema {
    let entry = json_schema!({"type": "object", "required": ["version", "url", "type", "digest", "size"]});
    let entries = json_schema!({"type": "object", "additionalProperties": entry});
    json_schema!({"type": "object", "additionalProperties": entries})
}

/// The form of evidence, for editors.
fn evidence_form(_: &mut SchemaGenerator) -> Schema {
    let entry = json_schema!({"type": "object", "required": ["url", "size"]});
    json_schema!({"type": "object", "additionalProperties": entry})
}
