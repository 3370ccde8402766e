//! A repository of a registry: reads and writes manifests and blobs (distribution specification 1.1, "Pull" and
//! "Push").

use crate::download::{DownloadError, DownloadRequest, Downloaded, ensure_blob};
use crate::http::header::{self, HeaderName};
use crate::http::{Answer, Client, Headers, HttpError, Payload, Request};
use crate::store::Store;
use vmbake_common::digest::Digest;
use vmbake_oci::{ACCEPT, Descriptor, MAX_DOCUMENT, RepositoryName};

use super::credentials::Credentials;
use super::error::RegistryError;
use super::session::Session;

/// The header that states the digest of a response.
pub(super) const DIGEST_HEADER: HeaderName = HeaderName::from_static("docker-content-digest");
/// The header that confirms that a registry with referrers API has listed a manifest.
pub(super) const SUBJECT_HEADER: HeaderName = HeaderName::from_static("oci-subject");

/// The operations that a token must permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Pull,
    /// Read and write.
    Push,
}

/// A manifest or index as sent by the registry.
#[derive(Clone, Debug)]
pub struct RemoteManifest {
    /// Its computed digest.
    pub digest: Digest,
    /// The media type stated by the registry.
    pub media_type: String,
    /// Its content, at most [`MAX_DOCUMENT`] bytes.
    pub bytes: Vec<u8>,
}

/// A repository. Threads may share it and its tokens.
#[derive(Debug)]
pub struct Repository {
    pub(super) client: Client,
    pub(super) session: Session,
    name: RepositoryName,
    base: String,
}

impl Repository {
    /// Creates a client for a repository without connecting. A registry on localhost uses plain HTTP.
    pub fn new(client: &Client, credentials: &Credentials, name: RepositoryName, access: Access) -> Self {
        let plain_http = name.is_local();
        Self::with_transport(client, credentials, name, access, plain_http)
    }

    /// As [`Repository::new`], with plain HTTP if `plain_http` is set.
    pub fn with_transport(
        client: &Client,
        credentials: &Credentials,
        name: RepositoryName,
        access: Access,
        plain_http: bool,
    ) -> Self {
        let base = name.base(plain_http);
        let scopes = match access {
            // The scope of the challenge suffices.
            Access::Pull => Vec::new(),
            Access::Push => vec![format!("repository:{}:pull,push", name.name())],
        };
        let session = Session::new(client, credentials, &name, client.address(&base), scopes);
        Self { client: client.clone(), session, name, base }
    }

    pub fn name(&self) -> &RepositoryName {
        &self.name
    }

    /// The URL of an API endpoint.
    pub(super) fn url(&self, rest: &str) -> String {
        format!("{}/{rest}", self.base)
    }

    /// A manifest or index by tag or digest, with its digest checked.
    pub fn manifest(&self, reference: &str) -> Result<RemoteManifest, RegistryError> {
        let url = self.url(&format!("manifests/{reference}"));
        let (bytes, stated, media_type) = self.ask(&url, |answer| {
            let text = |name| answer.header(name).map(str::to_owned);
            let (stated, media_type) = (text(DIGEST_HEADER), text(header::CONTENT_TYPE));
            Ok((answer.read(MAX_DOCUMENT)?, stated, media_type.unwrap_or_default()))
        })?;
        let wanted = reference.parse::<Digest>().ok();
        let digest = digest_of(&bytes, wanted.as_ref());
        if let Some(expected) = wanted.filter(|wanted| *wanted != digest) {
            return Err(RegistryError::Digest { url, expected: Box::new(expected), found: Box::new(digest) });
        }
        match stated {
            // A registry may state a SHA-512 digest.
            Some(stated) if stated.starts_with("sha256:") && wanted.is_none() && stated != digest.to_string() => {
                Err(RegistryError::Header { url, stated, found: Box::new(digest) })
            }
            _ => Ok(RemoteManifest { digest, media_type, bytes }),
        }
    }

    /// The digest of a tag, if the tag exists.
    pub fn tag(&self, tag: &str) -> Result<Option<Digest>, RegistryError> {
        let url = self.url(&format!("manifests/{tag}"));
        let stated = self.head(&url, |answer| Ok(answer.header(DIGEST_HEADER).and_then(|text| text.parse().ok())));
        match stated {
            Ok(Some(digest)) => Ok(Some(digest)),
            // Some registries do not state it.
            Ok(None) => Ok(Some(self.manifest(tag)?.digest)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn has_blob(&self, digest: &Digest) -> Result<bool, RegistryError> {
        self.exists(&format!("blobs/{digest}"))
    }

    pub fn has_manifest(&self, digest: &Digest) -> Result<bool, RegistryError> {
        self.exists(&format!("manifests/{digest}"))
    }

    /// Reads a blob with that digest and at most `limit` bytes into memory.
    pub fn read_blob(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let bytes = self.stream_blob(digest, |answer| answer.read(limit))?;
        let found = digest_of(&bytes, Some(digest));
        match found == *digest {
            true => Ok(bytes),
            false => {
                let (url, expected) = (self.url(&format!("blobs/{digest}")), Box::new(*digest));
                Err(RegistryError::Digest { url, expected, found: Box::new(found) })
            }
        }
    }

    /// Passes the unverified content of a blob to `read`, which is called again after a lost connection.
    pub fn stream_blob<T>(
        &self,
        digest: &Digest,
        read: impl Fn(Answer) -> Result<T, HttpError>,
    ) -> Result<T, RegistryError> {
        self.ask(&self.url(&format!("blobs/{digest}")), read)
    }

    /// Downloads a blob into the store unless it is there; verifies the digest and length in its descriptor.
    pub fn ensure_blob(&self, store: &Store, blob: &Descriptor, limit: u64) -> Result<Downloaded, RegistryError> {
        self.ensure_blob_at(store, blob, &blob.digest, limit)
    }

    /// As [`Repository::ensure_blob`], for a blob that the registry has under `place`, a digest of another algorithm.
    pub fn ensure_blob_at(
        &self,
        store: &Store,
        blob: &Descriptor,
        place: &Digest,
        limit: u64,
    ) -> Result<Downloaded, RegistryError> {
        self.ensure_from(store, blob, &format!("blobs/{place}"), limit)
    }

    /// As [`Repository::ensure_blob`], for a manifest or index.
    pub fn ensure_manifest(&self, store: &Store, document: &Descriptor) -> Result<Downloaded, RegistryError> {
        self.ensure_from(store, document, &format!("manifests/{}", document.digest), MAX_DOCUMENT)
    }

    fn ensure_from(
        &self,
        store: &Store,
        blob: &Descriptor,
        rest: &str,
        limit: u64,
    ) -> Result<Downloaded, RegistryError> {
        // The registry states the length in the descriptor, so it is not trusted.
        if blob.size > limit {
            let (image, digest) = (self.name.to_string(), Box::new(blob.digest));
            return Err(RegistryError::TooLarge { image, digest, size: blob.size, limit });
        }
        let url = self.url(rest);
        self.session.authorized(|headers| {
            let wanted = DownloadRequest {
                urls: vec![url.clone()],
                headers: accepting(headers),
                digest: Some(blob.digest),
                size: Some(blob.size).filter(|size| *size > 0),
                limit,
            };
            ensure_blob(&self.client, store, &wanted, &|_| {})
        })
    }

    /// Pushes a manifest or index to a tag or digest. Its blobs must have been pushed. Returns whether the registry has
    /// listed it among the referrers of its subject.
    pub(super) fn put(&self, reference: &str, media_type: &str, bytes: &[u8]) -> Result<bool, RegistryError> {
        let url = self.url(&format!("manifests/{reference}"));
        let digest = digest_of(bytes, reference.parse().ok().as_ref());
        let (stated, is_listed) = self.session.authorized(|headers| {
            let request = Request::put(&url, Payload::Bytes(bytes)).headers(headers);
            let read = |answer: Answer| {
                let stated = answer.header(DIGEST_HEADER).map(str::to_owned);
                Ok((stated, answer.header(SUBJECT_HEADER).is_some()))
            };
            Ok(self.client.send(&request.header(header::CONTENT_TYPE, media_type), read)?)
        })?;
        match stated {
            Some(stated) if stated.starts_with("sha256:") && stated != digest.to_string() => {
                Err(RegistryError::Header { url, stated, found: Box::new(digest) })
            }
            _ => Ok(is_listed),
        }
    }

    /// Pushes a manifest or index to a tag or digest. Everything that it refers to must have been pushed.
    pub fn put_manifest(&self, reference: &str, media_type: &str, bytes: &[u8]) -> Result<(), RegistryError> {
        self.put(reference, media_type, bytes).map(drop)
    }

    fn exists(&self, rest: &str) -> Result<bool, RegistryError> {
        match self.head(&self.url(rest), |_| Ok(())) {
            Ok(()) => Ok(true),
            Err(error) if error.is_absent() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn head<T>(&self, url: &str, read: impl Fn(Answer) -> Result<T, HttpError>) -> Result<T, RegistryError> {
        self.session.authorized(|headers| {
            let request = Request::head(url).headers(&accepting(headers));
            Ok(self.client.send(&request, &read)?)
        })
    }

    pub(super) fn ask<T>(&self, url: &str, read: impl Fn(Answer) -> Result<T, HttpError>) -> Result<T, RegistryError> {
        self.session.authorized(|headers| {
            let request = Request::get(url).headers(&accepting(headers));
            self.client.send_within(&request, self.client.limits().artifact, &read).map_err(DownloadError::from)
        })
    }
}

/// The digest of bytes, with the algorithm of the expected digest.
fn digest_of(bytes: &[u8], wanted: Option<&Digest>) -> Digest {
    let Some(wanted) = wanted else { return Digest::of(bytes) };
    let mut hasher = wanted.hasher();
    hasher.update(bytes);
    hasher.finish()
}

fn accepting(headers: &[(HeaderName, String)]) -> Headers {
    headers.iter().cloned().chain([(header::ACCEPT, ACCEPT.join(", "))]).collect()
}
