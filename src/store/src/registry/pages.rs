//! Paginated lists of a registry: referrers of a manifest and tags of a repository (distribution specification 1.1,
//! "Listing Tags").

use serde::Deserialize;

use crate::http::{header, is_same_server, located};
use vmbake_oci::{MAX_DOCUMENT, is_tag};

use super::error::RegistryError;
use super::repository::Repository;

/// Maximum number of pages.
const MAX_PAGES: usize = 32;

/// A page of the list of tags.
#[derive(Deserialize)]
struct TagList {
    /// May be `null` for a repository without tags.
    tags: Option<Vec<String>>,
}

impl Repository {
    /// The tags of the repository as listed by the registry. It may change their targets at any time.
    pub fn tags(&self) -> Result<Vec<String>, RegistryError> {
        let mut found = Vec::new();
        self.pages(self.url("tags/list"), |url, bytes| {
            let page: Option<TagList> = serde_json::from_slice(bytes).ok();
            let unusable = || RegistryError::Answer { url: url.to_owned(), what: "list of tags" };
            found.extend(page.ok_or_else(unusable)?.tags.unwrap_or_default());
            Ok(())
        })?;
        found.retain(|tag| is_tag(tag));
        Ok(found)
    }

    /// Passes each page of a list with its URL to `each`.
    pub(super) fn pages(
        &self,
        first: String,
        mut each: impl FnMut(&str, &[u8]) -> Result<(), RegistryError>,
    ) -> Result<(), RegistryError> {
        let mut url = first;
        for _ in 0..MAX_PAGES {
            let (from, bytes, next) = self.ask(&url, |answer| {
                let (from, next) = (answer.url.clone(), answer.header(header::LINK).and_then(next_page));
                Ok((from, answer.read(MAX_DOCUMENT)?, next))
            })?;
            each(&url, &bytes)?;
            let Some(next) = next else { return Ok(()) };
            url = located(&from, &next)?;
            // Another server would get the credentials of this one.
            if !is_same_server(&url, &self.client.address(&self.url(""))) {
                return Err(RegistryError::Answer { url, what: "next page of the list" });
            }
        }
        Err(RegistryError::Answer { url, what: "end of the list" })
    }
}

/// The URL of the next page (RFC 8288).
fn next_page(link: &str) -> Option<String> {
    let is_next = |link: &&str| link.contains("rel=\"next\"") || link.contains("rel=next");
    let (_, rest) = link.split(',').find(is_next)?.split_once('<')?;
    Some(rest.split_once('>')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_next_page_only() {
        assert_eq!(next_page("</v2/a/referrers/x?n=1>; rel=\"next\"").as_deref(), Some("/v2/a/referrers/x?n=1"));
        assert_eq!(next_page("</a>; rel=\"prev\", </b>; rel=\"next\"").as_deref(), Some("/b"));
        assert_eq!(next_page("</a>; rel=\"prev\""), None);
    }
}
