//! SBOMs next to a baked image, and later output of `vmbake sbom`.

use std::fs;

use crate::origin::bakery::{baked, can_bake};
use crate::origin::image::{change, file, text, vmbake};

#[test]
fn a_bake_writes_what_the_image_says_later() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let image = out.join("tools.o.amd64.raw");
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    for (end, form) in [("spdx", "spdx-2.3"), ("cdx", "cyclonedx-1.6")] {
        let sidecar = fs::read_to_string(out.join(format!("tools.o.amd64.{end}.json"))).unwrap();
        let said = vmbake(&["sbom", image.to_str().unwrap(), "--format", form]);
        assert_eq!(text(&said.stdout), sidecar);
        assert!(said.status.success() && sums.contains(&format!("tools.o.amd64.{end}.json\n")), "{sums}");
    }
    let spdx = fs::read_to_string(out.join("tools.o.amd64.spdx.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&spdx).unwrap();
    let found = super::packages(&value);
    assert_eq!(found["tool"]["versionInfo"], "1.2");
    assert_eq!(found["tool"]["downloadLocation"], "https://example.org/1.2");
    assert_eq!(found["tool"]["comment"], "layer: tools\nproof: checksum file https://example.org/1.2.sha256");
    assert_eq!(found["firstboot"]["comment"], "layer: tools\nproof: none: built into the vmbake that baked the image");
    let digest = vmbake_common::digest::Digest::of(crate::origin::bakery::TOOL).hex();
    assert_eq!(found["tool"]["checksums"][0]["checksumValue"], digest);
    assert!(found["dash"].get("checksums").is_none());
    let relations = super::relations(&value);
    for expected in
        ["Image DESCENDANT_OF Base", "Image CONTAINS Package-upstream-tool", "Image CONTAINS Package-upstream-pack"]
    {
        assert!(relations.iter().any(|one| one == expected), "{relations:?}");
    }
}

#[test]
fn a_record_that_lies_is_refused() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let changed = dir.path().join("changed.raw");
    change(&out.join("tools.o.amd64.raw"), &changed, |tree| {
        file(
            tree,
            "/opt/podplane/share/vmconfig-installed.json",
            "{\"vmconfig\": {\"version\": \"dev\", \"kind\": \"tools\", \"os\": {\"name\": \"o\", \"arch\": \"amd64\"}}}",
        );
    });
    let said = vmbake(&["sbom", changed.to_str().unwrap()]);
    assert_eq!((said.status.code(), text(&said.stdout)), (Some(1), ""));
    assert!(text(&said.stderr).contains("the record of origins is for manifest "), "{}", text(&said.stderr));
}
