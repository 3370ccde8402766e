//! Packages on hold, as dpkg sees them in the image.

use std::fs;
use std::process::Command;

use super::archive::{Workshop, file, said};
use crate::tools::have;

#[test]
fn packages_are_held_in_the_image() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", r#", "packages": ["app=1.*"], "hold": ["app", "libc6"]"#);
    let updated = workshop.update(&[]);
    assert!(updated.status.success(), "{}", said(&updated));
    let baked = workshop.bake();
    assert!(baked.status.success(), "{}", said(&baked));
    let status = file(&workshop.path("dist/web.o.amd64.raw"), "/var/lib/dpkg/status");
    if !have(&["dpkg"]) {
        return;
    }
    fs::create_dir(workshop.path("dpkg")).unwrap();
    fs::write(workshop.path("dpkg/status"), status).unwrap();
    let admin = format!("--admindir={}", workshop.path("dpkg").display());
    let output = Command::new("dpkg").args([&admin, "--get-selections"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(char::is_whitespace)).collect();
    for (package, state) in words {
        let expected = if ["app", "libc6", "libc6:amd64"].contains(&package) { "hold" } else { "install" };
        assert_eq!(state.trim(), expected, "{package}");
    }
    assert!(text.contains("libapp") && text.contains("hold"), "{text}");
}

#[test]
fn what_is_not_there_is_not_held() {
    let Some(workshop) = Workshop::new() else { return };
    // A layer may hold packages without asking for any.
    workshop.layer("web", r#", "hold": ["app"]"#);
    let updated = workshop.update(&[]);
    let expected = "/var/lib/dpkg/status: layer web holds app, which is not installed";
    assert!(said(&updated).contains(expected), "{}", said(&updated));
    workshop.layer("more", r#", "upgrade": ["libold"]"#);
    workshop.layer("web", r#", "requires": ["more"], "hold": ["libold"]"#);
    let expected = "libold: conflicting values in `hold` of the layers web and more";
    assert!(said(&workshop.update(&[])).contains(expected), "{}", said(&workshop.update(&[])));
}
