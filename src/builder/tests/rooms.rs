//! The rooms of the builder: `lib.rs` lists them from the lowest to the highest, then the vocabulary. No module may use a room that
//! comes later, the vocabulary uses no room, and neither has dependency cycles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the vocabulary begins in `lib.rs`.
const VOCABULARY: &str = "// The vocabulary of all rooms.";
/// As many pairs of rooms may know each other.
const MOST_ARROWS: usize = 60;

/// A module, one that it uses, and where it does.
type Uses = BTreeMap<(String, String), String>;

/// The modules of the library in their order: rooms, and vocabulary.
fn modules() -> (Vec<String>, Vec<String>) {
    let lib = fs::read_to_string(root().join("lib.rs")).unwrap();
    let (rooms, vocabulary) = lib.split_once(VOCABULARY).unwrap();
    let vocabulary = vocabulary.split("#[cfg(test)]").next().unwrap();
    let names = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.strip_prefix("pub ").unwrap_or(line));
        lines.filter_map(|line| Some(line.strip_prefix("mod ")?.trim_end_matches(';').to_owned())).collect()
    };
    (names(rooms), names(vocabulary))
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// All sources of the program, in the order of their names.
pub fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root(), &mut found);
    found.sort();
    found
}

/// The lines of a source outside of comments and unit tests, counted from 0.
pub fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// What each module uses, outside of comments and unit tests.
fn uses() -> Uses {
    let mut uses = Uses::new();
    for path in sources() {
        let inside = path.strip_prefix(root()).unwrap();
        let module = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(&path).unwrap();
        for (index, line) in code(&text) {
            let place = || format!("{}:{}: {}", inside.display(), index + 1, line.trim());
            assert!(!line.contains("crate::{"), "{}: a line for each module, please", place());
            for part in line.split("crate::").skip(1) {
                let used: String = part.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect();
                if used != module {
                    uses.entry((module.clone(), used)).or_insert_with(place);
                }
            }
        }
    }
    uses
}

#[test]
fn no_room_reaches_upwards() {
    let (rooms, vocabulary) = modules();
    let uses = uses();
    assert!(rooms.len() > 9 && vocabulary.len() > 9 && uses.len() > 50, "{rooms:?} {vocabulary:?}");
    let floor = |name: &String| rooms.iter().position(|room| room == name);
    let mut wrong = Vec::new();
    for ((from, to), place) in &uses {
        let is_wrong = match (floor(from), floor(to)) {
            (Some(from), Some(to)) => to > from,
            // `main` is no room and stands above all; `lib` uses nothing.
            (None, Some(_)) => vocabulary.contains(from),
            _ => false,
        };
        if is_wrong {
            wrong.push(format!("{from} reaches up to {to}: {place}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let arrows = uses.keys().filter(|(from, to)| floor(from).is_some() && floor(to).is_some()).count();
    assert!(arrows <= MOST_ARROWS, "{arrows} arrows between rooms, {MOST_ARROWS} are enough");
}

#[test]
fn the_vocabulary_has_no_cycles() {
    let (_, vocabulary) = modules();
    let uses = uses();
    let mut left: BTreeSet<&String> = vocabulary.iter().collect();
    // Takes away what uses nothing that is left, until that is nothing at all.
    while !left.is_empty() {
        let is_free = |name: &&String| !uses.keys().any(|(from, to)| from == *name && left.contains(to));
        let free: Vec<&String> = left.iter().copied().filter(is_free).collect();
        assert!(!free.is_empty(), "these use each other: {left:?}");
        free.iter().for_each(|name| assert!(left.remove(name)));
    }
}

#[test]
fn every_hint_is_told() {
    let table = fs::read_to_string(root().join("cli/advice.rs")).unwrap();
    let mut count = 0;
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        for line in code(&text).filter_map(|(_, line)| line.strip_prefix("impl Hint for ")) {
            let name = line.trim_end_matches(" {}").trim_end_matches(" {");
            assert!(table.contains(&format!("known::<{name}>,")), "{name} is not in the table of cli/advice.rs");
            count += 1;
        }
    }
    assert!(count > 20);
}
