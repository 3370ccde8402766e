//! OCI images: index, platform manifest, config and layers by their digests.
