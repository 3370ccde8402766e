//! Retries: which requests are retried, how often, and which failures are final.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use aws_credential_types::provider::SharedCredentialsProvider;
use sha2::{Digest as _, Sha256};

use super::blocks::start;
use super::server::{CannedAnswer, Server};
use super::{POLICY, SECRET, Series, client, client_of, credentials};
use crate::error::ServiceRefusal;
use crate::identity::Identity;
use crate::rate_limit::RateLimit;
use crate::retry::{Attempts, Next};
use crate::{Aws, AwsError, CopyImage, RegisterImage};
use vmbake_common::hint::Hint;
use vmbake_store::http::ApiLimits;

const IMAGE: &str = "<RegisterImageResponse><imageId>ami-1</imageId></RegisterImageResponse>";

fn register(aws: &Aws) -> Result<String, AwsError> {
    let (name, description, architecture, boot_mode) = ("disk", "", "x86_64", "uefi-preferred");
    let (root_device, snapshot, volume_size, volume_type) = ("/dev/xvda", "snap-1", 8, "gp3");
    let (tpm, imds_v2, tags) = (None, true, &[][..]);
    aws.register_image(&RegisterImage {
        name,
        description,
        architecture,
        boot_mode,
        tpm,
        imds_v2,
        root_device,
        snapshot,
        volume_size,
        volume_type,
        tags,
    })
}

fn put(aws: &Aws) -> Result<(), AwsError> {
    let block = vec![0; 512 << 10];
    aws.put_block("snap-1", 0, &Sha256::digest(&block).into(), &block)
}

/// Confirms the checksum of the block that [`put`] sends.
fn confirmed() -> CannedAnswer {
    CannedAnswer::status(201, "x-amz-Checksum: B4VNL+8pega6gWheZgwzLeNtXRjVRpJ9MNqtbX/aFUE=\r\n", "")
}

#[test]
fn what_passes_is_repeated_and_what_is_final_is_not() {
    // The code, how many attempts it is worth, and whether the caller may try later.
    for (status, code, attempts, is_temporary) in [
        (400, "RequestThrottledException", 6, true),
        (400, "ThrottlingException", 6, true),
        (400, "ConcurrentLimitExceededException", 6, true),
        (503, "RequestLimitExceeded", 6, true),
        (500, "InternalServerException", 4, true),
        (503, "ServiceUnavailable", 4, true),
        (502, "Whatever", 4, true),
        (400, "ValidationException", 1, false),
        (402, "ServiceQuotaExceededException", 1, false),
        (403, "AccessDeniedException", 1, false),
        (404, "ResourceNotFoundException", 1, false),
        (409, "ConflictException", 1, false),
    ] {
        let server = Server::always(CannedAnswer::refusal(status, code));
        let error = client(&server).complete_snapshot("snap-1", 0, None).unwrap_err();
        assert_eq!((server.count(), error.is_temporary()), (attempts, is_temporary), "{code}");
        assert_eq!(error.code(), Some(code));
        assert_eq!(error.to_string(), format!("ebs:CompleteSnapshot (snap-1): {code}: said"));
        assert_eq!(error.is_denied(), code == "AccessDeniedException");
        assert_eq!(error.is_conflict(), code == "ConflictException");
        assert_eq!(error.is_not_found(), code == "ResourceNotFoundException");
        let hint = error.hint().unwrap_or_default();
        assert_eq!(hint.contains("allow ebs:CompleteSnapshot"), error.is_denied(), "{hint}");
        assert_eq!(hint.contains("Service Quotas"), status == 402, "{hint}");
    }
}

#[test]
fn a_denial_of_ec2_names_its_action() {
    let server = Server::always(CannedAnswer::ec2(403, "UnauthorizedOperation"));
    let error = register(&client(&server)).unwrap_err();
    assert_eq!(error.to_string(), "ec2:RegisterImage (disk): UnauthorizedOperation: said");
    assert!(error.is_denied() && server.count() == 1);
    assert!(error.hint().unwrap().starts_with("allow ec2:RegisterImage for "));
    let message = "You are not authorized to perform: ec2:CreateTags on resource: arn:aws:ec2:image/*";
    let error = format!("<Error><Code>UnauthorizedOperation</Code><Message>{message}</Message></Error>");
    let server =
        Server::always(CannedAnswer::status(403, "", &format!("<Response><Errors>{error}</Errors></Response>")));
    let error = register(&client(&server)).unwrap_err();
    assert!(error.hint().unwrap().starts_with("allow ec2:CreateTags for "), "what was asked for needs another action");
}

#[test]
fn throttled_puts_slow_all_threads_down_and_succeed() {
    let throttled = CannedAnswer::refusal(400, "RequestThrottledException");
    let answers =
        vec![throttled.clone(), throttled, CannedAnswer::Closed, CannedAnswer::refusal(500, "x"), confirmed()];
    let server = Server::series(answers);
    let aws = client(&server);
    let before = aws.rate_limit.per_second();
    put(&aws).unwrap();
    assert_eq!(server.count(), 5);
    assert!(aws.rate_limit.per_second() < before * 0.71, "{}", aws.rate_limit.per_second());
    assert!(aws.in_region("eu-west-1").rate_limit.per_second() >= before, "each region has a separate quota");
}

#[test]
fn a_put_waits_for_its_turn() {
    let server = Server::always(confirmed());
    let aws = Aws { rate_limit: RateLimit::at(5.0).into(), ..client(&server) };
    let start = Instant::now();
    (0..3).for_each(|_| put(&aws).unwrap());
    let taken = start.elapsed();
    assert!(taken >= Duration::from_millis(290), "three puts at five in a second took {taken:?}");
}

#[test]
fn broken_and_silent_connections_are_made_again() {
    let cut = CannedAnswer::Cut { body: b"{".to_vec(), announced: 100 };
    let listed = CannedAnswer::ok(r#"{"VolumeSize":1,"BlockSize":524288,"Blocks":[]}"#);
    let server = Server::series(vec![cut, CannedAnswer::Closed, CannedAnswer::Silent, listed]);
    let limits = ApiLimits { silence: Duration::from_millis(300), ..ApiLimits::default() };
    let aws = client_of(&server, SharedCredentialsProvider::new(credentials(0, None)), limits);
    assert_eq!(aws.snapshot_blocks("snap-1").unwrap().volume_size, 1);
    let server = Server::always(CannedAnswer::Closed);
    let error = client(&server).snapshot_blocks("snap-1").unwrap_err();
    assert!(matches!(error, AwsError::Http { may_be_done: true, .. }) && error.is_temporary(), "{error}");
    assert_eq!(server.count(), 4);
}

#[test]
fn an_unreachable_server_is_reported_soon() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut server = Server::always(CannedAnswer::Closed);
    server.url = format!("http://{closed}");
    let error = client(&server).snapshot_blocks("snap-1").unwrap_err();
    assert!(matches!(error, AwsError::Http { may_be_done: false, .. }), "{error}");
}

#[test]
fn what_may_have_been_done_is_not_done_twice() {
    for lost in [
        CannedAnswer::Closed,
        CannedAnswer::ec2(500, "InternalError"),
        CannedAnswer::Cut { body: vec![], announced: 9 },
    ] {
        let server = Server::series(vec![lost.clone(), CannedAnswer::ok(IMAGE)]);
        let error = register(&client(&server)).unwrap_err();
        assert!(error.is_temporary(), "{error}");
        let copy = CopyImage {
            name: "disk",
            description: "",
            source_region: "eu-west-1",
            source_image: "ami-0",
            client_token: "t",
            kms_key: None,
            encrypted: false,
            tags: &[],
        };
        let again = Server::series(vec![lost, CannedAnswer::ok(IMAGE)]);
        assert!(client(&again).copy_image(&copy).unwrap_err().is_temporary());
        assert_eq!((server.count(), again.count()), (1, 1));
    }
    // A request that was throttled was not done.
    let server = Server::series(vec![CannedAnswer::ec2(503, "RequestLimitExceeded"), CannedAnswer::ok(IMAGE)]);
    assert_eq!(register(&client(&server)).unwrap(), "ami-1");
}

#[test]
fn what_is_gone_after_a_lost_answer_was_removed() {
    let gone = CannedAnswer::ec2(400, "InvalidSnapshot.NotFound");
    let server = Server::series(vec![CannedAnswer::Closed, gone.clone()]);
    client(&server).delete_snapshot("snap-1").unwrap();
    let error = client(&Server::always(gone)).delete_snapshot("snap-1").unwrap_err();
    assert!(error.is_not_found());
}

#[test]
fn only_a_snapshot_that_was_just_begun_may_be_unknown() {
    let unknown = CannedAnswer::refusal(404, "ResourceNotFoundException");
    let begun = r#"{"SnapshotId":"snap-1","Status":"pending","BlockSize":524288}"#;
    let answers: Vec<CannedAnswer> = [CannedAnswer::status(201, "", begun)]
        .into_iter()
        .chain(vec![unknown.clone(); 9])
        .chain([confirmed()])
        .collect();
    let server = Server::series(answers);
    let aws = client(&server);
    aws.start_snapshot(&start(&[], None)).unwrap();
    put(&aws).unwrap();
    assert_eq!(server.count(), 11);
    let server = Server::always(unknown);
    let error = put(&client(&server)).unwrap_err();
    assert!(error.is_not_found() && server.count() == 1, "{error}");
}

#[test]
fn only_an_image_that_was_just_registered_may_be_unknown() {
    let unknown = CannedAnswer::ec2(400, "InvalidAMIID.NotFound");
    let done = CannedAnswer::ok("<R><return>true</return></R>");
    let server = Server::series(vec![
        CannedAnswer::ok(IMAGE),
        unknown.clone(),
        unknown.clone(),
        done.clone(),
        unknown.clone(),
        done,
    ]);
    let aws = client(&server);
    register(&aws).unwrap();
    aws.deprecate("ami-1", "2030-01-01T00:00:00Z").unwrap();
    aws.create_tags(&["snap-1", "ami-1"], &[]).unwrap();
    assert_eq!(server.count(), 6);
    let server = Server::always(unknown);
    let error = client(&server).deprecate("ami-1", "2030-01-01T00:00:00Z").unwrap_err();
    assert!(error.is_not_found() && server.count() == 1, "{error}");
}

#[test]
fn expired_credentials_are_renewed_once() {
    let provider = |last| SharedCredentialsProvider::new(Series::new(last, None));
    let expired = || CannedAnswer::refusal(400, "ExpiredTokenException");
    let server = Server::series(vec![expired(), confirmed()]);
    put(&client_of(&server, provider(9), ApiLimits::default())).unwrap();
    let keys: Vec<String> = server.seen().iter().map(|seen| key(seen.header("authorization").unwrap())).collect();
    assert_eq!(keys, ["AKIDEXAMPLE0", "AKIDEXAMPLE1"]);
    for (last, count) in [(0, 1), (9, 2)] {
        let server = Server::always(expired());
        let error = put(&client_of(&server, provider(last), ApiLimits::default())).unwrap_err();
        assert!(error.is_expired() && error.hint().unwrap().contains("log in again"), "{error}");
        assert_eq!(server.count(), count);
    }
}

fn key(authorization: &str) -> String {
    authorization.split("Credential=").nth(1).unwrap().split('/').next().unwrap().to_owned()
}

#[test]
fn credentials_are_renewed_before_they_expire() {
    let asked = |expires_in: Option<u64>| {
        let expiry = expires_in.map(|seconds| SystemTime::now() + Duration::from_secs(seconds));
        let identity = Identity::new(SharedCredentialsProvider::new(Series::new(9, expiry)));
        (0..3).map(|_| identity.credentials().unwrap().access_key_id().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(asked(None), "AKIDEXAMPLE0 AKIDEXAMPLE0 AKIDEXAMPLE0");
    assert_eq!(asked(Some(3600)), "AKIDEXAMPLE0 AKIDEXAMPLE0 AKIDEXAMPLE0");
    // Newer ones do not come before these expire: the provider is not called for each request.
    assert_eq!(asked(Some(300)), "AKIDEXAMPLE0 AKIDEXAMPLE0 AKIDEXAMPLE0");
    assert_eq!(asked(Some(0)), "AKIDEXAMPLE0 AKIDEXAMPLE1 AKIDEXAMPLE2");
}

#[test]
fn no_error_tells_a_secret() {
    let server = Server::always(CannedAnswer::refusal(403, "InvalidSignatureException"));
    let aws = client(&server);
    let error = put(&aws).unwrap_err();
    let lost = client(&Server::always(CannedAnswer::Closed)).get_block("snap-1", 0, "tokentoken").unwrap_err();
    for text in [format!("{error} {error:?}"), format!("{lost} {lost:?}"), format!("{aws:?} {:?}", aws.shared.identity)]
    {
        assert!(!text.contains(SECRET) && !text.contains("tokentoken") && !text.contains("AKID"), "{text}");
    }
}

#[test]
fn pauses_grow_have_an_end_and_follow_what_is_asked_for() {
    let refused =
        |code: &str| AwsError::Refused(Box::new(ServiceRefusal { code: code.to_owned(), ..ServiceRefusal::default() }));
    let mut attempts = Attempts::new(POLICY);
    let mut pause = |retry_after| {
        attempts.begin();
        match attempts.next(refused("SlowDown"), false, false, retry_after) {
            Next::Again(pause) => pause.as_micros(),
            next => panic!("{next:?}"),
        }
    };
    assert!((500..=1000).contains(&pause(None)));
    assert!((1000..=2000).contains(&pause(None)));
    assert!((2000..=4000).contains(&pause(None)));
    assert!((2000..=4000).contains(&pause(None)), "no pause is longer");
    assert!((7_000_000..=7_001_000).contains(&pause(Some(Duration::from_secs(7)))));
    let start = Instant::now();
    let mut late = Attempts::new(POLICY);
    late.begin();
    let next = late.next(refused("SlowDown"), false, false, Some(POLICY.total));
    assert!(matches!(next, Next::Final(_)) && start.elapsed() < POLICY.total, "{next:?}");
}

#[test]
fn a_connection_is_used_again_after_a_refusal() {
    let server = Server::series(vec![CannedAnswer::refusal(400, "RequestThrottledException"), confirmed()]);
    put(&client(&server)).unwrap();
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}
