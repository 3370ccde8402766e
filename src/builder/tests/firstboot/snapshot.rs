//! What is in a tree, and the versions of each path over many trees as a text that people can read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::machine::server;
use crate::settings::{AXES, Choice};

/// What is there by its path: type, mode and owner in the first line, then the content.
pub type Tree = BTreeMap<String, String>;

/// The files whose content has nothing to do with settings: inputs of the run, and what useradd writes with a date.
const SKIPPED: [&str; 6] = ["/proc", "/run", "/dev", "/opt/podplane/share", "/etc/shadow", "/etc/gshadow"];

/// Everything below `root`.
pub fn tree(root: &Path) -> Tree {
    let names = |file: &str| -> BTreeMap<u32, String> {
        let text = fs::read_to_string(root.join("etc").join(file)).unwrap();
        let fields = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
        fields.map(|fields| (fields[2].parse().unwrap(), fields[0].to_owned())).collect()
    };
    let (users, groups) = (names("passwd"), names("group"));
    let mut tree = Tree::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let shown = format!("/{}", path.strip_prefix(root).unwrap().display());
            // useradd keeps the files that it changes, with a dash at the end.
            if SKIPPED.contains(&shown.as_str()) || shown.ends_with('-') {
                continue;
            }
            let found = fs::symlink_metadata(&path).unwrap();
            let mode = found.mode() & 0o7777;
            let mut text = format!("{mode:04o} {}:{}", users[&found.uid()], groups[&found.gid()]);
            if found.is_dir() {
                text += " directory\n";
                directories.push(path);
            } else {
                assert!(found.is_file(), "{shown} is no file");
                text += "\n";
                let [first, second] = server();
                let content = fs::read_to_string(&path).unwrap();
                // The ports of the server are those that were free.
                text += &content.replace(first, "SERVER:1").replace(second, "SERVER:2");
            }
            tree.insert(shown, text);
        }
    }
    tree
}

/// The paths of all trees with their versions, and for which choices.
pub fn text(trees: &BTreeMap<Choice, Tree>) -> String {
    let all: BTreeSet<Choice> = trees.keys().copied().collect();
    let mut versions: BTreeMap<&str, BTreeMap<&str, BTreeSet<Choice>>> = BTreeMap::new();
    for (choice, tree) in trees {
        for (path, version) in tree {
            versions.entry(path).or_default().entry(version).or_default().insert(*choice);
        }
    }
    let mut text = String::new();
    for (path, versions) in versions {
        writeln!(text, "{path}").unwrap();
        let mut absent = all.clone();
        let mut sorted: Vec<_> = versions.into_iter().collect();
        sorted.sort_by_key(|(_, choices)| choices.first().copied());
        for (version, choices) in sorted {
            absent.retain(|choice| !choices.contains(choice));
            let mut lines = version.split_inclusive('\n');
            if choices != all {
                text += &conditions(&choices);
            }
            write!(text, "  {}", lines.next().unwrap()).unwrap();
            for line in lines {
                text += if line == "\n" { "" } else { "    " };
                text += line;
            }
            if !text.ends_with('\n') {
                text += "(no line end)\n";
            }
        }
        if !absent.is_empty() {
            text += &conditions(&absent);
            text += "  absent\n";
        }
    }
    text
}

/// A set of choices as products of choices on each axis, a line for each.
fn conditions(choices: &BTreeSet<Choice>) -> String {
    let tails: BTreeSet<Vec<usize>> = choices.iter().map(|choice| choice.0.to_vec()).collect();
    let lines = products(&tails, 0).into_iter().map(|line| format!("  [{}]\n", line.join(" ")));
    lines.collect()
}

fn products(tails: &BTreeSet<Vec<usize>>, axis: usize) -> Vec<Vec<String>> {
    let Some(names) = AXES.get(axis) else { return vec![Vec::new()] };
    let mut heads: BTreeMap<usize, BTreeSet<Vec<usize>>> = BTreeMap::new();
    for tail in tails {
        heads.entry(tail[0]).or_default().insert(tail[1..].to_vec());
    }
    let mut groups: Vec<(Vec<usize>, BTreeSet<Vec<usize>>)> = Vec::new();
    for (head, rest) in heads {
        match groups.iter_mut().find(|(_, other)| *other == rest) {
            Some((heads, _)) => heads.push(head),
            None => groups.push((vec![head], rest)),
        }
    }
    let mut lines = Vec::new();
    for (heads, rest) in groups {
        let all = heads.len() == names.len();
        let first =
            if all { "*".to_owned() } else { heads.iter().map(|head| names[*head]).collect::<Vec<_>>().join(",") };
        for line in products(&rest, axis + 1) {
            lines.push([vec![first.clone()], line].concat());
        }
    }
    lines
}
