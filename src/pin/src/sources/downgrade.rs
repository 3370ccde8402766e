//! Compares the proof requirements of two entries: returns the relaxed requirement as text, or `None` if none is
//! relaxed.
//!
//! Two signatures are comparable only if they are by the same signer: another signer is another trust decision.

use super::{Archive, Demand, Upstream, VersionSource};

/// The requirement for an artifact that `found` relaxes compared with `known`.
pub(super) fn upstream(found: &Upstream, known: &Upstream) -> Option<String> {
    let instead = || format!("{} instead of {}", demand(found), demand(known));
    if strength(found) < strength(known) || (strength(known) == SIGNED && !is_by_same(found, known)) {
        return Some(instead());
    }
    let (program, demanded) = (found.program.as_ref(), known.program.as_ref()?);
    match program {
        Some(program) if program.package == demanded.package => {
            let is_dropped = demanded.version.is_some() && program.version != demanded.version;
            is_dropped.then(|| format!("no version check of the program {}", demanded.package))
        }
        Some(program) => Some(format!("the program {} instead of {}", program.package, demanded.package)),
        None => Some(format!("any program instead of {}", demanded.package)),
    }
}

/// The requirement for an archive that `found` relaxes compared with `known`.
pub(super) fn archive(found: &Archive, known: &Archive) -> Option<String> {
    signature(found, known).or_else(|| {
        let lacks = known.also.iter().find(|name| !found.also.contains(name));
        let adds = found.also.iter().find(|name| !known.also.contains(name));
        let lacks = lacks.map(|name| format!("without the newer versions of archive {name}"));
        lacks.or_else(|| adds.map(|name| format!("also packages of archive {name}")))
    })
}

/// The requirement for the signature of an archive that `found` relaxes compared with `known`: keys and maximum age.
pub(super) fn signature(found: &Archive, known: &Archive) -> Option<String> {
    if found.keyring != known.keyring {
        return Some(format!("keyring {} instead of {}", found.keyring, known.keyring));
    }
    match (found.max_age_days, known.max_age_days) {
        (None, Some(days)) => Some(format!("an index of any age instead of {days} days at most")),
        (Some(found), Some(known)) if found > known => {
            Some(format!("an index of up to {found} days instead of {known}"))
        }
        _ => None,
    }
}

/// The strength of a signature.
const SIGNED: u8 = 2;

fn strength(upstream: &Upstream) -> u8 {
    match upstream.proof {
        // A listed checksum file must match in any case.
        Demand::FirstUse | Demand::Checksum => u8::from(upstream.checksums.is_some()),
        Demand::Stated(_) => 1,
        Demand::Apt | Demand::Openpgp { .. } | Demand::Sigstore { .. } | Demand::Cosign { .. } => SIGNED,
    }
}

/// Whether two signatures are by the same signer, and the first one covers at least as much.
fn is_by_same(found: &Upstream, known: &Upstream) -> bool {
    match (&found.proof, &known.proof) {
        (Demand::Apt, Demand::Apt) => archive_of(found) == archive_of(known),
        (Demand::Openpgp { keyring, .. }, Demand::Openpgp { keyring: of_known, .. }) => keyring == of_known,
        (
            Demand::Sigstore { identity, issuer, predicate_type, .. },
            Demand::Sigstore { identity: of_known, issuer: by_known, predicate_type: demanded, .. },
        ) => identity == of_known && issuer == by_known && (demanded.is_none() || predicate_type == demanded),
        (
            Demand::Cosign { identity, issuer, log, without_log, .. },
            Demand::Cosign { identity: of_known, issuer: by_known, log: in_known, without_log: may_lack, .. },
        ) => identity == of_known && issuer == by_known && log == in_known && (*may_lack || !without_log),
        _ => false,
    }
}

fn archive_of(upstream: &Upstream) -> Option<&str> {
    match &upstream.version {
        VersionSource::Apt { archive, .. } => Some(archive),
        _ => None,
    }
}

/// The required proof of an artifact, for messages.
fn demand(upstream: &Upstream) -> String {
    match &upstream.proof {
        Demand::FirstUse | Demand::Checksum if upstream.checksums.is_some() => "a checksum file".to_owned(),
        Demand::FirstUse | Demand::Checksum => "the first download".to_owned(),
        Demand::Stated(_) => "a digest stated in a layer".to_owned(),
        Demand::Apt => format!("the signed index of archive {}", archive_of(upstream).unwrap_or_default()),
        Demand::Openpgp { keyring, .. } => format!("an OpenPGP signature by a key of {keyring}"),
        Demand::Sigstore { identity, issuer, predicate_type: Some(predicate), .. } => {
            format!("a sigstore bundle with a {predicate} by {identity} of {issuer}")
        }
        Demand::Sigstore { identity, issuer, .. } => format!("a sigstore bundle by {identity} of {issuer}"),
        Demand::Cosign { identity, issuer, log, without_log, .. } => {
            let in_log = if *without_log { "optionally in" } else { "in" };
            format!("a signature by {identity} of {issuer} {in_log} the log {log}")
        }
    }
}
