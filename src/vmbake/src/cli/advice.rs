//! How an error is told: its message, what caused it, and what to do about it.

use std::error::Error;

use vmbake_disk::disk::AssembleError;
use vmbake_disk::ext4::AuthorError;
use vmbake_disk::image::ImageError;
use vmbake_disk::layout::LayoutError;

use super::key::KeySourceError;
#[cfg(feature = "aws")]
use super::publish::PublishCommandError;
use super::target::TargetError;
use super::verify::EvidenceError;
use crate::sync::SyncError;
#[cfg(feature = "aws")]
use vmbake_aws::AwsError;
#[cfg(feature = "aws")]
use vmbake_aws::ami::error::AmiError;
use vmbake_bake::BakeError;
use vmbake_bake::inputs::InputError;
use vmbake_bake::rebuild::RebuildError;
use vmbake_bake::release::key::KeyError;
use vmbake_bake::release::policy::PolicyError;
use vmbake_bake::release::sign::SignError;
use vmbake_common::address;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::catalog::CatalogError;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::progress::{self, Event};
use vmbake_compose::merge::MergeError;
use vmbake_compose::origin::OriginError;
use vmbake_compose::stage::StageError;
use vmbake_distribute::archive::CarryError;
use vmbake_distribute::bundle::BundleError;
use vmbake_distribute::convert::ConvertError;
use vmbake_distribute::delta::DeltaError;
use vmbake_distribute::podplane::PodplaneError;
use vmbake_distribute::publish::blocks::BlocksError;
use vmbake_distribute::publish::snapshot::SnapshotError;
use vmbake_distribute::pull::PullError;
use vmbake_distribute::push::PushError;
use vmbake_distribute::release::DocumentError;
use vmbake_embedded::MissingProgram;
use vmbake_fetch::FetchError;
use vmbake_fetch::images::ImagesError;
use vmbake_fetch::local::LocalFileError;
use vmbake_fetch::verify::VerifyError;
use vmbake_image::disk::InspectError;
use vmbake_image::identity::IdentityError;
use vmbake_layer::LayerError;
use vmbake_manifest::ManifestError;
use vmbake_pin::anchors::AnchorError;
use vmbake_pin::closure::{ClosureError, Refusal};
use vmbake_pin::prove::LinkError;
use vmbake_pin::resolve::ResolveError;
use vmbake_pin::sources::SourcesError;
use vmbake_pin::update::{EntryError, RequestError, UpdateError};
#[cfg(feature = "profile")]
use vmbake_profile::ProfileError;
#[cfg(feature = "profile")]
use vmbake_profile::import::ImportError;
use vmbake_proof::program::ProgramError;
#[cfg(feature = "qemu")]
use vmbake_qemu::MachineError;
use vmbake_query::changelog::ChangelogError;
use vmbake_query::explain::ExplainError;
use vmbake_query::sbom::SbomError;
#[cfg(feature = "report")]
use vmbake_report::ReportError;
use vmbake_store::download::DownloadError;
use vmbake_store::http::HttpError;
use vmbake_store::registry::RegistryError;
use vmbake_store::registry::credentials::CredentialError;
use vmbake_store::store::StoreError;
#[cfg(feature = "sysext")]
use vmbake_sysext::ExtensionError;
use vmbake_user_data::UserDataError;

/// Looks whether an error is of one type.
type Look = for<'a> fn(&'a (dyn Error + 'static)) -> Option<&'a (dyn Hint + 'static)>;

/// The errors that say more than their message; a cause in a box is of another type than one without.
const KNOWN: &[Look] = &[
    #[cfg(feature = "aws")]
    known::<AmiError>,
    known::<AnchorError>,
    known::<AssembleError>,
    known::<AuthorError>,
    #[cfg(feature = "aws")]
    known::<AwsError>,
    known::<BakeError>,
    known::<BlocksError>,
    known::<SnapshotError>,
    #[cfg(feature = "aws")]
    known::<Box<AmiError>>,
    known::<BundleError>,
    known::<Box<EntryError>>,
    known::<Box<LinkError>>,
    known::<Box<ProgramError>>,
    known::<CarryError>,
    known::<CatalogError>,
    known::<ChangelogError>,
    known::<ClosureError>,
    known::<ConvertError>,
    known::<CredentialError>,
    known::<DeltaError>,
    known::<DocumentError>,
    known::<DownloadError>,
    known::<LocalFileError>,
    known::<EntryError>,
    known::<EvidenceError>,
    known::<ExplainError>,
    #[cfg(feature = "sysext")]
    known::<ExtensionError>,
    known::<FetchError>,
    known::<HttpError>,
    known::<ImageError>,
    known::<ImagesError>,
    known::<InputError>,
    known::<InspectError>,
    known::<IdentityError>,
    known::<KeyError>,
    known::<KeySourceError>,
    known::<LayerError>,
    known::<LayoutError>,
    known::<LinkError>,
    #[cfg(feature = "qemu")]
    known::<MachineError>,
    known::<ManifestError>,
    known::<MergeError>,
    known::<MissingProgram>,
    known::<OriginError>,
    known::<PodplaneError>,
    known::<PolicyError>,
    #[cfg(feature = "profile")]
    known::<ProfileError>,
    #[cfg(feature = "profile")]
    known::<ImportError>,
    known::<ProgramError>,
    #[cfg(feature = "aws")]
    known::<PublishCommandError>,
    known::<PublishError>,
    known::<PullError>,
    known::<PushError>,
    known::<Refusal>,
    known::<RebuildError>,
    known::<RegistryError>,
    #[cfg(feature = "report")]
    known::<ReportError>,
    known::<RequestError>,
    known::<ResolveError>,
    known::<SbomError>,
    known::<SourcesError>,
    known::<SignError>,
    known::<StageError>,
    known::<StoreError>,
    known::<SyncError>,
    known::<TargetError>,
    known::<UpdateError>,
    known::<UserDataError>,
    known::<VerifyError>,
    known::<std::io::Error>,
];

fn known<'a, E: Hint + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Hint + 'static)> {
    error.downcast_ref::<E>().map(|error| error as &dyn Hint)
}

fn more<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Hint + 'static)> {
    KNOWN.iter().find_map(|look| look(error))
}

/// Prints an error to standard error: its message, a line for each cause, and a hint.
pub fn tell(error: &(dyn Error + 'static)) {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push(message(error));
        cause = error.source();
    }
    let hint = hint(error).map(escape::line);
    progress::tell(&Event::Error { message: message(error), causes, hint });
}

/// The first advice that any error of the chain has.
pub fn hint(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.to_string().contains(address::MESSAGE) {
            return Some(address::HINT.to_owned());
        }
        next = error.source();
    }
    next = Some(error);
    while let Some(error) = next {
        let more = more(error);
        if let Some(hint) = more.and_then(Hint::hint) {
            return Some(hint);
        }
        next = more.and_then(Hint::passed_on).or_else(|| error.source());
    }
    None
}

/// The message of an error. Those that list faults have a line for each, everything else is one line.
fn message(error: &(dyn Error + 'static)) -> String {
    let text = address::redacted(&error.to_string());
    if has_lines(error) { escape::lines(&text) } else { escape::line(text) }
}

fn has_lines(error: &(dyn Error + 'static)) -> bool {
    more(error).is_some_and(|more| more.has_lines() || more.passed_on().is_some_and(has_lines))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn an_error_that_is_passed_on_keeps_its_hint() {
        let exists = PublishError::Exists { path: "dist/x.raw".into() };
        let passed: Box<dyn Error> = Box::new(BakeError::from(exists));
        assert_eq!(hint(&*passed).as_deref(), Some("--force replaces it"));
        let missing = vmbake_compose::stage::StageError::from(MissingProgram { arch: "arm64".to_owned() });
        let passed: Box<dyn Error> = Box::new(BakeError::from(missing));
        assert!(hint(&*passed).is_some_and(|hint| hint.contains("make firstboot")));
        let absent = HttpError::Status {
            url: "https://api.github.com/x".into(),
            status: 403,
            retry_after: None,
            challenge: None,
        };
        let passed = FetchError::Download { name: "x".into(), source: absent.into() };
        assert!(hint(&passed).is_some_and(|hint| hint.contains("GITHUB_TOKEN")));
        let [path, artifact] = ["/opt/p", "a"].map(str::to_owned);
        let passed: Box<dyn Error> =
            Box::new(BakeError::from(MergeError::Interpreter { path, artifact, interpreter: "/bin/ruby".to_owned() }));
        assert!(hint(&*passed).is_some_and(|hint| hint.contains("`members`")));
        let surprise = MergeError::Privilege {
            path: "/usr/bin/x".into(),
            artifact: "a".into(),
            layer: "l".into(),
            privilege: "mode 4755".into(),
        };
        let passed: Box<dyn Error> = Box::new(BakeError::from(surprise));
        assert!(hint(&*passed).is_some_and(|hint| hint.ends_with("add to layer l: \"setuid\": [\"/usr/bin/x\"]")));
        let script = |upgrade| MergeError::Script {
            package: "p".into(),
            script: "postinst",
            sha256: "0".into(),
            upgrade,
            makes: Box::default(),
            fault: Box::new(vmbake_compose::merge::ScriptFault::NotPostinst),
        };
        assert!(
            hint(&script(true))
                .is_some_and(|hint| hint.contains("\"sha256\": \"0\", \"upgrade\": true, \"defer\": true}"))
        );
        assert!(hint(&script(false)).is_some_and(|hint| hint.contains("\"sha256\": \"0\", \"defer\": true}")));
        let full = std::io::Error::from(ErrorKind::StorageFull);
        assert!(hint(&full).is_some_and(|hint| hint.contains("--out")));
    }
}
