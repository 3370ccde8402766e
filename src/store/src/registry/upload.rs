//! Uploads of blobs: existing, mounted from another repository, or sent in one request (distribution specification 1.1,
//! "Pushing Blobs"). Chunked uploads are not supported by every registry.

use crate::download::DownloadError;
use crate::http::{Answer, Deadline, Payload, Request, header, is_same_server, located};
use vmbake_common::digest::Digest;

use super::challenge::escaped;
use super::error::RegistryError;
use super::repository::Repository;

/// Media type of all uploads.
const BYTES: &str = "application/octet-stream";

/// How a blob got into the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It existed.
    There,
    /// It was mounted from the other repository.
    Mounted,
    Sent,
}

/// The response to the start of an upload.
enum Start {
    Mounted,
    /// The upload URL.
    Upload(String),
}

impl Repository {
    /// Uploads a blob unless it exists. The registry checks the digest; `other` is a repository of the same registry
    /// from which the blob may be mounted.
    pub fn put_blob(
        &self,
        digest: &Digest,
        payload: Payload<'_>,
        other: Option<&str>,
    ) -> Result<Arrival, RegistryError> {
        match self.has_blob(digest)? {
            true => Ok(Arrival::There),
            false => self.send_blob(digest, payload, other),
        }
    }

    /// As [`Repository::put_blob`], without checking whether the blob exists.
    pub fn send_blob(
        &self,
        digest: &Digest,
        payload: Payload<'_>,
        other: Option<&str>,
    ) -> Result<Arrival, RegistryError> {
        let deadline = Deadline::after(self.client.limits().artifact);
        let mut failures = self.client.limits().retry.failures(0);
        // A failed upload cannot be continued at the same URL.
        loop {
            match self.upload(digest, payload, other, deadline) {
                Err(RegistryError::Download(DownloadError::Http(error))) => failures.wait(error, 0)?,
                result => return result,
            }
        }
    }

    fn upload(
        &self,
        digest: &Digest,
        payload: Payload<'_>,
        other: Option<&str>,
        deadline: Deadline,
    ) -> Result<Arrival, RegistryError> {
        let target = match self.start(digest, other, deadline)? {
            Start::Mounted => return Ok(Arrival::Mounted),
            Start::Upload(target) => target,
        };
        let separator = if target.contains('?') { '&' } else { '?' };
        let url = format!("{target}{separator}digest={}", escaped(&digest.to_string()));
        // The registry chooses the URL: mirrors do not apply, and another server gets no credentials.
        let put = Request::put(&url, payload).header(header::CONTENT_TYPE, BYTES).without_mirrors();
        let is_own = is_same_server(&url, &self.client.address(&self.url("")));
        match is_own {
            true => self.session.authorized(|headers| {
                Ok(self.client.send_once(&put.clone().headers(headers), deadline).map(drop)?)
            })?,
            false => drop(self.client.send_once(&put.anonymous(), deadline)?),
        }
        Ok(Arrival::Sent)
    }

    fn start(&self, digest: &Digest, other: Option<&str>, deadline: Deadline) -> Result<Start, RegistryError> {
        let mount = other.map(|name| format!("?mount={}&from={}", escaped(&digest.to_string()), escaped(name)));
        let url = self.url(&format!("blobs/uploads/{}", mount.unwrap_or_default()));
        let (status, from, location) = self.session.authorized(|headers| {
            let answer: Answer = self.client.send_once(&Request::post(&url, &[]).headers(headers), deadline)?;
            let location = answer.header(header::LOCATION).map(str::to_owned);
            Ok((answer.status.as_u16(), answer.url, location))
        })?;
        match (status, location) {
            (201, _) if other.is_some() => Ok(Start::Mounted),
            (202, Some(location)) => Ok(Start::Upload(located(&from, &location)?)),
            _ => Err(RegistryError::Answer { url, what: "upload location" }),
        }
    }
}
