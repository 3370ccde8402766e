//! Flat archives: an index and packages in one directory, without `dists`.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::archive::{Workshop, file, said};
use crate::tools::have;

const ASKED: &str = r#", "packages": ["app"], "archive": "vendor""#;

#[test]
fn packages_of_a_flat_archive_are_pinned_and_installed() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    let updated = workshop.update(&[]);
    assert!(updated.status.success(), "{}", said(&updated));
    let manifest: Value = serde_json::from_str(&workshop.manifest()).unwrap();
    let all = &manifest["vmconfig"]["dependencies"];
    let versions = ["app", "agent-data", "libapp"].map(|name| all[name]["version"].as_str().unwrap_or_default());
    assert_eq!(versions, ["3.0", "1", "1.5"]);
    let url = all["app"]["url"].as_str().unwrap();
    assert!(url.starts_with("https://v.example/repos/one/") && !url.contains("/./"), "{url}");
    let index = &manifest["vmconfig"]["indexes"]["vendor"];
    assert_eq!(index["suite"], "/", "{manifest:#}");

    let baked = workshop.bake();
    assert!(baked.status.success(), "{}", said(&baked));
    let image = workshop.path("dist/web.o.amd64.raw");
    assert_eq!(file(&image, "/usr/share/app/version"), "3.0");
    let shown = workshop.run(&["manifest", "show", "m/web.o.amd64.json"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("proven by the vendor archive of 2024-06-01"), "{text}");
}

#[test]
fn a_release_with_a_detached_signature_proves_packages() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    let sources = fs::read_to_string(workshop.path("sources.json")).unwrap();
    let use_archive = |path: &str| {
        fs::write(workshop.path("sources.json"), sources.replace("/repos/one", path)).unwrap();
        workshop.update(&[])
    };
    let updated = use_archive("/repos/detached");
    assert!(updated.status.success(), "{}", said(&updated));
    let manifest: Value = serde_json::from_str(&workshop.manifest()).unwrap();
    assert_eq!(manifest["vmconfig"]["dependencies"]["app"]["version"], "3.0");
    let index = &manifest["vmconfig"]["indexes"]["vendor"];
    assert_eq!(index["evidence"].as_array().map(Vec::len), Some(3), "{manifest:#}");
    assert!(workshop.manifest().contains("https://v.example/repos/detached/Release.gpg"));
    let baked = workshop.bake();
    assert!(baked.status.success(), "{}", said(&baked));
    assert_eq!(file(&workshop.path("dist/web.o.amd64.raw"), "/usr/share/app/version"), "3.0");
    for (path, expected) in [
        ("/repos/changed", "Release: verification of the signature Release.gpg failed"),
        ("/repos/unsigned", "/repos/unsigned: neither InRelease nor both Release and Release.gpg"),
        ("/repos/without-index", "Release: does not list Packages"),
    ] {
        let updated = use_archive(path);
        assert!(!updated.status.success() && said(&updated).contains(expected), "{path}: {}", said(&updated));
    }
}

#[test]
fn apt_chooses_the_same_version() {
    let Some(workshop) = Workshop::new().filter(|_| have(&["apt-get"])) else { return };
    for folder in ["apt/lists/partial", "apt/cache/archives/partial"] {
        fs::create_dir_all(workshop.path(folder)).unwrap();
    }
    let path = |name: &str| workshop.path(name).to_str().unwrap().to_owned();
    let (url, key, vendor) = (workshop.url(), path("trust/k.asc"), path("trust/vendor.asc"));
    let sources = format!("deb [signed-by={key}] {url}/debian one main\ndeb [signed-by={vendor}] {url}/repos/one/ /\n");
    fs::write(workshop.path("apt/sources.list"), sources).unwrap();
    let status =
        "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.41-12\nDescription: d\n\n";
    fs::write(workshop.path("apt/status"), status).unwrap();
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        for (name, value) in [
            ("Dir::Etc", path("apt")),
            ("Dir::Etc::sourceparts", "-".to_owned()),
            ("Dir::State", path("apt")),
            ("Dir::State::lists", path("apt/lists")),
            ("Dir::State::status", path("apt/status")),
            ("Dir::Cache", path("apt/cache")),
            ("APT::Architecture", "amd64".to_owned()),
            ("APT::Architectures", "amd64".to_owned()),
            ("APT::Sandbox::User", "root".to_owned()),
            ("Acquire::http::Proxy", "false".to_owned()),
            ("Debug::NoLocking", "1".to_owned()),
        ] {
            command.arg("-o").arg(format!("{name}={value}"));
        }
        command.args(args).env("LC_ALL", "C.UTF-8").output().unwrap()
    };
    let updated = apt(&["update"]);
    assert!(updated.status.success(), "{}", String::from_utf8_lossy(&updated.stderr));
    let text = String::from_utf8(apt(&["install", "-s", "-y", "app"]).stdout).unwrap();
    assert!(text.contains("Inst app (3.0 ") && text.contains("Inst agent-data (1 "), "{text}");
}

#[test]
fn what_is_wrong_with_a_flat_archive_is_named() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    let sources = fs::read_to_string(workshop.path("sources.json")).unwrap();
    for (from, to, expected) in [
        (r#""suite": "/""#, r#""suite": "/", "component": "main""#, "has no component"),
        (r#""suite": "/""#, r#""suite": "one""#, "component is missing"),
        (r#""suite": "/""#, r#""suite": "../two/""#, "is outside of the archive"),
        (r#""suite": "/""#, r#""suite": "other/""#, "/repos/one/other/Release: the server returned status 404"),
        (r#""suite": "/""#, r#""suite": "other/""#, "neither InRelease nor both Release and Release.gpg"),
        ("vendor.asc", "absent.asc", "absent.asc"),
    ] {
        fs::write(workshop.path("sources.json"), sources.replace(from, to)).unwrap();
        let updated = workshop.update(&[]);
        assert!(!updated.status.success() && said(&updated).contains(expected), "{to}: {}", said(&updated));
    }
}
