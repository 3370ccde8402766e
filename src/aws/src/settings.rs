//! Settings of the user for AWS.

/// Settings of the user; everything else comes from the configuration of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The region, such as `eu-central-1`.
    pub region: Option<String>,
    /// A profile of `~/.aws/config` and `~/.aws/credentials`. Credentials in the environment are then ignored.
    pub profile: Option<String>,
    /// A URL for all services.
    pub endpoint_url: Option<String>,
    /// Whether endpoints on other machines may use plain HTTP.
    pub allow_http: bool,
}
