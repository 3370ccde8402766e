//! Where the paths of an image came from and how two images differ: small images are baked, changed and asked, as an
//! ordinary user.

mod image;
mod bakery;
mod explain;
mod diff;
