//! Requests of layers for downloads and container images: determines the entries to resolve. Each request is recorded
//! in the manifest, so that a proof can be replayed without the layer, and a bake can compare both.

use std::collections::BTreeMap;

use super::UpdateRequest;
use crate::sources::Sources;
use vmbake_common::hint::Hint;
use vmbake_manifest::upstream::{Upstream, UpstreamRequest};
use vmbake_manifest::{ContainerImage, Content, Dependency, Target};

/// The requests of layers, by layer name.
pub type UpstreamRequests = BTreeMap<String, UpstreamRequest>;

/// Why a request of a layer is refused.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("{target}: download {name} of layer {layer} has the same name as an artifact in the sources")]
    Name { target: String, layer: String, name: String },
    #[error("{target}: container image {image} of layer {layer} is listed in the sources, which choose its tag")]
    Image { target: String, layer: String, image: String },
    #[error(
        "{target}: download {name} of layer {layer} requires a weaker proof than artifact {source_name} of the sources: {weaker}"
    )]
    Weakens { target: String, layer: String, name: String, source_name: String, weaker: String },
}

impl Hint for RequestError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Name { name, .. } => {
                format!("rename the download, or use `artifacts` to install {name} of the sources")
            }
            Self::Image { .. } => "remove it from `container_images`: the manifest already includes it".to_owned(),
            Self::Weakens { source_name, .. } => {
                format!("copy `checksums` and `proof` from the artifact {source_name} of the sources")
            }
        })
    }
}

/// A download requested by a layer.
#[derive(Clone, Copy)]
pub(super) struct AskedDownload<'a> {
    pub(super) layer: &'a str,
    pub(super) name: &'a str,
    pub(super) upstream: &'a Upstream,
}

/// A container image requested by a layer.
#[derive(Clone, Copy)]
pub(super) struct AskedImage<'a> {
    pub(super) layer: &'a str,
    pub(super) reference: &'a str,
}

impl<'a> AskedDownload<'a> {
    pub(super) fn all((layer, asked): (&'a String, &'a UpstreamRequest)) -> impl Iterator<Item = Self> {
        asked.downloads.iter().map(move |(name, upstream)| Self { layer, name, upstream })
    }

    /// The pinned entry for the same request.
    pub(super) fn pinned<'b>(&self, content: &'b Content) -> Option<&'b Dependency> {
        let is_same = content.download(self.name) == Some((self.layer, self.upstream));
        content.dependencies.get(self.name).filter(|_| is_same)
    }

    /// Records the request.
    pub(super) fn note(&self, content: &mut Content) {
        content.requests.values_mut().for_each(|asked| drop(asked.downloads.remove(self.name)));
        content.requests.retain(|_, asked| !asked.is_empty());
        let asked = content.requests.entry(self.layer.to_owned()).or_default();
        asked.downloads.insert(self.name.to_owned(), self.upstream.clone());
    }
}

impl<'a> AskedImage<'a> {
    pub(super) fn all((layer, asked): (&'a String, &'a UpstreamRequest)) -> impl Iterator<Item = Self> {
        asked.container_images.iter().map(move |reference| Self { layer, reference })
    }

    pub(super) fn tag(&self) -> &'a str {
        self.reference.rsplit_once(':').map_or("", |(_, tag)| tag)
    }

    /// The pinned entry for the same request.
    pub(super) fn pinned<'b>(&self, content: &'b Content) -> Option<&'b ContainerImage> {
        let asked = content.requests.get(self.layer)?;
        let image = content.images.iter().find(|image| image.image == self.reference);
        image.filter(|_| asked.container_images.contains(self.reference))
    }

    /// Records the request.
    pub(super) fn note(&self, content: &mut Content) {
        let asked = content.requests.entry(self.layer.to_owned()).or_default();
        asked.container_images.insert(self.reference.to_owned());
    }
}

/// Fails if a request conflicts with the sources: by its name, or by a weaker proof of the same file.
pub(super) fn check(request: &UpdateRequest, sources: &Sources) -> Result<(), RequestError> {
    for (target, asked) in &request.upstreams {
        for asked in asked.iter().flat_map(AskedDownload::all) {
            check_download(sources, target, asked)?;
        }
        for AskedImage { layer, reference } in asked.iter().flat_map(AskedImage::all) {
            if sources.images(target).any(|source| source.tag_of(reference).is_some()) {
                let (layer, image) = (layer.to_owned(), reference.to_owned());
                return Err(RequestError::Image { target: target.name(), layer, image });
            }
        }
    }
    Ok(())
}

fn check_download(sources: &Sources, target: &Target, asked: AskedDownload<'_>) -> Result<(), RequestError> {
    let (layer, name) = (asked.layer.to_owned(), asked.name.to_owned());
    if sources.upstream(target, asked.name).is_some() {
        return Err(RequestError::Name { target: target.name(), layer, name });
    }
    match sources.demand_more(asked.upstream) {
        Some((source, weaker)) => {
            let source_name = source.name.clone();
            Err(RequestError::Weakens { target: target.name(), layer, name, source_name, weaker })
        }
        None => Ok(()),
    }
}
