use super::*;

use std::process::{Command, Stdio};

use proptest::prelude::*;

fn read(text: &str) -> Result<BTreeMap<String, String>, Error> {
    parse(Path::new("x.env"), text.as_bytes())
}

fn pairs(read: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn values_are_read_as_a_shell_reads_them() {
    for (text, expected) in [
        ("", &[][..]),
        ("\n \t\n# A=b\n  # c", &[]),
        ("A=b", &[("A", "b")]),
        ("A=b\nA=c\n", &[("A", "c")]),
        (" export\t A=b # c\n\texport B=", &[("A", "b"), ("B", "")]),
        ("A='b c'\"d e\"f", &[("A", "b cd ef")]),
        (r"A='b'\''c'", &[("A", "b'c")]),
        (r#"A="b\"\\\$\`\n"c\"\ d"#, &[("A", "b\"\\$`\\nc\" d")]),
        ("A=\"b\nc\"'\nd'\nB=2", &[("A", "b\nc\nd"), ("B", "2")]),
        ("A=\"b\\\nc\"d\\\ne", &[("A", "bcde")]),
        ("A=$B`c`${D}$'e'\n", &[("A", "$B`c`${D}$e")]),
        ("A='$(b)'\"`c`$(d)\"$E`f`", &[("A", "$(b)`c`$(d)$E`f`")]),
        ("A=b#c#\nB=a=b", &[("A", "b#c#"), ("B", "a=b")]),
        ("A=b\r\n\r\n# c\r\nB='d\r\ne'\r", &[("A", "b"), ("B", "d\r\ne")]),
        ("_a1=\u{fc}*?[]{x,y}!", &[("_a1", "\u{fc}*?[]{x,y}!")]),
        ("A=b~:c/~ ", &[("A", "b~:c/~")]),
    ] {
        assert_eq!(pairs(&read(text).unwrap()), expected, "{text:?}");
    }
}

#[test]
fn what_is_no_file_with_variables_is_refused_with_its_line() {
    for (text, line, expected) in [
        ("A=b\nA", 2, "NAME=value"),
        ("=b", 1, "NAME=value"),
        ("1A=b", 1, "NAME=value"),
        ("\u{feff}A=b", 1, "NAME=value"),
        ("A =b", 1, "NAME=value"),
        ("A+=b", 1, "NAME=value"),
        ("A-B=c", 1, "NAME=value"),
        ("export A", 1, "NAME=value"),
        ("exportA B=c", 1, "NAME=value"),
        ("\n\nA=b c", 3, "the end of the line"),
        ("A=b 'c'", 1, "the end of the line"),
        ("A=(b)", 1, "only in quotes"),
        ("A=b;c", 1, "only in quotes"),
        ("A=$(b)", 1, "only in quotes"),
        ("A=~", 1, "only in quotes"),
        ("A=b:~c", 1, "only in quotes"),
        ("A=b\rc", 1, "only in quotes"),
        ("A=\u{7}", 1, "only in quotes"),
        ("A=\\\u{7}", 1, "only in quotes"),
        ("\rA=b", 1, "only in quotes"),
        ("\nA='b\nc\n", 2, "an end of the quote"),
        ("A=\"b\\\"", 1, "an end of the quote"),
        ("A=b\\", 1, "a character after"),
        ("A=b\n#\0", 2, "no NUL"),
    ] {
        match read(text) {
            Err(Error::Syntax { line: found, expected: said, .. }) => {
                assert_eq!(found, line, "{text:?}");
                assert!(said.starts_with(expected) || said.ends_with(expected), "{text:?}: {said}");
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
    let path = Path::new("x.env");
    assert_eq!(parse(path, b"A=b\nB=\xff").unwrap_err().to_string(), "x.env:2: expected UTF-8");
    let longest = format!("A={}", "b".repeat(MAX_VALUE_BYTES));
    assert!(read(&longest).is_ok());
    assert!(matches!(read(&(longest + "b")), Err(Error::Syntax { line: 1, .. })));
    let large = vec![b'\n'; (1 << 20) + 1];
    assert_eq!(parse(path, &large).unwrap_err().to_string(), "x.env: refused: expected at most 1 MiB, found more");
}

proptest! {
    #[test]
    fn what_is_rendered_is_read(values in prop::collection::btree_map("[A-Za-z_][A-Za-z0-9_]{0,8}", "[^\0]{0,40}", 0..6)) {
        let text = render(pairs(&values));
        prop_assert_eq!(read(&text).unwrap(), values);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(Path::new("x.env"), &bytes);
    }

    #[test]
    fn no_text_of_its_characters_makes_it_panic(text in "(A=|export |['\"\\\\$`#~ \t\r\n=;é(:]|b){0,30}") {
        let _ = read(&text);
    }
}

/// What bash reads from each text: of all variables `V…`, sorted, name and value. One process for all of them.
fn bash(texts: &[String]) -> Vec<Vec<(String, String)>> {
    let folder = tempfile::tempdir().unwrap();
    for (number, text) in texts.iter().enumerate() {
        std::fs::write(folder.path().join(number.to_string()), text).unwrap();
    }
    // Bare values such as *? must not match names of files here, nor ~ a home directory.
    let script = r#"
        for ((number = 0; number < $1; number++)); do
            (set -a; . "./$number" || exit 1; for name in ${!V*}; do printf '%s\0%s\0' "$name" "${!name}"; done) || exit 1
            printf '\0'
        done"#;
    let bash = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", script, "bash", &texts.len().to_string()])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .stdout(Stdio::piped())
        .output();
    let output = bash.expect("bash, which the build needs too");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut fields = text.split('\0');
    let mut files = Vec::new();
    for _ in texts {
        let mut variables = Vec::new();
        while let Some(name) = fields.next().filter(|name| !name.is_empty()) {
            variables.push((name.to_owned(), fields.next().unwrap().to_owned()));
        }
        files.push(variables);
    }
    files
}

/// Values that proptest makes of `strategy`, the same in every run.
fn samples<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

fn owned(variables: &BTreeMap<String, String>) -> Vec<(String, String)> {
    variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[test]
fn bash_reads_what_is_rendered() {
    let values =
        samples(prop::collection::btree_map("V[A-Za-z0-9_]{0,4}", r#"([^\x00]|['"\\$`~#\n\r\t ;é]){0,20}"#, 0..4), 300);
    let texts: Vec<String> = values.iter().map(|values| render(pairs(values))).collect();
    let found = bash(&texts);
    for ((values, text), found) in values.iter().zip(&texts).zip(found) {
        assert_eq!(found, owned(values), "{text:?}");
    }
}

#[test]
fn bash_reads_what_is_accepted() {
    // Without $, backtick and backslash, and without carriage returns, of which the module says that they differ.
    let line = r#"(export[ \t]+)?V[a-c]=([a-z0-9éß*?\[\]{},:=!~@%^+./#\-]{0,4}|'[^'\x00$`\\\r]{0,8}'|"[^"\x00$`\\\r]{0,8}"){0,4}[ \t]*(#[a-z'"]{0,3})?"#;
    let text = format!("(([ \t]*#[^\n\r\0$`\\\\]{{0,6}}|[ \t]*|[ \t]*{line})\n){{0,4}}");
    let mut accepted = Vec::new();
    for text in samples(proptest::string::string_regex(&text).unwrap(), 1500) {
        if let Ok(values) = read(&text) {
            accepted.push((text, values));
        }
    }
    assert!(accepted.len() > 300, "only {} of 1500 are accepted", accepted.len());
    let texts: Vec<String> = accepted.iter().map(|(text, _)| text.clone()).collect();
    let found = bash(&texts);
    for ((text, values), found) in accepted.iter().zip(found) {
        assert_eq!(found, owned(values), "{text:?}");
    }
}
