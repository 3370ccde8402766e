//! STS: the identity of the caller. Query protocol, version 2011-06-15.

use super::client::Aws;
use super::error::AwsError;
use super::query::Form;
use super::service::Service;

/// Version of the API.
const VERSION: &str = "2011-06-15";

/// The owner of the credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Account ID: 12 digits.
    pub account: String,
    /// The user or assumed role.
    pub arn: String,
}

impl Aws {
    /// The identity of the credentials. Requires no permission.
    pub fn caller(&self) -> Result<Caller, AwsError> {
        let answer = self.query(Service::Sts, &Form::new("GetCallerIdentity", VERSION))?;
        answer.read(|root| {
            let result = root.child("GetCallerIdentityResult")?;
            Ok(Caller { account: result.text("Account")?, arn: result.text("Arn")? })
        })
    }
}
