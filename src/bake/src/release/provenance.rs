//! Provenance of an image: SLSA v1 in an in-toto Statement v1, the document `<kind>.<os>.<arch>.provenance.json` next
//! to it.
//!
//! Created from the record of inputs, the manifest, the digests of all outputs and the name of a builder. It contains
//! no time, host or invocation number: the same inputs give the same text, except for the builder's name. So a consumer
//! need not trust a given statement: it creates the expected one and compares.
//!
//! Specifications: in-toto attestation framework, `spec/v1`; SLSA provenance v1. A raw image is identified by the
//! algorithm `fsverity_sha256`, its fs-verity digest as in [`Checksum::Verity`]; every other subject by `sha256`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::incremental::build_inputs::BuildInputs;
use crate::incremental::checksums::Checksum;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_manifest::Manifest;
use vmbake_pin::prove::LOCAL;

pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
pub const PREDICATE_TYPE: &str = "https://slsa.dev/provenance/v1";
/// `docs/release.md` documents `externalParameters` and `resolvedDependencies`.
const BUILD_TYPE: &str = "urn:vmbake:bake:v1";
/// The default builder ID.
const BUILDER: &str = "urn:vmbake:builder";
/// Maximum length of a builder ID.
const MAX_BUILDER: usize = 1024;

/// The builder: a URI that is meaningful to verifiers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BuilderId(String);

/// An invalid URI.
#[derive(Debug, thiserror::Error)]
#[error("invalid builder ID {0:?}: expected a URI such as https://example.org/builder")]
pub struct InvalidBuilderId(String);

impl Hint for InvalidBuilderId {}

impl Default for BuilderId {
    fn default() -> Self {
        Self(BUILDER.to_owned())
    }
}

impl FromStr for BuilderId {
    type Err = InvalidBuilderId;

    /// A scheme, a colon and at least one more character of those in RFC 3986.
    fn from_str(text: &str) -> Result<Self, InvalidBuilderId> {
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char))
        };
        let is_rest = |rest: &str| {
            let allowed = |char: char| char.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(char);
            !rest.is_empty() && rest.chars().all(allowed)
        };
        match text.split_once(':') {
            Some((scheme, rest)) if text.len() <= MAX_BUILDER && is_scheme(scheme) && is_rest(rest) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(InvalidBuilderId(text.chars().take(MAX_BUILDER).collect())),
        }
    }
}

impl fmt::Display for BuilderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Serialize)]
struct Statement<'a> {
    #[serde(rename = "_type")]
    kind: &'static str,
    subject: Vec<Descriptor>,
    #[serde(rename = "predicateType")]
    predicate_type: &'static str,
    predicate: Predicate<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Predicate<'a> {
    build_definition: BuildDefinition<'a>,
    run_details: RunDetails<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BuildDefinition<'a> {
    build_type: &'static str,
    external_parameters: Parameters<'a>,
    resolved_dependencies: Vec<Descriptor>,
}

/// The request, with the names of the record of inputs.
#[derive(Serialize)]
struct Parameters<'a> {
    kind: &'a str,
    os: &'a str,
    arch: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    formats: Vec<&'a str>,
    #[serde(skip_serializing_if = "Qcow2Compression::is_usual")]
    compression: Qcow2Compression,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_date_epoch: Option<u32>,
}

#[derive(Serialize)]
struct RunDetails<'a> {
    builder: Builder<'a>,
}

#[derive(Serialize)]
struct Builder<'a> {
    id: &'a str,
    version: BTreeMap<&'static str, &'a str>,
}

/// `ResourceDescriptor` of in-toto.
#[derive(Serialize)]
struct Descriptor {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    digest: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, String>,
}

impl Descriptor {
    fn new(name: impl Into<String>, digest: &Digest) -> Self {
        let digest = [(digest.algorithm(), digest.hex())].into();
        Self { name: name.into(), uri: None, digest, annotations: BTreeMap::new() }
    }

    fn at(self, uri: Option<&str>) -> Self {
        Self { uri: uri.map(str::to_owned), ..self }
    }

    fn noting(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.annotations.insert(key, value.into());
        self
    }

    fn of_output((name, checksum): (&String, &Checksum)) -> Self {
        match checksum {
            Checksum::Bytes(digest) => Self::new(name, digest),
            Checksum::Verity(digest) => Self { digest: [(VERITY, digest.hex())].into(), ..Self::new(name, digest) },
        }
    }
}

/// Algorithm of the digests of raw images.
const VERITY: &str = "fsverity_sha256";

/// The statement about `outputs`, by file name, made of `inputs` with `manifest`.
pub fn statement(
    inputs: &BuildInputs,
    manifest: &Manifest,
    outputs: &BTreeMap<String, Checksum>,
    builder: &BuilderId,
) -> Result<Vec<u8>, serde_json::Error> {
    let BuildInputs { partition, size, compression, source_date_epoch, .. } = *inputs;
    let external_parameters = Parameters {
        kind: &inputs.kind,
        os: &inputs.os,
        arch: &inputs.arch,
        partition,
        size,
        formats: inputs.formats.iter().map(String::as_str).collect(),
        compression,
        source_date_epoch,
    };
    let build_definition = BuildDefinition {
        build_type: BUILD_TYPE,
        external_parameters,
        resolved_dependencies: dependencies(inputs, manifest),
    };
    let version = [("vmbake", inputs.program.version.as_str())].into();
    let run_details = RunDetails { builder: Builder { id: &builder.0, version } };
    let mut text = serde_json::to_vec_pretty(&Statement {
        kind: STATEMENT_TYPE,
        subject: outputs.iter().map(Descriptor::of_output).collect(),
        predicate_type: PREDICATE_TYPE,
        predicate: Predicate { build_definition, run_details },
    })?;
    text.push(b'\n');
    Ok(text)
}

/// All materials of the image: those in the record of inputs, then those in the manifest.
fn dependencies(inputs: &BuildInputs, manifest: &Manifest) -> Vec<Descriptor> {
    let content = manifest.content();
    let pinned = content.os.image.as_ref().filter(|image| Some(image.digest) == inputs.base);
    // The path of a local file is meaningless to others.
    let url = pinned.map(|image| image.url.as_str()).filter(|url| !url.starts_with(LOCAL));
    let mut all = vec![Descriptor::new("program", &inputs.program.digest).noting("version", &inputs.program.version)];
    all.extend(inputs.base.iter().map(|base| Descriptor::new("base", base).at(url)));
    all.extend([Descriptor::new("manifest", &inputs.manifest), Descriptor::new("sources", &inputs.sources)]);
    all.extend(inputs.firstboot.as_ref().map(|digest| Descriptor::new("firstboot", digest)));
    all.extend(inputs.trust.iter().map(|(name, digest)| Descriptor::new(format!("trust/{name}"), digest)));
    all.extend(inputs.layers.iter().map(|layer| {
        Descriptor::new(format!("layer/{}", layer.name), &layer.digest).noting("version", &layer.version)
    }));
    all.extend(content.bundles.iter().map(|(name, bundle)| {
        let reference = inputs.bundles.get(name).map(String::as_str);
        let found = Descriptor::new(format!("bundle/{name}"), &bundle.digest).at(reference);
        let found = found.noting("version", &bundle.version).noting("publisher", &bundle.publisher);
        found.noting("signer", &bundle.signer)
    }));
    all.extend(content.dependencies.iter().map(|(name, entry)| {
        let url = Some(entry.url.as_str()).filter(|url| !url.starts_with(LOCAL));
        let found = Descriptor::new(format!("artifact/{name}"), &entry.digest).at(url);
        found.noting("version", &entry.version)
    }));
    all.extend(content.images.iter().map(|image| {
        let found = Descriptor::new(format!("image/{}", image.image), &image.digest);
        found.noting("index", image.index.to_string()).noting("platform", &image.platform)
    }));
    all
}

/// The builder in a statement.
pub fn builder(statement: &Value) -> Option<BuilderId> {
    statement.pointer("/predicate/runDetails/builder/id")?.as_str()?.parse().ok()
}

/// The first difference between two statements, as a JSON pointer with the `found` and the `expected` value.
pub fn difference(found: &Value, expected: &Value) -> Option<StatementDifference> {
    let none = Value::Null;
    let (pointer, found, expected) = match (found, expected) {
        _ if found == expected => return None,
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            let at = |map: &'_ Map<String, Value>, key| map.get(key).cloned().unwrap_or_default();
            let key = keys.into_iter().find(|key| one.get(*key) != other.get(*key))?;
            (key.clone(), at(one, key), at(other, key))
        }
        (Value::Array(one), Value::Array(other)) => {
            let len = one.len().max(other.len());
            let index = (0..len).find(|index| one.get(*index) != other.get(*index))?;
            let at = |list: &[Value]| list.get(index).unwrap_or(&none).clone();
            (label(at(one), at(other), index), at(one), at(other))
        }
        _ => {
            return Some(StatementDifference {
                pointer: String::new(),
                found: short(found),
                expected: short(expected),
            });
        }
    };
    let inner = difference(&found, &expected)?;
    Some(StatementDifference { pointer: format!("/{pointer}{}", inner.pointer), ..inner })
}

/// A difference between two statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementDifference {
    /// JSON pointer; entries of a list are identified by name.
    pub pointer: String,
    pub found: String,
    pub expected: String,
}

/// The name that both entries of a list have, otherwise their index.
fn label(one: Value, other: Value, index: usize) -> String {
    let name = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    match (name(&one), name(&other)) {
        (Some(one), Some(other)) if one == other => one,
        _ => index.to_string(),
    }
}

/// A value for a message.
fn short(value: &Value) -> String {
    const MOST: usize = 120;
    let text = match value {
        Value::Null => return "nothing".to_owned(),
        Value::Object(map) => match map.get("name").and_then(Value::as_str) {
            Some(name) => format!("{name:?}"),
            None => value.to_string(),
        },
        other => other.to_string(),
    };
    if text.chars().count() > MOST { text.chars().take(MOST).chain("...".chars()).collect() } else { text }
}
