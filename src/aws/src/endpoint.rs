//! The endpoint of a service: that of the region, or a custom one.

use std::collections::BTreeMap;

use super::error::AwsError;
use super::plain_http::is_exposed;
use super::service::Service;
use vmbake_common::address;
use vmbake_store::http::is_address;

/// Domains of regions outside `amazonaws.com`, by prefix of the region's name. They are partitions with separate
/// accounts.
const DOMAINS: &[(&str, &str)] = &[("cn-", "amazonaws.com.cn"), ("eusc-", "amazonaws.eu")];
/// Maximum length of a label of a host name.
const MAX_LABEL: usize = 63;

/// The endpoints of the services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Endpoints {
    /// Endpoints set in the environment or profile, for single services or for all.
    pub(super) named: BTreeMap<Service, String>,
    /// Whether to use FIPS 140 endpoints.
    pub(super) fips: bool,
}

impl Endpoints {
    /// Sets an endpoint for all services, ignoring the configuration.
    pub(super) fn overridden(mut self, url: Option<&str>, allow_http: bool) -> Result<Self, AwsError> {
        if let Some(url) = url {
            self.named = Service::ALL.map(|service| (service, url.to_owned())).into();
        }
        if let Some(url) = self.named.values().find(|url| !is_address(url) || url.contains(['?', '#', '@'])) {
            return Err(AwsError::Endpoint { url: address::redacted(url) });
        }
        match self.named.values().find(|url| !allow_http && is_exposed(url)) {
            Some(url) => Err(AwsError::PlainHttp { url: url.clone() }),
            None => Ok(self),
        }
    }

    /// The URL of a service in a region, without a trailing slash.
    pub(super) fn url(&self, service: Service, region: &str) -> Result<String, AwsError> {
        check_region(region)?;
        if let Some(url) = self.named.get(&service) {
            return Ok(url.trim_end_matches('/').to_owned());
        }
        let domain = DOMAINS.iter().find(|(start, _)| region.starts_with(start));
        let domain = domain.map_or("amazonaws.com", |(_, domain)| domain);
        let fips = if self.fips { "-fips" } else { "" };
        Ok(format!("https://{}{fips}.{region}.{domain}", service.name()))
    }
}

/// Refuses names that would change the host of an endpoint.
pub(super) fn check_region(region: &str) -> Result<(), AwsError> {
    let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match !region.is_empty() && region.len() <= MAX_LABEL && region.chars().all(is_label) {
        true => Ok(()),
        false => Err(AwsError::Region { region: region.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_region_has_endpoints_of_its_own() {
        let endpoints = Endpoints::default();
        let url = |service, region: &str| endpoints.url(service, region).unwrap();
        assert_eq!(url(Service::Ebs, "eu-central-1"), "https://ebs.eu-central-1.amazonaws.com");
        assert_eq!(url(Service::Ec2, "us-gov-west-1"), "https://ec2.us-gov-west-1.amazonaws.com");
        assert_eq!(url(Service::Ssm, "cn-north-1"), "https://ssm.cn-north-1.amazonaws.com.cn");
        let fips = Endpoints { fips: true, ..Endpoints::default() };
        assert_eq!(fips.url(Service::Sts, "us-east-1").unwrap(), "https://sts-fips.us-east-1.amazonaws.com");
    }

    #[test]
    fn no_region_names_another_host() {
        for region in ["", "evil.example/", "eu-central-1.evil.example", "a b", "EU", "x@y", "eu#", &"a".repeat(64)] {
            let error = Endpoints::default().url(Service::Ebs, region).unwrap_err();
            assert!(matches!(&error, AwsError::Region { region: named } if named == region), "{error}");
        }
    }

    #[test]
    fn what_the_user_names_is_asked() {
        let named = [(Service::Ec2, "http://127.0.0.1:1/base/".to_owned())].into();
        let endpoints = Endpoints { named, fips: false };
        assert_eq!(endpoints.url(Service::Ec2, "eu-west-1").unwrap(), "http://127.0.0.1:1/base");
        assert_eq!(endpoints.url(Service::Ebs, "eu-west-1").unwrap(), "https://ebs.eu-west-1.amazonaws.com");
        let all = endpoints.clone().overridden(Some("http://127.0.0.1:2"), false).unwrap();
        assert!(Service::ALL.iter().all(|service| all.url(*service, "x").unwrap() == "http://127.0.0.1:2"));
        for wrong in ["127.0.0.1:1", "ftp://x/", "", "http://", "http://user:secret@x/", "https://x/?a=b"] {
            let error = endpoints.clone().overridden(Some(wrong), true).unwrap_err();
            assert!(matches!(error, AwsError::Endpoint { .. }), "{wrong}: {error}");
        }
        let exposed = "http://ec2.example:4566";
        let error = Endpoints::default().overridden(Some(exposed), false).unwrap_err();
        assert!(matches!(&error, AwsError::PlainHttp { url } if url == exposed), "{error}");
        assert!(Endpoints::default().overridden(Some(exposed), true).is_ok());
        let named = [(Service::Ssm, exposed.to_owned())].into();
        let one = Endpoints { named, fips: false };
        assert!(matches!(one.overridden(None, false), Err(AwsError::PlainHttp { url }) if url == exposed));
    }
}
