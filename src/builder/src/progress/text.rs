//! Events as lines for people.

use super::event::{Event, ProofCount};
use super::{counted, human_bytes};
use crate::escape;

/// The lines of an event, without the end of the last one.
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
            ("kept", format!("{}: the base has them", packages.collect::<Vec<_>>().join(", ")))
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
        Event::PinnedImage { manifest, name, image, digest } => {
            ("pinned", format!("{manifest} {name} {image}, {digest}"))
        }
        Event::Renewing { manifest, name, reason } => {
            ("renewing", format!("{manifest} {name}: what was pinned is not proven: {reason}"))
        }
        Event::Failed { manifest, name, reason } => ("failed", format!("{manifest} {name}: {reason}")),
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
        Event::PowerCut => ("machine", "does not shut down: its power is cut".to_owned()),
        Event::GaveUp { reason, console } => {
            return format!("{}\n{:>9}  {}", escape::lines(console).trim_end(), "failed", escape::line(reason));
        }
        Event::Note { path: Some(path), note } => ("note", format!("{}: {note}", path.display())),
        Event::Note { path: None, note } => return escape::line(format!("note: {note}")),
        Event::Warning { warning } => return escape::line(format!("warning: {warning}")),
        // Whoever made these has escaped what could look like another line.
        Event::Remark { text } => return escape::lines(text),
        Event::Error { message, causes, hint } => return escape::lines(&error(message, causes, hint.as_deref())),
    };
    format!("{name:>9}  {}", escape::line(detail))
}

/// `10 artifacts: 9 by the Debian archive of 2026-09-12, 1 pinned by hand; the base image: …`.
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
