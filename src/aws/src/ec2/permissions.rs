//! Who may start a machine image.

use super::form;
use crate::client::Aws;
use crate::error::AwsError;
use crate::query::Form;
use crate::xml::{Missing, Node};

/// The elements that say who is allowed something; each entry of a list has one.
const WHO: [&str; 4] = ["userId", "group", "organizationArn", "organizationalUnitArn"];

/// Somebody who may start an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaunchPermission {
    /// An account, by its id of 12 digits.
    Account(String),
    /// All accounts: the image is public.
    Group,
    /// The accounts of an organization, by its ARN.
    Organization(String),
    /// The accounts of a part of an organization, by its ARN.
    OrganizationalUnit(String),
}

impl LaunchPermission {
    /// The parameter of EC2 that names it, and its value.
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
    /// Who may start an image besides its owner: account ids, `all`, and ARNs of organizations and their units.
    pub fn launch_permissions(&self, image: &str) -> Result<Vec<String>, AwsError> {
        let form = form("DescribeImageAttribute").with("ImageId", image).with("Attribute", "launchPermission");
        self.permissions(&form.of_young(image), "launchPermission")
    }

    /// Who may make volumes of a snapshot besides its owner: account ids, and `all`.
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

    /// Allows others to start an image. Whoever may already stays allowed.
    pub fn add_launch_permission(&self, image: &str, to: &[LaunchPermission]) -> Result<(), AwsError> {
        let mut form = form("ModifyImageAttribute").with("ImageId", image).of_young(image);
        for (index, permission) in (1..).zip(to) {
            let (name, value) = permission.parameter();
            form = form.with(&format!("LaunchPermission.Add.{index}.{name}"), value);
        }
        self.ec2(&form).map(drop)
    }
}
