//! Tests of environment files: accepted forms, refusals, and values that survive a round trip.

use super::*;

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
        (" A=b \n\tB=\t", &[("A", "b"), ("B", "")]),
        ("A='b c'\"d e\"f", &[("A", "b cd ef")]),
        (r#"A='b'"'"'c'\'d"#, &[("A", "b'c'd")]),
        (r"A='b'\''c'\''d'", &[("A", "b'c'd")]),
        (r"A=\''b'\'", &[("A", "'b'")]),
        ("A='b'\\''\nB=c\n'", &[("A", "b'\nB=c\n")]),
        (r#"A="b\"\\\$\`\n"c\"\ d"#, &[("A", "b\"\\$`\\nc\" d")]),
        ("A=\"b\nc\"'\nd'\nB=2", &[("A", "b\nc\nd"), ("B", "2")]),
        ("A=\"b\\\nc\"d\\\ne", &[("A", "bcde")]),
        ("A='$'$B`c`${D}\n", &[("A", "$$B`c`${D}")]),
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
        ("export A=b", 1, "which systemd does not support"),
        ("A=b\n export\tA=b", 2, "which systemd does not support"),
        (r"A=b\''c'", 1, "write a quote in single quotes as '\"'\"'"),
        ("A=b'c'", 1, "no quote after unquoted characters"),
        ("A='b'\\\n'c'", 2, "no quote after unquoted characters"),
        ("\nA=b\"c\"", 2, "no quote after unquoted characters"),
        ("A=b # c", 1, "a comment on a separate line"),
        ("A='b' #", 1, "a comment on a separate line"),
        ("# a\\\nA=b", 1, "without a final backslash"),
        ("# a\\\r\nA=b", 1, "without a final backslash"),
        ("#\rA=b", 1, "a comment without carriage returns"),
        ("A=\u{fffe}", 1, "noncharacters, such as U+FFFE"),
        ("A='\u{fdd0}'", 1, "noncharacters, such as U+FFFE"),
        ("A=1\nB=\"\u{10ffff}\"", 2, "noncharacters, such as U+FFFE"),
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
        ("\nA='b\nc\n", 2, "a closing quote"),
        ("A=\"b\\\"", 1, "a closing quote"),
        ("A=b\\", 1, "a character after"),
        ("A=b\n#\0", 2, "without NUL"),
    ] {
        match read(text) {
            Err(Error::Syntax { line: found, expected: said, .. }) => {
                assert_eq!(found, line, "{text:?}");
                assert!(said.contains(expected), "{text:?}: {said}");
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

#[test]
fn what_cannot_be_written_is_refused_with_its_name() {
    let text = "A: expected text without NUL and Unicode's noncharacters, such as U+FFFE, found one";
    let size = "A: expected a value of at most 128 KiB, found more";
    for (value, expected) in
        [("b\0", text), ("\u{fdef}", text), ("b\u{5ffff}", text), (&"b".repeat(MAX_VALUE_BYTES + 1), size)]
    {
        assert_eq!(render([("A", value)]).unwrap_err().to_string(), expected);
        assert_eq!(assignment("A", value, true).unwrap_err().to_string(), expected);
    }
    for value in ["\u{fdcf}\u{fdf0}\u{fffd}\u{10000}", &"b".repeat(MAX_VALUE_BYTES)] {
        assert_eq!(render([("A", value)]).unwrap(), format!("A='{value}'\n"));
    }
}

#[test]
fn what_is_written_is_quoted() {
    for (value, bare, expected) in [
        ("a_1", true, "A=a_1\n"),
        ("a_1", false, "A='a_1'\n"),
        ("a-1", true, "A='a-1'\n"),
        ("", true, "A=''\n"),
        ("it's\n", false, "A='it'\"'\"'s\n'\n"),
    ] {
        assert_eq!(assignment("A", value, bare).unwrap(), expected);
    }
}

proptest! {
    #[test]
    fn what_is_rendered_is_read(values in prop::collection::btree_map("[A-Za-z_][A-Za-z0-9_]{0,8}", "[^\0]{0,40}", 0..6)) {
        prop_assume!(values.values().all(|value| unfit(value).is_none()));
        let text = render(pairs(&values)).unwrap();
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
