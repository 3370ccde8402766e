//! Errors of publishing.

use std::io;
use std::path::PathBuf;

use crate::AwsError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_image::disk::InspectError;
use vmbake_publish::ebs::blocks::BlocksError;

/// Why an image was not published.
#[derive(Debug, thiserror::Error)]
pub enum AmiError {
    #[error(transparent)]
    Aws(#[from] AwsError),
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error(transparent)]
    Blocks(#[from] BlocksError),
    #[error("{path}: image does not meet the requirements of EC2: {failed}")]
    Preflight { path: PathBuf, failed: String },
    #[error("{path}: image boots by {found}, but {asked} was requested")]
    BootMode { path: PathBuf, found: &'static str, asked: &'static str },
    #[error("{path}: missing {missing} in os-release")]
    Unnamed { path: PathBuf, missing: &'static str },
    #[error("{name:?}: invalid AMI name: expected 3 to 128 letters, digits and ()[] ./-'@_")]
    Name { name: String },
    #[error("{name}: name is in use by {image} in {region}, with {}, expected {expected}", found.as_deref().unwrap_or("no disk digest"))]
    Taken {
        name: String,
        image: String,
        region: String,
        /// The disk digest in its tag.
        found: Option<String>,
        expected: Box<Digest>,
    },
    #[error("{snapshot}: cannot be used as the parent: {reason}")]
    Parent { snapshot: String, reason: String },
    #[error("{region}: cannot share AMIs publicly: {reason}")]
    Public { region: String, reason: &'static str },
    #[error("{snapshot}: upload interrupted: {sent} of {total} blocks uploaded")]
    Upload {
        /// The pending snapshot.
        snapshot: String,
        sent: u64,
        total: u64,
        /// Why the next block failed.
        source: Box<AmiError>,
    },
    #[error("{path}: cannot read block {index}")]
    Read {
        path: PathBuf,
        /// Index of the block of 512 KiB.
        index: u64,
        source: io::Error,
    },
    #[error("{snapshot}: snapshot differs from the disk: {reason}")]
    Differs { snapshot: String, reason: String },
    #[error("{id} in {region}: state is {state}, expected {expected}{}", reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    State {
        /// A snapshot or an AMI.
        id: String,
        region: String,
        state: String,
        /// The expected state.
        expected: &'static str,
        reason: Option<String>,
    },
    #[error("{path}: cannot write the upload journal")]
    Journal { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Keep(#[from] PublishError),
}

impl Hint for AmiError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Preflight { .. } => "`vmbake preflight aws` shows all checks".to_owned(),
            Self::BootMode { .. } => "leave out --boot-mode and --tpm to use what the image supports".to_owned(),
            Self::Unnamed { .. } => "use --family and --name to set them".to_owned(),
            Self::Name { .. } => "use --name to set another one".to_owned(),
            Self::Taken { .. } => {
                "a version is published once: bake with another version, or use --name to set another name".to_owned()
            }
            Self::Parent { .. } => {
                "use --parent none to upload all blocks, or --parent-image with the image of the parent snapshot"
                    .to_owned()
            }
            Self::Public { .. } => "use --launch-permission with account IDs instead".to_owned(),
            Self::Upload { snapshot, .. } => {
                format!(
                    "run the same command again to resume, or delete the snapshot with `aws ec2 delete-snapshot --snapshot-id {snapshot}`"
                )
            }
            Self::Read { .. } => "run the command again when no other program is writing to the image".to_owned(),
            Self::Differs { snapshot, .. } => {
                format!("nothing was registered; delete {snapshot} and publish again")
            }
            Self::State { id, state, .. } if state == "pending" => {
                format!("{id} may only be slow: run the same command again to continue")
            }
            Self::State { id, .. } => format!("delete {id} and publish again"),
            Self::Journal { .. } => "use --store to choose another directory".to_owned(),
            Self::Aws(_) | Self::Inspect(_) | Self::Blocks(_) | Self::Keep(_) => return None,
        };
        Some(text)
    }

    vmbake_common::causes!(Aws, Inspect, Blocks, Keep; Upload, Read, Journal);
}
