//! Sections on the image's identity and components.

use super::table::{Fact, Section, Table};
use super::{Documents, Inside};
use vmbake_common::progress::{counted, human_bytes};
use vmbake_compose::origin::Record;
use vmbake_image::inspect::{Report, os_release};
use vmbake_query::sbom::{Inventory, PartRow};

/// Section with the identity of the image.
pub(super) fn section(found: &Report, inside: Option<&Inside>, documents: &Documents) -> Section {
    let mut facts = Vec::new();
    if let Some(inside) = inside {
        facts.extend(names(inside));
    }
    facts.extend(system(found));
    facts.extend(documents.builder.iter().cloned());
    let record = inside.and_then(|inside| inside.record.as_ref());
    match record {
        Some(record) => facts.extend(origin(record)),
        None => facts.push(Fact::new("origin", "not recorded: layers, artifacts and the base image are unknown")),
    }
    let layers = record.into_iter().flat_map(|record| &record.layers);
    let layers: Vec<_> =
        layers.map(|(name, layer)| vec![name.clone(), layer.version.clone(), layer.digest.to_string()]).collect();
    let layers = (!layers.is_empty()).then(|| Table::new("Layers", &["layer", "version", "digest"], layers));
    let digests = documents.digests.iter().map(|fact| (&fact.name, &fact.value));
    let digests = Table::of_facts("Digests from the checksum lists", ["file", "digest"], digests);
    Section {
        id: "about",
        title: "Image",
        facts,
        tables: layers.into_iter().chain(digests).collect(),
        ..Section::default()
    }
}

/// Kind, system and architecture from the manifest in the image, else from os-release.
fn names(inside: &Inside) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Ok(mut os_release) = os_release(&inside.tree) {
        for (name, key) in [("kind", "IMAGE_ID"), ("version", "IMAGE_VERSION"), ("system", "PRETTY_NAME")] {
            facts.extend(os_release.remove(key).filter(|value| !value.is_empty()).map(|value| Fact::new(name, value)));
        }
    }
    facts
}

fn system(found: &Report) -> Vec<Fact> {
    let table = match (&found.disk_guid, &found.disk_signature) {
        (Some(guid), _) => format!("GUID partition table, disk GUID {guid}"),
        (None, Some(signature)) => format!("MBR partition table, disk id {signature}"),
        (None, None) => "none: a file system on the whole disk".to_owned(),
    };
    let mut facts = vec![Fact::new("architecture", found.arch.unwrap_or("unknown"))];
    if let Some(system) = &found.system {
        let kernels = Some(system.kernels.join(", ")).filter(|kernels| !kernels.is_empty());
        facts.extend(kernels.map(|kernels| Fact::new("kernel", kernels)));
        facts.extend(system.command_line.clone().map(|line| Fact::new("kernel command line", line)));
    }
    facts.push(Fact::new("format", found.format.clone()));
    facts.push(Fact::new("disk", human_bytes(found.virtual_size)));
    facts.push(Fact::new("file size", human_bytes(found.file_size)));
    facts.push(Fact::new("partition table", table));
    facts
}

fn origin(record: &Record) -> Vec<Fact> {
    let mut facts = vec![Fact::new("manifest", record.manifest.to_string())];
    if let Some(base) = &record.base {
        facts.push(Fact::new("base image", format!("{}, {}, {}", base.version, base.url, base.digest)));
    }
    facts
}

/// Section with the components of the image.
pub(super) fn parts(inventory: &Inventory) -> Section {
    let (modules, mut parts): (Vec<PartRow>, Vec<PartRow>) =
        inventory.parts().into_iter().partition(|part| part.is_module);
    // Components of layers first, since they have proofs.
    parts.sort_by_key(|part| part.layer.is_empty());
    let cells = |part: PartRow| {
        vec![part.name, part.version, part.kind.to_owned(), part.licence, part.layer, part.proof, part.supplier]
    };
    let rows: Vec<_> = parts.into_iter().map(cells).collect();
    let heads = ["name", "version", "type", "license", "layer", "proof and signers", "maintainer"];
    let found = rows.len();
    let modules = modules.into_iter().map(|part| vec![part.name, part.version]).collect::<Vec<_>>();
    let linked = modules.len();
    let mut tables = vec![Table::new("Packages, programs and images", &heads, rows)];
    tables.extend((linked > 0).then(|| Table::new("Modules of Go programs", &["module", "version"], modules)));
    Section {
        id: "parts",
        title: "Components",
        text: format!(
            "{found} packages, programs and images, and {} of Go. The manifest pins the proofs; \"Verification\" shows whether they were \
             verified again. Components without a proof are from the base image or of unknown origin.",
            counted(linked as u64, "module"),
        ),
        tables,
        ..Section::default()
    }
}
