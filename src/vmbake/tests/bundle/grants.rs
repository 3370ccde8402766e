//! Bundles that a bake refuses because of missing grants or signatures: nothing is fetched or written.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::composing::{refused, shop};
use super::forge::Forge;
use super::shop::document;
use crate::archive::lab::{Member, join, member, members};
use crate::registry::start;
use crate::tools::have;

#[test]
fn every_list_of_a_grant_counts() {
    let Some(shop) = shop() else { return };
    // What a bundle asks for is refused, whether it does it or not.
    for (list, value) in [
        ("setuid", "/opt/tool/bin/tool"),
        ("users", "agent"),
        ("scripts", "cron"),
        ("commands", "/usr/bin/true"),
        ("ports", "80/tcp"),
    ] {
        shop.put("agent/bundle.json", &document(&format!(r#", "{list}": ["{value}"]"#)));
        shop.packed("more.oci", &["--key=acme.key", "--offline", "--force"]);
        let said = refused(&shop, &["--with=more.oci"]);
        let expected = format!("more.oci: publisher acme: requests more than granted: {list} {value}\n");
        assert!(
            said.contains(&expected) && said.contains("hint: run `vmbake bundle inspect` to show what it requests"),
            "{said}"
        );
    }
}

#[test]
fn a_bundle_cannot_answer_for_a_script_or_run_a_command_by_itself() {
    let Some(shop) = shop() else { return };
    let script = r#", "scripts": [{"package": "cron", "script": "postinst", "sha256":
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "skip": "because we say so"}]"#;
    shop.write(r#", "scripts": ["cron"]"#, script);
    shop.packed("script.oci", &["--key=acme.key", "--offline"]);
    let said = refused(&shop, &["--with=script.oci"]);
    assert!(said.contains("publisher acme: requests more than granted: scripts cron"), "{said}");

    shop.put("agent/bundle.json", &document(r#", "commands": ["/bin/sh -c id"]"#));
    let layer =
        super::shop::layer("").replace("\"services\":", "\"commands\": [[\"/bin/sh\", \"-c\", \"id\"]], \"services\":");
    shop.put("agent/layers/acme.agent/layer.json", &layer);
    shop.packed("command.oci", &["--key=acme.key", "--offline"]);
    let said = refused(&shop, &["--with=command.oci"]);
    assert!(said.contains("publisher acme: requests more than granted: commands /bin/sh -c id"), "{said}");
}

#[test]
fn a_command_is_granted_with_its_words() {
    let Some(shop) = super::shop::Shop::new() else { return };
    for (asked, words, is_fine) in [
        ("/bin/sh -c id", r#""/bin/sh", "-c", "id""#, true),
        ("/bin/sh -c id", r#""/bin/sh", "-c id""#, false),
        ("/bin/sh -c id", r#""/bin/sh -c id""#, false),
        ("/bin/sh '-c id'", r#""/bin/sh", "-c id""#, true),
        ("/usr/bin/get https://up.example//x", r#""/usr/bin/get", "https://up.example//x""#, true),
    ] {
        shop.put("agent/bundle.json", &document(&format!(r#", "commands": ["{asked}"]"#)));
        let command = format!("\"commands\": [[{words}]], \"services\":");
        shop.put("agent/layers/acme.agent/layer.json", &super::shop::layer("").replace("\"services\":", &command));
        let (ok, said) = shop.check("agent");
        let is_named = said.contains("`first_boot/commands`: ") && said.contains("is not in `asks/commands`");
        assert!(ok == is_fine && (ok || is_named), "{asked}, {words}: {said}");
    }
}

#[test]
fn who_signs_for_one_publisher_does_not_sign_for_another() {
    let Some(shop) = shop() else { return };
    shop.key("beta");
    let path = shop.path("trust/publishers/acme.json");
    let granted: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut beta = granted.clone();
    (beta["publisher"], beta["names"]) = (json!("beta"), json!("beta."));
    beta["key"] = json!(fs::read_to_string(shop.path("beta.pub")).unwrap());
    shop.put("trust/publishers/beta.json", &beta.to_string());
    // The key of a publisher whom the consumer knows as well.
    shop.packed("other.oci", &["--key=beta.key", "--offline"]);
    let said = refused(&shop, &["--with=other.oci"]);
    assert!(said.contains("other.oci: not signed by publisher acme: "), "{said}");
    // The index names the other publisher, the document does not.
    let mut forge = Forge::new(&shop.path("other.oci"));
    forge.index["annotations"]["org.opencontainers.image.title"] = json!("beta.agent");
    forge.write();
    forge.sign(&shop.path("beta.key"));
    let said = refused(&shop, &["--with=other.oci"]);
    assert!(said.contains("other.oci: publisher beta: acme.agent does not start with \"beta.\""), "{said}");
    // A key does not replace an identity.
    let mut known = granted;
    known.as_object_mut().unwrap().remove("key");
    (known["identity"], known["issuer"]) = (json!("release@acme.example"), json!("https://issuer.example"));
    fs::write(&path, known.to_string()).unwrap();
    let said = refused(&shop, &["--with=agent.oci"]);
    assert!(said.contains("agent.oci: not signed by publisher acme: "), "{said}");
}

#[test]
fn what_is_granted_for_one_repository_is_not_granted_for_its_neighbour() {
    if !have(&["docker-registry"]) {
        return;
    }
    let Some(shop) = shop() else { return };
    let registry = start(&shop.path("."));
    let place = format!("{}/acme/agents", registry.address);
    assert!(shop.said(&["push", "agent.oci", &place]).0);
    let path = shop.path("trust/publishers/acme.json");
    let mut granted: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    granted["registry"] = json!(format!("{}/acme/agent", registry.address));
    fs::write(&path, granted.to_string()).unwrap();
    let with = format!("--with={place}:1.0.0_a1");
    let (ok, said) = shop.yard.run(&[
        "bundle",
        "plan",
        "box",
        "--os=o",
        "--manifests=m",
        "--layers=layers",
        "--trust=anchors",
        &with,
    ]);
    assert!(
        !ok && said.contains(&format!("publisher acme: {place} is not below {}/acme/agent", registry.address)),
        "{said}"
    );
}

/// The layers with one more member at their end.
fn with(forge: &mut Forge, more: Vec<Member>) {
    let mut all = members(&forge.layers);
    all.extend(more);
    forge.layers = join(&all);
}

/// Puts more keys into the document.
fn set(forge: &mut Forge, key: &str, value: Value) {
    let mut document = forge.document();
    document[key] = value;
    forge.config = document.to_string().into_bytes();
}

/// Changes with the publisher's key, and the expected message.
type Change = (fn(&mut Forge), &'static str);

/// `acme.agent/files/z` sorts behind all that a layer has.
fn plain(name: &str) -> Member {
    member(name, b"x", |_| ())
}

const CHANGES: &[Change] = &[
    (
        |forge| {
            with(
                forge,
                vec![member("acme.agent/z", b"x", |header| {
                    let name = b"acme.agent/files/../../../z";
                    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
                })],
            )
        },
        "has an unsafe name",
    ),
    (
        |forge| {
            with(
                forge,
                vec![member("acme.agent/z", b"", |header| {
                    header.set_entry_type(tar::EntryType::Symlink);
                    header.set_link_name("/etc").unwrap();
                })],
            )
        },
        "is a symbolic link, but only regular files are supported",
    ),
    (
        |forge| with(forge, vec![plain("beta.agent/layer.json")]),
        "beta.agent/layer.json: is in the tar file of layers, but not a file of a layer",
    ),
    (
        |forge| with(forge, (0..10_001).map(|number| plain(&format!("acme.agent/z{number:05}"))).collect()),
        "signed.oci: contains more than 10000 files of layers",
    ),
    (
        |forge| {
            let (digest, size) = forge.put(b"foreign");
            let foreign = json!({"mediaType": "application/vnd.vmbake.blob.v1", "digest": digest, "size": size});
            forge.manifests[0]["layers"].as_array_mut().unwrap().push(foreign);
        },
        "is not listed in bundle.json",
    ),
    (
        |forge| {
            let (digest, size) = forge.put(b"{}");
            let kind = "application/vnd.oci.image.manifest.v1+json";
            let foreign = json!({"mediaType": kind, "digest": digest, "size": size});
            forge.index["manifests"].as_array_mut().unwrap().push(foreign);
        },
        "is listed in the index, but not the manifest of a bundle",
    ),
    (|forge| forge.config = "[".repeat(1 << 19).into_bytes(), "signed.oci:1:"),
    (|forge| forge.config.resize((1 << 20) + 1, b' '), "more than the limit of 1048576"),
    (|forge| forge.index["annotations"]["a"] = json!("a".repeat(5 << 20)), "more than the limit of 4194304"),
    (
        |forge| set(forge, "conflicts", (0..1025).map(|number| json!(format!("n{number}"))).collect()),
        "`conflicts`: has more than 1024 entries",
    ),
    (
        |forge| set(forge, "state", json!(["/var/lib/../../etc"])),
        "`state`: path \"/var/lib/../../etc\" is not absolute",
    ),
    (|forge| set(forge, "name", json!("../agent")), "`name`: \"../agent\" is invalid: expected"),
];

#[test]
fn a_signature_does_not_make_a_harmful_bundle_sound() {
    let Some(shop) = shop() else { return };
    let copy = shop.path("signed.oci");
    for (change, expected) in CHANGES {
        fs::remove_dir_all(&copy).ok();
        let from: PathBuf = shop.path("agent.oci");
        assert!(std::process::Command::new("cp").arg("-r").arg(from).arg(&copy).status().unwrap().success());
        let mut forge = Forge::new(&copy);
        change(&mut forge);
        forge.write();
        forge.sign(&shop.path("acme.key"));
        let said = refused(&shop, &["--with=signed.oci"]);
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn what_was_changed_after_it_was_signed_is_not_taken() {
    let Some(shop) = shop() else { return };
    let mut forge = Forge::new(&shop.path("agent.oci"));
    set(&mut forge, "description", json!("Another agent."));
    forge.write();
    let said = refused(&shop, &["--with=agent.oci"]);
    assert!(
        said.contains("agent.oci: not signed by publisher acme: no attached document is a valid signature"),
        "{said}"
    );
}
