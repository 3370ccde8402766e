//! Whether what a manifest records is the proof that its source demands.
//!
//! A manifest is data that anybody may edit; what must prove an artifact is said by `sources.json` alone. An artifact that
//! no source knows has no demand: its digest was pinned by hand.

use std::collections::BTreeMap;

use crate::manifest::{Content, Dependency, Proof, Signed};
use crate::sources::{Demand, Sources, System, Target, Undefined, Upstream, VersionSource};

/// Prefix of the address of a base image that the user made or chose.
pub const LOCAL: &str = "local:";

/// An entry whose proof is weaker than its source demands.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum PolicyError {
    #[error("{name}: the manifest records {found}, its source demands {demanded}")]
    Weak { name: String, demanded: String, found: String },
    #[error("{name}: its source cannot be applied")]
    Template { name: String, source: Undefined },
}

/// Fails at the first entry of a manifest whose proof is not enough.
pub fn check(sources: &Sources, content: &Content) -> Result<(), PolicyError> {
    let target = Target { kind: content.kind.clone(), os: content.os.name.clone(), arch: content.os.arch.clone() };
    let Ok(system) = sources.system(&target) else { return Ok(()) };
    for source in sources.dependencies(&target) {
        if let Some(dependency) = content.dependencies.get(&source.name) {
            check_one(&target, system, &source.name, &source.upstream, dependency)?;
        }
    }
    match &content.os.image {
        // The user names that file again when it is used.
        Some(image) if image.url.starts_with(LOCAL) && image.proof == Some(Proof::Local) => Ok(()),
        Some(image) => check_one(&target, system, "os.image", &system.image, image),
        None => Ok(()),
    }
}

/// Fails unless the proof of one entry is enough.
pub fn check_one(
    target: &Target,
    system: &System,
    name: &str,
    upstream: &Upstream,
    entry: &Dependency,
) -> Result<(), PolicyError> {
    let values: BTreeMap<String, String> = [
        ("version", &entry.version),
        ("arch", &target.arch),
        ("os", &target.os),
        ("kind", &target.kind),
        ("codename", &system.codename),
    ]
    .map(|(name, value)| (name.to_owned(), value.clone()))
    .into();
    let render = |source| PolicyError::Template { name: name.to_owned(), source };
    let proof = entry.proof.as_ref();
    let (enough, demanded) = match &upstream.proof {
        Demand::FirstUse => (true, String::new()),
        Demand::Checksum => (matches!(proof, Some(Proof::Checksum { .. })), "a checksum file".to_owned()),
        Demand::Apt => {
            let VersionSource::Apt { archive, .. } = &upstream.version else { return Ok(()) };
            let enough = matches!(proof, Some(Proof::Apt { archive: found, signers, .. })
                if found == archive && !signers.is_empty());
            (enough, format!("the signed index of archive {archive}"))
        }
        Demand::Sigstore { identity, issuer, .. } => {
            let identity = identity.render(&values).map_err(render)?;
            let enough = matches!(proof, Some(Proof::Sigstore(signed)) if is_by(signed, &identity, issuer, true));
            (enough, format!("a sigstore bundle by {identity}"))
        }
        Demand::Cosign { identity, issuer, without_log, .. } => {
            let identity = identity.render(&values).map_err(render)?;
            let enough = matches!(proof, Some(Proof::Cosign(signed)) if is_by(signed, &identity, issuer, !without_log));
            (enough, format!("a signature by {identity}"))
        }
    };
    if enough {
        return Ok(());
    }
    let found = proof.map_or_else(|| "no proof".to_owned(), ToString::to_string);
    Err(PolicyError::Weak { name: name.to_owned(), demanded, found })
}

fn is_by(signed: &Signed, identity: &str, issuer: &str, logged: bool) -> bool {
    signed.identity == identity && signed.issuer == issuer && (!logged || signed.evidence.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    /// A manifest of kind knd with one entry, whose proof is `proof`.
    fn check_entry(name: &str, proof: &str) -> Result<(), String> {
        let text = format!(
            r#"{{"vmconfig": {{"version": "dev", "kind": "knd", "os": {{"name": "debian-13", "arch": "amd64"}}, "dependencies": {{
            "{name}": {{"version": "2.2.1", "url": "u", "type": "binary", "size": 0{proof},
            "digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}}}}}}}"#
        );
        let manifest = Manifest::parse("m".as_ref(), text.into_bytes()).unwrap();
        check(&Sources::load(None).unwrap(), manifest.content()).map_err(|error| error.to_string())
    }

    fn signed(kind: &str, identity: &str, issuer: &str, more: &str) -> String {
        format!(r#", "proof": {{"type": "{kind}", "identity": "{identity}", "issuer": "{issuer}"{more}}}"#)
    }

    const EVIDENCE: &str = r#", "evidence": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855""#;
    const RELEASE: &str = "https://github.com/containerd/containerd/.github/workflows/release.yml@refs/tags/v2.2.1";
    const GITHUB: &str = "https://token.actions.githubusercontent.com";

    #[test]
    fn the_demanded_proof_is_enough() {
        assert_eq!(check_entry("containerd", &signed("sigstore", RELEASE, GITHUB, EVIDENCE)), Ok(()));
        let google = "krel-staging@k8s-releng-prod.iam.gserviceaccount.com";
        assert_eq!(check_entry("kubelet", &signed("cosign", google, "https://accounts.google.com", EVIDENCE)), Ok(()));
        assert_eq!(check_entry("runc", r#", "proof": {"type": "checksum", "url": "u"}"#), Ok(()));
        assert_eq!(check_entry("something-of-my-own", ""), Ok(()));
    }

    #[test]
    fn a_weaker_one_is_not() {
        let apt = |signers: &str, archive: &str| {
            format!(
                r#", "proof": {{"type": "apt", "archive": "{archive}", "suite": "trixie", "date": "2026-01-01T00:00:00Z", "signers": [{signers}]}}"#
            )
        };
        for (name, proof) in [
            ("containerd", String::new()),
            ("containerd", r#", "proof": {"type": "local"}"#.to_owned()),
            ("containerd", r#", "proof": {"type": "checksum", "url": "u"}"#.to_owned()),
            ("containerd", signed("sigstore", &RELEASE.replace("2.2.1", "2.2.0"), GITHUB, EVIDENCE)),
            ("containerd", signed("sigstore", RELEASE, "https://issuer.example.org", EVIDENCE)),
            ("containerd", signed("sigstore", RELEASE, GITHUB, "")),
            ("containerd", signed("cosign", RELEASE, GITHUB, EVIDENCE)),
            ("kubelet", signed("cosign", "somebody@example.org", "https://accounts.google.com", EVIDENCE)),
            ("runc", r#", "proof": {"type": "first-use"}"#.to_owned()),
            ("libpq5", apt("", "debian")),
            ("libpq5", apt("\"A\"", "fluentbit")),
        ] {
            let error = check_entry(name, &proof).unwrap_err();
            assert!(error.starts_with(&format!("{name}: the manifest records ")), "{error}");
        }
    }
}
