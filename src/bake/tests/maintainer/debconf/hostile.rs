//! Templates and scripts that no package has: each stops the bake with a reason, and none makes it hang.

use super::{QUESTIONS, asking};
use crate::bake_inputs::parts::{bake_onto, base, control, deb, package, text};

#[test]
fn templates_that_are_none_stop_the_bake() {
    let huge = format!("Template: a/b\nType: string\nDescription: {}\n", "x".repeat(9 << 20));
    let many = "Template: a/b\nType: string\n\n".repeat(6_000);
    for (templates, expected) in [
        ("\u{0}\u{1}binary\u{7f}", "stanza 1: line \"\\0\\u{1}binary\\u{7f}\" is neither"),
        ("Template: a/b\n", "stanza 1: missing field Type"),
        ("Template: a/b\nType: string\nType: string\n", "stanza 1: duplicate field type"),
        (many.as_str(), "has more than 5000 templates"),
    ] {
        let error = bake_onto(base(), &[asking(templates, "", "")], "").unwrap_err();
        assert!(error.contains("ask: its postinst") && error.contains(&format!("templates: {expected}")), "{error}");
        let error = bake_onto(base(), &[asking(templates, "", "")], r#", "debconf": {"a/b": "x"}"#).unwrap_err();
        assert!(error.contains(&format!("the templates of ask cannot be read: {expected}")), "{error}");
    }
    let error = bake_onto(base(), &[asking("Template: a\u{1}b\nType: string\n", "", "")], "").unwrap_err();
    assert!(error.contains("invalid name of a question: \"a\\u{1}b\""), "{error}");
    let error = bake_onto(base(), &[asking(&huge, "", "")], "").unwrap_err();
    assert!(error.contains("/var/lib/dpkg/info/ask.templates: File too large"), "{error}");
    let error = bake_onto(base(), &[asking(&huge, "", "")], r#", "debconf": {"a/b": "x"}"#).unwrap_err();
    assert!(error.contains("the templates of ask cannot be read: has more than 8388608 bytes"), "{error}");
}

#[test]
fn scripts_that_never_end_or_ask_too_much_stop_the_bake() {
    let bomb = format!(
        "printf 'Template: t/t\\nType: string\\nDescription: %s\\n' '{}' > /t\ndb_x_loadtemplatefile /t\n\
         x=0123456789abcdef; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x\n\
         db_subst t/t v \"$x\"\ndb_metaget t/t description\n",
        "${v}".repeat(200)
    );
    for (config, expected) in [
        ("while :; do db_get ask/name; done", "ask: its config"),
        ("while :; do db_input high ask/name; db_go; done", "ask: its config"),
        (". /usr/share/debconf/confmodule; db_stop; db_get ask/name", "debconf does not answer after db_stop"),
        ("db_input high ask/title", "ask/title has the type title, which is not a question"),
        ("db_progress STEP 1", "no progress bar was started"),
        ("exit 3", "ask: its config"),
        ("frobnicate", "frobnicate"),
        (bomb.as_str(), "more than 1048576 bytes of one text of debconf"),
        ("i=0; while :; do i=$((i + 1)); db_register ask/name ask/$i; done", "more than 50000 questions of debconf"),
    ] {
        let error = bake_onto(base(), &[asking(QUESTIONS, config, "")], "").unwrap_err();
        assert!(error.contains(expected), "{config}: {error}");
    }
    let postinst = "#!/bin/sh\ndb_get ask/name\n";
    let part = package("ask", deb(&control("ask", ""), &[("postinst", postinst)], &[]));
    let error = bake_onto(base(), &[part], "").unwrap_err();
    assert!(error.contains("debconf's confmodule was not sourced"), "{error}");
}

#[test]
fn variables_that_name_each_other_are_filled_in_once() {
    let config = "db_subst ask/mode how '${more}'\ndb_subst ask/mode more '${how}${more}'\n\
        say db_metaget ask/mode choices\nsay db_input high ask/mode\nsay db_go\n";
    let tree = bake_onto(base(), &[asking(QUESTIONS, config, "")], "").unwrap();
    assert!(text(&tree, "/log").starts_with("db_metaget 0 [fast, slow\\, safe, ${how}${more}]\n"));
}

#[test]
fn a_config_as_deep_as_its_postinst_stops_and_does_not_overflow() {
    let deep = |depth: usize| format!("f() {{ [ $1 = 0 ] || f $(($1 - 1)); }}\nf {depth}\n");
    let config = deep(5_000);
    let postinst =
        "#!/bin/sh\nf() { if [ $1 = 0 ]; then . /usr/share/debconf/confmodule; else f $(($1 - 1)); fi; }\nf 90\n";
    let config = format!("#!/bin/sh\n{config}");
    let info = [("templates", QUESTIONS), ("config", config.as_str()), ("postinst", postinst)];
    let error = bake_onto(base(), &[package("ask", deb(&control("ask", ""), &info, &[]))], "").unwrap_err();
    assert!(error.contains("ask: its config") && error.contains("nested c"), "{error}");
}
