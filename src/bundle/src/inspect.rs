//! `vmbake bundle inspect`: the contents of a bundle in, a summary as JSON and text out.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;

use super::contents::BundleContents;
use super::document::{BundleDocument, Need, Permissions};
use super::packed::PackedContents;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::progress::human_bytes;

/// What there is to know of a bundle.
#[derive(Clone, Debug, Serialize)]
pub struct BundleSummary {
    /// Its document.
    #[serde(flatten)]
    pub document: BundleDocument,
    /// Digest of its index, if it is packed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Bytes of its artifacts and of what proves them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Number of attached signatures, which are not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signatures: Option<usize>,
    /// What a machine can be told on its first boot.
    pub variables: Vec<BundleVariable>,
}

/// A variable of the first boot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct BundleVariable {
    pub name: String,
    pub layer: String,
    /// What it is without a value.
    pub default: String,
    /// Whether a machine must be given a value.
    pub required: bool,
}

/// The variables of a bundle, by name.
pub fn variables(contents: &BundleContents) -> Vec<BundleVariable> {
    let mut all = BTreeSet::new();
    for layer in &contents.own {
        for (name, variable) in layer.schema.first_boot.iter().flat_map(|plan| plan.variables.iter()) {
            all.insert(BundleVariable {
                name: name.clone(),
                layer: layer.schema.name.clone(),
                default: variable.default.clone(),
                required: variable.required,
            });
        }
    }
    all.into_iter().collect()
}

impl BundleSummary {
    /// The summary of a bundle in its working folder.
    pub fn of_folder(contents: &BundleContents) -> Self {
        let mut document = contents.document.clone();
        document.layers = contents.own.iter().map(|layer| (layer.schema.name.clone(), layer.digest)).collect();
        Self { document, digest: None, size: None, signatures: None, variables: variables(contents) }
    }

    /// The summary of a packed one, with that number of signatures.
    pub fn of_packed(packed: &PackedContents, signatures: usize) -> Self {
        Self {
            document: packed.contents.document.clone(),
            digest: Some(packed.digest),
            size: Some(packed.size()),
            signatures: Some(signatures),
            variables: variables(&packed.contents),
        }
    }

    /// Lines for people.
    pub fn to_text(&self) -> String {
        let BundleDocument { description, os, arch, kinds, vmbake, layers, requires, provides, .. } = &self.document;
        let mut lines = Lines::default();
        lines.add("bundle", &format!("{} {}: {description}", self.document.title(), self.document.version));
        lines.add("digest", &self.digest.map(|digest| digest.to_string()).unwrap_or_default());
        lines.add("for", &[words(os), words(arch), words(kinds)].concat().join(", "));
        lines.add("vmbake", &vmbake.as_ref().map(ToString::to_string).unwrap_or_default());
        lines.each("requires", requires.iter().map(Need::describe));
        lines.each("provides", provides.iter().map(|(name, version)| format!("{name} {version}")));
        lines.add("conflicts", &words(&self.document.conflicts).join(", "));
        let upgrade = self.document.upgrade.as_ref();
        lines.add("replaces", &upgrade.map(|upgrade| upgrade.from.to_string()).unwrap_or_default());
        lines.add("keeps", &words(&self.document.state).join(", "));
        lines.each("layer", layers.iter().map(|(name, digest)| format!("{name} {digest}")));
        self.asks(&mut lines, &self.document.asks);
        let artifacts = self.document.artifacts.iter().flat_map(|(place, all)| all.iter().map(move |one| (place, one)));
        lines.each(
            "artifact",
            artifacts.map(|(place, (name, entry))| {
                let proof =
                    entry.proof.as_ref().map_or_else(|| "not proven".to_owned(), |proof| format!("proven by {proof}"));
                format!("{name} {}, {place}, {}, {}, {proof}", entry.version, human_bytes(entry.size), entry.url)
            }),
        );
        lines.each(
            "variable",
            self.variables.iter().map(|one| match (one.required, one.default.as_str()) {
                (true, _) => format!("{}, required", one.name),
                (false, "") => format!("{}, empty by default", one.name),
                (false, default) => format!("{}, default {default:?}", one.name),
            }),
        );
        lines.add("size", &self.size.map(human_bytes).unwrap_or_default());
        lines.add(
            "signed",
            &match self.signatures {
                None => String::new(),
                Some(0) => "no".to_owned(),
                Some(_) => "yes, not verified: use `vmbake bundle verify`".to_owned(),
            },
        );
        lines.into_text()
    }

    fn asks(&self, lines: &mut Lines, asks: &Permissions) {
        for (key, list) in asks.lists() {
            lines.each("asks", (!list.is_empty()).then(|| format!("{key}: {}", words(list).join(", "))));
        }
    }
}

fn words(list: &BTreeSet<String>) -> Vec<String> {
    list.iter().cloned().collect()
}

/// Lines with a word in front.
#[derive(Default)]
pub(super) struct Lines(String);

impl Lines {
    /// Adds a line, unless there is nothing to say.
    pub(super) fn add(&mut self, what: &str, said: &str) {
        if !said.is_empty() {
            // Writing to a text cannot fail.
            let _ = writeln!(self.0, "{what:<10}{}", escape::line(said));
        }
    }

    pub(super) fn each(&mut self, what: &str, all: impl IntoIterator<Item = String>) {
        all.into_iter().for_each(|said| self.add(what, &said));
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}
