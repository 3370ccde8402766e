//! Answers that a layer gives.

use super::{CONFIG, QUESTIONS, TEMPLATES, asking};
use crate::bake_inputs::parts::{bake, bake_onto, base, hint, text};

#[test]
fn a_layer_answers_before_anybody_asks() {
    let ask = "say db_input high ask/mode\nsay db_input high ask/name\nsay db_go\nsay db_get ask/mode\nsay db_get ask/name\nsay db_fget ask/mode seen\n";
    let keys = r#", "debconf": {"ask/mode": "fast", "ask/name": "a, b", "ask/parts": "b, c", "ask/sure": "false"}"#;
    let templates = QUESTIONS.replace(", ${more}", "");
    let tree = bake_onto(base(), &[asking(&templates, ask, "")], keys).unwrap();
    assert_eq!(
        text(&tree, "/log"),
        "db_input 30 [30 question skipped]\ndb_input 30 [30 question skipped]\ndb_go 0 [ok]\ndb_get 0 [fast]\ndb_get 0 [a, b]\n\
         db_fget 0 [true]\n"
    );
    let config = text(&tree, CONFIG);
    assert!(
        config.starts_with("Name: ask/mode\nTemplate: ask/mode\nValue: fast\nOwners: ask\nFlags: seen\n\n"),
        "{config}"
    );
    assert!(config.contains("Name: ask/parts\nTemplate: ask/parts\nValue: b, c\nOwners: ask\nFlags: seen\n\n"));
    assert!(
        text(&tree, TEMPLATES)
            .contains("Name: ask/name\nDefault: host\nDescription: Name:\nType: string\nOwners: ask/name\n\n")
    );
    // A package that waits finds the answers on the machine.
    let tree = bake_onto(base(), &[asking(&templates, "hostname", "")], keys).unwrap();
    assert!(text(&tree, CONFIG).starts_with("Name: ask/mode\nTemplate: ask/mode\nValue: fast\n"));
    assert!(text(&tree, "/var/lib/dpkg/status").contains("Package: ask\nStatus: install ok unpacked\n"));
}

#[test]
fn choices_that_a_script_fills_in_are_not_known_before() {
    let tree = bake_onto(base(), &[asking(QUESTIONS, "", "")], r#", "debconf": {"ask/mode": "other"}"#).unwrap();
    assert!(text(&tree, CONFIG).contains("Value: other\n"));
}

#[test]
fn answers_that_nobody_takes_are_refused() {
    let templates = QUESTIONS.replace(", ${more}", "");
    for (question, value, expected) in [
        ("ask/modus", "fast", "layer k: debconf ask/modus: not a question of the layer's packages"),
        ("ask/mode", "fats", "layer k: debconf ask/mode: \"fats\" is not a valid choice"),
        ("ask/mode", "schnell", "is not a valid choice"),
        ("ask/parts", "a, d", "layer k: debconf ask/parts: \"a, d\" is not a valid choice"),
        ("ask/sure", "yes", "layer k: debconf ask/sure: \"yes\" is not a valid choice"),
        (
            "ask/secret",
            "x",
            "layer k: debconf ask/secret: asks for a password, which every copy of the image would contain",
        ),
        ("ask/told", "x", "layer k: debconf ask/told: has the type note, which takes no answer"),
    ] {
        let keys = format!(r#", "debconf": {{"{question}": "{value}"}}"#);
        let error = bake_onto(base(), &[asking(&templates, "", "")], &keys).unwrap_err();
        assert!(error.contains(expected), "{question}: {error}");
    }
    for (answer, expected) in [
        (r#""ask/nam": "x""#, "did you mean `ask/name`?"),
        (r#""x": "x""#, "questions of the layer's packages: ask/mode, ask/name, ask/parts, ask/secret, ask/sure"),
        (r#""ask/mode": "x""#, "use one of: fast, slow, safe"),
        (r#""ask/secret": "x""#, "remove the answer: scripts that need a password run on the first boot"),
    ] {
        let told = hint(&[asking(&templates, "", "")], &format!(r#", "debconf": {{{answer}}}"#)).unwrap();
        assert!(told.starts_with(expected), "{told}");
    }
    let told = hint(&[], r#", "debconf": {"a/b": "x"}"#).unwrap();
    assert_eq!(told, "the layer's packages have no debconf questions: remove the answer");
    let error = bake_onto(base(), &[], r#", "debconf": {"a/b": "x"}"#).unwrap_err();
    assert!(error.contains("layer k: debconf a/b: not a question of the layer's packages"), "{error}");
    assert!(bake(&[asking(&templates, "", "")]).is_ok());
}

#[test]
fn names_and_values_that_cannot_be_are_refused_by_the_layer_s_check() {
    for (answer, expected) in [
        (r#""a b": "x""#, "\"a b\" is not the name of a question"),
        (r#""": "x""#, "\"\" is not the name of a question"),
        (r#""a/b": "x\ny""#, "\"x\\ny\" is not one line of text"),
    ] {
        let error = bake_onto(base(), &[], &format!(r#", "debconf": {{{answer}}}"#)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
