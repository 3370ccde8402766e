//! Checks a parsed layer by itself: a [`Layer`] in, all errors with the JSON pointers (RFC 6901) of the invalid values out.

mod executable;
mod ignored;
mod paths;
mod syntax;
mod texts;
mod units;

pub use executable::is_run_by_parts;
pub use syntax::{
    AptSource, NameSource, NamedAccount, NftInclude, PamRule, PamTarget, RotatedLog, SshdLine, TmpfilesConflict,
    UnitCommand, UnitRefusal, UnitSetting, apt_sources, calendar_zone, is_skipped_by_logrotate, is_true, name_sources,
    named_accounts, named_route_tables, network_zones, nft_includes, pam_rules, rotated_logs, route_tables, sshd_lines,
    tmpfiles_conflicts, unit_commands, unit_refusal, unit_settings, unit_words,
};

use std::collections::BTreeMap;

use super::findings::{Findings, Found};
use super::position::child;
use super::{
    Account, AuditedScript, Install, Layer, Ownership, Schema, download, keys, password, settings, ssh_key, validate,
};
use vmbake_common::paths::is_at_or_below;
use vmbake_manifest::package_request::Choice;

/// The largest valid id: above it are `nobody` and the two values that mean "no id".
const MAX_ID: u32 = 65_533;

/// The faults of a layer that need no other layer to be seen.
pub fn check(layer: &Layer) -> Vec<Found> {
    let schema = &layer.schema;
    let mut found = Findings::default();
    found.value("/name".to_owned(), validate::name(&schema.name));
    found.value("/version".to_owned(), validate::line(&schema.version));
    found.value("/description".to_owned(), validate::line(&schema.description));
    let os: Vec<String> = schema.os.iter().cloned().collect();
    // A set does not tell at which index of the text an element stood.
    found.value("/os".to_owned(), os.iter().find_map(|name| validate::name(name)));
    found.value("/os".to_owned(), os.is_empty().then(|| "supports no operating system".to_owned()));
    requires(&mut found, schema);
    found.list("/bundles", &schema.bundles, validate::line);
    artifacts(&mut found, schema);
    download::check(&mut found, schema);
    download::check_local(&mut found, layer);
    download::check_images(&mut found, schema);
    packages(&mut found, schema);
    upgrades(&mut found, schema);
    removals(&mut found, schema);
    scripts(&mut found, schema);
    answers(&mut found, schema);
    accounts(&mut found, schema);
    keys::check(&mut found, layer);
    choices(&mut found, schema);
    paths::check(&mut found, layer);
    paths::modes(&mut found, schema);
    paths::capabilities(&mut found, schema);
    paths::symlinks(&mut found, schema);
    units::check(&mut found, layer);
    executable::check(&mut found, layer);
    texts::check(&mut found, layer);
    ignored::check(&mut found, layer);
    first_boots(&mut found, layer);
    settings::check(&mut found, schema);
    syntax::check(&mut found, layer);
    found.keys("/os_release", schema.os_release.keys(), os_release_key);
    for (key, value) in &schema.os_release {
        let control = value.chars().any(char::is_control);
        found.value(child("/os_release", key), control.then(|| format!("{value:?} contains a control character")));
    }
    paths::cases(&mut found, schema);
    found.0
}

/// Where the text has a file. Those below `files/` have no place in it.
pub(super) fn pointer(layer: &Layer, path: &str) -> String {
    let unit = path.strip_prefix("/etc/systemd/system/").filter(|name| layer.schema.units.files.contains_key(*name));
    match unit {
        _ if layer.schema.files.contains_key(path) => child("/files", path),
        Some(unit) => child("/units/files", unit),
        None => "/name".to_owned(),
    }
}

/// The mode, owner and group of a file in the image.
fn access(layer: &Layer, path: &str) -> Ownership {
    let own = || layer.schema.files.get(path).map(|file| file.ownership(path));
    let default =
        || Ownership { mode: validate::default_mode(path), owner: "root".to_owned(), group: "root".to_owned() };
    layer.schema.modes.get(path).cloned().or_else(own).unwrap_or_else(default)
}

fn requires(found: &mut Findings, schema: &Schema) {
    let names: Vec<String> = schema.requires.iter().map(|required| required.name.clone()).collect();
    found.list("/requires", &names, validate::name);
    for (index, required) in schema.requires.iter().enumerate() {
        let version = required.version.as_deref();
        let fault = version.and_then(|version| match version {
            "" => Some(format!("{required:?} has no version after the @", required = required.to_string())),
            version => validate::line(version),
        });
        found.value(format!("/requires/{index}"), fault);
    }
}

fn artifacts(found: &mut Findings, schema: &Schema) {
    found.keys("/artifacts", schema.artifacts.keys(), validate::name);
    for (pointer, _, install) in schema.installs() {
        match install {
            Install::Deb => {}
            Install::File { path, mode, .. } => {
                found.value(format!("{pointer}/path"), validate::path(path));
                found.value(format!("{pointer}/mode"), validate::file_mode(*mode));
            }
            Install::Tar { path, members, .. } | Install::Zip { path, members, .. } => {
                found.value(format!("{pointer}/path"), validate::path(path).filter(|_| path != "/"));
                let member = |name: &str| validate::below(name).map(|reason| format!("member {name:?} {reason}"));
                found.list(&format!("{pointer}/members"), members, member);
                if let Install::Tar { absent, .. } = install {
                    found.list(&format!("{pointer}/absent"), absent, validate::path);
                }
            }
        }
    }
}

fn packages(found: &mut Findings, schema: &Schema) {
    let names: Vec<String> = schema.packages.iter().map(|wanted| wanted.name.clone()).collect();
    found.list("/packages", &names, validate::package);
    for (index, wanted) in schema.packages.iter().enumerate() {
        let pointer = format!("/packages/{index}");
        found.value(pointer.clone(), wanted.version.as_deref().and_then(validate::version));
        let artifact = schema.install(&wanted.name).is_some();
        found
            .value(pointer.clone(), artifact.then(|| format!("{:?} is already an artifact of the layer", wanted.name)));
        let without = schema.without.contains(&wanted.name);
        found.value(pointer, without.then(|| format!("{:?} is also in `without`", wanted.name)));
    }
    found.list("/recommends", schema.recommends.names(), validate::package);
    found.value("/archive".to_owned(), schema.archive.as_deref().and_then(validate::line));
    found.list("/hold", &schema.hold, validate::package);
    found.list("/without", &schema.without, validate::package);
    let asks = !schema.packages.is_empty() || schema.upgrade != Choice::default();
    for (key, is_set) in [
        ("recommends", schema.recommends != Choice::default()),
        ("archive", schema.archive.is_some()),
        ("without", !schema.without.is_empty()),
    ] {
        let alone = is_set && !asks;
        found.value(format!("/{key}"), alone.then(|| format!("`{key}` requires `packages` or `upgrade`")));
    }
}

fn upgrades(found: &mut Findings, schema: &Schema) {
    let unfit = |name: &str| match schema.install(name) {
        Some(Install::Deb) => None,
        Some(_) => Some(format!("artifact {name:?} is not a package")),
        None => validate::package(name),
    };
    found.list("/upgrade", schema.upgrade.names(), unfit);
    for (index, name) in schema.upgrade.names().iter().enumerate() {
        let held = schema.hold.contains(name);
        found.value(format!("/upgrade/{index}"), held.then(|| format!("{name:?} is also in `hold`")));
    }
}

fn removals(found: &mut Findings, schema: &Schema) {
    found.list("/remove_packages", &schema.remove_packages, validate::package);
    for (index, name) in schema.remove_packages.iter().enumerate() {
        let pointer = format!("/remove_packages/{index}");
        let is_artifact = matches!(schema.install(name), Some(Install::Deb));
        found.value(pointer.clone(), is_artifact.then(|| format!("{name:?} is an artifact of the layer")));
        for (key, has_it) in [
            ("packages", schema.packages.iter().any(|wanted| wanted.name == *name)),
            ("hold", schema.hold.contains(name)),
            ("upgrade", schema.upgrade.names().contains(name)),
        ] {
            found.value(pointer.clone(), has_it.then(|| format!("{name:?} is also in `{key}`")));
        }
    }
}

fn scripts(found: &mut Findings, schema: &Schema) {
    for (index, script) in schema.scripts.iter().enumerate() {
        let pointer = format!("/scripts/{index}");
        found.value(format!("{pointer}/package"), validate::name(&script.package));
        let unknown = match script.script.as_str() {
            "preinst" | "postinst" if script.remove => {
                Some(format!("script {:?} does not run when a package is removed", script.script))
            }
            "preinst" | "postinst" => None,
            "prerm" | "postrm" if script.upgrade || script.remove => None,
            "prerm" | "postrm" => {
                Some(format!("script {:?} requires `\"upgrade\": true` or `\"remove\": true`", script.script))
            }
            _ => Some(format!("invalid script {:?}: expected preinst or postinst", script.script)),
        };
        found.value(format!("{pointer}/script"), unknown);
        found.value(format!("{pointer}/sha256"), validate::sha256(&script.sha256));
        found.value(format!("{pointer}/skip"), skipped(script));
        found.list(&format!("{pointer}/users"), &script.users, validate::account);
        found.list(&format!("{pointer}/groups"), &script.groups, validate::account);
        found.keys(&format!("{pointer}/directories"), script.directories.keys(), validate::path);
        found.keys(&format!("{pointer}/files"), script.files.keys(), validate::path);
        found.keys(&format!("{pointer}/symlinks"), script.symlinks.keys(), validate::path);
        found.list(&format!("{pointer}/units/enable"), &script.units.enable, validate::unit);
        for (index, alternative) in script.alternatives.iter().enumerate() {
            let pointer = format!("{pointer}/alternatives/{index}");
            found.value(format!("{pointer}/link"), validate::path(&alternative.link));
            found.value(format!("{pointer}/path"), validate::path(&alternative.path));
            let name = |name: &str| {
                validate::below(name).or_else(|| name.contains('/').then(|| "contains a slash".to_owned()))
            };
            let named = |text: &str| name(text).map(|reason| format!("name {text:?} {reason}"));
            found.value(format!("{pointer}/name"), named(&alternative.name));
            for (slave, (link, path)) in &alternative.slaves {
                let pointer = child(&format!("{pointer}/slaves"), slave);
                found.key(pointer.clone(), named(slave));
                found.value(format!("{pointer}/0"), validate::path(link));
                found.value(format!("{pointer}/1"), validate::path(path));
            }
        }
    }
}

/// Choices of alternatives: names of groups, and paths.
fn choices(found: &mut Findings, schema: &Schema) {
    found.keys("/alternatives", schema.alternatives.keys(), |name| {
        let is_name = validate::below(name).is_none() && !name.contains(['/', ' ', '\t']);
        (!is_name).then(|| format!("{name:?} is not the name of an alternative, such as `editor`"))
    });
    for (name, path) in &schema.alternatives {
        found.value(child("/alternatives", name), validate::path(path));
    }
}

/// A script that is skipped for a reason has no effects.
fn skipped(script: &AuditedScript) -> Option<String> {
    let reason = script.skip.as_deref()?;
    let idle = script.units.enable.is_empty()
        && script.alternatives.is_empty()
        && script.directories.is_empty()
        && script.files.is_empty()
        && script.symlinks.is_empty();
    match reason.trim() {
        "" => Some("the reason is empty".to_owned()),
        _ if script.defer || !idle => Some("`skip` cannot be combined with effects or `defer`".to_owned()),
        _ => None,
    }
}

/// Answers for debconf, whose database has one word for a question and one line for a value.
fn answers(found: &mut Findings, schema: &Schema) {
    for (question, value) in &schema.debconf {
        let pointer = child("/debconf", question);
        let plain = !question.is_empty() && question.chars().all(|char| char.is_ascii_graphic());
        found.key(
            pointer.clone(),
            (!plain).then(|| format!("{question:?} is not the name of a question, such as `postfix/mailname`")),
        );
        let control = value.chars().any(char::is_control);
        found.value(pointer, control.then(|| format!("{value:?} is not one line of text")));
    }
}

fn accounts(found: &mut Findings, schema: &Schema) {
    found.keys("/groups", schema.groups.keys(), validate::account);
    found.keys("/users", schema.users.keys(), validate::account);
    let mut taken: BTreeMap<u32, &str> = BTreeMap::new();
    let groups = schema.groups.iter().map(|(name, id)| (child("/groups", name), name, *id));
    let users = schema.users.iter().map(|(name, user)| (child("/users", name) + "/id", name, user.id));
    for (pointer, name, id) in groups.chain(users) {
        let range = (!(1..=MAX_ID).contains(&id)).then(|| format!("id {id} is not between 1 and {MAX_ID}"));
        let first = taken.insert(id, name).map(|first| format!("id {id} is already used by {first}"));
        found.value(pointer, range.or(first));
    }
    let both = schema.users.keys().filter(|name| schema.groups.contains_key(*name));
    for name in both {
        found.key(child("/groups", name), Some(format!("group {name} is created with the user of that name")));
    }
    schema.users.iter().for_each(|(name, account)| user(found, &child("/users", name), account));
}

fn user(found: &mut Findings, pointer: &str, account: &Account) {
    let field = |path: &str| {
        validate::path(path).or_else(|| path.contains(':').then(|| format!("path {path:?} contains a colon")))
    };
    found.value(
        format!("{pointer}/home"),
        account.home.as_deref().and_then(|home| field(home).or_else(|| validate::visible(home))),
    );
    found.value(format!("{pointer}/shell"), field(&account.shell));
    found.list(&format!("{pointer}/groups"), &account.groups, validate::account);
    found.list(&format!("{pointer}/optional_groups"), &account.optional_groups, validate::account);
    found.value(format!("{pointer}/password_hash"), account.password_hash.as_deref().and_then(password::fault));
    found.list(&format!("{pointer}/ssh_authorized_keys"), &account.ssh_authorized_keys, ssh_key::fault);
    let range = account
        .subordinate
        .as_ref()
        .filter(|range| range.count == 0 || range.start <= MAX_ID || range.start.checked_add(range.count).is_none());
    let message =
        range.map(|range| format!("invalid range of subordinate ids: {} ids from {}", range.count, range.start));
    found.value(format!("{pointer}/subordinate"), message);
}

/// Units that wait for a first boot as systemd means it. The empty `/etc/machine-id` of an image gives each machine an ID, but
/// is none (machine-id(5)): what else happens on a first boot, such as presets, would undo what layers say of units.
fn first_boots(found: &mut Findings, layer: &Layer) {
    let is_unit = |path: &str| {
        let dir = path.rsplit_once('/').map(|(dir, _)| dir);
        dir.is_some_and(|dir| executable::UNIT_DIRECTORIES.iter().any(|units| is_at_or_below(dir, units)))
    };
    for (path, file) in layer.files.iter().filter(|(path, _)| is_unit(path)) {
        if waits_for_first_boot(&String::from_utf8_lossy(&file.content)) {
            let message = format!(
                "{path:?} waits for ConditionFirstBoot=, which is never true in an image: let the unit create a file, and test for \
                 it with ConditionPathExists=!"
            );
            found.key(pointer(layer, path), Some(message));
        }
    }
}

/// Whether a unit never starts because of ConditionFirstBoot= (systemd.unit(5)). An empty condition takes back the earlier ones, and of those
/// with `|` one is enough.
fn waits_for_first_boot(text: &str) -> bool {
    let mut conditions: Vec<(bool, bool)> = Vec::new();
    for (key, value) in text.lines().filter_map(|line| line.trim().split_once('=')) {
        let (key, value) = (key.trim_end(), value.trim());
        if !key.starts_with("Condition") && key != "AssertFirstBoot" {
            continue;
        }
        if value.is_empty() {
            conditions.clear();
            continue;
        }
        let stated = value.strip_prefix('|').unwrap_or(value).trim_start();
        conditions.push((value.starts_with('|'), key.ends_with("FirstBoot") && !holds_later(stated)));
    }
    let (alternatives, needed): (Vec<_>, Vec<_>) =
        conditions.into_iter().partition(|(is_alternative, _)| *is_alternative);
    needed.iter().any(|(_, never)| *never) || (!alternatives.is_empty() && alternatives.iter().all(|(_, never)| *never))
}

/// Whether ConditionFirstBoot= with this value holds on other boots than the first. systemd takes one that is not a boolean for a condition
/// that fails.
fn holds_later(value: &str) -> bool {
    let (is_negated, word) = match value.strip_prefix('!') {
        Some(word) => (true, word.trim_start()),
        None => (false, value),
    };
    match word.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => is_negated,
        "0" | "no" | "n" | "false" | "f" | "off" => !is_negated,
        _ => false,
    }
}

/// A variable of os-release(5).
fn os_release_key(key: &str) -> Option<String> {
    let valid = key.starts_with(|first: char| first.is_ascii_uppercase())
        && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    (!valid).then(|| format!("key {key:?} is not a variable of os-release"))
}
