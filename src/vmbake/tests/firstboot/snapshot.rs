//! Readable snapshots of a tree, and of the versions of each path over many trees.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::machine::{USER_DATA, moved, server};

/// What is there by its path: type, mode and owner in the first line, then the content.
pub type Tree = BTreeMap<String, String>;

/// What is not looked at: inputs of the run, and what useradd writes with a date.
const SKIPPED: [&str; 7] =
    ["/proc", "/run", "/opt/podplane/share", "/var/lib/cloud", "/etc/shadow", "/etc/gshadow", USER_DATA];

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
            // useradd keeps the files that it changes, with a dash at the end, and copies what this machine has in /etc/skel.
            let is_copy =
                shown.ends_with('-') || shown.starts_with("/home/admin/") && !shown.starts_with("/home/admin/.ssh");
            if is_copy || SKIPPED.contains(&shown.as_str()) {
                continue;
            }
            let found = fs::symlink_metadata(&path).unwrap();
            let mut text = format!("{:04o} {}:{}", found.mode() & 0o7777, users[&found.uid()], groups[&found.gid()]);
            if found.is_dir() {
                text += "/\n";
                directories.push(path);
            } else {
                assert!(found.is_file(), "{shown} is not a file");
                text += "\n";
                text += &content(&path);
            }
            tree.insert(shown, text);
        }
    }
    tree
}

fn content(path: &Path) -> String {
    let ([first, second], [third, fourth]) = (server(), moved());
    // The ports of the server are those that were free.
    fs::read_to_string(path)
        .unwrap()
        .replace(first, "SERVER:1")
        .replace(second, "SERVER:2")
        .replace(third, "SERVER:3")
        .replace(fourth, "SERVER:4")
}

/// One of the names on each axis, by its number.
pub type Point = Vec<usize>;

/// The paths of all trees with their versions, and for which choices on the axes: the first version in full, the others by the
/// lines that differ from it.
pub fn text(axes: &[&[&str]], trees: &BTreeMap<Point, Tree>) -> String {
    let all: BTreeSet<Point> = trees.keys().cloned().collect();
    let mut paths: BTreeMap<&str, BTreeMap<&str, BTreeSet<Point>>> = BTreeMap::new();
    for (choice, tree) in trees {
        for (path, version) in tree {
            paths.entry(path).or_default().entry(version).or_default().insert(choice.clone());
        }
    }
    let mut text = String::new();
    for (path, versions) in paths {
        writeln!(text, "{path}").unwrap();
        let mut absent = all.clone();
        let mut versions: Vec<_> = versions.into_iter().collect();
        versions.sort_by_key(|(_, choices)| choices.first().cloned());
        let first = lines(versions[0].0);
        for (index, (version, choices)) in versions.into_iter().enumerate() {
            absent.retain(|choice| !choices.contains(choice));
            text += &conditions(axes, &choices);
            let lines = lines(version);
            let shown = match index {
                0 => lines.into_iter().map(|line| (' ', line)).collect(),
                _ => difference(&first, &lines),
            };
            for (sign, line) in shown {
                text += format!("  {sign} {line}").trim_end();
                text.push('\n');
            }
        }
        if !absent.is_empty() {
            text += &conditions(axes, &absent);
            text += "    absent\n";
        }
    }
    text
}

fn lines(text: &str) -> Vec<&str> {
    let unended = (!text.ends_with('\n')).then_some("(no line end)");
    text.lines().chain(unended).collect()
}

/// The lines of only one of two texts, in their order.
fn difference<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    // Length of the longest common part of what follows each pair of lines.
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] =
                if old[i] == new[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    lines
}

/// A set of choices as products of choices on each axis, a line for each; nothing where it is all of them.
fn conditions(axes: &[&[&str]], choices: &BTreeSet<Point>) -> String {
    let lines = products(axes, choices).into_iter().map(|line| line.join(" "));
    lines.filter(|line| line.contains(|c| !"* ".contains(c))).map(|line| format!("  [{line}]\n")).collect()
}

fn products(axes: &[&[&str]], tails: &BTreeSet<Point>) -> Vec<Vec<String>> {
    let [names, axes @ ..] = axes else { return vec![Vec::new()] };
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
        let named = || heads.iter().map(|head| names[*head]).collect::<Vec<_>>().join(",");
        let first = if heads.len() == names.len() { "*".to_owned() } else { named() };
        lines.extend(products(axes, &rest).into_iter().map(|line| [vec![first.clone()], line].concat()));
    }
    lines
}
