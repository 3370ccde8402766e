//! Why an image was not published.

use std::io;
use std::path::PathBuf;

use crate::AwsError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_distribute::publish::blocks::BlocksError;
use vmbake_image::disk::InspectError;

/// Why an image was not published.
#[derive(Debug, thiserror::Error)]
pub enum AmiError {
    #[error(transparent)]
    Aws(#[from] AwsError),
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error(transparent)]
    Blocks(#[from] BlocksError),
    #[error("{path}: would not work on EC2: {failed}")]
    Preflight { path: PathBuf, failed: String },
    #[error("{path}: starts by {found}, not by {asked}")]
    BootMode { path: PathBuf, found: &'static str, asked: &'static str },
    #[error("{path}: its os-release has no {missing}")]
    Unnamed { path: PathBuf, missing: &'static str },
    #[error("{name:?}: no machine image can have this name: it needs 3 to 128 letters, digits and ()[] ./-'@_")]
    Name { name: String },
    #[error("{name}: {image} in {region} has this name, with {}, not {expected}", found.as_deref().unwrap_or("no digest of its disk"))]
    Taken {
        name: String,
        image: String,
        region: String,
        /// The digest of its disk, as its tag says.
        found: Option<String>,
        expected: Box<Digest>,
    },
    #[error("{snapshot}: cannot be the parent: {reason}")]
    Parent { snapshot: String, reason: String },
    #[error("{region}: machine images cannot be public: {reason}")]
    Public { region: String, reason: &'static str },
    #[error("{snapshot}: {sent} of {total} blocks are there")]
    Upload {
        /// The snapshot, which is still pending.
        snapshot: String,
        sent: u64,
        total: u64,
        /// Why the next one did not.
        source: Box<AmiError>,
    },
    #[error("{path}: cannot read block {index}")]
    Read {
        path: PathBuf,
        /// The block, in 512 KiB.
        index: u64,
        source: io::Error,
    },
    #[error("{snapshot}: is not the disk that was sent: {reason}")]
    Differs { snapshot: String, reason: String },
    #[error("{id} in {region}: is {state}, not {expected}{}", reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    State {
        /// A snapshot or a machine image.
        id: String,
        region: String,
        state: String,
        /// The state that was waited for.
        expected: &'static str,
        reason: Option<String>,
    },
    #[error("{path}: cannot keep what was sent")]
    Journal { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Keep(#[from] PublishError),
}

impl Hint for AmiError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Preflight { .. } => "`vmbake preflight aws` shows all checks".to_owned(),
            Self::BootMode { .. } => "without --boot-mode and --tpm it is what the image can do".to_owned(),
            Self::Unnamed { .. } => "--family and --name say it".to_owned(),
            Self::Name { .. } => "--name gives another one".to_owned(),
            Self::Taken { .. } => {
                "a version is published once: bake with another version, or give another --name".to_owned()
            }
            Self::Parent { .. } => {
                "--parent none sends everything; --parent-image names the image that the parent was made of".to_owned()
            }
            Self::Public { .. } => "name accounts with --launch-permission instead".to_owned(),
            Self::Upload { snapshot, .. } => {
                format!(
                    "the same command goes on where this ended; `aws ec2 delete-snapshot --snapshot-id {snapshot}` gives it up"
                )
            }
            Self::Read { .. } => "publish an image that nobody writes to".to_owned(),
            Self::Differs { snapshot, .. } => {
                format!("nothing was registered; delete {snapshot}, and publish again")
            }
            Self::State { id, state, .. } if state == "pending" => {
                format!("{id} may only be slow: the same command goes on")
            }
            Self::State { id, .. } => format!("remove {id}, and publish again"),
            Self::Journal { .. } => "--store names another folder".to_owned(),
            Self::Aws(_) | Self::Inspect(_) | Self::Blocks(_) | Self::Keep(_) => return None,
        };
        Some(text)
    }

    vmbake_common::causes!(Aws, Inspect, Blocks, Keep; Upload, Read, Journal);
}
