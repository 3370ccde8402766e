use super::*;

use std::fs;
use std::process::Command;

/// The words of a line without operators.
fn words(line: &str) -> Option<Vec<String>> {
    let word = |token| match token {
        Token::Word(word) => Some(word),
        Token::Operator(_) => None,
    };
    tokens(line)?.into_iter().map(word).collect()
}

#[test]
fn words_are_those_of_a_shell() {
    for (line, expected) in [
        ("", &[][..]),
        ("# a 'b", &[]),
        ("\ta  b # c", &["a", "b"]),
        ("a'b c'\"d # e\"f", &["ab cd # ef"]),
        ("a# b#c '' \"\"", &["a#", "b#c", "", ""]),
        (r#"a '"' "'" 1.0\~"#, &["a", "\"", "'", "1.0~"]),
        ("a ${DPKG_ROOT:+--root=\"$DPKG_ROOT\"} b", &["a", "b"]),
        ("[ -z \"${DPKG_ROOT:-}\" ]", &["[", "-z", "", "]"]),
        ("[ -x \"$(command -v systemd-tmpfiles)\" ]", &["[", "-x", "x", "]"]),
    ] {
        assert_eq!(words(line).unwrap(), expected, "{line}");
    }
    let tokens = tokens("a>b||c&&d;e").unwrap();
    let operators = tokens.iter().filter_map(|token| match token {
        Token::Operator(operator) => Some(*operator),
        Token::Word(_) => None,
    });
    assert_eq!(operators.collect::<Vec<_>>(), [">", "||", "&&", ";"]);
}

#[test]
fn what_is_not_certain_is_no_line() {
    for line in [
        "a 'b",
        "a \"b",
        "a 'b #",
        "a \"b # c",
        "a \\",
        "a \\b",
        "\"a\\\"",
        "`a`",
        "\"`a`\"",
        "$(a)",
        "\"$(a)\"",
        "${a}",
        "\"${a}\"",
        "a <<b",
        "a <b",
        "(a)",
        "{ a",
        "a &",
        "a | b",
        "a & b",
        "a 2>b",
        "a\rb",
        "a\r",
        "\"a\rb\"",
        "'a\tb'",
        "a\0b",
        "# \0",
        "a\u{a0}b",
        "a\u{2003}b",
        "\u{e9}",
        "a\u{c}b",
        "a\u{b}",
        "$'a'",
        "$\"a\"",
        "'if' a",
        "f\"i\"",
        "\u{fffd}",
        "${DPKG_ROOT:+--root=\"$DPKG_ROOT\"}a",
    ] {
        assert_eq!(tokens(line), None, "{line:?}");
    }
}

/// dash itself, asked about lines of all that means something to it: whatever is read has the words that it sees, and nothing behind.
#[test]
fn dash_sees_the_same_words() {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    if !crate::tools::have(&["dash"]) {
        return;
    }
    let strategy =
        proptest::string::string_regex(r#"w([ab]|[ \t]|'|"|#| #|\\|\\~|;|é|\r|'a b'|"a # b"|''){0,9}"#).unwrap();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let lines = (0..20_000).map(|_| strategy.new_tree(&mut runner).unwrap().current());
    let read: Vec<(String, Vec<String>)> = lines.filter_map(|line| Some((line.clone(), words(&line)?))).collect();
    assert!(read.len() > 1000, "only {} are read", read.len());
    let script: String = read.iter().map(|(line, _)| format!("p {line}\necho END\n")).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    fs::write(&path, format!("p() {{ for word; do printf '<%s>' \"$word\"; done; echo; }}\n{script}")).unwrap();
    let output = Command::new("dash").arg(path).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let mut said = said.split("\nEND\n");
    for (line, words) in read {
        let expected: String = words.iter().map(|word| format!("<{word}>")).collect();
        assert_eq!(said.next().unwrap(), expected, "{line:?}");
    }
}

#[test]
fn quotes_and_comments_of_any_line() {
    for (line, text, bare, hides) in [
        ("a 'b c' # d", "a 'b c'", "a  ", true),
        ("echo \"\\\\\" '\"'", "echo \"\\\\\" '\"'", "echo  ", false),
        ("a\\ b\\\"c;#d", "a\\ b\\\"c;", "abc;", true),
        ("a \"$(b | c)\" d", "a \"$(b | c)\" d", "a  d", true),
        ("a \"$(b \"${c}d\" ')' \")\")\" e", "a \"$(b \"${c}d\" ')' \")\")\" e", "a  e", true),
        ("a#b ${x#y} \"#\" é", "a#b ${x#y} \"#\" é", "a#b   é", false),
    ] {
        let code = code(line).unwrap();
        assert_eq!((code.text, code.bare.as_str(), code.hides), (text, bare, hides), "{line}");
        assert_eq!(code.comment, line.ends_with('d') && line.contains(['#']), "{line}");
    }
    for line in [
        "a 'b",
        "a \"b\\\"",
        "\"\\\\\" '\"'x'",
        "a \\",
        "`a`",
        "$(case a in a) b;; esac)",
        "$(a 'b)",
        "$(a \"b)",
        "$(a `b`)",
        "$(a $(b $(c $(d $(e)))))",
        "$(a # b)",
        "$(a",
        "${a",
        "${a:- # }",
        "$((1))",
        "a\u{2028}b",
        "a\r",
        "$'\\''",
        "'\u{a0}'",
    ] {
        assert!(code(line).is_none(), "{line:?}");
    }
}
