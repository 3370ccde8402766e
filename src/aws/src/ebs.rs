//! The EBS direct APIs: start, fill and complete a snapshot; list, compare and read its blocks. REST with JSON, API
//! version 2019-11-02.

use std::collections::BTreeMap;

use base64ct::{Base64, Encoding};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::call::{Answer, Call};
use super::client::Aws;
use super::error::AwsError;
use super::query::escaped;
use super::service::Service;

/// Block size in bytes.
pub const BLOCK_SIZE: u64 = 512 << 10;
/// Entries per page: the maximum, since an account can request only 50 pages a second.
const PAGE: &str = "10000";
/// Maximum number of pages: with the minimum of 100 entries, for the largest volume.
const MAX_PAGES: usize = 65_536 * 2048 / 100;
/// Checksums are SHA-256 in Base64.
const ALGORITHM: &str = "SHA256";

/// Parameters of a new snapshot.
#[derive(Clone, Debug)]
pub struct StartSnapshot<'a> {
    /// Size in GiB, 1 to 65,536.
    pub volume_size: u64,
    /// The parent, which provides the blocks that are not uploaded. It must be owned by the account, completed, in this
    /// region, and not larger.
    pub parent: Option<&'a str>,
    /// At most 64 ASCII characters. Repeating a request with the same token returns the same snapshot.
    pub client_token: &'a str,
    /// At most 255 characters.
    pub description: &'a str,
    /// The snapshot fails after this many minutes without a block: 10 to 4,320.
    pub timeout_minutes: u32,
    /// At most 50.
    pub tags: &'a [(String, String)],
    /// ARN of the key that encrypts it.
    pub kms_key: Option<&'a str>,
    /// Whether it is encrypted. Not sent with a parent, which determines the encryption.
    pub encrypted: bool,
}

/// A started snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its ID: `snap-…`.
    pub id: String,
    /// `pending`; another status if the client token was used before.
    pub status: String,
    /// Block size in bytes, currently always [`BLOCK_SIZE`].
    pub block_size: u64,
    /// ARN of the key that encrypts it, if it is encrypted.
    pub kms_key: Option<String>,
}

/// The blocks of a snapshot, including those of its parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlocks {
    /// Size in GiB.
    pub volume_size: u64,
    /// Block size in bytes.
    pub block_size: u64,
    /// In the order of their indexes.
    pub blocks: Vec<ListedBlock>,
}

/// A block of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlock {
    pub index: u64,
    /// The token for [`Aws::get_block`]; valid for about an hour.
    pub token: String,
}

/// A block that differs between two snapshots of one lineage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedBlock {
    pub index: u64,
    /// The token to read it from the first snapshot; `None` if it is not there.
    pub first_token: Option<String>,
    /// The token to read it from the second snapshot; `None` if it is not there.
    pub second_token: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Start<'a> {
    volume_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_snapshot_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Tag<'a>>,
    description: &'a str,
    client_token: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kms_key_arn: Option<&'a str>,
    timeout: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Tag<'a> {
    key: &'a str,
    value: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StartedAnswer {
    snapshot_id: String,
    status: String,
    block_size: u64,
    kms_key_arn: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Completed {
    status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page<T> {
    #[serde(alias = "ChangedBlocks", default = "Vec::new")]
    blocks: Vec<T>,
    volume_size: Option<u64>,
    block_size: Option<u64>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Block {
    block_index: u64,
    block_token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Changed {
    block_index: u64,
    first_block_token: Option<String>,
    second_block_token: Option<String>,
}

impl Aws {
    /// Starts a snapshot. The client token makes the call idempotent.
    pub fn start_snapshot(&self, start: &StartSnapshot<'_>) -> Result<Started, AwsError> {
        let has_parent = start.parent.is_some();
        let request = Start {
            volume_size: start.volume_size,
            parent_snapshot_id: start.parent,
            tags: start.tags.iter().map(|(key, value)| Tag { key, value }).collect(),
            description: start.description,
            client_token: start.client_token,
            encrypted: (start.encrypted && !has_parent).then_some(true),
            kms_key_arn: start.kms_key.filter(|_| !has_parent),
            timeout: start.timeout_minutes,
        };
        let body = serde_json::to_vec(&request)
            .map_err(|error| AwsError::Sign { action: "ebs:StartSnapshot".to_owned(), reason: error.to_string() })?;
        let mut call =
            Call::post(Service::Ebs, "StartSnapshot", "/snapshots", &body).header("content-type", "application/json");
        if let Some(parent) = start.parent {
            call = call.resource(parent);
        }
        let answer: StartedAnswer = self.call(&call)?.json("snapshot")?;
        self.shared.transport.made(&answer.snapshot_id);
        let StartedAnswer { snapshot_id: id, status, block_size, kms_key_arn: kms_key } = answer;
        Ok(Started { id, status, block_size, kms_key })
    }

    /// Uploads a block of [`BLOCK_SIZE`] bytes with the SHA-256 `checksum`, which the service must confirm. An existing
    /// block is replaced.
    ///
    /// The signature covers the checksum instead of the body, so that nothing is hashed twice.
    pub fn put_block(&self, snapshot: &str, index: u64, checksum: &[u8; 32], block: &[u8]) -> Result<(), AwsError> {
        let found = block.len() as u64;
        if found != BLOCK_SIZE {
            return Err(length("PutSnapshotBlock", snapshot, index, found));
        }
        let expected = Base64::encode_string(checksum);
        let path = format!("/snapshots/{}/blocks/{index}", escaped(snapshot));
        let call = Call::put(Service::Ebs, "PutSnapshotBlock", &path, block)
            .resource(snapshot)
            .unsigned_payload()
            .rate_limited()
            .wait_until_visible(snapshot)
            .header("x-amz-checksum", expected.as_str())
            .header("x-amz-checksum-algorithm", ALGORITHM)
            .header("x-amz-data-length", BLOCK_SIZE.to_string());
        let echoed = |answer: Answer| match answer.header("x-amz-checksum") {
            Some(found) if found == expected => Ok(()),
            Some(found) => Err(checksum_of("PutSnapshotBlock", snapshot, index, &expected, found)),
            None => Err(answer.lacks("checksum")),
        };
        self.call_checked(&call, echoed)
    }

    /// Completes a snapshot to which `changed_blocks` different blocks were uploaded; `linear` is the SHA-256 over
    /// their digests, in the order of their indexes. Returns the status.
    pub fn complete_snapshot(
        &self,
        snapshot: &str,
        changed_blocks: u64,
        linear: Option<&[u8; 32]>,
    ) -> Result<String, AwsError> {
        let path = format!("/snapshots/completion/{}", escaped(snapshot));
        let mut call = Call::post(Service::Ebs, "CompleteSnapshot", &path, b"")
            .resource(snapshot)
            .wait_until_visible(snapshot)
            .header("x-amz-changedblockscount", changed_blocks.to_string());
        if let Some(linear) = linear {
            call = call
                .header("x-amz-checksum", Base64::encode_string(linear))
                .header("x-amz-checksum-algorithm", ALGORITHM)
                .header("x-amz-checksum-aggregation-method", "LINEAR");
        }
        let answer: Completed = self.call(&call)?.json("status")?;
        Ok(answer.status)
    }

    /// All blocks of a completed snapshot, in the order of their indexes.
    pub fn snapshot_blocks(&self, snapshot: &str) -> Result<ListedBlocks, AwsError> {
        let path = format!("/snapshots/{}/blocks", escaped(snapshot));
        let (volume_size, block_size, blocks) =
            self.pages("ListSnapshotBlocks", snapshot, &path, &[], |block: &Block| block.block_index)?;
        let blocks = blocks.into_iter().map(|block| ListedBlock { index: block.block_index, token: block.block_token });
        Ok(ListedBlocks { volume_size, block_size, blocks: blocks.collect() })
    }

    /// The blocks that differ between two completed snapshots of one lineage, in the order of their indexes.
    pub fn changed_blocks(&self, first: &str, second: &str) -> Result<Vec<ChangedBlock>, AwsError> {
        let path = format!("/snapshots/{}/changedblocks", escaped(second));
        let query = [("firstSnapshotId", first)];
        let (_, _, blocks) =
            self.pages("ListChangedBlocks", second, &path, &query, |block: &Changed| block.block_index)?;
        let blocks = blocks.into_iter().map(|block| ChangedBlock {
            index: block.block_index,
            first_token: block.first_block_token,
            second_token: block.second_block_token,
        });
        Ok(blocks.collect())
    }

    /// The contents of a block, given a token from a list; length and SHA-256 are checked against those that the
    /// service states.
    pub fn get_block(&self, snapshot: &str, index: u64, token: &str) -> Result<Vec<u8>, AwsError> {
        let path = format!("/snapshots/{}/blocks/{index}?blockToken={}", escaped(snapshot), escaped(token));
        let call =
            Call::get(Service::Ebs, "GetSnapshotBlock", &path).resource(snapshot).rate_limited().limit(BLOCK_SIZE);
        self.call_checked(&call, |answer| {
            let Some(expected) = answer.header("x-amz-checksum").map(str::to_owned) else {
                return Err(answer.lacks("checksum"));
            };
            if answer.body().len() as u64 != BLOCK_SIZE {
                return Err(length("GetSnapshotBlock", snapshot, index, answer.body().len() as u64));
            }
            let found = Base64::encode_string(&Sha256::digest(answer.body()));
            match found == expected {
                true => Ok(answer.into_body()),
                false => Err(checksum_of("GetSnapshotBlock", snapshot, index, &expected, &found)),
            }
        })
    }

    /// All entries of a list by index, with the size in GiB and the block size that its pages state. Pages may be
    /// empty.
    fn pages<T: DeserializeOwned>(
        &self,
        action: &str,
        snapshot: &str,
        path: &str,
        query: &[(&str, &str)],
        index: impl Fn(&T) -> u64,
    ) -> Result<(u64, u64, Vec<T>), AwsError> {
        let mut all: BTreeMap<u64, T> = BTreeMap::new();
        let mut token: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let next = token.iter().map(|token| ("pageToken", token.as_str()));
            let pairs = query.iter().copied().chain([("maxResults", PAGE)]).chain(next);
            let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={}", escaped(value))).collect();
            let address = format!("{path}?{}", pairs.join("&"));
            let answer = self.call(&Call::get(Service::Ebs, action, &address).resource(snapshot))?;
            let page: Page<T> = answer.json("page of blocks")?;
            for block in page.blocks {
                if all.insert(index(&block), block).is_some() {
                    return Err(answer.lacks("list: duplicate block"));
                }
            }
            let (Some(volume_size), Some(block_size)) = (page.volume_size, page.block_size) else {
                return Err(answer.lacks("size"));
            };
            match page.next_token.filter(|token| !token.is_empty()) {
                Some(next) => token = Some(next),
                None => return Ok((volume_size, block_size, all.into_values().collect())),
            }
        }
        Err(AwsError::Answer { action: Service::Ebs.iam(action), what: "end" })
    }
}

fn length(action: &str, snapshot: &str, index: u64, found: u64) -> AwsError {
    let (action, snapshot) = (Service::Ebs.iam(action), snapshot.to_owned());
    AwsError::Length { action, snapshot, index, expected: BLOCK_SIZE, found }
}

fn checksum_of(action: &str, snapshot: &str, index: u64, expected: &str, found: &str) -> AwsError {
    let (action, snapshot) = (Service::Ebs.iam(action), snapshot.to_owned());
    AwsError::Checksum { action, snapshot, index, expected: expected.to_owned(), found: found.to_owned() }
}
