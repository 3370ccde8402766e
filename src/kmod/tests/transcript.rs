//! Replays a transcript of Debian's depmod, modprobe and modinfo, which `tests/test_kmod.py` writes. `file` lists what changed since the last
//! `depmod`; `refuse` lists a part of our error, where the result of depmod depends on the order of a directory or is not known.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;

use sha2::{Digest, Sha256};
use vmbake_kmod::{Action, Indexes, KmodError, Module, Modules, Release, linux_version};

use crate::tree::{MODULES, Tree, module};

const TRANSCRIPT: &str = include_str!("transcript.txt");

#[test]
fn results_are_those_of_kmod() {
    let made = replay(1);
    assert!(made == TRANSCRIPT, "{}", first_difference(&made));
    assert_eq!(replay(4), made);
}

fn first_difference(made: &str) -> String {
    let lines = made.lines().zip(TRANSCRIPT.lines()).enumerate();
    let mut different = lines.filter(|(_, (found, expected))| found != expected);
    let first = different.next().map(|(number, (found, expected))| (number + 1, found, expected));
    format!("line, found, expected: {first:?}")
}

fn replay(threads: usize) -> String {
    let (mut made, mut tree, mut earlier) = (String::new(), Tree::default(), BTreeMap::new());
    let mut lines = TRANSCRIPT.lines().peekable();
    while let Some(line) = lines.next() {
        let mut given = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
            given.push(&line[1..]);
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if matches!(word, "status" | "file" | "sorted") {
            continue;
        }
        writeln!(made, "{line}").unwrap();
        record(&mut made, &given);
        let path = if rest.starts_with('/') { rest.to_owned() } else { format!("{MODULES}/{rest}") };
        match word {
            "case" => tree = Tree::default(),
            "put" => drop(tree.0.insert(path, format!("{}\n", given.join("\n")).into_bytes())),
            "bare" => drop(tree.0.insert(path, given.join("\n").into_bytes())),
            "fields" => {
                drop(tree.0.insert(path, given.iter().flat_map(|line| [line, "\0"]).collect::<String>().into()))
            }
            "module" => drop(tree.0.insert(path, module(&given))),
            "depmod" | "errsyms" => {
                let map = (word == "errsyms").then(|| tree.0["/boot/System.map"].clone());
                let result = tree.depmod(Release::of_version(rest).unwrap(), threads, map.as_deref());
                depmod(&mut tree, result, &mut earlier, &mut made);
            }
            "refuse" => {
                let error = tree.depmod(Release::of_version(rest).unwrap(), threads, None).unwrap_err().to_string();
                assert!(error.contains(given[0]), "{error}");
            }
            "sort" => {
                given.sort_by(|left, right| linux_version::compare(left.as_bytes(), right.as_bytes()));
                writeln!(made, "sorted").unwrap();
                record(&mut made, &given);
            }
            "modprobe" | "resolve" | "modinfo" => {
                let (is_found, answer) = query(&tree, word, &given).unwrap();
                writeln!(made, "status {}", u8::from(!is_found)).unwrap();
                record(&mut made, &answer);
            }
            _ => assert_eq!(word, "#", "{line}"),
        }
    }
    made
}

fn record(made: &mut String, lines: &[impl AsRef<str>]) {
    lines.iter().for_each(|line| writeln!(made, "|{}", line.as_ref()).unwrap());
}

fn depmod(
    tree: &mut Tree,
    result: Result<Indexes, KmodError>,
    earlier: &mut BTreeMap<&'static str, Vec<u8>>,
    made: &mut String,
) {
    let Ok(indexes) = result else {
        return writeln!(made, "status 1").unwrap();
    };
    writeln!(made, "status 0").unwrap();
    record(made, &indexes.warnings);
    let written: BTreeMap<_, _> = indexes.files.into_iter().collect();
    for (name, content) in written {
        if earlier.get(name) != Some(&content) {
            writeln!(made, "file {name}").unwrap();
            record(made, &shown(name, &content));
        }
        tree.0.insert(format!("{MODULES}/{name}"), content.clone());
        earlier.insert(name, content);
    }
}

fn shown(name: &str, content: &[u8]) -> Vec<String> {
    if name.ends_with(".bin") {
        let digest: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        return vec![format!("{} bytes, {digest}", content.len())];
    }
    std::str::from_utf8(content).unwrap().lines().map(str::to_owned).collect()
}

/// Whether there is an answer, and its lines.
fn query(tree: &Tree, word: &str, given: &[&str]) -> Result<(bool, Vec<String>), Box<dyn Error>> {
    let modules = Modules::read(tree, MODULES)?;
    let (flag, name) = (given[0], given[given.len() - 1]);
    let lines = match word {
        "resolve" => modules.lookup(name)?.into_iter().map(|target| target.name).collect(),
        "modinfo" => {
            let fields = match modules.path(name)? {
                Some(path) => Module::read(tree, &path)?.fields,
                None => modules.builtin_fields(name),
            };
            let values = fields.into_iter().filter(|(key, _)| key == flag.as_bytes()).map(|(_, value)| value);
            values.map(String::from_utf8).collect::<Result<_, _>>()?
        }
        _ => {
            let Some(actions) = modules.show_depends(name, flag == "--ignore-install")? else {
                return Ok((false, Vec::new()));
            };
            actions.iter().map(Action::to_string).collect()
        }
    };
    Ok((true, lines))
}
