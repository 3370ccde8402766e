//! A container image: verifies that the pinned index refers to the pinned manifest of the platform. The index is not
//! signed.

use super::{LinkError, Prover, VerifiedProof, by_hand, same};
use vmbake_manifest::{ContainerImage, Content, Proof};
use vmbake_oci::{Descriptor, Image, OciError, read_document};

pub(super) fn replay(
    prover: &Prover<'_>,
    content: &Content,
    pinned: &ContainerImage,
) -> Result<VerifiedProof, LinkError> {
    let platform = format!("linux/{}", content.os.arch);
    same("platform", &pinned.platform, &platform)?;
    let read = |blob: &Descriptor| match prover.store.blob(&blob.digest) {
        Ok(Some(file)) => read_document(blob, file),
        Ok(None) => Err(OciError::Absent { digest: Box::new(blob.digest) }),
        Err(source) => Err(OciError::Blob { digest: Box::new(blob.digest), source: source.into() }),
    };
    let image = Image::find(pinned.index, &platform.parse()?, &read)?;
    same("digest", &pinned.digest.to_string(), &image.manifest.digest.to_string())?;
    same("size", &pinned.size.to_string(), &image.manifest.size.to_string())?;
    let Some(place) = prover.place(content) else { return by_hand(pinned.proof.as_ref()) };
    let is_listed = prover.sources.images(&place.target).any(|source| source.tag_of(&pinned.image).is_some());
    match (&pinned.proof, is_listed || content.asks_for_image(&pinned.image)) {
        (Some(Proof::FirstUse), true) => Ok(VerifiedProof::FirstUse),
        (proof, true) => Err(super::weak("the first download", proof.as_ref())),
        (proof, false) => by_hand(proof.as_ref()),
    }
}
