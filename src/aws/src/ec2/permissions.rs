//! Launch permissions of AMIs.

use super::form;
use crate::client::Aws;
use crate::error::AwsError;
use crate::query::Form;
use crate::xml::{Missing, Node};

/// The elements of an entry that name its grantee.
const WHO: [&str; 4] = ["userId", "group", "organizationArn", "organizationalUnitArn"];

/// A launch permission.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaunchPermission {
    /// An account, by its ID of 12 digits.
    Account(String),
    /// All accounts: the AMI is public.
    Group,
    /// The accounts of an organization, by its ARN.
    Organization(String),
    /// An organizational unit, by its ARN.
    OrganizationalUnit(String),
}

impl LaunchPermission {
    /// The parameter of EC2 and its value.
    fn parameter(&self) -> (&'static str, &str) {
        match self {
            Self::Account(id) => ("UserId", id),
            Self::Group => ("Group", "all"),
            Self::Organization(arn) => ("OrganizationArn", arn),
            Self::OrganizationalUnit(arn) => ("OrganizationalUnitArn", arn),
        }
    }
}

impl Aws {
    /// The launch permissions of an AMI: account IDs, `all`, and ARNs of organizations and units.
    pub fn launch_permissions(&self, image: &str) -> Result<Vec<String>, AwsError> {
        let form = form("DescribeImageAttribute").with("ImageId", image).with("Attribute", "launchPermission");
        self.permissions(&form.of_new_resource(image), "launchPermission")
    }

    /// The accounts that can create volumes from a snapshot: account IDs, and `all`.
    pub fn snapshot_permissions(&self, snapshot: &str) -> Result<Vec<String>, AwsError> {
        let form =
            form("DescribeSnapshotAttribute").with("SnapshotId", snapshot).with("Attribute", "createVolumePermission");
        self.permissions(&form.of(snapshot), "createVolumePermission")
    }

    fn permissions(&self, form: &Form, list: &'static str) -> Result<Vec<String>, AwsError> {
        self.ec2(form)?.read(|root| {
            let named = |item: Node<'_, '_>| WHO.iter().find_map(|name| item.some_text(name));
            root.items(list).map(|item| named(item).ok_or(Missing(list))).collect()
        })
    }

    /// Adds launch permissions; existing ones are kept.
    pub fn add_launch_permission(&self, image: &str, to: &[LaunchPermission]) -> Result<(), AwsError> {
        let mut form = form("ModifyImageAttribute").with("ImageId", image).of_new_resource(image);
        for (index, permission) in (1..).zip(to) {
            let (name, value) = permission.parameter();
            form = form.with(&format!("LaunchPermission.Add.{index}.{name}"), value);
        }
        self.ec2(&form).map(drop)
    }
}
