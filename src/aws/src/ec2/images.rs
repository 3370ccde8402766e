//! AMIs: register, copy, find, deprecate and deregister.

use std::collections::BTreeMap;

use super::{form, tags};
use crate::client::Aws;
use crate::error::AwsError;
use crate::query::Form;
use crate::service::Service;
use crate::xml::{Missing, Node};

/// An Amazon machine image (AMI).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineImage {
    /// Its ID: `ami-…`.
    pub id: String,
    /// Its name, unique in an account and region.
    pub name: String,
    /// `pending`, `available`, `invalid`, `deregistered`, `transient`, `failed`, `error` or `disabled`.
    pub state: String,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// `legacy-bios`, `uefi` or `uefi-preferred`.
    pub boot_mode: Option<String>,
    /// `v2.0` if it has a TPM.
    pub tpm: Option<String>,
    /// `v2.0` if instances require IMDSv2.
    pub imds: Option<String>,
    /// Whether instances have enhanced networking with ENA.
    pub ena: bool,
    /// Name of the root device, such as `/dev/xvda`; may be empty.
    pub root_device: String,
    /// Snapshots of its disks.
    pub snapshots: Vec<String>,
    /// Whether every account can launch it.
    pub public: bool,
    /// The time of deprecation, in ISO 8601.
    pub deprecation: Option<String>,
    /// The time of registration, in ISO 8601.
    pub created: String,
    /// The reason for its state.
    pub reason: Option<String>,
    pub tags: BTreeMap<String, String>,
}

/// Parameters of a new AMI.
#[derive(Clone, Debug)]
pub struct RegisterImage<'a> {
    /// 3 to 128 of the characters that EC2 allows.
    pub name: &'a str,
    /// At most 255 characters.
    pub description: &'a str,
    /// `x86_64` or `arm64`.
    pub architecture: &'a str,
    /// `legacy-bios`, `uefi` or `uefi-preferred`.
    pub boot_mode: &'a str,
    /// `v2.0` for a TPM, which requires `uefi`.
    pub tpm: Option<&'a str>,
    /// Whether instances require IMDSv2.
    pub imds_v2: bool,
    /// Name of the root device, such as `/dev/xvda`.
    pub root_device: &'a str,
    /// The completed snapshot of the root device, which determines the encryption.
    pub snapshot: &'a str,
    /// Size of the root device in GiB, at least that of the snapshot.
    pub volume_size: u64,
    /// Such as `gp3`.
    pub volume_type: &'a str,
    pub tags: &'a [(String, String)],
}

/// Parameters of a copy into the region of the client.
#[derive(Clone, Debug)]
pub struct CopyImage<'a> {
    pub name: &'a str,
    /// At most 255 characters.
    pub description: &'a str,
    pub source_region: &'a str,
    pub source_image: &'a str,
    /// At most 64 ASCII characters.
    pub client_token: &'a str,
    /// Key of the client's region that encrypts the copy.
    pub kms_key: Option<&'a str>,
    /// Whether the copy is encrypted; a copy of an encrypted AMI always is.
    pub encrypted: bool,
    /// Tags of the copy and its snapshots.
    pub tags: &'a [(String, String)],
}

impl Aws {
    /// The account's own AMIs that match all filters, including deprecated ones. A filter has a name and values, one of
    /// which must match.
    pub fn images(&self, filters: &[(&str, &[&str])]) -> Result<Vec<MachineImage>, AwsError> {
        let form = form("DescribeImages").with("Owner.1", "self").with("IncludeDeprecated", "true").filters(filters);
        self.ec2_pages(&form, "imagesSet", read)
    }

    /// Registers an AMI and returns its ID. Not retried after a lost response: the caller then looks up the name.
    pub fn register_image(&self, r: &RegisterImage<'_>) -> Result<String, AwsError> {
        let form = form("RegisterImage")
            .with("Name", r.name)
            .with_some("Description", Some(r.description).filter(|text| !text.is_empty()))
            .with("Architecture", r.architecture)
            .with("VirtualizationType", "hvm")
            .with("EnaSupport", "true")
            .with("BootMode", r.boot_mode)
            .with_some("TpmSupport", r.tpm)
            .with_some("ImdsSupport", r.imds_v2.then_some("v2.0"))
            .with("RootDeviceName", r.root_device)
            .with("BlockDeviceMapping.1.DeviceName", r.root_device)
            .with("BlockDeviceMapping.1.Ebs.SnapshotId", r.snapshot)
            .with("BlockDeviceMapping.1.Ebs.VolumeSize", r.volume_size.to_string())
            .with("BlockDeviceMapping.1.Ebs.VolumeType", r.volume_type)
            .with("BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true")
            .tagged(&["image"], r.tags)
            .of(r.name)
            .wait_until_visible(r.snapshot)
            .not_idempotent();
        self.image_id(&form)
    }

    /// Starts a copy into the client's region and returns its ID. Not retried after a lost response.
    pub fn copy_image(&self, c: &CopyImage<'_>) -> Result<String, AwsError> {
        let form = form("CopyImage")
            .with("Name", c.name)
            .with_some("Description", Some(c.description).filter(|text| !text.is_empty()))
            .with("SourceRegion", c.source_region)
            .with("SourceImageId", c.source_image)
            .with("ClientToken", c.client_token)
            .with_some("Encrypted", c.encrypted.then_some("true"))
            .with_some("KmsKeyId", c.kms_key)
            .tagged(&["image", "snapshot"], c.tags)
            .of_new_resource(c.source_image)
            .not_idempotent();
        self.image_id(&form)
    }

    /// Deprecates an AMI from a time on: ISO 8601 in UTC, such as `2030-01-01T00:00:00Z`, rounded to minutes by EC2.
    pub fn deprecate(&self, image: &str, at: &str) -> Result<(), AwsError> {
        let form = form("EnableImageDeprecation").with("ImageId", image).with("DeprecateAt", at);
        self.ec2(&form.of_new_resource(image)).map(drop)
    }

    /// Deregisters an AMI; its snapshots are kept. A retry succeeds if the first attempt did.
    pub fn deregister_image(&self, image: &str) -> Result<(), AwsError> {
        self.ec2_gone(&form("DeregisterImage").with("ImageId", image).of(image))
    }

    fn image_id(&self, form: &Form) -> Result<String, AwsError> {
        let answer = self.query(Service::Ec2, form)?;
        let id = answer.read(|root| root.text("imageId"))?;
        self.shared.transport.made(&id);
        Ok(id)
    }
}

fn read(item: &Node<'_, '_>) -> Result<MachineImage, Missing> {
    let snapshots = item.items("blockDeviceMapping").filter_map(|disk| disk.child("ebs").ok()?.some_text("snapshotId"));
    Ok(MachineImage {
        id: item.text("imageId")?,
        name: item.some_text("name").unwrap_or_default(),
        state: item.text("imageState")?,
        architecture: item.some_text("architecture").unwrap_or_default(),
        boot_mode: item.some_text("bootMode"),
        tpm: item.some_text("tpmSupport"),
        imds: item.some_text("imdsSupport"),
        ena: item.flag("enaSupport")?.unwrap_or(false),
        root_device: item.some_text("rootDeviceName").unwrap_or_default(),
        snapshots: snapshots.collect(),
        public: item.flag("isPublic")?.unwrap_or(false),
        deprecation: item.some_text("deprecationTime"),
        created: item.some_text("creationDate").unwrap_or_default(),
        reason: item.child("stateReason").ok().and_then(|reason| reason.some_text("message")),
        tags: tags(item)?,
    })
}
