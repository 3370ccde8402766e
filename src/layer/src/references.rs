//! Checks references between layers: required layers that are missing or have another version, dependency cycles, accounts that are not
//! created.

use std::collections::{BTreeMap, BTreeSet};

use super::check::pointer;
use super::findings::{Findings, Found};
use super::position::child;
use super::{
    BootConfig, BootEffect, Install, Layer, Ownership, Requirement, Schema, named_accounts, named_route_tables,
    route_tables, validate,
};

/// The faults of a layer among `all`. With `accounts` off, accounts are left to the files of the image, which know more
/// than this program.
pub fn check(schema: &Schema, all: &BTreeMap<String, &Layer>, accounts: bool) -> Vec<Found> {
    let mut found = Findings::default();
    for (index, required) in schema.requires.iter().enumerate() {
        let fault = unmet(required, all).or_else(|| cycle(schema, &required.name, all));
        found.value(format!("/requires/{index}"), fault);
    }
    if accounts {
        unknown_accounts(&mut found, schema, all);
        unknown_named_accounts(&mut found, schema, all);
        unknown_route_tables(&mut found, schema, all);
    }
    found.0
}

/// Why a layer that is required does not do.
fn unmet(required: &Requirement, all: &BTreeMap<String, &Layer>) -> Option<String> {
    let Requirement { name, version } = required;
    let Some(layer) = all.get(name) else { return Some(format!("layer {name} does not exist")) };
    let (found, wanted) = (&layer.schema.version, version.as_ref()?);
    (found != wanted).then(|| format!("layer {name} has version {found:?}, but {wanted:?} is required"))
}

/// The dependency cycle from the required layer `name` back to the one that requires it.
fn cycle(schema: &Schema, name: &str, all: &BTreeMap<String, &Layer>) -> Option<String> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut todo = vec![name];
    while let Some(next) = todo.pop() {
        if next == schema.name {
            let mut way = vec![next];
            let mut at = next;
            while let Some(before) = came_from.get(at).filter(|_| at != name) {
                way.push(before);
                at = before;
            }
            way.push(&schema.name);
            way.reverse();
            way.dedup();
            if way.len() == 1 {
                way.push(&schema.name);
            }
            return Some(format!("dependency cycle of layers: {}", way.join(" -> ")));
        }
        for required in all.get(next).map(|layer| &layer.schema.requires).into_iter().flatten() {
            let required = required.name.as_str();
            if !came_from.contains_key(required) && required != name {
                came_from.insert(required, next);
                todo.push(required);
            }
        }
    }
    None
}

/// The layer with all that it requires, directly or not, as far as they are there.
fn closure<'a>(schema: &'a Schema, all: &BTreeMap<String, &'a Layer>) -> Vec<&'a Schema> {
    let mut names = BTreeSet::from([schema.name.as_str()]);
    let mut closure = vec![schema];
    let mut next = 0;
    while let Some(schema) = closure.get(next).copied() {
        closure.extend(
            schema
                .requires
                .iter()
                .filter_map(|required| all.get(&required.name).map(|layer| &layer.schema))
                .filter(|schema| names.insert(&schema.name)),
        );
        next += 1;
    }
    closure
}

/// Warns of accounts in files that only packages can create: programs ignore what names an account that does not exist.
fn unknown_named_accounts(found: &mut Findings, schema: &Schema, all: &BTreeMap<String, &Layer>) {
    let Some(layer) = all.get(&schema.name) else { return };
    let closure = closure(schema, all);
    let files = closure.iter().filter_map(|schema| all.get(&schema.name)).flat_map(|layer| &layer.files);
    let effects = files.filter_map(|(path, file)| Some(BootConfig::of(path)?.effects(&file.content))).flatten();
    // Groups count as well: a warning is left out rather than wrong.
    let created: BTreeSet<String> = effects
        .filter_map(|(_, effect)| match effect {
            BootEffect::User(name) | BootEffect::Group(name) | BootEffect::Member { user: name, .. } => Some(name),
            _ => None,
        })
        .collect();
    for (path, file) in layer.files.iter().filter(|(path, _)| !schema.expand.contains(path)) {
        for named in named_accounts(path, &String::from_utf8_lossy(&file.content)) {
            let (line, what, name) = (named.line, named.what, &named.name);
            let is_base = if what == "user" { validate::is_base_user } else { validate::is_base_group };
            let is_made = |schema: &&Schema| {
                schema.users.contains_key(name) || what == "group" && schema.groups.contains_key(name)
            };
            if !is_base(name) && !created.contains(name) && !closure.iter().any(is_made) {
                let effect = named.effect.alone;
                let message = format!("{path:?}: line {line}: {effect} if no package creates the {what} {name:?}");
                found.0.push(Found { pointer: pointer(layer, path), key: true, warning: true, message });
            }
        }
    }
}

/// Warns about routing tables that no layer defines: the base or a package may define them.
fn unknown_route_tables(found: &mut Findings, schema: &Schema, all: &BTreeMap<String, &Layer>) {
    let Some(layer) = all.get(&schema.name) else { return };
    let closure = closure(schema, all);
    let files = closure.iter().filter_map(|schema| all.get(&schema.name)).flat_map(|layer| &layer.files);
    let names = files.flat_map(|(path, file)| named_route_tables(path, &String::from_utf8_lossy(&file.content)));
    let names: BTreeSet<String> = names.collect();
    for (path, file) in layer.files.iter().filter(|(path, _)| !schema.expand.contains(path)) {
        for (line, name) in route_tables(path, &String::from_utf8_lossy(&file.content)) {
            if !names.contains(&name) {
                let message = format!(
                    "{path:?}: line {line}: systemd-networkd ignores the routing table {name:?} if no RouteTable= of networkd.conf defines it"
                );
                found.0.push(Found { pointer: pointer(layer, path), key: true, warning: true, message });
            }
        }
    }
}

fn unknown_accounts(found: &mut Findings, schema: &Schema, all: &BTreeMap<String, &Layer>) {
    let closure = closure(schema, all);
    let user = |name: &str| {
        let known = validate::is_base_user(name) || closure.iter().any(|schema| schema.users.contains_key(name));
        (!known)
            .then(|| format!("user {name:?} is created neither by this layer, nor by a required layer, nor by Debian"))
    };
    let group = |name: &str| {
        let made = |schema: &&Schema| schema.users.contains_key(name) || schema.groups.contains_key(name);
        let known = validate::is_base_group(name) || closure.iter().any(made);
        (!known)
            .then(|| format!("group {name:?} is created neither by this layer, nor by a required layer, nor by Debian"))
    };
    let owned = |parent: &str, path: &str, owner: &Ownership| (child(parent, path), owner.clone());
    let directories = schema.directories.iter().map(|(path, rule)| owned("/directories", path, &rule.ownership()));
    let modes = schema.modes.iter().map(|(path, owner)| owned("/modes", path, owner));
    let files = schema.files.iter().map(|(path, file)| owned("/files", path, &file.ownership(path)));
    // Scripts of packages create accounts as well; then the bake knows.
    let has_packages = closure.iter().any(|schema| {
        !schema.packages.is_empty() || schema.installs().any(|(_, _, install)| matches!(install, Install::Deb))
    });
    for (pointer, owner) in directories.chain(files).chain(modes) {
        for (key, fault) in [("owner", user(&owner.owner)), ("group", group(&owner.group))] {
            let message = fault.map(|fault| if has_packages { fault + ": a package must create it" } else { fault });
            found.0.extend(message.map(|message| {
                let pointer = format!("{pointer}/{key}");
                Found { pointer, key: false, warning: has_packages, message }
            }));
        }
    }
    for (name, account) in &schema.users {
        let pointer = child("/users", name);
        for (index, name) in account.groups.iter().enumerate() {
            found.value(format!("{pointer}/groups/{index}"), group(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LayerFile;
    use vmbake_common::digest::Digest;

    fn layer(rest: &str, files: &[(&str, &str)]) -> Layer {
        let text = format!(r#"{{"name": "x", "version": "1", "description": "x", "os": ["debian-13"]{rest}}}"#);
        let file = |(path, text): &(&str, &str)| {
            ((*path).to_owned(), LayerFile { content: text.as_bytes().to_vec(), is_executable: false })
        };
        let files = files.iter().map(file).collect();
        Layer { schema: serde_json::from_str(&text).unwrap(), files, local: BTreeMap::new(), digest: Digest::of(b"") }
    }

    #[test]
    fn owners_that_packages_may_create() {
        let owned = r#", "directories": {"/x": {"mode": "0750", "owner": "redis"}}"#;
        for (rest, is_warning) in [("", false), (r#", "packages": ["redis-server"]"#, true)] {
            let layer = layer(&format!("{owned}{rest}"), &[]);
            let found = check(&layer.schema, &BTreeMap::from([("x".to_owned(), &layer)]), true);
            let warnings: Vec<bool> = found.iter().map(|found| found.warning).collect();
            assert_eq!(warnings, [is_warning], "{rest}");
        }
    }

    #[test]
    fn users_of_cron_jobs() {
        let user = r#", "users": {"ops": {"id": 900}}"#;
        let line = |user: &str| format!("# c\n@daily {user} true\n");
        for (rest, name, sysusers, is_found) in [
            ("", "root", "", false),
            ("", "www-data", "", false),
            ("", "ops", "", true),
            (user, "ops", "", false),
            ("", "ops", "u ops -\n", false),
            ("", "ops", "m ops adm\n", false),
            ("", "ops", "u other -\n", true),
        ] {
            let files = [("/etc/cron.d/x", line(name)), ("/usr/lib/sysusers.d/x.conf", sysusers.to_owned())];
            let layer = layer(rest, &files.each_ref().map(|(path, text)| (*path, text.as_str())));
            let found = check(&layer.schema, &BTreeMap::from([("x".to_owned(), &layer)]), true);
            let warnings: Vec<_> = found.iter().filter(|found| found.warning).map(|found| &found.message).collect();
            let expected = r#""/etc/cron.d/x": line 2: cron skips the file if no package creates the user "ops""#;
            assert_eq!(warnings, vec![expected; usize::from(is_found)], "{rest} {name} {sysusers}");
        }
    }
}
