//! Hints for errors of bundles.

use super::BundleError;
use vmbake_common::hint::Hint;

impl Hint for BundleError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Syntax { .. } | Self::Document { .. } => Some(
                "run `vmbake schema bundle` to print the schema of bundle.json; docs/bundle-reference.md explains the keys".to_owned(),
            ),
            Self::Unsound { .. } => {
                Some("see docs/bundle-reference.md for what a bundle may do and must request".to_owned())
            }
            Self::NoSource { .. } => Some("add its URL to `downloads` of the layer or to sources.json".to_owned()),
            Self::Remote { .. } => Some("name the directory or tar file that `vmbake bundle pack` wrote".to_owned()),
            Self::Tagged { .. } => {
                Some("use another version for changed content; --force moves the tag".to_owned())
            }
            Self::NoPublisher { .. } => {
                Some("run `vmbake bundle trust REF --key FILE` to show what it requests and to write the file".to_owned())
            }
            Self::Publisher { .. } => Some("see docs/bundle-reference.md#publisher for an example of such a file".to_owned()),
            Self::NotGranted { .. } => Some(
                "run `vmbake bundle inspect` to show what it requests; grant it in trust/publishers"
                    .to_owned(),
            ),
            Self::OtherBundle { expected, .. } => {
                Some(format!("name {expected} as well, or remove it from bundles.lock.json if the image no longer contains it"))
            }
            Self::NotLocked { .. } => Some(
                "run `vmbake bundle upgrade KIND` to use the newest version; --manifests sets the directory of the lock file"
                    .to_owned(),
            ),
            Self::NoVersion { .. } => Some("name a tag, as HOST/NAME:TAG".to_owned()),
            Self::NoReference { .. } => Some("use --with to name the new bundle, as a file or HOST/NAME:TAG".to_owned()),
            Self::Fixed { with, .. } => {
                Some(format!("name {with} in the layer; without a tag, the lock alone selects the version"))
            }
            Self::NewlyRequired { .. } => {
                Some("use --user-data-is-ready once the user data of all machines contains them".to_owned())
            }
            Self::Locked { .. } => Some("use --upgrade-bundles for a higher version, with --allow-downgrade for a lower one; a changed version needs a new number from its publisher".to_owned()),
            Self::Conflicts { .. } => Some("remove one of the two; run `vmbake bundle plan` to show everything that bundles do to an image".to_owned()),
            Self::Unattended { .. } => Some("use --yes to accept what was shown".to_owned()),
            Self::NoSigner { .. } => Some("use --key or --publisher".to_owned()),
            Self::Layout { .. } => {
                Some("request a valid copy from the publisher, who writes bundles with `vmbake bundle pack`".to_owned())
            }
            Self::Unnamed { .. } => Some("name the bundle as HOST/NAME:TAG or HOST/NAME@DIGEST".to_owned()),
            Self::Moved { .. } => {
                Some("contact the publisher, or name the bundle by its digest".to_owned())
            }
            Self::NotSigned { .. } => {
                Some("confirm the publisher's key out of band before using it".to_owned())
            }
            Self::Unpinned { .. } => Some("run the command once without --offline".to_owned()),
            Self::PinLost { .. } => Some(
                "use --mirror or --store with a location that still has it, or --refresh to pin the current upstream version".to_owned(),
            ),
            Self::NoBlob { .. } => Some("use --store with the store that contains it".to_owned()),
            Self::Damaged { .. } => Some("run `vmbake store verify` to find other changes".to_owned()),
            _ => None,
        }
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::Unsound { .. } | Self::Conflicts { .. })
    }

    vmbake_common::causes!(Layer, Sources, Resolve, Fetch, Manifest, Store, Carry, Sign, Publish, Registry, Pull, File; PinLost, Unproven);
}
