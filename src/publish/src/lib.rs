//! Publishes images to a cloud: the interface of each cloud's crate, and what is common to all of them.
//!
//! A disk image in, what a cloud takes out: [`convert`] writes its disk format, [`ebs`] determines the blocks of a
//! snapshot of Amazon EBS.

pub mod source;
pub mod convert;
pub mod ebs;

use std::num::NonZeroUsize;
use std::path::Path;

use serde::Serialize;

use source::DiskSource;
use vmbake_common::hint::Hint;
use vmbake_common::progress::Progress;

/// An account of a cloud. Its resources are found by their tags, so a second run does only what is missing.
pub trait Publisher {
    /// What to publish in terms of the cloud: tags, copies, permissions, types of machines.
    type Options<'a>;
    type Report: PublishReport;
    type Error: Hint + Send + Sync + 'static;

    /// Reports what [`Publisher::publish`] would do, without changing anything.
    fn plan(&self, request: &PublishRequest<'_>, options: &Self::Options<'_>) -> Result<Self::Report, Self::Error>;

    /// Uploads the disk and registers it as an image; then copies, tags and shares the image.
    fn publish(&self, request: &PublishRequest<'_>, options: &Self::Options<'_>) -> Result<Self::Report, Self::Error>;

    /// Lists the images of a family: all but the `keep` newest of each architecture, and those in use, are to be deleted.
    fn list(&self, family: &str, keep: usize) -> Result<Collection, Self::Error>;

    /// Deletes what a list contains, except for resources that have come into use since.
    fn remove(&self, collection: &mut Collection) -> Result<(), Self::Error>;
}

/// An image to publish to any cloud.
pub struct PublishRequest<'a> {
    pub source: &'a DiskSource,
    /// Number of the root partition, if it cannot be detected.
    pub partition: Option<u32>,
    /// Name of the machine image; by default family, version and architecture.
    pub name: Option<&'a str>,
    /// The name shared by its releases; by default `IMAGE_ID` of os-release.
    pub family: Option<&'a str>,
    /// The store, which keeps journals of uploads.
    pub store: &'a Path,
    /// Number of threads that read the image.
    pub threads: NonZeroUsize,
    pub progress: &'a Progress,
}

/// The result of publishing, or of a plan.
pub trait PublishReport: Serialize {
    fn summary(&self) -> String;

    /// Region and ID of each machine image, the primary region first.
    fn images(&self) -> Vec<(&str, &str)>;
}

/// A machine image or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leftover {
    pub id: String,
    pub name: String,
    /// Why it is kept; none if it is to be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// The resources of a family in a region, to keep or to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Collection {
    pub region: String,
    /// Machine images, the newest first.
    pub images: Vec<Leftover>,
    /// Complete snapshots, the newest first.
    pub snapshots: Vec<Leftover>,
    /// Snapshots of interrupted uploads. They are kept, since an upload may resume.
    pub unfinished: Vec<String>,
}
