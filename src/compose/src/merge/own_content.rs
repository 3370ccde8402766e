//! The content of a layer that is not an artifact: files, directories, links, modes, units, and what it removes.

use vmbake_common::message;

use super::fault::ContentFault;
use super::place::Target;
use super::{MergeError, accounts, alternatives, expand, locales, os_release, privileged, swap, text, units};
use vmbake_layer::{Layer, Schema, default_mode};
use vmbake_manifest::Manifest;

/// The language of logins (update-locale(8)).
const LOCALE: &str = "/etc/default/locale";
/// The program that reads `/etc/sudoers.d`.
pub(super) const SUDO: &str = "/usr/bin/sudo";

/// Applies a layer without its artifacts, in the documented order.
pub(super) fn apply(target: &mut Target, layer: &Layer, manifest: &Manifest) -> Result<(), MergeError> {
    let schema = &layer.schema;
    directories(target, schema)?;
    files(target, layer, manifest)?;
    swap::write(target, schema)?;
    attributes(target, schema, &manifest.content().os.arch)?;
    for (path, to) in &schema.symlinks {
        target.check_visible(path.as_bytes())?;
        target.symlink(path, to)?;
    }
    for (name, choice) in &schema.alternatives {
        alternatives::choose(target, name, choice)?;
    }
    if let Some(name) = schema.sudoers.keys().next().filter(|_| target.tree.resolve(SUDO.as_bytes()).is_err()) {
        return Err(MergeError::content(
            format!("/etc/sudoers.d/{name}"),
            ContentFault::Message(message!("is read by {}, which is not in the image", SUDO)),
        ));
    }
    locales::check(target, schema)?;
    units::apply(target, schema)?;
    remove(target, schema)?;
    os_release::set(target, &schema.os_release, manifest)
}

fn directories(target: &mut Target, schema: &Schema) -> Result<(), MergeError> {
    for (path, rule) in &schema.directories {
        target.check_visible(path.as_bytes())?;
        let meta = accounts::metadata(target, schema, &rule.ownership())?;
        match rule.mode {
            Some(_) => target.directory(path, meta)?,
            None => target.ensure_directory(path, meta)?,
        }
    }
    Ok(())
}

fn files(target: &mut Target, layer: &Layer, manifest: &Manifest) -> Result<(), MergeError> {
    let schema = &layer.schema;
    for (path, file) in &layer.files {
        target.check_visible(path.as_bytes())?;
        let meta = match schema.files.get(path) {
            Some(file) => accounts::metadata(target, schema, &file.ownership(path))?,
            None => target.meta(default_mode(path)),
        };
        let content = match schema.expand.contains(path) {
            true => expand::expand(path, &text(path, file)?, manifest.content())?.into_bytes(),
            false => file.content.clone(),
        };
        // Since Debian 13 this is a link to the file that systemd reads, and update-locale(8) writes to its target.
        let real = (path == LOCALE && schema.locale.is_some()).then(|| target.tree.real_path(path.as_bytes(), true));
        let real = real.and_then(|found| String::from_utf8(found.ok()??.0).ok());
        target.file(real.as_ref().unwrap_or(path), meta, content)?;
    }
    Ok(())
}

/// Owners, modes and capabilities of files that are there.
fn attributes(target: &mut Target, schema: &Schema, arch: &str) -> Result<(), MergeError> {
    for (path, owner) in &schema.modes {
        let arch = expand::multiarch(path, arch)?;
        let meta = accounts::metadata(target, schema, owner)?;
        target.set_mode(&path.replace("{multiarch}", arch), &meta)?;
    }
    for (path, text) in &schema.capabilities {
        privileged::give(target, path, text)?;
    }
    Ok(())
}

fn remove(target: &mut Target, schema: &Schema) -> Result<(), MergeError> {
    let wanted = if schema.remove.is_empty() { Vec::new() } else { units::removed::dependency_links(target) };
    for path in &schema.remove {
        target.remove(path)?;
    }
    units::removed::unlink(target, &wanted)?;
    for path in &schema.empty {
        target.require_no_directory(path)?;
        target.empty(path)?;
    }
    for path in &schema.truncate {
        target.require_file(path)?;
        target.truncate(path)?;
    }
    Ok(())
}
