//! Parameters of Systems Manager with AMI IDs. JSON protocol, version 1.1.

use serde::{Deserialize, Serialize};

use super::call::Call;
use super::client::Aws;
use super::error::AwsError;
use super::service::Service;

/// Media type of requests and responses.
const JSON: &str = "application/x-amz-json-1.1";
/// SSM checks that the value is the ID of an AMI that the account can use.
const DATA_TYPE: &str = "aws:ec2:image";

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Name<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Put<'a> {
    name: &'a str,
    value: &'a str,
    r#type: &'static str,
    data_type: &'static str,
    overwrite: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Got {
    parameter: Parameter,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Parameter {
    value: String,
}

impl Aws {
    /// The value of a parameter; `None` if it does not exist.
    pub fn parameter(&self, name: &str) -> Result<Option<String>, AwsError> {
        match self.ssm("GetParameter", name, &Name { name }) {
            Ok(answer) => Ok(Some(answer.json::<Got>("parameter")?.parameter.value)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets a parameter to an AMI ID, replacing its value.
    pub fn put_parameter(&self, name: &str, image: &str) -> Result<(), AwsError> {
        let put = Put { name, value: image, r#type: "String", data_type: DATA_TYPE, overwrite: true };
        self.ssm("PutParameter", name, &put).map(drop)
    }

    fn ssm(&self, action: &str, name: &str, body: &impl Serialize) -> Result<super::call::Answer, AwsError> {
        let body = serde_json::to_vec(body)
            .map_err(|error| AwsError::Sign { action: format!("ssm:{action}"), reason: error.to_string() })?;
        let call = Call::post(Service::Ssm, action, "/", &body)
            .resource(name)
            .header("content-type", JSON)
            .header("x-amz-target", format!("AmazonSSM.{action}"));
        self.call(&call)
    }
}
