//! Endpoints for which plain HTTP is allowed: loopback, and for credentials also the metadata services of AWS.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use vmbake_store::http::plain_host;

/// Instance metadata, and credentials of ECS tasks and EKS pods: available on the machine itself over plain HTTP only.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x23)),
];

/// Whether a request to a service endpoint would cross a network without TLS.
pub(super) fn is_exposed(url: &str) -> bool {
    plain_host(url).is_some_and(|host| !is_loopback(&host))
}

/// As [`is_exposed`], for requests for credentials, which may use the machine's metadata service.
pub(super) fn exposes_credentials(url: &str) -> bool {
    let is_metadata = |host: &str| host.parse().is_ok_and(|address| METADATA.contains(&address));
    plain_host(url).is_some_and(|host| !is_loopback(&host) && !is_metadata(&host))
}

/// Any name other than `localhost` may resolve to another address.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_asked_without_tls() {
        for url in [
            "http://127.0.0.1:1/",
            "http://127.9.9.9",
            "http://[::1]:5000/x",
            "http://LOCALHOST:4566",
            "https://x.example/",
        ] {
            assert!(!is_exposed(url) && !exposes_credentials(url), "{url}");
        }
        for url in [
            "http://ec2.eu-central-1.amazonaws.com/",
            "HTTP://x.example",
            "http://10.0.0.1:4566/",
            "http://localhost.example/",
            "http://127.0.0.1.example/",
            "http://0.0.0.0:1/",
            "http://[::ffff:10.0.0.1]/",
            "http://169.254.169.253/",
            "http://169.254.169.254.example/",
        ] {
            assert!(is_exposed(url) && exposes_credentials(url), "{url}");
        }
    }

    #[test]
    fn metadata_hand_out_credentials_and_serve_nothing_else() {
        for host in ["169.254.169.254", "[fd00:ec2::254]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"] {
            let url = format!("http://{host}/latest/api/token");
            assert!(!exposes_credentials(&url) && is_exposed(&url), "{url}");
        }
    }
}
