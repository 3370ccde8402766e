//! `vmbake publish aws`.

mod values;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::super::network::NetworkArgs;
use super::super::{Failure, Outcome};
use super::gc::GcArgs;
use super::{Account, ImageArgs, PublishArgs, PublishCommandError};
use vmbake_aws::ami::options::{AmiOptions, ParentChoice, Verification};
use vmbake_aws::{Aws, LaunchPermission, Settings};

/// Maximum number of AWS tags, less those that vmbake sets.
const MAX_TAGS: usize = 40;

pub(super) const EXAMPLES: &str = "\
Examples:
  vmbake publish aws dist/node.debian-13.amd64.qcow2 --dry-run
  vmbake publish aws dist/node.debian-13.amd64.qcow2 --region eu-central-1 --copy-to us-east-1,eu-west-1
  vmbake publish aws dist/node.debian-13.amd64.qcow2 --key release.pub --launch-permission 123456789012 \\
      --ssm-parameter /images/node/latest --json";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(in super::super) struct AwsArgs {
    #[command(subcommand)]
    command: Option<AwsCommand>,
    #[command(flatten)]
    image: ImageArgs,
    /// Tag for the machine image and its snapshot; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = values::tag)]
    tags: Vec<(String, String)>,
    /// Regions to copy the machine image to
    #[arg(long, value_name = "REGION", value_delimiter = ',')]
    copy_to: Vec<String>,
    /// KMS key that encrypts the snapshot: ID, alias or ARN [default: the account's setting]
    #[arg(long, value_name = "KEY")]
    kms_key: Option<String>,
    /// Boot mode: auto, legacy-bios, uefi or uefi-preferred
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = values::boot_mode)]
    boot_mode: values::Auto,
    /// Enable a virtual TPM; requires UEFI
    #[arg(long)]
    tpm: bool,
    /// Version of the instance metadata service: v2.0 (required) or optional
    #[arg(long, value_name = "VERSION", default_value = "v2.0", value_parser = ["v2.0", "optional"])]
    imds: String,
    /// Volume type
    #[arg(long, value_name = "TYPE", default_value = "gp3", value_parser = ["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"])]
    volume_type: String,
    /// Parent of the snapshot, so that only changed blocks are uploaded: auto (newest of the family with known
    /// blocks), none or an ID
    #[arg(long, value_name = "ID", default_value = "auto", value_parser = values::parent)]
    parent: ParentChoice,
    /// Image of the parent snapshot, if the store lacks its block list
    #[arg(long, value_name = "OLD")]
    parent_image: Option<PathBuf>,
    /// Grant launch permission: account ID, ARN of an organization or organizational unit, or public; may be repeated
    #[arg(long = "launch-permission", value_name = "PRINCIPAL", value_parser = values::permission)]
    permissions: Vec<LaunchPermission>,
    /// Deprecation time, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = super::super::verify::time)]
    deprecate_at: Option<Timestamp>,
    /// Systems Manager parameter to set to the machine image of each region; may be repeated
    #[arg(long = "ssm-parameter", value_name = "NAME", value_parser = values::parameter)]
    parameters: Vec<String>,
    /// Verification of the snapshot before registration: index (list of blocks), sample (also 64 blocks) or full (also all blocks)
    #[arg(long, value_name = "MODE", default_value = "sample", value_parser = values::verification)]
    verify: Verification,
    /// Number of concurrent block uploads
    #[arg(long, value_name = "N", default_value = "64")]
    workers: NonZeroUsize,
    #[command(flatten)]
    publish: PublishArgs<AccountArgs>,
}

/// AWS account and region.
#[derive(Debug, Args)]
struct AccountArgs {
    /// AWS region [default: from the AWS configuration]
    #[arg(long)]
    region: Option<String>,
    /// AWS profile
    #[arg(long)]
    profile: Option<String>,
    /// Endpoint URL to use instead of AWS
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// Allow plain HTTP endpoints on other hosts (insecure: the network can read and modify uploads)
    #[arg(long)]
    allow_http: bool,
}

const GC_EXAMPLES: &str = "\
Examples:
  vmbake publish aws gc --family node --keep 5 --dry-run
  vmbake publish aws gc --family node --keep 5 --region eu-central-1 --yes";

#[derive(Debug, Subcommand)]
enum AwsCommand {
    /// Remove old machine images of a family and their snapshots, except public, shared and used ones
    #[command(after_help = GC_EXAMPLES)]
    Gc(GcArgs<AccountArgs>),
}

impl AwsArgs {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        if let Some(AwsCommand::Gc(args)) = &self.command {
            return args.run();
        }
        self.check_tags()?;
        let options = AmiOptions {
            boot_mode: self.boot_mode.0,
            tpm: self.tpm,
            imds_v2: self.imds == "v2.0",
            volume_type: &self.volume_type,
            kms_key: self.kms_key.as_deref(),
            tags: &self.tags,
            parent: &self.parent,
            parent_image: self.parent_image.as_ref(),
            copies: &self.copy_to,
            permissions: &self.permissions,
            deprecate_at: self.deprecate_at,
            parameters: &self.parameters,
            verification: self.verify,
            workers: self.workers,
        };
        self.publish.run(&self.image, &options, self.permissions.contains(&LaunchPermission::Group))
    }

    /// Checks that clap cannot express.
    fn check_tags(&self) -> Result<(), PublishCommandError> {
        let mut keys = BTreeSet::new();
        for (key, _) in &self.tags {
            let refused = |reason: String| PublishCommandError::Tag { key: key.clone(), reason };
            if !keys.insert(key) {
                return Err(refused("duplicate tag".to_owned()));
            }
            if keys.len() > MAX_TAGS {
                return Err(refused(format!("more than {MAX_TAGS} tags")));
            }
        }
        Ok(())
    }
}

impl Account for AccountArgs {
    type Cloud = Aws;

    fn open(&self, network: &NetworkArgs) -> Result<Aws, Failure> {
        let settings = Settings {
            region: self.region.clone(),
            profile: self.profile.clone(),
            endpoint_url: self.endpoint_url.clone(),
            allow_http: self.allow_http,
        };
        Ok(Aws::open(&network.direct_client()?, &settings)?)
    }
}
