//! Archives at an offline site.

use std::fs;

use vmbake_common::digest::Digest;

use super::lab::{Lab, edit, shell, stderr, text, vmbake};
use crate::origin::bakery::{bake, can_bake};
use crate::registry::stand_in::{reply, serve};

const RAW: &str = "tools.o.amd64.raw";
const QCOW2: &str = "tools.o.amd64.qcow2";

#[test]
fn a_site_bakes_the_same_and_then_its_own() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    bake(&lab.request).unwrap();
    let archive = lab.archive("a.tar", &[]);
    let verified = lab.run("verify", &archive, &[]);
    assert!(verified.status.success(), "{}", stderr(&verified));
    let [store, inputs, out] = ["site/store", "site/inputs", "site/dist"].map(|name| lab.path(name));
    let args = ["--store", text(&store), "--inputs-to", text(&inputs), "--out", text(&out)];
    let applied = lab.run("apply", &archive, &args);
    assert!(applied.status.success(), "{}", stderr(&applied));
    for name in [RAW, QCOW2] {
        assert!(fs::read(out.join(name)).unwrap() == fs::read(lab.request.out.join(name)).unwrap(), "{name}");
    }
    // The command that it prints bakes again; a changed layer makes another image.
    let command = String::from_utf8(applied.stdout).unwrap();
    assert!(
        command.starts_with("vmbake bake tools --os o --arch amd64 --offline --no-builtin --manifest "),
        "{command}"
    );
    edit(&inputs.join("layers/00/tools/files/etc/tool.conf"), |text| text + "tool = 2\n");
    let script = format!(
        "\"$0\" {} --out own --format raw && \"$0\" cat own/{RAW} /etc/tool.conf",
        command.trim().strip_prefix("vmbake ").unwrap()
    );
    let own = shell(lab.dir.path(), &script);
    assert!(own.status.success(), "{}", stderr(&own));
    assert!(String::from_utf8(own.stdout).unwrap().ends_with("tool = 1\ntool = 2\n"));
    // A second site gives its folder no half of it.
    let again = lab.run("apply", &archive, &args);
    assert!(stderr(&again).contains("inputs: already exists"), "{}", stderr(&again));
}

#[test]
fn an_archive_is_the_same_wherever_it_is_made_and_other_tools_read_it() {
    let lab = Lab::short();
    let archive = lab.archive("a.tar", &["--jobs", "1"]);
    let bytes = fs::read(&archive).unwrap();
    let other = Lab::short();
    assert!(fs::read(other.archive("other/b.tar", &["--jobs", "3"])).unwrap() == bytes);
    // Three parts, and what each command makes of them.
    let limit = (bytes.len() / 3 + 1).to_string();
    let parts = lab.archive("parts/p.tar", &["--split", &limit]);
    let of = |number: usize| fs::read(format!("{}.00{number}", parts.display())).unwrap();
    assert!([of(0), of(1), of(2)].concat() == bytes && !parts.exists());
    for command in ["verify", "list"] {
        let [one, all] = [&archive, &parts].map(|archive| lab.run(command, archive, &[]));
        assert!(one.status.success() && one.stdout == all.stdout, "{}{}", stderr(&one), stderr(&all));
    }
    // Fewer parts than before: no old one is left.
    lab.archive("parts/p.tar", &["--split", &bytes.len().to_string(), "--force"]);
    assert!(!lab.path("parts/p.tar.001").exists());
    let listed = shell(
        lab.dir.path(),
        "tar -tvf a.tar && mkdir t && tar -C t -xf a.tar && cat t/oci-layout && ls t/blobs/sha256",
    );
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.starts_with("-rw-r--r-- 0/0"), "{listed}");
    assert!(listed.contains("{\"imageLayoutVersion\":\"1.0.0\"}"), "{listed}");
    let overhead =
        bytes.len() as f64 / shell(lab.dir.path(), "cat t/blobs/*/* t/oci-layout t/index.json").stdout.len() as f64;
    assert!(overhead < 1.02, "{overhead}");
}

#[test]
fn what_a_site_has_is_left_out() {
    let lab = Lab::short();
    let first = lab.archive("a.tar", &[]);
    edit(&lab.path("layers/tools/files/etc/tool.conf"), |text| text + "more\n");
    let next = lab.archive("b.tar", &["--since", text(&first)]);
    assert!(fs::metadata(&next).unwrap().len() < 40_000);
    let said = String::from_utf8(lab.run("verify", &next, &[]).stdout).unwrap();
    assert!(said.contains(" in an earlier archive"), "{said}");
    let listed = String::from_utf8(lab.run("list", &next, &["--json"]).stdout).unwrap();
    assert!(listed.contains("\"since\": \"sha256:"), "{listed}");
    let [empty, site, inputs] = ["empty", "site", "inputs"].map(|name| lab.path(name));
    let refused = lab.run("import", &next, &["--store", text(&empty)]);
    assert!(stderr(&refused).contains("is not in the store"), "{}", stderr(&refused));
    assert_eq!(lab.blobs("empty"), 0);
    let args = ["--store", text(&site)];
    assert!(lab.run("import", &first, &args).status.success());
    let before = lab.blobs("site");
    assert!(before > 3, "artifacts, evidence and the base are there");
    let again = lab.run("import", &first, &args);
    assert!(String::from_utf8(again.stdout).unwrap().starts_with("0 blobs added"));
    let imported = lab.run("import", &next, &[&args[..], &["--inputs-to", text(&inputs)]].concat());
    assert!(imported.status.success(), "{}", stderr(&imported));
    let layer = fs::read_to_string(inputs.join("layers/00/tools/files/etc/tool.conf")).unwrap();
    assert_eq!(layer, "tool = 1\nmore\n");
    assert_eq!(lab.blobs("site"), before);
}

#[test]
fn what_a_registry_has_is_left_out() {
    let lab = Lab::short();
    let first = lab.archive("a.tar", &[]);
    let listed = lab.run("list", &first, &["--json"]).stdout;
    let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
    let layers: Vec<_> = listed["blobs"].as_array().unwrap().iter().map(layer).collect();
    let manifest = serde_json::json!({"schemaVersion": 2, "layers": layers}).to_string();
    let digest = Digest::of(manifest.as_bytes());
    let one = serde_json::json!({"mediaType": "m", "digest": digest.to_string(), "size": manifest.len()});
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [one]}).to_string();
    let long = serde_json::json!({"manifests": vec![one; 257]}).to_string();
    let server = serve(move |_, request, _| match request.path.rsplit('/').next().unwrap() {
        "release" => reply(200, index.clone()),
        "long" => reply(200, long.clone()),
        "text" => reply(200, "text"),
        name if name == digest.to_string() => reply(200, manifest.clone()),
        _ => reply(404, ""),
    });
    let place = format!("{}/site/node", server.address);
    let next = lab.archive("b.tar", &["--since", &format!("{place}:release")]);
    let same = lab.archive("c.tar", &["--since", text(&first)]);
    let without = |archive| {
        let listed = lab.run("list", archive, &["--json"]).stdout;
        let mut listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
        listed["blobs"].take()
    };
    assert_eq!(without(&next), without(&same), "an archive and a registry that have the same leave out the same");
    for (what, said) in [
        (":text", "invalid index or manifest"),
        (":long", "index with more than 256 manifests"),
        (":other", "the server returned status 404"),
        ("", "expected a tag or a digest"),
    ] {
        let refused = lab.create("tools", "d.tar", &["--since", &format!("{place}{what}")]);
        assert!(stderr(&refused).contains(said), "{what}: {}", stderr(&refused));
        assert!(!lab.path("d.tar").exists());
    }
}

fn layer(blob: &serde_json::Value) -> serde_json::Value {
    serde_json::json!({"mediaType": "m", "digest": blob["digest"], "size": blob["size"]})
}

#[test]
fn an_image_comes_with_all_that_is_beside_it() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    bake(&lab.request).unwrap();
    let image = lab.request.out.join(QCOW2);
    let made = lab.create(text(&image), "i.tar", &["--images"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let out = lab.path("site");
    let applied = lab.run("apply", &lab.path("i.tar"), &["--out", text(&out), "--store", text(&lab.path("none"))]);
    assert!(applied.status.success(), "{}", stderr(&applied));
    for entry in fs::read_dir(&lab.request.out).unwrap() {
        let name = entry.unwrap().file_name();
        if name != RAW {
            assert!(fs::read(out.join(&name)).unwrap() == fs::read(lab.request.out.join(&name)).unwrap(), "{name:?}");
        }
    }
    let both = lab.create(text(&image), "both.tar", &[]);
    assert!(both.status.success(), "{}", stderr(&both));
    assert_eq!(lab.run("verify", &lab.path("both.tar"), &[]).status.code(), Some(0));
    let raw = lab.create(text(&lab.request.out.join(RAW)), "raw.tar", &[]);
    assert!(stderr(&raw).contains("only qcow2 images can be archived"), "{}", stderr(&raw));
    assert!(!lab.path("raw.tar").exists());
}

#[test]
fn a_signature_is_of_the_index_and_so_of_everything() {
    let lab = Lab::short();
    for key in ["one", "two"] {
        assert!(vmbake(&["key", "generate", "--out", text(&lab.path(key))], &[]).status.success());
    }
    let [private, one, two] = ["one.key", "one.pub", "two.pub"].map(|name| text(&lab.path(name)).to_owned());
    let archive = lab.archive("a.tar", &["--key", &private]);
    assert!(lab.path("a.tar.sigstore.json").exists());
    let unsigned = lab.archive("b.tar", &[]);
    let [store, inputs, out] = ["site", "inputs", "out"].map(|name| text(&lab.path(name)).to_owned());
    let commands: [(&str, &[&str]); 3] = [
        ("verify", &[]),
        ("import", &["--store", &store]),
        ("apply", &["--store", &store, "--inputs-to", &inputs, "--out", &out]),
    ];
    for (command, args) in commands {
        for (archive, key, expected) in
            [(&archive, &two, "not signed by"), (&unsigned, &one, "no signature next to the document")]
        {
            let refused = lab.run(command, archive, &[args, &["--key", key]].concat());
            assert!(stderr(&refused).contains(expected), "{command}: {}", stderr(&refused));
            assert_eq!((refused.status.code(), lab.blobs("site")), (Some(1), 0));
        }
    }
    for args in [&["--key", &one][..], &[]] {
        assert!(lab.run("verify", &archive, args).status.success());
    }
    // Another archive under the signature of this one: a layer of it is another.
    edit(&lab.path("layers/tools/files/etc/tool.conf"), |text| text + "more\n");
    lab.archive("a.tar", &["--force"]);
    let refused = lab.run("import", &archive, &["--store", &store, "--key", &one]);
    assert!(stderr(&refused).contains("a.tar: not signed by"), "{}", stderr(&refused));
    assert_eq!(lab.blobs("site"), 0);
}
