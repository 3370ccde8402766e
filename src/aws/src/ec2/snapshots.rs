//! EC2 snapshots.

use std::collections::BTreeMap;

use super::{form, tags};
use crate::client::Aws;
use crate::error::AwsError;
use crate::xml::{Missing, Node};

/// A snapshot of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its ID: `snap-…`.
    pub id: String,
    /// `pending`, `completed`, `error`, `recoverable` or `recovering`.
    pub state: String,
    /// Size of the volume in GiB.
    pub volume_size: u64,
    pub encrypted: bool,
    /// ARN of the key that encrypts it.
    pub kms_key: Option<String>,
    /// Account ID of the owner.
    pub owner: String,
    /// Start time in ISO 8601.
    pub started: String,
    /// `standard` or `archive`.
    pub storage_tier: String,
    /// The reason for its state; may be empty.
    pub message: String,
    pub tags: BTreeMap<String, String>,
}

impl Aws {
    /// The account's own snapshots that match all filters. A filter has a name and values, one of which must match.
    pub fn snapshots(&self, filters: &[(&str, &[&str])]) -> Result<Vec<Snapshot>, AwsError> {
        let form = form("DescribeSnapshots").with("Owner.1", "self").filters(filters);
        self.ec2_pages(&form, "snapshotSet", read)
    }

    /// A snapshot of any owner; `None` if it does not exist or is not visible to the account.
    pub fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, AwsError> {
        let form = form("DescribeSnapshots").with("SnapshotId.1", id).of(id);
        match self.ec2(&form) {
            Ok(answer) => answer.read(|root| root.items("snapshotSet").next().map(|item| read(&item)).transpose()),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes a snapshot, which no AMI may use. A retry succeeds if the first attempt did.
    pub fn delete_snapshot(&self, snapshot: &str) -> Result<(), AwsError> {
        self.ec2_gone(&form("DeleteSnapshot").with("SnapshotId", snapshot).of(snapshot))
    }
}

fn read(item: &Node<'_, '_>) -> Result<Snapshot, Missing> {
    Ok(Snapshot {
        id: item.text("snapshotId")?,
        state: item.text("status")?,
        volume_size: item.number("volumeSize")?,
        encrypted: item.flag("encrypted")?.unwrap_or(false),
        kms_key: item.some_text("kmsKeyId"),
        owner: item.text("ownerId")?,
        started: item.text("startTime")?,
        storage_tier: item.some_text("storageTier").unwrap_or_else(|| "standard".to_owned()),
        message: item.some_text("statusMessage").unwrap_or_default(),
        tags: tags(item)?,
    })
}
