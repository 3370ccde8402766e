//! Pulling images from a registry: a reference enters, proven blobs in the store leave (OCI distribution specification 1.1).
//!
//! Every document and layer is checked against the digest that led to it before it is used. A tag proves nothing: the
//! digest that it stands for is pinned when it is first seen.

use std::sync::Mutex;

use crate::digest::Digest;
use crate::hint::Hint;
use crate::manifest::{ContainerImage, Proof};
use crate::oci::{
    ACCEPT, Challenge, Descriptor, Image, InvalidPlatform, InvalidReference, MAX_DOCUMENT, MAX_TOKEN, OciError,
    Platform, Reference, parse_token, read_document,
};
use crate::parallel::locked;
use crate::supply::download::{DownloadError, Downloaded, Wanted, obtain};
use crate::supply::http::header::{self, HeaderName};
use crate::supply::http::{Answer, Client, Headers, HttpError, Request, scheme};
use crate::supply::store::{Store, StoreError};

/// The header in which a registry states the digest of what it sends.
const DIGEST_HEADER: HeaderName = HeaderName::from_static("docker-content-digest");
/// Largest layer that is pulled.
const MAX_LAYER: u64 = 16 << 30;

/// Why an image was not pulled.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Its name is none.
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    /// The name of its platform is none.
    #[error(transparent)]
    Platform(#[from] InvalidPlatform),
    /// A document or layer could not be downloaded.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The registry contradicts itself.
    #[error("{url}: the answer has digest {found}, its header says {stated}")]
    Header {
        /// What was asked for.
        url: String,
        /// `Docker-Content-Digest`.
        stated: String,
        /// Digest of what came.
        found: Box<Digest>,
    },
    /// Neither a bearer token nor anything else that is known is asked for.
    #[error("{url}: asks for credentials in a way that is not understood: {challenge:?}")]
    Challenge {
        /// The image.
        url: String,
        /// `WWW-Authenticate`.
        challenge: String,
    },
    /// A token that would be had without TLS is refused to a registry that is asked over TLS.
    #[error("{url}: wants a token that is not to be had over HTTPS: {challenge:?}")]
    PlainToken {
        /// The image.
        url: String,
        /// `WWW-Authenticate`.
        challenge: String,
    },
    /// A descriptor promises more than is read.
    #[error("{image}: {digest} has {size} bytes, more than the {limit} that it may have")]
    TooLarge {
        /// The image.
        image: String,
        /// The document or layer.
        digest: Box<Digest>,
        /// Its length in bytes, as its descriptor says.
        size: u64,
        /// The most that it may have.
        limit: u64,
    },
    /// Its documents are not those of an image of that platform.
    #[error("{reference}: not a usable image")]
    Image {
        /// The image.
        reference: String,
        /// What is wrong.
        source: Box<OciError>,
    },
}

impl Hint for RegistryError {
    fn passed_on(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Download(error) => Some(error),
            _ => None,
        }
    }
}

impl From<HttpError> for RegistryError {
    fn from(error: HttpError) -> Self {
        Self::Download(error.into())
    }
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        Self::Download(error.into())
    }
}

/// Resolves a reference with a tag and pulls the image of a platform.
pub fn pull_tag(
    client: &Client,
    store: &Store,
    reference: &str,
    platform: &str,
) -> Result<ContainerImage, RegistryError> {
    let session = Session::new(client, store, reference.parse()?);
    let index = session.resolve()?;
    let image = session.pull(index, &platform.parse()?)?;
    Ok(ContainerImage {
        image: reference.to_owned(),
        digest: image.manifest.digest,
        size: image.manifest.size,
        platform: platform.to_owned(),
        index,
        proof: Some(Proof::FirstUse),
    })
}

/// Pulls a pinned image; tells how many bytes it has.
pub fn pull_pinned(client: &Client, store: &Store, pinned: &ContainerImage) -> Result<u64, RegistryError> {
    let session = Session::new(client, store, pinned.image.parse()?);
    let image = session.pull(pinned.index, &pinned.platform.parse()?)?;
    if image.manifest.digest != pinned.digest {
        let (digest, found) = (Box::new(pinned.digest), Box::new(image.manifest.digest));
        return Err(session.refused(OciError::Digest { digest, found }));
    }
    Ok(image.blobs().map(|blob| blob.size).sum())
}

/// The blobs of a pinned image, as far as the store has the documents that name them.
pub fn blobs(store: &Store, pinned: &ContainerImage) -> Vec<Digest> {
    let Ok(platform) = pinned.platform.parse() else { return Vec::new() };
    let read = |blob: &Descriptor| match store.blob(&blob.digest) {
        Ok(Some(file)) => read_document(blob, file),
        Ok(None) => Err(OciError::Absent { digest: Box::new(blob.digest) }),
        Err(source) => Err(OciError::Blob { digest: Box::new(blob.digest), source: source.into() }),
    };
    let image = Image::find(pinned.index, &platform, &read);
    image.map(|image| image.blobs().map(|blob| blob.digest).collect()).unwrap_or_default()
}

/// One image of one registry.
struct Session<'a> {
    client: &'a Client,
    store: &'a Store,
    reference: Reference,
    token: Mutex<Option<String>>,
}

impl<'a> Session<'a> {
    fn new(client: &'a Client, store: &'a Store, reference: Reference) -> Self {
        Self { client, store, reference, token: Mutex::new(None) }
    }

    fn refused(&self, source: OciError) -> RegistryError {
        RegistryError::Image { reference: self.reference.to_string(), source: Box::new(source) }
    }

    /// Asks what the tag stands for, and keeps that document.
    fn resolve(&self) -> Result<Digest, RegistryError> {
        let url = self.reference.manifest_url(&self.reference.tag);
        let (bytes, stated) = self.authorized(|headers| {
            let read = |answer: Answer| {
                let stated = answer.header(DIGEST_HEADER).map(str::to_owned);
                Ok((answer.read(MAX_DOCUMENT)?, stated))
            };
            self.client.send(&Request::get(&url).headers(headers), read).map_err(DownloadError::from)
        })?;
        let digest = self.store.insert(&bytes)?;
        match stated {
            // A registry may state it in SHA-512.
            Some(stated) if stated.starts_with("sha256:") && stated != digest.to_string() => {
                Err(RegistryError::Header { url, stated, found: Box::new(digest) })
            }
            _ => Ok(digest),
        }
    }

    /// Pulls everything that the index leads to for a platform, and lists it in the store's layout.
    fn pull(&self, index: Digest, platform: &Platform) -> Result<Image, RegistryError> {
        let read = |blob: &Descriptor| {
            let document = self.obtain(blob, &self.reference.document_url(blob), MAX_DOCUMENT);
            let failed =
                |source: RegistryError| OciError::Blob { digest: Box::new(blob.digest), source: source.into() };
            read_document(blob, document.map_err(failed)?.file)
        };
        let image = Image::find(index, platform, &read).map_err(|source| self.refused(source))?;
        for (layer, _) in &image.layers {
            self.obtain(layer, &self.reference.blob_url(&layer.digest), MAX_LAYER)?;
        }
        self.store.list_image(&self.reference.to_string(), &image.root)?;
        Ok(image)
    }

    fn obtain(&self, blob: &Descriptor, url: &str, limit: u64) -> Result<Downloaded, RegistryError> {
        // Its descriptor says how long it is, and may have been made up by the registry.
        if blob.size > limit {
            let (image, digest) = (self.reference.to_string(), Box::new(blob.digest));
            return Err(RegistryError::TooLarge { image, digest, size: blob.size, limit });
        }
        self.authorized(|headers| {
            let wanted = Wanted {
                urls: vec![url.to_owned()],
                headers: headers.to_vec(),
                digest: Some(blob.digest),
                size: Some(blob.size).filter(|size| *size > 0),
                limit,
            };
            obtain(self.client, self.store, &wanted, &|_| {})
        })
    }

    /// Makes a request, with a token if the registry wants one. The token goes to the registry's host only.
    fn authorized<T>(
        &self,
        request: impl Fn(&[(HeaderName, String)]) -> Result<T, DownloadError>,
    ) -> Result<T, RegistryError> {
        let headers = |token: &Option<String>| -> Headers {
            let token = token.iter().map(|token| (header::AUTHORIZATION, format!("Bearer {token}")));
            token.chain([(header::ACCEPT, ACCEPT.join(", "))]).collect()
        };
        let token = locked(&self.token).clone();
        let (asked, challenge) = match request(&headers(&token)) {
            Err(DownloadError::Http(HttpError::Status { status: 401, url, challenge: Some(challenge), .. })) => {
                (url, challenge)
            }
            result => return Ok(result?),
        };
        let url = self.reference.to_string();
        let Some(parsed) = Challenge::parse(&challenge) else {
            return Err(RegistryError::Challenge { url, challenge });
        };
        if is_downgrade(&asked, parsed.realm()) {
            return Err(RegistryError::PlainToken { url, challenge });
        }
        // The registry says where that is: what is the user's alone must not go there.
        let wanted = parsed.url();
        let answer = self.client.send(&Request::get(&wanted).anonymous(), |answer| answer.read(MAX_TOKEN))?;
        let token = parse_token(&answer).ok_or(RegistryError::Challenge { url, challenge })?;
        *locked(&self.token) = Some(token.clone());
        Ok(request(&headers(&Some(token)))?)
    }
}

/// Whether a registry that was asked over TLS wants its token to be had without.
fn is_downgrade(asked: &str, realm: &str) -> bool {
    let is_tls = |url: &str| scheme(url).as_deref() == Some("https");
    is_tls(asked) && !is_tls(realm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_carried_as_safely_as_the_image() {
        assert!(!is_downgrade("https://r.example/v2/", "https://a.example/token"));
        assert!(!is_downgrade("http://127.0.0.1:5000/v2/", "http://127.0.0.1:5000/token"));
        for realm in ["http://a.example/token", "HTTP://a.example/token", "/token"] {
            assert!(is_downgrade("https://r.example/v2/", realm), "{realm}");
        }
    }
}
