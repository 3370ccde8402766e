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
use crate::address;
use crate::atomic_file::PublishError;
#[cfg(feature = "aws")]
use crate::aws::AwsError;
use crate::bake::BakeError;
use crate::bake::inputs::InputError;
use crate::bake::rebuild::RebuildError;
use crate::catalog::CatalogError;
use crate::compose::merge::MergeError;
use crate::compose::origin::OriginError;
use crate::compose::stage::StageError;
use crate::distribute::archive::CarryError;
use crate::distribute::bundle::BundleError;
use crate::distribute::bundle::extension::ExtensionError;
use crate::distribute::convert::ConvertError;
use crate::distribute::delta::DeltaError;
use crate::distribute::podplane::PodplaneError;
#[cfg(feature = "aws")]
use crate::distribute::publish::ami::error::AmiError;
use crate::distribute::publish::blocks::BlocksError;
use crate::distribute::publish::snapshot::SnapshotError;
use crate::distribute::pull::PullError;
use crate::distribute::push::PushError;
use crate::distribute::release::DocumentError;
use crate::embedded::MissingProgram;
use crate::escape;
use crate::fetch::FetchError;
use crate::fetch::images::ImagesError;
use crate::fetch::local::LocalFileError;
use crate::fetch::verify::VerifyError;
use crate::hint::Hint;
use crate::image::disk::InspectError;
use crate::image::identity::IdentityError;
use crate::layer::LayerError;
use crate::machine::MachineError;
use crate::manifest::ManifestError;
use crate::pin::anchors::AnchorError;
use crate::pin::closure::{ClosureError, Refusal};
use crate::pin::proof::program::ProgramError;
use crate::pin::prove::LinkError;
use crate::pin::resolve::ResolveError;
use crate::pin::sources::SourcesError;
use crate::pin::update::{EntryError, RequestError, UpdateError};
use crate::profile::ProfileError;
use crate::profile::import::ImportError;
use crate::progress::{self, Event};
use crate::query::changelog::ChangelogError;
use crate::query::explain::ExplainError;
use crate::query::report::ReportError;
use crate::query::sbom::SbomError;
use crate::release::key::KeyError;
use crate::release::policy::PolicyError;
use crate::release::sign::SignError;
use crate::supply::download::DownloadError;
use crate::supply::http::HttpError;
use crate::supply::registry::RegistryError;
use crate::supply::registry::credentials::CredentialError;
use crate::supply::store::StoreError;
use crate::user_data::UserDataError;

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
    known::<MachineError>,
    known::<ManifestError>,
    known::<MergeError>,
    known::<MissingProgram>,
    known::<OriginError>,
    known::<PodplaneError>,
    known::<PolicyError>,
    known::<ProfileError>,
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
    known::<ReportError>,
    known::<RequestError>,
    known::<ResolveError>,
    known::<SbomError>,
    known::<SourcesError>,
    known::<SignError>,
    known::<StageError>,
    known::<StoreError>,
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
        let missing = crate::compose::stage::StageError::from(MissingProgram { arch: "arm64".to_owned() });
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
            fault: Box::new(crate::compose::merge::ScriptFault::NotPostinst),
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
