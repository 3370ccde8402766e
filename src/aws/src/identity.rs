//! Credentials: found in the configuration of the machine, and renewed before they expire.
//!
//! `aws-config` reads environment and profiles, and queries STS and the metadata services of containers and instances,
//! through our HTTP client. It is asynchronous; each lookup runs in a separate runtime, on the calling thread.

use std::error::Error;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::ecs::EcsCredentialsProvider;
use aws_config::imds::credentials::ImdsCredentialsProvider;
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_types::service_config::ServiceConfigKey;
use tokio::runtime::Builder;

use super::connector::{Connectors, Refused};
use super::endpoint::Endpoints;
use super::error::AwsError;
use super::service::Service;
use super::settings::Settings;
use vmbake_common::parallel::locked;
use vmbake_store::http::Client;

/// Credentials are renewed this long before they expire: the AWS CLI starts a quarter of an hour before, and requires
/// it ten minutes before.
const EARLY: Duration = Duration::from_secs(10 * 60);
/// Minimum interval between renewals, if the source provides credentials that expire sooner.
const BETWEEN: Duration = Duration::from_secs(60);
/// Maximum length of a reason, which may contain the output of a credential process.
const MAX_REASON: usize = 800;

/// The configuration, including credentials.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) region: Option<String>,
    pub(super) endpoints: Endpoints,
}

/// Credentials and their source.
pub(super) struct Identity {
    provider: SharedCredentialsProvider,
    refused: Refused,
    current: Mutex<Option<Current>>,
}

/// The current credentials.
struct Current {
    credentials: Credentials,
    /// Time of the last renewal.
    asked: Instant,
}

impl Current {
    /// Whether they can be used without renewal.
    fn is_fresh(&self) -> bool {
        lasts(&self.credentials, EARLY) || (lasts(&self.credentials, Duration::ZERO) && self.asked.elapsed() < BETWEEN)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// Finds credentials and the rest of the configuration.
    pub(super) fn find(http: &Client, settings: &Settings) -> Result<(Self, Found), AwsError> {
        let refused = Refused::default();
        let http = SharedHttpClient::new(Connectors::new(http, settings.allow_http, &refused));
        let config = in_runtime(load(http.clone(), settings))?;
        let Found { region, endpoints } = found(&config);
        // Instance metadata also provide the region.
        if let Some(url) = refused.take().filter(|_| region.is_none()) {
            return Err(AwsError::PlainHttp { url });
        }
        let endpoints = endpoints.overridden(settings.endpoint_url.as_deref(), settings.allow_http)?;
        let provider = in_runtime(provider(http, settings, &config))?;
        let identity = Self { refused, ..Self::new(provider) };
        match identity.credentials() {
            Ok(_) => Ok((identity, Found { region, endpoints })),
            Err(error) => Err(named(error, settings.profile.as_deref())),
        }
    }

    pub(super) fn new(provider: SharedCredentialsProvider) -> Self {
        Self { provider, refused: Refused::default(), current: Mutex::default() }
    }

    /// Valid credentials; all threads wait while they are renewed.
    pub(super) fn credentials(&self) -> Result<Credentials, AwsError> {
        let mut current = locked(&self.current);
        if let Some(current) = current.as_ref().filter(|current| current.is_fresh()) {
            return Ok(current.credentials.clone());
        }
        match self.provided() {
            Ok(newer) => Ok(current.insert(newer).credentials.clone()),
            // Valid credentials are used as long as they cannot be renewed.
            Err(error) => match current.as_mut().filter(|current| lasts(&current.credentials, Duration::ZERO)) {
                Some(current) => {
                    current.asked = Instant::now();
                    Ok(current.credentials.clone())
                }
                None => Err(error),
            },
        }
    }

    /// Renews credentials that a service reports as expired; returns whether they have changed.
    pub(super) fn renew(&self, used: &Credentials) -> Result<bool, AwsError> {
        let mut current = locked(&self.current);
        // Another thread may have renewed them.
        if current.as_ref().is_none_or(|current| same(&current.credentials, used)) {
            *current = Some(self.provided()?);
        }
        Ok(current.as_ref().is_some_and(|current| !same(&current.credentials, used)))
    }

    fn provided(&self) -> Result<Current, AwsError> {
        let provided = in_runtime(self.provider.provide_credentials())?;
        let credentials = provided.map_err(|error| match self.refused.take() {
            Some(url) => AwsError::PlainHttp { url },
            None => AwsError::Credentials { reason: reason(&error) },
        })?;
        Ok(Current { credentials, asked: Instant::now() })
    }
}

/// Adds the profile selected by the user to an error.
fn named(error: AwsError, profile: Option<&str>) -> AwsError {
    match (error, profile) {
        (AwsError::Credentials { reason }, Some(profile)) => {
            AwsError::Credentials { reason: format!("profile {profile}: {reason}") }
        }
        (error, _) => error,
    }
}

/// Runs a future on this thread.
fn in_runtime<T>(work: impl Future<Output = T>) -> Result<T, AwsError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| AwsError::Credentials { reason: error.to_string() })?;
    Ok(runtime.block_on(work))
}

/// The configuration in environment and profile, except credentials.
async fn load(http: SharedHttpClient, settings: &Settings) -> SdkConfig {
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http).no_credentials();
    if let Some(profile) = &settings.profile {
        loader = loader.profile_name(profile);
    }
    if let Some(region) = &settings.region {
        loader = loader.region(Region::new(region.clone()));
    }
    loader.load().await
}

/// The credential provider. As in the AWS CLI, a profile selected by the user takes precedence over the environment.
async fn provider(http: SharedHttpClient, settings: &Settings, config: &SdkConfig) -> SharedCredentialsProvider {
    let base = ProviderConfig::without_region()
        .with_behavior_version(Some(BehaviorVersion::latest()))
        .with_http_client(http)
        .with_region(config.region().cloned())
        .with_use_fips(config.use_fips())
        .with_use_dual_stack(config.use_dual_stack());
    let Some(profile) = &settings.profile else {
        let chain = DefaultCredentialsChain::builder().configure(base).region(config.region().cloned());
        return SharedCredentialsProvider::new(chain.build().await);
    };
    let profile = ProfileFileCredentialsProvider::builder().configure(&base).profile_name(profile).build();
    let ecs = EcsCredentialsProvider::builder().configure(&base).build();
    let imds = ImdsCredentialsProvider::builder().configure(&base).build();
    let chain = CredentialsProviderChain::first_try("Profile", profile);
    SharedCredentialsProvider::new(chain.or_else("EcsContainer", ecs).or_else("Ec2InstanceMetadata", imds))
}

fn found(config: &SdkConfig) -> Found {
    let region = config.region().map(|region| region.as_ref().to_owned());
    let named = Service::ALL.into_iter().filter_map(|service| {
        let id = service.name().to_ascii_uppercase();
        let key = ServiceConfigKey::builder().service_id(&id).env("AWS_ENDPOINT_URL").profile("endpoint_url").build();
        let url = config.service_config()?.load_config(key.ok()?)?;
        Some((service, url)).filter(|(_, url)| !url.is_empty())
    });
    Found { region, endpoints: Endpoints { named: named.collect(), fips: config.use_fips().unwrap_or(false) } }
}

fn lasts(credentials: &Credentials, time: Duration) -> bool {
    let until = SystemTime::now() + time;
    credentials.expiry().is_none_or(|expiry| until < expiry)
}

fn same(one: &Credentials, other: &Credentials) -> bool {
    one.access_key_id() == other.access_key_id() && one.session_token() == other.session_token()
}

/// An error with its causes, in one line.
fn reason(error: &(dyn Error + 'static)) -> String {
    let mut reason = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let text = error.to_string();
        // Some messages contain their cause already.
        if !reason.contains(&text) {
            reason = format!("{reason}: {text}");
        }
        next = error.source();
    }
    let words: Vec<&str> = reason.split_whitespace().collect();
    words.join(" ").chars().take(MAX_REASON).collect()
}
