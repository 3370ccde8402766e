//! Checksum files beside artifacts, as `sha256sum` and `sha512sum` write them.
