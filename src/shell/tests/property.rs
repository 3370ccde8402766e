//! Expansions of random words and values, by dash and by the interpreter: many words in one run of dash, from a seed that is always the same.

use std::fs;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::host;

const BATCHES: usize = 40;
const WORDS: usize = 60;

/// Values without newlines at the end, which a line of output could not show.
fn value() -> impl Strategy<Value = String> {
    let any = proptest::string::string_regex("[ab/.:* \\\\?\\[\\]'\"$~!-]{0,6}").unwrap();
    // A set that is not closed and has a backslash at its end is read by dash beyond its end.
    any.prop_map(|text| if text.contains('[') { text.replace('\\', "") } else { text })
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("x"), Just("y"), Just("z"), Just("unset"), Just("1"), Just("2"), Just("3")]
}

/// A pattern that any shell reads in the same way.
fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::string::string_regex("[ab/.*?:-]{0,4}").unwrap(),
        Just("[ab]*".to_owned()),
        Just("*[!a]".to_owned()),
        Just("\"*\"a".to_owned()),
        Just("'?'*".to_owned()),
        Just("\\**".to_owned()),
        Just("$y".to_owned()),
        Just("\"$y\"*".to_owned()),
    ]
}

fn arithmetic() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0_i64..40).prop_map(|n| n.to_string()),
        Just("n".to_owned()),
        Just("m".to_owned()),
        Just("0x1f".to_owned())
    ];
    leaf.prop_recursive(4, 20, 3, |inner| {
        let operator = prop_oneof![
            Just("+"),
            Just("-"),
            Just("*"),
            Just("<<"),
            Just(">>"),
            Just("<"),
            Just(">="),
            Just("=="),
            Just("!="),
            Just("&"),
            Just("|"),
            Just("^"),
            Just("&&"),
            Just("||"),
        ];
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
            inner.clone().prop_map(|inner| format!("({inner})")),
            inner.clone().prop_map(|inner| format!("- ({inner})")),
            inner.clone().prop_map(|inner| format!("! {inner}")),
            inner.clone().prop_map(|inner| format!("~ {inner}")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("{a} ? {b} : {c}")),
            (inner.clone(), 1_i64..9).prop_map(|(left, right)| format!("({left}) / {right} % 7")),
            inner.prop_map(|inner| format!("(n = {inner})")),
        ]
    })
}

fn part() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        proptest::string::string_regex("[ab.:/]{1,3}").unwrap(),
        Just("'a b'".to_owned()),
        Just("\"a  b\"".to_owned()),
        Just("\\ ".to_owned()),
        Just("\"\"".to_owned()),
        Just("''".to_owned()),
        Just("$(echo 'a  b')".to_owned()),
        Just("`echo a:b`".to_owned()),
        Just("$@".to_owned()),
        Just("\"$*\"".to_owned()),
        Just("$*".to_owned()),
        Just("$#".to_owned()),
        name().prop_map(|name| format!("${{{name}}}")),
        name().prop_map(|name| format!("\"${{{name}}}\"")),
        name().prop_map(|name| format!("${{#{name}}}")),
        (name(), prop_oneof![Just("#"), Just("##"), Just("%"), Just("%%")], pattern())
            .prop_map(|(name, operator, pattern)| format!("\"${{{name}{operator}{pattern}}}\"")),
        (name(), prop_oneof![Just("#"), Just("##"), Just("%"), Just("%%")], pattern())
            .prop_map(|(name, operator, pattern)| format!("${{{name}{operator}{pattern}}}")),
        arithmetic().prop_map(|inner| format!("$(({inner}))")),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let operator = prop_oneof![Just("-"), Just(":-"), Just("+"), Just(":+")];
        prop_oneof![
            (name(), operator.clone(), inner.clone())
                .prop_map(|(name, operator, inner)| format!("${{{name}{operator}{inner}}}")),
            (name(), operator, proptest::string::string_regex("[ab :]{0,4}").unwrap())
                .prop_map(|(name, operator, inner)| format!("\"${{{name}{operator}{inner}}}\"")),
            inner.prop_map(|inner| format!("$(printf '<%s>' {inner})")),
        ]
    })
}

/// A line that prints the fields of a word after variables, parameters and IFS were set.
fn case() -> impl Strategy<Value = String> {
    let values = (value(), value(), value(), proptest::collection::vec(value(), 0..4));
    let ifs =
        prop_oneof![Just("IFS=' \t'"), Just("IFS=:"), Just("IFS=' :'"), Just("IFS="), Just("unset IFS"), Just("IFS=a")];
    // dash divides what follows `"$@"` in a word in unusual ways, so that one stands alone.
    let word = prop_oneof![8 => proptest::collection::vec(part(), 1..4), 1 => Just(vec!["\"$@\"".to_owned()])];
    (values, ifs, word).prop_map(|((x, y, z, params), ifs, word)| {
        let quote = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        let params: Vec<String> = params.iter().map(|param| quote(param)).collect();
        let word = word.concat();
        format!(
            "(n=3 m=-5 x={} y={} z={}; set -- {}; {ifs}; printf '[%s]' {word}; v={word}; printf '{{%s}}' \"$v\"; case $v in {word}) echo y;; *) echo n;; esac)",
            quote(&x), quote(&y), quote(&z), params.join(" ")
        )
    })
}

#[test]
fn expansions_are_those_of_dash() {
    if !host::has_dash() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = case();
    let mut differing = 0;
    for batch in 0..BATCHES {
        let cases: Vec<String> = (0..WORDS).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
        let text: String = cases.iter().enumerate().map(|(at, case)| format!("echo '@{at}'\n{case}\n")).collect();
        let directory = root.join(format!("{batch}"));
        let expected = host::dash(&text, &directory);
        let found = host::ours(&text, directory.to_str().unwrap()).unwrap();
        for (at, case) in cases.iter().enumerate() {
            let answer = |left: &host::Left| {
                let begin = format!("@{at}\\n");
                let from = left.stdout.find(&begin).map_or(0, |from| from + begin.len());
                let rest = left.stdout[from..].to_owned();
                rest.split(&format!("@{}\\n", at + 1)).next().unwrap_or_default().to_owned()
            };
            if answer(&expected) != answer(&found) {
                differing += 1;
                println!("{case}\n  dash {}\n  ours {}", answer(&expected), answer(&found));
            }
        }
    }
    assert_eq!(differing, 0, "of {} words", BATCHES * WORDS);
}
