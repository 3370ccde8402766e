//! Resolves the base image and container images.

use super::{ManifestContext, ResolveError, Resolved, Resolver};
use crate::sources::{ImageSource, Upstream};
use vmbake_image::grub;
use vmbake_manifest::{Boot, ContainerImage};

impl Resolver<'_> {
    /// Resolves the published base image, and reads its boot menu.
    pub fn os_image(&self, place: ManifestContext<'_>, upstream: &Upstream) -> Result<(Resolved, Boot), ResolveError> {
        let (image, downloaded) = self.file(place, upstream)?;
        let boot = grub::read(&self.store.path(&downloaded.digest), None)?;
        Ok((image, boot))
    }

    /// Resolves a container image.
    pub fn container(&self, place: ManifestContext<'_>, source: &ImageSource) -> Result<ContainerImage, ResolveError> {
        let tag = self.version(place, &source.tag)?;
        self.container_image(place, &format!("{}:{tag}", source.image))
    }

    /// Resolves a container image given by its reference.
    pub fn container_image(&self, place: ManifestContext<'_>, reference: &str) -> Result<ContainerImage, ResolveError> {
        let platform = format!("linux/{}", place.target.arch);
        Ok(vmbake_store::registry::pull_tag(self.client, self.store, reference, &platform)?)
    }
}
