//! Checks of the finished image: contents of archives beyond the grants, and requirements of bundles.

use std::time::Duration;

use vmbake_common::digest::Digest;
use vmbake_manifest::LayerGrants;

use super::composing::{bake, shop};
use super::shop::{Shop, document, layer};
use crate::fixtures as parts;
use crate::hostile::{self, file};
use crate::origin::bakery::{bake as bake_request, base_of, can_bake, request};
use crate::requested::yard::sha256;

/// Packs the bundle with other words and bakes it; what was said.
fn baked(shop: &Shop, of_document: (&str, &str), of_layer: (&str, &str)) -> (bool, String) {
    assert!(document("").contains(of_document.0) && layer("").contains(of_layer.0));
    shop.put("agent/bundle.json", &document("").replacen(of_document.0, of_document.1, 1));
    shop.put("agent/layers/acme.agent/layer.json", &layer("").replacen(of_layer.0, of_layer.1, 1));
    shop.packed("finished.oci", &["--key=acme.key", "--offline", "--force"]);
    std::fs::remove_file(shop.path("m/bundles.lock.json")).ok();
    bake(shop, &["--with=finished.oci"])
}

#[test]
fn what_a_bundle_requires_is_in_the_image_or_nothing_is_baked() {
    let Some(shop) = shop() else { return };
    let with = |need: &str| baked(&shop, ("\"state\"", &format!("\"requires\": [{need}], \"state\"")), ("", ""));
    for (need, expected) in [
        (r#"{"program": "iptables"}"#, "bundle acme.agent requires program iptables, which is missing in the image"),
        (r#"{"library": "libnone.so.1"}"#, "bundle acme.agent requires library libnone.so.1, which is missing"),
        (r#"{"module": "br_netfilter"}"#, "bundle acme.agent requires kernel module br_netfilter, which is missing"),
    ] {
        let (ok, said) = with(need);
        assert!(!ok && said.contains(expected) && said.contains("hint: add a layer"), "{said}");
        assert!(!shop.path("dist/box.o.amd64.raw").exists());
        // What never was in an image may be packed once more with the same version.
        assert!(!shop.path("m/bundles.lock.json").exists());
    }
    shop.yard.layer(
        "box",
        r#", "files": {"/usr/sbin/iptables": {"content": "x", "mode": "0755"}, "/usr/lib/x/libnone.so.1": {"content": "x"},
        "/usr/lib/modules/6.1/kernel/net/br-netfilter.ko.xz": {"content": "x"},
        "/usr/lib/modules/6.1/modules.builtin": {"content": "kernel/fs/ext4/ext4.ko\n"}}"#,
    );
    let all = r#"{"program": "iptables"}, {"library": "libnone.so.1"}, {"module": "br_netfilter"}, {"module": "ext4"}"#;
    let (ok, said) = with(all);
    assert!(ok, "{said}");
}

#[test]
fn an_archive_brings_nothing_beyond_what_was_asked_for() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut asked = request(dir.path(), base_of(dir.path()), "out", 2);
    asked.more.layers = vec!["tools".to_owned()];
    let grants = |paths: &[&str]| {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        [("tools".to_owned(), LayerGrants { paths, ..LayerGrants::default() })].into()
    };
    asked.more.granted = grants(&["/usr/bin", "/etc", "/opt/podplane"]);
    let error = bake_request(&asked).unwrap_err();
    assert!(error.to_string().starts_with("layer tools: creates /opt/pack"), "{error}");
    asked.more.granted = grants(&["/usr/bin", "/etc", "/opt"]);
    bake_request(&asked).unwrap();
}

#[test]
fn variables_of_other_layers_are_read_only_with_a_grant() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut asked = request(dir.path(), base_of(dir.path()), "out", 2);
    let layers = dir.path().join("layers");
    std::fs::create_dir(layers.join("secrets")).unwrap();
    let secrets = r#"{"name": "secrets", "version": "1", "description": "d", "os": ["o"], "first_boot": {"variables": {"TOKEN": {}}}}"#;
    std::fs::write(layers.join("secrets/layer.json"), secrets).unwrap();
    let tools = std::fs::read_to_string(layers.join("tools/layer.json")).unwrap();
    let reading = r#""requires": ["secrets"], "files": {"/etc/tool.tmpl": {"content": "{% if TOKEN %}x{% endif %}"}}, "first_boot": {"files": [
        {"path": "/etc/tool.env", "mode": "0600", "content": {"template": {"file": "/etc/tool.tmpl", "format": "text"}}}]}, "artifacts""#;
    std::fs::write(layers.join("tools/layer.json"), tools.replacen("\"artifacts\"", reading, 1)).unwrap();
    let granted = |variables: &[&str]| {
        let variables = variables.iter().map(|layer| (*layer).to_owned()).collect();
        let grants = LayerGrants { paths: vec!["/".to_owned()], variables, ..LayerGrants::default() };
        [("tools".to_owned(), grants)].into()
    };
    asked.more.granted = granted(&[]);
    let error = bake_request(&asked).unwrap_err().to_string();
    let expected = "layer tools: /first_boot/files/0/content/template/file: /etc/tool.tmpl: reads variable TOKEN, which layer secrets declares";
    assert!(error.contains(expected), "{error}");
    asked.more.granted = granted(&["secrets"]);
    bake_request(&asked).unwrap();
}

/// Packs the bundle with other members in its archive, and bakes it; what was said. The image and the lock must not be there.
fn refused(shop: &Shop, members: &[Vec<u8>]) -> String {
    let bytes = parts::compress("gz", &parts::tar(members));
    let files = ["amd64", "arm64"].map(|arch| (format!("/v1.0/tool-{arch}.tar.gz"), file(bytes.clone())));
    let site = hostile::serve(Duration::ZERO, files.into());
    let hex = Digest::of(&bytes).hex();
    let text = ["amd64", "arm64"].iter().fold(layer(""), |text, arch| text.replace(&sha256(arch), &hex));
    shop.put("agent/layers/acme.agent/layer.json", &text.replace(r#", "members": ["tool-1.0/bin/tool"]"#, ""));
    let mirror = format!("--mirror=https://up.example={}", site.url);
    let (ok, said) = shop.yard.run(&["bundle", "pack", "agent", "--out=out.tar", "--key=acme.key", "--force", &mirror]);
    assert!(ok, "{said}");
    let (ok, said) = bake(shop, &["--with=out.tar"]);
    let is_there = shop.path("dist/box.o.amd64.raw").exists() || shop.path("m/bundles.lock.json").exists();
    assert!(!ok && !is_there, "{said}");
    said
}

#[test]
fn archives_of_bundles_do_not_lead_out_of_their_prefix() {
    let Some(shop) = shop() else { return };
    let tool = || parts::with_mode(parts::file("tool-1.0/bin/tool", "x"), 0o755);
    let link = |kind, target: &str| parts::member(kind, b"tool-1.0/out", target.as_bytes(), b"");
    for (members, expected) in [
        (vec![tool(), parts::file("tool-1.0/../../etc/shadow", "x")], "../../etc/shadow\": name contains `..`"),
        (
            vec![tool(), link(b'2', "/etc"), parts::file("tool-1.0/out/shadow", "x")],
            "\"tool-1.0/out/shadow\": leads through the archive's symbolic link \"tool-1.0/out\"",
        ),
        (vec![tool(), link(b'1', "/etc/shadow")], "\"/etc/shadow\": name is absolute"),
        (vec![tool(), link(b'3', "")], "\"tool-1.0/out\": devices and named pipes are not supported"),
        (
            vec![tool(), parts::with_mode(parts::file("tool-1.0/su", "x"), 0o4755)],
            "/opt/tool/su: artifact acme.tool contains it with mode 4755",
        ),
        (
            vec![tool(), parts::with_mode(parts::dir("tool-1.0/spool/"), 0o2775)],
            "gives privileges to /opt/tool/spool, which is not granted",
        ),
        (
            vec![tool(), parts::file("tool-1.0/a\u{202e}b", "x")],
            "/opt/tool/a\\xe2\\x80\\xaeb: the name has a control, bidirectional or zero-width character",
        ),
    ] {
        let said = refused(&shop, &members);
        assert!(said.contains(expected) && said.contains("acme."), "{expected}: {said}");
    }
}
