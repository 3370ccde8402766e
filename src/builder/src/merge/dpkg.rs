//! Installing a package as dpkg would on a system that does not have it (deb-postinst(5), dpkg(1)): its files, its
//! conffiles, its entry in the status file, its files below `info`, and what its scripts would do.

use std::collections::BTreeMap;

use vmbake_disk::source::SourceId;

use super::place::Target;
use super::{MergeError, scripts};
use crate::layer::AuditedScript;
use crate::stage::{Control, Deb, EntryKind};

const STATUS: &str = "/var/lib/dpkg/status";
const STATUS_OLD: &str = "/var/lib/dpkg/status-old";
const INFO: &str = "/var/lib/dpkg/info";

/// The order in which dpkg writes the fields that it knows; all others follow in the order of the control file, and
/// `Description` with what comes after it stands behind `Conffiles`.
const FIELDS: [&str; 20] = [
    "Package",
    "Essential",
    "Protected",
    "Status",
    "Priority",
    "Section",
    "Installed-Size",
    "Origin",
    "Maintainer",
    "Bugs",
    "Architecture",
    "Multi-Arch",
    "Source",
    "Version",
    "Replaces",
    "Provides",
    "Depends",
    "Pre-Depends",
    "Recommends",
    "Suggests",
];
const LATE_FIELDS: [&str; 5] = ["Breaks", "Conflicts", "Enhances", "Conffiles", "Description"];

/// The packages of a status file, by name and architecture, in the file's text.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    stanzas: BTreeMap<(String, String), (Control, String)>,
}

impl Status {
    /// Reads the status file of the tree.
    pub(super) fn read(target: &Target) -> Result<Self, MergeError> {
        let mut stanzas = BTreeMap::new();
        for text in target.text_or_empty(STATUS)?.split("\n\n").filter(|text| !text.trim().is_empty()) {
            let damaged = |reason: String| MergeError::Content { path: STATUS.to_owned(), reason };
            let control = Control::parse(text).map_err(|error| damaged(error.to_string()))?;
            let field = |name| control.get(name).unwrap_or_default().to_owned();
            let key = (field("Package"), field("Architecture"));
            if key.0.is_empty() {
                return Err(damaged("has a stanza without a package".to_owned()));
            }
            stanzas.insert(key, (control, text.trim_end().to_owned()));
        }
        Ok(Self { stanzas })
    }

    /// The control fields of every installed package.
    pub(super) fn installed(&self) -> impl Iterator<Item = &Control> {
        let stanzas = self.stanzas.values().map(|(control, _)| control);
        stanzas.filter(|control| control.get("Status").is_some_and(|status| status.ends_with(" installed")))
    }

    fn text(&self) -> String {
        self.stanzas.values().map(|(_, text)| format!("{text}\n\n")).collect()
    }
}

/// Installs `deb`, whose data archive is `source`.
pub(super) fn install(
    target: &mut Target,
    deb: &Deb,
    source: SourceId,
    audited: &[AuditedScript],
) -> Result<(), MergeError> {
    let effects = scripts::effects(deb, audited)?;
    keep_conffiles(target, deb)?;
    target.entries(&deb.entries, source, false)?;
    write_info(target, deb)?;
    write_status(target, deb)?;
    scripts::apply(target, effects)
}

/// A conffile that the base has already would make dpkg ask a question; here nobody can answer.
fn keep_conffiles(target: &Target, deb: &Deb) -> Result<(), MergeError> {
    for path in deb.conffiles() {
        if matches!(target.tree.find(path.as_bytes()), Ok(Some(_))) {
            let reason = format!("exists already, but is a conffile of {}", deb.name());
            return Err(MergeError::Content { path, reason });
        }
    }
    Ok(())
}

fn write_info(target: &mut Target, deb: &Deb) -> Result<(), MergeError> {
    let stem = format!("{INFO}/{}", deb.info_stem());
    let mut list = String::new();
    for entry in &deb.entries {
        // The package's own root is listed as "/.", and no directory has a slash at its end.
        let path = String::from_utf8_lossy(&entry.path);
        list.push_str(&if path.is_empty() { "/.\n".to_owned() } else { format!("/{path}\n") });
    }
    let meta = target.meta(0o644);
    target.file(&format!("{stem}.list"), meta, list.into_bytes())?;
    for (name, content) in &deb.info {
        let script = matches!(name.as_str(), "preinst" | "postinst" | "prerm" | "postrm");
        let meta = target.meta(if script { 0o755 } else { 0o644 });
        target.file(&format!("{stem}.{name}"), meta, content.clone())?;
    }
    Ok(())
}

fn write_status(target: &mut Target, deb: &Deb) -> Result<(), MergeError> {
    let mut status = Status::read(target)?;
    let old = target.text_or_empty(STATUS)?;
    let text = stanza(target, deb)?;
    let arch = deb.control.get("Architecture").unwrap_or_default().to_owned();
    status.stanzas.insert((deb.name().to_owned(), arch), (deb.control.clone(), text));
    target.set_text(STATUS_OLD, &old)?;
    target.set_text(STATUS, &status.text())
}

/// The package's stanza of the status file.
fn stanza(target: &Target, deb: &Deb) -> Result<String, MergeError> {
    let mut fields: Vec<(String, String)> = deb.control.fields().to_vec();
    fields.push(("Status".to_owned(), "install ok installed".to_owned()));
    let conffiles = conffile_digests(target, deb)?;
    if !conffiles.is_empty() {
        fields.push(("Conffiles".to_owned(), conffiles));
    }
    let rank = |name: &str| {
        let known = FIELDS.iter().chain(&LATE_FIELDS).position(|field| field.eq_ignore_ascii_case(name));
        known.unwrap_or(FIELDS.len() + LATE_FIELDS.len())
    };
    fields.sort_by_key(|(name, _)| rank(name));
    let line = |(name, value): &(String, String)| {
        let separator = if value.starts_with('\n') || value.is_empty() { ":" } else { ": " };
        format!("{name}{separator}{value}")
    };
    Ok(fields.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Each conffile with its MD5, as the status file lists them: dpkg compares them when the package is upgraded.
fn conffile_digests(target: &Target, deb: &Deb) -> Result<String, MergeError> {
    use md5::Digest as _;
    let mut lines = String::new();
    for path in deb.conffiles() {
        let inside = deb.entries.iter().any(|entry| {
            entry.path == path.trim_start_matches('/').as_bytes() && matches!(entry.kind, EntryKind::File { .. })
        });
        let content = target.tree.read(path.as_bytes(), super::MAX_TEXT).ok().filter(|_| inside);
        let content = content.ok_or_else(|| MergeError::Content {
            path: path.clone(),
            reason: format!("is listed as a conffile of {}, which does not bring it", deb.name()),
        })?;
        let hex: String = md5::Md5::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        lines.push_str(&format!("\n {path} {hex}"));
    }
    Ok(lines)
}
