//! Precedence of settings: user data, the kernel and the cloud.

use std::collections::BTreeMap;
use std::fmt;

/// Names of the choices, axis by axis.
pub const AXES: [&[&str]; 5] = [
    &["knd", "knc"],
    &["local", "aws", "google", "proxmox"],
    &["ipv4", "dual"],
    &["off", "s3", "otlp"],
    &["no-registry", "registry"],
];

/// One choice on each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice(pub [usize; AXES.len()]);

impl Choice {
    /// All that there are, in their order.
    pub fn all() -> Vec<Self> {
        let mut all = vec![Vec::new()];
        for names in AXES {
            let longer = |choice: Vec<usize>| (0..names.len()).map(move |index| [choice.clone(), vec![index]].concat());
            all = all.into_iter().flat_map(longer).collect();
        }
        all.into_iter().map(|choice| Self(choice.try_into().unwrap())).collect()
    }

    fn name(self, axis: usize) -> &'static str {
        AXES[axis][self.0[axis]]
    }

    pub fn kind(self) -> &'static str {
        self.name(0)
    }

    pub fn provider(self) -> &'static str {
        self.name(1)
    }

    pub fn dual(self) -> bool {
        self.name(2) == "dual"
    }

    /// What cloud-init writes.
    pub fn user_data(self) -> BTreeMap<String, String> {
        let mut lines = vec![
            ("PROVIDER_KIND", self.provider()),
            ("CLUSTER_ID", "demo"),
            ("INSTANCE_ID", "knx-1"),
            // Not quite a certificate.
            ("NSTANCE_CA_CERT", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk5TVEFOQ0UKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="),
            ("NETSY_BUCKET", "demo-netsy"),
            ("KUBE_API_PUBLIC_HOSTNAME", "api.demo.example"),
            ("OIDC_ISSUER", "https://login.demo.example"),
        ];
        lines.extend_from_slice(match self.provider() {
            "aws" => &[
                ("AWS_ACCOUNT_ID", "123456789012"),
                ("PROVIDER_REGION", "eu-west-1"),
                ("PROVIDER_ZONE", "eu-west-1a"),
                ("PROVIDER_INSTANCE_TYPE", "m7g.large"),
                ("NETSY_REGION", "eu-west-1"),
                ("OIDC_CA_CERT", "T0lEQyBDQQo="),
            ],
            "google" => &[
                ("GOOGLE_PROJECT_ID", "demo-project"),
                ("PROVIDER_REGION", "europe-west1"),
                ("PROVIDER_ZONE", "europe-west1-b"),
                ("KUBE_API_INTERNAL_LB_HOSTNAME", "192.0.2.7"),
            ],
            "local" => &[
                ("IMMUTABLE_SSH_AUTHORIZED_KEYS", "ssh-ed25519 AAAA one\n\nssh-ed25519 BBBB two\nssh-ed25519 AAAA one"),
                ("SSH_AUTHORIZED_KEY", "ssh-ed25519 CCCC three"),
                ("NETSY_ENDPOINT", "http://10.0.2.2:9000"),
                ("NETSY_ACCESS_KEY_ID", "netsy-id"),
                ("NETSY_SECRET_ACCESS_KEY", "netsy-secret"),
                ("KUBE_API_PORT", "16443"),
            ],
            _ => &[
                ("NETSY_ENDPOINT", "https://s3.demo.example"),
                ("NETSY_REGION", "main"),
                ("NETSY_ACCESS_KEY_ID", "netsy-id"),
                ("NETSY_SECRET_ACCESS_KEY", "it's"),
                ("NETSY_KEY_PREFIX", "netsy/"),
                ("KUBE_CLUSTER_CIDR", "100.64.0.0/10"),
                ("KUBE_API_INTERNAL_LB_HOSTNAME", "192.0.2.7"),
            ],
        });
        lines.extend_from_slice(self.telemetry());
        lines.extend_from_slice(self.registry());
        lines.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn telemetry(self) -> &'static [(&'static str, &'static str)] {
        match (self.name(3), self.provider()) {
            ("off", _) => &[("TELEMETRY_ENABLED", "false")],
            ("s3", "aws") => &[("TELEMETRY_S3_BUCKET", "demo-logs")],
            ("s3", _) => &[
                ("TELEMETRY_S3_BUCKET", "demo-logs"),
                ("TELEMETRY_S3_ENDPOINT", "http://10.0.2.2:9000"),
                ("TELEMETRY_S3_REGION", "main"),
                ("TELEMETRY_S3_ACCESS_KEY_ID", "logs-id"),
                ("TELEMETRY_S3_SECRET_ACCESS_KEY", "logs-secret"),
                ("TELEMETRY_LOG_SERVICES", "ssh, kubelet"),
            ],
            _ if self.dual() => &[
                ("TELEMETRY_OTLP_ENDPOINT", "http://[2001:db8::9]:4318/otlp/logs"),
                ("TELEMETRY_LOG_CLOUDINIT", "false"),
            ],
            _ => &[("TELEMETRY_OTLP_ENDPOINT", "https://otel.demo.example")],
        }
    }

    fn registry(self) -> &'static [(&'static str, &'static str)] {
        match (self.name(4), self.provider()) {
            ("no-registry", _) => &[("REGISTRY_ENABLED", "false")],
            (_, "local") => &[
                ("REGISTRY_HOSTNAME", "registry.demo.example"),
                ("REGISTRY_BUCKET", "demo-registry"),
                ("REGISTRY_ENDPOINT", "http://10.0.2.2:9000"),
                ("REGISTRY_ACCESS_KEY_ID", "registry-id"),
                ("REGISTRY_SECRET_ACCESS_KEY", "registry-secret"),
                ("AWS_S3_USE_PATH_STYLE", "true"),
            ],
            _ => &[("REGISTRY_HOSTNAME", "registry.demo.example"), ("REGISTRY_BUCKET", "demo-registry")],
        }
    }

    /// What the cloud says about the machine, if there is one.
    pub fn cloud(self) -> Option<&'static str> {
        match self.provider() {
            "aws" => Some(r#"{"v1": {"availability_zone": "eu-west-1a", "instance_id": "i-0123456789abcdef0"}}"#),
            "google" => {
                Some(r#"{"v1": {"availability_zone": "europe-west1-b", "instance_id": "1234567890123456789"}}"#)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = (0..AXES.len()).map(|axis| self.name(axis)).collect();
        f.write_str(&names.join(" "))
    }
}

/// User data as the command line of a cluster writes them: who the machine is and whom it asks. The rest is delivered.
pub fn bare(choice: Choice) -> BTreeMap<String, String> {
    let full = choice.user_data();
    let names = [
        "IMMUTABLE_SSH_AUTHORIZED_KEYS",
        "INSTANCE_ID",
        "CLUSTER_ID",
        "PROVIDER_KIND",
        "PROVIDER_REGION",
        "PROVIDER_ZONE",
        "PROVIDER_INSTANCE_TYPE",
        "AWS_ACCOUNT_ID",
        "GOOGLE_PROJECT_ID",
        "NSTANCE_CA_CERT",
    ];
    names.map(|name| (name.to_owned(), full.get(name).cloned().unwrap_or_default())).into()
}

/// The settings that the command line of a cluster has delivered, all of them and in its order.
pub fn delivery(choice: Choice) -> Vec<(&'static str, String)> {
    let (aws, keys) = (choice.provider() == "aws", matches!(choice.provider(), "local" | "proxmox"));
    let when = |condition: bool, value: &'static str| if condition { value } else { "" };
    let region = when(aws, "eu-west-1");
    let endpoint = when(keys, "http://10.0.2.2:9000");
    let values = [
        ("SSH_AUTHORIZED_KEYS", "ssh-ed25519 DDDD later"),
        ("TELEMETRY_ENABLED", "true"),
        ("TELEMETRY_LOG_CLOUDINIT", "true"),
        ("TELEMETRY_LOG_SERVICES", "ssh,kubelet"),
        ("TELEMETRY_OTLP_ENDPOINT", when(choice.dual(), "http://otel.demo.example:4318")),
        ("TELEMETRY_S3_BUCKET", "demo-logs"),
        ("TELEMETRY_S3_REGION", region),
        ("TELEMETRY_S3_ENDPOINT", endpoint),
        ("TELEMETRY_S3_ASSUME_ROLE", ""),
        ("TELEMETRY_S3_ACCESS_KEY_ID", when(keys, "logs-id")),
        ("TELEMETRY_S3_SECRET_ACCESS_KEY", when(keys, "logs-secret")),
        ("OIDC_ISSUER", "https://login.demo.example"),
        ("OIDC_CA_CERT", when(choice.dual(), "T0lEQyBDQQo=")),
        ("OIDC_CA_FILE", ""),
        ("OIDC_SIGNING_ALGS", when(choice.dual(), "RS256,ES256")),
        ("KUBE_API_ETCD_SERVERS", "https://127.0.0.1:2378"),
        ("KUBE_API_PUBLIC_HOSTNAME", "api.demo.example"),
        ("KUBE_API_INTERNAL_LB_HOSTNAME", if choice.dual() { "2001:db8::7" } else { "192.0.2.7" }),
        ("KUBE_LOG_LEVEL", "3"),
        ("KUBE_SERVICE_ACCOUNT_ISSUER", when(choice.dual(), "https://api.demo.example:6443")),
        ("KUBE_CLUSTER_CIDR", if choice.dual() { "10.64.0.0/10,fd64::/48" } else { "10.64.0.0/10" }),
        ("KUBE_NODE_CIDR_MASK_SIZE_IPV4", "25"),
        ("KUBE_NODE_CIDR_MASK_SIZE_IPV6", ""),
        ("KUBE_SERVICE_CLUSTER_IP_RANGE", if choice.dual() { "10.18.0.0/15,fdc6::/108" } else { "10.18.0.0/15" }),
        ("KUBE_CLUSTER_DNS", if choice.dual() { "10.19.255.254,fdc6::ffff" } else { "10.19.255.254" }),
        ("AWS_S3_USE_PATH_STYLE", when(keys, "true")),
        ("NETSY_BUCKET", "demo-netsy"),
        ("NETSY_REGION", region),
        ("NETSY_ENDPOINT", endpoint),
        ("NETSY_ASSUME_ROLE", when(aws, "arn:aws:iam::123456789012:role/delivered")),
        ("NETSY_ACCESS_KEY_ID", when(keys, "netsy-id")),
        ("NETSY_SECRET_ACCESS_KEY", when(keys, "netsy-secret")),
        ("REGISTRY_ENABLED", "true"),
        ("REGISTRY_HOSTNAME", "registry.demo.example"),
        ("REGISTRY_BUCKET", "demo-registry"),
        ("REGISTRY_REGION", region),
        ("REGISTRY_ENDPOINT", endpoint),
        ("REGISTRY_ASSUME_ROLE", when(aws, "arn:aws:iam::123456789012:role/delivered")),
        ("REGISTRY_ACCESS_KEY_ID", when(keys, "registry-id")),
        ("REGISTRY_SECRET_ACCESS_KEY", when(keys, "registry-secret")),
    ];
    values.map(|(name, value)| (name, value.to_owned())).into()
}
