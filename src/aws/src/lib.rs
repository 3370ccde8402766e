//! AWS: the calls of the EBS direct APIs, EC2, SSM and STS that publishing an image takes.
//!
//! [`Settings`] and what the machine has of the user's configuration enter, an [`Aws`] leaves, whose methods are one API action each. All
//! requests are signed (Signature Version 4), and pass through the project's one HTTP client. What a service answers is hostile: it has
//! bounds, and what is missing in it or of another type is an error. [`AwsError`] names the action and the resource, and never a secret.
//!
//! What may be repeated is repeated here: throttled requests, failures of the service, broken connections. So a caller sees an error only
//! once nothing more can be done about it, but for actions whose answer was lost and that are not safe to repeat ([`Aws::register_image`],
//! [`Aws::copy_image`]): there the caller looks what became of it.

pub mod ami;
mod error;
mod service;
mod settings;
mod endpoint;
mod plain_http;
mod sign;
mod connector;
mod identity;
mod pace;
mod retry;
mod refusal;
mod call;
mod transport;
mod send;
mod client;
mod xml;
mod query;
mod sts;
mod ebs;
mod ec2;
mod ssm;

pub use client::Aws;
pub use ebs::{BLOCK_SIZE, ChangedBlock, ListedBlock, ListedBlocks, StartSnapshot, Started};
pub use ec2::{CopyImage, LaunchPermission, MachineImage, RegisterImage, Snapshot};
pub use error::{AwsError, ServiceRefusal};
pub use settings::Settings;
pub use sts::Caller;

#[cfg(test)]
mod tests;
