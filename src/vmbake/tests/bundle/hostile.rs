//! Malicious bundles: refused with the reason, and nothing is written.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::forge::Forge;
use super::shop::{Shop, files};
use crate::archive::lab::{Member, join, member, members, name};

/// What `bundle check` says of a copy of a sound layout that was changed; the workshop must be as it was.
fn judged(shop: &Shop, change: impl FnOnce(&mut Forge)) -> String {
    let copy = shop.path("copy.oci");
    if copy.exists() {
        fs::remove_dir_all(&copy).unwrap();
    }
    let status = std::process::Command::new("cp").arg("-r").arg(shop.path("agent.oci")).arg(&copy).status().unwrap();
    assert!(status.success());
    let mut forge = Forge::new(&copy);
    change(&mut forge);
    forge.write();
    let before = files(&shop.path("."));
    let (ok, said) = shop.check("copy.oci");
    assert_eq!(files(&shop.path(".")), before);
    assert!(!ok, "nothing is said against it");
    said
}

fn shop() -> Option<Shop> {
    let shop = Shop::new()?;
    shop.packed("agent.oci", &[]);
    let sound = shop.check("agent.oci");
    assert_eq!(sound, (true, String::new()));
    Some(shop)
}

/// The layers with one more member, at its place.
fn with(forge: &mut Forge, more: Member) {
    let mut all = members(&forge.layers);
    let at = all.iter().position(|known| name(known) > name(&more)).unwrap_or(all.len());
    all.insert(at, more);
    forge.layers = join(&all);
}

#[test]
fn tar_files_of_layers_have_regular_files_of_their_layers_only() {
    let Some(shop) = shop() else { return };
    let plain = |name: &str| member(name, b"x", |_| ());
    let raw = |name: &'static str| {
        member("acme.agent/files/x", b"x", |header| {
            header.as_mut_bytes()[..100].fill(0);
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        })
    };
    let kind = |kind| member("acme.agent/files/x", b"", move |header| header.set_entry_type(kind));
    let link = member("acme.agent/files/x", b"", |header| {
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_link_name("/etc").unwrap();
    });
    for (more, expected) in [
        (raw("../../x"), "\"../../x\" at offset 0x"),
        (raw("/etc/x"), "has an unsafe name"),
        (raw("acme.agent/files/../../../x"), "has an unsafe name"),
        (
            plain("beta.agent/layer.json"),
            "beta.agent/layer.json: is in the tar file of layers, but not a file of a layer",
        ),
        (plain("layer.json"), "layer.json: is in the tar file of layers, but not a file of a layer"),
        (plain("released.json"), "released.json: is in the tar file of layers, but not a file of a layer"),
        (plain("acme.agent/layer.json"), "is unsorted, duplicated or too long"),
        (link, "is a symbolic link, but only regular files are supported"),
        (kind(tar::EntryType::Link), "is a hard link"),
        (kind(tar::EntryType::Char), "is a device"),
        (kind(tar::EntryType::Fifo), "is a named pipe"),
        (kind(tar::EntryType::Directory), "is a directory"),
        (
            member("acme.agent/files/x", b"x", |header| header.set_mode(0o4755)),
            "has a header that vmbake would not write",
        ),
        (member("acme.agent/files/x", b"x", |header| header.set_uid(1)), "has a header that vmbake would not write"),
    ] {
        let said = judged(&shop, |forge| with(forge, more));
        assert!(said.contains(expected) && said.contains("copy.oci"), "{expected}: {said}");
    }
    let many = (0..10_001).map(|number| plain(&format!("acme.agent/files/{number:05}"))).collect::<Vec<_>>();
    let said = judged(&shop, |forge| forge.layers = join(&many));
    assert!(said.contains("copy.oci: contains more than 10000 files of layers"), "{said}");
}

#[test]
fn layers_are_those_that_were_named() {
    let Some(shop) = shop() else { return };
    let said = judged(&shop, |forge| with(forge, member("acme.agent/files/etc/agent/more", b"x", |_| ())));
    assert!(
        said.contains("layer acme.agent: expected digest sha256:") && said.contains(" of bundle.json, found sha256:"),
        "{said}"
    );
    let said = judged(&shop, |forge| {
        let mut document = forge.document();
        document["layers"]["acme.ghost"] = document["layers"]["acme.agent"].clone();
        forge.config = document.to_string().into_bytes();
    });
    assert!(said.contains("layer acme.ghost: listed in bundle.json, but missing"), "{said}");
    // What is asked for is read again from what is packed.
    let said = judged(&shop, |forge| {
        let mut document = forge.document();
        document["asks"]["paths"] = json!(["/etc/agent"]);
        forge.config = document.to_string().into_bytes();
    });
    assert!(said.contains("`install`: \"/opt/tool\" is not in `asks/paths`"), "{said}");
}

#[test]
fn foreign_blobs_are_refused() {
    let Some(shop) = shop() else { return };
    let blob = |(digest, size): (serde_json::Value, serde_json::Value), kind: &str| json!({"digest": digest, "size": size, "mediaType": kind});
    let said = judged(&shop, |forge| {
        let foreign = blob(forge.put(b"foreign"), "application/vnd.vmbake.blob.v1");
        forge.manifests[0]["layers"].as_array_mut().unwrap().push(foreign);
    });
    assert!(said.contains("is not listed in bundle.json"), "{said}");
    let said = judged(&shop, |forge| {
        let foreign = blob(forge.put(b"foreign"), "application/vnd.oci.image.layer.v1.tar");
        forge.manifests[1]["layers"].as_array_mut().unwrap().push(foreign);
    });
    assert!(said.contains("is not listed in bundle.json"), "{said}");
    // Data of another architecture would be unchecked.
    let said = judged(&shop, |forge| {
        let foreign = blob(forge.put(b"{}"), "application/vnd.vmbake.sources.v1+json");
        forge.manifests[1]["layers"].as_array_mut().unwrap().push(foreign);
    });
    assert!(said.contains("is not listed in bundle.json"), "{said}");
    let said = judged(&shop, |forge| drop(forge.index["manifests"][1].as_object_mut().unwrap().remove("platform")));
    assert!(said.contains("expected one manifest for each architecture of bundle.json"), "{said}");
    let said = judged(&shop, |forge| drop(forge.manifests[0]["layers"].as_array_mut().unwrap().pop()));
    assert!(said.contains("is listed in bundle.json, but not in the manifest"), "{said}");
    let said = judged(&shop, |forge| {
        let twice = forge.manifests[0]["layers"][0].clone();
        forge.manifests[0]["layers"].as_array_mut().unwrap().push(twice);
    });
    assert!(said.contains("duplicate application/vnd.vmbake.layers.v1.tar"), "{said}");
    let said = judged(&shop, |forge| {
        let foreign = forge.put(b"{}");
        let entry = blob(foreign, "application/vnd.oci.image.manifest.v1+json");
        forge.index["manifests"].as_array_mut().unwrap().push(entry);
    });
    assert!(said.contains("is listed in the index, but not the manifest of a bundle"), "{said}");
    let said = judged(&shop, |forge| drop(forge.index["manifests"].as_array_mut().unwrap().pop()));
    assert!(said.contains("expected one manifest for each architecture of bundle.json"), "{said}");
    let said = judged(&shop, |forge| forge.index["artifactType"] = json!("application/vnd.vmbake.release.v1"));
    assert!(said.contains("is not the index of a bundle"), "{said}");
    let said = judged(&shop, |forge| forge.manifests[0]["subject"] = forge.manifests[0]["config"].clone());
    assert!(said.contains("is not the manifest of a bundle"), "{said}");
}

#[test]
fn bombs_do_not_burst() {
    let Some(shop) = shop() else { return };
    let said = judged(&shop, |forge| forge.config = "[".repeat(1 << 19).into_bytes());
    assert!(said.contains("copy.oci:1:") && said.contains("hint: run `vmbake schema bundle`"), "{said}");
    let said = judged(&shop, |forge| forge.config.resize((1 << 20) + 1, b' '));
    assert!(said.contains("of 1048577 bytes, more than the limit of 1048576"), "{said}");
    let said = judged(&shop, |forge| forge.index["annotations"]["a"] = json!("a".repeat(5 << 20)));
    assert!(said.contains("more than the limit of 4194304"), "{said}");
    let said = judged(&shop, |forge| {
        let text = String::from_utf8(forge.config.clone()).unwrap();
        forge.config = text.replacen("\"name\":", "\"name\": \"other\", \"name\":", 1).into_bytes();
    });
    assert!(said.contains("duplicate field `name`"), "{said}");
}

#[test]
fn layouts_are_not_followed_elsewhere() {
    let Some(shop) = shop() else { return };
    let listing = fs::read_to_string(shop.path("agent.oci/index.json")).unwrap();
    let digest = listing.split("sha256:").nth(1).unwrap()[..64].to_owned();
    let blob = shop.path("agent.oci/blobs/sha256").join(digest);
    let content = fs::read(&blob).unwrap();
    fs::write(&blob, [&content[..], b" "].concat()).unwrap();
    let (ok, said) = shop.check("agent.oci");
    assert!(
        !ok && said.contains(&format!("of more than {} bytes", 4 << 20)) || said.contains("expected digest sha256:"),
        "{said}"
    );
    fs::remove_file(&blob).unwrap();
    fs::write(shop.path("elsewhere"), &content).unwrap();
    symlink(shop.path("elsewhere"), &blob).unwrap();
    let (ok, said) = shop.check("agent.oci");
    assert!(!ok && said.contains("agent.oci/blobs/sha256/") && said.contains("cannot read"), "{said}");
    fs::remove_file(&blob).unwrap();
    let (ok, said) = shop.check("agent.oci");
    assert!(!ok && said.contains("cannot read"), "{said}");
    fs::write(shop.path("agent.oci/oci-layout"), "{}").unwrap();
    let (ok, said) = shop.check("agent.oci");
    assert!(!ok && said.contains("oci-layout: is not the marker of an image layout"), "{said}");
    let (ok, said) = shop.check("none.oci");
    assert!(!ok && said.contains("none.oci: cannot read"), "{said}");
}
