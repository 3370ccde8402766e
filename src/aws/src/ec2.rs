//! EC2: snapshots, AMIs, launch permissions, and settings of an account. Query protocol, version 2016-11-15.

mod account;
mod images;
mod permissions;
mod snapshots;

pub use images::{CopyImage, MachineImage, RegisterImage};
pub use permissions::LaunchPermission;
pub use snapshots::Snapshot;

use std::collections::BTreeMap;

use super::client::Aws;
use super::error::AwsError;
use super::query::Form;
use super::service::Service;
use super::xml::{Missing, Node, Xml};

/// Version of the API.
const VERSION: &str = "2016-11-15";
/// Entries per page, the maximum.
const PAGE: &str = "1000";
/// Maximum number of pages.
const MAX_PAGES: usize = 1000;

/// The parameters of an action.
fn form(action: &str) -> Form {
    Form::new(action, VERSION)
}

impl Aws {
    fn ec2(&self, form: &Form) -> Result<Xml, AwsError> {
        self.query(Service::Ec2, form)
    }

    /// Applies `read` to each item of the list `set`, in all pages.
    fn ec2_pages<T>(
        &self,
        form: &Form,
        set: &'static str,
        read: impl Fn(&Node<'_, '_>) -> Result<T, Missing>,
    ) -> Result<Vec<T>, AwsError> {
        let mut all = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = form.clone().with("MaxResults", PAGE).with_some("NextToken", next.as_deref());
            let answer = self.ec2(&page)?;
            next = answer.read(|root| {
                for item in root.items(set) {
                    all.push(read(&item)?);
                }
                Ok(root.some_text("nextToken"))
            })?;
            if next.is_none() {
                return Ok(all);
            }
        }
        Err(AwsError::Answer { action: form.iam(Service::Ec2), what: "end" })
    }
}

fn tags(node: &Node<'_, '_>) -> Result<BTreeMap<String, String>, Missing> {
    node.items("tagSet").map(|tag| Ok((tag.text("key")?, tag.some_text("value").unwrap_or_default()))).collect()
}
