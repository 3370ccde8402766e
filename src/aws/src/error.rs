//! Why AWS was not asked, or did not do what it was asked for.

use vmbake_common::hint::Hint;
use vmbake_store::http::HttpError;

/// Where the permissions are listed that publishing needs.
const POLICY: &str = "docs/publish.md has a policy with all that publishing needs";

/// Why a call to AWS failed. No variant holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum AwsError {
    #[error("no AWS region is configured")]
    NoRegion,
    #[error("{region:?} is not the name of an AWS region")]
    Region { region: String },
    #[error("{url}: not the http or https address of an endpoint")]
    Endpoint { url: String },
    #[error("{url}: plain HTTP to another machine: the network could read and change requests and responses")]
    PlainHttp { url: String },
    #[error("no AWS credentials: {reason}")]
    Credentials {
        /// What each source of credentials says, without secrets.
        reason: String,
    },
    #[error("{action}: the request cannot be signed: {reason}")]
    Sign {
        /// What was to be done, such as `ebs:PutSnapshotBlock`.
        action: String,
        reason: String,
    },
    #[error("{action}: no answer")]
    Http {
        action: String,
        /// Whether AWS may have done it all the same.
        may_be_done: bool,
        source: Box<HttpError>,
    },
    #[error(transparent)]
    Refused(Box<ServiceRefusal>),
    #[error("{action}: the answer has no usable {what}")]
    Answer { action: String, what: &'static str },
    #[error("{action}: block {index} of {snapshot} has the checksum {found}, not {expected}")]
    Checksum {
        /// `ebs:PutSnapshotBlock` or `ebs:GetSnapshotBlock`.
        action: String,
        snapshot: String,
        /// Place of the block, in blocks of 512 KiB.
        index: u64,
        /// SHA-256 of what was sent, or what the service states, in Base64.
        expected: String,
        /// What the service confirms, or SHA-256 of what came, in Base64.
        found: String,
    },
    #[error("{action}: block {index} of {snapshot} has {found} bytes, not {expected}")]
    Length {
        /// `ebs:PutSnapshotBlock` or `ebs:GetSnapshotBlock`.
        action: String,
        snapshot: String,
        /// Place of the block, in blocks of 512 KiB.
        index: u64,
        expected: u64,
        found: u64,
    },
}

/// What a service says when it refuses.
#[derive(Debug, Default, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{action}{}: {code}{}", of(.resource.as_deref()), said(.message))]
pub struct ServiceRefusal {
    /// What was asked for, as IAM calls it: `ec2:RegisterImage`.
    pub action: String,
    /// What it was to be done to, where that is one thing.
    pub resource: Option<String>,
    /// Region that was asked.
    pub region: String,
    /// Status of the answer.
    pub status: u16,
    /// The code of the error, such as `InvalidAMIName.Duplicate`.
    pub code: String,
    /// What the service says about it; at most 2,000 characters.
    pub message: String,
    /// The closer reason that the EBS direct APIs give, such as `SNAPSHOT_NOT_FOUND`.
    pub reason: Option<String>,
    /// How often the request was made.
    pub attempts: u32,
}

impl Hint for ServiceRefusal {
    fn hint(&self) -> Option<String> {
        let Self { action, region, code, .. } = self;
        if self.is_throttled() {
            return Some(format!("others ask {region} a lot at the same time: run the command again later"));
        }
        if EXPIRED.contains(&code.as_str()) {
            return Some("log in again, for example by `aws sso login`, and run the command again".to_owned());
        }
        if DENIED.contains(&code.as_str()) {
            let action = denied(&self.message).unwrap_or(action);
            return Some(format!("allow {action} to the identity that `aws sts get-caller-identity` shows: {POLICY}"));
        }
        if UNKNOWN.contains(&code.as_str()) {
            return Some(format!(
                "`aws sts get-caller-identity --region {region}` must succeed with the same credentials; the clock of this machine must be right, \
                 and the region enabled for the account"
            ));
        }
        if code == PUBLIC_BLOCKED {
            return Some(format!(
                "images of the account cannot be made public in {region}: `aws ec2 disable-image-block-public-access --region {region}` allows it"
            ));
        }
        if self.is_quota() {
            return Some(format!(
                "a quota of the account in {region} is used up: wait until other snapshots and copies are done, or raise it in Service Quotas"
            ));
        }
        None
    }
}

fn of(resource: Option<&str>) -> String {
    resource.map(|resource| format!(" ({resource})")).unwrap_or_default()
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// The action that a message calls not allowed: what was asked for may need another one, such as `ec2:CreateTags`.
fn denied(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("not authorized to perform: ")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != ':' && c != '-').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|action| action.contains(':'))
}

/// The codes of what passes when less is asked for. EC2 lists them in "Error codes", the other services in their models.
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

/// The codes of failures of a service.
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

/// EC2 says `RequestExpired` of credentials that have expired, too.
const EXPIRED: &[&str] = &["ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"];

const DENIED: &[&str] = &["AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized"];

/// What EC2 answers where an image would be public and the account blocks that.
const PUBLIC_BLOCKED: &str = "OperationNotPermitted";

/// Credentials that nobody knows, or a signature that does not fit them.
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
    /// Whether less should be asked for in a time.
    pub(super) fn is_throttled(&self) -> bool {
        THROTTLED.contains(&self.code.as_str()) || self.status == 429
    }

    /// Whether the same request may succeed a little later.
    pub(super) fn is_temporary(&self) -> bool {
        self.is_throttled()
            || matches!(self.status, 408 | 500 | 502 | 503 | 504)
            || FAILED.contains(&self.code.as_str())
    }

    fn is_quota(&self) -> bool {
        self.status == 402 || self.code.contains("QuotaExceeded") || self.code.ends_with("LimitExceeded")
    }
}

impl AwsError {
    /// The code that the service gives, such as `InvalidAMIName.Duplicate`.
    pub fn code(&self) -> Option<&str> {
        self.refusal().map(|refusal| refusal.code.as_str())
    }

    /// The whole refusal of the service, if it is one.
    pub fn refusal(&self) -> Option<&ServiceRefusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether what was named does not exist, or not for whoever asks.
    pub fn is_not_found(&self) -> bool {
        self.code().is_some_and(|code| {
            code.ends_with(".NotFound")
                || code.ends_with(".Unavailable")
                || matches!(code, "ResourceNotFoundException" | "ParameterNotFound")
        })
    }

    /// Whether something else is there already, or is being done: a name that is taken, a client token of other parameters, a snapshot in use.
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

    /// Whether the identity may not do this.
    pub fn is_denied(&self) -> bool {
        self.code().is_some_and(|code| DENIED.contains(&code))
    }

    /// Whether the credentials have expired, and no newer ones could be had.
    pub fn is_expired(&self) -> bool {
        self.code().is_some_and(|code| EXPIRED.contains(&code))
    }

    /// Whether the same may succeed later. Where the answer to a request that is not safe to repeat was lost, the caller looks first
    /// whether it was done.
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
            Self::NoRegion => "--region names one, and so do AWS_REGION and `region` in ~/.aws/config",
            Self::Region { .. } => {
                "a region is called, for example, eu-central-1: `aws ec2 describe-regions` lists them"
            }
            Self::Endpoint { .. } => {
                "--endpoint-url and AWS_ENDPOINT_URL take an address such as http://127.0.0.1:5000"
            }
            Self::PlainHttp { .. } => {
                "use an https endpoint in --endpoint-url, AWS_ENDPOINT_URL*, AWS_EC2_METADATA_SERVICE_ENDPOINT or `endpoint_url` of the \
                 profile; --allow-http accepts it"
            }
            Self::Credentials { .. } => {
                "vmbake takes the credentials that the AWS CLI takes: `aws configure list` shows where they come from, `aws sso login` \
                 begins a session, and --profile names another profile"
            }
            Self::Http { may_be_done: true, .. } => "run the command again: it first looks what is there already",
            Self::Http { .. } => {
                "the region or the endpoint may be wrong, or a proxy needed: https_proxy names one, and the command can be run again"
            }
            Self::Checksum { .. } | Self::Length { .. } => {
                "the data were changed on the way: run the command again, and look at proxies and the memory of this machine"
            }
            Self::Refused(refusal) => return refusal.hint(),
            Self::Sign { .. } | Self::Answer { .. } => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Refused; Http);
}
