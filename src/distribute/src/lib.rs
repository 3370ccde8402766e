//! Distribution of releases: packages the outputs of a bake for other sites, and receives them there.
//!
//! [`release`] describes a release as OCI documents; [`push`] uploads it to a registry, and [`pull`] downloads it.
//! [`delta`] updates one image to the next, [`archive`] transfers images to sites without network access, and
//! [`convert`] writes formats for clouds. [`bundle`] handles components of other vendors. [`publish`] is the
//! interface of clouds, [`ebs`] determines the blocks of a snapshot, and [`podplane`] lists an image for the command
//! line of that name.

pub mod version;
pub mod release;
pub mod push;
pub mod pull;
pub mod delta;
pub mod archive;
pub mod convert;
pub mod bundle;
pub mod publish;
pub mod ebs;
pub mod podplane;
