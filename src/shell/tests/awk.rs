//! Programs of awk do what they do with the real mawk. A program begins with a line `=== name`.

use std::fs;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use vmbake_shell::ErrorKind;

use crate::errors::error;
use crate::host;

/// Whether mawk and dash can be asked; if not, that is told.
fn has_mawk() -> bool {
    let mut version = Command::new("mawk");
    let found = version.args(["-W", "version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return host::has_dash();
    }
    crate::skip::skip("awk compared with mawk: mawk is missing");
    false
}

#[test]
fn awk_does_what_mawk_does() {
    if !has_mawk() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let mut differing = 0;
    let programs: Vec<_> = include_str!("awk.txt").split("\n=== ").skip(1).collect();
    assert!(programs.len() > 15, "{} programs", programs.len());
    for (number, program) in programs.iter().enumerate() {
        let (name, text) = program.split_once('\n').unwrap();
        let directory = root.join(format!("{number}"));
        let expected = host::dash(text, &directory);
        // The judge must have understood the program.
        assert_eq!(expected.status, Some(0), "{name}");
        match host::ours(text, directory.to_str().unwrap()) {
            Ok(found) if found == expected => {}
            found => {
                differing += 1;
                println!("--- {name}\n{text}\n  mawk {expected:?}\n  ours {found:?}");
            }
        }
    }
    assert_eq!(differing, 0, "of {}", programs.len());
}

/// Arithmetic whose results stay small and finite.
fn arithmetic() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0_i32..40).prop_map(|n| n.to_string()),
        (0_i32..400).prop_map(|n| format!("{}", f64::from(n) / 8.0)),
        Just("x".to_owned()),
        Just("\"7 \"".to_owned()),
        Just("$2".to_owned()),
        Just("unset".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let operator = prop::sample::select(vec!["+", "-", "*", "<", "<=", "==", "!=", ">", "&&", "||", " ", "~"]);
        prop_oneof![
            4 => (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} ({right}))")),
            1 => inner.clone().prop_map(|inner| format!("-({inner})")),
            1 => inner.clone().prop_map(|inner| format!("(!({inner}))")),
            1 => (inner.clone(), 1_i32..9).prop_map(|(left, right)| format!("({left} / {right} % 7)")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            1 => (inner.clone(), 1_i32..5).prop_map(|(text, at)| format!("substr({text}, {at}, 3)")),
            1 => inner.prop_map(|inner| format!("int({inner})")),
        ]
    })
}

fn format() -> impl Strategy<Value = String> {
    let letter = prop::sample::select(vec![
        "d", "s", "e", "f", "g", "G", "i", "5s", "-8d", "08.3f", "+.2e", " g", ".9g", "#.3g",
    ]);
    letter.prop_map(|letter| format!("%{letter}"))
}

#[test]
fn arithmetic_and_formats_are_those_of_mawk() {
    if !has_mawk() {
        return;
    }
    const CASES: usize = 1_500;
    let temp = tempfile::tempdir().unwrap();
    let directory = fs::canonicalize(temp.path()).unwrap().join("cases");
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]));
    let strategy = (arithmetic(), format());
    let cases: Vec<_> = (0..CASES).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
    let line = |(expression, format): &(String, String)| {
        format!(
            "echo 'a 12.5 3' | mawk '{{x = 3; y = {expression}; print y; printf \"<{format}>\\n\", y}}' | tr '\\n' ' '; echo\n"
        )
    };
    let mut differing = 0;
    let mut known = 0;
    let text: String = cases.iter().map(line).collect();
    let expected = host::dash(&text, &directory);
    for (case, expected) in cases.iter().zip(expected.stdout.split("\\n")) {
        match host::ours(&line(case), directory.to_str().unwrap()) {
            Ok(found) if found.stdout.trim_end_matches("\\n") == expected => known += 1,
            // What mawk of another release writes in another way, and integers of more than 32 bits.
            Err(error) if matches!(error.kind, ErrorKind::Unsupported { .. }) => {}
            found => {
                differing += 1;
                println!("{case:?}\n  mawk {expected}\n  ours {found:?}");
            }
        }
    }
    assert_eq!(differing, 0, "of {CASES}");
    assert!(known > CASES * 9 / 10, "{known} of {CASES} were not refused");
}

#[test]
fn awk_is_refused_where_awks_do_not_agree() {
    for program in [
        "function f(x) { return x }",
        "BEGIN { f(1) }",
        "{ getline }",
        "BEGIN { while ((getline line < \"f\") > 0) n++ }",
        "BEGIN { \"date\" | getline }",
        "BEGIN { print > \"f\" }",
        "BEGIN { print 1 >> \"f\" }",
        "BEGIN { print 1, 2 | \"cat\" }",
        "BEGIN { printf \"a\" > \"/dev/stderr\" }",
        "BEGIN { system(\"ls\") }",
        "BEGIN { close(\"f\") }",
        "BEGIN { print log(2) }",
        "BEGIN { print ARGV[1] }",
        "BEGIN { IGNORECASE = 1 }",
        "BEGIN { print 1 / 0 }",
        "BEGIN { print 5 % 0 }",
        "BEGIN { print 2 ^ 0.5 }",
        "BEGIN { print 1e300 * 1e300 }",
        "BEGIN { print 2 ^ 31 }",
        "BEGIN { printf \"%d\", 2 ^ 31 }",
        "BEGIN { printf \"%x\", -1 }",
        "BEGIN { printf \"%s %s\", 1 }",
        "BEGIN { printf \"%*d\", 5, 1 }",
        "BEGIN { printf \"%c\", nothing }",
        "BEGIN { printf \"%.99999f\", 1 }",
        "BEGIN { CONVFMT = \"%s\"; print 0.5 \"\" }",
        "BEGIN { print substr(\"abc\", 1.5) }",
        "BEGIN { print \"0x10\" + 0 }",
        "BEGIN { print \"infinite\" + 0 }",
        "BEGIN { $0 = \"nan\"; print $1 == 0 }",
        "BEGIN { print 0x10 }",
        "BEGIN { print 010 }",
        "BEGIN { print \"\\x41\" }",
        "BEGIN { print \"\\.\" }",
        "BEGIN { s = \"a\"; sub(/a/, \"\\\\\\\\\", s) }",
        "/a{2}/",
        "/a\\y/",
        "/\\<a/",
        "/[/]/",
        "/a**/",
        "BEGIN { print ! x ~ y }",
        "BEGIN { print 2 ** 3 }",
        "{ print $NF++ }",
        "{ print $(NF)-- }",
        "BEGIN { print index(\"a\", \"\") }",
        "BEGIN { print substr(\"abc\", 0, 2) }",
        "BEGIN { printf \"%c\", \"\" }",
        "BEGIN { RS = \"ab\" } END { print NR }",
        "BEGIN { RS = \"\"; FS = \":\" } { print $1 }",
        "BEGIN { x = 1; x[1] = 2 }",
        "BEGIN { next }",
        "BEGIN { break }",
        "BEGIN { return }",
        "BEGIN { nextfile }",
        "BEGIN { NF = -1 }",
        "BEGIN { $(-1) = 1 }",
        "BEGIN { length(1, 2) }",
        "BEGIN { sub(/a/, \"b\", \"c\") }",
        "BEGIN { print (1, 2) + 1 }",
        "BEGIN { 1 = 2 }",
        "BEGIN { if (1) print 1; else }",
        "BEGIN { print \"a }",
        "BEGIN { print 1",
        "BEGIN",
        "}",
        "@include \"f\"",
    ] {
        let source = format!("echo a > f; awk '{program}' f");
        let found = error(&source).kind;
        assert!(matches!(found, ErrorKind::Unsupported { .. }), "{program}: {found:?}");
    }
    for source in
        ["awk", "awk -W version", "awk -Ft 1", "awk -F '' 1", "awk -v x 1", "awk -v 'x=\\q' 1", "awk -f a -f b"]
    {
        let found = error(source).kind;
        assert!(matches!(found, ErrorKind::Unsupported { .. }), "{source}: {found:?}");
    }
    let found = error("awk 'BEGIN { getline x }'").kind;
    assert_eq!(found, ErrorKind::Unsupported { what: "“getline” in the awk program BEGIN { getline x }".to_owned() });
    for source in ["awk 'BEGIN { srand() }'", "awk 'BEGIN { print rand() }'"] {
        assert!(matches!(error(source).kind, ErrorKind::Random { .. }), "{source}");
    }
    for source in ["awk 'BEGIN { print systime() }'", "awk 'BEGIN { print strftime(\"%Y\") }'"] {
        assert!(matches!(error(source).kind, ErrorKind::Clock { .. }), "{source}");
    }
    // Where gawk is the awk of the tree, a letter behind a backslash is none.
    let source = "printf x > /usr/bin/gawk; awk '/\\s/' /etc/passwd";
    assert!(matches!(error(source).kind, ErrorKind::Unsupported { .. }));
}
