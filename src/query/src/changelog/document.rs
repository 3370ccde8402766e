//! Reads SBOMs: an SPDX document written by vmbake in, its components out.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use super::ChangelogError;
use vmbake_common::message;

use vmbake_common::input;

/// Maximum length of a document, in bytes; that of a node has 1 MB.
const MAX_DOCUMENT: u64 = 64 << 20;

/// Prefixes of identifiers, as [`sbom`](crate::sbom) creates them.
const IMAGE: &str = "SPDXRef-Image";
const BASE: &str = "SPDXRef-Base";
const BUNDLE: &str = "SPDXRef-Bundle-";
const PROGRAMS: [&str; 2] = ["SPDXRef-Package-upstream-", "SPDXRef-Package-oci-"];

/// Parts of a release that can be compared without its image.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) name: String,
    pub(super) version: Option<String>,
    /// Versions by name, with the architecture if it differs from that of most packages.
    pub(super) packages: BTreeMap<String, String>,
    /// Versions and digests of artifacts from other upstreams and of the base image.
    pub(super) programs: BTreeMap<String, String>,
    pub(super) bundles: BTreeMap<String, String>,
}

/// The required parts of the document.
#[derive(Deserialize)]
struct Document {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    #[serde(rename = "SPDXID")]
    spdx_id: String,
    name: String,
    version_info: Option<String>,
    /// Set only for packages of the distribution.
    source_info: Option<String>,
    #[serde(default)]
    checksums: Vec<Checksum>,
    #[serde(default)]
    external_refs: Vec<ExternalRef>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Checksum {
    checksum_value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExternalRef {
    reference_locator: String,
}

impl Package {
    /// The architecture in the package URL.
    fn arch(&self) -> &str {
        let purl = self.external_refs.first().map(|found| found.reference_locator.as_str()).unwrap_or_default();
        let qualifiers = purl.split_once('?').map_or("", |(_, qualifiers)| qualifiers);
        qualifiers.split('&').find_map(|one| one.strip_prefix("arch=")).unwrap_or_default()
    }

    fn version(&self) -> String {
        let version = self.version_info.clone().unwrap_or_else(|| "unknown".to_owned());
        match self.checksums.first().filter(|_| self.source_info.is_none()) {
            Some(checksum) => format!("{version} ({})", checksum.checksum_value.get(..12).unwrap_or_default()),
            None => version,
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Parts, ChangelogError> {
    let failed = |source| ChangelogError::Read { path: path.to_owned(), source };
    let mut text = Vec::new();
    input::open(path).map_err(failed)?.take(MAX_DOCUMENT + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_DOCUMENT {
        return Err(ChangelogError::Message(message!(
            "{}: larger than {} bytes, the limit for an SBOM",
            path.display(),
            MAX_DOCUMENT
        )));
    }
    parse(path, &text)
}

/// Parses a document; `path` is for messages.
pub(super) fn parse(path: &Path, text: &[u8]) -> Result<Parts, ChangelogError> {
    let document: Document =
        serde_json::from_slice(text).map_err(|source| ChangelogError::Document { path: path.to_owned(), source })?;
    let mut parts = Parts::default();
    let native = native(&document.packages);
    for package in &document.packages {
        let version = package.version();
        if package.source_info.is_some() {
            let name = match package.arch() {
                arch if arch.is_empty() || arch == "all" || arch == native => package.name.clone(),
                arch => format!("{}:{arch}", package.name),
            };
            parts.packages.insert(name, version);
        } else if package.spdx_id == IMAGE {
            (parts.name, parts.version) = (package.name.clone(), package.version_info.clone());
        } else if package.spdx_id == BASE || PROGRAMS.iter().any(|start| package.spdx_id.starts_with(start)) {
            parts.programs.insert(package.name.clone(), version);
        } else if package.spdx_id.starts_with(BUNDLE) {
            parts.bundles.insert(package.name.clone(), version);
        }
    }
    Ok(parts)
}

/// The architecture that most packages have.
fn native(packages: &[Package]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for package in packages.iter().filter(|package| package.source_info.is_some() && package.arch() != "all") {
        *counts.entry(package.arch()).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(arch, _)| arch.to_owned()).unwrap_or_default()
}
