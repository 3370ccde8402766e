//! Packages as of a past time: requests to snapshots, records in the manifest, and refusals.

use super::archive::{Workshop, said};

const ASKED: &str = r#", "packages": ["app=1.*"], "recommends": ["app"]"#;

#[test]
fn a_past_time_pins_the_last_state_until_then() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    let output = workshop.update(&[]);
    assert!(output.status.success(), "{}", said(&output));
    let newest = workshop.manifest();
    for (at, copied, until, release) in [
        // By redirect, from the list, and exact. A newer index was seen before, which is not an error here.
        ("2024-06-02", "20240601T100000Z", "2024-06-08", "InRelease"),
        ("2024-05-20", "20240501T060000Z", "2024-05-08", "InRelease"),
        ("2024-05-01T06:00:00Z", "20240501T060000Z", "2024-05-08", "InRelease"),
        ("2024-04-05", "20240401T060000Z", "2024-04-08", "Release.gpg"),
    ] {
        let output = workshop.update_at(at);
        assert!(output.status.success(), "{at}: {}", said(&output));
        assert!(said(&output).contains(&format!("Valid-Until {until}T05:00:00Z not enforced")), "{}", said(&output));
        let manifest = workshop.manifest();
        assert!(manifest.contains(&format!("https://s.example/archive/debian/{copied}/pool/")), "{manifest}");
        assert!(
            manifest.contains(&format!("https://s.example/archive/debian/{copied}/dists/one/{release}")),
            "{manifest}"
        );
        assert!(
            manifest.contains(&format!("\"valid_until\": \"{until}T05:00:00Z\"")) && !manifest.contains("a.example")
        );
        // A later update keeps what is proven.
        let output = workshop.update(&[]);
        assert!(output.status.success() && workshop.manifest() == manifest, "{}", said(&output));
        let shown = workshop.run(&["manifest", "show", "m/web.o.amd64.json"]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("not enforced") && !shown.contains("NOT PROVEN"), "{shown}");
        let output = workshop.bake();
        assert!(output.status.success(), "{}", said(&output));
    }
    let output = workshop.update(&["--refresh"]);
    assert!(output.status.success() && workshop.manifest() == newest, "{}", said(&output));
}

#[test]
fn what_is_not_of_that_time_is_refused() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    for (at, expected) in [
        ("2024-05-03", "which is later than 2024-05-03T00:00:00Z"),
        ("2024-03-01", "404"),
        ("2999-01-01", "is in the future"),
        ("yesterday", "expected a date such as 2026-09-01"),
    ] {
        let output = workshop.update_at(at);
        assert!(!output.status.success() && said(&output).contains(expected), "{at}: {}", said(&output));
    }
    let sources = std::fs::read_to_string(workshop.path("sources.json")).unwrap();
    let without = sources.replace(r#", "snapshot": "https://s.example/archive/debian""#, "");
    std::fs::write(workshop.path("sources.json"), without).unwrap();
    let output = workshop.update_at("2024-06-02");
    assert!(said(&output).contains("archive main has no `snapshot`"), "{}", said(&output));
}

#[test]
fn a_manifest_cannot_claim_another_state() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", ASKED);
    assert!(workshop.update_at("2024-06-02").status.success());
    let manifest = workshop.manifest();
    for (from, to) in [
        ("\"copied\": \"2024-06-01T10", "\"copied\": \"2024-05-01T10"),
        ("\"valid_until\": \"2024-06-08", "\"valid_until\": \"2024-07-08"),
        ("\"at\": \"2024-06-02", "\"at\": \"2024-05-02"),
    ] {
        assert!(manifest.contains(from), "{manifest}");
        std::fs::write(workshop.path("m/web.o.amd64.json"), manifest.replace(from, to)).unwrap();
        let output = workshop.bake();
        assert!(!output.status.success() && said(&output).contains("verification failed"), "{to}: {}", said(&output));
    }
}
