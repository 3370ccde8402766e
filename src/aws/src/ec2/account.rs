//! Account settings, use of AMIs, tags, and permission checks.

use super::form;
use crate::client::Aws;
use crate::error::AwsError;
use crate::query::Form;

/// States of an instance that needs its AMI, or may need it again.
const ALIVE: &[&str] = &["pending", "running", "shutting-down", "stopping", "stopped"];
/// The error code of a successful dry run.
const WOULD_BE_DONE: &str = "DryRunOperation";

impl Aws {
    /// Sets tags of snapshots and AMIs; existing tags are overwritten.
    pub fn create_tags(&self, resources: &[&str], tags: &[(String, String)]) -> Result<(), AwsError> {
        let mut form = form("CreateTags").of_new_resource(&resources.join(", "));
        for (index, resource) in (1..).zip(resources) {
            form = form.with(&format!("ResourceId.{index}"), *resource);
        }
        for (index, (key, value)) in (1..).zip(tags) {
            form = form.with(&format!("Tag.{index}.Key"), key).with(&format!("Tag.{index}.Value"), value);
        }
        self.ec2(&form).map(drop)
    }

    /// The account's instances launched from an AMI, except terminated ones.
    pub fn instances_using(&self, image: &str) -> Result<Vec<String>, AwsError> {
        let filters: &[(&str, &[&str])] = &[("image-id", &[image]), ("instance-state-name", ALIVE)];
        let form = form("DescribeInstances").filters(filters).of(image);
        let reservations = self.ec2_pages(&form, "reservationSet", |item| {
            item.items("instancesSet").map(|instance| instance.text("instanceId")).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(reservations.into_iter().flatten().collect())
    }

    /// Whether the account encrypts all new volumes and snapshots in this region.
    pub fn encryption_by_default(&self) -> Result<bool, AwsError> {
        self.ec2(&form("GetEbsEncryptionByDefault"))?
            .read(|root| Ok(root.flag("ebsEncryptionByDefault")?.unwrap_or(false)))
    }

    /// Whether AMIs of the account can be made public in this region: `block-new-sharing` or `unblocked`.
    pub fn block_public_access(&self) -> Result<String, AwsError> {
        self.ec2(&form("GetImageBlockPublicAccessState"))?.read(|root| root.text("imageBlockPublicAccessState"))
    }

    /// Checks whether an action of EC2 is allowed, as a dry run. The parameters must be complete, since EC2 may
    /// validate them first.
    pub fn dry_run(&self, action: &str, parameters: &[(&str, &str)]) -> Result<(), AwsError> {
        let form = parameters.iter().fold(form(action), |form, (name, value)| form.with(name, *value));
        match self.ec2(&form.with("DryRun", "true")) {
            Err(error) if error.code() == Some(WOULD_BE_DONE) => Ok(()),
            result => result.map(drop),
        }
    }

    /// Deletes a resource, which may be missing if the request was repeated.
    pub(super) fn ec2_gone(&self, form: &Form) -> Result<(), AwsError> {
        match self.ec2(form) {
            Err(error) if error.is_not_found() && error.refusal().is_some_and(|refusal| refusal.attempts > 1) => Ok(()),
            result => result.map(drop),
        }
    }
}
