//! One name, one thing: no two types that are public, in the crate or beyond it, have the same name. Types that only a module
//! and its parent know may share theirs.

use std::collections::BTreeMap;
use std::fs;

use super::rooms::{code, root, sources};

/// The type that a line makes public in the crate or beyond it.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let rest = rest.strip_prefix("pub ").or_else(|| rest.strip_prefix("pub(crate) "))?;
    let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|char: char| !(char.is_alphanumeric() || char == '_')).next()
}

#[test]
fn no_two_public_types_share_a_name() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources() {
        let inside = path.strip_prefix(root()).unwrap().display();
        let text = fs::read_to_string(&path).unwrap();
        for (index, line) in code(&text) {
            if let Some(name) = public_type(line) {
                found.entry(name.to_owned()).or_default().push(format!("{inside}:{}", index + 1));
            }
        }
    }
    assert!(found.len() > 150, "only {} types were found", found.len());
    found.retain(|_, places| places.len() > 1);
    assert!(found.is_empty(), "each of these names is that of several things: {found:#?}");
}
