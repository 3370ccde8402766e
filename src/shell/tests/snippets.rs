//! Every snippet below `snippets/` has the same output, status and files as with dash. A snippet begins with a line `=== name`.

use std::fs;
use std::path::Path;

use vmbake_shell::ErrorKind;

use crate::host;

/// The snippets of all files, with names.
fn all() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snippets");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let group = file.file_stem().unwrap().to_string_lossy().into_owned();
        let snippets = crate::judge::snippets(&fs::read_to_string(&file).unwrap());
        found.extend(snippets.into_iter().map(|(name, text)| (format!("{group}: {name}"), text)));
    }
    found
}

#[test]
fn snippets_do_what_they_do_below_dash() {
    if !host::has_dash() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let snippets = all();
    assert!(snippets.len() > 300, "{} snippets", snippets.len());
    let mut differing = 0;
    for (number, (name, text)) in snippets.iter().enumerate() {
        let directory = root.join(format!("{number}"));
        let expected = host::dash(text, &directory);
        match host::ours(text, directory.to_str().unwrap()) {
            Ok(found) if found == expected => {}
            // A syntax that dash refuses too.
            Err(error) if matches!(error.kind, ErrorKind::Syntax { .. }) && expected.status == Some(2) => {}
            found => {
                differing += 1;
                println!("--- {name}\n{text}\n  dash {expected:?}\n  ours {found:?}");
            }
        }
    }
    assert_eq!(differing, 0, "of {} snippets", snippets.len());
}
