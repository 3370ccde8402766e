//! The chain of an apt repository: InRelease, Packages, deb.
