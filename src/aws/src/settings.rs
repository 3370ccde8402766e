//! What the user says about AWS.

/// What the user says about AWS; everything else comes from the configuration of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The region, such as `eu-central-1`.
    pub region: Option<String>,
    /// A profile of `~/.aws/config` and `~/.aws/credentials`. Credentials in the environment do not count then.
    pub profile: Option<String>,
    /// An address that is asked in place of all services.
    pub endpoint_url: Option<String>,
    /// Whether endpoints on other machines may use plain HTTP.
    pub allow_http: bool,
}
