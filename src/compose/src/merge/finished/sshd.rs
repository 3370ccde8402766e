//! Settings of sshd(8): the files in the order in which it reads them in, an error out if a value of a layer has no effect, because sshd
//! keeps the first value of a keyword, or if a host key is missing.

use std::collections::BTreeMap;

use vmbake_common::glob::matches;
use vmbake_disk::tree::Kind;

use super::of_layer;
use crate::merge::MergeError;
use crate::merge::missing::is_made;
use crate::merge::place::Target;
pub use vmbake_layer::{Layer, SshdLine, sshd_lines};

pub(super) const SSHD: &str = "/usr/sbin/sshd";
const CONFIG: &str = "/etc/ssh/sshd_config";
const DIRECTORY: &str = "/etc/ssh";

/// How many files may include each other, as in sshd.
const MAX_DEPTH: usize = 16;

/// Keywords of which each line counts, or the last one.
const REPEATED: [&str; 12] = [
    "acceptenv",
    "allowgroups",
    "allowusers",
    "denygroups",
    "denyusers",
    "hostcertificate",
    "hostkey",
    "ipqos",
    "listenaddress",
    "match",
    "maxstartups",
    "port",
];

/// Other names of keywords.
const ALIASES: [(&str, &str); 4] = [
    ("challengeresponseauthentication", "kbdinteractiveauthentication"),
    ("hostbasedacceptedkeytypes", "hostbasedacceptedalgorithms"),
    ("pubkeyacceptedkeytypes", "pubkeyacceptedalgorithms"),
    ("skeyauthentication", "kbdinteractiveauthentication"),
];

/// Keys that the machine makes on its first boot.
const MADE: [&str; 3] = ["/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key"];

const HINT: &str = "sshd reads /etc/ssh/sshd_config.d in the order of the names, and keeps the first value: use a name that comes earlier, or \
     remove the other value";
const KEY_HINT: &str = "use one of the keys /etc/ssh/ssh_host_TYPE_key, which each machine makes on its first boot";

/// A line outside of `Match`.
pub(super) struct Global {
    path: String,
    line: SshdLine,
}

/// Fails if a layer's line has no effect, unless a later layer overrides it: then it warns.
pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<Vec<String>, MergeError> {
    let mut warnings = Vec::new();
    if target.tree.resolve(SSHD.as_bytes()).is_err() {
        return Ok(warnings);
    }
    let settings = settings(target);
    let mut first: BTreeMap<(&str, Option<&String>), &Global> = BTreeMap::new();
    for global in &settings {
        check_host_key(target, layers, global)?;
        let keyword = global.line.keyword.as_str();
        let keyword = ALIASES.iter().find(|(alias, _)| *alias == keyword).map_or(keyword, |(_, keyword)| keyword);
        let name = global.line.arguments.first().filter(|_| keyword == "subsystem");
        if REPEATED.contains(&keyword) {
            continue;
        }
        let winner = *first.entry((keyword, name)).or_insert(global);
        let Some(layer) = of_layer(target, layers, &global.path).filter(|_| value(winner) != value(global)) else {
            continue;
        };
        let writer = target.layer_at(&winner.path);
        let by = writer.map_or("the base".to_owned(), |layer| format!("layer {layer}"));
        let (path, line) = (format!("{}:{}", global.path, global.line.line), winner.line.line);
        let what = format!(
            "`{} {}` has no effect: sshd keeps `{}` of {}:{line} of {by}, which it reads first",
            global.line.written,
            shown(global),
            shown(winner),
            winner.path,
        );
        let names: Vec<&str> = layers.iter().map(|layer| layer.schema.name.as_str()).collect();
        let is_later =
            names.iter().position(|name| *name == layer) < names.iter().position(|name| Some(*name) == writer);
        if !is_later {
            return Err(MergeError::Unread { path, layer: layer.to_owned(), what, hint: HINT });
        }
        warnings.push(format!("layer {layer}: {path}: {what}"));
    }
    Ok(warnings)
}

/// The first value of a keyword outside of `Match`.
pub(super) fn value_of(settings: &[Global], keyword: &str) -> Option<String> {
    let found = settings.iter().find(|global| global.line.keyword == keyword)?;
    Some(shown(found))
}

/// The lines outside of `Match`, in the order in which sshd reads them.
pub(super) fn settings(target: &Target) -> Vec<Global> {
    let mut found = Vec::new();
    read(target, CONFIG, MAX_DEPTH, &mut found);
    found
}

fn read(target: &Target, path: &str, depth: usize, found: &mut Vec<Global>) {
    let text = target.bytes(path).unwrap_or_default();
    for line in sshd_lines(&String::from_utf8_lossy(&text)) {
        if line.is_matched {
            continue;
        }
        if line.keyword == "include" && depth > 0 {
            let files = line.arguments.iter().flat_map(|pattern| included(target, pattern));
            files.for_each(|path| read(target, &path, depth - 1, found));
            continue;
        }
        found.push(Global { path: path.to_owned(), line });
    }
}

/// The files of a pattern, by name; only the last component may have wildcards.
fn included(target: &Target, pattern: &str) -> Vec<String> {
    let path = if pattern.starts_with('/') { pattern.to_owned() } else { format!("{DIRECTORY}/{pattern}") };
    let Some((dir, name)) = path.rsplit_once('/') else { return Vec::new() };
    let Ok(id) = target.tree.resolve(dir.as_bytes()) else { return Vec::new() };
    let Kind::Directory(entries) = &target.tree.inode(id).kind else { return Vec::new() };
    let is_named = |found: &&Vec<u8>| {
        let is_hidden = found.starts_with(b".") && !name.starts_with('.');
        !is_hidden && matches(name.as_bytes(), found)
    };
    let names = entries.keys().filter(is_named).filter_map(|name| str::from_utf8(name).ok());
    names.map(|name| format!("{dir}/{name}")).collect()
}

fn shown(global: &Global) -> String {
    global.line.arguments.join(" ")
}

/// The value, in which words of one meaning are equal.
fn value(global: &Global) -> String {
    shown(global).to_ascii_lowercase().replace("without-password", "prohibit-password")
}

/// Fails if a layer's host key neither exists nor is made on the machine.
fn check_host_key(target: &Target, layers: &[Layer], global: &Global) -> Result<(), MergeError> {
    let SshdLine { line, keyword, arguments, .. } = &global.line;
    let [key] = arguments.as_slice() else { return Ok(()) };
    let Some(layer) = of_layer(target, layers, &global.path).filter(|_| keyword == "hostkey") else { return Ok(()) };
    // Something of a layer may make it.
    let is_named = || {
        let others = layers.iter().flat_map(|layer| &layer.files).filter(|(path, _)| **path != global.path);
        others.into_iter().any(|(_, file)| String::from_utf8_lossy(&file.content).contains(key.as_str()))
    };
    let is_there = MADE.contains(&key.as_str()) || target.tree.resolve(key.as_bytes()).is_ok() || is_made(layers, key);
    if is_there || is_named() {
        return Ok(());
    }
    let what =
        format!("sshd cannot load the host key {key}: it is not in the image, and nothing makes it on the first boot");
    Err(MergeError::Unread { path: format!("{}:{line}", global.path), layer: layer.to_owned(), what, hint: KEY_HINT })
}
