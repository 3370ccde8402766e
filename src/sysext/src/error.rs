//! Error while writing an extension.

use std::path::PathBuf;

use vmbake_common::message::FileError;
use vmbake_disk::ext4::AuthorError;
use vmbake_disk::squashfs::SquashfsError;
use vmbake_disk::write::WriteError;

use vmbake_bundle::BundleError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_compose::merge::MergeError;
use vmbake_compose::stage::StageError;
use vmbake_fetch::FetchError;
use vmbake_fetch::verify::VerifyError;
use vmbake_manifest::ManifestError;

/// Error while writing an extension.
#[derive(Debug, thiserror::Error)]
pub enum ExtensionError {
    #[error("{}", escape::each_line(refusals.iter().map(|what| format!("{}: {what}", path.display()))))]
    Refused {
        path: PathBuf,
        /// All refusals, each with layer and key.
        refusals: Vec<String>,
    },
    #[error("{path}: expected a file name of letters, digits, `-`, `_` and `.` that ends in .raw")]
    Name { path: PathBuf },
    #[error("{path}: expected a directory name of letters, digits, `-`, `_` and `.` that does not end in .raw")]
    FolderName { path: PathBuf },
    #[error("{path}: refusing to replace a directory other than this extension")]
    Foreign { path: PathBuf },
    #[error("{path}: a hash tree is not supported for a directory")]
    NoBlocks { path: PathBuf },
    #[error("{path}: expected a bundle for {expected}, found one for {found}")]
    Target {
        path: PathBuf,
        /// Requested system and architecture.
        expected: String,
        found: String,
    },
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error(transparent)]
    Author(#[from] AuthorError),
    #[error(transparent)]
    Squashfs(#[from] SquashfsError),
    #[error("{path}: cannot write the extension")]
    Write { path: PathBuf, source: WriteError },
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for ExtensionError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Refused { .. } => "see docs/sysext.md; for everything else, bake an image with `vmbake bake --with`",
            Self::Name { .. } => "use a name such as -o acme-agent.raw; with --format dir, omit .raw",
            Self::FolderName { .. } => "use a name such as -o acme-agent",
            Self::Foreign { .. } => "choose another directory with -o",
            Self::NoBlocks { .. } => "use --format squashfs or ext4",
            Self::Target { .. } => "select the system and architecture with --os and --arch",
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    vmbake_common::causes!(Bundle, Manifest, Fetch, Verify, Stage, Merge, Author, Squashfs, Publish, File; Write);
}
