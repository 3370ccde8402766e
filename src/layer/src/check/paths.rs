//! What a layer may not say of paths: where they are, how they are linked, and who may run what is there.

use std::collections::{BTreeMap, BTreeSet};

use super::pointer;
use crate::findings::{Findings, Found};
use crate::position::child;
use crate::real_path::real;
use crate::{Install, Layer, Schema, attribute, system_directory, validate};
use vmbake_common::paths::is_below;

/// Most symbolic links that Linux follows in one path (`MAXSYMLINKS`).
const MAX_SYMLINKS: usize = 40;

/// Paths are absolute, and settings name only files that the layer brings.
pub fn check(found: &mut Findings, layer: &Layer) {
    let schema = &layer.schema;
    found.keys("/directories", schema.directories.keys(), validate::path);
    found.keys("/symlinks", schema.symlinks.keys(), validate::path);
    found.keys("/modes", schema.modes.keys(), validate::path);
    found.keys("/in_place", schema.in_place.keys(), validate::path);
    found.list("/before_packages", &schema.before_packages, validate::path);
    found.list("/keep_conffiles", &schema.keep_conffiles, validate::package);
    let brought = |path: &str| (!layer.files.contains_key(path)).then(|| format!("{path:?} is not below files/"));
    found.keys("/files", schema.files.keys(), |path| validate::path(path).or_else(|| brought(path)));
    found.list("/expand", &schema.expand, |path| validate::path(path).or_else(|| brought(path)));
    found.value("/images".to_owned(), schema.images.as_deref().and_then(validate::path));
    let pattern = |path: &str| {
        let early = path.rsplit_once('/').is_some_and(|(parents, _)| parents.contains('*'));
        let system = system_directory(path).map(|directory| {
            format!("path {path:?} would remove {directory}, a system directory that the image needs: list the paths below it that are not wanted")
        });
        system
            .or_else(|| validate::path(path))
            .or_else(|| early.then(|| format!("path {path:?} has `*` before its last component")))
    };
    found.list("/remove", &schema.remove, pattern);
    found.list("/empty", &schema.empty, validate::path);
    found.list("/setuid", &schema.setuid, validate::path);
    found.list("/truncate", &schema.truncate, validate::path);
    same(found, layer);
    hidden(found, layer);
    generated(found, layer);
    let own: BTreeSet<&String> =
        layer.files.keys().chain(schema.symlinks.keys()).chain(schema.directories.keys()).collect();
    let others: BTreeSet<&String> = schema.empty.iter().chain(&schema.images).chain(schema.homes()).collect();
    let installed = |path: &str| {
        schema.installs().any(|(_, _, install)| match install {
            Install::File { path: found, .. } => found == path,
            // What an archive has is known when it is unpacked.
            Install::Tar { path: folder, .. } | Install::Zip { path: folder, .. } => is_below(path, folder),
            Install::Deb => false,
        })
    };
    let missing = |path: &str| {
        let is_own = own.iter().chain(&others).any(|own| *own == path) || installed(path);
        (!is_own).then(|| format!("{path:?} is not a file, directory or link of the layer"))
    };
    let hidden = |path: &str| validate::path(path).or_else(|| validate::visible(path));
    found.list("/keep", &schema.keep, |path| hidden(path).or_else(|| missing(path)));
    kinds(found, schema);
    for path in schema.directories.keys() {
        let file = layer.files.contains_key(path).then(|| format!("{path:?} is also a file below files/"));
        found.key(child("/directories", path), file);
    }
}

/// No two files or links of the layer are one on Debian, as those at `/lib/a` and `/usr/lib/a` are.
fn same(found: &mut Findings, layer: &Layer) {
    let links = layer.schema.symlinks.keys().map(|path| (path, child("/symlinks", path)));
    let files = layer.files.keys().map(|path| (path, pointer(layer, path)));
    let mut first: BTreeMap<String, &String> = BTreeMap::new();
    for (path, pointer) in files.chain(links) {
        let other = first.insert(real(path), path).filter(|other| *other != path);
        found.key(
            pointer,
            other.map(|other| {
                format!("{path:?} is the same path as {other:?} on Debian, where one of them leads to the other")
            }),
        );
    }
}

/// Keys for files name no link or directory of the layer itself.
fn kinds(found: &mut Findings, schema: &Schema) {
    let link = |path: &str| {
        let target = schema.symlinks.get(path)?;
        Some(format!("{path:?} is a symbolic link of the layer: name the file that it leads to, {target:?}"))
    };
    let directory = |path: &str| {
        let is_directory = schema.directories.contains_key(path);
        is_directory.then(|| format!("{path:?} is a directory of the layer, and a regular file is needed"))
    };
    let file = |path: &str| link(path).or_else(|| directory(path));
    found.keys("/capabilities", schema.capabilities.keys(), directory);
    let mut each = |key: &str, paths: &[String], rule: &dyn Fn(&str) -> Option<String>| {
        paths.iter().enumerate().for_each(|(index, path)| found.value(format!("/{key}/{index}"), rule(path)));
    };
    each("empty", &schema.empty, &directory);
    each("truncate", &schema.truncate, &file);
    each("setuid", &schema.setuid, &file);
}

/// Nothing is placed where machines mount other file systems.
fn hidden(found: &mut Findings, layer: &Layer) {
    let schema = &layer.schema;
    found.keys("/directories", schema.directories.keys(), validate::visible);
    found.keys("/symlinks", schema.symlinks.keys(), validate::visible);
    found.list("/empty", &schema.empty, validate::visible);
    found.value("/images".to_owned(), schema.images.as_deref().and_then(validate::visible));
    for path in layer.files.keys() {
        found.key(pointer(layer, path), validate::visible(path));
    }
    for (pointer, _, install) in schema.installs() {
        let path = match install {
            Install::File { path, .. } | Install::Tar { path, .. } | Install::Zip { path, .. } => path,
            Install::Deb => continue,
        };
        found.value(pointer + "/path", validate::visible(path));
    }
}

/// Nothing names the files that a bake writes itself.
fn generated(found: &mut Findings, layer: &Layer) {
    let (schema, rule) = (&layer.schema, validate::generated);
    found.keys("/directories", schema.directories.keys(), rule);
    found.keys("/symlinks", schema.symlinks.keys(), rule);
    found.keys("/modes", schema.modes.keys(), rule);
    found.keys("/capabilities", schema.capabilities.keys(), rule);
    found.keys("/in_place", schema.in_place.keys(), rule);
    let lists = [("remove", &schema.remove), ("empty", &schema.empty), ("truncate", &schema.truncate)];
    for (key, paths) in lists {
        paths.iter().enumerate().for_each(|(index, path)| found.value(format!("/{key}/{index}"), rule(path)));
    }
    found.value("/images".to_owned(), schema.images.as_deref().and_then(rule));
    for path in layer.files.keys() {
        found.key(pointer(layer, path), rule(path));
    }
    for (pointer, _, install) in schema.installs() {
        if let Install::File { path, .. } | Install::Tar { path, .. } | Install::Zip { path, .. } = install {
            found.value(pointer + "/path", rule(path));
        }
    }
}

/// Modes that change who runs a file are listed in `setuid`, so that one look there tells all of them.
pub(super) fn modes(found: &mut Findings, schema: &Schema) {
    for (path, rule) in &schema.directories {
        found.value(child("/directories", path) + "/mode", validate::directory_mode(rule.ownership().mode));
        let is_owned = rule.owner.is_some() || rule.group.is_some();
        let fault = "`owner` and `group` need a `mode`: without one, an existing directory keeps all three";
        found.key(child("/directories", path), (rule.mode.is_none() && is_owned).then(|| fault.to_owned()));
    }
    let listed = |path: &String, mode: u16| {
        let missing = mode & 0o7000 != 0 && !schema.setuid.contains(path);
        validate::file_mode(mode).or_else(|| {
            missing.then(|| {
                format!("mode {mode:04o} has set-uid, set-gid or sticky bits, but `setuid` does not list {path:?}")
            })
        })
    };
    for (path, file) in &schema.files {
        found.value(child("/files", path) + "/mode", listed(path, file.ownership(path).mode));
    }
    for (path, owner) in &schema.modes {
        found.value(child("/modes", path) + "/mode", listed(path, owner.mode));
    }
    for (index, script) in schema.scripts.iter().enumerate() {
        for (path, owner) in &script.files {
            found.value(child(&format!("/scripts/{index}/files"), path) + "/mode", listed(path, owner.mode));
        }
        for (path, owner) in &script.directories {
            let pointer = child(&format!("/scripts/{index}/directories"), path) + "/mode";
            found.value(pointer, validate::directory_mode(owner.mode));
        }
    }
    for (pointer, _, install) in schema.installs() {
        if let Install::File { path, mode, .. } = install
            && validate::file_mode(*mode).is_none()
        {
            found.value(pointer + "/mode", listed(path, *mode));
        }
    }
    for (pointer, path, mode) in schema.first_boot_modes() {
        found.value(pointer, listed(path, mode));
    }
}

/// Capabilities are such that setcap takes, of files that `setuid` lists.
pub(super) fn capabilities(found: &mut Findings, schema: &Schema) {
    found.keys("/capabilities", schema.capabilities.keys(), validate::path);
    for (path, text) in &schema.capabilities {
        let invalid = attribute(text).is_none().then(|| {
            format!(
                "{text:?} is not a list of capabilities, such as `cap_net_bind_service+ep` or `cap_chown,cap_kill=ep`"
            )
        });
        let missing = !schema.setuid.contains(path);
        let missing = missing.then(|| format!("`setuid` does not list {path:?}, which has capabilities"));
        found.value(child("/capabilities", path), invalid.or(missing));
    }
}

/// Links have targets, lead somewhere, and nothing of the layer is placed through them or on them.
pub(super) fn symlinks(found: &mut Findings, schema: &Schema) {
    for (path, target) in &schema.symlinks {
        let pointer = child("/symlinks", path);
        found.value(pointer.clone(), validate::target(target).or_else(|| endless(schema, path)));
        let taken = schema.directories.contains_key(path) || schema.files.contains_key(path);
        found.key(pointer, taken.then(|| format!("{path:?} is also a file or directory of the layer")));
    }
    let inside = |path: &String| {
        let mut above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        let link = above.find(|above| schema.symlinks.contains_key(*above))?;
        Some(format!("{path:?} would be placed through the layer's own symbolic link {link:?}"))
    };
    for path in schema.directories.keys() {
        found.key(child("/directories", path), inside(path));
    }
    for path in schema.files.keys() {
        found.key(child("/files", path), inside(path));
    }
    for path in schema.symlinks.keys() {
        found.key(child("/symlinks", path), inside(path));
    }
}

/// Warns of paths that are one and the same where case does not count, as on many machines on which layers are written.
pub(super) fn cases(found: &mut Findings, schema: &Schema) {
    let mut seen: BTreeMap<String, &String> = BTreeMap::new();
    for (parent, paths) in [
        ("/directories", schema.directories.keys().collect::<Vec<_>>()),
        ("/files", schema.files.keys().collect()),
        ("/symlinks", schema.symlinks.keys().collect()),
    ] {
        for path in paths {
            if let Some(first) = seen.insert(path.to_ascii_lowercase(), path).filter(|first| *first != path) {
                let message = format!("path {path:?} differs from {first:?} only in case");
                found.0.push(Found { pointer: child(parent, path), key: true, warning: true, message });
            }
        }
    }
}

/// Follows a link through the other links of the layer; tells when that does not end.
fn endless(schema: &Schema, path: &str) -> Option<String> {
    let mut todo: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut at: Vec<String> = Vec::new();
    let mut links = 0;
    while let Some(name) = todo.pop() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                at.pop();
                continue;
            }
            _ => at.push(name),
        }
        let Some(target) = schema.symlinks.get(&format!("/{}", at.join("/"))) else { continue };
        links += 1;
        if links > MAX_SYMLINKS {
            return Some(format!("symbolic link {path:?} leads back to itself"));
        }
        at.pop();
        if target.starts_with('/') {
            at.clear();
        }
        todo.extend(target.split('/').rev().map(str::to_owned));
    }
    None
}
