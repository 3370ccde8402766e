//! What is wrong with an upstream beyond its form: addresses that are not https, proofs that cannot be.

use super::{ArtifactType, Demand, Template, Upstream, VersionSource};

impl Upstream {
    /// Everything that is wrong with it, as messages; names of others are not looked up.
    pub fn faults(&self) -> Vec<&'static str> {
        let mut faults = Vec::new();
        if self.addresses().into_iter().any(|address| !is_https(address)) {
            faults.push("an address is not https");
        }
        if self.program.is_some() && self.kind != ArtifactType::Binary {
            faults.push("program needs type binary");
        }
        let from_archive = matches!(self.version, VersionSource::Apt { .. });
        match &self.proof {
            Demand::Apt if !from_archive => faults.push("proof apt needs a version from an archive"),
            Demand::Apt => {}
            _ if from_archive => faults.push("what comes from an archive has proof apt"),
            _ if self.url.is_none() => faults.push("url is missing"),
            Demand::FirstUse | Demand::Stated(_) => {}
            // Only the file itself tells whether the signature is over it.
            Demand::Openpgp { keyring, .. } if keyring.is_empty() || keyring.contains('/') => {
                faults.push("keyring is not the name of a file in trust/");
            }
            Demand::Openpgp { .. } => {}
            // A signature is over the whole file, so the digest could be had without; the statement of both must agree.
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

/// Whether an address is asked over TLS, or begins with a word such as `{url}`, which is another address.
fn is_https(address: &Template) -> bool {
    address.start().starts_with("https://") || address.start().is_empty()
}
