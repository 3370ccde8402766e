//! Attachments of the index of a release: manifests whose `subject` is the index.
//!
//! Everything is attached to the index, not to an image: tools that copy a release with its referrers start there.

use vmbake_bake::release::sign::{BUNDLE, MEDIA_TYPE};
use vmbake_oci::Descriptor;

use super::document::{ArtifactManifest, MANIFEST, TITLE, Written, empty_config, titled};

/// Artifact types of documents by suffix. The first match applies.
const TYPES: [(&str, &str); 8] = [
    (BUNDLE, MEDIA_TYPE),
    (".spdx.json", "application/spdx+json"),
    (".cdx.json", "application/vnd.cyclonedx+json"),
    (".provenance.json", "application/vnd.in-toto+json"),
    (".inputs.json", "application/vnd.vmbake.inputs.v1+json"),
    (".origin.json", "application/vnd.vmbake.origin.v1+json"),
    ("SHA256SUMS", "application/vnd.vmbake.sums.v1"),
    ("FSVERITYSUMS", "application/vnd.vmbake.sums.v1"),
];
/// Artifact type of the manifest of the image.
const PINNED: &str = "application/vnd.vmbake.manifest.v1+json";
/// Artifact type of all other files.
const OTHER: &str = "application/vnd.vmbake.attachment.v1";

/// An attached file, with its manifest.
#[derive(Clone, Debug)]
pub struct Attachment {
    pub name: String,
    pub content: Written,
    pub manifest: Written,
    /// The entry in lists of referrers.
    pub entry: Descriptor,
}

impl Attachment {
    /// Attaches a file next to the image called `of`, or one given by the user.
    pub fn of_file(index: &Descriptor, name: &str, content: Vec<u8>, of: &[&str]) -> Result<Self, serde_json::Error> {
        let known = TYPES.iter().find(|(end, _)| name.ends_with(end)).map(|(_, media_type)| *media_type);
        let is_pinned = of.iter().any(|image| name.strip_prefix(image) == Some(".json"));
        let media_type = known.unwrap_or(if is_pinned { PINNED } else { OTHER });
        Self::new(index, name, media_type, content, &[])
    }

    /// Attaches content of some type, with annotations.
    pub fn new(
        index: &Descriptor,
        name: &str,
        media_type: &str,
        content: Vec<u8>,
        annotations: &[(&str, &str)],
    ) -> Result<Self, serde_json::Error> {
        let content = Written::of(media_type, content);
        let layer = titled(content.descriptor.clone(), name);
        let mut manifest = ArtifactManifest::new(media_type, empty_config().descriptor, vec![layer]);
        manifest.subject = Some(Descriptor::new(&index.media_type.to_string(), index.digest, index.size));
        manifest.annotations.insert(TITLE.to_owned(), name.to_owned());
        manifest.annotations.extend(annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let written = Written::new(MANIFEST, &manifest)?;
        let mut entry = written.descriptor.clone();
        (entry.artifact_type, entry.annotations) = (Some(media_type.to_owned()), manifest.annotations);
        Ok(Self { name: name.to_owned(), content, manifest: written, entry })
    }
}
