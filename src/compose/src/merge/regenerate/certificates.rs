//! Certificates that machines trust: the script of the image's own package `ca-certificates` is set off, as packages do it with
//! `dpkg-trigger update-ca-certificates`.

use std::collections::BTreeSet;

use base64ct::{Base64, Encoding};
use vmbake_disk::tree::Kind;

use crate::merge::database::Database;
use crate::merge::place::Target;
use crate::merge::{MAX_TEXT, MergeError};

const PACKAGE: &str = "ca-certificates";
const TRIGGER: &str = "update-ca-certificates";
const LOCAL: &str = "/usr/local/share/ca-certificates";
const CERTS: &str = "/etc/ssl/certs";
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Paths of certificates that update-ca-certificates takes.
pub(super) fn inputs(target: &Target) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    for root in [LOCAL, "/usr/share/ca-certificates"] {
        let Ok(id) = target.tree.resolve(root.as_bytes()) else { continue };
        let below = target.tree.walk_from(id).filter(|(.., inode)| !matches!(inode.kind, Kind::Directory(_)));
        let paths = below.map(|(path, ..)| [root.as_bytes(), &path].concat());
        found.extend(paths.filter(|path| path.ends_with(b".crt")));
    }
    found
}

/// Fails if update-ca-certificates would leave a file out, or make a bundle of it that cannot be read.
pub(super) fn check(target: &Target, path: &str, layer: &str) -> Result<(), MergeError> {
    let wrong = |what: String, hint: &'static str| {
        Err(MergeError::Unread { path: path.to_owned(), layer: layer.to_owned(), what, hint })
    };
    let Ok(content) = target.tree.read(path.as_bytes(), MAX_TEXT) else { return Ok(()) };
    let text = String::from_utf8_lossy(&content);
    if !path.starts_with("/usr/local/share/") && !path.starts_with("/usr/share/") {
        return Ok(());
    }
    if !path.ends_with(".crt") {
        return match text.contains(BEGIN) || is_sequence(&content) {
            true => {
                wrong("only certificates whose names end with .crt are trusted".to_owned(), "rename it to NAME.crt")
            }
            false => Ok(()),
        };
    }
    if text.contains("PRIVATE KEY-----") {
        return wrong("it contains a private key".to_owned(), "remove the private key from the file");
    }
    if is_sequence(&content) {
        return wrong(
            "it is binary (DER), and trusted certificates must be PEM".to_owned(),
            "`openssl x509 -inform der -in FILE -out NAME.crt` converts it",
        );
    }
    let pem = "a trusted certificate begins with -----BEGIN CERTIFICATE-----";
    let blocks = certificates(&text);
    match blocks.iter().position(|block| !is_certificate(block)) {
        Some(index) => wrong(format!("its certificate number {} is damaged", index + 1), pem),
        None if blocks.is_empty() => wrong("it has no certificate in it".to_owned(), pem),
        None => Ok(()),
    }
}

fn certificates(text: &str) -> Vec<&str> {
    let blocks = text.match_indices(BEGIN).filter_map(|(start, _)| text.get(start..));
    blocks.map(|rest| rest.split_inclusive(END).next().unwrap_or(rest)).collect()
}

fn is_certificate(block: &str) -> bool {
    let base64 = block.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)).unwrap_or_default();
    let base64: String = base64.split_whitespace().collect();
    Base64::decode_vec(&base64).is_ok_and(|der| is_sequence(&der))
}

/// Whether bytes are one SEQUENCE of DER with a length of two bytes, as a certificate is.
fn is_sequence(der: &[u8]) -> bool {
    let [0x30, 0x82, high, low, rest @ ..] = der else { return false };
    rest.len() == usize::from(u16::from_be_bytes([*high, *low]))
}

/// Sets off the script that brings certificates into the bundle and links them.
pub(super) fn update(
    target: &mut Target,
    packages: &mut Database,
    layer: &str,
    warnings: &mut Vec<String>,
) -> Result<(), MergeError> {
    let locals: Vec<Vec<u8>> = inputs(target).into_iter().filter(|path| path.starts_with(LOCAL.as_bytes())).collect();
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
                "{}: it has several certificates: all are in ca-certificates.crt, but as by update-ca-certificates, none gets a hash link",
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
