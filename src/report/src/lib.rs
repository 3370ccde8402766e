//! HTML reports: an image in, one self-contained HTML document out.
//!
//! The same image gives the same bytes. The report contains nothing of the host but the image's file name. All data from an
//! image is untrusted: only `page` turns text into HTML or JSON, and it escapes all of it. Missing information is noted in
//! the report; the only error is a file that is not a disk image.

mod treemap;
mod disk_map;
mod table;
mod listing;
mod sizes;
mod partitions;
mod about;
mod accounts;
mod first_boot;
mod changes;
mod findings;
mod paths;
mod page;

use std::num::NonZeroUsize;
use std::path::Path;

use vmbake_disk::tree::Tree;

use changes::Changes;
use listing::Listing;
use table::Section;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_compose::origin::Record;
use vmbake_image::disk::{DiskImage, InspectError};
use vmbake_image::inspect::{inspect, open_tree, reasons};
use vmbake_query::changelog::ChangelogError;
use vmbake_query::diff::DiffError;
use vmbake_query::sbom::{Inventory, image_record};

pub use findings::ReportedCheck;
pub use table::Fact;

/// Error while creating a report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error(transparent)]
    Changelog(#[from] ChangelogError),
    #[error(transparent)]
    Diff(#[from] DiffError),
    #[error("cannot write the report")]
    Template(#[from] minijinja::Error),
    #[error("cannot serialize the data of the report as JSON")]
    Json(#[from] serde_json::Error),
}

impl Hint for ReportError {
    vmbake_common::causes!(Inspect, Changelog, Diff);
}

/// Inputs of a report.
pub struct ReportRequest<'a> {
    pub image: &'a Path,
    /// Number of its root partition; by default, the result of [`vmbake_disk::layout::Layout::root`].
    pub partition: Option<u32>,
    /// An older image to compare with.
    pub compare: Option<&'a Path>,
    /// Documents next to the image.
    pub documents: Documents,
    /// Number of threads.
    pub threads: NonZeroUsize,
}

/// Claims of the documents next to an image. They are compared with the image only if there are checks.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    /// Builder and inputs.
    pub builder: Vec<Fact>,
    /// Digests by file name.
    pub digests: Vec<Fact>,
    /// Results of the release verification, if requested.
    pub checks: Option<Vec<ReportedCheck>>,
    /// Unusable documents, and why.
    pub notes: Vec<String>,
}

/// Data about the root file system.
struct Inside {
    tree: Tree,
    record: Option<Record>,
    inventory: Option<Inventory>,
}

/// Creates the report.
pub fn report(request: &ReportRequest<'_>) -> Result<String, ReportError> {
    let found = inspect(request.image, request.partition)?;
    let mut notes = found.notes.clone();
    notes.extend(request.documents.notes.iter().cloned());
    let inside = Inside::read(request, &mut notes);
    let changes = request.compare.map(|old| Changes::read(old, request)).transpose()?;
    let mut sections = vec![about::section(&found, inside.as_ref(), &request.documents)];
    let mut data = None;
    if let Some(inside) = &inside {
        let listing = Listing::read(&inside.tree, inside.record.as_ref(), &mut notes);
        sections.push(sizes::section(&listing));
        sections.extend(inside.inventory.as_ref().map(about::parts));
        sections.extend(noted(accounts::sections(&inside.tree), &mut notes));
        sections.push(first_boot::section(&inside.tree, inside.record.as_ref()));
        data = Some(paths::json(&listing, changes.as_ref(), paths::MAX_ROWS)?);
        if listing.entries.len() > paths::MAX_ROWS {
            notes.push(format!("the table has the first {} of {} paths", paths::MAX_ROWS, listing.entries.len()));
        }
    }
    let root = inside.as_ref().and_then(|inside| Some((found.root?, &inside.tree)));
    sections.push(partitions::section(&found, root));
    sections.extend(changes.map(Changes::into_section));
    sections.extend(inside.as_ref().map(|inside| findings::lint(&inside.tree, inside.record.as_ref())));
    sections.push(findings::proofs(request.documents.checks.as_deref()));
    let name = inside.as_ref().and_then(|inside| Some(inside.inventory.as_ref()?.name.clone()));
    let name = name.unwrap_or_else(|| file_name(request.image));
    page::render(&page::Page { name, file: file_name(request.image), notes, sections }, data.as_deref())
}

/// The image's file name.
fn file_name(image: &Path) -> String {
    escape::name(std::os::unix::ffi::OsStrExt::as_bytes(image.file_name().unwrap_or_default()))
}

/// Unwraps a result, or adds a note.
fn noted<E: std::error::Error + 'static>(found: Result<Vec<Section>, E>, notes: &mut Vec<String>) -> Vec<Section> {
    found.unwrap_or_else(|error| {
        notes.push(format!("accounts and units are unknown: {}", escape::chain(&error)));
        Vec::new()
    })
}

impl Inside {
    /// Reads the root file system; adds a note and returns `None` on failure.
    fn read(request: &ReportRequest<'_>, notes: &mut Vec<String>) -> Option<Self> {
        let opened = DiskImage::open(request.image).and_then(|image| image.root(request.partition).map(drop));
        // A missing root partition was reported by inspect.
        opened.ok()?;
        let tree = match open_tree(request.image, request.partition) {
            Ok(tree) => tree,
            Err(error) => {
                notes.push(format!("files are unknown: {}", reasons(&error, request.image)));
                return None;
            }
        };
        let record = image_record(request.image, &tree).unwrap_or_else(|error| {
            notes.push(format!("the record of origins is not used: {}", reasons(&error, request.image)));
            None
        });
        let inventory = match Inventory::of_opened(request.image, &tree, record.as_ref()) {
            Ok(inventory) => {
                notes.extend(inventory.notes.iter().cloned());
                Some(inventory)
            }
            Err(error) => {
                notes.push(format!("components are unknown: {}", reasons(&error, request.image)));
                None
            }
        };
        Some(Self { tree, record, inventory })
    }
}
