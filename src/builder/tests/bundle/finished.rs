//! The finished image: what archives bring in spite of what was asked for, and what a bundle needs of it.

use super::composing::{bake, shop};
use crate::origin::bakery::{bake as bake_request, base_of, can_bake, request};

use super::shop::{Shop, document, layer};

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
        (r#"{"program": "iptables"}"#, "bundle acme.agent requires program iptables, which the image does not have"),
        (r#"{"library": "libnone.so.1"}"#, "bundle acme.agent requires library libnone.so.1, which"),
        (r#"{"module": "br_netfilter"}"#, "bundle acme.agent requires kernel module br_netfilter, which"),
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
    asked.more.granted =
        [("tools".to_owned(), ["/usr/bin", "/etc", "/opt/podplane"].map(str::to_owned).to_vec())].into();
    let error = bake_request(&asked).unwrap_err();
    assert!(error.to_string().starts_with("layer tools: brings /opt/pack/"), "{error}");
    asked.more.granted = [("tools".to_owned(), ["/usr/bin", "/etc", "/opt"].map(str::to_owned).to_vec())].into();
    bake_request(&asked).unwrap();
}
