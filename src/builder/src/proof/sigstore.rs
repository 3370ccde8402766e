//! Sigstore bundles, checked offline against a pinned trusted root.
