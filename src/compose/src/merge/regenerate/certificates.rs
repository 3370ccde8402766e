//! Trusted certificates: runs the script of the image's package `ca-certificates`, as packages do with `dpkg-trigger
//! update-ca-certificates`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use vmbake_disk::source::{Map, MapReader};
use vmbake_disk::tree::Kind;

use crate::merge::database::Database;
use crate::merge::place::Target;
use crate::merge::{MAX_TEXT, MergeError};
pub use vmbake_layer::processed::{certificates, unprocessed};

const PACKAGE: &str = "ca-certificates";
const TRIGGER: &str = "update-ca-certificates";
const LOCAL: &str = "/usr/local/share/ca-certificates";
const CERTS: &str = "/etc/ssl/certs";
const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
const SELECTION: &str = "/etc/ca-certificates.conf";

/// The most names in a warning.
const MAX_NAMES: usize = 5;

/// What the base trusts, and why.
pub(super) struct Before {
    inputs: BTreeMap<Vec<u8>, Map>,
    selection: Vec<u8>,
    bundle: String,
}

impl Before {
    pub(super) fn find(target: &Target) -> Self {
        let bundle = target.tree.read(BUNDLE.as_bytes(), MAX_TEXT).unwrap_or_default();
        let bundle = String::from_utf8_lossy(&bundle).into_owned();
        Self { inputs: inputs(target), selection: selection(target), bundle }
    }

    /// Whether update-ca-certificates would choose among other files, or choose others.
    pub(super) fn differs(&self, target: &Target) -> bool {
        !self.inputs.keys().eq(inputs(target).keys()) || self.selection != selection(target)
    }

    /// A warning about certificates that are not in the bundle any more.
    pub(super) fn lost(&self, target: &Target) -> Option<String> {
        let bundle = target.tree.read(BUNDLE.as_bytes(), MAX_TEXT).unwrap_or_default();
        let bundle = String::from_utf8_lossy(&bundle);
        let left: BTreeSet<String> = certificates(&bundle).into_iter().map(joined).collect();
        let lost: BTreeSet<String> =
            certificates(&self.bundle).into_iter().map(joined).filter(|block| !left.contains(block)).collect();
        if lost.is_empty() {
            return None;
        }
        let mut names: Vec<String> = self
            .inputs
            .iter()
            .filter_map(|(path, map)| {
                let mut content = Vec::new();
                MapReader::new(map, target.tree.sources()).take(MAX_TEXT).read_to_end(&mut content).ok()?;
                let has_lost = certificates(&String::from_utf8_lossy(&content))
                    .into_iter()
                    .any(|block| lost.contains(&joined(block)));
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                has_lost.then(|| vmbake_common::escape::name(name))
            })
            .collect();
        let more = names.len().saturating_sub(MAX_NAMES);
        names.truncate(MAX_NAMES);
        names.extend((more > 0).then(|| format!("{more} more")));
        let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        let count = lost.len();
        let noun = if count == 1 { "certificate of the base is" } else { "certificates of the base are" };
        Some(format!("{BUNDLE}: {count} {noun} no longer trusted{names}"))
    }
}

/// The lines of a certificate as one.
fn joined(block: &str) -> String {
    block.split_whitespace().collect()
}

/// The list of certificates that are trusted or not.
fn selection(target: &Target) -> Vec<u8> {
    target.tree.read(SELECTION.as_bytes(), MAX_TEXT).unwrap_or_default()
}

/// Certificates that update-ca-certificates takes.
fn inputs(target: &Target) -> BTreeMap<Vec<u8>, Map> {
    let mut found = BTreeMap::new();
    for root in [LOCAL, "/usr/share/ca-certificates"] {
        let Ok(id) = target.tree.resolve(root.as_bytes()) else { continue };
        let below = target.tree.walk_from(id).filter(|(.., inode)| !matches!(inode.kind, Kind::Directory(_)));
        for (path, ..) in below.filter(|(path, ..)| path.ends_with(b".crt")) {
            let path = [root.as_bytes(), &path].concat();
            let file = target.tree.resolve(&path).ok().map(|id| &target.tree.inode(id).kind);
            let map = if let Some(Kind::File(map)) = file { map.clone() } else { Map::default() };
            found.insert(path, map);
        }
    }
    found
}

/// Fails if update-ca-certificates would skip a file, or write an unreadable bundle.
pub(super) fn check(target: &Target, path: &str, layer: &str) -> Result<(), MergeError> {
    let Ok(content) = target.tree.read(path.as_bytes(), MAX_TEXT) else { return Ok(()) };
    match unprocessed(path, &content) {
        None => Ok(()),
        Some((what, hint)) => Err(MergeError::Unread { path: path.to_owned(), layer: layer.to_owned(), what, hint }),
    }
}

/// Runs the script that adds certificates to the bundle and links them.
pub(super) fn update(
    target: &mut Target,
    packages: &mut Database,
    layer: &str,
    warnings: &mut Vec<String>,
) -> Result<(), MergeError> {
    let locals: Vec<Vec<u8>> = inputs(target).into_keys().filter(|path| path.starts_with(LOCAL.as_bytes())).collect();
    let Some(status) = packages.status.package(PACKAGE) else {
        return match locals.first() {
            None => Ok(()),
            Some(path) => Err(MergeError::Unread {
                path: vmbake_common::escape::name(path),
                layer: layer.to_owned(),
                what: "update-ca-certificates must add it to /etc/ssl/certs, but the package ca-certificates is not installed"
                    .to_owned(),
                hint: "add to the layer: \"packages\": [\"ca-certificates\"]",
            }),
        };
    };
    // Else dpkg does it all when it configures the package on the first boot.
    if !matches!(super::super::status::state(status), "installed" | "triggers-pending" | "triggers-awaited") {
        return Ok(());
    }
    for path in &locals {
        let content = target.tree.read(path, MAX_TEXT).unwrap_or_default();
        if certificates(&String::from_utf8_lossy(&content)).len() > 1 {
            warnings.push(format!(
                "{}: contains several certificates: like update-ca-certificates, vmbake adds all to ca-certificates.crt, but creates no hash links",
                vmbake_common::escape::name(path)
            ));
        }
        unlink(target, path)?;
    }
    packages.pending.entry(PACKAGE.to_owned()).or_default().insert(TRIGGER.to_owned());
    Ok(())
}

/// Removes the link to a certificate, so that the script takes it for a new one even if only its content is new.
fn unlink(target: &mut Target, path: &[u8]) -> Result<(), MergeError> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let stem = String::from_utf8_lossy(name.strip_suffix(b".crt").unwrap_or(name)).into_owned();
    let link = format!("{CERTS}/{}.pem", stem.replace([' ', ','], "_").replace(['(', ')'], "="));
    let found = target.tree.find(link.as_bytes()).ok().flatten();
    match found.is_some_and(|id| matches!(target.tree.inode(id).kind, Kind::Symlink(_))) {
        true => target.remove_below(&link),
        false => Ok(()),
    }
}
