//! From `packages` in a layer to an image with them, without any source entry.

use std::fs;

use serde_json::Value;

use super::archive::{Workshop, file, said};

const ASKED: &str = r#", "packages": ["app=1.*"], "recommends": ["app"]"#;

#[test]
fn packages_are_chosen_pinned_and_installed() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    let updated = workshop.update(&[]);
    let text = said(&updated);
    assert!(updated.status.success(), "{text}");
    assert!(text.contains("   pinned  web.o.amd64 app 1.2: 5 packages, "), "{text}");
    assert!(text.contains(" upgrades  web.o.amd64 libold 0.9 of the base to 1.0: app → libapp → libold"), "{text}");
    let manifest = workshop.manifest();
    let json: Value = serde_json::from_str(&manifest).unwrap();
    let all = &json["vmconfig"]["dependencies"];
    let reasons: Vec<_> = all
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, entry)| (name.as_str(), entry["reason"].as_str().unwrap()))
        .collect();
    let expected = [
        ("app", "app"),
        ("app-doc", "app → app-doc (recommended)"),
        ("libapp", "app → libapp"),
        ("libold", "app → libapp → libold"),
        ("tool", "app → tool"),
    ];
    assert_eq!(reasons, expected);
    assert_eq!((&all["libold"]["upgrades"], &all["app"]["proof"]), (&Value::from("0.9"), &Value::from("main")));
    assert_eq!(json["vmconfig"]["indexes"].as_object().unwrap().len(), 1);

    // Nothing new changes no byte, and needs no word.
    assert!(workshop.update(&[]).status.success());
    assert_eq!(workshop.manifest(), manifest);
    assert!(workshop.update(&["--refresh"]).status.success());
    assert_eq!(workshop.manifest(), manifest);
    assert_eq!(workshop.update(&["--check", "--only=app"]).status.code(), Some(0));

    let fetched = workshop.fetch();
    // update has brought all of it already.
    assert!(said(&fetched).contains(" verified  5 artifacts"), "{}", said(&fetched));
    assert!(!said(&fetched).contains("fetched"), "{}", said(&fetched));
    let baked = workshop.bake();
    assert!(baked.status.success(), "{}", said(&baked));
    assert!(said(&baked).contains("privileged  /usr/share/tool/helper: mode 4755\n"), "{}", said(&baked));
    let record: Value =
        serde_json::from_slice(&fs::read(workshop.path("dist/web.o.amd64.origin.json")).unwrap()).unwrap();
    assert_eq!(record["privileged"], serde_json::json!({"/usr/share/tool/helper": "mode 4755"}));
    let image = workshop.path("dist/web.o.amd64.raw");
    for (package, version) in [("app", "1.2"), ("app-doc", "1.2"), ("libapp", "1.5"), ("libold", "1.0"), ("tool", "1")]
    {
        assert_eq!(file(&image, &format!("/usr/share/{package}/version")), version, "{package}");
    }
    let status = file(&image, "/var/lib/dpkg/status");
    assert!(
        status.contains("Package: libold\nStatus: install ok installed\n") && !status.contains("Version: 0.9"),
        "{status}"
    );

    let shown = workshop.run(&["manifest", "show", "m/web.o.amd64.json"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(
        text.contains("    layer web: app → libapp → libold\n    proven by the Test archive of 2024-06-01\n"),
        "{text}"
    );
}

#[test]
fn it_is_explained_why_a_package_comes() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    assert!(workshop.update(&[]).status.success());
    let manifest = workshop.manifest();
    for (package, expected) in [
        ("tool", "    app → tool: needs tool | other\n    instead: other 1\n    versions: 1 (main)\n"),
        ("libold", "1.0, from main, "),
        ("libold", ", by layer web, replacing 0.9 of the base\n    app → libapp → libold: needs libold (>= 1.0)\n"),
        ("app", ", by layer web\n    app: requested by a layer\n    versions: 1.2 (main), 2.0 (main)\n"),
        ("app-doc", "    app → app-doc: recommends app-doc\n"),
        ("libc6", "libc6 2.41-12: already in the base, no other version required\n    app → libc6: needs libc6\n"),
        ("clash", "clash not required\n"),
    ] {
        let explained = workshop.update(&["--explain", package]);
        let text = String::from_utf8(explained.stdout.clone()).unwrap();
        assert!(explained.status.success() && text.contains(expected), "{package}: {text}{}", said(&explained));
    }
    assert_eq!(workshop.manifest(), manifest, "nothing was changed");
    let unknown = workshop.update(&["--explain", "tol"]);
    assert!(said(&unknown).contains("package tol not found\nhint: did you mean `tool`?\n"), "{}", said(&unknown));
}

#[test]
fn a_bake_wants_the_packages_that_its_layers_ask_for() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", r#", "packages": ["tool"]"#);
    assert!(workshop.update(&[]).status.success());
    assert!(workshop.fetch().status.success());
    for keys in [r#", "packages": ["tool", "other"]"#, r#", "packages": ["tool"], "recommends": true"#, ""] {
        workshop.layer("web", keys);
        let baked = workshop.bake();
        let text = said(&baked);
        assert!(text.contains("layer web requests other packages than the manifest pins\n"), "{keys}: {text}");
        assert!(text.contains("hint: run `vmbake update KIND` with the --layers of the bake to resolve"), "{text}");
    }
    // Packages that are no longer requested are removed.
    assert!(workshop.update(&[]).status.success());
    assert!(!workshop.manifest().contains("tool"));
    assert!(workshop.bake().status.success());
}

/// Where a layer takes an id that is pinned for an account of a package, `update` pins another one.
#[test]
fn a_taken_id_is_pinned_anew() {
    let Some(workshop) = Workshop::new() else { return };
    let asked = r#", "packages": ["grouper"]"#;
    workshop.layer("web", asked);
    assert!(workshop.update(&[]).status.success());
    let pinned = || {
        let json: Value = serde_json::from_str(&workshop.manifest()).unwrap();
        json["vmconfig"]["accounts"]["groups"]["groupers"].as_u64().unwrap()
    };
    let first = pinned();
    workshop.layer("web", &format!(r#"{asked}, "groups": {{"mine": {first}}}"#));
    let text = said(&workshop.bake());
    let expected = format!("the id {first} is pinned for the group groupers, but belongs to mine\n");
    assert!(text.contains(&expected), "{text}");
    assert!(text.contains("hint: run `vmbake update` to pin another id for groupers, or set a fixed id"), "{text}");
    let updated = workshop.update(&[]);
    assert!(updated.status.success(), "{}", said(&updated));
    assert_ne!(pinned(), first);
    let baked = workshop.bake();
    assert!(baked.status.success(), "{}", said(&baked));
}

#[test]
fn a_package_is_of_an_archive_that_may_have_it() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", r#", "packages": ["tool"]"#);
    assert!(workshop.update(&[]).status.success());
    let manifest = workshop.manifest();
    for (from, to, expected) in [
        ("\"archive\": \"main\"", "\"archive\": \"extra\"", "its source requires the signed index of archive main"),
        ("\"proof\": \"main\"", "\"proof\": \"none\"", "tool: proof \"none\" is not defined in `indexes`"),
        ("\"layer\": \"web\",", "", "tool: `layer` and `reason` require each other"),
        ("\"layer\": \"web\",", "\"layer\": \"other\",", "tool: chosen for layer other, which is missing in `closure`"),
        ("\"version\": \"1\"", "\"version\": \"2\"", "package tool 2 not found"),
        ("\"type\": \"deb\"", "\"type\": \"binary\"", "tool: has a `layer`, but its proof is not from an archive"),
    ] {
        assert!(manifest.contains(from), "{from}");
        std::fs::write(workshop.path("m/web.o.amd64.json"), manifest.replacen(from, to, 1)).unwrap();
        let shown = workshop.run(&["manifest", "show", "m/web.o.amd64.json"]);
        let text = said(&shown) + &String::from_utf8_lossy(&shown.stdout);
        assert!(!shown.status.success() && text.contains(expected), "{to}: {text}");
    }
}

#[test]
fn a_broken_layer_stops_only_kinds_that_use_it() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    workshop.layer("unfinished", ", \"unit\": {}");
    fs::create_dir(workshop.path("layers/empty")).unwrap();
    fs::write(workshop.path("layers/empty/layer.json"), "").unwrap();
    for step in [workshop.update(&[]), workshop.fetch(), workshop.bake()] {
        assert!(step.status.success(), "{}", said(&step));
    }
    let manifest = workshop.manifest();
    workshop.layer("web", &format!("{ASKED}, \"requires\": [\"unfinished\"]"));
    for step in [workshop.update(&[]), workshop.fetch(), workshop.bake()] {
        let text = said(&step);
        assert_eq!(step.status.code(), Some(1), "{text}");
        assert!(text.contains("layers/unfinished/layer.json:1:") && text.contains("unknown field `unit`"), "{text}");
    }
    assert_eq!(workshop.manifest(), manifest);
    workshop.layer("web", ", \"units\": 7");
    for step in [workshop.update(&[]), workshop.fetch(), workshop.bake()] {
        assert!(!step.status.success() && said(&step).contains("layers/web/layer.json:1:"), "{}", said(&step));
    }
}

#[test]
fn an_image_without_a_name_is_not_baked() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    workshop.layer("hygiene", "");
    assert!(workshop.update(&[]).status.success());
    let baked = workshop.bake();
    assert!(!baked.status.success() && said(&baked).contains("image-name"), "{}", said(&baked));
    assert!(!workshop.path("dist/web.o.amd64.raw").exists());
}

#[test]
fn a_base_that_a_bake_refuses_is_not_pinned() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    let base = workshop.path("base.raw");
    let disk = fs::read(&base).unwrap();
    let table = vmbake_disk::gpt::read(&disk).unwrap();
    let root = table.partition(1).unwrap();
    let root = usize::try_from(root.start).unwrap()..usize::try_from(root.end()).unwrap();
    fs::write(workshop.path("bare.raw"), &disk[root]).unwrap();
    fs::copy(&base, workshop.path("mbr.raw")).unwrap();
    let converted = std::process::Command::new("sgdisk").args(["--gpttombr=1"]).arg(workshop.path("mbr.raw")).output();
    assert!(converted.unwrap().status.success());
    fs::remove_file(&base).unwrap();
    for (image, expected) in [
        ("absent.raw", "cannot open the image"),
        ("mbr.raw", "refused: an MBR partition table"),
        ("bare.raw", "refused: ext4 without a partition table"),
    ] {
        let _ = fs::copy(workshop.path(image), &base);
        let updated = workshop.update(&[]);
        let text = said(&updated);
        assert!(!updated.status.success() && text.contains(expected), "{text}");
        assert!(text.contains("hint: use --image with") && !text.contains("proxy"), "{text}");
        assert!(!workshop.path("m/web.o.amd64.json").exists(), "{image}");
    }
}
