//! Tests of templates: values as in Jinja, errors with their lines, and random input.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

struct Here;

impl Machine for Here {
    fn exists(&self, path: &str) -> Result<bool, Fault> {
        Ok(path == "/there")
    }

    fn addresses(&self, host: &str) -> Result<Vec<String>, Fault> {
        match host {
            "two" => Ok(vec!["10.0.0.1".into(), "fd00::1".into()]),
            _ => Err(Fault::Unresolved { host: host.into(), reason: "unknown".into() }),
        }
    }

    fn cloud(&self, path: &str) -> Result<String, Fault> {
        Ok(if path == "v1.region" { "eu-1".into() } else { String::new() })
    }
}

fn rendered(text: &str, writing: Writing) -> Result<String, Fault> {
    let pairs = [("A", "a"), ("EMPTY", ""), ("FALSE", "false"), ("PORT", "6443"), ("EVIL", "x\"\n{{ A }}\u{7f}'\\")];
    let variables: BTreeMap<String, String> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    render(text, &Scope { variables: &variables, machine: &Here }, writing)
}

#[test]
fn expressions_have_the_values_that_jinja_gives_them() {
    for (expression, expected) in [
        ("A", "a"),
        ("'it\\'s' ~ \"\\n\"", "it's\n"),
        ("EMPTY or 'default'", "default"),
        ("A and FALSE", "false"),
        ("'yes' if FALSE == 'true' else 'no'", "no"),
        ("1 if not EMPTY and A != 'b' else 2", "1"),
        ("A in ['x', 'a']", "true"),
        ("'b' not in 'abc'", "false"),
        ("not A in ['a']", "false"),
        ("A ~ '-' ~ PORT == 'a-6443'", "true"),
        ("(EMPTY or A) ~ (1 if A else 2)", "a1"),
        ("PORT|int", "6443"),
        ("' b , ,c'|split(',')|length", "2"),
        ("'a.b'|replace('.', '-')|ends_with('-b')", "true"),
        ("'eA==\\n'|base64", "x"),
        ("'-----BEGIN CERTIFICATE-----\\neA==\\n'|base64", "-----BEGIN CERTIFICATE-----\neA==\n"),
        ("'https://h:8/p/q'|url('port') ~ 'http://[fd00::1]/x'|url('host')", "8fd00::1"),
        ("'https://h'|url('port') ~ 'http://h'|url('path') ~ 'http://h'|url('scheme')", "443http"),
        ("exists('/there')", "true"),
        ("cloud('v1.region') ~ cloud('v1.zone')", "eu-1"),
    ] {
        assert_eq!(rendered(&format!("{{{{ {expression} }}}}"), Writing::Raw).as_deref(), Ok(expected), "{expression}");
    }
}

#[test]
fn tags_choose_repeat_and_leave_no_line() {
    let text = "a\n  {% if EMPTY %}\nno\n  {% elif A == 'a' %}\nyes {{ A }}\n{% else %}\nno\n{% endif %}\n{# gone #}\nz {% if A %}b{% endif %}\n";
    assert_eq!(rendered(text, Writing::Raw).unwrap(), "a\nyes a\nz b");
    let text =
        "{% for x in addresses('two') %}\n  {% for y in ['1'] %}\n{{ x }} {{ y }}\n  {% endfor %}\n{% endfor %}\nend\n";
    assert_eq!(rendered(text, Writing::Raw).unwrap(), "10.0.0.1 1\nfd00::1 1\nend\n");
}

#[test]
fn json_is_quoted_and_lines_stay_lines() {
    assert_eq!(rendered("k: {{ EVIL }}\n", Writing::Json).unwrap(), "k: \"x\\\"\\n{{ A }}\\u007f'\\\\\"\n");
    assert_eq!(
        rendered("{{ PORT|int }} {{ A == 'a' }} {{ 'a,b'|split(',') }}", Writing::Json).unwrap(),
        "6443 true [\"a\", \"b\"]"
    );
    assert!(matches!(rendered("k {{ EVIL }}", Writing::Lines), Err(Fault::Value { .. })));
    assert_eq!(rendered("{{ 'YQpi'|base64 }}", Writing::Lines).unwrap(), "a\nb");
    assert_eq!(rendered(" {{ 'YQpi'|base64 }}\n", Writing::Lines).unwrap(), " a\nb\n");
    assert!(matches!(rendered("{{ 'YQpi'|base64 }}.", Writing::Lines), Err(Fault::Value { .. })));
    assert_eq!(rendered("k {{ 'YQli'|base64 }}", Writing::Lines).unwrap(), "k a\tb");
}

#[test]
fn faults_have_their_kind_and_line() {
    for (text, line) in [
        ("a\n{{ 1 +", 2),
        ("{{ A", 1),
        ("\n\n{% if A %}", 3),
        ("{% for x in A %}\n{% endif %}", 2),
        ("{% set x = 1 %}", 1),
        ("{{ A|safe }}", 1),
        ("{{ split(A) }}", 1),
        ("{{ A|split }}", 1),
        ("{{ and }}", 1),
        ("{{ A B }}", 1),
        ("{{ A == A == A }}", 1),
        ("{%- if A %}{% endif %}", 1),
        ("{% if A %}{% else %}\n{% elif A %}{% endif %}", 2),
        ("{% endfor %}", 1),
        ("{{ 'a\\x' }}", 1),
        ("{% for in in A %}{% endfor %}", 1),
    ] {
        match Text::parse(text) {
            Err(Fault::Syntax { line: found, .. }) => assert_eq!(found, line, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(Text::parse(&format!("{{{{ {}A{} }}}}", "(".repeat(40), ")".repeat(40))).is_err());
    assert!(Text::parse(&format!("{{{{ A{} }}}}", "~A".repeat(500))).is_err());
    assert!(Text::parse(&"{% if A %}".repeat(40)).is_err());
    assert_eq!(rendered("{{ NONE }}", Writing::Raw), Err(Fault::Undefined { name: "NONE".into() }));
    for text in [
        "{{ A|int }}",
        "{{ A == 1 }}",
        "{{ 'a'|split(',') }}",
        "{{ 'a'|base64 }}",
        "{{ 'eB=='|base64 }}",
        "{{ '-----BEGIN PRIVATE KEY-----\\n'|base64 }}",
    ] {
        assert!(matches!(rendered(text, Writing::Raw), Err(Fault::Value { .. })), "{text}");
    }
    for url in ["ftp://h", "http://", "http://h:0", "http://h:x/", "http://u@h/", "http://[::1/", "http://h /", "h:1"] {
        assert!(rendered(&format!("{{{{ '{url}'|url('host') }}}}"), Writing::Raw).is_err(), "{url}");
    }
    assert!(matches!(rendered("{{ addresses('one') }}", Writing::Json), Err(Fault::Unresolved { .. })));
}

#[test]
fn names_are_those_that_no_loop_binds() {
    let text = "{{ A }}{% for x in B|split(',') %}{{ x ~ C }}{% if D %}{{ [E] }}{% endif %}{% endfor %}{{ x }}";
    let names: Vec<String> = Text::parse(text).unwrap().names().into_iter().collect();
    assert_eq!(names, ["A", "B", "C", "D", "E", "x"]);
    assert_eq!(Condition::parse("not A or f == 'A'").unwrap().names().len(), 2);
}

proptest! {
    #[test]
    fn nothing_panics(text in r#"([{}%#|~()\[\],'"\\ \n]|A|if|else|endif|for x in |endfor|not|in|==|split|base64|9|é){0,40}"#) {
        if let Ok(template) = Text::parse(&text) {
            template.names();
            for writing in [Writing::Raw, Writing::Lines, Writing::Json] {
                rendered(&text, writing).ok();
            }
        }
    }
}
