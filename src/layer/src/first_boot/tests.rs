//! Tests of merging and checking first-boot parts of layers.

use super::*;

fn schema(name: &str, rest: &str) -> Schema {
    let text = format!(r#"{{"name": "{name}", "version": "1", "description": "d", "os": ["o"], {rest}}}"#);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn parts_are_joined_in_the_order_of_layers_and_know_where_they_came_from() {
    let a = schema(
        "a",
        r#""directories": {"/a": {"mode": "0750"}, "/b/c": {"mode": "0700"}},
        "artifacts": {"p": {"type": "file", "path": "/bin/p", "mode": "0755"}},
        "modes": {"/lib/{multiarch}/x": {"mode": "0755"}},
        "first_boot": {"variables": {"A": {"default": "1"}}, "values": ["A", {"name": "B", "value": "b"}]}"#,
    );
    let b = schema(
        "b",
        r#""directories": {"/a": {"mode": "0755"}},
        "first_boot": {"variables": {"C": {}}, "values": [{"name": "D", "value": "{{ B }}"}],
            "directories": {"/d": {"mode": "0700"}}, "connect": ["A"]}"#,
    );
    let (compiled, clashes) = join([&a, &b], "m");
    assert_eq!(clashes, []);
    let plan = &compiled.plan;
    let names = |list: &[vmbake_firstboot::plan::Assignment]| {
        list.iter().map(|one| one.name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&plan.values), "A B D");
    assert_eq!(plan.variables.keys().collect::<Vec<_>>(), ["A", "C"]);
    assert_eq!(plan.directories.get("/a").unwrap().mode, 0o755);
    assert_eq!(plan.modes.keys().collect::<Vec<_>>(), ["/bin/p", "/lib/m/x"]);
    for (pointer, expected) in [
        ("/variables/A/default", "layer a: /first_boot/variables/A/default"),
        ("/values/0", "layer a: /first_boot/values/0"),
        ("/values/2/value", "layer b: /first_boot/values/0/value"),
        ("/directories/~1a/mode", "layer b: /directories/~1a/mode"),
        ("/directories/~1b~1c", "layer a: /directories/~1b~1c"),
        ("/directories/~1d", "layer b: /first_boot/directories/~1d"),
        ("/modes/~1bin~1p/owner", "layer a: /artifacts/p/owner"),
        ("/modes/~1lib~1m~1x", "layer a: /modes/~1lib~1{multiarch}~1x"),
    ] {
        assert_eq!(compiled.source(pointer).map(|source| source.to_string()).as_deref(), Some(expected));
    }
    assert_eq!(compiled.source("/values/3"), None);
    assert_eq!(compiled.source(""), None);
}

#[test]
fn what_two_layers_have_is_a_clash() {
    let inputs =
        r#""inputs": {"user_data": "/u", "detected": "/d", "mutable": "/m", "defaults": "/x", "marker": "/y"}"#;
    for (first, second, expected) in [
        (r#""variables": {"A": {}}"#, r#""variables": {"A": {}}"#, "/variables/A"),
        (inputs, inputs, "/inputs"),
        (
            r#""exec": {}, "users": {"u": {"when": "A", "shell": "/s"}}"#,
            r#""users": {"u": {"when": "A", "shell": "/s"}}"#,
            "/users/u",
        ),
        (
            r#""directories": {"/a": {"mode": "0700"}}"#,
            r#""directories": {"/a": {"mode": "0700"}}"#,
            "/directories/~1a",
        ),
    ] {
        let [a, b] =
            [("a", first), ("b", second)].map(|(name, part)| schema(name, &format!(r#""first_boot": {{{part}}}"#)));
        let (compiled, clashes) = join([&a, &b], "m");
        let said: Vec<_> = clashes.iter().map(ToString::to_string).collect();
        assert_eq!(said, [format!("layer b: /first_boot{expected}: already defined by layer a")]);
        assert_eq!(compiled.source(expected).map(|source| source.layer).as_deref(), Some("a"));
    }
    // Also where one of them says it outside of its part, whichever comes first.
    let a = schema("a", r#""directories": {"/a": {"mode": "0700"}}"#);
    let b = schema("b", r#""first_boot": {"directories": {"/a": {"mode": "0700"}}}"#);
    for (order, expected) in [
        ([&a, &b], "layer b: /first_boot/directories/~1a: already defined by layer a"),
        ([&b, &a], "layer a: /directories/~1a: already defined by layer b"),
    ] {
        let (_, clashes) = join(order, "m");
        assert_eq!(clashes.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}
