//! Semantic checks of upstreams: URLs without https, impossible proofs.

use super::{ArtifactType, Demand, Template, Upstream, VersionSource};

impl Upstream {
    /// All faults, as messages; references to other artifacts are not resolved.
    pub fn faults(&self) -> Vec<&'static str> {
        let mut faults = Vec::new();
        if self.addresses().into_iter().any(|address| !is_https(address)) {
            faults.push("URL is not https");
        }
        if self.program.is_some() && self.kind != ArtifactType::Binary {
            faults.push("program requires type binary");
        }
        let from_archive = matches!(self.version, VersionSource::Apt { .. });
        match &self.proof {
            Demand::Apt if !from_archive => faults.push("proof apt requires a version from an archive"),
            Demand::Apt => {}
            _ if from_archive => faults.push("an artifact from an archive requires proof apt"),
            _ if self.url.is_none() => faults.push("url is missing"),
            Demand::FirstUse | Demand::Stated(_) => {}
            // The signature can be verified only with the file itself.
            Demand::Openpgp { keyring, .. } if keyring.is_empty() || keyring.contains('/') => {
                faults.push("keyring is not the name of a file in trust/");
            }
            Demand::Openpgp { .. } => {}
            // The signature is over the whole file; the checksum provides the digest before the download, and both must
            // match.
            _ if self.checksums.is_none() => faults.push("checksums is missing"),
            _ => {}
        }
        faults
    }

    fn addresses(&self) -> Vec<&Template> {
        let mut all: Vec<&Template> = [&self.url, &self.checksums].into_iter().flatten().collect();
        match &self.proof {
            Demand::Openpgp { signature, .. } => all.push(signature),
            Demand::Sigstore { bundle, .. } => all.push(bundle),
            Demand::Cosign { signature, certificate, .. } => all.extend([signature, certificate]),
            _ => {}
        }
        if let VersionSource::Json { url, .. } | VersionSource::Text { url, .. } = &self.version {
            all.push(url);
        }
        all
    }
}

/// Whether a URL uses TLS, or starts with a placeholder such as `{url}`, which is checked separately.
fn is_https(address: &Template) -> bool {
    address.start().starts_with("https://") || address.start().is_empty()
}
