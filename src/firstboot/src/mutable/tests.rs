//! Tests of merging mutable variables.

use super::*;

use std::fs;
use std::os::unix::fs::MetadataExt;

use proptest::prelude::*;
use tempfile::TempDir;

const PLAN: &str = r#"{"variables": {
    "SSH_AUTHORIZED_KEYS": {"mutable": true, "aliases": ["SSH_AUTHORIZED_KEY"]},
    "OIDC_CA_CERT": {"mutable": true, "aliases": ["OIDC_CUSTOM_CA", "OIDC_CA_FILE"]},
    "KUBE_API_PORT": {"mutable": true, "default": "6443"},
    "INSTANCE_ID": {"default": "i-1"}
}}"#;

struct Case {
    tree: TempDir,
    root: Root,
    plan: Plan,
}

impl Case {
    /// `None` if the tests cannot change owners, which CI can.
    fn new() -> Option<Self> {
        let tree = tempfile::tempdir().unwrap();
        if fs::metadata(tree.path()).unwrap().uid() != 0 {
            assert!(std::env::var_os("CI").is_none(), "this test needs root");
            return None;
        }
        let root = Root::open(tree.path(), false).unwrap();
        Some(Self { tree, root, plan: serde_json::from_str(PLAN).unwrap() })
    }

    fn update(&self, source: &[u8]) -> Result<bool, Error> {
        fs::write(self.tree.path().join("source"), source).unwrap();
        update(&self.root, &self.plan, "/source", "/mutable.env", false)
    }

    fn set(&self, destination: &str) {
        fs::write(self.tree.path().join("mutable.env"), destination).unwrap();
    }

    fn result(&self) -> String {
        fs::read_to_string(self.tree.path().join("mutable.env")).unwrap_or_default()
    }
}

#[test]
fn what_cannot_work_is_not_written() {
    let Some(mut case) = Case::new() else { return };
    case.plan =
        serde_json::from_str(r#"{"variables": {"ON": {"mutable": true, "format": "boolean", "default": "true"}}}"#)
            .unwrap();
    assert!(matches!(case.update(b"ON=maybe\n"), Err(Error::Setting { .. })));
    assert_eq!(case.result(), "");
    assert!(case.update(b"ON=false\n").unwrap() && case.update(b"ON=\n").unwrap());
}

#[test]
fn an_address_of_a_server_is_refused_as_a_whole_or_written() {
    let Some(mut case) = Case::new() else { return };
    let plan = r#"{"variables": {"B": {"mutable": true}, "SERVER": {"mutable": true, "unlisted": true, "format": "host-port"},
        "MASK": {"mutable": true, "default": "24", "format": "number", "max": 32}}}"#;
    case.plan = serde_json::from_str(plan).unwrap();
    for line in ["SERVER=nohost", "SERVER=h:99999", "SERVER=[::1]:0", "MASK=33"] {
        let refused = case.update(format!("B=1\n{line}\n").as_bytes()).unwrap_err().to_string();
        assert!(refused.contains(": expected ") && case.result().is_empty(), "{line}: {refused}");
    }
    assert!(case.update(b"B=https://[::1]:1,https://[fd00::2]\nSERVER=[fd00:9::7]:8993\nMASK=32\n").unwrap());
    assert_eq!(case.result(), "B='https://[::1]:1,https://[fd00::2]'\nMASK='32'\nSERVER='[fd00:9::7]:8993'\n");
    let script = format!(". {}/mutable.env; printf %s \"$SERVER\"", case.tree.path().display());
    let read = std::process::Command::new("sh").args(["-uc", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&read.stdout), "[fd00:9::7]:8993");
}

#[test]
fn what_is_new_replaces_what_is_there() {
    let Some(case) = Case::new() else { return };
    case.set("KUBE_API_PORT='1'\nSSH_AUTHORIZED_KEYS='a\nb'\nOLD='x'\nOIDC_CUSTOM_CA='c'\nOIDC_CA_CERT=''\n");
    assert!(case.update(b"# c\r\n\n  export KUBE_API_PORT= 2 \r\n").unwrap());
    let expected = "KUBE_API_PORT='2'\nOIDC_CA_CERT='c'\nSSH_AUTHORIZED_KEYS='a\nb'\n";
    assert_eq!(case.result(), expected);
    let found = fs::metadata(case.tree.path().join("mutable.env")).unwrap();
    assert_eq!((found.mode() & 0o7777, found.uid(), found.gid()), (0o600, 0, 0));
    assert!(!case.update(b"").unwrap(), "nothing new");
    assert!(case.update(b"SSH_AUTHORIZED_KEY=\"ssh-rsa A+/= x@y, #1\"\nOIDC_CA_CERT=''\n").unwrap());
    assert_eq!(case.result(), "KUBE_API_PORT='2'\nOIDC_CA_CERT=''\nSSH_AUTHORIZED_KEYS='ssh-rsa A+/= x@y, #1'\n");
}

#[test]
fn an_unlisted_variable_is_there_while_it_has_a_value() {
    let Some(mut case) = Case::new() else { return };
    let plan = r#"{"variables": {
        "ON": {"mutable": true, "default": "true", "empty": true, "format": "boolean"},
        "PORT": {"mutable": true, "default": "1", "format": "port", "unlisted": true}}}"#;
    case.plan = serde_json::from_str(plan).unwrap();
    let counts = |case: &Case| {
        let found = env::parse(Path::new("mutable.env"), case.result().as_bytes()).unwrap();
        let variables = crate::settings::combine(&case.plan, &[&found]).unwrap();
        ["ON", "PORT"].map(|name| variables[name].clone()).join(" ")
    };
    assert!(case.update(b"").unwrap());
    assert_eq!((case.result().as_str(), counts(&case).as_str()), ("ON='true'\n", "true 1"));
    assert!(case.update(b"ON=''\nPORT='2'\n").unwrap());
    assert_eq!((case.result().as_str(), counts(&case).as_str()), ("ON=''\nPORT='2'\n", " 2"));
    // A written default takes precedence over user data.
    assert!(case.update(b"PORT=1\n").unwrap());
    assert_eq!(case.result(), "ON=''\nPORT='1'\n");
    assert!(case.update(b"PORT=\n").unwrap());
    assert_eq!((case.result().as_str(), counts(&case).as_str()), ("ON=''\n", " 1"));
}

#[test]
fn without_a_present_file_the_defaults_count() {
    let Some(case) = Case::new() else { return };
    assert!(case.update(b"OIDC_CA_FILE=b\nOIDC_CUSTOM_CA=a").unwrap());
    assert_eq!(case.result(), "KUBE_API_PORT='6443'\nOIDC_CA_CERT='a'\nSSH_AUTHORIZED_KEYS=''\n");
}

#[test]
fn what_may_not_be_set_is_refused_and_nothing_is_written() {
    let Some(case) = Case::new() else { return };
    case.set("KUBE_API_PORT='1'\n");
    let longest = format!("KUBE_API_PORT={}", "1".repeat(4096));
    let longer = format!("{longest}1");
    for (source, expected) in [
        (&b"KUBE_API_PORT=2\nINSTANCE_ID=x"[..], "INSTANCE_ID is not a mutable variable"),
        (b"KUBE_API_PORT=2\nKUBE_API_PORT=3", "KUBE_API_PORT is set twice"),
        (b"KUBE_API_PORT=2\nNONE", "source:2: expected NAME=value"),
        (b"KUBE-API-PORT=2", "source:1: expected NAME=value"),
        (b"KUBE_API_PORT=$(id)", "source:1: expected a value"),
        (b"KUBE_API_PORT='2", "source:1: expected a value"),
        (b"KUBE_API_PORT='a'\\''b'", "source:1: expected a value"),
        (b"KUBE_API_PORT='a\nb'", "source:1: expected a value"),
        (b"KUBE_API_PORT=\xc3\xa9", "source:1: expected a value"),
        (b"KUBE_API_PORT=[a]:1", "source:1: expected a value"),
        (b"KUBE_API_PORT=[::1", "source:1: expected a value"),
        (b"KUBE_API_PORT=::1]", "source:1: expected a value"),
        (b"KUBE_API_PORT=[::1]$[::1]", "source:1: expected a value"),
        (b"KUBE_API_PORT=2\rx", "source:1: expected a value"),
        (b"KUBE_API_PORT=\xff", "source:1: expected UTF-8"),
        (b"#\nKUBE_API_PORT=\0", "source:2: expected text without NUL"),
        (longer.as_bytes(), "source:1: expected a value"),
    ] {
        let message = case.update(source).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("id)"), "{message}: values are secrets");
        assert_eq!(case.result(), "KUBE_API_PORT='1'\n");
    }
    assert!(case.update(longest.as_bytes()).unwrap());
    case.set("KUBE_API_PORT='1");
    assert!(matches!(case.update(b"KUBE_API_PORT=2"), Err(Error::Syntax { line: 1, .. })));
}

#[test]
fn the_source_is_removed_when_wanted_and_done() {
    let Some(case) = Case::new() else { return };
    let source = case.tree.path().join("source");
    case.update(b"NONE=1").unwrap_err();
    assert!(update(&case.root, &case.plan, "/source", "/mutable.env", true).is_err() && source.exists());
    case.update(b"KUBE_API_PORT=2").unwrap();
    assert!(!update(&case.root, &case.plan, "/source", "/mutable.env", true).unwrap() && !source.exists());
    let missing = update(&case.root, &case.plan, "/source", "/mutable.env", true).unwrap_err();
    assert!(matches!(missing, Error::Io { action: "find", .. }));
    let same = update(&case.root, &case.plan, "/mutable.env", "/mutable.env", true);
    assert!(matches!(same, Err(Error::Refused { .. })));
}

fn value() -> impl Strategy<Value = String> {
    "[-A-Za-z0-9 ./_:+=#@,]{0,12}".prop_map(|value| value.trim().to_owned())
}

fn some() -> impl Strategy<Value = BTreeMap<String, String>> {
    let name = "SSH_AUTHORIZED_KEYS?|OIDC_CA_CERT|OIDC_CUSTOM_CA|OIDC_CA_FILE|KUBE_API_PORT";
    prop::collection::btree_map(name, value(), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn twice_is_once_and_the_order_of_lines_does_not_matter(before in some(), new in some(), turn in 0_usize..6) {
        let Some(case) = Case::new() else { return Ok(()) };
        let destination = env::render(before.iter().map(|(name, value)| (name.as_str(), value.as_str()))).unwrap();
        let mut lines: Vec<String> = new.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        case.set(&destination);
        case.update(lines.concat().as_bytes()).unwrap();
        let once = case.result();
        prop_assert!(!case.update(lines.concat().as_bytes()).unwrap());
        prop_assert_eq!(case.result(), &once[..]);

        let turn = turn.min(lines.len());
        lines.rotate_left(turn);
        lines.reverse();
        case.set(&destination);
        case.update(lines.concat().as_bytes()).unwrap();
        prop_assert_eq!(case.result(), &once[..]);

        let read = env::parse(Path::new("mutable.env"), once.as_bytes()).unwrap();
        let names: Vec<&str> = read.keys().map(String::as_str).collect();
        prop_assert_eq!(names, ["KUBE_API_PORT", "OIDC_CA_CERT", "SSH_AUTHORIZED_KEYS"]);
    }

    #[test]
    fn no_bytes_make_it_panic(source in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = values(Path::new("source"), &source);
    }
}
