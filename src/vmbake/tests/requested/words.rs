//! Errors of `layer check` in `downloads` and `container_images`.

use std::path::Path;
use std::process::Command;

use crate::layers::are_found;

/// Values of the capitalized placeholders below.
const WORDS: [(&str, &str); 3] = [
    ("TOOL", r#"{"url": "https://a/x", "version": "1", STATED, FILE}"#),
    ("STATED", r#""sha256": "0000000000000000000000000000000000000000000000000000000000000000""#),
    ("FILE", r#""install": {"type": "file", "path": "/x", "mode": "0755"}"#),
];

/// A fault of each kind; `¦` stands where it begins.
const FAULTS: &[(&str, &str)] = &[
    (r#""downloads": {¦"A": TOOL}"#, "name \"A\" is invalid: expected lowercase letters"),
    (r#""downloads": {¦"os.image": TOOL}"#, "name \"os.image\" is reserved"),
    (r#""artifacts": {"x": {"type": "deb"}}, "downloads": {¦"x": TOOL}"#, "\"x\" is already an artifact of the layer"),
    (r#""packages": [¦"x1"], "downloads": {"x1": TOOL}"#, "\"x1\" is already an artifact of the layer"),
    (r#""downloads": {"x": {"url": ¦"http://a/x", "version": "1", STATED, FILE}}"#, "the URL is not https"),
    (
        r#""downloads": {"x": {"url": {"amd64": "https://a/x", "arm64": ¦"http://a/x"}, "version": "1", STATED, FILE}}"#,
        "the URL is not https",
    ),
    (r#""downloads": {"x": {"url": ¦"{url}", "version": "1", STATED, FILE}}"#, "the URL is not https"),
    (
        r#""downloads": {"x": {"url": ¦"https://a/{x}", "version": "1", STATED, FILE}}"#,
        "\"https://a/{x}\": unknown placeholder {x}, expected one of version, arch",
    ),
    (
        r#""downloads": {"x": {"url": "https://a/x", "version": ¦"../1", STATED, FILE}}"#,
        "\"../1\" is not a valid version",
    ),
    (
        r#""downloads": {"x": {"url": "https://a/x", "version": ¦1, STATED, FILE}}"#,
        "invalid type: integer `1`, expected a version, or an object with its source",
    ),
    (r#""downloads": {"x": {"url": "https://a/x", "version": "1", "sha256": ¦"00", FILE}}"#, "\"00\" is not a SHA-256"),
    (
        r#""downloads": {"x": {"url": "https://a/x", "version": "1", "sha256": {"amd64": ¦"00"}, FILE}}"#,
        "\"00\" is not a",
    ),
    (
        r#""downloads": {"x": {"url": "https://a/x", "version": "1", "sha256": ¦{}, FILE}}"#,
        "expected at least one architecture",
    ),
    (
        r#""downloads": {"x": {"url": "https://a/x", "version": "1", "sha256": ¦1, FILE}}"#,
        "invalid type: integer `1`, expected a string, or an object",
    ),
    (r#""downloads": {¦"x": {"url": "https://a/x", "version": "1", FILE}}"#, "no proof: add `sha256`"),
    (
        r#""downloads": {¦"x": {"url": "https://a/x", "version": "1", "proof": "first-use", FILE}}"#,
        "`proof` must be \"checksum\"",
    ),
    (
        r#""downloads": {¦"x": {"url": "https://a/x", "version": "1", "proof": "apt", FILE}}"#,
        "`proof` must be \"checksum\"",
    ),
    (
        r#""downloads": {¦"x": {"url": "https://a/x", "version": "1", "proof": "checksum", FILE}}"#,
        "checksums is missing",
    ),
    (
        r#""downloads": {¦"x": {"url": "https://a/x", "version": "1", "checksums": "http://a/s", FILE}}"#,
        "URL is not https",
    ),
    (
        r#""downloads": {¦"x": {"url": "https://a/x", "version": "1", STATED, "checksums": "{url}.sum", FILE}}"#,
        "`sha256` cannot be combined with `checksums` and `proof`",
    ),
    (
        r#""downloads": {¦"x": {"url": "https://a/x", "version": {"github": "a/x"}, STATED, FILE}}"#,
        "`sha256` requires a fixed `version`",
    ),
    (
        r#""downloads": {"x": {"url": "https://a/x", "version": "1", STATED, "install": {"type": "file", "path": ¦"x", "mode": "0755"}}}"#,
        "path \"x\" is not absolute",
    ),
    (
        r#""downloads": {"x": {"url": "https://a/x", "version": "1", STATED, "install": {"type": "file", "path": "/x", "mode": ¦"4755"}}}"#,
        "mode 4755 has set-uid",
    ),
    (
        r#""downloads": {"x": {"url": "https://a/x", "version": "1", STATED, "install": {"type": ¦"rpm"}}}"#,
        "unknown variant `rpm`",
    ),
    (r#""container_images": [¦"redis:7"]"#, "invalid reference \"redis:7\": expected HOST/NAME:TAG"),
    (
        r#""container_images": [¦"docker.io/library/redis"]"#,
        "invalid reference \"docker.io/library/redis\": expected HOST/NAME:TAG",
    ),
    (r#""container_images": ["docker.io/a/b:1", ¦"docker.io/a/b:1"]"#, "duplicate \"docker.io/a/b:1\""),
];

#[test]
fn every_fault_has_its_line_and_column() {
    let said = |(marked, message): &(&str, &'static str)| {
        let text = WORDS.iter().fold((*marked).to_owned(), |text, (word, stands)| text.replace(word, stands));
        (text, *message)
    };
    are_found(FAULTS.iter().map(said));
}

#[test]
fn the_schema_and_the_examples_have_the_keys() {
    let vmbake = || Command::new(env!("CARGO_BIN_EXE_vmbake"));
    let schema = vmbake().args(["schema", "layer"]).output().unwrap().stdout;
    let schema: serde_json::Value = serde_json::from_slice(&schema).unwrap();
    for key in ["downloads", "container_images"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/k3s");
    let checked = vmbake().args(["layer", "check"]).arg(example).output().unwrap();
    assert!(checked.status.success() && checked.stdout.is_empty(), "{}", String::from_utf8_lossy(&checked.stdout));
}
