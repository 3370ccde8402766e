//! SPDX 2.3 as JSON (spdx-schema 2.3): an inventory in, a document out.
//!
//! Keys are named as in the standard. Trivy identifies the distribution by the prefix of its `SPDXID`, and source packages by `sourceInfo`.

use serde::Serialize;

use super::files::{HashedFile, verification_code};
use super::identity;
use super::inventory::{Element, IMAGE, Inventory, Relationship, Role, Supplier};
use vmbake_common::digest::Digest;

const NONE: &str = "NOASSERTION";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document<'a> {
    spdx_version: &'static str,
    data_license: &'static str,
    #[serde(rename = "SPDXID")]
    spdx_id: &'static str,
    name: &'a str,
    document_namespace: String,
    creation_info: CreationInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    packages: Vec<Package<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<ListedFile>,
    has_extracted_licensing_infos: Vec<ExtractedLicence<'a>>,
    relationships: Vec<Relation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreationInfo {
    created: String,
    creators: [String; 1],
    license_list_version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Package<'a> {
    #[serde(rename = "SPDXID")]
    spdx_id: String,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_info: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supplier: Option<String>,
    download_location: &'a str,
    files_analyzed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    package_verification_code: Option<VerificationCode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checksums: Vec<Checksum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_info: Option<String>,
    license_concluded: &'static str,
    license_declared: &'a str,
    copyright_text: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_package_purpose: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    external_refs: Vec<ExternalRef<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VerificationCode {
    package_verification_code_value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedFile {
    #[serde(rename = "SPDXID")]
    spdx_id: String,
    file_name: String,
    checksums: [Checksum; 2],
    license_concluded: &'static str,
    license_info_in_files: [&'static str; 1],
    copyright_text: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checksum {
    algorithm: &'static str,
    checksum_value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExternalRef<'a> {
    reference_category: &'static str,
    reference_type: &'static str,
    reference_locator: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExtractedLicence<'a> {
    license_id: &'a str,
    extracted_text: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Relation {
    spdx_element_id: String,
    relationship_type: &'static str,
    related_spdx_element: String,
}

/// Renders an inventory; its namespace contains the UUID.
pub(super) fn document<'a>(inventory: &'a Inventory, uuid: &str) -> Document<'a> {
    let licences = inventory.licences.iter();
    Document {
        spdx_version: "SPDX-2.3",
        data_license: "CC0-1.0",
        spdx_id: "SPDXRef-DOCUMENT",
        name: &inventory.name,
        document_namespace: format!("https://spdx.org/spdxdocs/vmbake-{uuid}"),
        creation_info: CreationInfo {
            created: identity::time(inventory.created),
            creators: [concat!("Tool: vmbake-", env!("CARGO_PKG_VERSION")).to_owned()],
            license_list_version: list_version(),
        },
        comment: (!inventory.notes.is_empty()).then(|| inventory.notes.join("\n")),
        packages: packages(inventory),
        files: inventory.files.iter().enumerate().map(|(number, file)| listed(number, file)).collect(),
        has_extracted_licensing_infos: licences
            .map(|(id, own)| ExtractedLicence { license_id: id, extracted_text: &own.text, name: &own.name })
            .collect(),
        relationships: relationships(inventory),
    }
}

/// SPDX requires only major and minor version.
fn list_version() -> String {
    let parts: Vec<&str> = ::spdx::identifiers::VERSION.split('.').take(2).collect();
    parts.join(".")
}

fn packages(inventory: &Inventory) -> Vec<Package<'_>> {
    let mut packages: Vec<_> = inventory.elements.iter().map(package).collect();
    if let Some(image) = packages.get_mut(IMAGE).filter(|_| !inventory.files.is_empty()) {
        let package_verification_code_value = verification_code(&inventory.files);
        image.files_analyzed = true;
        image.package_verification_code = Some(VerificationCode { package_verification_code_value });
    }
    packages
}

fn file_id(number: usize) -> String {
    format!("SPDXRef-File-{}", number + 1)
}

fn listed(number: usize, file: &HashedFile) -> ListedFile {
    let sha1 = Checksum { algorithm: "SHA1", checksum_value: file.sha1.clone() };
    ListedFile {
        spdx_id: file_id(number),
        // File names in a package are relative.
        file_name: format!(".{}", file.path),
        checksums: [sha1, checksum(&file.sha256)],
        license_concluded: NONE,
        license_info_in_files: [NONE],
        copyright_text: NONE,
    }
}

fn package(element: &Element) -> Package<'_> {
    let purl = element.purl.as_deref().map(|purl| ExternalRef {
        reference_category: "PACKAGE-MANAGER",
        reference_type: "purl",
        reference_locator: purl,
    });
    let source = element.source.as_ref().filter(|_| element.role == Role::Package);
    let facts: Vec<String> = element.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    Package {
        spdx_id: spdx_id(element),
        name: &element.name,
        version_info: element.version.as_deref(),
        supplier: element.supplier.as_ref().map(supplier),
        download_location: element.url.as_deref().unwrap_or(NONE),
        files_analyzed: false,
        package_verification_code: None,
        checksums: element.digest.iter().map(checksum).collect(),
        source_info: source.map(|(name, version)| format!("built package from: {name} {version}")),
        license_concluded: NONE,
        license_declared: element.licence.as_deref().unwrap_or(NONE),
        copyright_text: NONE,
        primary_package_purpose: purpose(element.role),
        external_refs: purl.into_iter().collect(),
        comment: (!facts.is_empty()).then(|| facts.join("\n")),
    }
}

fn spdx_id(element: &Element) -> String {
    format!("SPDXRef-{}", element.id)
}

/// SPDX puts the address in parentheses, so the name must not contain any.
fn supplier(supplier: &Supplier) -> String {
    let kind = if supplier.is_group() { "Organization" } else { "Person" };
    let plain = |text: &str| text.replace(['(', ')'], "'");
    let email = supplier.email.as_deref().map_or_else(String::new, |email| format!(" ({})", plain(email)));
    format!("{kind}: {}{email}", plain(&supplier.name))
}

fn checksum(digest: &Digest) -> Checksum {
    let algorithm = match digest {
        Digest::Sha256(_) => "SHA256",
        Digest::Sha512(_) => "SHA512",
    };
    Checksum { algorithm, checksum_value: digest.hex() }
}

fn purpose(role: Role) -> Option<&'static str> {
    match role {
        Role::System => Some("OPERATING-SYSTEM"),
        Role::GoProgram => Some("APPLICATION"),
        Role::GoModule => Some("LIBRARY"),
        Role::Container => Some("CONTAINER"),
        Role::Program => Some("FILE"),
        Role::Image | Role::Base | Role::Bundle => Some("OTHER"),
        Role::Package => None,
    }
}

fn relationships(inventory: &Inventory) -> Vec<Relation> {
    let id = |place: usize| inventory.elements.get(place).map(spdx_id).unwrap_or_default();
    let described = Relation {
        spdx_element_id: "SPDXRef-DOCUMENT".to_owned(),
        relationship_type: "DESCRIBES",
        related_spdx_element: id(IMAGE),
    };
    let others = inventory.relations.iter().map(|(from, how, to)| Relation {
        spdx_element_id: id(*from),
        relationship_type: match how {
            Relationship::Contains => "CONTAINS",
            Relationship::DependsOn => "DEPENDS_ON",
            Relationship::DescendantOf => "DESCENDANT_OF",
        },
        related_spdx_element: id(*to),
    });
    let files = (0..inventory.files.len()).map(|number| Relation {
        spdx_element_id: id(IMAGE),
        relationship_type: "CONTAINS",
        related_spdx_element: file_id(number),
    });
    std::iter::once(described).chain(others).chain(files).collect()
}
