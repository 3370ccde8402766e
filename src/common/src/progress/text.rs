//! Human-readable events.

use super::event::{Event, ProofCount};
use super::{counted, human_bytes};
use crate::escape;

/// The lines of an event, without the trailing newline.
pub(super) fn lines(event: &Event) -> String {
    let (name, detail) = match event {
        Event::Override(one) => ("override", one.to_string()),
        Event::Fetched { name, version, path, bytes } => {
            let what = match (path, version) {
                (Some(path), _) => path.display().to_string(),
                (None, Some(version)) => format!("{name} {version}"),
                (None, None) => name.clone(),
            };
            ("fetched", format!("{what}, {}", human_bytes(*bytes)))
        }
        Event::Verified { artifacts, proofs, base } => ("verified", verified(*artifacts, proofs, base.as_deref())),
        Event::Copied { path, reason } => ("copied", format!("{}: {reason}", path.display())),
        Event::Read { path, files } => ("read", format!("{}: {files} files", path.display())),
        Event::Layers { layers } => ("layers", layers.join(", ")),
        Event::Kept { packages } => {
            let packages = packages.iter().map(|package| format!("{} {}", package.name, package.version));
            ("kept", format!("{}: already in the base", packages.collect::<Vec<_>>().join(", ")))
        }
        Event::PinnedAccounts { manifest, users, groups } => {
            let (users, groups) = (counted(*users, "user"), counted(*groups, "group"));
            ("pinned", format!("{manifest} {users} and {groups} of packages"))
        }
        Event::Privileged { path, privilege } => ("privileged", format!("{path}: {privilege}")),
        Event::Deferred { package, reason } => {
            ("deferred", format!("{package}: configuration deferred to the first boot: {reason}"))
        }
        Event::Merged { files } => ("merged", format!("{files} files")),
        Event::Authored { bytes, disk_bytes } => {
            ("authored", format!("{} of {}", human_bytes(*bytes), human_bytes(*disk_bytes)))
        }
        Event::Unchanged { path, bytes } => ("unchanged", format!("{}, {}", path.display(), human_bytes(*bytes))),
        Event::Wrote { path, bytes } => ("wrote", format!("{}, {}", path.display(), human_bytes(*bytes))),
        Event::Pinned { manifest, name, version, bytes, .. } => {
            ("pinned", format!("{manifest} {name} {version}, {}", human_bytes(*bytes)))
        }
        Event::FetchedPackages { layer, packages, bytes } => {
            let packages = counted(*packages as u64, "package");
            ("fetched", format!("{packages} of layer {layer}, {}", human_bytes(*bytes)))
        }
        Event::PinnedPackages { manifest, name, version, packages, bytes } => {
            let packages = counted(*packages as u64, "package");
            ("pinned", format!("{manifest} {name} {version}: {packages}, {}", human_bytes(*bytes)))
        }
        Event::HasPackage { manifest, name, version } => {
            ("kept", format!("{manifest} {name} {version}: already in the base"))
        }
        Event::Upgrades { manifest, name, found, version, reason } => {
            ("upgrades", format!("{manifest} {name} {found} of the base to {version}: {reason}"))
        }
        Event::RemovesPackage { manifest, name, version, layer } => {
            ("removes", format!("{manifest} {name} {version}: layer {layer}"))
        }
        Event::NotUpgraded { manifest, name, reason } => ("left", format!("{manifest} {name} not upgraded: {reason}")),
        Event::PinnedImage { manifest, name, image, digest } => {
            ("pinned", format!("{manifest} {name} {image}, {digest}"))
        }
        Event::Renewing { manifest, name, reason } => {
            ("renewing", format!("{manifest} {name}: cannot verify the pinned artifact: {reason}"))
        }
        Event::Failed { manifest, name, reason } => ("failed", format!("{manifest} {name}: {reason}")),
        Event::Snapshot { id, region, blocks, there } => {
            let there = if *there == 0 { String::new() } else { format!(", {there} already uploaded") };
            ("snapshot", format!("{id} in {region}: {}{there}", counted(*blocks, "block")))
        }
        Event::Machine { arch, firmware, cpus, memory_bytes, disk_bytes } => {
            let [memory, disk] = [memory_bytes, disk_bytes].map(|bytes| human_bytes(*bytes));
            ("machine", format!("{arch}, {firmware}, {cpus} CPUs, {memory} of memory, disk of {disk}"))
        }
        Event::Accel { kvm, reason } => {
            ("accel", format!("{}: {reason}", if *kvm { "KVM" } else { "TCG (emulation)" }))
        }
        Event::Forward { protocol, host, guest } => ("forward", forward(protocol, *host, *guest)),
        Event::Booted { said } => ("machine", said.clone()),
        Event::Check { check, state, said } => {
            let colon = if said.is_empty() { "" } else { ": " };
            ("check", format!("{state:<4} {check}{colon}{said}"))
        }
        Event::PowerCut => ("machine", "did not shut down: powered off".to_owned()),
        Event::GaveUp { reason, console } => {
            return format!("{}\n{:>9}  {}", escape::lines(console).trim_end(), "failed", escape::line(reason));
        }
        Event::Note { path: Some(path), note } => ("note", format!("{}: {note}", path.display())),
        Event::Note { path: None, note } => return escape::line(format!("note: {note}")),
        Event::Warning { warning } => return escape::line(format!("warning: {warning}")),
        // The caller has escaped line breaks of untrusted text.
        Event::Remark { text } => return escape::lines(text),
        Event::Error { message, causes, hint } => return escape::lines(&error(message, causes, hint.as_deref())),
    };
    format!("{name:>9}  {}", escape::line(detail))
}

/// `10 artifacts: 9 by the Debian archive of 2026-09-12, 1 pinned manually; the base image: …`.
fn verified(artifacts: usize, proofs: &[ProofCount], base: Option<&str>) -> String {
    let groups: Vec<String> = proofs.iter().map(|ProofCount { count, by, .. }| format!("{count} {by}")).collect();
    let mut text = counted(artifacts as u64, "artifact");
    if !groups.is_empty() {
        text = format!("{text}: {}", groups.join(", "));
    }
    base.iter().fold(text, |text, base| format!("{text}; the base image: {base}"))
}

fn forward(protocol: &str, host: u16, guest: u16) -> String {
    let text = format!("127.0.0.1:{host} ({protocol}) to port {guest}");
    match (protocol, guest) {
        ("tcp", 22) => format!("{text}: ssh -p {host} USER@127.0.0.1"),
        _ => text,
    }
}

fn error(message: &str, causes: &[String], hint: Option<&str>) -> String {
    let causes = causes.iter().map(|cause| format!("\n  caused by: {cause}"));
    let hint = hint.iter().map(|hint| format!("\nhint: {hint}"));
    format!("error: {message}{}", causes.chain(hint).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    use serde_json::Value;

    use super::*;
    use crate::catalog::{Override, Root};
    use crate::digest::Digest;
    use crate::progress::PackageVersion;

    /// The page that lists the events.
    const PAGE: &str = include_str!("../../../../docs/outputs.md");

    /// Each event, as text and as JSON.
    fn samples() -> Vec<(Event, &'static str, &'static str)> {
        let text = str::to_owned;
        let path = || PathBuf::from("d/x.raw");
        let digest = Digest::of(b"");
        let by = text("pinned manually");
        let found = || Root::Path("mine".into());
        vec![
            (
                Event::Override(Override {
                    entry: text("layers/vm"),
                    known: Root::BuiltIn,
                    found: found(),
                    weaker: None,
                }),
                " override  layers/vm: mine overrides the built-in one",
                r#"{"event":"override","entry":"layers/vm","known":"the built-in one","found":"mine"}"#,
            ),
            (
                Event::Override(Override {
                    entry: text("s/x"),
                    known: found(),
                    found: Root::BuiltIn,
                    weaker: Some(text("w")),
                }),
                " override  s/x: the built-in one overrides mine, which requires a stronger proof: w",
                r#"{"event":"override","entry":"s/x","known":"mine","found":"the built-in one","weaker":"w"}"#,
            ),
            (
                Event::Fetched { name: text("runc"), version: Some(text("1.1")), path: None, bytes: 2048 },
                "  fetched  runc 1.1, 2.00 KiB",
                r#"{"event":"fetched","name":"runc","version":"1.1","bytes":2048}"#,
            ),
            (
                Event::Fetched { name: text("os.image"), version: Some(text("13")), path: Some(path()), bytes: 5 },
                "  fetched  d/x.raw, 5 B",
                r#"{"event":"fetched","name":"os.image","version":"13","path":"d/x.raw","bytes":5}"#,
            ),
            (
                Event::Verified {
                    artifacts: 1,
                    proofs: vec![ProofCount { count: 1, by, signed: false }],
                    base: Some(text("b")),
                },
                " verified  1 artifact: 1 pinned manually; the base image: b",
                r#"{"event":"verified","artifacts":1,"proofs":[{"count":1,"by":"pinned manually","signed":false}],"base":"b"}"#,
            ),
            (
                Event::Copied { path: path(), reason: text("r") },
                "   copied  d/x.raw: r",
                r#"{"event":"copied","path":"d/x.raw","reason":"r"}"#,
            ),
            (
                Event::Read { path: path(), files: 3 },
                "     read  d/x.raw: 3 files",
                r#"{"event":"read","path":"d/x.raw","files":3}"#,
            ),
            (
                Event::Layers { layers: vec![text("vm"), text("node")] },
                "   layers  vm, node",
                r#"{"event":"layers","layers":["vm","node"]}"#,
            ),
            (
                Event::Kept { packages: vec![PackageVersion { name: text("p"), version: text("1") }] },
                "     kept  p 1: already in the base",
                r#"{"event":"kept","packages":[{"name":"p","version":"1"}]}"#,
            ),
            (
                Event::PinnedAccounts { manifest: text("m"), users: 1, groups: 2 },
                "   pinned  m 1 user and 2 groups of packages",
                r#"{"event":"pinned-accounts","manifest":"m","users":1,"groups":2}"#,
            ),
            (
                Event::Privileged { path: text("/x"), privilege: text("mode 4755") },
                "privileged  /x: mode 4755",
                r#"{"event":"privileged","path":"/x","privilege":"mode 4755"}"#,
            ),
            (
                Event::Deferred { package: text("p"), reason: text("why") },
                " deferred  p: configuration deferred to the first boot: why",
                r#"{"event":"deferred","package":"p","reason":"why"}"#,
            ),
            (Event::Merged { files: 4 }, "   merged  4 files", r#"{"event":"merged","files":4}"#),
            (
                Event::Authored { bytes: 1024, disk_bytes: 3 << 30 },
                " authored  1.00 KiB of 3.00 GiB",
                r#"{"event":"authored","bytes":1024,"disk_bytes":3221225472}"#,
            ),
            (
                Event::Unchanged { path: path(), bytes: 1 },
                "unchanged  d/x.raw, 1 B",
                r#"{"event":"unchanged","path":"d/x.raw","bytes":1}"#,
            ),
            (
                Event::Wrote { path: PathBuf::from("a\\b"), bytes: 1 },
                "    wrote  a\\b, 1 B",
                r#"{"event":"wrote","path":"a\\x5cb","bytes":1}"#,
            ),
            (
                Event::Pinned { manifest: text("m"), name: text("n"), version: text("1"), digest, bytes: 1 },
                "   pinned  m n 1, 1 B",
                r#"{"event":"pinned","manifest":"m","name":"n","version":"1","digest":"D","bytes":1}"#,
            ),
            (
                Event::FetchedPackages { layer: text("web"), packages: 1, bytes: 2048 },
                "  fetched  1 package of layer web, 2.00 KiB",
                r#"{"event":"fetched-packages","layer":"web","packages":1,"bytes":2048}"#,
            ),
            (
                Event::PinnedPackages {
                    manifest: text("m"),
                    name: text("nginx"),
                    version: text("1"),
                    packages: 14,
                    bytes: 2048,
                },
                "   pinned  m nginx 1: 14 packages, 2.00 KiB",
                r#"{"event":"pinned-packages","manifest":"m","name":"nginx","version":"1","packages":14,"bytes":2048}"#,
            ),
            (
                Event::HasPackage { manifest: text("m"), name: text("sudo"), version: text("1") },
                "     kept  m sudo 1: already in the base",
                r#"{"event":"has-package","manifest":"m","name":"sudo","version":"1"}"#,
            ),
            (
                Event::Upgrades {
                    manifest: text("m"),
                    name: text("l"),
                    found: text("1"),
                    version: text("2"),
                    reason: text("a → l"),
                },
                " upgrades  m l 1 of the base to 2: a → l",
                r#"{"event":"upgrades","manifest":"m","name":"l","found":"1","version":"2","reason":"a → l"}"#,
            ),
            (
                Event::RemovesPackage { manifest: text("m"), name: text("l"), version: text("1"), layer: text("a") },
                "  removes  m l 1: layer a",
                r#"{"event":"removes-package","manifest":"m","name":"l","version":"1","layer":"a"}"#,
            ),
            (
                Event::NotUpgraded { manifest: text("m"), name: text("l"), reason: text("held") },
                "     left  m l not upgraded: held",
                r#"{"event":"not-upgraded","manifest":"m","name":"l","reason":"held"}"#,
            ),
            (
                Event::PinnedImage { manifest: text("m"), name: text("r/p"), image: text("r/p:3"), digest },
                "   pinned  m r/p r/p:3, D",
                r#"{"event":"pinned-image","manifest":"m","name":"r/p","image":"r/p:3","digest":"D"}"#,
            ),
            (
                Event::Renewing { manifest: text("m"), name: text("n"), reason: text("r") },
                " renewing  m n: cannot verify the pinned artifact: r",
                r#"{"event":"renewing","manifest":"m","name":"n","reason":"r"}"#,
            ),
            (
                Event::Failed { manifest: text("m"), name: text("n"), reason: text("a\nb") },
                "   failed  m n: a\\x0ab",
                r#"{"event":"failed","manifest":"m","name":"n","reason":"a\nb"}"#,
            ),
            (
                Event::Snapshot { id: text("snap-1"), region: text("eu-central-1"), blocks: 9, there: 4 },
                " snapshot  snap-1 in eu-central-1: 9 blocks, 4 already uploaded",
                r#"{"event":"snapshot","id":"snap-1","region":"eu-central-1","blocks":9,"there":4}"#,
            ),
            (
                Event::Machine {
                    arch: text("amd64"),
                    firmware: text("bios"),
                    cpus: 2,
                    memory_bytes: 1024,
                    disk_bytes: 5,
                },
                "  machine  amd64, bios, 2 CPUs, 1.00 KiB of memory, disk of 5 B",
                r#"{"event":"machine","arch":"amd64","firmware":"bios","cpus":2,"memory_bytes":1024,"disk_bytes":5}"#,
            ),
            (
                Event::Accel { kvm: false, reason: text("as asked") },
                "    accel  TCG (emulation): as asked",
                r#"{"event":"accel","kvm":false,"reason":"as asked"}"#,
            ),
            (
                Event::Forward { protocol: "tcp", host: 2222, guest: 22 },
                "  forward  127.0.0.1:2222 (tcp) to port 22: ssh -p 2222 USER@127.0.0.1",
                r#"{"event":"forward","protocol":"tcp","host":2222,"guest":22}"#,
            ),
            (
                Event::Forward { protocol: "udp", host: 53, guest: 22 },
                "  forward  127.0.0.1:53 (udp) to port 22",
                r#"{"event":"forward","protocol":"udp","host":53,"guest":22}"#,
            ),
            (Event::Booted { said: text("running") }, "  machine  running", r#"{"event":"booted","said":"running"}"#),
            (
                Event::Check { check: text("tcp:22"), state: text("ok"), said: text("s") },
                "    check  ok   tcp:22: s",
                r#"{"event":"check","check":"tcp:22","state":"ok","said":"s"}"#,
            ),
            (Event::PowerCut, "  machine  did not shut down: powered off", r#"{"event":"power-cut"}"#),
            (
                Event::GaveUp { reason: text("r"), console: text("one\ntwo\n") },
                "one\ntwo\n   failed  r",
                r#"{"event":"gave-up","reason":"r","console":"one\ntwo\n"}"#,
            ),
            (
                Event::Note { path: Some(path()), note: text("n") },
                "     note  d/x.raw: n",
                r#"{"event":"note","path":"d/x.raw","note":"n"}"#,
            ),
            (Event::Note { path: None, note: text("n") }, "note: n", r#"{"event":"note","note":"n"}"#),
            (Event::Warning { warning: text("w") }, "warning: w", r#"{"event":"warning","warning":"w"}"#),
            (Event::Remark { text: text("1 blob") }, "1 blob", r#"{"event":"remark","text":"1 blob"}"#),
            (
                Event::Error { message: text("m"), causes: vec![text("c"), text("d")], hint: Some(text("h")) },
                "error: m\n  caused by: c\n  caused by: d\nhint: h",
                r#"{"event":"error","message":"m","causes":["c","d"],"hint":"h"}"#,
            ),
        ]
    }

    /// All field names in a value.
    fn names(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                found.insert(name.clone());
                names(value, found);
            }),
            Value::Array(values) => values.iter().for_each(|value| names(value, found)),
            _ => {}
        }
    }

    #[test]
    fn each_event_is_told_as_text_and_as_json() {
        let digest = Digest::of(b"").to_string();
        for (event, text, json) in samples() {
            assert_eq!(lines(&event), text.replace('D', &digest));
            assert_eq!(escape::json_line(&event).unwrap().trim_end(), json.replace('D', &digest));
        }
    }

    #[test]
    fn the_page_lists_each_event_with_its_fields() {
        let (_, table) = PAGE.split_once("| event | emitted when | fields |\n|---|---|---|\n").unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let listed: BTreeSet<(String, BTreeSet<String>)> = rows
            .map(|row| {
                let cells: Vec<&str> = row.split('|').collect();
                let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
                (words(cells[1]).remove(0), words(cells[3]).into_iter().collect())
            })
            .collect();
        let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (.., json) in samples() {
            let Value::Object(mut fields) = serde_json::from_str(json).unwrap() else { panic!("{json}") };
            let name = fields.remove("event").unwrap().as_str().unwrap().to_owned();
            names(&Value::Object(fields), told.entry(name).or_default());
        }
        assert_eq!(listed, told.into_iter().collect());
    }
}
