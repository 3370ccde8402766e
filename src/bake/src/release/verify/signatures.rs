//! Signatures: checksum lists are signed as files, the statement about each image in an envelope.
//!
//! A signed statement may differ from the one next to the image: another builder may have signed the same with another
//! name, and cosign names a single subject. So its predicate must match the expected one, and its subjects must be a
//! subset of the expected ones; the lists, which must be signed as well, contain all.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::statements::{Documented, differs};
use super::{CheckState, Verification};
use crate::incremental::published::Sidecar;
use crate::release::provenance::{self, PREDICATE_TYPE};
use crate::release::sign::BUNDLE;
use crate::release::sums::SumsKind;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_proof::sigstore::{self, BundlePolicy, MAX_BUNDLES, Signer, SigstoreError, SigstoreRoot, json};

/// A trusted signer.
#[derive(Clone, Debug)]
pub struct NamedSigner {
    /// Its name in messages.
    pub name: String,
    pub signer: Signer,
}

/// A threshold of signatures by these signers.
#[derive(Clone, Debug)]
pub struct SignatureDemand {
    /// The minimum number of signatures.
    pub require: usize,
    pub of: Vec<NamedSigner>,
}

/// A document that must be signed.
struct Document<'a> {
    file: String,
    /// Prefix of the names of its bundles.
    stem: String,
    content: Content<'a>,
}

enum Content<'a> {
    List(&'a [u8]),
    Statement(&'a Documented),
}

impl Verification<'_> {
    /// Checks the signatures over the lists and over the statements about images.
    pub(super) fn signatures(&mut self, releases: &[Option<Documented>]) {
        let lists = self.lists.clone();
        let list = |kind: SumsKind| {
            let file = kind.file_name();
            let content = Content::List(&lists.get(file)?.text);
            Some(Document { file: file.to_owned(), stem: file.to_owned(), content })
        };
        let documents: Vec<_> =
            SumsKind::ALL.into_iter().filter_map(list).chain(releases.iter().flatten().map(Document::of)).collect();
        for document in &documents {
            let (state, said) = self.signature(document);
            self.report.add(state, &document.file, "signature", said);
        }
    }

    fn signature(&self, document: &Document<'_>) -> (CheckState, String) {
        let bundles = bundles_of(self.request.folder, &document.stem);
        let demands = &self.request.signatures;
        match (demands.is_empty(), bundles.is_empty()) {
            (true, true) => return (CheckState::NotAsked, "not signed".to_owned()),
            (true, false) => {
                return (CheckState::NotAsked, "signed; use --key or a policy to require a signer".to_owned());
            }
            (false, true) => return (CheckState::Failed, "not signed".to_owned()),
            (false, false) => {}
        }
        let mut by = BTreeSet::new();
        for SignatureDemand { require, of } in demands {
            let results: Vec<_> =
                of.iter().map(|signer| (signer, self.signed_by(document, &bundles, signer))).collect();
            let held = results.iter().filter(|(_, result)| result.is_ok());
            let count = held.clone().count();
            by.extend(held.map(|(signer, _)| signer.name.clone()));
            if count < *require {
                let why = results.iter().find_map(|(signer, result)| Some((signer, result.as_ref().err()?)));
                let why = why.map(|(signer, why)| format!(": {}: {why}", signer.name)).unwrap_or_default();
                return (CheckState::Failed, format!("signed by {count} of the required {require} signers{why}"));
            }
        }
        (CheckState::Ok, format!("by {}", by.into_iter().collect::<Vec<_>>().join(", ")))
    }

    /// Whether one of the bundles is by this signer; otherwise the reason.
    fn signed_by(&self, document: &Document<'_>, bundles: &[String], signer: &NamedSigner) -> Result<(), String> {
        any_holds(self.request.folder, bundles, |bundle| self.check(document, bundle, &signer.signer))
    }

    fn check(&self, document: &Document<'_>, bundle: &[u8], signer: &Signer) -> Result<(), Refusal> {
        let (now, root) = (self.request.now, self.request.root);
        let documented = match document.content {
            Content::List(text) => return check_bytes(text, bundle, signer, root, now),
            Content::Statement(documented) => documented,
        };
        let predicate_type = Some(PREDICATE_TYPE);
        let policy = BundlePolicy { signer: signer.clone(), predicate_type, subject_name: None, now };
        let mut refused = Refusal::new("the statement is about other files".to_owned());
        for digest in documented.digests() {
            match sigstore::verify(bundle, &[digest], &policy, root) {
                Ok(proven) => {
                    let payload = proven.statement.unwrap_or_default();
                    return self.payload(&payload, documented).map_err(Refusal::new);
                }
                Err(SigstoreError::OtherFile { .. }) => {}
                Err(error) => refused = Refusal::of(&error),
            }
        }
        Err(refused)
    }

    /// Checks the contents of a signed statement.
    fn payload(&self, payload: &[u8], documented: &Documented) -> Result<(), String> {
        let mut signed = json::parse(payload).map_err(|error| error.to_string())?;
        // cosign writes empty values explicitly.
        if let Some(details) = signed.pointer_mut("/predicate/runDetails").and_then(Value::as_object_mut)
            && details.get("metadata").is_some_and(|metadata| *metadata == Value::Object(Map::new()))
        {
            details.remove("metadata");
        }
        let builder = provenance::builder(&signed).ok_or("the statement has no valid builder URI")?;
        if let Some(said) = self.request.policy.refuses_builder(&builder) {
            return Err(said);
        }
        let mut expected = documented.statement(&builder).map_err(|error| error.to_string())?;
        if is_part(&signed, &expected) {
            // Subsets of the subjects and other versions of the statement format are accepted.
            for key in ["subject", "_type"] {
                expected[key] = signed[key].clone();
            }
        }
        differs(&signed, &expected).map_or(Ok(()), |said| Err(format!("unexpected statement: {said}")))
    }
}

/// Whether `signer` has signed `content` itself, the document at `path`, in a bundle next to it; otherwise the reason.
pub fn document_signed(
    path: &Path,
    content: &[u8],
    signer: &NamedSigner,
    root: &SigstoreRoot,
    now: Timestamp,
) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let bundles = bundles_of(folder, &path.file_name().unwrap_or_default().to_string_lossy());
    if bundles.is_empty() {
        return Err("no signature next to the document".to_owned());
    }
    any_holds(folder, &bundles, |bundle| check_bytes(content, bundle, &signer.signer, root, now))
}

/// The bundles of a document, by name.
fn bundles_of(folder: &Path, stem: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let is_label = |label: &str| label.is_empty() || (label.starts_with('.') && !label[1..].contains('.'));
    let is_bundle = |file: &String| {
        let label = file.strip_prefix(stem).and_then(|rest| rest.strip_suffix(BUNDLE));
        label.is_some_and(is_label)
    };
    let files = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut files: Vec<String> = files.filter(is_bundle).collect();
    files.sort();
    files
}

/// Whether one of the bundles is valid; otherwise the reason for the best match.
fn any_holds(folder: &Path, bundles: &[String], check: impl Fn(&[u8]) -> Result<(), Refusal>) -> Result<(), String> {
    let mut closest: Option<Refusal> = None;
    for file in bundles {
        let bundle = crate::release::read(&folder.join(file), MAX_BUNDLES);
        match bundle.map_err(|error| Refusal::new(error.to_string())).and_then(|bundle| check(&bundle)) {
            Ok(()) => return Ok(()),
            // A bundle by another signer says nothing about this one.
            Err(Refusal { is_of_another: true, .. }) if closest.is_some() => {}
            Err(refusal) => {
                closest = Some(Refusal { said: format!("{file}: {}", refusal.said), ..refusal });
            }
        }
    }
    Err(closest.map(|refusal| refusal.said).unwrap_or_default())
}

/// Whether a bundle is a signature by this signer over `content` itself, not over a statement about it.
fn check_bytes(
    content: &[u8],
    bundle: &[u8],
    signer: &Signer,
    root: &SigstoreRoot,
    now: Timestamp,
) -> Result<(), Refusal> {
    let policy = BundlePolicy { signer: signer.clone(), predicate_type: None, subject_name: None, now };
    match sigstore::verify(bundle, &[Digest::of(content)], &policy, root) {
        Ok(proven) if proven.statement.is_none() => Ok(()),
        Ok(_) => Err(Refusal::new("the bundle signs a statement, not the file itself".to_owned())),
        Err(error) => Err(Refusal::of(&error)),
    }
}

/// Why a bundle was rejected.
struct Refusal {
    said: String,
    /// Whether it may be by another signer.
    is_of_another: bool,
}

impl Refusal {
    fn new(said: String) -> Self {
        Self { said, is_of_another: false }
    }

    fn of(error: &SigstoreError) -> Self {
        let is_of_another = matches!(error, SigstoreError::OtherKey { .. } | SigstoreError::Identity { .. });
        Self { said: escape::chain(error), is_of_another }
    }
}

impl<'a> Document<'a> {
    /// The statement about an image.
    fn of(documented: &'a Documented) -> Self {
        let file = Sidecar::Provenance.file_name(&documented.name);
        let stem = file.trim_end_matches(".json").to_owned();
        Self { file, stem, content: Content::Statement(documented) }
    }
}

/// Whether the subjects of a statement are a subset of the expected ones, by their digests.
fn is_part(signed: &Value, expected: &Value) -> bool {
    let digests = |statement: &Value| -> Vec<Value> {
        statement["subject"].as_array().into_iter().flatten().map(|subject| subject["digest"].clone()).collect()
    };
    let (signed, expected) = (digests(signed), digests(expected));
    !signed.is_empty() && signed.iter().all(|digest| expected.contains(digest))
}
