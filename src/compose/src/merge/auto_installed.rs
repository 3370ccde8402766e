//! apt's record of the packages that it installed only as dependencies of others, `extended_states`: `apt-get autoremove` removes them when
//! nothing needs them any more.

use std::collections::BTreeSet;

use vmbake_layer::Layer;
use vmbake_manifest::{Content, PackageReason};

use super::MergeError;
use super::place::Target;

const FOLDER: &str = "/var/lib/apt";
const STATES: &str = "/var/lib/apt/extended_states";

/// Records the packages of a layer as `apt-get install` does: those that the layer requests count as installed by the administrator, and new
/// dependencies as installed by apt.
pub(super) fn record(target: &mut Target, layer: &Layer, content: &Content, arch: &str) -> Result<(), MergeError> {
    if target.wrap(target.tree.find(FOLDER.as_bytes()))?.is_none() {
        return Ok(());
    }
    let of_layer = |chosen: &&PackageReason| chosen.layer == layer.schema.name;
    let chosen =
        content.dependencies.iter().filter_map(|(name, entry)| Some((name, entry.chosen.as_ref().filter(of_layer)?)));
    let (mut manual, mut auto) = (Vec::new(), Vec::new());
    for (name, chosen) in chosen {
        match chosen.upgrades {
            _ if chosen.root() == name => manual.push(name.as_str()),
            None => auto.push(name.as_str()),
            Some(_) => {}
        }
    }
    manual.extend(layer.schema.packages.iter().map(|wanted| wanted.name.as_str()));
    let old = target.text_or_empty(STATES)?;
    let is_kept = |stanza: &&str| {
        let name = value(stanza, "Package");
        !stanza.trim().is_empty() && !manual.iter().chain(&auto).any(|other| Some(*other) == name)
    };
    let mut text: String =
        old.split_inclusive("\n\n").filter(is_kept).map(|stanza| format!("{}\n\n", stanza.trim_end())).collect();
    text.extend(auto.iter().map(|name| format!("Package: {name}\nArchitecture: {arch}\nAuto-Installed: 1\n\n")));
    match text == old {
        true => Ok(()),
        false => target.set_text(STATES, &text),
    }
}

/// Forgets packages that are removed.
pub(super) fn forget(target: &mut Target, removed: &BTreeSet<String>) -> Result<(), MergeError> {
    let old = target.text_or_empty(STATES)?;
    let stays = |stanza: &&str| value(stanza, "Package").is_none_or(|name| !removed.contains(name));
    let text: String = old.split_inclusive("\n\n").filter(stays).collect();
    match text == old {
        true => Ok(()),
        false => target.set_text(STATES, &text),
    }
}

/// The packages that apt installed for others.
pub(super) fn read(target: &Target) -> Result<BTreeSet<String>, MergeError> {
    let text = target.text_or_empty(STATES)?;
    let stanzas = text.split("\n\n").filter(|stanza| value(stanza, "Auto-Installed") == Some("1"));
    Ok(stanzas.filter_map(|stanza| value(stanza, "Package")).map(str::to_owned).collect())
}

fn value<'a>(stanza: &'a str, field: &str) -> Option<&'a str> {
    stanza.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim)
}
