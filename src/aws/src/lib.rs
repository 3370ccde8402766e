//! AWS: the calls of the EBS direct APIs, EC2, SSM and STS needed to publish an image.
//!
//! From [`Settings`] and the user's configuration on the machine, creates an [`Aws`] client with a method for each API
//! action. All requests are signed (Signature Version 4) and sent by the project's HTTP client. Responses are
//! untrusted: their size is limited, and missing or malformed elements are errors. [`AwsError`] contains the action and
//! the resource, and never a secret.
//!
//! Retries happen here: after throttling, server failures and lost connections. An error is final, except for actions
//! that are not idempotent ([`Aws::register_image`], [`Aws::copy_image`]): after a lost response, the caller checks the
//! outcome.

pub mod ami;
mod error;
mod service;
mod settings;
mod endpoint;
mod plain_http;
mod sign;
mod connector;
mod identity;
mod rate_limit;
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
