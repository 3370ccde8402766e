//! Keyless signatures of cosign in two files: `.sig` and `.cert`.
