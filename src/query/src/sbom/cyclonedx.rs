//! CycloneDX 1.6 as JSON (bom-1.6.schema.json): an inventory in, a document out.
//!
//! Keys are named as in the standard; Trivy identifies source packages by properties with the prefix `aquasecurity:trivy:`. The texts of
//! licenses unknown to SPDX are only in the SPDX document.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::files::HashedFile;
use super::identity;
use super::inventory::{Element, IMAGE, Inventory, Relationship, Role};
use vmbake_common::digest::Digest;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    bom_format: &'static str,
    spec_version: &'static str,
    serial_number: String,
    version: u32,
    metadata: Metadata<'a>,
    components: Vec<Component<'a>>,
    dependencies: Vec<Dependency<'a>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    timestamp: String,
    tools: Tools,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<Component<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    properties: Vec<Property<'a>>,
}

#[derive(Serialize)]
struct Tools {
    components: [Tool; 1],
}

#[derive(Serialize)]
struct Tool {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Component<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "bom-ref")]
    bom_ref: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supplier: Option<Organization<'a>>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hashes: Vec<Hash>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    licenses: Vec<Licence<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purl: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pedigree: Option<Pedigree<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    external_references: Vec<ExternalReference<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    properties: Vec<Property<'a>>,
}

#[derive(Serialize)]
struct Organization<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contact: Vec<Contact<'a>>,
}

#[derive(Serialize)]
struct Contact<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Hash {
    alg: &'static str,
    content: String,
}

#[derive(Serialize)]
struct Licence<'a> {
    expression: &'a str,
    acknowledgement: &'static str,
}

#[derive(Serialize)]
struct Pedigree<'a> {
    ancestors: Vec<Component<'a>>,
}

#[derive(Serialize)]
struct ExternalReference<'a> {
    url: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Property<'a> {
    name: String,
    value: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dependency<'a> {
    #[serde(rename = "ref")]
    reference: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<&'a str>,
}

/// The document of an inventory, with that UUID as its serial number.
pub(super) fn document<'a>(inventory: &'a Inventory, uuid: &str) -> Document<'a> {
    let parts = inventory.elements.iter().skip(IMAGE + 1).filter(|element| element.role != Role::Base);
    let files = inventory.files.iter().enumerate().map(|(number, file)| of_file(number, file));
    let notes = inventory.notes.iter().map(|note| Property { name: "vmbake:note".to_owned(), value: note });
    Document {
        schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
        bom_format: "CycloneDX",
        spec_version: "1.6",
        serial_number: format!("urn:uuid:{uuid}"),
        version: 1,
        metadata: Metadata {
            timestamp: identity::time(inventory.created),
            tools: Tools {
                components: [Tool { kind: "application", name: "vmbake", version: env!("CARGO_PKG_VERSION") }],
            },
            component: inventory
                .elements
                .first()
                .map(|image| Component { pedigree: pedigree(inventory), ..component(image) }),
            properties: notes.collect(),
        },
        components: parts.map(component).chain(files).collect(),
        dependencies: dependencies(inventory),
    }
}

fn pedigree(inventory: &Inventory) -> Option<Pedigree<'_>> {
    let bases = inventory.elements.iter().filter(|element| element.role == Role::Base);
    let ancestors: Vec<_> = bases.map(component).collect();
    (!ancestors.is_empty()).then_some(Pedigree { ancestors })
}

fn component(element: &Element) -> Component<'_> {
    let supplier = element.supplier.as_ref().map(|supplier| Organization {
        name: &supplier.name,
        contact: supplier.email.iter().map(|email| Contact { name: email }).collect(),
    });
    let licence = element.licence.as_deref();
    let url = element.url.as_deref();
    Component {
        kind: kind(element.role),
        bom_ref: Cow::Borrowed(&element.id),
        supplier,
        name: &element.name,
        version: element.version.as_deref(),
        hashes: element.digest.iter().map(hash).collect(),
        licenses: licence.map(|expression| Licence { expression, acknowledgement: "declared" }).into_iter().collect(),
        purl: element.purl.as_deref(),
        pedigree: None,
        external_references: url.map(|url| ExternalReference { url, kind: "distribution" }).into_iter().collect(),
        properties: properties(element),
    }
}

fn of_file(number: usize, file: &HashedFile) -> Component<'_> {
    let sha1 = Hash { alg: "SHA-1", content: file.sha1.clone() };
    Component {
        kind: "file",
        bom_ref: Cow::Owned(format!("File-{}", number + 1)),
        supplier: None,
        name: &file.path,
        version: None,
        hashes: vec![sha1, hash(&file.sha256)],
        licenses: Vec::new(),
        purl: None,
        pedigree: None,
        external_references: Vec::new(),
        properties: Vec::new(),
    }
}

fn kind(role: Role) -> &'static str {
    match role {
        Role::Image | Role::Base => "platform",
        Role::System => "operating-system",
        Role::Package | Role::GoModule => "library",
        Role::Program | Role::GoProgram | Role::Bundle => "application",
        Role::Container => "container",
    }
}

fn hash(digest: &Digest) -> Hash {
    let alg = match digest {
        Digest::Sha256(_) => "SHA-256",
        Digest::Sha512(_) => "SHA-512",
    };
    Hash { alg, content: digest.hex() }
}

fn properties(element: &Element) -> Vec<Property<'_>> {
    let facts = element.facts.iter();
    let mut properties: Vec<_> =
        facts.map(|(name, value)| Property { name: format!("vmbake:{name}"), value }).collect();
    let trivy = |name: &str, value| Property { name: format!("aquasecurity:trivy:{name}"), value };
    if let Some((name, version)) = &element.source {
        let (epoch, rest) = version.split_once(':').unwrap_or(("", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        let named =
            [("SrcName", name.as_str()), ("SrcVersion", upstream), ("SrcRelease", revision), ("SrcEpoch", epoch)];
        properties
            .extend(named.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| trivy(name, value)));
    }
    match element.role {
        Role::Package => properties.push(trivy("PkgType", "debian")),
        Role::GoProgram => properties.push(trivy("Type", "gobinary")),
        _ => {}
    }
    properties
}

/// Dependencies and contents of each component: the standard has one relation for both.
fn dependencies(inventory: &Inventory) -> Vec<Dependency<'_>> {
    let mut needed: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (from, how, to) in &inventory.relations {
        let Some(other) = inventory.elements.get(*to).filter(|_| *how != Relationship::DescendantOf) else { continue };
        needed.entry(*from).or_default().push(&other.id);
    }
    let all = inventory.elements.iter().enumerate().filter(|(_, element)| element.role != Role::Base);
    all.map(|(place, element)| Dependency {
        reference: &element.id,
        depends_on: needed.remove(&place).unwrap_or_default(),
    })
    .collect()
}
