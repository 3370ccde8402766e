//! Inside the rooms: modules below one parent have no dependency cycles. What a module takes from those above it, such as the
//! error of its parent, counts as little as what a parent takes from those below it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::rooms::{code, root, sources};

/// A module, by the names of those above it and its own.
type Module = Vec<String>;

/// A path inside of `root` as a module; `lib` and `main` have nothing above them.
fn module(inside: &Path) -> Module {
    inside.with_extension("").iter().map(|name| name.to_str().unwrap().to_owned()).collect()
}

/// The paths of a text that begin with `crate` or `super`, those in braces one by one.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut before = None;
    for (at, word) in words(text) {
        if matches!(word, "crate" | "super") && text[at + word.len()..].starts_with("::") && before != Some(b':') {
            tree(&text[at..], &[], &mut found);
        }
        before = text.as_bytes().get(at + word.len()).copied();
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_inside = |char: char| char.is_alphanumeric() || char == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].find(is_inside)?;
        let rest = &text[at..];
        let word = &rest[..rest.find(|char| !is_inside(char)).unwrap_or(rest.len())];
        let start = at;
        at += word.len();
        Some((start, word))
    })
}

/// Reads one tree of names, as after `use`, and returns what follows it.
fn tree<'a>(text: &'a str, above: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let mut rest = text.trim_start();
    let mut path = above.to_vec();
    loop {
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside.trim_start();
            while !rest.starts_with('}') && !rest.is_empty() {
                rest = tree(rest, &path, found);
                // Other names of what is used, and commas.
                rest = rest.trim_start_matches(|char| char != ',' && char != '}').trim_start_matches(',').trim_start();
            }
            return rest.strip_prefix('}').unwrap_or(rest);
        }
        let (at, word) = words(rest).next().unwrap_or((1, ""));
        if at == 0 {
            path.push(word.to_owned());
            rest = &rest[word.len()..];
        }
        match rest.strip_prefix("::") {
            Some(next) if at == 0 => rest = next,
            _ => {
                found.push(path);
                return rest;
            }
        }
    }
}

/// The module that a path in `module` leads into, if it is one of `all`.
fn resolve(module: &Module, path: &[String], all: &BTreeSet<Module>) -> Option<Module> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    let base = if ups == 0 { &[][..] } else { module.get(..module.len().checked_sub(ups)?)? };
    let full: Module = base.iter().chain(&path[ups.max(1)..]).cloned().collect();
    (1..=full.len()).rev().map(|len| full[..len].to_vec()).find(|found| all.contains(found))
}

/// By parent: which modules below it use which others, and where.
fn uses() -> BTreeMap<Module, BTreeMap<(String, String), String>> {
    let files: BTreeMap<Module, _> =
        sources().into_iter().map(|path| (module(path.strip_prefix(root()).unwrap()), path)).collect();
    let all: BTreeSet<Module> = files.keys().cloned().collect();
    let mut uses: BTreeMap<Module, BTreeMap<_, _>> = BTreeMap::new();
    for (module, file) in files {
        let text = fs::read_to_string(file).unwrap();
        let code: String = code(&text).flat_map(|(_, line)| [line, "\n"]).collect();
        for path in paths(&code) {
            let Some(used) = resolve(&module, &path, &all) else { continue };
            let shared = module.iter().zip(&used).take_while(|(one, other)| one == other).count();
            if let (Some(from), Some(to)) = (module.get(shared), used.get(shared)) {
                let place = format!("{} uses {}", module.join("::"), path.join("::"));
                let below = uses.entry(module[..shared].to_vec()).or_default();
                below.entry((from.clone(), to.clone())).or_insert(place);
            }
        }
    }
    uses
}

#[test]
fn siblings_have_no_cycles() {
    let all = uses();
    assert!(
        all.len() > 20 && all.values().map(BTreeMap::len).sum::<usize>() > 150,
        "only {} modules were read",
        all.len()
    );
    for (parent, mut uses) in all.into_iter().filter(|(parent, _)| !parent.is_empty()) {
        // Takes away what uses nothing that is left, and what nothing that is left uses, until that is nothing at all.
        loop {
            let users: BTreeSet<String> = uses.keys().map(|(from, _)| from.clone()).collect();
            let used: BTreeSet<String> = uses.keys().map(|(_, to)| to.clone()).collect();
            let before = uses.len();
            uses.retain(|(from, to), _| users.contains(to) && used.contains(from));
            if uses.len() == before {
                break;
            }
        }
        assert!(uses.is_empty(), "modules below {} use each other: {uses:#?}", parent.join("::"));
    }
}

#[test]
fn all_forms_of_paths_are_read() {
    let text =
        "use super::{a, b::{c, d as e}, self};\nlet x = crate::f::g(super::super::h::I::<u8>::new(), my::super_thing);";
    let found: Vec<String> = paths(text).iter().map(|path| path.join("::")).collect();
    let expected = ["super::a", "super::b::c", "super::b::d", "super::self", "crate::f::g", "super::super::h::I"];
    assert_eq!(found, expected);
}
