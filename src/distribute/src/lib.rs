//! How releases travel: the outputs of a bake enter, and leave for other places in a form that others can read, and come back from there.
//!
//! [`release`] says what a release is as OCI documents; [`push`] sends it to a registry, and [`pull`] brings it back. [`delta`] turns one image into the
//! next, [`archive`] carries them where no network is, and [`convert`] stores a disk as a cloud takes it. [`bundle`] is for components that others
//! publish.
//! [`publish`] says which blocks of it a snapshot needs, and [`podplane`] lists an image for the command line of that name.

pub mod version;
pub mod release;
pub mod push;
pub mod pull;
pub mod delta;
pub mod archive;
pub mod convert;
pub mod bundle;
pub mod publish;
pub mod podplane;
