//! A profile as written by its author: an `OperatingSystemProfile` of `operatingsystemmanager.k8c.io/v1alpha1` in, validated fields out.
//!
//! Stricter than the operating-system-manager (OSM): unknown fields are errors, each file has a plain absolute path, and fields that cannot
//! become an image of Debian (other systems, yum, Ignition, subscriptions) are refused at their position.

use std::collections::BTreeMap;

use saphyr_parser::ScalarStyle;

use super::error::{Location, ProfileError};
use super::fields::{Fields, Words, integer, shown, truth, words, wrong};
use super::names::{is_name, is_object_name};
use super::node::{Content, Document, Node};
use vmbake_common::digest::Digest;

/// What a profile calls itself.
const API: (&str, &str) = ("operatingsystemmanager.k8c.io/v1alpha1", "OperatingSystemProfile");
/// Systems that a profile may be for. OSM has no Debian; its profiles for Ubuntu are the nearest.
const SYSTEMS: [&str; 2] = ["debian", "ubuntu"];
/// What a file gets that says nothing of it.
const DEFAULT_PERMISSIONS: u16 = 644;
/// The one encoding that OSM does: it sends such files as base64.
const BASE64: &str = "b64";

#[derive(Clone, Debug)]
pub struct Profile {
    pub name: String,
    /// `debian` or `ubuntu`.
    pub system: String,
    pub system_version: String,
    /// Version of the profile itself.
    pub version: String,
    /// Where its machines may run.
    pub providers: Vec<String>,
    /// Digest of what it says: of its `spec` as JSON with sorted keys.
    pub spec_digest: Digest,
    pub(super) bootstrap: PhasePart,
    pub(super) provisioning: PhasePart,
}

/// What one of the two phases of a machine's first boot brings.
#[derive(Clone, Debug)]
pub(super) struct PhasePart {
    pub(super) runtimes: Vec<Runtime>,
    pub(super) templates: BTreeMap<String, Words>,
    pub(super) units: Vec<SystemdUnit>,
    pub(super) files: Vec<TemplateFile>,
    /// None if there are no modules, which is not the same as empty ones.
    pub(super) modules: Option<Modules>,
}

/// A container runtime, with what is added where it is chosen.
#[derive(Clone, Debug)]
pub(super) struct Runtime {
    pub(super) name: String,
    pub(super) files: Vec<TemplateFile>,
    pub(super) templates: BTreeMap<String, Words>,
}

/// A file, whose content is a template.
#[derive(Clone, Debug)]
pub(super) struct TemplateFile {
    pub(super) path: String,
    /// Decimal digits that are read as octal.
    pub(super) permissions: u16,
    pub(super) is_base64: bool,
    pub(super) content: Words,
}

/// A unit, as it goes into the configuration.
#[derive(Clone, Debug)]
pub(super) struct SystemdUnit {
    pub(super) name: String,
    pub(super) enable: Option<bool>,
    pub(super) mask: Option<bool>,
    pub(super) content: Option<String>,
    pub(super) drop_ins: Vec<(String, String)>,
}

/// Commands for cloud-init.
#[derive(Clone, Debug)]
pub(super) struct Modules {
    pub(super) bootcmd: Vec<String>,
    pub(super) runcmd: Vec<String>,
}

impl Profile {
    pub(super) fn read(document: &Document) -> Result<Self, ProfileError> {
        let mut top = Fields::new(document, &document.root)?;
        kind(&mut top, API)?;
        let mut metadata = top.inside("metadata")?;
        let name = object_name(&mut metadata, "name")?;
        metadata.pass_over(&METADATA);
        metadata.pass_over(&["namespace", "annotations"]);
        metadata.finish()?;
        let mut spec = top.inside("spec")?;
        top.finish()?;
        let system = system(&spec.text("osName")?)?;
        let system_version = spec.text("osVersion")?.text;
        let version = version(&spec.text("version")?)?;
        let providers = spec.list("supportedCloudProviders", provider)?;
        if let Some(utility) = spec.text_or_none("provisioningUtility")? {
            utility_is_cloud_init(&utility)?;
        }
        let bootstrap = phase(&mut spec, "bootstrapConfig")?;
        let provisioning = phase(&mut spec, "provisioningConfig")?;
        spec.finish()?;
        let spec = Fields::new(document, &document.root)?.json("spec")?.unwrap_or_default();
        let spec_digest = Digest::of(spec.to_string().as_bytes());
        Ok(Self { name, system, system_version, version, providers, spec_digest, bootstrap, provisioning })
    }
}

/// Fields of an object's metadata that its cluster writes.
pub(super) const METADATA: [&str; 11] = [
    "labels",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "uid",
];

/// Checks what an object calls itself.
pub(super) fn kind(top: &mut Fields<'_>, (api, kind): (&str, &str)) -> Result<(), ProfileError> {
    for (field, expected) in [("apiVersion", api), ("kind", kind)] {
        let found = top.text(field)?;
        if found.text != expected {
            return Err(ProfileError::value(found.spot, format!("{field} {expected}"), shown(&found.text)));
        }
    }
    Ok(())
}

/// A name as Kubernetes has them for objects.
pub(super) fn object_name(fields: &mut Fields<'_>, field: &'static str) -> Result<String, ProfileError> {
    let name = fields.text(field)?;
    match is_object_name(&name.text) {
        true => Ok(name.text),
        false => {
            let expected = "a name of at most 253 lowercase letters, digits, - and .";
            Err(ProfileError::value(name.spot, expected, shown(&name.text)))
        }
    }
}

/// Refuses systems that no image of Debian can stand for.
pub(super) fn system(name: &Words) -> Result<String, ProfileError> {
    let why = match name.text.as_str() {
        known if SYSTEMS.contains(&known) => return Ok(name.text.clone()),
        "flatcar" => "it is configured by Ignition, but vmbake bakes Debian images",
        "rhel" | "rockylinux" | "amzn2" => "it installs packages with yum, but vmbake bakes Debian images",
        _ => return Err(ProfileError::value(name.spot.clone(), "debian or ubuntu", shown(&name.text))),
    };
    Err(refused(&name.spot, &name.text, why))
}

fn version(text: &Words) -> Result<String, ProfileError> {
    let number = text.text.strip_prefix('v').unwrap_or_default();
    match super::constraint::SemanticVersion::strict(number) {
        Some(_) => Ok(text.text.clone()),
        None => Err(ProfileError::value(text.spot.clone(), "a version such as v1.2.3", shown(&text.text))),
    }
}

fn provider(document: &Document, node: &Node) -> Result<String, ProfileError> {
    let mut fields = Fields::new(document, node)?;
    let name = fields.text("name")?;
    fields.json("spec")?;
    fields.finish()?;
    match is_name(&name.text) {
        true => Ok(name.text),
        false => Err(ProfileError::value(name.spot, "the name of a cloud provider", shown(&name.text))),
    }
}

fn utility_is_cloud_init(utility: &Words) -> Result<(), ProfileError> {
    match utility.text.as_str() {
        "cloud-init" => Ok(()),
        "ignition" => {
            let why = "Debian images use cloud-init, which does not read Ignition's configuration";
            Err(refused(&utility.spot, "provisioningUtility: ignition", why))
        }
        other => Err(ProfileError::value(utility.spot.clone(), "cloud-init", shown(other))),
    }
}

fn phase(spec: &mut Fields<'_>, name: &'static str) -> Result<PhasePart, ProfileError> {
    let mut fields = spec.inside(name)?;
    let runtimes = fields.list("supportedContainerRuntimes", |document, node| {
        let mut fields = Fields::new(document, node)?;
        let runtime = Runtime {
            name: fields.text("name")?.text,
            files: fields.list("files", file)?,
            templates: templates(&mut fields)?,
        };
        fields.finish()?;
        Ok(runtime)
    })?;
    let part = PhasePart {
        runtimes,
        templates: templates(&mut fields)?,
        units: fields.list("units", unit)?,
        files: fields.list("files", file)?,
        modules: modules(&mut fields)?,
    };
    fields.finish()?;
    Ok(part)
}

fn templates(fields: &mut Fields<'_>) -> Result<BTreeMap<String, Words>, ProfileError> {
    let named = fields.texts("templates")?;
    match named.iter().find(|(name, _)| !is_name(name)) {
        None => Ok(named.into_iter().collect()),
        // It stands between quotes of a template.
        Some((name, words)) => {
            let expected = "a template name of letters, digits, - and _";
            Err(ProfileError::value(words.spot.clone(), expected, shown(name)))
        }
    }
}

fn file(document: &Document, node: &Node) -> Result<TemplateFile, ProfileError> {
    let mut fields = Fields::new(document, node)?;
    let path = path(&fields.text("path")?)?;
    let permissions = fields.take("permissions").map_or(Ok(DEFAULT_PERMISSIONS), |node| permissions(document, node))?;
    let mut content = fields.inside("content")?;
    fields.finish()?;
    let mut inline = content.inside("inline")?;
    content.finish()?;
    let encoding = inline.text_or_none("encoding")?.filter(|encoding| !encoding.text.is_empty());
    if let Some(other) = encoding.as_ref().filter(|encoding| encoding.text != BASE64) {
        return Err(ProfileError::value(other.spot.clone(), "`b64` or no encoding", shown(&other.text)));
    }
    let content = inline.text("data")?;
    inline.finish()?;
    Ok(TemplateFile { path, permissions, is_base64: encoding.is_some(), content })
}

/// A path that leads where it says.
fn path(path: &Words) -> Result<String, ProfileError> {
    let is_plain = |name: &str| !matches!(name, "" | "." | "..");
    let names =
        path.text.strip_prefix('/').filter(|_| path.text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\''));
    match names.is_some_and(|names| names.split('/').all(is_plain)) {
        true => Ok(path.text.clone()),
        false => {
            let expected = "an absolute path of visible ASCII characters without quotes, empty names, . and ..";
            Err(ProfileError::value(path.spot.clone(), expected, shown(&path.text)))
        }
    }
}

fn permissions(document: &Document, node: &Node) -> Result<u16, ProfileError> {
    let is_octal = |number: &i64| number.to_string().bytes().all(|digit| (b'0'..b'8').contains(&digit));
    let number = integer(document, node).ok().filter(|number| (1..=7777).contains(number) && is_octal(number));
    let number = number.and_then(|number| u16::try_from(number).ok());
    number.ok_or_else(|| wrong(document, node, "permissions such as 644: octal digits without leading zeros"))
}

fn unit(document: &Document, node: &Node) -> Result<SystemdUnit, ProfileError> {
    let mut fields = Fields::new(document, node)?;
    let unit = SystemdUnit {
        name: fields.text("name")?.text,
        enable: fields.take("enable").map(|node| truth(document, node)).transpose()?,
        mask: fields.take("mask").map(|node| truth(document, node)).transpose()?,
        content: fields.text_or_none("content")?.map(|words| words.text),
        drop_ins: fields.list("dropIns", |document, node| {
            let mut fields = Fields::new(document, node)?;
            let drop_in = (fields.text("name")?.text, fields.text("content")?.text);
            fields.finish()?;
            Ok(drop_in)
        })?,
    };
    fields.finish()?;
    Ok(unit)
}

fn modules(fields: &mut Fields<'_>) -> Result<Option<Modules>, ProfileError> {
    let Some(mut modules) = fields.inside_or_none("modules")? else { return Ok(None) };
    for (field, why) in [
        ("rh_subscription", "Debian images have no subscription"),
        ("yum_repos", "Debian images have no yum: list packages and archives in a layer"),
        ("yum_repo_dir", "Debian images have no yum: list packages and archives in a layer"),
    ] {
        if modules.take(field).is_some() {
            return Err(refused(&modules.spot(), field, why));
        }
    }
    let commands = Modules { bootcmd: modules.list("bootcmd", command)?, runcmd: modules.list("runcmd", command)? };
    modules.finish()?;
    Ok(Some(commands))
}

/// A command, which cloud-init takes out of a plain scalar.
fn command(document: &Document, node: &Node) -> Result<String, ProfileError> {
    let is_line = matches!(&node.content, Content::Scalar { text, style }
        if !text.contains('\n') && !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded));
    match is_line {
        true => Ok(words(document, node)?.text),
        false => Err(wrong(document, node, "a command in a single line")),
    }
}

pub(super) fn refused(spot: &Location, what: &str, why: &'static str) -> ProfileError {
    ProfileError::Refused { spot: spot.clone(), what: what.to_owned(), why }
}
