//! Where the paths of an image came from and how two images differ: small images are baked, changed and asked, as an
//! ordinary user.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests stop at the first surprise"
)]

mod image;
mod bakery;
mod explain;
mod diff;
