//! Environment files, compared with their readers: two shells and systemd's function for `EnvironmentFile=`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use vmbake_firstboot::env::{parse, render};

#[path = "../../disk/tests/skip.rs"]
mod skip;

/// Variables by name; `None` if the file is refused.
type Read = Option<BTreeMap<String, String>>;

/// A reader of numbered files in a directory, which prints `NAME=value` and an empty one, terminated by NUL.
const SHELL: &str = r#"
    number=0
    while [ "$number" -lt "$1" ]; do
        (set -a; . "./$number" && exec env -0) || printf '!\0'
        printf '\0'
        number=$((number + 1))
    done"#;
const ALL: [&str; 3] = ["bash", "dash", "systemd"];
const SYSTEMD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/environment.py");

/// Results for the files, only for variables `V…`, since shells have others.
fn opinions(texts: &[Vec<u8>], asked: &[&str]) -> Vec<(&'static str, Vec<Read>)> {
    let folder = tempfile::tempdir().unwrap();
    for (number, text) in texts.iter().enumerate() {
        std::fs::write(folder.path().join(number.to_string()), text).unwrap();
    }
    let count = texts.len().to_string();
    let place = folder.path().to_str().unwrap();
    let mut opinions = Vec::new();
    for (who, arguments) in [
        ("bash", vec!["bash", "--norc", "--noprofile", "-c", SHELL, "bash", &count]),
        ("dash", vec!["dash", "-c", SHELL, "dash", &count]),
        ("systemd", vec!["/usr/bin/python3", SYSTEMD, place, &count]),
    ] {
        if !asked.contains(&who) {
            continue;
        }
        // Bare values such as *? must not match file names, nor ~ a home directory.
        let output = Command::new(arguments[0])
            .args(&arguments[1..])
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LC_ALL", "C.UTF-8")
            .stderr(Stdio::null())
            .output();
        match output {
            Ok(output) if output.status.success() => {
                let named = if who == "systemd" { "" } else { "V" };
                opinions.push((who, answers(&output.stdout, named, texts.len())));
            }
            Ok(output) if who == "systemd" && output.status.code() != Some(3) => panic!("{who}: {output:?}"),
            _ => skip::skip(&format!("{who} is not installed")),
        }
    }
    opinions
}

fn answers(stdout: &[u8], named: &str, count: usize) -> Vec<Read> {
    let mut fields = stdout.split(|byte| *byte == 0);
    let mut one = || {
        let fields: Vec<&[u8]> = fields.by_ref().take_while(|field| !field.is_empty()).collect();
        let pair = |field: &&[u8]| {
            let text = String::from_utf8_lossy(field);
            text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        let ours = |(name, _): &(String, String)| name.starts_with(named);
        (fields != [b"!"]).then(|| fields.iter().filter_map(pair).filter(ours).collect())
    };
    (0..count).map(|_| one()).collect()
}

fn pairs(values: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

fn ours(text: &[u8]) -> Read {
    parse(Path::new("x.env"), text).ok()
}

/// Asserts that all readers give the expected values.
fn agree(files: &[(Vec<u8>, BTreeMap<String, String>)], asked: &[&str]) {
    let texts: Vec<Vec<u8>> = files.iter().map(|(text, _)| text.clone()).collect();
    for (who, found) in opinions(&texts, asked) {
        for ((text, expected), found) in files.iter().zip(found) {
            assert_eq!(found.as_ref(), Some(expected), "{who}: {}", text.escape_ascii());
        }
    }
}

/// Deterministic values of a proptest `strategy`.
fn samples<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn everybody_reads_what_is_rendered() {
    let values =
        samples(prop::collection::btree_map("V[A-Za-z0-9_]{0,4}", r#"([^\x00]|['"\\$`~#\n\r\t ;é]){0,20}"#, 0..4), 300);
    let file = |values: BTreeMap<String, String>| Some((render(pairs(&values)).ok()?.into_bytes(), values));
    let files: Vec<_> = values.into_iter().filter_map(file).collect();
    assert!(files.len() > 250, "only {} of 300 can be written", files.len());
    agree(&files, &ALL);
}

/// Alone, at both ends and doubled; the next variable is that of the file, not of a value.
#[test]
fn everybody_reads_every_character() {
    let mut characters: Vec<char> = ('\u{1}'..='\u{17f}').collect();
    characters.extend(
        "\u{600}\u{2028}\u{2029}\u{3000}\u{d7ff}\u{e000}\u{fdcf}\u{fdf0}\u{feff}\u{fffd}\u{10000}\u{10fffd}".chars(),
    );
    let file = |one: &char| {
        let values = [format!("{one}"), format!("{one}{one}a{one}"), format!("a{one}\nV9=b"), format!("a\\{one}")];
        let names = ["V1", "V2", "V3", "V4"].map(str::to_owned);
        let values: BTreeMap<String, String> = names.into_iter().zip(values).collect();
        (render(pairs(&values)).unwrap().into_bytes(), values)
    };
    agree(&characters.iter().map(file).collect::<Vec<_>>(), &ALL);
}

/// Contents of manually written files.
#[test]
fn everybody_reads_what_is_accepted() {
    // Without $, backtick and bare backslash, which only a shell evaluates, and without carriage returns, of which the module says
    // that they differ.
    let line = r#"(export[ \t]+)?V[a-c]=('[^'\x00$`\\\r]{0,8}'|"[^"\x00$`\\\r]{0,8}"){0,3}([a-z0-9éß*?\[\]{},:=!~@%^+./#\-]{0,4}|'[^'\x00$`\\\r]{0,8}'){0,2}[ \t]*(#[a-z'"]{0,3})?"#;
    let text = format!("(([ \t]*#[^\n\r\0$`]{{0,6}}|[ \t]*|[ \t]*{line})\n){{0,4}}");
    let texts = samples(proptest::string::string_regex(&text).unwrap(), 2000);
    let file = |text: String| Some((text.clone().into_bytes(), ours(text.as_bytes())?));
    let files: Vec<_> = texts.into_iter().filter_map(file).collect();
    assert!(files.len() > 300, "only {} of 2000 are accepted", files.len());
    agree(&files, &ALL);
}

/// With all characters that are special to one of the readers.
#[test]
fn systemd_reads_what_is_accepted() {
    let part = r#"([ab \t=#;\\'"$`~é\r]|\\\n|\\"|\\'|'"'"'|'\\''|\n|\u{fffe}|\nVb=|\nLD=){0,12}"#;
    let text = format!(r#"((V[a-c]=|#|export Va=){part}\n){{1,3}}"#);
    let texts: Vec<Vec<u8>> =
        samples(proptest::string::string_regex(&text).unwrap(), 60_000).into_iter().map(String::into_bytes).collect();
    let raw = (1..=u8::MAX).flat_map(|byte| [vec![b'V', b'=', byte, b'\n'], [b"V='a", &[byte][..], b"b'\n"].concat()]);
    // Without files that are read as by a shell.
    let files: Vec<_> = texts
        .into_iter()
        .chain(raw)
        .filter(|text| !text.windows(2).any(|two| two == br"\'"))
        .filter_map(|text| Some((text.clone(), ours(&text)?)))
        .collect();
    assert!(files.len() > 2000, "only {} are accepted", files.len());
    agree(&files, &["systemd"]);
}

/// An apostrophe as quoted by tools that write for scripts.
#[test]
fn shells_read_what_is_quoted_for_them() {
    let values = samples(prop::collection::btree_map("V[a-c]", r#"([^\x00\r]|['\n"\\$`=# ]){0,12}"#, 1..4), 300);
    let quoted = |(name, value): (&str, &str)| format!("{name}='{}'\n", value.replace('\'', r"'\''"));
    let file = |values: BTreeMap<String, String>| {
        let text: String = pairs(&values).map(quoted).collect();
        (ours(text.as_bytes()).as_ref() == Some(&values)).then_some((text.into_bytes(), values))
    };
    let files: Vec<_> = values.into_iter().filter_map(file).collect();
    assert!(files.len() > 250, "only {} of 300 are read back", files.len());
    agree(&files, &["bash", "dash"]);
}

/// Input that systemd reads differently from a shell, or not at all: this is why it is refused.
#[test]
fn what_is_refused_is_read_differently() {
    let texts = ["export V=a", "V=a # b", "V=a'b'", "V='\u{fffe}'", "#\rV=a", "#\\\nV=a\nVb="];
    let texts = texts.map(|text| format!("{text}\n").into_bytes());
    assert!(texts.iter().all(|text| ours(text).is_none()));
    let opinions = opinions(&texts, &ALL);
    let [(_, bash), (_, dash), (_, systemd)] = &opinions[..] else { return };
    assert_eq!(bash, dash);
    let differs = bash.iter().zip(systemd).map(|(shell, systemd)| shell != systemd).collect::<Vec<_>>();
    // Comments continue after a backslash before 254.
    assert_eq!(&differs[..5], [true; 5], "{opinions:?}");
}
