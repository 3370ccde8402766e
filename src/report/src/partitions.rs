//! Section on partitions: results of `inspect` in, a drawing and a table out.

use vmbake_disk::tree::Tree;

use super::disk_map;
use super::table::{Section, Table};
use vmbake_common::progress::{counted, human_bytes};
use vmbake_image::filesystem::Usage;
use vmbake_image::inspect::{PartitionReport, Report};

/// The partitions; `root` is the number of the one with the files of the tree.
pub(super) fn section(found: &Report, root: Option<(u32, &Tree)>) -> Section {
    let rows = found.partitions.iter().map(row).collect();
    let heads = ["number", "type", "name", "offset", "size", "contents", "used", "GUID or id"];
    Section {
        id: "disk",
        title: "Disk",
        text: format!(
            "{} in {}; {} do not belong to any partition.",
            human_bytes(found.virtual_size),
            counted(found.partitions.len() as u64, "partition"),
            human_bytes(between(found)),
        ),
        disk: disk_map::draw(found, root),
        tables: vec![Table::new("Partitions", &heads, rows)],
        ..Section::default()
    }
}

fn row(partition: &PartitionReport) -> Vec<String> {
    let id = partition.type_guid.as_ref().or(partition.type_id.as_ref()).cloned().unwrap_or_default();
    let (holds, used) = match (&partition.filesystem, &partition.unread) {
        (Some(found), _) => (found.kind.to_owned(), found.usage.as_ref().map(usage).unwrap_or_default()),
        (None, Some(reason)) => (format!("not read: {reason}"), String::new()),
        (None, None) => ("no known file system".to_owned(), String::new()),
    };
    vec![
        partition.number.to_string(),
        partition.type_name.map_or(id, str::to_owned),
        partition.name.clone(),
        partition.start.to_string(),
        human_bytes(partition.size),
        holds,
        used,
        partition.guid.clone(),
    ]
}

fn usage(usage: &Usage) -> String {
    let bytes = |blocks: u64| human_bytes(blocks.saturating_mul(usage.block_size));
    let used = usage.blocks.saturating_sub(usage.free_blocks);
    let mut text = format!("{} of {}", bytes(used), bytes(usage.blocks));
    if let Some(inodes) = &usage.inodes {
        text.push_str(&format!(", {} of {} inodes", inodes.total.saturating_sub(inodes.free), inodes.total));
    }
    text
}

/// Bytes of the disk outside of partitions.
fn between(found: &Report) -> u64 {
    let mut parts: Vec<_> = found.partitions.iter().map(|part| disk_map::range(part, found.virtual_size)).collect();
    parts.sort_by_key(|part| part.start);
    let mut covered = 0_u64;
    let mut end = 0;
    for part in parts {
        covered = covered.saturating_add(part.end.saturating_sub(part.start.max(end)));
        end = part.end.max(end);
    }
    found.virtual_size.saturating_sub(covered)
}
