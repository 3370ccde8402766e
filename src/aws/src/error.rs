//! Errors of AWS calls.

use vmbake_common::hint::Hint;
use vmbake_store::http::{HttpError, is_temporary_status};

/// Reference to the required permissions.
const POLICY: &str = "docs/publish.md#permissions has a policy with all required permissions";

/// Why a call to AWS failed. No variant contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum AwsError {
    #[error("no AWS region is configured")]
    NoRegion,
    #[error("invalid AWS region {region:?}")]
    Region { region: String },
    #[error("{url}: not a valid http or https URL of an endpoint")]
    Endpoint { url: String },
    #[error("{url}: refusing plain HTTP to another machine: the network could read and change requests and responses")]
    PlainHttp { url: String },
    #[error("no AWS credentials: {reason}")]
    Credentials {
        /// The errors of all credential sources, without secrets.
        reason: String,
    },
    #[error("{action}: cannot sign the request: {reason}")]
    Sign {
        /// The action, such as `ebs:PutSnapshotBlock`.
        action: String,
        reason: String,
    },
    #[error("{action}: request failed")]
    Http {
        action: String,
        /// Whether AWS may have processed the request.
        may_be_done: bool,
        source: Box<HttpError>,
    },
    #[error(transparent)]
    Refused(Box<ServiceRefusal>),
    #[error("{action}: the response has no valid {what}")]
    Answer { action: String, what: &'static str },
    #[error("{action}: block {index} of {snapshot} has checksum {found}, expected {expected}")]
    Checksum {
        /// `ebs:PutSnapshotBlock` or `ebs:GetSnapshotBlock`.
        action: String,
        snapshot: String,
        /// Index of the block of 512 KiB.
        index: u64,
        /// SHA-256 of the uploaded data, or stated by the service, in Base64.
        expected: String,
        /// Stated by the service, or SHA-256 of the received data, in Base64.
        found: String,
    },
    #[error("{action}: block {index} of {snapshot} has {found} bytes, expected {expected}")]
    Length {
        /// `ebs:PutSnapshotBlock` or `ebs:GetSnapshotBlock`.
        action: String,
        snapshot: String,
        /// Index of the block of 512 KiB.
        index: u64,
        expected: u64,
        found: u64,
    },
}

/// An error response of a service.
#[derive(Debug, Default, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{action}{}: {code}{}", of(.resource.as_deref()), detail(.message))]
pub struct ServiceRefusal {
    /// The action with its IAM name: `ec2:RegisterImage`.
    pub action: String,
    /// The resource, if the request concerns a single one.
    pub resource: Option<String>,
    pub region: String,
    /// HTTP status.
    pub status: u16,
    /// Error code, such as `InvalidAMIName.Duplicate`.
    pub code: String,
    /// The message of the service; at most 2,000 characters.
    pub message: String,
    /// The detailed reason of the EBS direct APIs, such as `SNAPSHOT_NOT_FOUND`.
    pub reason: Option<String>,
    /// The number of attempts.
    pub attempts: u32,
}

impl Hint for ServiceRefusal {
    fn hint(&self) -> Option<String> {
        let Self { action, region, code, .. } = self;
        if self.is_throttled() {
            return Some(format!("the account is throttled in {region}: run the command again later"));
        }
        if EXPIRED.contains(&code.as_str()) {
            return Some("log in again, for example with `aws sso login`, and run the command again".to_owned());
        }
        if DENIED.contains(&code.as_str()) {
            let action = denied(&self.message).unwrap_or(action);
            return Some(format!("allow {action} for the identity that `aws sts get-caller-identity` shows: {POLICY}"));
        }
        if UNKNOWN.contains(&code.as_str()) {
            return Some(format!(
                "check that `aws sts get-caller-identity --region {region}` succeeds with the same credentials, \
                that the clock of this machine is right and that the region is enabled for the account"
            ));
        }
        if code == PUBLIC_BLOCKED {
            return Some(format!(
                "public sharing of AMIs is blocked in {region}: `aws ec2 disable-image-block-public-access --region {region}` allows it"
            ));
        }
        if self.is_quota() {
            return Some(format!(
                "a quota of the account in {region} is exhausted: wait until other snapshots and copies are done, or raise it in Service Quotas"
            ));
        }
        None
    }
}

fn of(resource: Option<&str>) -> String {
    resource.map(|resource| format!(" ({resource})")).unwrap_or_default()
}

fn detail(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// The action that a message reports as denied: a request may require others, such as `ec2:CreateTags`.
fn denied(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("not authorized to perform: ")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != ':' && c != '-').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|action| action.contains(':'))
}

/// Error codes of rate limits. EC2 lists them in "Error codes", the other services in their models.
const THROTTLED: &[&str] = &[
    "RequestThrottledException",
    "RequestThrottled",
    "ThrottlingException",
    "Throttling",
    "ThrottledException",
    "ConcurrentLimitExceededException",
    "RequestLimitExceeded",
    "TooManyRequestsException",
    "SlowDown",
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "PriorRequestNotComplete",
    "TooManyUpdates",
];

/// Error codes of server failures.
const FAILED: &[&str] = &[
    "InternalServerException",
    "InternalServerError",
    "InternalError",
    "InternalFailure",
    "ServiceUnavailable",
    "Unavailable",
    "RequestTimeout",
    "RequestTimeoutException",
];

/// EC2 uses `RequestExpired` for expired credentials, too.
const EXPIRED: &[&str] = &["ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"];

const DENIED: &[&str] = &["AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized"];

/// The error code of EC2 if public AMIs are blocked.
const PUBLIC_BLOCKED: &str = "OperationNotPermitted";

/// Error codes of unknown credentials or a wrong signature.
const UNKNOWN: &[&str] = &[
    "AuthFailure",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "OptInRequired",
    "RequestExpired",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

impl ServiceRefusal {
    /// Whether the request was throttled.
    pub(super) fn is_throttled(&self) -> bool {
        THROTTLED.contains(&self.code.as_str()) || self.status == 429
    }

    /// Whether a retry may succeed.
    pub(super) fn is_temporary(&self) -> bool {
        self.is_throttled() || is_temporary_status(self.status) || FAILED.contains(&self.code.as_str())
    }

    fn is_quota(&self) -> bool {
        self.status == 402 || self.code.contains("QuotaExceeded") || self.code.ends_with("LimitExceeded")
    }
}

impl AwsError {
    /// The error code of the service, such as `InvalidAMIName.Duplicate`.
    pub fn code(&self) -> Option<&str> {
        self.refusal().map(|refusal| refusal.code.as_str())
    }

    /// The error response of the service, if this is one.
    pub fn refusal(&self) -> Option<&ServiceRefusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether the resource does not exist or is not visible to the caller.
    pub fn is_not_found(&self) -> bool {
        self.code().is_some_and(|code| {
            code.ends_with(".NotFound")
                || code.ends_with(".Unavailable")
                || matches!(code, "ResourceNotFoundException" | "ParameterNotFound")
        })
    }

    /// Whether the request conflicts with the current state: a name in use, a client token with other parameters, a
    /// snapshot in use.
    pub fn is_conflict(&self) -> bool {
        self.refusal().is_some_and(|refusal| {
            refusal.status == 409
                || matches!(
                    refusal.code.as_str(),
                    "ConflictException"
                        | "IdempotentParameterMismatch"
                        | "InvalidAMIName.Duplicate"
                        | "InvalidSnapshot.InUse"
                        | "ParameterAlreadyExists"
                )
        })
    }

    /// Whether permission was denied.
    pub fn is_denied(&self) -> bool {
        self.code().is_some_and(|code| DENIED.contains(&code))
    }

    /// Whether the credentials have expired and could not be renewed.
    pub fn is_expired(&self) -> bool {
        self.code().is_some_and(|code| EXPIRED.contains(&code))
    }

    /// Whether a retry may succeed. After a lost response to a request that is not idempotent, the caller first checks
    /// whether it was processed.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Http { source, .. } => source.is_temporary(),
            Self::Refused(refusal) => refusal.is_temporary(),
            Self::Checksum { .. } => true,
            _ => false,
        }
    }
}

impl Hint for AwsError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoRegion => "set it with --region, AWS_REGION or `region` in ~/.aws/config",
            Self::Region { .. } => "an example of a region is eu-central-1: `aws ec2 describe-regions` lists them",
            Self::Endpoint { .. } => "use a URL such as http://127.0.0.1:5000 in --endpoint-url or AWS_ENDPOINT_URL",
            Self::PlainHttp { .. } => {
                "use an https endpoint in --endpoint-url, AWS_ENDPOINT_URL*, AWS_EC2_METADATA_SERVICE_ENDPOINT or \
                `endpoint_url` of the profile, or pass --allow-http to permit it"
            }
            Self::Credentials { .. } => {
                "vmbake finds credentials like the AWS CLI: `aws configure list` shows their source, `aws sso \
                login` starts a session, and --profile selects another profile"
            }
            Self::Http { may_be_done: true, .. } => "run the command again: it first checks what exists already",
            Self::Http { .. } => {
                "check region and endpoint; if a proxy is required, set https_proxy; then run the command again"
            }
            Self::Checksum { .. } | Self::Length { .. } => {
                "the data were modified in transit: run the command again, and check proxies and the memory of this machine"
            }
            Self::Refused(refusal) => return refusal.hint(),
            Self::Sign { .. } | Self::Answer { .. } => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Refused; Http);
}
