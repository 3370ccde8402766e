//! The EBS direct APIs: requests, and validation of responses.

use std::sync::Barrier;
use std::sync::atomic::Ordering;

use base64ct::{Base64, Encoding};
use sha2::{Digest as _, Sha256};

use super::client;
use super::server::{CannedAnswer, Seen, Server};
use crate::{AwsError, BLOCK_SIZE, ChangedBlock, ListedBlock, StartSnapshot};

const STARTED: &str = r#"{"SnapshotId":"snap-1","Status":"pending","BlockSize":524288,"VolumeSize":8,"OwnerId":"1"}"#;

fn block(byte: u8) -> (Vec<u8>, [u8; 32]) {
    let block = vec![byte; usize::try_from(BLOCK_SIZE).unwrap()];
    let digest = Sha256::digest(&block).into();
    (block, digest)
}

/// Confirms the checksum that a request has.
fn echo(seen: &Seen) -> CannedAnswer {
    let checksum = seen.header("x-amz-checksum").unwrap_or_default();
    CannedAnswer::status(201, &format!("x-amz-Checksum: {checksum}\r\nx-amz-Checksum-Algorithm: SHA256\r\n"), "")
}

/// A block as `GetSnapshotBlock` answers it.
fn got(body: Vec<u8>, checksum: &[u8; 32]) -> CannedAnswer {
    let headers = format!("x-amz-Checksum: {}\r\nx-amz-Data-Length: 524288\r\n", Base64::encode_string(checksum));
    CannedAnswer::Whole { status: 200, headers, body }
}

pub fn start<'a>(tags: &'a [(String, String)], parent: Option<&'a str>) -> StartSnapshot<'a> {
    let (client_token, description, kms_key) = ("token", "a disk", Some("arn:aws:kms:k"));
    let (volume_size, timeout_minutes, encrypted) = (8, 60, true);
    StartSnapshot { volume_size, parent, client_token, description, timeout_minutes, tags, kms_key, encrypted }
}

#[test]
fn a_snapshot_is_begun_filled_and_completed() {
    let server = Server::start(|_, seen| match (seen.method.as_str(), seen.path.as_str()) {
        ("POST", "/snapshots") => CannedAnswer::status(201, "", STARTED),
        ("PUT", "/snapshots/snap-1/blocks/7") => echo(seen),
        ("POST", "/snapshots/completion/snap-1") => CannedAnswer::status(202, "", r#"{"Status":"completed"}"#),
        other => panic!("{other:?}"),
    });
    let aws = client(&server);
    let tags = [("Name".to_owned(), "a \"disk\"".to_owned())];
    let started = aws.start_snapshot(&start(&tags, None)).unwrap();
    assert_eq!((started.id.as_str(), started.block_size, started.kms_key), ("snap-1", BLOCK_SIZE, None));
    let (content, digest) = block(7);
    aws.put_block("snap-1", 7, &digest, &content).unwrap();
    assert_eq!(aws.complete_snapshot("snap-1", 1, Some(&digest)).unwrap(), "completed");
    let [begun, put, completed] = <[Seen; 3]>::try_from(server.seen()).unwrap();
    let expected = serde_json::json!({
        "VolumeSize": 8, "Description": "a disk", "ClientToken": "token", "Timeout": 60, "Encrypted": true,
        "KmsKeyArn": "arn:aws:kms:k", "Tags": [{"Key": "Name", "Value": "a \"disk\""}],
    });
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&begun.body).unwrap(), expected);
    assert!(put.body == content);
    let checksum = Base64::encode_string(&digest);
    for (name, value) in [
        ("x-amz-checksum", checksum.as_str()),
        ("x-amz-checksum-algorithm", "SHA256"),
        ("x-amz-data-length", "524288"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
    ] {
        assert_eq!(put.header(name), Some(value), "{name}");
        assert!(put.header("authorization").unwrap().contains(&format!(";{name}")), "{name} is not signed");
    }
    for (name, value) in [
        ("x-amz-changedblockscount", "1"),
        ("x-amz-checksum", checksum.as_str()),
        ("x-amz-checksum-aggregation-method", "LINEAR"),
    ] {
        assert_eq!(completed.header(name), Some(value), "{name}");
    }
    assert!(completed.header("authorization").unwrap().contains("/eu-central-1/ebs/aws4_request, "));
}

#[test]
fn the_encryption_of_a_parent_counts() {
    let server = Server::always(CannedAnswer::status(201, "", STARTED));
    client(&server).start_snapshot(&start(&[], Some("snap-0"))).unwrap();
    let sent: serde_json::Value = serde_json::from_slice(&server.seen()[0].body).unwrap();
    assert_eq!(sent["ParentSnapshotId"], "snap-0");
    assert_eq!([&sent["Encrypted"], &sent["KmsKeyArn"], &sent["Tags"]], [&serde_json::Value::Null; 3]);
}

#[test]
fn a_block_that_arrived_otherwise_is_sent_again_and_then_refused() {
    let (content, digest) = block(1);
    let wrong = format!("x-amz-Checksum: {}\r\n", Base64::encode_string(&[0; 32]));
    let server = Server::start(move |number, seen| match number {
        1 => CannedAnswer::status(201, &wrong, ""),
        2 => echo(seen),
        _ => CannedAnswer::status(201, &wrong, ""),
    });
    let aws = client(&server);
    aws.put_block("snap-1", 1, &digest, &content).unwrap();
    assert_eq!(server.count(), 2);
    let error = aws.put_block("snap-1", 5, &digest, &content).unwrap_err();
    assert!(matches!(&error, AwsError::Checksum { snapshot, index: 5, .. } if snapshot == "snap-1"), "{error}");
    assert_eq!(server.count(), 5);
    let silent = Server::always(CannedAnswer::status(201, "", ""));
    let error = client(&silent).put_block("snap-1", 1, &digest, &content).unwrap_err();
    assert!(matches!(error, AwsError::Answer { what: "checksum", .. }), "{error}");
    let error = aws.put_block("snap-1", 1, &digest, &content[1..]).unwrap_err();
    assert!(matches!(error, AwsError::Length { found: 524_287, .. }), "{error}");
    assert_eq!(server.count(), 5, "a block of another length is not sent");
}

#[test]
fn blocks_are_listed_in_their_order_over_all_pages() {
    let server = Server::start(|_, seen| {
        let page = |blocks: &str, next: &str| {
            CannedAnswer::ok(&format!(
                r#"{{"VolumeSize":8,"BlockSize":524288,"Blocks":[{blocks}],"NextToken":{next}}}"#
            ))
        };
        match seen.path.as_str() {
            "/snapshots/snap-1/blocks?maxResults=10000" => page(r#"{"BlockIndex":9,"BlockToken":"i+9"}"#, r#""a/b=""#),
            "/snapshots/snap-1/blocks?maxResults=10000&pageToken=a%2Fb%3D" => page("", r#""c""#),
            "/snapshots/snap-1/blocks?maxResults=10000&pageToken=c" => {
                page(r#"{"BlockIndex":2,"BlockToken":"2"}"#, "null")
            }
            other => panic!("{other}"),
        }
    });
    let listed = client(&server).snapshot_blocks("snap-1").unwrap();
    assert_eq!((listed.volume_size, listed.block_size), (8, BLOCK_SIZE));
    let expected = [(2, "2"), (9, "i+9")].map(|(index, token)| ListedBlock { index, token: token.to_owned() });
    assert_eq!(listed.blocks, expected);
}

#[test]
fn changed_blocks_may_be_in_one_snapshot_only() {
    let server = Server::always(CannedAnswer::ok(
        r#"{"ChangedBlocks":[{"BlockIndex":1,"FirstBlockToken":"f"},{"BlockIndex":2,"SecondBlockToken":"s"}],"VolumeSize":1,"BlockSize":524288}"#,
    ));
    let changed = client(&server).changed_blocks("snap-0", "snap-1").unwrap();
    let [f, s] = ["f", "s"].map(|token| Some(token.to_owned()));
    let expected = [
        ChangedBlock { index: 1, first_token: f, second_token: None },
        ChangedBlock { index: 2, first_token: None, second_token: s },
    ];
    assert_eq!(changed, expected);
    assert_eq!(server.seen()[0].path, "/snapshots/snap-1/changedblocks?firstSnapshotId=snap-0&maxResults=10000");
}

#[test]
fn lists_that_contradict_themselves_or_are_none_are_refused() {
    let twice = r#"{"VolumeSize":8,"BlockSize":524288,"Blocks":[{"BlockIndex":1,"BlockToken":"a"},{"BlockIndex":1,"BlockToken":"a"}]}"#;
    let deep = "[".repeat(100_000);
    for body in [
        twice,
        "",
        "[]",
        "{}",
        r#"{"VolumeSize":8,"BlockSize":524288,"Blocks":[{"BlockIndex":-1,"BlockToken":"a"}]}"#,
        r#"{"VolumeSize":8,"BlockSize":524288,"Blocks":[{"BlockIndex":1}]}"#,
        r#"{"VolumeSize":"8","BlockSize":524288,"Blocks":[]}"#,
        &deep,
    ] {
        let server = Server::always(CannedAnswer::ok(body));
        let error = client(&server).snapshot_blocks("snap-1").unwrap_err();
        assert!(matches!(error, AwsError::Answer { .. }), "{body:.80}: {error}");
        assert_eq!(server.count(), 1);
    }
}

#[test]
fn a_block_is_read_and_compared() {
    let (content, digest) = block(3);
    let (right, short) = (got(content.clone(), &digest), got(content[1..].to_vec(), &digest));
    let (wrong, long) = (got(content.clone(), &[0; 32]), got([content.as_slice(), b"x"].concat(), &digest));
    let server = Server::series(vec![wrong.clone(), right]);
    let aws = client(&server);
    assert!(aws.get_block("snap-1", 4, "t+/=").unwrap() == content);
    assert_eq!(server.seen()[1].path, "/snapshots/snap-1/blocks/4?blockToken=t%2B%2F%3D");
    let get = |answer: CannedAnswer| client(&Server::always(answer)).get_block("snap-1", 4, "t").unwrap_err();
    assert!(matches!(get(wrong), AwsError::Checksum { index: 4, .. }));
    assert!(matches!(get(short), AwsError::Length { found: 524_287, .. }));
    assert!(matches!(get(long), AwsError::Http { .. }));
    assert!(matches!(get(CannedAnswer::ok("")), AwsError::Answer { what: "checksum", .. }));
}

#[test]
fn as_many_connections_stay_as_threads_put_blocks() {
    // Responses are sent after all threads have sent a request.
    let together = Barrier::new(64);
    let server = Server::start(move |_, seen| {
        together.wait();
        echo(seen)
    });
    let aws = client(&server);
    let (content, digest) = block(9);
    std::thread::scope(|scope| {
        for thread in 0..64_u64 {
            let (aws, content) = (&aws, &content);
            scope.spawn(move || {
                for round in 0..3 {
                    aws.put_block("snap-1", thread * 3 + round, &digest, content).unwrap();
                }
            });
        }
    });
    let made = server.connections.load(Ordering::SeqCst);
    assert!(made == 64 && server.count() == 192, "{made} connections for {} requests", server.count());
}
