//! Dependency resolution: requested packages, the status file of a base and an index, separated by NUL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmbake_manifest::package_request::{Choice, PackageRequest};
use vmbake_pin::closure::rehearse;
use vmbake_proof::apt::PackageIndex;

fuzz_target!(|text: &str| {
    let mut parts = text.splitn(3, '\0');
    let [asked, status, index] = [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default);
    let (base, archive) = (PackageIndex::installed(status), PackageIndex::unsigned(index, "amd64"));
    for stanza in archive.iter() {
        assert!(stanza.get("Package").is_some_and(|name| archive.named(name).any(|found| found == stanza)));
    }
    let packages = asked.split_whitespace().map(|name| name.to_owned().into()).collect();
    let (recommends, upgrade) = (Choice::All(true), Choice::All(true));
    let request = PackageRequest { packages, recommends, upgrade, ..PackageRequest::default() };
    let Ok(chosen) = rehearse(&[("main", &archive)], &base, &vec![("layer".to_owned(), request)]) else { return };
    for (name, version) in &chosen {
        assert!(archive.named(name).next().is_some(), "{name} {version}");
    }
});
