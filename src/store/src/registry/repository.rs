//! A repository of a registry: what there is in it, and manifests in both directions (distribution specification 1.1, "Pull" and
//! "Push").

use crate::download::{DownloadError, Downloaded, Wanted, obtain};
use crate::http::header::{self, HeaderName};
use crate::http::{Answer, Client, Headers, HttpError, Payload, Request};
use crate::store::Store;
use vmbake_common::digest::Digest;
use vmbake_oci::{ACCEPT, Descriptor, MAX_DOCUMENT, RepositoryName};

use super::credentials::Credentials;
use super::error::RegistryError;
use super::session::Session;

/// The header in which a registry states the digest of what it sends.
pub(super) const DIGEST_HEADER: HeaderName = HeaderName::from_static("docker-content-digest");
/// The header in which a registry says that it lists a manifest among the referrers of its subject.
pub(super) const SUBJECT_HEADER: HeaderName = HeaderName::from_static("oci-subject");

/// What is done with a repository, and so what a token must be good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Pull,
    /// It is written, too.
    Push,
}

/// A manifest or index as a registry gave it.
#[derive(Clone, Debug)]
pub struct RemoteManifest {
    /// Its digest, which was computed.
    pub digest: Digest,
    /// What the registry says it is.
    pub media_type: String,
    /// Its bytes, at most [`MAX_DOCUMENT`].
    pub bytes: Vec<u8>,
}

/// One repository. Threads may share it; they share its tokens.
#[derive(Debug)]
pub struct Repository {
    pub(super) client: Client,
    pub(super) session: Session,
    name: RepositoryName,
    base: String,
}

impl Repository {
    /// The repository of that name. Nothing is asked before it is used; a registry on this machine is asked without TLS.
    pub fn new(client: &Client, credentials: &Credentials, name: RepositoryName, access: Access) -> Self {
        let plain_http = name.is_local();
        Self::with_transport(client, credentials, name, access, plain_http)
    }

    /// The same, without TLS if `plain_http`.
    pub fn with_transport(
        client: &Client,
        credentials: &Credentials,
        name: RepositoryName,
        access: Access,
        plain_http: bool,
    ) -> Self {
        let base = name.base(plain_http);
        let scopes = match access {
            // What the registry asks for will do.
            Access::Pull => Vec::new(),
            Access::Push => vec![format!("repository:{}:pull,push", name.name())],
        };
        let session = Session::new(client, credentials, &name, client.address(&base), scopes);
        Self { client: client.clone(), session, name, base }
    }

    /// What it is called.
    pub fn name(&self) -> &RepositoryName {
        &self.name
    }

    /// The address of a part of it.
    pub(super) fn url(&self, rest: &str) -> String {
        format!("{}/{rest}", self.base)
    }

    /// A manifest or index by its tag or digest, which is checked.
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
            // A registry may state it in SHA-512.
            Some(stated) if stated.starts_with("sha256:") && wanted.is_none() && stated != digest.to_string() => {
                Err(RegistryError::Header { url, stated, found: Box::new(digest) })
            }
            _ => Ok(RemoteManifest { digest, media_type, bytes }),
        }
    }

    /// The digest of what a tag stands for, if there is such a tag.
    pub fn tag(&self, tag: &str) -> Result<Option<Digest>, RegistryError> {
        let url = self.url(&format!("manifests/{tag}"));
        let stated = self.head(&url, |answer| Ok(answer.header(DIGEST_HEADER).and_then(|text| text.parse().ok())));
        match stated {
            Ok(Some(digest)) => Ok(Some(digest)),
            // Not every registry states it.
            Ok(None) => Ok(Some(self.manifest(tag)?.digest)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a blob is there.
    pub fn has_blob(&self, digest: &Digest) -> Result<bool, RegistryError> {
        self.exists(&format!("blobs/{digest}"))
    }

    /// Whether a manifest is there.
    pub fn has_manifest(&self, digest: &Digest) -> Result<bool, RegistryError> {
        self.exists(&format!("manifests/{digest}"))
    }

    /// A whole blob of that digest in memory, if it has at most `limit` bytes.
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

    /// What `read` makes of a blob, whose bytes nobody has checked yet; it is called again when the connection breaks.
    pub fn stream_blob<T>(
        &self,
        digest: &Digest,
        read: impl Fn(Answer) -> Result<T, HttpError>,
    ) -> Result<T, RegistryError> {
        self.ask(&self.url(&format!("blobs/{digest}")), read)
    }

    /// A blob in the store, downloaded if it is not there; it has the digest and length of its descriptor.
    pub fn obtain(&self, store: &Store, blob: &Descriptor, limit: u64) -> Result<Downloaded, RegistryError> {
        self.obtain_at(store, blob, &blob.digest, limit)
    }

    /// The same of a blob that the registry has under the digest `place`, in another algorithm.
    pub fn obtain_at(
        &self,
        store: &Store,
        blob: &Descriptor,
        place: &Digest,
        limit: u64,
    ) -> Result<Downloaded, RegistryError> {
        self.obtain_from(store, blob, &format!("blobs/{place}"), limit)
    }

    /// The same of a manifest or an index.
    pub fn obtain_manifest(&self, store: &Store, document: &Descriptor) -> Result<Downloaded, RegistryError> {
        self.obtain_from(store, document, &format!("manifests/{}", document.digest), MAX_DOCUMENT)
    }

    fn obtain_from(
        &self,
        store: &Store,
        blob: &Descriptor,
        rest: &str,
        limit: u64,
    ) -> Result<Downloaded, RegistryError> {
        // Its descriptor says how long it is, and may have been made up by the registry.
        if blob.size > limit {
            let (image, digest) = (self.name.to_string(), Box::new(blob.digest));
            return Err(RegistryError::TooLarge { image, digest, size: blob.size, limit });
        }
        let url = self.url(rest);
        self.session.authorized(|headers| {
            let wanted = Wanted {
                urls: vec![url.clone()],
                headers: accepting(headers),
                digest: Some(blob.digest),
                size: Some(blob.size).filter(|size| *size > 0),
                limit,
            };
            obtain(&self.client, store, &wanted, &|_| {})
        })
    }

    /// Puts a manifest or an index at a tag or at its digest. Its blobs must be there. Tells whether the registry lists it among the
    /// referrers of its subject.
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

    /// Puts a manifest or an index at a tag or at its digest. All that it names must be there.
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

/// The digest of bytes, in the algorithm of the one that they should have.
fn digest_of(bytes: &[u8], wanted: Option<&Digest>) -> Digest {
    let Some(wanted) = wanted else { return Digest::of(bytes) };
    let mut hasher = wanted.hasher();
    hasher.update(bytes);
    hasher.finish()
}

fn accepting(headers: &[(HeaderName, String)]) -> Headers {
    headers.iter().cloned().chain([(header::ACCEPT, ACCEPT.join(", "))]).collect()
}
