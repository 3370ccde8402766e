//! Resolves the base image and container images.

use super::{ManifestContext, ResolveError, Resolved, Resolver};
use crate::sources::{ImageSource, Upstream};
use vmbake_image::grub;
use vmbake_manifest::{ArtifactType, Boot, ContainerImage, Dependency, OCI, Proof};
use vmbake_oci::{Descriptor, RemoteName};
use vmbake_store::registry::pull_name;

impl Resolver<'_> {
    /// Resolves the published base image, and reads its boot menu.
    pub fn os_image(&self, place: ManifestContext<'_>, upstream: &Upstream) -> Result<(Resolved, Boot), ResolveError> {
        let (image, downloaded) = self.file(place, upstream)?;
        let boot = grub::read(&self.store.path(&downloaded.digest), None)?;
        Ok((image, boot))
    }

    /// Resolves a container image as a base. Its platform's manifest is pinned.
    pub fn base_container(&self, place: ManifestContext<'_>, name: &RemoteName) -> Result<Dependency, ResolveError> {
        let platform = format!("linux/{}", place.target.arch);
        let Descriptor { digest, size, .. } = pull_name(self.client, self.store, name, &platform)?;
        Ok(Dependency {
            version: name
                .tag
                .clone()
                .unwrap_or_else(|| name.digest.map_or_else(|| "latest".to_owned(), |digest| digest.to_string())),
            url: format!("{OCI}{name}"),
            kind: ArtifactType::Oci,
            digest,
            size,
            proof: Some(Proof::FirstUse),
            chosen: None,
        })
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
