//! What to do about a bundle that cannot be used.

use super::BundleError;
use vmbake_common::hint::Hint;

impl Hint for BundleError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Syntax { .. } | Self::Document { .. } => Some(
                "`vmbake schema bundle` prints the schema of bundle.json; docs/bundle-reference.md explains the keys".to_owned(),
            ),
            Self::Unsound { .. } => {
                Some("see docs/bundle-reference.md for what a bundle may do and must request".to_owned())
            }
            Self::NoSource { .. } => Some("add its URL to `downloads` of the layer or to sources.json".to_owned()),
            Self::Remote { .. } => Some("name the folder or tar file that `vmbake bundle pack` wrote".to_owned()),
            Self::Tagged { .. } => {
                Some("--force moves the tag; give what has changed another version instead".to_owned())
            }
            Self::NoPublisher { .. } => {
                Some("`vmbake bundle trust REF --key FILE` shows what it requests, and writes the file".to_owned())
            }
            Self::Publisher { .. } => Some("docs/bundle-reference.md#publisher shows such a file".to_owned()),
            Self::NotGranted { .. } => Some(
                "`vmbake bundle inspect` shows what it requests; grant it in trust/publishers"
                    .to_owned(),
            ),
            Self::OtherBundle { expected, .. } => {
                Some(format!("name {expected} as well, or remove it from bundles.lock.json if the image no longer has it"))
            }
            Self::NotLocked { .. } => Some(
                "`vmbake bundle upgrade KIND` takes the newest version; --manifests names the folder of the lock"
                    .to_owned(),
            ),
            Self::NoVersion { .. } => Some("name one, as HOST/NAME:TAG".to_owned()),
            Self::NoReference { .. } => Some("--with names the new one, as a file or HOST/NAME:TAG".to_owned()),
            Self::Fixed { with, .. } => {
                Some(format!("name {with} in the layer; without a tag, the lock alone selects the version"))
            }
            Self::NewlyRequired { .. } => {
                Some("once the user data of all machines has them, --user-data-is-ready goes on".to_owned())
            }
            Self::Locked { .. } => Some("--upgrade-bundles takes a higher version, with --allow-downgrade a lower one; never another bundle of the same".to_owned()),
            Self::Conflicts { .. } => Some("remove one of the two; `vmbake bundle plan` shows everything that bundles do to an image".to_owned()),
            Self::Unattended { .. } => Some("--yes accepts what was shown".to_owned()),
            Self::NoSigner { .. } => Some("use --key or --publisher".to_owned()),
            Self::Layout { .. } => {
                Some("`vmbake bundle pack` writes bundles; request a valid copy from the publisher".to_owned())
            }
            Self::Unnamed { .. } => Some("name it as HOST/NAME:TAG or HOST/NAME@DIGEST".to_owned()),
            Self::Moved { .. } => {
                Some("contact the publisher, or name the bundle by its digest".to_owned())
            }
            Self::NotSigned { .. } => {
                Some("confirm the publisher's key out of band before you use it".to_owned())
            }
            Self::Unpinned { .. } => Some("run it once without --offline".to_owned()),
            Self::PinLost { .. } => Some(
                "--mirror or --store names a place that still has it; --refresh pins what upstream has now".to_owned(),
            ),
            Self::NoBlob { .. } => Some("--store names the store that has it".to_owned()),
            Self::Damaged { .. } => Some("`vmbake store verify` finds what else has changed".to_owned()),
            _ => None,
        }
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::Unsound { .. } | Self::Conflicts { .. })
    }

    vmbake_common::causes!(Layer, Sources, Resolve, Fetch, Manifest, Store, Carry, Sign, Publish, Registry, Pull, File; PinLost, Unproven);
}
