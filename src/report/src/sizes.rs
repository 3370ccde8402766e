//! Section on disk usage by layer, artifact and directory: a listing in, a drawing and a table out.

use std::collections::BTreeMap;

use super::listing::Listing;
use super::table::{Section, Table};
use super::treemap::{self, Weights};
use vmbake_common::progress::human_bytes;

/// Directory depth: distinguishes `/usr/lib/modules` from `/usr/lib/x86_64-linux-gnu`.
pub(super) const DEPTH: usize = 3;

/// Maximum number of artifacts in the table.
const MAX_ARTIFACTS: usize = 200;

/// Usage of a layer or of an artifact in it.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    bytes: u64,
    paths: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.paths = self.paths.saturating_add(1);
    }

    fn cells(self) -> [String; 2] {
        [human_bytes(self.bytes), self.paths.to_string()]
    }
}

pub(super) fn section(listing: &Listing<'_>) -> Section {
    let mut weights = Weights::new();
    let mut layers: BTreeMap<usize, Sum> = BTreeMap::new();
    let mut artifacts: BTreeMap<(usize, usize), Sum> = BTreeMap::new();
    for entry in &listing.entries {
        layers.entry(entry.layer).or_default().add(entry.bytes);
        artifacts.entry((entry.layer, entry.artifact)).or_default().add(entry.bytes);
        if entry.bytes > 0 {
            let folders = weights.entry(entry.layer).or_default().entry(entry.artifact).or_default();
            let sum: &mut u64 = folders.entry(folder(&entry.path).to_owned()).or_default();
            *sum = sum.saturating_add(entry.bytes);
        }
    }
    Section {
        id: "sizes",
        title: "Disk usage",
        text: "Each rectangle is a directory, within its artifact or package and its layer; its area is proportional to its size. Use the \
               arrow keys to move between rectangles and Enter to list the paths."
            .to_owned(),
        treemap: Some(treemap::draw(&weights, &listing.layers, &listing.artifacts)),
        tables: vec![of_layers(listing, &layers), of_artifacts(listing, &artifacts)],
        ..Section::default()
    }
}

/// The first components of a path's parent.
fn folder(path: &str) -> &str {
    let parent = path.rfind('/').map_or("", |at| path.get(..at).unwrap_or_default());
    let end = parent.match_indices('/').nth(DEPTH).map_or(parent.len(), |(at, _)| at);
    match parent.get(..end).unwrap_or_default() {
        "" => "/",
        folder => folder,
    }
}

fn of_layers(listing: &Listing<'_>, sums: &BTreeMap<usize, Sum>) -> Table {
    let mut sums: Vec<_> = sums.iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    let name = |layer: usize| listing.layers.get(layer).cloned().unwrap_or_default();
    let rows = sums.into_iter().map(|(layer, sum)| [vec![name(*layer)], sum.cells().to_vec()].concat()).collect();
    Table::new("Layers", &["layer", "bytes", "paths"], rows)
}

fn of_artifacts(listing: &Listing<'_>, sums: &BTreeMap<(usize, usize), Sum>) -> Table {
    let mut sums: Vec<_> = sums.iter().filter(|((_, artifact), _)| *artifact > 0).collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    let names = |(layer, artifact): (usize, usize)| {
        let artifact = listing.artifacts.get(artifact).cloned().unwrap_or_default();
        vec![artifact, listing.layers.get(layer).cloned().unwrap_or_default()]
    };
    let title = match sums.len() {
        found if found > MAX_ARTIFACTS => format!("The {MAX_ARTIFACTS} largest of {found} artifacts and packages"),
        _ => "Artifacts and packages".to_owned(),
    };
    let rows = sums.into_iter().take(MAX_ARTIFACTS);
    let rows = rows.map(|(place, sum)| [names(*place), sum.cells().to_vec()].concat()).collect();
    Table::new(title, &["artifact or package", "layer", "bytes", "paths"], rows)
}

#[cfg(test)]
mod tests {
    use super::folder;

    #[test]
    fn folders_have_three_names() {
        for (path, expected) in [
            ("/", "/"),
            ("/vmlinuz", "/"),
            ("/etc/passwd", "/etc"),
            ("/usr/lib/modules/6.12/kernel/x.ko", "/usr/lib/modules"),
            ("/usr/lib/modules/x", "/usr/lib/modules"),
            ("/é/é/é/é/é", "/é/é/é"),
            ("/\\xff/b", "/\\xff"),
        ] {
            assert_eq!(folder(path), expected, "{path}");
        }
    }
}
